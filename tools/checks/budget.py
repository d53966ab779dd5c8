"""Time and memory of a chapter: its code cells are run as a plain script and watched."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jupytext

MAX_SECONDS = 60
MAX_BYTES = 2 * 1024**3


class Cost(NamedTuple):
    """What a run took; seconds of the processor, since the clock would count what else the machine does."""

    status: int
    seconds: float
    peak_bytes: int
    errors: str


def as_program(script: Path) -> str:
    """The code of a chapter; a cell that is tagged ``raises-exception`` may raise."""
    parts = []
    for cell in jupytext.read(script).cells:
        if cell.cell_type == "code":
            may_raise = "raises-exception" in cell.metadata.get("tags", [])
            guarded = f"try:\n    exec({cell.source!r})\nexcept Exception:\n    pass"
            parts.append(guarded if may_raise else cell.source)
    return "\n\n".join(parts)


def measure(script: Path) -> Cost:
    """Run a chapter in a Python of its own; time and peak memory come from the system's own count."""
    with subprocess.Popen(
        [sys.executable, "-c", as_program(script)],
        cwd=script.parent,
        env=os.environ | {"MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    seconds = usage.ru_utime + usage.ru_stime
    return Cost(process.returncode, seconds, usage.ru_maxrss * unit, errors)


def budget_faults(script: Path, max_seconds: float = MAX_SECONDS, max_bytes: int = MAX_BYTES) -> list[str]:
    """Hold a chapter to its budget. A first run may compile; if it is too slow, a second one counts."""
    cost = measure(script)
    if cost.seconds > max_seconds:
        cost = measure(script)
    if cost.status:
        return [f"{script.name}: fails as a script: {(cost.errors.strip().splitlines() or ['?'])[-1]}"]
    faults = []
    if cost.seconds > max_seconds:
        faults.append(f"{script.name}: took {cost.seconds:.0f} s, allowed are {max_seconds:.0f} s")
    if cost.peak_bytes > max_bytes:
        faults.append(
            f"{script.name}: took {cost.peak_bytes / 1e9:.1f} GB, allowed are {max_bytes / 1e9:.1f} GB"
        )
    return faults
