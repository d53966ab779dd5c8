"""A small reader of HTML: the elements of a page with their attributes."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

TEXT_IS_READ = {"figcaption", "style"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Element:
    """One element of a page; its text is kept where a check reads it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple["Element", ...] = ()
    text: str = field(default="")

    def has_class(self, name: str) -> bool:
        """Whether the element is of this class."""
        return name in self.attributes.get("class", "").split()

    def inside(self, other: "Element") -> bool:
        """Whether the element lies in the other one."""
        return any(parent is other for parent in self.parents)


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[Element] = []

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        element = Element(tag, attributes, tuple(self.open))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        for place in range(len(self.open) - 1, -1, -1):
            if self.open[place].tag == tag:
                del self.open[place:]
                return

    def handle_data(self, data):
        for element in self.open:
            if element.tag in TEXT_IS_READ:
                element.text += data


def elements(page: str) -> list[Element]:
    """All elements of a page, in order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.elements
