"""What all tests share."""

import os

# Before anyone imports Matplotlib: no window, on any machine.
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

from tests import background


def begins(item):
    """What begins the processes that a test waits for (``tests/background.py``); None if it waits for none."""
    return getattr(getattr(item, "function", None), "begins", None)


def pytest_collection_modifyitems(items):
    """What waits comes last: what it waits for runs beside the tests of one process. Before come those of the book."""
    items.sort(key=lambda item: (begins(item) is not None, item.path.parent.name == "book"))


def pytest_collection_finish(session):
    if session.config.option.collectonly:
        return
    if any("book_html" in getattr(item, "fixturenames", ()) for item in session.items):
        background.book()
    for begin in dict.fromkeys(map(begins, session.items)):
        if begin is not None:
            begin()


@pytest.fixture
def threads(monkeypatch):
    """Sets the number of threads; small problems become as many tasks as large ones."""
    import locbook as lb
    from locbook.engine import pool

    monkeypatch.setattr(pool, "WORTH", 0)
    yield lb.set_num_threads
    lb.set_num_threads(None)
