"""Exercises: open as shipped, right for right answers, not yet for wrong ones, and clear about why."""

import base64
import pkgutil
import re

import numpy as np
import pytest

import locbook.exercises as exercises
from locbook.exercises import Choice, Function, Number, check
from locbook.exercises._check import find
from tools import chapter_scripts
from tools.checks.exercises import exercise_cells, inject

MODULES = [m.name for m in pkgutil.iter_modules(exercises.__path__) if not m.name.startswith("_")]
KEYS = [
    f"{module}.{name}"
    for module in MODULES
    for name in __import__(f"locbook.exercises.{module}", fromlist=["x"]).EXERCISES
]
CELLS = {key: source for script in chapter_scripts() for key, source in exercise_cells(script).items()}


def right_answer(exercise):
    if isinstance(exercise, Number):
        return exercise.compute()
    return exercise.right() if isinstance(exercise, Choice) else exercise.reference


def wrong_answers(exercise):
    if isinstance(exercise, Number):
        return [exercise.compute() + 3 * exercise.tolerance, float("nan"), float("inf"), "two", None, True]
    if isinstance(exercise, Choice):
        return [name for name, _ in exercise.options if name != exercise.right()] + ["z", 1]
    return [lambda *arguments: np.asarray(exercise.reference(*arguments)) + 1.0, lambda: None, 3.0]


def test_every_key_is_asked_in_a_chapter():
    assert sorted(CELLS) == sorted(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_open_right_and_wrong(key):
    exercise, source = find(key), CELLS[key]
    assert inject(source, ...).ok is None
    assert inject(source, right_answer(exercise)).ok is True
    for wrong in wrong_answers(exercise):
        result = inject(source, wrong)
        assert result.ok is False
        assert repr(result).startswith("Not yet")


@pytest.mark.parametrize("key", KEYS)
def test_page_holds_no_bare_answer(key):
    exercise, form = find(key), check(key, ...)._repr_html_()
    if isinstance(exercise, Number):
        encoded = re.search(r'data-right="([^"]+)"', form).group(1)
        value, tolerance = base64.b64decode(encoded).decode()[::-1].split("|")
        assert abs(float(value) - exercise.compute()) < float(tolerance) == exercise.tolerance
    else:
        assert "data-right" in form or isinstance(exercise, Function)


def test_a_choice_takes_any_case():
    kind = Choice([("a", "one"), ("b", "two")], lambda: "b")
    assert kind.judge(" B ") == (True, "")


def test_a_number_takes_numpy_scalars_and_arrays_of_one():
    kind = Number(lambda: 0.5)
    assert kind.judge(np.float32(0.5))[0]
    assert kind.judge(np.array(0.5))[0]
    assert kind.judge(np.array([0.5]))[0]
    assert not kind.judge(np.array([0.5, 0.5]))[0]


def test_a_function_that_fails_is_told_on_which_input():
    kind = Function(lambda x: x + 1.0, lambda rng: (float(rng.integers(10)),), trials=5)
    assert kind.judge(lambda x: x + 1.0) == (True, "")
    message = kind.judge(lambda x: x)[1]
    assert re.match(r"on input 1 of 5, answer\(\d\.0\), it returned \d\.0 where \d+\.0 is right", message)
    assert "raised ZeroDivisionError" in kind.judge(lambda x: x / 0)[1]
    assert "shape (2,) where () is right" in kind.judge(lambda x: [x, x])[1]
    assert "no number" in kind.judge(lambda x: "one")[1]


def test_a_function_cannot_change_the_arguments_of_the_reference():
    kind = Function(lambda x: x.sum(), lambda rng: (rng.normal(size=3),))

    def spoils(x):
        total = x.sum()
        x[:] = 0.0
        return total

    assert kind.judge(spoils)[0]


@pytest.mark.parametrize("key", ["local_mean.no_such", "no_such.x", "_kinds.x", "local_mean", "", "a b.c"])
def test_an_unknown_key_is_named(key):
    with pytest.raises(ValueError, match="key: got"):
        check(key, 1.0)
