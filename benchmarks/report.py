"""The table in words, and the JSON: what is printed, and what the book draws."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from .roofline import add_shares

PACKAGES = (
    "locbook",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "torch",
    "faiss-cpu",
    "pykeops",
)


def machine() -> dict[str, Any]:
    """Processor, cores and versions; nothing else of the machine."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": model, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions,
    }  # fmt: skip


def verdict(row: dict[str, Any]) -> str:
    """What became of the row: reached, short by how much and on how many threads, or why it was not timed."""
    if "grown_mb" in row:
        over = row["grown_mb"] / row["target_mb"] - 1
        return "reached" if over < 0 else f"MISSED: {over:.0%} above"
    if not row["agree"]:
        worst = max(row["error_ours"], row["error_theirs"])
        return f"DIFFERS: error {worst:.1e} > {row['bound']:.0e}, not timed"
    if row["target"] is None:
        return ""
    short = {k: 1 - timed["ratio"] / row["target"] for k, timed in row["threads"].items()}
    missed = [f"{share:.0%} on {k}" for k, share in short.items() if share > 0]
    return f"MISSED: short by {', '.join(missed)}" if missed else "reached"


def size(row: dict[str, Any]) -> str:
    """Samples x queries (columns of samples, of values) and dtype."""
    columns = "" if row["d"] is None else f" ({row['d']},{row['p']})"
    queries = f"x{row['m']}" if row["m"] else ""
    return f"{row['n']}{queries}{columns} {row['dtype'].replace('float', 'f')}"


HEAD = (
    f"{'size':25s} {'peer':54s} {'target':>6s} {'ratio on 1 (low-high)':>24s} {'on 2 (low-high)':>24s} "
    f"{'ms on 1':>8s} {'on 2':>8s} {'roof on 1':>9s} {'on 2':>5s}  result"
)


def line(row: dict[str, Any]) -> str:
    """The row as it is printed."""
    if "grown_mb" in row:
        return f"{size(row):25s} grew by {row['grown_mb']:.1f} MB, target {row['target_mb']:.0f} MB: {verdict(row)}"
    peer = f"{row['peer'].split('.')[0]} {row['peer'].split('.')[-1]} {row['note']}".strip()
    target = "" if row["target"] is None else f"{row['target']:g}"
    told = f"{size(row):25s} {peer[:54]:54s} {target:>6s} "
    if not row["agree"]:
        return told + verdict(row)
    timed = [row["threads"][k] for k in sorted(row["threads"])]
    for t in timed:
        told += f"{t['ratio']:.2f} ({t['ratio_low']:.2f}-{t['ratio_high']:.2f})".rjust(24) + " "
    told += " ".join(f"{1e3 * t['ours_s']:8.2f}" for t in timed) + " "
    roofs = (f"{t['roofline_share']:.0%}" if "roofline_share" in t else "" for t in timed)
    return told + "{:>9s} {:>5s}  ".format(*roofs) + verdict(row)


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    """``new``, a part of the table, in its places in ``old``; None where they are not of one machine and kind."""
    if any(old.get(key) != new[key] for key in ("machine", "quick")):
        return None
    fresh = {row["name"]: row for row in new["rows"]}
    rows = [fresh.pop(row["name"], row) for row in old["rows"]] + list(fresh.values())
    add_shares(rows, old["peak"])  # all by the same peak
    timed = {row.get("peer") for row in rows}
    absent = [entry for entry in old["absent"] if entry["peer"] not in timed]
    return old | {"rows": rows, "absent": absent + [entry for entry in new["absent"] if entry not in absent]}
