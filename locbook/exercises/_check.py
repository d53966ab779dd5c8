"""``check(key, answer)``: says whether an answer is right."""

import html
import importlib
import importlib.util
from typing import Any

from locbook.exercises._kinds import Choice, Function, Number, is_open


class Check:
    """What :func:`check` found; a notebook shows it.

    Attributes
    ----------
    key : str
        The exercise.
    ok : bool or None
        True if right, False if not, None while nothing is answered.
    message : str
        The same in words.
    """

    def __init__(self, key: str, ok: bool | None, message: str, form: str = ""):
        self.key = key
        self.ok = ok
        self.message = message
        self._form = form

    def __repr__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        name = html.escape(self.key)
        if self.ok is None:
            # <output> is a live region: a screen reader hears what it says.
            return f'<div class="lb-check" data-key="{name}">{self._form} <output></output></div>'
        return f'<div class="lb-check" data-key="{name}"><p>{html.escape(self.message)}</p></div>'


def check(key: str, answer: Any) -> Check:
    """Say whether ``answer`` answers the exercise ``key``.

    Parameters
    ----------
    key : str
        ``"module.name"``: the chapter's module in ``locbook.exercises`` and the exercise's name.
    answer : object
        A number, the name of an option, or a function, as the exercise asks. The ``...`` that an
        exercise ships with is no answer yet.

    Returns
    -------
    Check
        Shown as text in a kernel. While nothing is answered, its HTML is an input that checks
        what one types in the page.

    Raises
    ------
    ValueError
        If no exercise has this key.

    Examples
    --------
    >>> check("local_mean.by_hand", ...)
    Not answered yet: put your answer in place of the ... and run the cell.
    """
    exercise = find(key)
    if is_open(answer):
        message = "Not answered yet: put your answer in place of the ... and run the cell."
        return Check(key, None, message, exercise.form())
    right, remark = exercise.judge(answer)
    if right:
        return Check(key, True, "Right.")
    return Check(key, False, f"Not yet: {remark}" if remark else "Not yet.")


def find(key: str) -> Number | Choice | Function:
    """The exercise of a key."""
    module, _, name = key.partition(".")
    path = f"locbook.exercises.{module}"
    if not module.isidentifier() or module.startswith("_") or importlib.util.find_spec(path) is None:
        raise ValueError(f"key: got {key!r}, and there is no module {path}")
    exercises = importlib.import_module(path).EXERCISES
    if name not in exercises:
        raise ValueError(f"key: got {key!r}, and {path} has {', '.join(sorted(exercises))}")
    return exercises[name]
