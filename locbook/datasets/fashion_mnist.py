"""Fashion-MNIST: 28 x 28 grey images of clothing in ten classes (Xiao, Rasul & Vollgraf 2017, MIT licence).

A balanced subset of 2,000 + 500 images is in the package; the 60,000 + 10,000 are read from the official idx
files. The checksums are those of the official files: MD5 as published in the project's README
(``8d4fb7e6...``, ``25c81989...``, ``bef4ecab...``, ``bb300cfd...``), SHA-256 of the same bytes. Debian packs
the same contents with other gzip headers, so what is checked on loading is the unpacked file.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locbook._validation import check_flag, check_option
from locbook.datasets._sources import cache_folder, fetch, find, missing

NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

DESCRIPTION = """\
Fashion-MNIST, {what}.
Grey images of clothing, 28 x 28 pixels, 0 (background) to 255; ten classes.
Source: https://github.com/zalandoresearch/fashion-mnist
Reference: H. Xiao, K. Rasul, R. Vollgraf (2017), Fashion-MNIST: a novel image dataset for benchmarking
machine learning algorithms, arXiv:1708.07747.
Licence: MIT, Copyright (c) 2017 Zalando SE (locbook/datasets/data/LICENSE-fashion-mnist.txt)."""

BASE_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"


class _File(NamedTuple):
    packed: str  # SHA-256 of the official .gz
    unpacked: str  # SHA-256 of the idx file in it
    shape: tuple[int, ...]


_FILES = {
    "train-images-idx3-ubyte": _File(
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        (60000, 28, 28),
    ),
    "train-labels-idx1-ubyte": _File(
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        (60000,),
    ),
    "t10k-images-idx3-ubyte": _File(
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        (10000, 28, 28),
    ),
    "t10k-labels-idx1-ubyte": _File(
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        (10000,),
    ),
}


class FashionMNIST(NamedTuple):
    """Images (n, 28, 28) uint8, labels (n,) int64, the ten class names, and source and licence in words."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    description: str


def load_fashion_mnist(
    subset: str = "mini", *, split: str = "train", download_if_missing: bool = True
) -> FashionMNIST:
    """Load Fashion-MNIST images and labels.

    Parameters
    ----------
    subset : {"mini", "full"}
        "mini": 2,000 training and 500 test images, in the package, no network. 200 and 50 of each class,
        drawn from the training and the test set; every block of ten images has each class once, so that
        ``images[:10 * k]`` is balanced. "full": 60,000 and 10,000 images, from ``$LOCBOOK_DATA`` (there or in
        ``fashion-mnist/``), the cache, the Debian package ``dataset-fashion-mnist``, or the net, in this
        order.
    split : {"train", "test", "both"}
        "both" is the training set followed by the test set.
    download_if_missing : bool
        For "full": whether the official files (30 MB) may be downloaded. They are checked (SHA-256) and kept.

    Returns
    -------
    FashionMNIST
        Named tuple ``(images, labels, names, description)``: uint8 (n, 28, 28), int64 (n,) in 0..9, the ten
        class names, and source and licence. New arrays each time.

    Raises
    ------
    ValueError
        If ``subset`` or ``split`` is unknown, or a file found is not the official one.
    TypeError
        If ``download_if_missing`` is no bool.
    FileNotFoundError
        If the full set is nowhere and was not, or could not be, downloaded. The message says how to get it.
    ImportError
        If it is nowhere and pooch is not installed.

    References
    ----------
    Xiao, Rasul, Vollgraf (2017), arXiv:1708.07747.

    Examples
    --------
    >>> from locbook.datasets import load_fashion_mnist
    >>> images, labels, names, _ = load_fashion_mnist(split="test")
    >>> images.shape, images.dtype, names[labels[0]] in names
    ((500, 28, 28), dtype('uint8'), True)
    >>> pixels = images.reshape(len(images), -1) / 255.0
    >>> pixels.shape
    (500, 784)
    """
    check_option(subset, "subset", ("mini", "full"))
    check_option(split, "split", ("train", "test", "both"))
    check_flag(download_if_missing, "download_if_missing")
    splits = ("train", "test") if split == "both" else (split,)
    if subset == "mini":
        parts = _read_mini(splits)
        what = "balanced subset (2,000 training and 500 test images)"
    else:
        parts = [_read_full(part, download_if_missing) for part in splits]
        what = "full set (60,000 training and 10,000 test images)"
    images = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts]).astype(np.int64)
    return FashionMNIST(images, labels, NAMES, DESCRIPTION.format(what=what))


