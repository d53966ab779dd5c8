"""A chapter's ``.ipynb`` and ``.py`` hold the same cells: kind, text and metadata.

Usage as a hook: ``python -m tools.checks.pairs [FILE ...]``; without files, all chapters.
"""

import sys
from itertools import zip_longest
from pathlib import Path

import jupytext

from tools import chapter_notebooks, chapter_scripts


def pair_faults(script: Path) -> list[str]:
    """Compare a chapter's ``.py`` with its ``.ipynb`` cell by cell."""
    notebook = script.with_suffix(".ipynb")
    for path in (script, notebook):
        if not path.exists():
            return [f"{path.name} is missing; run `make notebooks`"]
    faults = []
    for number, (ours, theirs) in enumerate(zip_longest(_cells(script), _cells(notebook))):
        if ours != theirs:
            faults.append(f"{script.name}: cell {number} differs from {notebook.name}; run `make notebooks`")
    return faults


def _cells(path):
    return [(cell.cell_type, cell.source, dict(cell.metadata)) for cell in jupytext.read(path).cells]


def main(files: list[str]) -> int:
    """Check the pairs that the files belong to."""
    paths = [Path(name) for name in files] or chapter_scripts() + chapter_notebooks()
    faults = [
        fault for script in sorted({p.with_suffix(".py") for p in paths}) for fault in pair_faults(script)
    ]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
