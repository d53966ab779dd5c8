"""What a reader meets: every page in Chromium, light and dark, wide and on a phone, without a network."""

import json
from contextlib import contextmanager

import pytest

from tools.checks.site import pages

SCREENS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]
# Pages of a theme or an extension that redirect or list names; they have no text of ours.
NOT_READ = ("_modules/",)

OPEN_ALL = """() => {
  document.querySelectorAll('details').forEach(element => element.open = true);
  document.querySelectorAll('.toggle-button-hidden').forEach(button => button.click());
}"""
# Colours are judged where they come to rest.
AT_REST = "* { transition: none !important; animation: none !important; }"
OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"
MATHJAX_DONE = (
    "() => !window.MathJax || (window.MathJax.startup && window.MathJax.startup.promise.then(() => true))"
)


@contextmanager
def opened(browser, address, scheme="light", width=1280):
    """A page in a context of its own, with what it said and what it asked for."""
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": width, "height": 844})
    page = context.new_page()
    said, asked = [], []
    page.on(
        "console", lambda m: said.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: said.append(f"page error: {error}"))
    page.on(
        "request",
        lambda r: asked.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None,
    )
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_function(MATHJAX_DONE)
    page.add_style_tag(content=AT_REST)
    try:
        yield page, said, asked
    finally:
        context.close()


def serious_violations(page):
    """What axe-core finds of serious or critical impact, with every dropdown open."""
    from axe_playwright_python.sync_playwright import Axe

    # Without "preload": axe would fetch the style sheets, which file:// forbids.
    found = Axe().run(page, options={"resultTypes": ["violations"], "preload": False})
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary'][:300]}"
        for violation in found.response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def faults_of(page, said, asked):
    """Everything that is wrong with an open page."""
    page.evaluate(OPEN_ALL)
    page.wait_for_timeout(50)  # the page answers a click after it
    faults = [f"console: {text}" for text in said] + [f"asks the network: {url}" for url in asked]
    overflow = page.evaluate(OVERFLOW)
    if overflow > 0:
        faults.append(f"is {overflow} pixels too wide")
    return faults + serious_violations(page)


@pytest.mark.parametrize(("scheme", "width"), SCREENS, ids=lambda value: str(value))
def test_every_page(book_html, chromium, scheme, width):
    faults = {}
    for name in sorted(pages(book_html)):
        if not name.startswith(NOT_READ):
            with opened(chromium, (book_html / name).as_uri(), scheme, width) as (page, said, asked):
                found = faults_of(page, said, asked)
            if found:
                faults[name] = found
    assert faults == {}, json.dumps(faults, indent=1)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>console.error('broken')</script>", "console: error: broken"),
        ("<script>throw new Error('broken')</script>", "console: page error"),
        (
            '<img alt="A far picture." src="https://example.org/a.png">',
            "asks the network: https://example.org",
        ),
        ('<div style="width: 3000px; height: 1px"></div>', "too wide"),
        ('<img src="data:image/png;base64,iVBORw0KGgo=">', "image-alt"),
        ("<details><summary>x</summary><button></button></details>", "button-name"),
    ],
)
def test_a_broken_page_is_found(chromium, tmp_path, body, fault):
    page_file = tmp_path / "broken.html"
    head = '<!doctype html><html lang="en"><head><title>Broken</title></head>'
    page_file.write_text(f"{head}<body><main><h1>Broken</h1>{body}</main></body></html>")
    with opened(chromium, page_file.as_uri()) as (page, said, asked):
        faults = faults_of(page, said, asked)
    assert any(fault in found for found in faults), faults


def chapter_pages(book_html):
    return sorted((book_html / "book").glob("[0-9]_*/*.html"))


def test_sliders_move_by_keyboard(book_html, chromium):
    for path in chapter_pages(book_html):
        with opened(chromium, path.as_uri()) as (page, _, _):
            page.evaluate(OPEN_ALL)
            for box in page.locator(".lb-slider").all():
                knob = box.locator("input")
                names = knob.get_attribute("data-names").split("|")
                knob.focus()
                for key, place in (("Home", 0), ("ArrowRight", 1), ("End", len(names) - 1)):
                    page.keyboard.press(key)
                    assert box.locator("output").inner_text() == names[place]
                    assert knob.get_attribute("aria-valuetext") == names[place]
                    shown = box.locator("img").evaluate_all(
                        "all => all.map(image => image.offsetParent !== null)"
                    )
                    assert shown == [k == place for k in range(len(names))]


def test_a_slider_without_javascript_shows_one_picture(book_html, chromium):
    context = chromium.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    for path in chapter_pages(book_html):
        page.goto(path.as_uri())
        for box in page.locator(".lb-slider").all():
            assert sum(image.is_visible() for image in box.locator("img").all()) == 1
            assert "Without JavaScript" in box.locator("noscript").inner_text()
    context.close()


def test_exercises_say_right_and_not_yet(book_html, chromium):
    from locbook.exercises import Choice, Number
    from locbook.exercises._check import find

    for path in chapter_pages(book_html):
        with opened(chromium, path.as_uri()) as (page, _, _):
            page.evaluate(OPEN_ALL)
            for key in {box.get_attribute("data-key") for box in page.locator(".lb-check").all()}:
                exercise = find(key)
                box = page.locator(f".lb-check[data-key='{key}']").first
                said = box.locator("output")
                if isinstance(exercise, Number):
                    right = exercise.compute()
                    for text, answer in (
                        (right + 1, "Not yet."),
                        (right, "Right."),
                        ("", ""),
                        ("one", "Not yet."),
                    ):
                        box.locator("input").fill(str(text))
                        assert said.inner_text().startswith(answer)
                        assert bool(said.inner_text()) is bool(answer)
                elif isinstance(exercise, Choice):
                    for name, _ in exercise.options:
                        box.locator(f"input[value='{name}']").check()
                        right = name == exercise.right()
                        assert said.inner_text().startswith("Right." if right else "Not yet.")


@pytest.mark.parametrize(
    ("word", "page_name"), [("Epanechnikov", "notation.html"), ("neighbours", "index.html")]
)
def test_search_finds_a_word(book_html, chromium, word, page_name):
    with opened(chromium, f"{(book_html / 'search.html').as_uri()}?q={word}") as (page, said, asked):
        page.locator("#search-results li a").first.wait_for()
        links = page.locator("#search-results li a").evaluate_all("all => all.map(link => link.href)")
    assert any(page_name in link for link in links)
    assert said == []
    assert asked == []
