"""What a chapter needs of the notebook, without the book's toolchain.

A chapter runs where the toolchain is not installed (Colab, a plain Jupyter), so nothing here
imports it; IPython itself is imported where it is used.
"""

from typing import Any

__all__ = ["glue"]

# myst-nb looks for outputs of this kind when the text asks for a glued value.
_RECORD = "application/papermill.record/"


def glue(name: str, value: Any) -> None:
    """Record a value, so that the text of the book can quote it.

    The text quotes it by ``{glue:text}`name:.3f```; from another chapter the file's name goes
    in front, ``{glue:text}`03_local_mean.ipynb::name:.3f```. In a notebook nothing is shown.

    Parameters
    ----------
    name : str
        Name of the value, unique in its chapter.
    value : object
        A number or a string. A NumPy scalar is recorded as the Python number it holds.

    Examples
    --------
    >>> glue("slope", 0.25)  # doctest: +SKIP
    """
    from IPython.display import display

    if hasattr(value, "item"):
        value = value.item()  # repr(np.float64(0.25)) is "np.float64(0.25)", no text for a reader
    metadata = {"scrapbook": {"name": name, "mime_prefix": _RECORD}}
    display({_RECORD + "text/plain": repr(value)}, raw=True, metadata=metadata)
