"""Build the book from clean into ``_build/html``; every warning fails.

Usage: ``python -m tools.build_book``. The tests build the same book by :func:`ensure_built`, which
takes what is there if nothing has changed since.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tools import BOOK, HTML, ROOT

STAMP = ROOT / "_build" / "built"


def command() -> list[str]:
    """The call of Jupyter Book."""
    return [str(Path(sys.executable).with_name("jupyter-book")), "build", str(ROOT), "-W", "--keep-going"]


def build() -> int:
    """Remove the old book, build a new one, and mark it as whole."""
    shutil.rmtree(ROOT / "_build", ignore_errors=True)
    status = subprocess.run(command(), stdin=subprocess.DEVNULL, check=False).returncode
    if status == 0:
        STAMP.touch()
    return status


def sources() -> list[Path]:
    """All files that the book follows from."""
    configuration = [ROOT / name for name in ("_config.yml", "_toc.yml", "requirements.lock")]
    configuration += [ROOT / "CHANGELOG.md", ROOT / "CITATION.cff", ROOT / "locbook/datasets/README.md"]
    configuration += [path for path in [ROOT / "benchmarks/results.json"] if path.exists()]
    pages = [p for p in BOOK.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return configuration + pages + list((ROOT / "locbook").rglob("*.py"))


def is_current() -> bool:
    """Whether a whole book lies there that is newer than all its sources."""
    return STAMP.exists() and STAMP.stat().st_mtime > max(p.stat().st_mtime for p in sources())


def ensure_built() -> Path:
    """The folder of the built book; builds it if anything has changed."""
    if not is_current() and build() != 0:
        raise RuntimeError("the book does not build; run `make book` to see why")
    return HTML


if __name__ == "__main__":
    sys.exit(build())
