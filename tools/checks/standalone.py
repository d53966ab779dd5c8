"""Cells tagged ``standalone`` are there to be copied: each runs alone, in an empty namespace."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext

MAX_LINES = 25


def standalone_cells(script: Path) -> list[str]:
    """The source of each standalone cell of a chapter."""
    cells = jupytext.read(script).cells
    return [c.source for c in cells if c.cell_type == "code" and "standalone" in c.metadata.get("tags", [])]


def standalone_faults(script: Path) -> list[str]:
    """Run each standalone cell in a Python of its own, in an empty folder."""
    faults = []
    for number, source in enumerate(standalone_cells(script), start=1):
        lines = len([line for line in source.splitlines() if line.strip()])
        if lines > MAX_LINES:
            faults.append(
                f"{script.name}: standalone cell {number} has {lines} lines, allowed are {MAX_LINES}"
            )
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", source],
                cwd=folder,
                env=os.environ | {"MPLBACKEND": "Agg"},
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        if run.returncode:
            faults.append(
                f"{script.name}: standalone cell {number} fails alone: {run.stderr.strip().splitlines()[-1]}"
            )
    return faults
