"""The form of a chapter: its parts, in order. ``CONTRIBUTING.md`` says what each is for."""

import re
from pathlib import Path

import jupytext

from tools.checks.standalone import MAX_LINES

# A heading may go on after a colon: "## The experiment: how much do households spend?"
SECTIONS = (
    "The picture",
    "The mathematics",
    "From scratch",
    "The library",
    "The outside check",
    "The experiment",
    "Where it breaks",
    "As a local mean",
    "Exercises",
    "Summary",
    "Further reading",
)
CARD = ("**You will be able to**", "**You need**", "**Time**", "**Memory**")
LEDGER = ("space", "kernel", "samples", "values", "normalised", "iterated")
N_EXERCISES = 3
N_SUMMARY_LINES = 5


def template_faults(script: Path) -> list[str]:
    """Compare a chapter with the template."""
    cells = jupytext.read(script).cells
    text = "\n\n".join(cell.source if cell.cell_type == "markdown" else "" for cell in cells)
    sections = _sections(text)
    faults = [f"cell {number} is empty" for number, cell in enumerate(cells) if not cell.source.strip()]
    faults += _opening_faults(script, cells, text.lstrip())
    faults += _order_faults(list(sections))
    faults += _content_faults(cells, sections)
    return [f"{script.name}: {fault}" for fault in faults]


def _sections(text):
    """``{heading: text under it}`` of the second level, in order."""
    parts = re.split(r"^## +(.+)$", text, flags=re.MULTILINE)
    return {
        heading.partition(":")[0].strip(): body
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def _opening_faults(script, cells, text):
    faults = []
    number = int(script.name[:2])
    opening = re.match(rf"\(ch-[\w-]+\)=\n# {number}\. .+\n\n(?P<claim>[^\n:#(][^\n]*)", text)
    if not opening:
        faults.append(
            f"the chapter must open with '(ch-...)=', '# {number}. Title', and a sentence that claims something"
        )
    card = re.search(
        r"^:::\{admonition\} In this chapter\n:class: lb-card\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL
    )
    if not card:
        return [*faults, "there is no card (:::{admonition} In this chapter, :class: lb-card)"]
    faults += [f"the card lacks {entry}" for entry in CARD if entry not in card.group(1)]
    verbs = len(re.findall(r"^- ", card.group(1), re.MULTILINE))
    if not 3 <= verbs <= 5:
        faults.append(f"the card names {verbs} things that one will be able to do, allowed are 3 to 5")
    code = [cell for cell in cells if cell.cell_type == "code"]
    if not code or "setup" not in code[0].metadata.get("tags", []):
        faults.append("the first code cell must be tagged setup")
    return faults


def _order_faults(headings):
    faults = [f"the section '## {section}' is missing" for section in SECTIONS if section not in headings]
    found = [heading for heading in headings if heading in SECTIONS]
    if found != [section for section in SECTIONS if section in found]:
        faults.append(f"the sections are out of order: {', '.join(found)}")
    faults += [f"'## {h}' is no section of the template; use ###" for h in headings if h not in SECTIONS]
    return faults


def _content_faults(cells, sections):
    faults = []
    exercises = re.findall(r"^:{3,}\{exercise\}", sections.get("Exercises", ""), re.MULTILINE)
    if len(exercises) != N_EXERCISES:
        faults.append(f"there are {len(exercises)} exercises, {N_EXERCISES} are asked for")
    lines = re.findall(r"^(?:[-*]|\d+\.) ", sections.get("Summary", ""), re.MULTILINE)
    if len(lines) != N_SUMMARY_LINES:
        faults.append(f"the summary has {len(lines)} lines, {N_SUMMARY_LINES} are asked for")
    reading = sections.get("Further reading", "")
    if "{cite" not in reading:
        faults.append("further reading cites nothing")
    if not re.search(r"^:{3,}\{dropdown\} For teachers$", reading, re.MULTILINE):
        faults.append("there is no folded note for teachers (:::{dropdown} For teachers) at the end")
    if "|---" not in sections.get("The mathematics", "") or "symbol" not in sections.get(
        "The mathematics", ""
    ):
        faults.append("the mathematics has no table of symbols and variables")
    ledger = sections.get("As a local mean", "").lower()
    faults += [f"the table 'As a local mean' lacks: {entry}" for entry in LEDGER if entry not in ledger]
    return faults + _from_scratch_faults(cells)


def _from_scratch_faults(cells):
    """Between the headings 'From scratch' and the next there is a standalone cell without the library."""
    inside, found = False, []
    for cell in cells:
        if cell.cell_type == "markdown":
            headings = re.findall(r"^## +(.+)$", cell.source, re.MULTILINE)
            if headings:
                inside = headings[-1].startswith("From scratch")
        elif inside and "standalone" in cell.metadata.get("tags", []):
            found.append(cell.source)
    if not found:
        return [f"'From scratch' has no cell tagged standalone (at most {MAX_LINES} lines of NumPy)"]
    return ["the cell 'From scratch' imports locbook"] if any("locbook" in source for source in found) else []
