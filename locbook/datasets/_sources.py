"""Where the data are: ``$LOCBOOK_DATA``, then the cache, then the system, then the net.

Nothing here knows a data set's contents. A set asks :func:`places` where to look, :func:`find` for a file,
:func:`missing` for the words of the error, and :func:`fetch` for a download. pooch and tqdm are imported by
:func:`fetch` alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from locbook._validation import check_option

TIMEOUT = 30  # seconds without an answer, per attempt
RETRIES = 2  # further attempts after a lost connection or a wrong checksum

#: What a full set consists of: folder below a data folder, files, folders of the system.
FILES = {
    "fashion_mnist": (
        "fashion-mnist",
        (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        ),
        ("/usr/share/datasets/fashion-mnist",),
    ),
    "oliver_twist": ("", ("oliver_twist.txt",), ()),
}


class Place(NamedTuple):
    """A folder to look in, and what to call it in an error."""

    label: str
    folder: Path


def cache_folder() -> Path:
    r"""Folder that downloads are kept in: ``$LOCBOOK_CACHE``, or ``locbook`` in the system's cache folder.

    Returns
    -------
    pathlib.Path
        ``~/.cache/locbook`` on Linux, ``~/Library/Caches/locbook`` on macOS,
        ``%LOCALAPPDATA%\locbook\locbook\Cache`` on Windows: as ``pooch.os_cache("locbook")`` has it. It
        need not exist.

    Examples
    --------
    >>> from locbook.datasets import cache_folder
    >>> cache_folder().is_absolute()
    True
    """
    chosen = os.environ.get("LOCBOOK_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA", "~/AppData/Local")).expanduser()
            / "locbook"
            / "locbook"
            / "Cache"
        )
    if sys.platform == "darwin":
        return Path("~/Library/Caches/locbook").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "locbook"


def places(name: str) -> list[Place]:
    """Folders in which the files of data set ``name`` may lie, in the order in which they are looked at."""
    subfolder, _, system = FILES[name]
    found = []
    data = os.environ.get("LOCBOOK_DATA")
    if data:
        root = Path(data).expanduser()
        found += [Place("$LOCBOOK_DATA", folder) for folder in dict.fromkeys((root / subfolder, root))]
    found.append(Place("cache", cache_folder() / subfolder))
    return found + [Place("system", Path(folder)) for folder in system]


def find(name: str, filename: str) -> Path | None:
    """Path of the first ``filename`` or ``filename.gz`` in :func:`places`, or None."""
    for place in places(name):
        for path in (place.folder / f"{filename}.gz", place.folder / filename):
            if path.is_file():
                return path
    return None


def is_available(name: str) -> bool:
    """Whether the full data set can be loaded here and now, without a download.

    Parameters
    ----------
    name : {"fashion_mnist", "oliver_twist"}
        The 70,000 images, or the text. (The embedded subset and the word counts are always there.)

    Returns
    -------
    bool
        True if every file lies in ``$LOCBOOK_DATA``, the cache or the system. The contents are not read.

    Raises
    ------
    ValueError
        If ``name`` is unknown.

    Examples
    --------
    >>> from locbook.datasets import is_available
    >>> is_available("fashion_mnist") in (True, False)
    True
    """
    check_option(name, "name", tuple(FILES))
    return all(find(name, filename) is not None for filename in FILES[name][1])


def missing(name: str, title: str, filename: str, ways: Sequence[str]) -> str:
    """Say that a file is nowhere: where it was looked for, and the ``ways`` to get it."""
    lines = [f"{title}: {filename!r} was not found. Looked in:"]
    if not os.environ.get("LOCBOOK_DATA"):
        lines.append("  - $LOCBOOK_DATA (not set)")
    for label, folder in places(name):
        lines.append(f"  - {folder} ({label}{'' if folder.is_dir() else ', no such folder'})")
    lines.append("To get it, do one of these:")
    return "\n".join(lines + [f"  - {way}" for way in ways])


def fetch(url: str, filename: str, folder: Path, sha256: str | None, explain: str) -> Path:
    """Download ``url`` to ``folder / filename``; the file appears whole and checked, or not at all.

    Parameters
    ----------
    url, filename, folder : str, str, Path
    sha256 : str or None
        Expected digest of the file; None where the caller checks the contents.
    explain : str
        What :func:`missing` says; it is added to the errors.

    Raises
    ------
    ImportError
        If pooch is not installed.
    FileNotFoundError
        If the download fails (with the cause chained), after ``RETRIES`` further attempts.
    """
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f'{explain}\nThe download needs pooch, which is not installed: pip install "locbook[data]"'
        ) from error
    store = pooch.create(
        path=folder,
        base_url="",
        registry={filename: sha256 and f"sha256:{sha256}"},
        urls={filename: url},
        retry_if_failed=RETRIES,
    )
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT, progressbar=_show_progress())
    try:
        return Path(store.fetch(filename, downloader=downloader))
    except (
        OSError,
        ValueError,
    ) as error:  # requests' errors are OSErrors; pooch's wrong checksum is a ValueError
        raise FileNotFoundError(f"{explain}\nThe download from {url} failed: {error}") from error


def _show_progress() -> bool:
    """Show a progress bar where tqdm is there and a person looks; never in a notebook's stored output."""
    if not sys.stderr.isatty():
        return False
    try:
        import tqdm  # noqa: F401
    except ImportError:
        return False
    return True
