"""The built book as a whole: pages, links, names, and that nothing asks the network."""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml

from tools import BOOK, ROOT
from tools.checks.figures import page_image_faults
from tools.checks.site import link_faults, offline_faults, pages

sys.path.insert(0, str(BOOK / "_ext"))
import generated_text


def test_internal_links_and_anchors_resolve(book_html):
    assert link_faults(book_html) == []


def test_nothing_is_loaded_from_the_network(book_html):
    assert offline_faults(book_html) == []


def test_pictures_on_the_pages_say_what_one_sees(book_html):
    written = sorted((book_html / "book").rglob("*.html"))
    assert [fault for page in written for fault in page_image_faults(page)] == []


def test_every_page_of_the_toc_is_built(book_html):
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = re.findall(r"^ *(?:- file|root): (.+)$", (ROOT / "_toc.yml").read_text(), re.MULTILINE)
    assert toc["root"] in files
    assert {f"{f.removesuffix('.ipynb')}.html" for f in files} <= pages(book_html)


def test_toc_holds_every_written_chapter():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    in_toc = {
        Path(c["file"]) for part in toc["parts"] for c in part["chapters"] if c["file"].endswith(".ipynb")
    }
    assert in_toc == {p.relative_to(ROOT) for p in BOOK.rglob("*.ipynb") if "_build" not in p.parts}


def test_plain_sphinx_builds_the_same_pages(book_html, tmp_path):
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        BOOK, tmp_path / "book", ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    )
    commands = Path(sys.executable).parent
    path = os.pathsep.join([str(tmp_path / "book" / "_ext"), os.environ.get("PYTHONPATH", "")])
    settings = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": path}, "check": True}
    quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    subprocess.run([commands / "jupyter-book", "config", "sphinx", "."], **settings, **quiet)
    subprocess.run([commands / "sphinx-build", "-W", "-b", "html", ".", "html"], **settings, **quiet)
    assert pages(tmp_path / "html") == pages(book_html)


def test_every_public_name_is_on_the_api_page(book_html):
    overview = (book_html / "book" / "api.html").read_text(encoding="utf-8")
    text = "".join(page.read_text(encoding="utf-8") for page in (book_html / "book" / "api").glob("*.html"))
    package = importlib.import_module("locbook")
    assert package.__all__
    anchors = set(re.findall(r'id="([^"]+)"', text))
    expected = {name for group in generated_text.public_names().values() for name in group}
    assert [name for name in expected if f'#{name}"' not in overview] == []
    for name in package.__all__:
        is_module = inspect.ismodule(getattr(package, name))
        expected.add(f"module-locbook.{name}" if is_module else f"locbook.{name}")
    assert sorted(name for name in expected - anchors if not name.endswith("__")) == []


def test_a_part_of_the_library_without_a_page_is_named():
    from sphinx.errors import ExtensionError

    environment = types.SimpleNamespace(found_docs={f"book/api/{page}" for page in generated_text.pages()})
    generated_text.check_pages(None, environment, [])
    environment.found_docs.remove("book/api/kernels")
    with pytest.raises(ExtensionError, match="needs a page book/api/kernels"):
        generated_text.check_pages(None, environment, [])


def test_landing_page_lists_thirty_chapters(book_html):
    text = generated_text.contents()
    assert [int(n) for n in re.findall(r"^(\d+)\. ", text, re.MULTILINE)] == list(range(1, 31))
    written = re.findall(r"\]\((.+\.ipynb)\)", text)
    assert [f"book/{name}" for name in written] == re.findall(
        r"book/\S+\.ipynb", (ROOT / "_toc.yml").read_text()
    )
    assert text.count("*(coming)*") == 30 - len(written)


def test_notation_page_names_what_the_library_names():
    notation = (BOOK / "notation.md").read_text(encoding="utf-8")
    for variable in ("queries", "samples", "values", "kernel", "bandwidth", "n_neighbors", "weights"):
        assert f"`{variable}`" in notation


@pytest.mark.parametrize("text", ["book/index.html", "search.html", "genindex.html"])
def test_pages_that_the_theme_adds_are_there(book_html, text):
    assert text in pages(book_html)


def test_every_citation_is_in_the_bibliography():
    entries = set(
        re.findall(r"^@\w+\{(\w+),", (BOOK / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    )
    cited = set()
    for path in [*BOOK.rglob("*.md"), *BOOK.rglob("*.py")]:
        for names in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", path.read_text(encoding="utf-8")):
            cited |= {name.strip() for name in names.split(",")}
    assert cited <= entries
    assert (
        next(iter(re.findall(r"^@\w+\{(\w+),", (BOOK / "references.bib").read_text(), re.MULTILINE)))
        == "song2026"
    )
