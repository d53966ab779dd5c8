"""The built book, and Chromium, once for all tests."""

import os
import shutil

import pytest

from tools.build_book import ensure_built

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="session")
def book_html():
    """Folder of the built book; built if what lies there is older than its sources."""
    return ensure_built()


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium without a network. Absent, the test is skipped; in CI that is a failure."""
    from playwright.sync_api import sync_playwright

    path = CHROMIUM if os.path.exists(CHROMIUM) else shutil.which("chromium")
    if path is None:
        reason = "needs Chromium (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update"],
        )
        yield browser
        browser.close()
