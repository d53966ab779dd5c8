"""Ask every address that the built pages link to whether it is there. CI does not run it: it needs the network.

Usage: ``python -m tools.linkcheck``.
"""

import sys
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.build_book import ensure_built
from tools.checks.site import Site

TIMEOUT = 20
AGENT = {"User-Agent": "Mozilla/5.0 (locbook link check)"}
# Some hosts turn programs away; that does not mean that the page is gone.
NOT_GONE = {401, 403, 405, 429, 999}


def outside_links(root: Path) -> dict[str, list[str]]:
    """``{address: pages that link to it}``; launch and edit links follow from the page's own name."""
    found = defaultdict(set)
    site = Site(root)
    for page, page_elements in site.pages.items():
        for element in page_elements:
            address = element.attributes.get("href", "").partition("#")[0]
            is_text = any(parent.tag in ("article", "footer") for parent in element.parents)
            if element.tag == "a" and is_text and address.startswith(("http:", "https:")):
                found[address].add(str(page.relative_to(site.root)))
    return {address: sorted(names) for address, names in sorted(found.items())}


def answer_of(address: str) -> str | None:
    """What is wrong with an address, or None."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=AGENT), timeout=TIMEOUT):
            return None
    except urllib.error.HTTPError as error:
        return None if error.code in NOT_GONE else f"answers {error.code}"
    except (OSError, ValueError) as error:
        return str(error)


def outside_faults(root: Path, ask: Callable[[str], str | None] = answer_of) -> list[str]:
    """Addresses that are not there, with the pages that link to them."""
    links = outside_links(root)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, links))
    return [
        f"{address}: {answer} (on {', '.join(links[address])})"
        for address, answer in zip(links, answers, strict=True)
        if answer
    ]


if __name__ == "__main__":
    faults = outside_faults(ensure_built())
    print("\n".join(faults) or "all links outside lead somewhere")
    sys.exit(bool(faults))
