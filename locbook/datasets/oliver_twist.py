"""*Oliver Twist* by Charles Dickens (1838, public domain), and how often its words stand near each other.

The text is Project Gutenberg's no. 730. Gutenberg mends its texts from time to time, so a checksum of the
download would break. What is promised instead:

- every source is brought to one form (:func:`canonical_text`), so that line ends, curly quotes, dashes and
  Gutenberg's own header and trailer make no difference;
- the result must be this novel and be whole: 53 chapters, numbered I to LIII in order, 150,000 to 170,000
words,
  not a word of Gutenberg's left; a download must also hold the mark of its end. Else: ``ValueError``;
- if it differs from the text that the book's outputs were made with (SHA-256 ``REFERENCE_SHA256``), a warning
says
  so: numbers may then differ slightly.

The package holds no text, only :func:`load_oliver_twist_counts`.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locbook._validation import check_flag, check_integer, check_text
from locbook.datasets._sources import cache_folder, fetch, find, missing

URL = "https://www.gutenberg.org/cache/epub/730/pg730.txt"
REFERENCE_SHA256 = "4dcc82b2aff7be054802aedfd8a55ec3caa2d48c81c5077d048742620e256b1e"
FILENAME = "oliver_twist.txt"
N_CHAPTERS = 53
N_WORDS = (150_000, 170_000)

_START = re.compile(r"^\*\*\* ?START OF.*$", re.MULTILINE)
_END = re.compile(r"^(\*\*\* ?END OF|End of (the |this )?Project Gutenberg)", re.MULTILINE)
_TITLE = re.compile(r"^[ \t]*OLIVER TWIST[ \t]*$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*CHAPTER ([IVXL]+)\.?[ \t]*$", re.MULTILINE)
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_PLAIN = str.maketrans({
    "\ufeff": "", "\r": "", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "--",
    "\u2013": "-", "\u2026": "...", "\u00e6": "ae", "\u00c6": "AE", "\u0153": "oe", "\u0152": "OE", "\u00a0":
    " ",
})  # fmt: skip
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50}

COUNTS_DESCRIPTION = """\
Word counts and word-pair counts of Oliver Twist (Charles Dickens, 1838, public domain), figures only.
Source: Project Gutenberg no. 730, SHA-256 of the text {sha256}.
Made by tools/make_oliver_counts.py: words as by oliver_twist_tokens, chapter headings left out; windows cross
the borders of sentences and paragraphs, not those of chapters."""


class Chapter(NamedTuple):
    """Number (from 1), title and text (heading left out) of a chapter."""

    number: int
    title: str
    text: str


class WordCounts(NamedTuple):
    """How often words occur, and how often they stand at a signed distance from each other.

    Attributes
    ----------
    words : tuple of str, length w
        The commonest words, commonest first (ties: alphabetical).
    counts : array, shape (w,), int64
        How often each occurs.
    offsets : array, shape (2 r + 1,), int64
        ``-r .. r``.
    pairs : array, shape (2 r + 1, w, w), int64
        ``pairs[r + k, a, b]``: at how many places ``words[b]`` stands ``k`` words after ``words[a]`` (before,
        if ``k < 0``). So ``pairs[r - k] == pairs[r + k].T``, and ``pairs[r]`` is ``diag(counts)``.
    n_tokens : int
        Length of the text in words, of which ``counts.sum()`` are among ``words``.
    n_pairs : array, shape (2 r + 1,), int64
        Number of word pairs at each offset, whatever the words: what ``pairs`` is a share of.
    description : str
        Source, licence and rule.
    """

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    pairs: NDArray[np.int64]
    n_tokens: int
    n_pairs: NDArray[np.int64]
    description: str


def load_oliver_twist(*, download_if_missing: bool = True) -> str:
    r"""Load the text of *Oliver Twist*: title, contents and 53 chapters, in ASCII, with ``\n`` line ends.

    Looked for as ``oliver_twist.txt`` in ``$LOCBOOK_DATA`` and the cache; else downloaded from Project
    Gutenberg (no. 730, 0.9 MB) and kept in the cache.

    Parameters
    ----------
    download_if_missing : bool
        Whether it may be downloaded.

    Returns
    -------
    str
        About 900,000 characters.

    Raises
    ------
    FileNotFoundError
        If it is nowhere and was not, or could not be, downloaded. The message says how to get it.
    ImportError
        If it is nowhere and pooch is not installed.
    ValueError
        If what was found is not the whole novel.
    TypeError
        If ``download_if_missing`` is no bool.

    Warns
    -----
    UserWarning
        If the text differs from the one that the book's outputs were made with.

    Notes
    -----
    Gutenberg's editions differ in quotation marks (single or double) and line breaks; their words, as by
    :func:`oliver_twist_tokens`, hardly do.

    Examples
    --------
    >>> from locbook.datasets import is_available, load_oliver_twist
    >>> if is_available("oliver_twist"):
    ...     text = load_oliver_twist(download_if_missing=False)
    ...     assert text.isascii() and "\r" not in text
    """
    check_flag(download_if_missing, "download_if_missing")
    path = find("oliver_twist", FILENAME)
    if path is None:
        text = _download(download_if_missing)
        where = URL
    else:
        text = canonical_text(path.read_bytes().decode("utf-8", errors="replace"))
        where = str(path)
        _check_whole(text, where)
    if hashlib.sha256(text.encode()).hexdigest() != REFERENCE_SHA256:
        warnings.warn(
            f"{where} is another edition of Oliver Twist than the book's outputs were made with; "
            "numbers may differ slightly.",
            UserWarning,
            stacklevel=2,
        )
    return text


def _download(allowed: bool) -> str:
    """Fetch, bring to one form, check, keep in the cache: whole or not at all."""
    explain = missing(
        "oliver_twist",
        "Oliver Twist",
        FILENAME,
        (
            'let locbook download it: pip install "locbook[data]" (pooch), download_if_missing=True',
            f"save {URL} as {FILENAME} in a folder and set LOCBOOK_DATA to it",
            "or use load_oliver_twist_counts(), which is in the package",
        ),
    )
    if not allowed:
        raise FileNotFoundError(explain)
    cache = cache_folder()
    with tempfile.TemporaryDirectory() as folder:
        raw = (
            fetch(URL, "pg730.txt", Path(folder), None, explain)
            .read_bytes()
            .decode("utf-8", errors="replace")
        )
    if not _END.search(raw):
        raise ValueError(f"{URL} is not the whole of Oliver Twist: the mark of its end is missing")
    text = canonical_text(raw)
    _check_whole(text, URL)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache, suffix=".part", delete=False) as part:
        part.write(text.encode())
    os.replace(part.name, cache / FILENAME)
    return text


def canonical_text(raw: str) -> str:
    r"""Bring a Gutenberg text to one form.

    Cut: all up to the line ``OLIVER TWIST`` (after the mark of Gutenberg's start, if there is one) and from
    the mark of its end on. Then: ``\n`` line ends; straight quotes, ``--`` and ``...``; letters without
    accents; what is left of non-ASCII is dropped; no blanks at line ends or around the text, one ``\n`` at
    its end.

    Parameters
    ----------
    raw : str

    Returns
    -------
    str
        The same for what is already in this form.

    Examples
    --------
    >>> from locbook.datasets.oliver_twist import canonical_text
    >>> canonical_text("*** START OF IT\r\nOliver Twist\r\n\u201cCaf\u00e9\u201d  \r\n*** END OF IT")
    'Oliver Twist\n"Cafe"\n'
    """
    text = check_text(raw, "raw").replace("\r\n", "\n").replace("\r", "\n")
    start = _START.search(text)
    text = text[start.end() :] if start else text
    end = _END.search(text)
    text = text[: end.start()] if end else text
    text = unicodedata.normalize("NFKD", text.translate(_PLAIN)).encode("ascii", "ignore").decode()
    title = _TITLE.search(text)
    text = text[title.start() :] if title else text
    return "\n".join(line.rstrip() for line in text.split("\n")).strip() + "\n"


def _check_whole(text: str, where: str) -> None:
    """Raise ``ValueError`` unless ``text`` is the whole novel and nothing else."""
    faults = []
    numbers = [_roman(numeral) for numeral in _HEADING.findall(text)]
    if numbers != list(range(1, N_CHAPTERS + 1)):
        faults.append(
            f"{len(numbers)} chapter headings, {N_CHAPTERS} expected (CHAPTER I to CHAPTER LIII in order)"
        )
    n_words = len(oliver_twist_tokens(text))
    if not N_WORDS[0] <= n_words <= N_WORDS[1]:
        faults.append(f"{n_words:,} words, {N_WORDS[0]:,} to {N_WORDS[1]:,} expected")
    if "gutenberg" in text.lower():
        faults.append("parts of Project Gutenberg's header or trailer are left")
    if faults:
        raise ValueError(f"{where} is not the whole of Oliver Twist: {'; '.join(faults)}")


def _roman(numeral: str) -> int:
    """Evaluate a Roman numeral of I, V, X, L."""
    values = [_ROMAN[letter] for letter in numeral]
    return sum(-v if v < w else v for v, w in zip(values, [*values[1:], 0], strict=True))


def oliver_twist_chapters(text: str) -> list[Chapter]:
    r"""Split the novel at its chapter headings.

    Parameters
    ----------
    text : str
        As from :func:`load_oliver_twist`. A heading is a line ``CHAPTER`` with a Roman numeral and nothing
        else; the paragraph after it is the title.

    Returns
    -------
    list of Chapter
        Named tuples ``(number, title, text)``; the title on one line. What precedes the first heading (title
        page, contents) is left out.

    Raises
    ------
    TypeError
        If ``text`` is no str.
    ValueError
        If it has no chapter heading.

    Examples
    --------
    >>> from locbook.datasets import oliver_twist_chapters
    >>> oliver_twist_chapters("Contents\n\nCHAPTER I\n\nA LONG\nTITLE\n\nSome text.\n\nMore.")
    [Chapter(number=1, title='A LONG TITLE', text='Some text.\n\nMore.')]
    """
    pieces = _HEADING.split(check_text(text, "text"))
    if len(pieces) == 1:
        raise ValueError("text must hold chapter headings (lines like 'CHAPTER IV'), got none")
    chapters = []
    for numeral, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        title, _, body = re.sub(r"\n[ \t]*\n", "\n\n", piece.strip()).partition("\n\n")
        chapters.append(Chapter(_roman(numeral), " ".join(title.split()), body.strip()))
    return chapters


def oliver_twist_tokens(text: str) -> list[str]:
    """Split a text into its words, in order, in lower case.

    A word is a run of the letters a to z, with apostrophes inside it kept (``don't``, ``o'clock``) and those
    at its ends dropped (``'tis`` gives ``tis``), since they are quotation marks in this text. Everything else
    separates words: blanks, digits, hyphens and dashes, the underscores that mark emphasis. Curly apostrophes
    count as straight ones, accents are dropped.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If ``text`` is no str.

    Examples
    --------
    >>> from locbook.datasets import oliver_twist_tokens
    >>> oliver_twist_tokens("'Don't you _know_ the half-open door--at nine o'clock?'")
    ["don't", 'you', 'know', 'the', 'half', 'open', 'door', 'at', 'nine', "o'clock"]
    """
    text = check_text(text, "text")
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_PLAIN)).encode("ascii", "ignore").decode()
    return _WORD.findall(text.lower())


def count_word_pairs(
    documents: Iterable[Sequence[str]], n_words: int = 300, max_offset: int = 5, *, description: str = ""
) -> WordCounts:
    """Count the commonest words and their pairs at each signed distance.

    Parameters
    ----------
    documents : iterable of sequences of str
        Words in order; no pair crosses from one document to the next.
    n_words : int, >= 1
        How many of the commonest words are kept (all, if there are fewer). Distances are measured in the full
        text, other words included.
    max_offset : int, >= 0
        The largest distance ``r``.
    description : str
        Handed on.

    Returns
    -------
    WordCounts
        Named tuple ``(words, counts, offsets, pairs, n_tokens, n_pairs, description)``.

    Raises
    ------
    TypeError, ValueError
        If a document is a str (its letters would be counted), there is no word, or a number is out of range.

    Examples
    --------
    >>> from locbook.datasets import count_word_pairs
    >>> table = count_word_pairs([["the", "cat", "the", "dog"], ["the", "cat"]], n_words=2, max_offset=1)
    >>> table.words, table.counts.tolist()
    (('the', 'cat'), [3, 2])
    >>> table.pairs[2].tolist()  # one word later: the-cat twice, cat-the once
    [[0, 2], [1, 0]]
    """
    n_words = check_integer(n_words, "n_words")
    reach = check_integer(max_offset, "max_offset", minimum=0)
    if isinstance(documents, str):
        raise TypeError("documents must be an iterable of sequences of words, got a str")
    documents = [_as_words(document) for document in documents]
    frequency = Counter(word for document in documents for word in document)
    if not frequency:
        raise ValueError("documents must hold at least one word, got none")
    common = sorted(frequency.items(), key=lambda item: (-item[1], item[0]))[:n_words]
    index = {word: i for i, (word, _) in enumerate(common)}
    w = len(common)
    pairs = np.zeros((2 * reach + 1, w, w), dtype=np.int64)
    n_pairs = np.zeros(2 * reach + 1, dtype=np.int64)
    for document in documents:
        codes = np.array([index.get(word, w) for word in document], dtype=np.int64)
        for k in range(min(reach, len(codes) - 1) + 1):
            first, second = codes[: len(codes) - k], codes[k:]
            both = (first < w) & (second < w)
            flat = np.bincount(first[both] * w + second[both], minlength=w * w)
            pairs[reach + k] += flat.reshape(w, w)
            n_pairs[reach + k] += len(first)
    for k in range(1, reach + 1):
        pairs[reach - k] = pairs[reach + k].T
        n_pairs[reach - k] = n_pairs[reach + k]
    return WordCounts(
        words=tuple(word for word, _ in common),
        counts=np.array([count for _, count in common], dtype=np.int64),
        offsets=np.arange(-reach, reach + 1, dtype=np.int64),
        pairs=pairs,
        n_tokens=sum(map(len, documents)),
        n_pairs=n_pairs,
        description=description,
    )


def _as_words(document: Sequence[str]) -> list[str]:
    """Check a document and make it a list of str."""
    words = [] if isinstance(document, str) else list(document)
    if isinstance(document, str) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"documents must be sequences of words (str), got {document!r:.60}")
    return words


def load_oliver_twist_counts() -> WordCounts:
    """Load the 300 commonest words of *Oliver Twist* and their pair counts at distances -5 to 5.

    The words are those of :func:`oliver_twist_tokens` in the text of the 53 chapters, headings left out.
    Windows cross the borders of sentences and paragraphs, not those of chapters.

    Returns
    -------
    WordCounts
        Named tuple ``(words, counts, offsets, pairs, n_tokens, n_pairs, description)``; ``pairs`` has shape
        (11, 300, 300), and ``pairs[5 + k, a, b]`` counts the places where ``words[b]`` stands ``k`` words
        after ``words[a]``. New arrays each time.

    Notes
    -----
    ``tools/make_oliver_counts.py`` makes it from the text; Dickens's novel is in the public domain.

    Examples
    --------
    >>> from locbook.datasets import load_oliver_twist_counts
    >>> table = load_oliver_twist_counts()
    >>> table.words[:3], table.pairs.shape
    (('the', 'and', 'to'), (11, 300, 300))
    >>> said, the = table.words.index("said"), table.words.index("the")
    >>> bool(table.pairs[5 + 1, said, the] > table.pairs[5 - 1, said, the])  # "said the" beats "the said"
    True
    """
    path = files("locbook.datasets") / "data" / "oliver_twist_counts.npz"
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        words = tuple(archive["words"].tobytes().decode("ascii").split())
        counts, after = archive["counts"].astype(np.int64), archive["pairs_after"].astype(np.int64)
        n_after, n_tokens = archive["n_pairs_after"].astype(np.int64), int(archive["n_tokens"])
        sha256 = archive["text_sha256"].tobytes().decode("ascii")
    reach = len(after)
    return WordCounts(
        words=words,
        counts=counts,
        offsets=np.arange(-reach, reach + 1, dtype=np.int64),
        pairs=np.concatenate([after[::-1].transpose(0, 2, 1), np.diag(counts)[None], after]),
        n_tokens=n_tokens,
        n_pairs=np.concatenate([n_after[::-1], [n_tokens], n_after]),
        description=COUNTS_DESCRIPTION.format(sha256=sha256),
    )
