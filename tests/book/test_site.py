"""The built book as a whole: pages, links, names, and that nothing asks the network."""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests import background
from tools import BOOK, ROOT
from tools.checks.figures import page_image_faults
from tools.checks.site import link_faults, offline_faults, pages, unsized_image_faults, weight_faults
from tools.linkcheck import outside_links

sys.path.insert(0, str(BOOK / "_ext"))
import book_map
import collected_text
import generated_text
import page_details


def test_internal_links_and_anchors_resolve(book_html):
    assert link_faults(book_html) == []


def test_nothing_is_loaded_from_the_network(book_html):
    assert offline_faults(book_html) == []


def test_no_page_is_too_heavy(book_html):
    assert weight_faults(book_html) == []


def test_pictures_have_a_size(book_html):
    assert unsized_image_faults(book_html / "book") == []


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


def plain_pages():
    """The pages that plain Sphinx builds."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("_config.yml", "_toc.yml", "CHANGELOG.md", "CITATION.cff"):
            shutil.copy(ROOT / name, place)
        shutil.copytree(ROOT / ".github", place / ".github")
        shutil.copytree(
            BOOK, place / "book", ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        )
        commands = Path(sys.executable).parent
        path = os.pathsep.join([str(place / "book" / "_ext"), os.environ.get("PYTHONPATH", "")])
        settings = {"cwd": place, "env": os.environ | {"PYTHONPATH": path}, "check": True}
        quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        subprocess.run([commands / "jupyter-book", "config", "sphinx", "."], **settings, **quiet)
        subprocess.run([commands / "sphinx-build", "-W", "-b", "html", ".", "html"], **settings, **quiet)
        return pages(place / "html")


@cache
def plain_sphinx():
    return background.submit(plain_pages)


@background.waits_for(plain_sphinx)
def test_plain_sphinx_builds_the_same_pages(book_html):
    assert plain_sphinx().result() == pages(book_html)


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


def test_a_picture_of_svg_and_one_in_the_page_get_their_size():
    data = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAkAAAAFWCAMAAAC2I9IfAAADAFBMVEU="
    files = {"idea.svg": str(BOOK / "_static" / "idea.svg")}
    body = f'<img alt="a" src="{data}"> <img src="../_images/idea.svg"> '
    body += f'<img src="gone.png"> <img width="1" src="{data}">'
    sized = page_details.with_sizes(body, files)
    assert sized.startswith('<img width="576" height="342" alt="a" src="data:')
    assert re.search(r'<img width="\d+" height="\d+" src="../_images/idea.svg">', sized)
    assert sized.endswith(body.partition('idea.svg"> ')[2])


# --- the map ---

SECTIONS_OF_THE_THEORY = range(1, 19)


def test_map_holds_every_chapter_and_every_section_of_the_theory():
    systems = book_map.systems()
    assert {s.chapter for s in systems} == set(range(1, 31))
    assert {s.section for s in systems} - {None} == set(SECTIONS_OF_THE_THEORY)
    assert [s.name for s in systems if s.is_centre] == ["The local mean"]
    assert len({s.name for s in systems}) == len(systems)
    assert [s.name for s in systems if len(s.name) > book_map.MAX_LETTERS] == []
    assert {s.kind for s in systems} - {None} == set(book_map.KINDS)


def test_map_sources_are_in_the_bibliography():
    entries = set(re.findall(r"^@\w+\{(\w+),", (BOOK / "references.bib").read_text("utf-8"), re.MULTILINE))
    assert {key for s in book_map.systems() for key in s.sources} <= entries


@pytest.mark.parametrize("page", ["book/map.html", "book/index.html"])
def test_map_links_what_is_written_and_marks_what_is_coming(book_html, page):
    text = (book_html / page).read_text(encoding="utf-8")
    picture = re.search(r'<nav class="lb-map".*?</nav>', text, re.DOTALL).group(0)
    for system in book_map.systems():
        label = f'aria-label="{system.name}, chapter {system.chapter}'
        link = f'href="{system.page}.html" {label}"'
        assert picture.count(link if system.written else f'{label}, coming"') == 2, system.name
        assert (book_html / "book" / f"{system.page}.html").exists() is system.written
    assert book_map.picture() == book_map.picture()


def test_map_follows_the_table_of_contents(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    for name in ("chapters.yml", "map.yml"):
        shutil.copy(BOOK / name, book)
    (tmp_path / "_toc.yml").write_text("- file: book/3_self_localization/13_meanshift.ipynb\n")
    assert [s.name for s in book_map.systems(book) if s.written] == ["MeanShift"]
    assert "[MeanShift](3_self_localization/13_meanshift.ipynb)** (chapter 13, exact)" in book_map.in_words(
        book
    )
    assert "**The local mean** (chapter 3, coming, exact)" in book_map.in_words(book)


# --- what is collected ---


def test_ledger_holds_each_written_chapter(book_html):
    written = collected_text.written_chapters()
    rows = collected_text.ledger().splitlines()[2:]
    assert [int(re.match(r"\| \[(\d+)\.", row)[1]) for row in rows] == list(written)
    page = (book_html / "book/ledger.html").read_text(encoding="utf-8")
    for name, _ in written.values():
        assert f'href="{name}.html"' in page


def test_a_chapter_with_half_a_ledger_is_named(tmp_path, monkeypatch):
    from nbformat import v4, write
    from sphinx.errors import ExtensionError

    table = "## As a local mean\n\n| | x |\n|---|---|\n| space | $\\lvert a\\|$ |\n\n## Exercises\n\n| kernel | y |"
    write(v4.new_notebook(cells=[v4.new_markdown_cell(table)]), tmp_path / "7.ipynb")
    assert collected_text.ledger_rows(tmp_path / "7.ipynb") == {"space": "$\\lvert a\\|$"}
    monkeypatch.setattr(collected_text, "written_chapters", lambda book: {7: ("7", "Broken")})
    with pytest.raises(ExtensionError, match="lacks kernel, samples"):
        collected_text.ledger(tmp_path)


def test_an_unknown_generated_text_is_named():
    from sphinx.errors import ExtensionError

    with pytest.raises(ExtensionError, match="no generated text 'nothing'"):
        generated_text.text_of("nothing", None, "book/index")


def test_what_is_written_elsewhere_is_on_its_page(book_html):
    def text(page):
        return (book_html / "book" / f"{page}.html").read_text(encoding="utf-8")

    version = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert f">[{version}]" in text("changelog")
    assert "@software" in text("cite")
    assert "2605.20635" in text("cite")
    assert "load_fashion_mnist" in text("about")
    for form in (ROOT / ".github/ISSUE_TEMPLATE").glob("*_*.yml"):
        assert f"issues/new?template={form.name}" in text("about")


# --- what a page offers ---


def chapter_pages(book_html):
    return sorted((book_html / "book").glob("[0-9]_*/*.html"))


def test_chapters_offer_notebook_script_edit_report_and_neighbours(book_html):
    for page in chapter_pages(book_html):
        text = page.read_text(encoding="utf-8")
        for suffix in (".ipynb", ".py"):
            address = re.search(rf'href="([^"]*_sources/[^"]*{page.stem}{re.escape(suffix)})"', text)[1]
            source = BOOK / page.parent.name / f"{page.stem}{suffix}"
            assert (page.parent / address).read_bytes() == source.read_bytes()
        for part in (
            "/edit/main/book/",
            "/issues/new?",
            "issues/new/choose",
            "left-prev",
            "right-next",
            "mybinder.org",
        ):
            assert part in text, part


def test_dates_are_those_of_the_history():
    dates = {"book/a.ipynb": "2026-01-01", "book/a.py": "2026-02-01", "locbook/kernels/base.py": "2026-03-01"}
    assert page_details.last_change("book/a", "book/a.ipynb", dates) == "2026-02-01"
    assert page_details.last_change("book/api/kernels", "book/api/kernels.md", dates) == "2026-03-01"
    assert page_details.last_change("book/new", "book/new.md", dates) is None
    assert page_details.commit_dates("/") == {}


def test_code_leads_to_the_api(book_html):
    page = book_html / "book/1_foundations/03_local_mean.html"
    links = re.findall(r'<a class="lb-code-link" href="\.\./api/([^"]+)"', page.read_text(encoding="utf-8"))
    assert {"foundations.html#locbook.local_mean", "for_authors.html#locbook.exercises.check"} <= set(links)
    assert "datasets.html#locbook.datasets.load_fashion_mnist" in links


def test_a_name_is_linked_once_a_cell_and_only_if_it_is_the_librarys():
    import code_links

    dot, name = '<span class="o">.</span>', '<span class="n">{}</span>'.format
    call = name("lb") + dot + name("gaussian")
    chain = call + dot + name("hollow")
    other = name("np") + dot + name("check")
    imports = "from locbook.exercises import check\n"
    block = f'<div class="highlight-ipython3 notranslate"><pre>{imports}{call} {chain} {other} {name("check")}</pre>'
    known = {"locbook.gaussian": "k#g", "locbook.exercises.check": "e#c"}
    linked = code_links.with_links(block, known.get)
    assert linked.count("<a ") == 2
    assert f'href="k#g">{call}</a> {chain} {other} <a' in linked
    assert f'href="e#c">{name("check")}</a></pre>' in linked
    assert code_links.with_links(f"<p>{call}</p>", known.get) == f"<p>{call}</p>"


def test_kernel_page_shows_how_a_kernel_is_called(book_html):
    text = re.sub(r"<[^>]+>", "", (book_html / "book/api/kernels.html").read_text(encoding="utf-8"))
    assert re.search(r"class locbook\.Kernel\(profile: .*bandwidth: .*metric: .*on: .*log_profile: ", text)
    assert "*args" not in text


def test_terms_of_the_glossary_are_linked_from_each_chapter(book_html):
    for page in chapter_pages(book_html):
        assert page.read_text(encoding="utf-8").count("glossary.html#term-") >= 3, page.name


def test_links_outside_are_found(book_html):
    links = outside_links(book_html)
    assert "https://creativecommons.org/licenses/by/4.0/" in links
    assert not any("mybinder" in address for address in links)
