"""Imports go one way: book -> models -> engine -> kernels -> the checks at the border."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "locbook"
FILES = sorted(p for p in ROOT.rglob("*.py") if "__pycache__" not in p.parts)

#: Layer of each part of the library, the lowest first; a part that is not named is a model.
LAYERS = {"_validation": 0, "_lazy": 0, "kernels": 1, "engine": 2}
MODELS = 3
#: Parts that stand beside the models: data, figures, exercises. Nothing below the book needs them.
BESIDE = {"datasets", "plotting", "notebook", "exercises"}

#: Imports of another part of the library inside a function, each with its reason.
AT_CALL_TIME = {
    # a kernel asks the engine for dense weights, and only when called
    ("kernels/base.py", "engine"): {"Kernel.__call__", "Kernel.log"},
}


def part_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def layer(part: str) -> int:
    return LAYERS.get(part, MODELS)


def imports(path: Path):
    """(part of the library that is imported, where: None at module level, else the function's name)."""
    package = list(path.relative_to(ROOT).parts[:-1])

    def visit(node, where, inside_class):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom):
                names = [alias.name for alias in child.names]
                if child.level:
                    base = package[: len(package) - child.level + 1]
                    module = [*base, *(child.module.split(".") if child.module else [])]
                    # ``from .. import engine`` names its parts
                    yield from (
                        (module[0] if module else name, where) for name in (names if not module else [""])
                    )
                elif child.module.split(".")[0] == "locbook":
                    rest = child.module.split(".")[1:]
                    yield from ((rest[0] if rest else name, where) for name in (names if not rest else [""]))
            elif isinstance(child, ast.Import):
                for alias in child.names:
                    pieces = alias.name.split(".")
                    if pieces[0] == "locbook":
                        yield (pieces[1] if len(pieces) > 1 else "", where)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from visit(child, f"{inside_class}{child.name}", inside_class)
            elif isinstance(child, ast.ClassDef):
                yield from visit(child, where, f"{child.name}.")
            else:
                yield from visit(child, where, inside_class)

    return list(visit(ast.parse(path.read_text()), None, ""))


def wrong(part: str, other: str) -> bool:
    """Whether ``part`` may not import ``other`` at module level."""
    if other == part:
        return False
    if part in BESIDE:
        return False  # whatever stands beside may use the library
    return (
        other in BESIDE
        or layer(other) > layer(part)
        or (layer(part) < MODELS and layer(other) == layer(part))
    )


def test_there_is_something_to_look_at():
    parts = {part_of(path) for path in FILES}
    assert {"kernels", "engine", "_validation", "foundations", "classical"} <= parts
    found = {(part_of(path), part) for path in FILES for part, _ in imports(path)}
    assert ("engine", "kernels") in found
    assert ("kernels", "_validation") in found
    assert ("foundations", "engine") in found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    if path == ROOT / "__init__.py":
        return  # the front door shows all
    part = part_of(path)
    bad = [other for other, where in imports(path) if where is None and wrong(part, other)]
    assert not bad, f"{path.relative_to(ROOT)} imports {bad}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_at_call_time_are_known_by_name(path):
    name = path.relative_to(ROOT).as_posix()
    for part, where in imports(path):
        if where is not None and part != part_of(path) and part_of(path) not in BESIDE:
            assert where in AT_CALL_TIME.get((name, part), ()), f"{name}: {where} imports {part} when called"


def test_each_exception_is_still_needed():
    for (name, part), functions in AT_CALL_TIME.items():
        found = {where for other, where in imports(ROOT / name) if other == part}
        assert functions == found


def test_models_do_not_import_each_other_in_a_ring():
    edges = {}
    for path in FILES:
        part = part_of(path)
        if layer(part) == MODELS and part not in BESIDE and part != "__init__":
            edges.setdefault(part, set()).update(
                other for other, _ in imports(path) if layer(other) == MODELS and other != part
            )
    seen = set()

    def walk(part, road):
        assert part not in road, f"ring: {' -> '.join([*road, part])}"
        if part not in seen:
            for other in edges.get(part, ()):
                walk(other, [*road, part])
            seen.add(part)

    for part in edges:
        walk(part, [])


@pytest.mark.parametrize(
    ("source", "part", "forbidden"),
    [
        ("from ..engine import mean", "kernels", "engine"),
        ("from .. import foundations", "engine", "foundations"),
        ("import locbook.datasets", "kernels", "datasets"),
        ("from locbook.plotting import line", "foundations", "plotting"),
        ("from ..kernels.base import Kernel", "kernels", None),
        ("from .._validation import as_real", "kernels", None),
        ("from ..kernels import Kernel", "engine", None),
        ("def f():\n    from ..engine import mean", "kernels", None),
    ],
)
def test_the_test_sees_what_is_forbidden(tmp_path, monkeypatch, source, part, forbidden):
    folder = tmp_path / part
    folder.mkdir()
    path = folder / "new.py"
    path.write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    bad = [other for other, where in imports(path) if where is None and wrong(part, other)]
    assert bad == ([forbidden] if forbidden else [])


def test_no_star_imports_below_the_front_door():
    for path in FILES:
        if path == ROOT / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), path
