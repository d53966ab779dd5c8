"""What a reader meets: every page in Chromium, light and dark, wide and on a phone, without a network."""

import json
import re
from functools import cache

import jupytext
import pytest

from locbook.exercises import Choice, Number
from locbook.exercises._check import find
from tests import background
from tools import chapter_scripts
from tools.checks.browser import OPEN_ALL, SCREENS, chromium_path, opened, page_faults


def chapter_pages(book_html):
    return sorted((book_html / "book").glob("[0-9]_*/*.html"))


def walked():
    """One walk through all pages serves the four screens."""
    built = background.book().result()
    assert built.returncode == 0, built.stdout
    return background.run("-m", "tools.checks.browser")


@cache
def walk():
    return background.submit(walked) if chromium_path() else None


@background.waits_for(walk)
@pytest.mark.usefixtures("browser")  # without Chromium it skips or fails
@pytest.mark.parametrize("screen", SCREENS, ids=str)
def test_every_page(screen):
    ended = walk().result()
    *_, last = ended.stdout.splitlines()
    (faults,) = [one["faults"] for one in json.loads(last) if (one["scheme"], one["width"]) == screen]
    assert faults == {}, json.dumps(faults, indent=1)
    assert ended.returncode == 0, ended.stdout


WIDE, PHONE, BOTH = {1280}, {390}, {1280, 390}
DARK_ON_DARK = "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #333 } }</style>"
# after a frame that the reader has seen, however slow the machine is
LATE = (
    "requestAnimationFrame(() => requestAnimationFrame(() => "
    "document.getElementById('late').style.height = '400px'))"
)


@pytest.mark.parametrize(
    ("body", "fault", "widths"),
    [
        ("<script>console.error('broken')</script>", "console: error: broken", BOTH),
        ("<script>throw new Error('broken')</script>", "console: page error", BOTH),
        ('<img alt="A far picture." src="https://example.org/a.png">', "asks the network", BOTH),
        ('<div style="width: 3000px; height: 1px"></div>', "too wide", BOTH),
        ('<div style="width: 600px; height: 1px"></div>', "too wide", PHONE),
        (f"<p style='overflow: hidden'><mjx-container>{'x=' * 40}</mjx-container></p>", "is cut off", PHONE),
        ('<img src="data:image/png;base64,iVBORw0KGgo=">', "image-alt", BOTH),
        ("<details><summary>x</summary><button></button></details>", "button-name", BOTH),
        ('<p>Good.</p><p style="color: #ccc">Pale on white.</p>', "color-contrast", WIDE),
        (
            '<pre><b>if</b> <span class="b">=</span> <span class="b" style="color: #ccc">pale</span></pre>',
            "color-contrast",
            WIDE,
        ),
        (f"{DARK_ON_DARK}<p>Dark on dark.</p>", "color-contrast", WIDE),
        ('<details><summary>x</summary><p style="color: #ddd">Pale.</p></details>', "color-contrast", WIDE),
        (
            f'<div id="late"></div><p style="height: 500px">Text.</p><script>{LATE}</script>',
            "the layout jumps",
            BOTH,
        ),
    ],
)
def test_a_broken_page_is_found(browser, tmp_path, body, fault, widths):
    page_file = tmp_path / "broken.html"
    head = '<!doctype html><html lang="en"><head><title>Broken</title></head>'
    # MathJax stands for whatever a page waits for.
    wait = "<script>MathJax = {startup: {promise: new Promise(done => setTimeout(done, 120))}}</script>"
    page_file.write_text(f"{head}<body>{wait}<main><h1>Broken</h1>{body}</main></body></html>")
    faults = browser.run(page_faults(browser, page_file.as_uri()))
    found = {width for (_, width), texts in faults.items() if any(fault in text for text in texts)}
    assert found == widths, faults


def test_a_whole_page_is_whole(browser, tmp_path):
    page_file = tmp_path / "whole.html"
    page_file.write_text(
        '<!doctype html><html lang="en"><head><title>Whole</title><style>:root { color-scheme: light dark }</style>'
        "</head><body><main><h1>Whole</h1><p>Good.</p></main></body></html>"
    )
    assert set(browser.run(page_faults(browser, page_file.as_uri()))) == set(SCREENS)
    assert not any(browser.run(page_faults(browser, page_file.as_uri())).values())


# --- by keyboard alone ---


def test_sliders_move_by_keyboard(book_html, browser):
    async def check(path):
        async with opened(browser, path.as_uri()) as visit:
            page = visit.page
            await page.evaluate(OPEN_ALL)
            for box in await page.locator(".lb-slider").all():
                knob = box.locator("input")
                names = (await knob.get_attribute("data-names")).split("|")
                await knob.focus()
                for key, place in (("Home", 0), ("ArrowRight", 1), ("End", len(names) - 1)):
                    await page.keyboard.press(key)
                    assert await box.locator("output").inner_text() == names[place]
                    assert await knob.get_attribute("aria-valuetext") == names[place]
                    shown = await box.locator("img").evaluate_all(
                        "all => all.map(image => image.offsetParent !== null)"
                    )
                    assert shown == [k == place for k in range(len(names))]

    browser.each(check, chapter_pages(book_html))


