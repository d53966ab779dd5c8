"""The built pages: every internal link leads somewhere, and nothing is loaded from the network."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tools.checks.markup import Element, elements

# A <link> of these kinds makes the browser fetch something; others only tell.
FETCHED = {
    "stylesheet", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch",
    "icon", "apple-touch-icon", "manifest",
}  # fmt: skip
REMOTE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
REMOTE_IN_CSS = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])\s*(?:https?:)?//""", re.IGNORECASE)


class Site:
    """All pages below a folder, each read once."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        files = [path for path in sorted(self.root.rglob("*.html")) if "_static" not in path.parts]
        self.pages: dict[Path, list[Element]] = {
            path: elements(path.read_text(encoding="utf-8")) for path in files
        }

    def anchors(self, page: Path) -> set[str]:
        """Where a link into the page may lead."""
        return {
            value for e in self.pages[page] for name, value in e.attributes.items() if name in ("id", "name")
        }


def link_faults(root: Path) -> list[str]:
    """Internal links whose file or anchor is not there."""
    site = Site(root)
    anchors = {page: site.anchors(page) for page in site.pages}
    faults = []
    for page, found in site.pages.items():
        for target in {e.attributes["href"] for e in found if e.tag == "a" and e.attributes.get("href")}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if path.is_dir():
                path /= "index.html"
            where = f"{page.relative_to(site.root)}: {target}"
            if not path.exists():
                faults.append(f"{where}: no such file")
            elif parts.fragment and path in anchors and unquote(parts.fragment) not in anchors[path]:
                faults.append(f"{where}: no such anchor")
    return sorted(faults)


def offline_faults(root: Path) -> list[str]:
    """Scripts, styles, pictures, fonts and frames that a page would ask the network for."""
    site = Site(root)
    faults = []
    for page, found in site.pages.items():
        for element in found:
            faults += [
                f"{page.relative_to(site.root)}: <{element.tag}> loads {url}" for url in _loads(element)
            ]
    for style in sorted(site.root.rglob("*.css")):
        if REMOTE_IN_CSS.search(style.read_text(encoding="utf-8", errors="replace")):
            faults.append(f"{style.relative_to(site.root)}: the style loads from the network")
    return faults


def _loads(element):
    """Addresses outside the page that the element makes a browser fetch."""
    attributes = element.attributes
    candidates = (
        [attributes.get(name, "") for name in ("src", "poster", "data")] if element.tag != "a" else []
    )
    candidates += [part.strip().split(" ")[0] for part in attributes.get("srcset", "").split(",")]
    if element.tag == "link" and FETCHED & set(attributes.get("rel", "").lower().split()):
        candidates.append(attributes.get("href", ""))
    if element.tag == "style" and REMOTE_IN_CSS.search(element.text):
        candidates.append("//in a style")
    return [url for url in candidates if REMOTE.match(url)]


def pages(root: Path) -> set[str]:
    """The set of pages below a folder, as paths."""
    return {str(path.relative_to(root)) for path in root.rglob("*.html") if "_static" not in path.parts}


MAX_PAGE_BYTES = 2_000_000


def weight_faults(root: Path) -> list[str]:
    """Pages that weigh too much: the file, and the pictures that it shows."""
    site = Site(root)
    faults = []
    for page, found in site.pages.items():
        pictures = {e.attributes.get("src", "") for e in found if e.tag == "img"}
        files = [page, *((page.parent / unquote(p)).resolve() for p in pictures if "_images/" in p)]
        weight = sum(file.stat().st_size for file in files)
        if weight > MAX_PAGE_BYTES:
            faults.append(
                f"{page.relative_to(site.root)}: weighs {weight:,} bytes, allowed are {MAX_PAGE_BYTES:,}"
            )
    return faults


def unsized_image_faults(root: Path) -> list[str]:
    """Pictures in the text without width and height: the text would jump when they come."""
    site = Site(root)
    return [
        f"{page.relative_to(site.root)}: {e.attributes.get('src', '')[:60]} has no size"
        for page, found in site.pages.items()
        for e in found
        if e.tag == "img"
        and any(parent.tag == "article" for parent in e.parents)
        and not {"width", "height"} <= set(e.attributes)
    ]
