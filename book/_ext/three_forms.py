"""The table of the three forms of each reduction: processor, card, NumPy twin, and the tests that hold them together.

It follows from the sources: the public names of both packages, and the test functions that call them. A reduction
without a form or a test stops the build.
"""

import ast
import re
from pathlib import Path

from sphinx.errors import ExtensionError

import locbook

ROOT = Path(locbook.__file__).resolve().parents[1]
ENGINE = ROOT / "locbook" / "engine"
# Where the tests are looked for, and how a test of each form calls the function.
ON_PROCESSOR = (
    ("tests/engine", "tests/foundations"),
    r"(?:engine\.|lb\.local_){}\(",
)
ON_CARD = (("tests/cuda/simulated",), r"cuda\.{}\(")
# Single weights have one twin, which writes them all down.
TWINS = {
    "dense_weights": "weights",
    "normalized_weights": "weights",
    "self_weights": "weights",
}


def _public(package):
    """The names in ``__all__``, in the order of the file, that are functions of a module of the package."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    names = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    functions = _functions(package / "reductions.py") | _functions(
        package / "gradients.py"
    )
    return [name for name in names if name in functions]


def _functions(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


def _test(folders, call, name, twin):
    """The first test that calls the function beside its twin, else the first that calls it."""
    wanted, beside = re.compile(call.format(name)), f"reference.{twin}("
    found = []
    for file in sorted(
        f for folder in folders for f in (ROOT / folder).glob("test_*.py")
    ):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith(
                "test_"
            ):
                source = ast.get_source_segment(text, node)
                if wanted.search(source):
                    label = (
                        f"`{file.relative_to(ROOT).as_posix()}` `{node.name}`"
                    )
                    found.append(
                        (
                            beside not in source,
                            "twin" not in file.name + node.name,
                            label,
                        )
                    )
    if not found:
        raise ExtensionError(
            f"{name}: no test calls it in {', '.join(folders)}"
        )
    return min(found, key=lambda entry: entry[:2])[2]


def table():
    """MyST."""
    on_processor, on_card = _public(ENGINE), _public(ENGINE / "cuda")
    twins = _functions(ENGINE / "reference.py")
    lines = [
        "| reduction | NumPy twin | tests: processor, card |",
        "|---|---|---|",
    ]
    for name in on_processor:
        twin = TWINS.get(name, name)
        if name == "monomials":  # a table of exponents, no reduction
            continue
        if name not in on_card or twin not in twins:
            raise ExtensionError(
                f"{name}: it lacks a form on a card, or a twin"
            )
        tests = ", ".join(
            _test(*where, name, twin) for where in (ON_PROCESSOR, ON_CARD)
        )
        lines.append(f"| `{name}` | `{twin}` | {tests} |")
    return "\n".join(lines)
