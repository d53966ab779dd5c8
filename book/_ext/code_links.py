"""Names of the library in the chapters' code lead to the API pages.

The first time that a cell uses a name, ``lb.local_mean`` or one that the page imports from
``locbook``, the name becomes a link: the later ones would only be more stops for the keyboard.
"""

import html
import re
from pathlib import Path

BLOCK = re.compile(
    r'<div class="highlight-i?python3? notranslate">.*?</pre>', re.DOTALL
)
NAME = '<span class="{kind}">{name}</span>'
ATTRIBUTE = re.compile(
    r'<span class="n">lb</span>(?:<span class="o">\.</span><span class="n">\w+</span>){1,2}'
)
IMPORT = re.compile(r"^from (locbook[\w.]*) import (\([^)]*\)|.+)$", re.M)
TAG = re.compile(r"<[^>]+>")


def imported_names(code):
    """``{name: qualified name}`` of what the code imports from the library."""
    found = {}
    for module, names in IMPORT.findall(code):
        for name in re.findall(r"\w+", names):
            found[name] = f"{module}.{name}"
    return found


def with_links(body, address):
    """Put links into the code of a page; ``address`` gives one for a qualified name, or None."""
    blocks = BLOCK.findall(body)
    imported = imported_names(
        "\n".join(html.unescape(TAG.sub("", b)) for b in blocks)
    )
    return BLOCK.sub(
        lambda block: _linked(block.group(0), imported, address), body
    )


def _linked(block, imported, address):
    seen = set()

    def link(shown, name):
        where = address(name)
        if where is None or name in seen:
            return None
        seen.add(name)
        return f'<a class="lb-code-link" href="{where}">{shown}</a>'

    def attribute(match):
        parts = re.findall(r">(\w+)<", match.group(0))
        for length in range(
            len(parts), 1, -1
        ):  # lb.datasets.load_..., else lb.kernel(...).method
            name = ".".join(["locbook", *parts[1:length]])
            if address(name):
                shown = _spans(match.group(0), length)
                rest = match.group(0)[len(shown) :]
                linked = link(shown, name)
                return match.group(0) if linked is None else linked + rest
        return match.group(0)

    block = ATTRIBUTE.sub(attribute, block)
    for short, name in imported.items():
        span = NAME.format(kind="n", name=short)
        free = re.compile(rf'(?<!<span class="o">\.</span>){re.escape(span)}')
        match = free.search(block)
        linked = link(span, name) if match else None
        if linked:
            block = block[: match.start()] + linked + block[match.end() :]
    return block


def _spans(chain, length):
    """The first names of a chain, with the dots between them."""
    spans = re.findall(r"<span.*?</span>", chain)
    return "".join(spans[: 2 * length - 1])


def link_code(app, pagename, templatename, context, doctree):
    """Link the code of a page whose source is a notebook or a text of the book."""
    if "body" not in context or app.builder.format != "html":
        return
    objects = app.env.domaindata["py"]["objects"]

    def address(name):
        entry = objects.get(name)
        if entry is None:
            return None
        page = app.builder.get_relative_uri(pagename, entry.docname)
        return f"{page}#{entry.node_id}"

    if Path(app.env.doc2path(pagename)).suffix == ".ipynb":
        context["body"] = with_links(context["body"], address)


def setup(app):
    app.connect("html-page-context", link_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
