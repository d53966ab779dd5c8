"""The built book, and Chromium, once for all tests."""

import os

import pytest

from tests import background
from tools import HTML
from tools.checks.browser import Browser, chromium_path


@pytest.fixture(scope="session")
def book_html():
    """Folder of the built book; built if what lies there is older than its sources."""
    ended = background.book().result()
    assert ended.returncode == 0, ended.stdout
    return HTML


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium without a network. Absent, the test is skipped; in CI that is a failure."""
    path = chromium_path()
    if path is None:
        reason = "needs Chromium (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    running = Browser(path)
    yield running
    running.close()
