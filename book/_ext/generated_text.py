"""Text that follows from the project itself, put into the pages as Sphinx reads them.

The page ``index`` gets the list of chapters (``chapters.yml``, and what ``_toc.yml`` has of it),
the page ``api`` and those below it the public names of ``locbook``, by part of the theory.
Nobody edits either by hand, and nothing is written to disk.
"""

import importlib
import importlib.util
import inspect
import re
from collections import defaultdict
from pathlib import Path

import yaml
from sphinx.errors import ExtensionError

BOOK = Path(__file__).resolve().parents[1]

# Groups of the API page in the order of the theory; a part not named here comes last.
THEORY_ORDER = (
    "kernels",
    "foundations",
    "classical",
    "self_localization",
    "learned_kernels",
    "time_and_depth",
    "engine",
    "datasets",
)
# Small groups that share a page; every other group has the page of its name.
PAGE_OF = {
    "plotting": "for_authors",
    "notebook": "for_authors",
    "exercises": "for_authors",
}
# Public modules that ``import locbook`` does not load.
SEPARATE_MODULES = (
    "locbook.datasets",
    "locbook.plotting",
    "locbook.notebook",
    "locbook.exercises",
)


def contents(book=BOOK):
    """MyST list of all planned chapters; one that the table of contents lacks is marked as coming."""
    toc = (book.parent / "_toc.yml").read_text(encoding="utf-8")
    lines = []
    for number, part in enumerate(
        yaml.safe_load((book / "chapters.yml").read_text(encoding="utf-8")),
        start=1,
    ):
        lines += [f"### {_roman(number)}. {part['title']}", ""]
        for chapter, entry in part["chapters"].items():
            page = f"{part['folder']}/{chapter:02d}_{entry['slug']}"
            written = f"book/{page}.ipynb" in toc
            text = (
                f"[{entry['title']}]({page}.ipynb)"
                if written
                else f"{entry['title']} *(coming)*"
            )
            lines.append(f"{chapter}. {text}")
        lines.append("")
    return "\n".join(lines)


def _roman(number):
    return ("I", "II", "III", "IV", "V", "VI")[number - 1]


def public_names():
    """``{group: {qualified name: object}}`` of all that ``locbook`` offers."""
    groups = defaultdict(dict)
    package = importlib.import_module("locbook")
    for name in package.__all__:
        if name.startswith("__"):
            continue
        item = getattr(package, name)
        if not inspect.ismodule(
            item
        ):  # a module's names stand in its own group
            groups[_part_of(package, name)][f"locbook.{name}"] = item
    for module_name in SEPARATE_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            groups[module_name.split(".")[1]][f"{module_name}.{name}"] = (
                getattr(module, name)
            )
    order = {part: place for place, part in enumerate(THEORY_ORDER)}
    return dict(
        sorted(
            groups.items(), key=lambda group: order.get(group[0], len(order))
        )
    )


def _part_of(package, name):
    """The subpackage that offers a name, or the one in which its object was made."""
    for part, module in inspect.getmembers(package, inspect.ismodule):
        if name in getattr(module, "__all__", ()):
            return part
    return getattr(package, name).__module__.split(".")[1]


def pages():
    """``{page: {group: {qualified name: object}}}``: what each page below ``api/`` documents."""
    found = defaultdict(dict)
    for group, members in public_names().items():
        found[PAGE_OF.get(group, group)][group] = members
    return found


def api_overview():
    """MyST list of every public name with the first line of its docstring, page by page."""
    lines = []
    for page, groups in pages().items():
        lines += [
            f"## {_title(page)}",
            "",
            f"In full: {{doc}}`api/{page}`.",
            "",
        ]
        for members in groups.values():
            lines += [
                f"- {{py:obj}}`{_short(name)} <{name}>`: {_summary(item)}"
                for name, item in members.items()
            ]
        lines.append("")
    return "\n".join(lines)


def api_page(page):
    """MyST text that documents every public name of one page."""
    groups = pages()[page]
    lines = []
    for group, members in groups.items():
        if len(groups) > 1:
            lines += [f"## {_title(group)}", ""]
        lines += [*_introduction(group), "", "```{eval-rst}"]
        for name, item in members.items():
            lines += [_directive(name, item), ""]
        lines += ["```", ""]
    return "\n".join(lines)


def _title(group):
    return group.replace("_", " ").capitalize()


def _introduction(group):
    """The module of a group, so that one can refer to it, and the first paragraph of its text."""
    name = f"locbook.{group}"
    if importlib.util.find_spec(name) is None:
        return []
    first = (inspect.getdoc(importlib.import_module(name)) or "").partition(
        "\n\n"
    )[0]
    return ["```{eval-rst}", f".. py:module:: {name}", "", first, "```"]


def _short(name):
    return name.rpartition(".")[2]


def _summary(item):
    """First line of the docstring, in MyST."""
    first = _documentation(item).partition("\n")[0]
    with_math = re.sub(r":math:`([^`]*)`", r"$\1$", first)
    return re.sub(r":[\w:]+:`~?([^`]*)`", r"`\1`", with_math)


def _documentation(item):
    """The docstring; a dictionary or a number has none of its own, only its type's."""
    if isinstance(item, dict):
        return f"Names: {', '.join(f'``{name}``' for name in item)}."
    documentation = inspect.getdoc(item) or ""
    is_own = inspect.isclass(item) or documentation != inspect.getdoc(
        type(item)
    )
    return documentation if is_own else f"``{item!r}``"


def _directive(name, item):
    if inspect.isclass(item):
        return f".. autoclass:: {name}\n   :members:"
    if callable(item):
        return f".. autofunction:: {name}"
    module, _, short = name.rpartition(".")
    return f".. py:data:: {short}\n   :module: {module}\n\n   {_documentation(item)}"


def skip_member(app, what, name, item, skip, options):
    """Leave out what would be told twice, or is not ours.

    The fields of a named tuple stand in its docstring; the ``set_..._request`` methods are put
    into every estimator by scikit-learn, with a text that refers to its own pages.
    """
    is_field = (getattr(item, "__doc__", None) or "").startswith(
        "Alias for field number"
    )
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if is_field or is_request else None


PLACEHOLDER = "<!-- generated -->"


def text_of(docname):
    """The generated text of a page, or None if it has none."""
    if docname == "book/index":
        return contents()
    if docname == "book/api":
        return api_overview()
    if docname.startswith("book/api/"):
        return api_page(docname.rpartition("/")[2])
    return None


def fill_in(app, docname, source):
    """Put the generated text of a page in the place that its source marks."""
    text = text_of(docname)
    if text is not None:
        source[0] = source[0].replace(PLACEHOLDER, text)


def check_pages(app, env, docnames):
    """A part of the library without a page would be left out in silence."""
    for page in pages():
        if f"book/api/{page}" not in env.found_docs:
            raise ExtensionError(
                f"the part {page!r} of locbook needs a page book/api/{page}.md, and it in _toc.yml"
            )


def always_outdated(app, env, added, changed, removed):
    """Read these pages at every build: what they follow from is no source file of Sphinx."""
    return [
        docname
        for docname in env.found_docs
        if docname.startswith(("book/index", "book/api"))
    ]


def setup(app):
    app.connect("env-before-read-docs", check_pages)
    app.connect("source-read", fill_in)
    app.connect("env-get-outdated", always_outdated)
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
