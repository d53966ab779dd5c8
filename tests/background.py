"""Long processes that run beside the other tests, three at a time; the tests that wait for them come last.

A test says by :func:`waits_for` what begins them; ``tests/conftest.py`` does so before the first test.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BESIDE = ThreadPoolExecutor(3)


def run(*arguments, python=sys.executable, without=(), **environment):
    """The process of Python, ended; what it told in ``stdout``."""
    whole = {name: value for name, value in os.environ.items() if name not in without} | environment
    last = ["nice", "-n", "10"] if shutil.which("nice") else []  # the other tests come first
    return subprocess.run(
        [*last, python, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=whole | {"PYTHONPATH": str(ROOT)},
        text=True,
        check=False,
    )


def begin(*arguments, **options):
    """The same, when its turn comes; its ``result()`` waits."""
    return submit(run, *arguments, **options)


def submit(function, *arguments, **options):
    """A call that spends its time in a process, when its turn comes; its ``result()`` waits."""
    return _BESIDE.submit(function, *arguments, **options)


def waits_for(begins):
    """Mark a test that waits for what ``begins()``, a cached function, has begun."""

    def mark(test):
        test.begins = begins
        return test

    return mark


@cache
def book():
    """The book is built, where anything has changed."""
    return begin("-c", "from tools.build_book import ensure_built; ensure_built()")
