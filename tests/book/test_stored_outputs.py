"""Every cell of every chapter gives what its notebook has stored."""

from functools import cache

from tests import background


@cache
def runs():
    """nbval, beside all other tests."""
    return background.begin(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "default"),
        *("--nbval", "--nbval-current-env", "--nbval-sanitize-with", "tests/nbval_sanitize.cfg", "book"),
        PYTHONHASHSEED="0",
        MPLBACKEND="module://matplotlib_inline.backend_inline",
    )


@background.waits_for(runs)
def test_stored_outputs():
    ended = runs().result()
    assert ended.returncode == 0, ended.stdout
    assert " passed" in ended.stdout
