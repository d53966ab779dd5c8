"""Numba's disk cache, made to notice a change in every file that a compiled function was made from.

Numba keys what it caches by the function's own source file alone. A function that calls compiled functions of other
files would be loaded from the cache after one of those has changed (an upgrade, an edit) and give the old answers.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType
from typing import Any


def made_from(function: Any, *modules: ModuleType) -> Any:
    """Tie the cache of a jitted function to the sources of the modules whose functions it calls; returns it."""
    # there is no file where caching is off, and no cache where NUMBA_DISABLE_JIT is on
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    if file is not None:
        digest = hashlib.sha256()
        for module in modules:
            digest.update(Path(module.__file__).read_bytes())
        file._source_stamp = (file._source_stamp, digest.hexdigest())
    return function
