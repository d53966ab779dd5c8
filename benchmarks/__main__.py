"""Time locbook beside its peers: ``python -m benchmarks [--quick] [--only TEXT] [--output PATH]``.

First the peaks of the machine are measured, then, row by row, both answers are held against a reference in float64
(within 1e-10 of its range, 1e-4 in float32), then both sides run by turns: on one thread, by the CPU time of the
process, and on two, by the wall clock. A ratio is the peer's time over locbook's; 2 means that locbook took half as
long. It is printed as median and, in brackets, lowest and highest. *roof* is the share of the roofline that locbook
reached (:mod:`benchmarks.roofline`).

The JSON goes to ``benchmarks/results.json``, from which the book draws its page; ``--quick`` and ``--only`` write
only where ``--output`` says. There ``--only`` replaces its rows in a file of the same machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from . import timing

RESULTS = Path(__file__).with_name("results.json")
FAMILIES = (
    "attention",
    "gradient",
    "gaussian",
    "small",
    "profiles",
    "density",
    "compact",
    "neighbors",
    "regression",
    "oracles",
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of each size, fewer runs")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds this text")
    parser.add_argument("--output", type=Path, metavar="PATH", help="JSON file")
    options = parser.parse_args(arguments)
    if options.output is None and not (options.quick or options.only):
        options.output = RESULTS

    timing.prepare()
    report = measure(options.quick, options.only)
    if options.output is not None:
        write(report, options.output, is_part=bool(options.only))
    return 0 if all(row.get("agree", True) for row in report["rows"]) else 1


def measure(quick: bool, only: str) -> dict[str, Any]:
    """Measure and print; returns what goes into the JSON."""
    from . import memory, peak, report, roofline, sweep  # they load the libraries

    effort, part = (timing.QUICK, 4) if quick else (timing.FULL, 1)
    peaks = peak.measure()
    print("at most: " + "; ".join(peak.lines(peaks)), flush=True)
    rows: list[dict[str, Any]] = []
    absent: list[dict[str, str]] = []

    def tell(row: dict[str, Any]) -> None:
        row["verdict"] = report.verdict(row)
        told = [report.line(row)]
        if row["family"] not in [before["family"] for before in rows]:
            told.insert(0, report.HEAD)
        if row["work"] not in [before["work"] for before in rows]:
            told.insert(0, f"\n{row['family']}: {row['work']}")
        print(*told, sep="\n", flush=True)
        rows.append(row)

    for family in FAMILIES:
        for case in importlib.import_module(f".{family}", __package__).cases():
            wanted = [peer for peer in case.peers if only in case.name(peer)]
            found, missing = timing.measure(case, case.n // part, case.m // part, effort, wanted)
            roofline.add_shares(found, peaks)
            absent += [entry for entry in missing if entry not in absent]
            for row in found:
                tell(row)
    if only in memory.NAME:
        tell(memory.measure(memory.N // part, memory.M // part))
    for entry in absent:
        print(f"absent: {entry['peer']} (needs {entry['needs']})")
    aims = [row["verdict"] for row in rows if row.get("target") or "target_mb" in row]
    print(f"\n{aims.count('reached')} of {len(aims)} targets reached")
    return {
        "quick": quick, "machine": report.machine(), "peak": peaks, "rows": rows, "absent": absent,
        "sweep": [] if only else sweep.measure(peaks, effort),
    }  # fmt: skip


def write(report: dict[str, Any], path: Path, *, is_part: bool) -> None:
    """Write the JSON; a part of the table into its places, where the file is of this machine."""
    from .report import merged

    if is_part and path.exists():
        whole = merged(json.loads(path.read_text(encoding="utf-8")), report)
        if whole is None:
            print(f"{path} is of another machine, version or size, and stays as it is")
            return
        report = whole
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    sys.exit(main())
