"""Commands and checks that make and hold the book; run them as ``python -m tools.NAME``."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
HTML = ROOT / "_build" / "html"


def chapter_scripts() -> list[Path]:
    """The ``.py`` of every chapter, in the order of the book."""
    return sorted(BOOK.glob("[0-9]_*/[0-9][0-9]_*.py"))


def chapter_notebooks() -> list[Path]:
    """The ``.ipynb`` of every chapter, in the order of the book."""
    return sorted(BOOK.glob("[0-9]_*/[0-9][0-9]_*.ipynb"))
