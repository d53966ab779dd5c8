"""Exercises that check themselves: by a call in a notebook, by an input in the static page.

A chapter's answers live in the module of its name (``local_mean`` for chapter 3), in a
dictionary ``EXERCISES`` from the exercise's name to one of three kinds: :class:`Number`,
:class:`Choice`, :class:`Function`. The key of an exercise is ``"module.name"``.
"""

from locbook.exercises._check import Check, check
from locbook.exercises._kinds import Choice, Function, Number

__all__ = ["Check", "Choice", "Function", "Number", "check"]
