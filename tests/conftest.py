"""What all tests share."""

import os

# Before anyone imports Matplotlib: no window, on any machine.
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_collection_modifyitems(items):
    """The tests of the code for a card come last: what they wait for runs beside the others."""
    items.sort(key=lambda item: item.path.name == "test_runs.py")


def pytest_collection_finish(session):
    for item in session.items:
        waits = item.path.name == "test_runs.py" and not item.name.startswith("test_without")
        if waits and item.module.INSTALLED and not session.config.option.collectonly:
            item.module.runs()
            break
