"""What a reader meets: pages in Chromium, light and dark, wide and on a phone, without a network.

Each page is opened twice, wide and light, then narrow and dark; each time it changes its colours
while it is open, so that four screens are seen. Colours do not follow the width and structure does
not follow the colours: contrast is judged wide, in both schemes, and all other rules of axe-core in
both widths. Several pages are open at once.

Usage: ``python -m tools.checks.browser`` walks through all pages of the built book and prints what is wrong as JSON.
"""

import asyncio
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import HTML
from tools.checks.site import pages

# Pages of an extension that show the library's source; they have no text of ours.
NOT_READ = ("_modules/",)
WIDE, PHONE = 1280, 390
SCREENS = [(scheme, width) for scheme in ("light", "dark") for width in (WIDE, PHONE)]
HEIGHT = 844
OTHER = {"light": "dark", "dark": "light"}
MAX_SHIFT = 0.1  # a layout that jumps less is called good
PAGES_AT_ONCE = 3
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]

# Colours are judged where they come to rest.
AT_REST = "* { transition: none !important; animation: none !important; }"
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
# Formulas in a line that run out of it, where nothing scrolls.
CUT_FORMULAS = """() => [...document.querySelectorAll('mjx-container:not([display])')].filter(formula => {
  const block = formula.closest('p, li, dd, td, th, div');
  const scrolls = formula.closest('.pst-scrollable-table-container, pre, mjx-container.lb-long-formula');
  return !scrolls && formula.checkVisibility()
    && formula.getBoundingClientRect().right > block.getBoundingClientRect().right + 2;
}).map(formula => formula.closest('p, li, dd, td, th, div').innerText.slice(0, 60))"""
MATHJAX_DONE = (
    "() => !window.MathJax || (window.MathJax.startup && window.MathJax.startup.promise.then(() => true))"
)
OPEN_ALL = """() => {
  document.querySelectorAll('details').forEach(element => element.open = true);
  document.querySelectorAll('.toggle-button-hidden').forEach(button => button.click());
}"""
WATCH_SHIFTS = """
  window.shift = 0;
  new PerformanceObserver(list => list.getEntries().forEach(entry => window.shift += entry.value))
    .observe({type: 'layout-shift', buffered: true});
"""
# Text that looks alike has one contrast: of all elements with one colour, size, weight and
# ground, axe is shown the first that can be seen.
MARK_LOOKS = """() => {
  const grounds = new Map(), seen = new Set();
  const ground = element => {
    if (!element) return '';
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter].join();
      const plain = own === 'rgba(0, 0, 0, 0),none,1,none';
      grounds.set(element, ground(element.parentElement) + (plain ? '' : own));
    }
    return grounds.get(element);
  };
  document.querySelectorAll('[data-look]').forEach(element => delete element.dataset.look);
  for (const element of document.body.querySelectorAll('*')) {
    // axe does not judge one letter.
    const holdsText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim().length > 1);
    if (!holdsText || !element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element);
    const look = [style.color, style.fontSize, style.fontWeight, style.textShadow, ground(element)].join('|');
    if (!seen.has(look)) element.dataset.look = '';
    seen.add(look);
  }
}"""
# Words of code and formulas are most of a chapter's elements, and much alike: of those with one class
# at one kind of place, axe is shown the first; of the others the text.
PRUNE = """() => {
  const seen = new Set();
  const kindOf = element => element.localName + '.' + element.className;
  const place = element => element ? kindOf(element) + '<' + place(element.parentElement) : '';
  const isNew = (element, where) => {
    if (element.textContent.trim().length < 2) return false;  // axe does not judge one letter
    const kind = kindOf(element) + '<' + where;
    return !seen.has(kind) && seen.add(kind);
  };
  for (const block of document.querySelectorAll('pre')) {
    const where = place(block);
    for (const word of block.querySelectorAll('span:not(:has(*))')) {
      if (!isNew(word, where)) word.replaceWith(word.textContent);
    }
  }
  for (const formula of document.querySelectorAll('mjx-container')) {
    if (!isNew(formula, place(formula.parentElement))) formula.textContent = formula.textContent.trim();
  }
}"""
CONTRAST = "color-contrast"
# Without "preload": axe would fetch the style sheets, which file:// forbids.
RUN_AXE = """([context, options]) => axe
  .run(context || document, {...options, preload: false, resultTypes: ['violations']})
  .then(found => found.violations.filter(one => ['serious', 'critical'].includes(one.impact)).flatMap(one =>
    one.nodes.map(node => `${one.id}: ${node.target} ${(node.failureSummary || '').slice(0, 300)}`)))"""


def chromium_path() -> str | None:
    """Where Debian has Chromium, or where the path finds it."""
    return "/usr/bin/chromium" if os.path.exists("/usr/bin/chromium") else shutil.which("chromium")


