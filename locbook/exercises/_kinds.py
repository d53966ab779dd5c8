"""The three kinds of exercise: a number, a choice, a function.

Each kind has ``judge(answer)``, which gives ``(right, message)``, and ``form()``, the HTML of
its input in a static page. The right answer stands in the page lightly encoded: not hidden
from someone who looks for it, but not read at a glance either.
"""

import base64
import copy
import html
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def encode(text: str) -> str:
    """The text reversed, in base64: what the script in the page undoes."""
    return base64.b64encode(text[::-1].encode("ascii")).decode("ascii")


@dataclass(frozen=True)
class Number:
    """An answer that is a number.

    Parameters
    ----------
    compute : callable
        Returns the right answer, so that the package holds how it comes about.
    tolerance : float
        How far from it, in absolute terms, an answer may lie.
    hint : str
        Said after a wrong answer.
    """

    compute: Callable[[], float]
    tolerance: float = 1e-3
    hint: str = ""

    def judge(self, answer: Any) -> tuple[bool, str]:
        """Compare a number with the right one."""
        if isinstance(answer, np.ndarray) and answer.size == 1:
            answer = answer.item()  # one prediction, as the library returns it
        if isinstance(answer, bool | np.bool_) or not isinstance(answer, numbers.Real):
            return False, f"the answer is one number, you gave {_describe(answer)}"
        return bool(abs(float(answer) - float(self.compute())) <= self.tolerance), self.hint

    def form(self) -> str:
        """A text input that says right or not yet while one types."""
        right = encode(f"{float(self.compute()):.10g}|{self.tolerance:.10g}")
        return (
            '<label>Your answer, a number: <input type="text" inputmode="decimal" autocomplete="off" size="10" '
            f'data-right="{right}" data-hint="{html.escape(self.hint)}" '
            f'oninput="{html.escape(_JUDGE_NUMBER)}"></label>'
        )


@dataclass(frozen=True)
class Choice:
    """An answer that is one of several.

    Parameters
    ----------
    options : sequence of (str, str)
        The name that a reader types in a notebook, and what it stands for.
    right : callable
        Returns the name of the right option.
    hint : str
        Said after a wrong answer.
    """

    options: Sequence[tuple[str, str]]
    right: Callable[[], str]
    hint: str = ""

    def judge(self, answer: Any) -> tuple[bool, str]:
        """Compare a name, or the text beside it, with the right one."""
        by_word = {word.lower(): name for name, text in self.options for word in (name, text)}
        if not isinstance(answer, str) or answer.strip().lower() not in by_word:
            allowed = ", ".join(f"{name!r} ({text})" for name, text in self.options)
            return False, f"the answer is one of {allowed}; you gave {_describe(answer)}"
        return by_word[answer.strip().lower()] == self.right(), self.hint

    def form(self) -> str:
        """Radio buttons; they share a name inside their own form, so that pages may hold many."""
        right = encode(self.right())
        radios = "".join(
            f'<label style="display: block"><input type="radio" name="answer" value="{html.escape(name)}" '
            f'data-right="{right}" data-hint="{html.escape(self.hint)}" onchange="{html.escape(_JUDGE_CHOICE)}"> '
            f"({html.escape(name)}) {html.escape(text)}</label>"
            for name, text in self.options
        )
        return (
            f'<form onsubmit="return false"><fieldset><legend>Your answer</legend>{radios}</fieldset></form>'
        )


@dataclass(frozen=True)
class Function:
    """An answer that is a function, held against a reference on random inputs.

    Parameters
    ----------
    reference : callable
        What the reader's function must agree with.
    draw : callable
        Takes a ``numpy.random.Generator`` and returns the tuple of arguments of one trial.
    trials : int
        How many inputs are drawn.
    rtol, atol : float
        Tolerances of the comparison.
    seed : int
        Seed of the generator: everyone is asked the same.
    hint : str
        Said after a wrong answer.
    """

    reference: Callable[..., Any]
    draw: Callable[[np.random.Generator], tuple]
    trials: int = 20
    rtol: float = 1e-7
    atol: float = 1e-9
    seed: int = field(default=0)
    hint: str = ""

    def judge(self, answer: Any) -> tuple[bool, str]:
        """Call both functions on the same inputs and say where they part."""
        if not callable(answer):
            return False, f"the answer is a function, you gave {_describe(answer)}"
        rng = np.random.default_rng(self.seed)
        for trial in range(1, self.trials + 1):
            arguments = self.draw(rng)
            fault = self._fault_on(answer, arguments)
            if fault:
                where = f"on input {trial} of {self.trials}, {_call(arguments)}, {fault}"
                return False, f"{where}. {self.hint}".strip()
        return True, ""

    def _fault_on(self, answer, arguments):
        expected = np.asarray(self.reference(*copy.deepcopy(arguments)))
        try:
            got = np.asarray(answer(*copy.deepcopy(arguments)))
        except Exception as error:  # the reader's code may raise anything; say what and where
            return f"it raised {type(error).__name__}: {error}"
        if got.shape != expected.shape:
            return f"it returned shape {got.shape} where {expected.shape} is right"
        try:
            agree = np.allclose(got, expected, rtol=self.rtol, atol=self.atol, equal_nan=True)
        except TypeError:
            return f"it returned {_describe(got)}, which is no number"
        return "" if agree else f"it returned {_describe(got)} where {_describe(expected)} is right"

    def form(self) -> str:
        """A page cannot run Python: say where the exercise is done."""
        return (
            "<p>Write this function in the notebook: it is checked there, on Binder or on your machine.</p>"
        )


def _describe(value: Any) -> str:
    """A value on one short line."""
    if isinstance(value, np.ndarray | np.generic):
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            text = " ".join(str(value).split())
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _call(arguments: tuple) -> str:
    return f"answer({', '.join(_describe(argument) for argument in arguments)})"


def is_open(answer: Any) -> bool:
    """Whether the reader has left the ``...`` in its place."""
    return answer is ...


# Both scripts live in an attribute: no network, no names left behind in the page.
_SAY = (
    "box.querySelector('output').textContent=empty?'':right?'Right.':"
    "('Not yet. '+(this.dataset.hint||'')).trim()"
)
_DECODE = "atob(this.dataset.right).split('').reverse().join('')"
_JUDGE_NUMBER = (
    f"var box=this.closest('.lb-check'),key={_DECODE}.split('|'),text=this.value.trim().replace(',','.'),"
    "empty=text==='',right=!empty&&Math.abs(Number(text)-key[0])<=Number(key[1]);" + _SAY
)
_JUDGE_CHOICE = f"var box=this.closest('.lb-check'),empty=false,right=this.value==={_DECODE};" + _SAY
