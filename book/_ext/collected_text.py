"""Text that stands elsewhere in the project and is shown in the book as well.

The equivalence ledger is gathered from the chapters, the changelog, the way to cite and the
licences of the data from their files: each is written in one place only.
"""

import re
from pathlib import Path

import nbformat
import yaml
from book_map import BOOK, chapter_pages
from sphinx.errors import ExtensionError

LEDGER = ("space", "kernel", "samples", "values", "normalised", "iterated")


def written_chapters(book=BOOK):
    """``{chapter: (page, title)}`` of the chapters that the table of contents has."""
    return {
        chapter: (page, title)
        for chapter, (_, page, title, written) in chapter_pages(book).items()
        if written
    }


def ledger_rows(notebook: Path) -> dict[str, str]:
    """The table under "As a local mean" of a chapter: what each line says."""
    cells = nbformat.read(notebook, as_version=4).cells
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    section = re.search(
        r"^## As a local mean.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    rows = {}
    for line in section.group(0).splitlines() if section else ():
        # A pipe that is escaped belongs to the text.
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 2 and cells[0] in LEDGER:
            rows.setdefault(cells[0], cells[1])
    return rows


def ledger(book=BOOK):
    """MyST table of all written chapters, one a row."""
    lines = [
        f"| chapter | {' | '.join(LEDGER)} |",
        "|---" * (len(LEDGER) + 1) + "|",
    ]
    for chapter, (page, title) in written_chapters(book).items():
        rows = ledger_rows(book / f"{page}.ipynb")
        missing = [entry for entry in LEDGER if entry not in rows]
        if missing:
            raise ExtensionError(
                f"{page}.ipynb: the table 'As a local mean' lacks {', '.join(missing)}"
            )
        told = " | ".join(rows[entry] for entry in LEDGER)
        lines.append(f"| [{chapter}. {title}]({page}.ipynb) | {told} |")
    return "\n".join(lines)


def changelog(book=BOOK):
    """``CHANGELOG.md`` below its title."""
    text = (book.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.partition("\n")[2].strip()


def bibtex_of_the_book(book=BOOK):
    """``CITATION.cff`` as an entry of BibTeX."""
    citation = yaml.safe_load(
        (book.parent / "CITATION.cff").read_text("utf-8")
    )
    authors = " and ".join(
        f"{{{author['name']}}}"
        if "name" in author
        else f"{author['family-names']}, {author['given-names']}"
        for author in citation["authors"]
    )
    return "\n".join(
        [
            "@software{locbook,",
            f"  author = {{{authors}}},",
            f"  title = {{{citation['title']}}},",
            f"  version = {{{citation['version']}}},",
            f"  url = {{{citation['repository-code']}}}",
            "}",
        ]
    )


def bibtex_of_the_paper(book=BOOK):
    """The first entry of the bibliography."""
    text = (book / "references.bib").read_text(encoding="utf-8")
    return re.match(r"@\w+\{.*?\n\}", text, re.DOTALL).group(0)


def how_to_cite(book=BOOK):
    """MyST: both entries, to be copied."""
    return "\n".join(
        [
            "The book and its library:",
            "",
            "```bibtex",
            bibtex_of_the_book(book),
            "```",
            "",
            "The theory:",
            "",
            "```bibtex",
            bibtex_of_the_paper(book),
            "```",
        ]
    )


def data_licences(repository):
    """The table of ``locbook/datasets/README.md``; its links lead into the repository."""
    import locbook.datasets

    folder = Path(locbook.datasets.__file__).parent
    text = (folder / "README.md").read_text(encoding="utf-8")
    table = "\n".join(
        line for line in text.splitlines() if line.startswith("|")
    )
    return table.replace(
        "](data/", f"]({repository}/blob/main/locbook/datasets/data/"
    )


def issue_forms(repository, book=BOOK):
    """MyST list of the forms in ``.github/ISSUE_TEMPLATE``, each a link that opens it."""
    lines = []
    for path in sorted((book.parent / ".github/ISSUE_TEMPLATE").glob("*.yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "name" in form:
            address = f"{repository}/issues/new?template={path.name}"
            lines.append(
                f"- [{form['name']}]({address}): {form['description']}"
            )
    return "\n".join(lines)