def _read_mini(splits: tuple[str, ...]) -> list[tuple[NDArray, NDArray]]:
    """Read the embedded subset; ``tools/make_fashion_mini.py`` makes it."""
    path = files("locbook.datasets") / "data" / "fashion_mini.npz"
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        return [(archive[f"{split}_images"], archive[f"{split}_labels"]) for split in splits]


def _read_full(split: str, download_if_missing: bool) -> tuple[NDArray, NDArray]:
    """Images and labels of the official files of one split."""
    stem = {"train": "train", "test": "t10k"}[split]
    images, labels = (
        _read_file(name, download_if_missing)
        for name in (f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte")
    )
    return images, labels


def _read_file(name: str, download_if_missing: bool) -> NDArray[np.uint8]:
    """Find (or download), check and parse one idx file."""
    path = find("fashion_mnist", name)
    if path is None:
        explain = missing(
            "fashion_mnist",
            "Fashion-MNIST",
            f"{name}.gz",
            (
                "Debian or Ubuntu: apt-get install dataset-fashion-mnist",
                'let locbook download it: pip install "locbook[data]" (pooch), download_if_missing=True',
                f"put the four files of {BASE_URL} in a folder and set LOCBOOK_DATA to it",
                'or use load_fashion_mnist("mini"), which is in the package',
            ),
        )
        if not download_if_missing:
            raise FileNotFoundError(explain)
        packed = _FILES[name].packed
        path = fetch(f"{BASE_URL}{name}.gz", f"{name}.gz", cache_folder() / "fashion-mnist", packed, explain)
    raw = read_packed(path)
    digest = hashlib.sha256(raw).hexdigest()
    if digest != _FILES[name].unpacked:
        raise ValueError(
            f"{path} is not the official Fashion-MNIST file: SHA-256 of its (unpacked) contents is {digest}, "
            f"expected {_FILES[name].unpacked}. Delete it, and it will be looked for elsewhere."
        )
    return parse_idx(raw, str(path), _FILES[name].shape)


def read_packed(path: Path) -> bytes:
    """Contents of ``path``, unpacked if its name ends in ``.gz``."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged: {error}. Delete it, and it will be looked for elsewhere."
        ) from error


def parse_idx(raw: bytes, name: str, shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Read the array in an idx file of unsigned bytes.

    The format: two zero bytes, the type (8 is uint8), the number of axes, each axis' length as a big-endian
    32-bit integer, then the values, last axis fastest.

    Parameters
    ----------
    raw : bytes
    name : str
        What to call the file in an error.
    shape : tuple of int, optional
        The shape that the file must have.

    Returns
    -------
    array, uint8
        Writable.

    Raises
    ------
    ValueError
        If the magic number, the number of bytes or the shape is wrong.

    Examples
    --------
    >>> from locbook.datasets.fashion_mnist import parse_idx
    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "example")
    array([7, 8, 9], dtype=uint8)
    """
    if len(raw) < 4 or raw[:3] != b"\0\0\x08" or raw[3] == 0:
        raise ValueError(
            f"{name}: no idx file of unsigned bytes (it begins with {raw[:4].hex() or 'nothing'})"
        )
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise ValueError(f"{name}: cut off in the header ({len(raw)} bytes, {start} expected)")
    found = tuple(int.from_bytes(raw[i : i + 4], "big") for i in range(4, start, 4))
    if len(raw) != start + math.prod(found):
        raise ValueError(
            f"{name}: {len(raw)} bytes, but the header {found} asks for {start + math.prod(found)}"
        )
    if shape is not None and found != shape:
        raise ValueError(f"{name}: shape {found}, expected {shape}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(found).copy()