class Browser:
    """One Chromium in a thread of its own, so that plain tests can wait for many pages at once."""

    def __init__(self, path: str):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._start(path))

    async def _start(self, path):
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self.chromium = await self._playwright.chromium.launch(executable_path=path, args=ARGUMENTS)

    async def _stop(self):
        await self.chromium.close()
        await self._playwright.stop()

    def run(self, coroutine: Coroutine) -> Any:
        """Wait for a coroutine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def each(self, check: Any, items: list) -> list:
        """Call an asynchronous check on all items, a few at a time; the answers in their order."""

        async def all_items():
            free = asyncio.Semaphore(PAGES_AT_ONCE)

            async def one(item):
                async with free:
                    return await check(item)

            return await asyncio.gather(*map(one, items))

        return self.run(all_items())

    def close(self) -> None:
        """End Chromium and the thread."""
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class Visit:
    """An open page, with what it said on the console and what it asked the network for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def faults(self) -> list[str]:
        """What has been said and asked since the last call."""
        found = [f"console: {text}" for text in self.said] + [f"asks the network: {u}" for u in self.asked]
        self.said.clear()
        self.asked.clear()
        return found


@asynccontextmanager
async def opened(
    browser: Browser, address: str, scheme: str = "light", width: int = WIDE, **context_options: Any
) -> AsyncIterator[Visit]:
    """A page in a context of its own, its formulas set and its colours at rest."""
    context = await browser.chromium.new_context(
        offline=True, color_scheme=scheme, viewport={"width": width, "height": HEIGHT}, **context_options
    )
    try:
        page = await context.new_page()
        visit = Visit(page)
        page.on("console", lambda m: _hear(visit, m))
        page.on("pageerror", lambda error: visit.said.append(f"page error: {error}"))
        page.on("request", lambda r: _note(visit, r.url))
        if context_options.get("java_script_enabled", True):
            await page.add_init_script(WATCH_SHIFTS)
            await page.goto(address)
            await page.wait_for_function(MATHJAX_DONE)
            await page.add_style_tag(content=AT_REST)
        else:
            await page.goto(address)
        yield visit
    finally:
        await context.close()


def _hear(visit, message):
    if message.type in ("error", "warning"):
        visit.said.append(f"{message.type}: {message.text}")


def _note(visit, url):
    if not url.startswith(("file:", "data:", "blob:")):
        visit.asked.append(url)


async def axe_faults(page: Any, contrast: bool) -> list[str]:
    """What axe-core finds of serious or critical impact: of contrast alone, or of all other rules."""
    import axe_playwright_python

    if not await page.evaluate("'axe' in window"):
        await page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8"))
    if contrast:
        await page.evaluate(MARK_LOOKS)
        if not await page.locator("[data-look]").count():
            return []
        return await page.evaluate(RUN_AXE, [{"include": ["[data-look]"]}, {"runOnly": [CONTRAST]}])
    return await page.evaluate(RUN_AXE, [None, {"rules": {CONTRAST: {"enabled": False}}}])


async def page_faults(browser: Browser, address: str) -> dict[tuple[str, int], list[str]]:
    """Everything that is wrong with a page on the four screens, with all that is folded open."""
    found = {}
    for scheme, width in (SCREENS[0], SCREENS[3]):
        async with opened(browser, address, scheme, width) as visit:
            page = visit.page
            found[scheme, width] = await _shift_faults(page)
            await page.evaluate(OPEN_ALL)
            await page.wait_for_timeout(50)  # the page answers a click after it
            found[OTHER[scheme], width] = []
            for now in (OTHER[scheme], scheme):
                await page.emulate_media(color_scheme=now)
                found[now, width] += await _overflow_faults(page) + visit.faults()
            await page.evaluate(PRUNE)
            found[scheme, width] += await axe_faults(page, contrast=False)
            for now in (scheme, OTHER[scheme]) if width == WIDE else ():
                await page.emulate_media(color_scheme=now)
                found[now, width] += await axe_faults(page, contrast=True)
            found[scheme, width] += visit.faults()
    return found


async def _shift_faults(page):
    shift = await page.evaluate("window.shift")
    return [f"the layout jumps by {shift:.2f} while it opens"] if shift > MAX_SHIFT else []


async def _overflow_faults(page):
    overflow = await page.evaluate(OVERFLOW)
    faults = [f"is {overflow} pixels too wide"] if overflow > 0 else []
    return faults + [f"a formula is cut off in: {text!r}" for text in await page.evaluate(CUT_FORMULAS)]


def site_faults(
    browser: Browser, root: Path, names: list[str]
) -> dict[tuple[str, int], dict[str, list[str]]]:
    """``{screen: {page: faults}}`` for pages below a folder."""
    answers = browser.each(lambda name: page_faults(browser, (root / name).as_uri()), names)
    return {
        screen: {name: faults[screen] for name, faults in zip(names, answers, strict=True) if faults[screen]}
        for screen in SCREENS
    }


def main() -> int:
    """Walk through the built book."""
    path = chromium_path()
    if path is None:
        sys.exit("needs Chromium (Debian: apt-get install chromium)")
    browser = Browser(path)
    try:
        names = [name for name in sorted(pages(HTML)) if not name.startswith(NOT_READ)]
        faults = site_faults(browser, HTML, names)
    finally:
        browser.close()
    found = [{"scheme": scheme, "width": width, "faults": some} for (scheme, width), some in faults.items()]
    print(json.dumps(found))
    return 1 if any(faults.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
