"""Text that follows from the project itself, put into the pages as Sphinx reads them.

A page marks the place by ``<!-- generated: NAME -->``; :func:`text_of` lists the names. The list of
chapters and the map follow from ``chapters.yml``, ``map.yml`` and ``_toc.yml``, the API pages from
the public names of ``locbook``, by part of the theory, the benchmarks from what was measured. Nothing is written to
disk.
"""

import importlib
import importlib.util
import inspect
import re
from collections import defaultdict
from pathlib import Path

import benchmark_page
import three_forms
from book_map import (
    BOOK,
    ROMAN,
    chapter_pages,
    in_words,
    literature,
    parts,
    picture,
)
from collected_text import (
    changelog,
    data_licences,
    how_to_cite,
    issue_forms,
    ledger,
)
from sphinx.errors import ExtensionError
from sphinx.util.inspect import stringify_signature

import locbook

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
    "locbook.torch",
    "locbook.plotting",
    "locbook.notebook",
    "locbook.exercises",
)


def contents(book=BOOK):
    """MyST list of all planned chapters; one that the table of contents lacks is marked as coming."""
    pages = chapter_pages(book)
    lines = []
    for number, part in enumerate(parts(book)):
        lines += [f"### {ROMAN[number]}. {part['title']}", ""]
        for chapter in part["chapters"]:
            _, page, title, written = pages[chapter]
            text = (
                f"[{title}]({page}.ipynb)"
                if written
                else f"{title} *(coming)*"
            )
            lines.append(f"{chapter}. {text}")
        lines.append("")
    return "\n".join(lines)


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
    """The module of a group, so that one can refer to it, and its text."""
    name = f"locbook.{group}"
    if importlib.util.find_spec(name) is None:
        return []
    text = inspect.getdoc(importlib.import_module(name)) or ""
    return ["```{eval-rst}", f".. py:module:: {name}", "", text, "```"]


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
        return f".. autoclass:: {name}{_call(item)}\n   :members:"
    if callable(item):
        return f".. autofunction:: {name}"
    module, _, short = name.rpartition(".")
    return f".. py:data:: {short}\n   :module: {module}\n\n   {_documentation(item)}"


def _call(item):
    """How a class is called, where its ``__new__`` only hands on to another class."""
    if item is not locbook.Kernel:
        return ""  # autodoc finds it
    signature = inspect.signature(type(item(profile="uniform")).__init__)
    _, *parameters = signature.parameters.values()
    return stringify_signature(signature.replace(parameters=parameters))


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


PLACEHOLDER = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def text_of(name, app, docname):
    """The generated text of a name that a page asks for."""
    texts = {
        "chapters": contents,
        "map": lambda: f"```{{raw}} html\n{picture()}\n```",
        "map in words": in_words,
        "literature": literature,
        "ledger": ledger,
        **benchmark_page.texts(),
        "changelog": changelog,
        "how to cite": how_to_cite,
        "data licences": lambda: data_licences(_repository(app)),
        "issue forms": lambda: issue_forms(_repository(app)),
        "public names": api_overview,
        "three forms": three_forms.table,
        "documentation": lambda: api_page(docname.rpartition("/")[2]),
    }
    if name not in texts:
        raise ExtensionError(
            f"{docname}: there is no generated text {name!r}, only {', '.join(texts)}"
        )
    return texts[name]()


def _repository(app):
    return app.config.html_theme_options["repository_url"]


def fill_in(app, docname, source):
    """Put the generated texts of a page in the places that its source marks."""
    source[0] = PLACEHOLDER.sub(
        lambda mark: text_of(mark[1], app, docname), source[0]
    )


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
        if PLACEHOLDER.search(_source(env, docname))
    ]


def _source(env, docname):
    return Path(env.doc2path(docname)).read_text(encoding="utf-8")


def setup(app):
    app.connect("env-before-read-docs", check_pages)
    app.connect("source-read", fill_in)
    app.connect("env-get-outdated", always_outdated)
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
