"""The map of the book: a picture with links, and the same in words.

Both follow from ``map.yml`` (the systems), ``chapters.yml`` (the parts) and ``_toc.yml`` (what is
written), so that neither can fall behind. The picture is SVG inside the page: its colours are the
page's own, light or dark, and its links work from the folder. It comes in two forms, one for a
wide page and one for a phone; the style sheet shows the one that fits.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

import yaml

BOOK = Path(__file__).resolve().parents[1]
ROMAN = ("I", "II", "III", "IV", "V", "VI")
MAX_LETTERS = 22  # what fits into a box on a phone
KINDS = ("exact", "signed", "limit", "analogy")


class System(NamedTuple):
    """One system of the theory, and where the book has it."""

    name: str
    section: int | None
    chapter: int
    part: int
    page: str
    written: bool
    is_centre: bool
    text: str
    kind: str | None
    sources: tuple[str, ...]


def parts(book=BOOK):
    """The six parts of ``chapters.yml``, in order."""
    return yaml.safe_load((book / "chapters.yml").read_text(encoding="utf-8"))


def chapter_pages(book=BOOK):
    """``{chapter: (part, page, title, written)}``; a page has no suffix, and lies below ``book/``."""
    toc = (book.parent / "_toc.yml").read_text(encoding="utf-8")
    found = {}
    for number, part in enumerate(parts(book)):
        for chapter, entry in part["chapters"].items():
            page = f"{part['folder']}/{chapter:02d}_{entry['slug']}"
            written = f"book/{page}.ipynb" in toc
            found[chapter] = (number, page, entry["title"], written)
    return found


def systems(book=BOOK):
    """All systems of ``map.yml``, in the order of the file."""
    pages = chapter_pages(book)
    found = []
    for entry in yaml.safe_load((book / "map.yml").read_text("utf-8")):
        part, page, _, written = pages[entry["chapter"]]
        found.append(
            System(
                entry["name"],
                entry.get("section"),
                entry["chapter"],
                part,
                page,
                written,
                entry.get("centre", False),
                entry["is"],
                entry.get("kind"),
                tuple(entry.get("sources", ())),
            )
        )
    return found


# --- in words ---


def in_words(book=BOOK):
    """MyST list of all systems by part: link or *coming*, kind, and what the local mean is there."""
    lines = []
    everything = systems(book)
    for number, part in enumerate(parts(book)):
        lines += [f"### {ROMAN[number]}. {part['title']}", ""]
        for system in (s for s in everything if s.part == number):
            name = (
                f"[{system.name}]({system.page}.ipynb)"
                if system.written
                else system.name
            )
            remarks = [f"chapter {system.chapter}"]
            remarks += [] if system.written else ["coming"]
            remarks += [system.kind] if system.kind else []
            lines.append(f"- **{name}** ({', '.join(remarks)}). {system.text}")
        lines.append("")
    return "\n".join(lines)


def literature(book=BOOK):
    """MyST list: from which works each system comes."""
    lines = []
    for system in systems(book):
        if system.sources:
            cited = "; ".join(f"{{cite:t}}`{key}`" for key in system.sources)
            lines.append(
                f"- **{system.name}** (chapter {system.chapter}): {cited}"
            )
    return "\n".join(lines)


# --- as a picture ---


class Box(NamedTuple):
    """A rectangle of the picture."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self):
        """Its centre."""
        return self.x + self.width / 2, self.y + self.height / 2


PILL, GAP, HEAD, PAD = 28, 6, 34, 10


def picture(book=BOOK):
    """HTML of the map in both forms, with the legend."""
    everything = systems(book)
    return "\n".join(
        [
            '<nav class="lb-map" aria-label="Map of the book">',
            _wide(everything, parts(book)),
            _tall(everything, parts(book)),
            "</nav>",
        ]
    )


