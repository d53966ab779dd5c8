"""What is stored in a notebook: each code cell was run, in order, without warnings or errors."""

from pathlib import Path

import nbformat


def output_faults(notebook: Path) -> list[str]:
    """Look for cells that were not run, text on stderr, and errors that no tag allows."""
    faults = []
    expected = 1
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        if cell.cell_type != "code":
            continue
        if cell.execution_count != expected:
            faults.append(
                f"{notebook.name}: cell {number} was not run in order (count {cell.execution_count})"
            )
        expected += 1
        may_raise = "raises-exception" in cell.metadata.get("tags", [])
        raised = any(output.output_type == "error" for output in cell.outputs)
        if raised and not may_raise:
            faults.append(f"{notebook.name}: cell {number} stores an error")
        if may_raise and not raised:
            faults.append(f"{notebook.name}: cell {number} is tagged raises-exception and raised nothing")
        if any(output.output_type == "stream" and output.name == "stderr" for output in cell.outputs):
            faults.append(f"{notebook.name}: cell {number} stores text on stderr, as a warning does")
    return faults
