"""Exercises of a chapter: each ships unanswered, has a key, and a folded solution that checks as right."""

import ast
import re
from pathlib import Path

import jupytext
import nbformat

from locbook.exercises import Check, check
from locbook.exercises._check import find

BLOCK = re.compile(
    r"^:{3,}\{(?P<kind>exercise|solution-start)\}(?P<title>.*)\n(?P<options>(?::.*\n)*)", re.MULTILINE
)

STORED = {"exercise": "Not answered yet", "solution": "Right."}


def label_of(key: str) -> str:
    """The label of an exercise: ``local_mean.far_query`` is ``ex-local-mean-far-query``."""
    return "ex-" + re.sub(r"[._]", "-", key)


def exercise_faults(script: Path) -> list[str]:
    """Hold the exercise blocks of a chapter against its cells and the answers in the package."""
    cells = jupytext.read(script).cells
    text = "\n".join(cell.source + "\n" for cell in cells if cell.cell_type == "markdown")
    blocks = list(BLOCK.finditer(text))
    asked = [_option(b["options"], "label") for b in blocks if b["kind"] == "exercise"]
    solved = {b["title"].strip(): b["options"] for b in blocks if b["kind"] == "solution-start"}
    shipped = _cells_by_label(cells, "exercise")
    answered = _cells_by_label(cells, "solution")
    faults = [
        f"there is no exercise block for {label}" for label in sorted({*shipped, *answered} - set(asked))
    ]
    for label in asked:
        if label not in shipped:
            faults.append(f"{label}: no cell tagged exercise checks it")
        elif "answer = ..." not in shipped[label][1]:
            faults.append(f"{label}: the exercise must ship with 'answer = ...'")
        if label not in answered:
            faults.append(f"{label}: no cell tagged solution checks it")
        if ":class: dropdown" not in solved.get(label, ""):
            faults.append(f"{label}: there is no folded solution (solution-start with :class: dropdown)")
    for key, _ in (*shipped.values(), *answered.values()):
        try:
            find(key)
        except ValueError as error:
            faults.append(str(error))
    return [f"{script.name}: {fault}" for fault in faults]


def stored_answer_faults(notebook: Path) -> list[str]:
    """What the cells say in the stored notebook: exercises are open, solutions are right."""
    faults = []
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        for tag, words in STORED.items():
            if cell.cell_type == "code" and tag in cell.metadata.get("tags", []):
                said = cell.outputs[-1].get("data", {}).get("text/plain", "") if cell.outputs else ""
                if not said.startswith(words):
                    faults.append(
                        f"{notebook.name}: cell {number}, tagged {tag}, says {said!r}, not {words!r}"
                    )
    return faults


def inject(source: str, answer: object) -> Check:
    """Run an exercise cell with an answer in place of its ``...``."""
    names = {"check": check, "injected": answer}
    *body, last = ast.parse(source.replace("answer = ...", "answer = injected")).body
    exec(compile(ast.Module(body, []), "<exercise>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<exercise>", "eval"), names)


def exercise_cells(script: Path) -> dict[str, str]:
    """``{key: source}`` of the cells that ask an exercise."""
    return dict(_cells_by_label(jupytext.read(script).cells, "exercise").values())


def _option(options, name):
    found = re.search(rf"^:{name}: *(.*)$", options, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _cells_by_label(cells, tag):
    """``{label: (key, source)}`` of the cells with a tag that end in a check."""
    found = {}
    for cell in cells:
        if cell.cell_type == "code" and tag in cell.metadata.get("tags", []):
            for key in re.findall(r"""check\(["']([\w.]+)["']""", cell.source):
                found[label_of(key)] = (key, cell.source)
    return found