def _height(count, columns):
    rows = -(-count // columns)
    return HEAD + rows * (PILL + GAP) + PAD - GAP


def _wide(everything, all_parts):
    """Three columns; the local mean between the parts II and V, the rest around it, clockwise."""
    width, column, middle = 760, 240, 92
    tall = {p: _height(len(_around(everything, p)), 1) for p in range(6)}
    space = 40
    top = max(tall[0], tall[1]) + space
    centre = Box((width - column) / 2, top, column, middle)
    below = centre.y + middle + space
    floor = below + max(tall[4], tall[5])
    top_right = Box(width - column, 0, column, tall[2])
    floor = max(floor, top_right.height + space + tall[3])
    places = [
        Box(0, 0, column, tall[0]),
        Box((width - column) / 2, centre.y - space - tall[1], column, tall[1]),
        top_right,
        Box(width - column, floor - tall[3], column, tall[3]),
        Box((width - column) / 2, below, column, tall[4]),
        Box(0, floor - tall[5], column, tall[5]),
    ]
    return _svg(everything, all_parts, "wide", (width, floor), centre, places)


def _tall(everything, all_parts):
    """One column: three parts, the local mean, three parts."""
    width, space, y = 356, 22, 0
    places = []
    for part in range(6):
        if part == 3:
            centre = Box(28, y, width - 56, 84)
            y += centre.height + space
        height = _height(len(_around(everything, part)), 2)
        places.append(Box(0, y, width, height))
        y += height + space
    size = (width, y - space)
    return _svg(everything, all_parts, "tall", size, centre, places)


def _around(everything, part):
    return [s for s in everything if s.part == part and not s.is_centre]


def _svg(everything, all_parts, form, size, centre, places):
    """One picture: spokes first, then the parts over them, then the centre."""
    columns = 1 if form == "wide" else 2
    width, height = size
    lines = [
        f'<svg class="lb-map-{form}" viewBox="-1 -1 {width + 2} {height + 2}" width="{width + 2}" '
        f'height="{height + 2}" xmlns="http://www.w3.org/2000/svg" role="group" '
        'aria-label="The local mean in the middle, the systems of each part around it">'
    ]
    lines += [_spoke(centre, place) for place in places]
    for number, (part, place) in enumerate(
        zip(all_parts, places, strict=True)
    ):
        lines += _panel(
            number, part["title"], place, _around(everything, number), columns
        )
    (mean,) = (s for s in everything if s.is_centre)
    lines.append(_centre(mean, centre))
    return "\n".join([*lines, "</svg>"])


def _spoke(centre, place):
    (x1, y1), (x2, y2) = centre.middle, place.middle
    return f'<line class="spoke" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def _fit(text, size, room):
    """Attribute that narrows a text which might be too long, drawn in a wide font."""
    return (
        f' textLength="{room:g}" lengthAdjust="spacingAndGlyphs"'
        if len(text) * size * 0.64 > room
        else ""
    )


def _panel(number, title, box, members, columns):
    head = f"{ROMAN[number]} · {title}"
    lines = [
        f'<g class="part part-{number + 1}">',
        f'<rect class="panel" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="8"/>',
        f'<text class="head" x="{box.x + 12:g}" y="{box.y + 22:g}"{_fit(head, 13, box.width - 24)}>'
        f"{escape(head)}</text>",
    ]
    inner = box.width - 2 * PAD
    each = (inner - (columns - 1) * GAP) / columns
    for place, system in enumerate(members):
        row, column = divmod(place, columns)
        pill = Box(
            box.x + PAD + column * (each + GAP),
            box.y + HEAD + row * (PILL + GAP),
            each,
            PILL,
        )
        lines.append(_pill(system, pill))
    return [*lines, "</g>"]


def _pill(system, box):
    fit = _fit(
        system.name, 12.5, box.width - 36
    )  # the rest is for the number and the edges
    inside = (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6"/>'
        f'<text x="{box.x + 7:g}" y="{box.y + 18.5:g}"><tspan class="number">{system.chapter}</tspan>'
        f'<tspan dx="5"{fit}>{escape(system.name)}</tspan></text>'
    )
    return _linked(system, inside)


def _centre(system, box):
    x, _ = box.middle
    inside = (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="14"/>'
        f'<text class="title" x="{x:g}" y="{box.y + 30:g}">{escape(system.name)}</text>'
        f'<text class="words" x="{x:g}" y="{box.y + 52:g}">look at the neighbours,</text>'
        f'<text class="words" x="{x:g}" y="{box.y + 70:g}">weigh them, take the mean</text>'
    )
    return f'<g class="centre">{_linked(system, inside)}</g>'


def _linked(system, inside):
    label = f"{escape(system.name)}, chapter {system.chapter}"
    if system.written:
        return f'<a class="written" href="{system.page}.html" aria-label="{label}">{inside}</a>'
    return f'<g class="coming" role="img" aria-label="{label}, coming">{inside}</g>'
