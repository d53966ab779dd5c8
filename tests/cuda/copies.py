"""What is copied from the card to the host, noted down."""

import numpy as np
import pytest

from locbook.engine.cuda import backend


def copies(monkeypatch):
    """All arrays of the card that are copied to the host from now on; kept, so that no other takes their place."""
    kind = type(backend.cuda.to_device(np.zeros(1)))
    noted, real = [], kind.copy_to_host

    def copy_to_host(array, *given, **named):
        noted.append(array)
        return real(array, *given, **named)

    monkeypatch.setattr(kind, "copy_to_host", copy_to_host)
    if backend.SIMULATED:  # there NumPy would read it
        refused = property(lambda array: pytest.fail("an array of the card was read on the host"))
        monkeypatch.setattr(kind, "__array_struct__", refused, raising=False)
    return noted


def stay(given, brought, limit):
    """Whether none of the given arrays was copied to the host, and nothing that has as many rows as ``limit``."""
    taken = {array.__cuda_array_interface__["data"][0] for array in given}
    pointers = {array.__cuda_array_interface__["data"][0] for array in brought}
    return bool(brought) and not taken & pointers and all(max(array.shape) < limit for array in brought)
