"""Print the whole book into one PDF: cover, contents with page numbers, all pages in order.

Usage: ``python -m tools.pdf``; writes ``_build/pdf/locbook.pdf``. The built pages are joined into one
document, which Chromium prints. What needs a hand on the page is put into words: a slider shows its
first picture, an exercise a line to write on, and the solutions stand at the end of the chapter.
"""

import re
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup

from tools import ROOT
from tools.build_book import ensure_built
from tools.checks.browser import MATHJAX_DONE, Browser, chromium_path

PDF = ROOT / "_build" / "pdf" / "locbook.pdf"
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls")
# The theme's looks, and what sets the formulas.
HEAD = re.compile(
    r"(pygments|theme|sphinx-book|sphinx-design|proof|exercise|mystnb|locbook)[^/]*\.css|mathjax", re.I
)
STYLE = """
@page { size: A4; margin: 20mm 20mm 22mm; @bottom-left { content: "The Localization Book"; font: 9px sans-serif }
  @bottom-right { content: counter(page); font: 9px sans-serif } }
@page :first { @bottom-left { content: none } @bottom-right { content: none } }
html { font-size: 13px; scroll-padding: 0 }
body { margin: 0; background: white }
article.bd-article { display: block; padding: 0; max-width: none; break-before: page }
.lb-cover { text-align: center; padding-top: 30mm }
.lb-cover h1 { font-size: 3rem }
.lb-cover img { width: 100%; margin: 15mm 0 }
.lb-contents { break-before: page }
.lb-contents li { list-style: none; display: flex; gap: 1rem; justify-content: space-between; margin: 0.35rem 0 }
.lb-contents li.lb-part { font-weight: 700; margin-top: 1rem }
"""
# A formula or a table that is wider than the paper is made smaller until it fits.
FIT = """() => {
  for (const box of document.querySelectorAll("mjx-container[display='true'], .pst-scrollable-table-container")) {
    const share = box.clientWidth / box.scrollWidth;
    if (share < 1) box.style.fontSize = `${Math.floor(share * 98)}%`;
  }
}"""