def test_a_slider_without_javascript_shows_one_picture(book_html, browser):
    async def check(path):
        async with opened(browser, path.as_uri(), java_script_enabled=False) as visit:
            for box in await visit.page.locator(".lb-slider").all():
                assert sum([await image.is_visible() for image in await box.locator("img").all()]) == 1
                assert "Without JavaScript" in await box.locator("noscript").inner_text()

    browser.each(check, chapter_pages(book_html))


async def _answer_number(page, box, exercise):
    said, right = box.locator("output"), exercise.compute()
    for text, words in ((right + 1, "Not yet."), (right, "Right."), ("", ""), ("one", "Not yet.")):
        await box.locator("input").focus()
        await page.keyboard.press("Control+A")
        await page.keyboard.press("Delete")
        await page.keyboard.type(str(text))
        heard = await said.inner_text()
        assert heard.startswith(words)
        assert bool(heard) is bool(words)


async def _answer_choice(page, box, exercise):
    await box.locator("input").first.focus()
    await page.keyboard.press("Space")
    for name, _ in exercise.options:
        assert await box.locator("input:checked").get_attribute("value") == name
        words = "Right." if name == exercise.right() else "Not yet."
        assert (await box.locator("output").inner_text()).startswith(words)
        await page.keyboard.press("ArrowDown")


def test_exercises_say_right_and_not_yet(book_html, browser):
    async def check(path):
        async with opened(browser, path.as_uri()) as visit:
            page, answered = visit.page, 0
            await page.evaluate(OPEN_ALL)
            keys = await page.locator(".lb-check").evaluate_all("all => all.map(box => box.dataset.key)")
            for key in sorted(set(keys)):
                exercise = find(key)
                box = page.locator(f".lb-check[data-key='{key}']").first
                if isinstance(exercise, Number):
                    await _answer_number(page, box, exercise)
                elif isinstance(exercise, Choice):
                    await _answer_choice(page, box, exercise)
                answered += isinstance(exercise, Number | Choice)
                # An <output> tells a screen reader what it says.
                assert await box.locator("output").count() == 1
            assert visit.faults() == []
            return answered

    assert all(browser.each(check, chapter_pages(book_html)))


def test_the_keyboard_reaches_the_text_first_and_opens_what_is_folded(book_html, browser):
    async def check(path):
        async with opened(browser, path.as_uri()) as visit:
            page = visit.page
            await page.keyboard.press("Tab")
            assert "Skip to main content" in await page.evaluate("document.activeElement.innerText")
            for fold in await page.locator("article details > summary").all():
                await fold.focus()
                await page.keyboard.press("Enter")
                assert await fold.evaluate("summary => summary.parentElement.open")
            closed = page.locator("button.toggle-button-hidden")
            for left in range(await closed.count(), 0, -1):
                await closed.first.focus()
                await page.keyboard.press("Enter")
                assert await closed.count() == left - 1

    browser.each(check, chapter_pages(book_html))


def test_a_dark_page_prints_light(book_html, browser):
    """Paper is white: yellow code on it could not be read."""
    theme = "document.documentElement.dataset.theme"

    async def check(path):
        async with opened(browser, path.as_uri(), "dark") as visit:
            assert await visit.page.evaluate(theme) == "dark"
            await visit.page.emulate_media(media="print")
            await visit.page.wait_for_function(f"{theme} === 'light'", timeout=5000)
            await visit.page.emulate_media(media="screen")
            await visit.page.wait_for_function(f"{theme} === 'dark'", timeout=5000)

    browser.each(check, chapter_pages(book_html)[:1])


def test_the_map_leads_by_keyboard(book_html, browser):
    async def check(width):
        async with opened(browser, (book_html / "book/map.html").as_uri(), width=width) as visit:
            links = visit.page.locator(".lb-map a:visible")
            assert await links.count() >= 3
            for link in await links.all():
                await link.focus()
                assert await link.evaluate("link => link === document.activeElement")
            await links.first.focus()
            await visit.page.keyboard.press("Enter")
            await visit.page.wait_for_url("**/1_foundations/*.html")

    browser.each(check, [1280, 390])


# --- search ---

NO_PROSE = re.compile(
    r"\$\$.*?\$\$|\$[^$]*\$|```.*?```|\{[\w:]+\}`[^`]*`|`[^`]*`|\]\([^)]*\)|^:.*$|^\(.*\)=$",
    re.DOTALL | re.MULTILINE,
)


def prose_words(script):
    cells = [cell.source for cell in jupytext.read(script).cells if cell.cell_type == "markdown"]
    return set(re.findall(r"\b[a-z]{7,}\b", NO_PROSE.sub(" ", "\n\n".join(cells))))


def own_words():
    """``{chapter: a word that only its text has}``."""
    words = {script.stem: prose_words(script) for script in chapter_scripts()}
    return {
        stem: max(sorted(mine - set().union(*(w for other, w in words.items() if other != stem))), key=len)
        for stem, mine in words.items()
    }


def test_search_finds_a_word_of_each_chapter(book_html, browser):
    async def check(entry):
        name, word = entry
        address = f"{(book_html / 'search.html').as_uri()}?q={word}"
        async with opened(browser, address) as visit:
            # The results come one by one.
            await visit.page.locator(f"#search-results li a[href*='{name}.html']").first.wait_for()
            assert visit.faults() == []

    others = {"notation": "Epanechnikov", "index": "neighbours", "glossary": "retrieval"}
    browser.each(check, [*own_words().items(), *others.items()])
