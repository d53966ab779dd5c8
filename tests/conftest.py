"""What all tests share."""

import os

# Before anyone imports Matplotlib: no window, on any machine.
os.environ.setdefault("MPLBACKEND", "Agg")

from tests import background

#: Files of tests that wait for long processes (``tests/background.py``); their ``runs`` begins them.
WAITING = ("test_portable.py", "test_runs.py", "test_stored_outputs.py")


def pytest_collection_modifyitems(items):
    """What waits comes last: what it waits for runs beside the tests of one process; then those of the browser."""
    items.sort(key=lambda item: (item.path.name in WAITING, item.path.parent.name == "book"))


def pytest_collection_finish(session):
    if session.config.option.collectonly:
        return
    if any("book_html" in item.fixturenames for item in session.items if hasattr(item, "fixturenames")):
        background.book()
    waits = [i for i in session.items if i.path.name in WAITING and not i.name.startswith("test_without")]
    for module in dict.fromkeys(item.module for item in waits):
        if getattr(module, "INSTALLED", True):
            module.runs()
