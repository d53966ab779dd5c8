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


def click_faults(soup):
    """What a reader of paper cannot press, open or see."""
    left = [element.name for element in soup.select("input, button, noscript, img[hidden]")]
    return left + ["closed details" for fold in soup.select("details") if not fold.has_attr("open")]


def link_faults(soup, folder):
    """Links that lead out of the document or to no place in it, and files that it would miss."""
    anchors = {element["id"] for element in soup.select("[id]")}
    links = [link["href"] for link in soup.select("a[href]") if not link["href"].startswith("http")]
    faults = [link for link in links if link[0] != "#" or link[1:] not in anchors]
    for element in soup.select("img[src], link[href], script[src]"):
        address = (element.get("src") or element.get("href")).partition("?")[0]
        if not address.startswith("data:") and not (folder / address).exists():
            faults.append(address)
    return faults


def test_nothing_is_left_to_click(book_html):
    text = article(book_html, CHAPTER, {page for _, page in ORDER})
    assert text.select("p")
    assert click_faults(text) == []


def test_links_lead_inside_the_document(book_html):
    soup = BeautifulSoup(joined(book_html, ORDER), "html.parser")
    assert soup.select("a[href^='#']")
    assert link_faults(soup, book_html.parent / "pdf") == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<input type='text'>", "input"),
        ("<button>Press</button>", "button"),
        ("<noscript>No script.</noscript>", "noscript"),
        ("<img hidden alt='A frame.'>", "img"),
        ("<details><summary>x</summary></details>", "closed details"),
    ],
)
def test_what_cannot_be_pressed_on_paper_is_found(body, fault):
    assert click_faults(BeautifulSoup(body, "html.parser")) == [fault]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<a href='#nowhere'>x</a>", "#nowhere"),
        ("<a href='other.html'>x</a>", "other.html"),
        ("<img src='missing.png' alt='A picture.'>", "missing.png"),
    ],
)
def test_a_link_out_of_the_document_is_found(tmp_path, body, fault):
    good = "<p id='here'><a href='#here'>x</a><a href='https://example.org'>y</a></p>"
    assert link_faults(BeautifulSoup(good, "html.parser"), tmp_path) == []
    assert link_faults(BeautifulSoup(good + body, "html.parser"), tmp_path) == [fault]


def test_the_whole_book_is_printed():
    pages = [page for _, page in pages_in_order()]
    assert pages[0] == "book/index"
    assert CHAPTER in pages
    assert "book/glossary" in pages
