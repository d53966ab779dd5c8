"""The printed book: cover, contents, page numbers, nothing to click."""

import pytest
from bs4 import BeautifulSoup

from tools.pdf import article, first_pages, joined, pages_in_order, write

CHAPTER = "book/1_foundations/03_local_mean"
ORDER = [(None, "book/index"), ("I Foundations", CHAPTER), ("Reference", "book/notation")]


@pytest.fixture(scope="module")
def printed(book_html, browser, tmp_path_factory):
    """Three pages of the book as a PDF; ``browser`` skips where there is none."""
    from pypdf import PdfReader

    path = write(book_html, ORDER, book_html.parent / "pdf" / "excerpt.pdf")
    return path, [page.extract_text() for page in PdfReader(path).pages]


def test_contents_name_the_page_of_each_chapter(printed):
    path, texts = printed
    numbers = first_pages(path)
    contents = " ".join(texts[1].split())
    for (_, page), title in zip(
        ORDER, ("The Localization Book", "3. The local mean", "Notation"), strict=True
    ):
        number = numbers[page.replace("/", "-")]
        assert f"{title} {number}" in contents
        assert title in texts[number - 1]


def test_pages_are_numbered_after_the_cover(printed):
    _, texts = printed
    assert "look at the neighbours" in texts[0].lower()
    foot = "{}The Localization Book".format
    assert not texts[0].startswith(foot(1))
    for number, text in enumerate(texts[1:], start=2):
        assert text.startswith(foot(number))


def test_formulas_are_set_and_solutions_come_last(printed):
    _, texts = printed
    whole = "\n".join(texts)
    assert "\\sum" not in whole
    assert whole.index("Further reading") < whole.index("Solutions") < whole.index("Notation", 5000)
    assert "Your answer: ____" in whole
    assert "The page shows it for" in whole


def test_nothing_is_left_to_click(book_html):
    text = article(book_html, CHAPTER, {page for _, page in ORDER})
    assert text.select("input, button, noscript, img[hidden]") == []
    assert all(fold.has_attr("open") for fold in text.select("details"))


def test_links_lead_inside_the_document(book_html):
    soup = BeautifulSoup(joined(book_html, ORDER), "html.parser")
    anchors = {element["id"] for element in soup.select("[id]")}
    links = {link["href"] for link in soup.select("a[href]") if not link["href"].startswith("http")}
    assert links
    assert sorted(link for link in links if link[0] != "#" or link[1:] not in anchors) == []
    for element in soup.select("img[src], link[href], script[src]"):
        address = (element.get("src") or element.get("href")).partition("?")[0]
        assert address.startswith("data:") or (book_html.parent / "pdf" / address).exists(), address


def test_the_whole_book_is_printed():
    pages = [page for _, page in pages_in_order()]
    assert pages[0] == "book/index"
    assert CHAPTER in pages
    assert "book/glossary" in pages
