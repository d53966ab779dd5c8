"""Make ``locbook/datasets/data/fashion_mini.npz`` from the full Fashion-MNIST.

200 training and 50 test images of each class, drawn without replacement from the training and the test set by
``numpy.random.RandomState(20170825)`` (the day the set was published; ``RandomState``, since its stream is
frozen across NumPy versions). Every block of ten images has each class once, in random order. ``train_index``
and ``test_index`` say where each image stands in the full set.

    python -m tools.make_fashion_mini [output.npz]

The output is the same byte for byte on every run (with the same zlib).
"""

import io
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from locbook.datasets import load_fashion_mnist

SEED = 20170825
PER_CLASS = {"train": 200, "test": 50}
OUTPUT = Path(__file__).resolve().parents[1] / "locbook" / "datasets" / "data" / "fashion_mini.npz"


def npz_bytes(arrays: Mapping[str, NDArray]) -> bytes:
    """Pack arrays into an ``.npz`` that depends on them alone: no time stamps, no traces of the system."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            array = np.asarray(array, order="C")
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            archive.writestr(info, member.getvalue(), compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def balanced_index(labels: NDArray, per_class: int, rng: np.random.RandomState) -> NDArray[np.int32]:
    """Draw the indices of ``per_class`` samples of each class; each block of ten has every class once."""
    rows = [rng.permutation(np.flatnonzero(labels == c))[:per_class] for c in range(10)]
    blocks = [rng.permutation(block) for block in np.array(rows).T]
    return np.concatenate(blocks).astype(np.int32)


def make() -> bytes:
    """Make the contents of the file."""
    rng = np.random.RandomState(SEED)
    arrays = {}
    for split, per_class in PER_CLASS.items():
        full = load_fashion_mnist("full", split=split)
        index = balanced_index(full.labels, per_class, rng)
        arrays[f"{split}_images"] = full.images[index]
        arrays[f"{split}_labels"] = full.labels[index].astype(np.uint8)
        arrays[f"{split}_index"] = index
    return npz_bytes(arrays)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    target.write_bytes(make())
    print(f"{target}: {target.stat().st_size:,} bytes")
