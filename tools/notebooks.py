"""Execute each chapter's ``.py`` and write its ``.ipynb``, outputs included.

The same ``.py`` gives the same bytes: no times, no random cell identifiers, no trace of the
machine. Usage: ``python -m tools.notebooks [TEXT ...]``, where a TEXT chooses the chapters whose
path holds it.
"""

import os
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

from tools import ROOT, chapter_scripts

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# Sets iterate in the same order each time, and figures go into the notebook whatever the shell says.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def execute(script: Path, timeout: int = 300) -> nbformat.NotebookNode:
    """Run a chapter in a fresh kernel, in its own folder, and give the notebook to store."""
    notebook = jupytext.read(script, fmt="py:percent")
    NotebookClient(
        notebook,
        timeout=timeout,
        record_timing=False,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(script.parent)}},
    ).execute(env=os.environ | ENVIRONMENT)
    return settle(notebook)


def settle(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave in the notebook only what follows from its text."""
    notebook.metadata = nbformat.from_dict(
        {
            "jupytext": {"formats": "ipynb,py:percent"},
            "kernelspec": KERNEL,
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:03d}"
        for changing in ("execution", "trusted"):
            cell.metadata.pop(changing, None)
        if cell.cell_type == "code":
            cell.outputs = joined_streams(cell.outputs)
    nbformat.validate(notebook)
    return notebook


def joined_streams(outputs: list) -> list:
    """Join neighbouring pieces of one stream: how a kernel cuts them is chance."""
    joined: list = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def refresh(script: Path, to: Path | None = None) -> Path:
    """Execute one chapter and write its notebook beside it, or at ``to``."""
    target = to or script.with_suffix(".ipynb")
    nbformat.write(execute(script), target)
    return target


def main(texts: list[str]) -> int:
    """Refresh the chapters that are asked for, all of them by default."""
    scripts = [s for s in chapter_scripts() if not texts or any(t in str(s.relative_to(ROOT)) for t in texts)]
    for script in scripts:
        print(refresh(script).relative_to(ROOT), flush=True)
    return 0 if scripts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