def pages_in_order() -> list[tuple[str | None, str]]:
    """``(part, page)`` of the table of contents; the landing page has no part."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = [(None, toc["root"])]
    for part in toc["parts"]:
        found += [(part["caption"], chapter["file"].removesuffix(".ipynb")) for chapter in part["chapters"]]
    return found


def anchor(page: str, fragment: str = "") -> str:
    """Where a place of a page is found in the joined document."""
    return f"{page.replace('/', '-')}--{fragment}" if fragment else page.replace("/", "-")


def article(html: Path, page: str, pages: set[str]) -> BeautifulSoup:
    """The text of one page, ready to be joined with the others and printed."""
    soup = BeautifulSoup((html / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    text = soup.select_one("article.bd-article")
    for gone in text.select(".headerlink, noscript, script, details.hide, .prev-next-area"):
        gone.decompose()
    _show_choices(soup, text)
    _still_sliders(soup, text)
    for fold in text.select("details"):
        fold["open"] = ""
    _solutions_last(soup, text)
    for element in text.select("[id]"):
        element["id"] = anchor(page, element["id"])
    for name in REFERENCES:
        for element in text.select(f"[{name}]"):
            element[name] = " ".join(anchor(page, one) for one in element[name].split())
    for image in text.select("img[src]"):
        if not image["src"].startswith("data:"):
            image["src"] = f"../html/{_resolved(page, image['src'])}"
    for link in text.select("a[href]"):
        _lead_inside(link, page, pages)
    text["id"] = anchor(page)
    return text


def _resolved(page, address):
    """An address on a page, from the folder of the book."""
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / unquote(urlsplit(address).path)).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


def _lead_inside(link, page, pages):
    """A link to another page becomes one inside the document; one to a page that is not printed is text."""
    parts = urlsplit(link["href"])
    if parts.scheme or parts.netloc:
        return
    target = _resolved(page, link["href"]).removesuffix(".html") if parts.path else page
    if target in pages:
        link["href"] = f"#{anchor(target, parts.fragment)}"
    else:
        del link["href"]


def _show_choices(soup, text):
    """Options as a list, and a line to write on."""
    for form in text.select(".lb-check form, .lb-check label:has(> input[type=text])"):
        written = soup.new_tag("div")
        for label in form.select("label"):
            option = soup.new_tag("p")
            option.string = f"□ {label.get_text(' ', strip=True)}"
            written.append(option)
        if not written.contents:
            written.string = "Your answer: ______________"
        form.replace_with(written)


def _still_sliders(soup, text):
    """The picture at the start, and the names of the others."""
    for slider in text.select(".lb-slider"):
        for image in slider.select("img[hidden]"):
            image.decompose()
        knob = slider.select_one("input")
        names = knob["data-names"].split("|")
        label = knob.find_parent("label").get_text(" ", strip=True)
        said = soup.new_tag("p")
        said.string = (
            f"{label}: {slider.select_one('output').get_text()}. The page shows it for {', '.join(names)}."
        )
        knob.find_parent("div").replace_with(said)


def _solutions_last(soup, text):
    solutions = text.select("div.solution")
    if solutions:
        head = soup.new_tag("h2")
        head.string = "Solutions"
        text.append(head)
        for solution in solutions:
            solution["class"] = [name for name in solution["class"] if name not in ("dropdown", "toggle")]
            text.append(solution.extract())


def joined(html: Path, order: list[tuple[str | None, str]]) -> str:
    """The whole document."""
    names = {page for _, page in order}
    texts = [article(html, page, names) for _, page in order]
    head = _head(html, next((page for _, page in order if _sets_formulas(html, page)), order[0][1]))
    return "\n".join(
        [
            '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">',
            f"<title>The Localization Book</title>{head}<style>{STYLE}</style></head><body>",
            '<section class="lb-cover"><h1>The Localization Book</h1>',
            "<p>Look at the neighbours, weigh them by a kernel, take the mean.</p>",
            '<img src="../html/_images/idea.svg" alt="">',
            "<p>Text CC BY 4.0, code BSD-3-Clause</p></section>",
            _contents(order, texts),
            *map(str, texts),
            "</body></html>",
        ]
    )


def _sets_formulas(html, page):
    """Sphinx gives MathJax only to pages that need it."""
    return "mathjax/" in (html / f"{page}.html").read_text(encoding="utf-8")


def _head(html, page):
    """Styles and formula setter of a page, as the joined document finds them."""
    soup = BeautifulSoup((html / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    found = []
    for element in soup.select("link[rel=stylesheet], script"):
        name = "src" if element.name == "script" else "href"
        address = element.get(name, "")
        if HEAD.search(address) or (not address and "MathJax" in element.get_text()):
            if address:
                element[name] = f"../html/{_resolved(page, address)}"
            found.append(str(element))
    return "".join(found)


def _contents(order, texts):
    lines, last = [], None
    for (part, page), text in zip(order, texts, strict=True):
        if part != last:
            lines.append(f'<li class="lb-part">{part}</li>')
            last = part
        title = text.select_one("h1").get_text(strip=True)
        place = anchor(page)
        lines.append(f'<li><a href="#{place}">{title}</a> <span data-page="{place}"></span></li>')
    return f'<section class="lb-contents"><h1>Contents</h1><ul>{"".join(lines)}</ul></section>'


def first_pages(pdf: Path) -> dict[str, int]:
    """On which page each place that a link leads to lies, counted from 1."""
    from pypdf import PdfReader

    reader = PdfReader(pdf)
    found = {}
    for name, place in reader.named_destinations.items():
        number = reader.get_destination_page_number(place)
        if number is not None:
            found[name.lstrip("/")] = number + 1
    return found


async def _print(browser, document, pdf):
    page = await browser.chromium.new_page()
    await page.emulate_media(media="print", color_scheme="light")
    await page.goto(document.as_uri())
    await page.wait_for_function(MATHJAX_DONE, timeout=300_000)
    await page.set_viewport_size({"width": 643, "height": 970})  # A4 less its margins
    await page.evaluate(FIT)
    how = {
        "path": pdf,
        "prefer_css_page_size": True,
        "print_background": True,
        "outline": True,
        "tagged": True,
    }
    await page.pdf(**how)
    numbers = first_pages(pdf)
    await page.evaluate(
        "numbers => document.querySelectorAll('[data-page]').forEach(e => e.textContent = numbers[e.dataset.page])",
        numbers,
    )
    await page.pdf(**how)
    await page.close()


def write(html: Path, order: list[tuple[str | None, str]], to: Path = PDF) -> Path:
    """Print the pages of a built book."""
    path = chromium_path()
    if path is None:
        raise SystemExit("make pdf needs Chromium (Debian: apt-get install chromium)")
    folder = html.parent / "pdf"  # the document finds styles and pictures in ../html
    folder.mkdir(exist_ok=True)
    document = folder / f"{to.stem}.html"
    document.write_text(joined(html, order), encoding="utf-8")
    browser = Browser(path)
    try:
        browser.run(_print(browser, document, to))
    finally:
        browser.close()
    return to


if __name__ == "__main__":
    print(write(ensure_built(), pages_in_order()))
    sys.exit(0)
