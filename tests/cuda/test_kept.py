"""Kernels are kept on disk, and compiled anew when what they are made of changes: as far as no card is needed."""

import tempfile
from functools import cache
from pathlib import Path

from tests import background
from tests.cuda.test_runs import INSTALLED, needs_numba_cuda, run

KEPT = """
import hashlib, math, sys
from types import SimpleNamespace
from unittest.mock import MagicMock
import numpy as np
from numba.cuda import codegen, dispatcher, types
# as much of a card as the compiler asks for
card = SimpleNamespace(compute_capability=(8, 0), id=0)
dispatcher.get_current_device = lambda: card
codegen.devices = SimpleNamespace(get_context=lambda: MagicMock(device=card))
from locbook.engine.cuda import backend, pairs, sums
half = float(sys.argv[1])
if len(sys.argv) > 2:
    backend.SOURCES = ("edited",)
profile = pairs.user_profile(lambda u: math.exp(-half * u), False, np.float32)
def factory(profile):
    def weigh(out):
        i = backend.cuda.grid(1)
        out[i] = profile(out[i], out[i])
    return backend.kernel(weigh)
made = factory(profile)
signature = (types.Array(types.float32, 1, "C"),)
library = made.compile(signature)._codelibrary
code = hashlib.sha256(library.get_cubin(cc=(8, 0)).code).hexdigest()
print(sum(made.stats.cache_hits.values()), sum(made.stats.cache_misses.values()), code)
"""


def six():
    """What six processes tell, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(KEPT)
        return [
            run("-W", "ignore", str(script), *arguments, NUMBA_CACHE_DIR=folder).stdout.split()
            for arguments in (["0.5"], ["0.5"], ["0.25"], ["0.25"], ["0.5"], ["0.5", "edited"])
        ]


@cache
def processes():
    return background.submit(six) if INSTALLED else None


@needs_numba_cuda
@background.waits_for(processes)
def test_kernels_are_kept_on_disk():
    """Of one function and of another; loaded by the next process, and compiled anew when a source was edited."""
    first, again, other, other_again, back, edited = told = processes().result()
    assert [t[:2] for t in told] == [
        ["0", "1"],
        ["1", "0"],
        ["0", "1"],
        ["1", "0"],
        ["1", "0"],
        ["0", "1"],
    ], told
    assert first[2] == again[2] == back[2] == edited[2] != other[2] == other_again[2]
