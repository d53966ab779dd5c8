"""Every chapter passes every check."""

from functools import cache

import pytest

from tests import background
from tools import chapter_notebooks, chapter_scripts
from tools.checks.budget import budget_faults
from tools.checks.exercises import exercise_faults, stored_answer_faults
from tools.checks.figures import figure_faults
from tools.checks.outputs import output_faults
from tools.checks.pairs import pair_faults
from tools.checks.standalone import standalone_faults
from tools.checks.template import template_faults

each_script = pytest.mark.parametrize("script", chapter_scripts(), ids=lambda path: path.stem)
each_notebook = pytest.mark.parametrize("notebook", chapter_notebooks(), ids=lambda path: path.stem)


def test_there_are_chapters_in_pairs():
    assert chapter_scripts()
    assert [p.with_suffix(".py") for p in chapter_notebooks()] == chapter_scripts()


@each_script
@pytest.mark.parametrize(
    "check",
    [pair_faults, template_faults, exercise_faults, standalone_faults],
    ids=lambda check: check.__name__,
)
def test_text(script, check):
    assert check(script) == []


@each_notebook
@pytest.mark.parametrize(
    "check", [output_faults, figure_faults, stored_answer_faults], ids=lambda check: check.__name__
)
def test_stored_notebook(notebook, check):
    assert check(notebook) == []


@cache
def budgets():
    """Each chapter in a process of its own, beside all other tests."""
    return {script: background.submit(budget_faults, script) for script in chapter_scripts()}


@background.waits_for(budgets)
@each_script
def test_time_and_memory(script):
    assert budgets()[script].result() == []
