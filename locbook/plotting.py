"""One look for all figures, and a figure with a knob that needs neither kernel nor network.

Colours are those of Okabe and Ito, which stay apart for colour-blind readers; line styles
change with them, so that colour is never the only cue. The background is opaque and slightly
off white: it reads on a light page and on a dark one.

Matplotlib is imported where it is used: the models of ``locbook`` do not need it.
"""

import base64
import html
import io
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "LINE_STYLES", "MAX_SLIDER_BYTES", "Slider", "slider", "use_style"]

#: The palette of Okabe and Ito, darkest contrasts first; yellow is left out, it fades on white.
COLOURS: dict[str, str] = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
}

#: The line style that goes with each colour, in the same order.
LINE_STYLES: tuple = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))

#: What a slider may weigh in the page, all frames together.
MAX_SLIDER_BYTES: int = 400_000

_BACKGROUND = "#FCFCFA"
_SLIDER_DPI = 90


def use_style() -> None:
    """Give all figures that follow the book's look.

    Sets Matplotlib's parameters: colours with line styles, cividis for maps, an opaque
    background, fonts that are read on a phone. Call it once, in the setup cell.

    Examples
    --------
    >>> import matplotlib
    >>> with matplotlib.rc_context():
    ...     use_style()
    ...     matplotlib.rcParams["image.cmap"]
    'cividis'
    """
    import matplotlib

    cycler = matplotlib.cycler
    matplotlib.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=list(COLOURS.values())) + cycler(linestyle=list(LINE_STYLES)),
            "image.cmap": "cividis",
            "figure.figsize": (6.4, 3.8),
            "figure.dpi": 110,
            "figure.facecolor": _BACKGROUND,
            "figure.constrained_layout.use": True,
            "axes.facecolor": _BACKGROUND,
            "savefig.facecolor": _BACKGROUND,
            "savefig.dpi": 110,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": "#DDDDDD",
            "grid.linewidth": 0.6,
            "lines.linewidth": 2.0,
            "lines.markersize": 5.0,
            "font.size": 11.0,
            "legend.frameon": False,
        }
    )


class _Frame(NamedTuple):
    """One picture of a slider: its name, what one sees, and the PNG in base64."""

    name: str
    alt: str
    png: str


class Slider:
    """Pictures with a range input that chooses one; shown by a notebook and by static HTML.

    Made by :func:`slider`. The HTML carries its pictures and a line of script; a screen reader
    hears the name and the alternative text of the picture that is shown. Without script the
    picture at the start stays.
    """

    def __init__(self, frames: list[_Frame], label: str, start: int, caption: str):
        self.frames = frames
        self.label = label
        self.start = start
        self.caption = caption

    def __repr__(self) -> str:
        return f"Slider({self.label}: {', '.join(frame.name for frame in self.frames)})"

    def _repr_html_(self) -> str:
        # Hidden pictures are out of sight for screen readers too; <output> announces a change.
        images = "".join(
            f'<img src="data:image/png;base64,{frame.png}" alt="{html.escape(frame.alt)}" '
            f'class="dark-light"{"" if place == self.start else " hidden"}>'
            for place, frame in enumerate(self.frames)
        )
        names = html.escape("|".join(frame.name for frame in self.frames))
        now = html.escape(self.frames[self.start].name)
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure class="lb-slider">{images}'
            f"<div><label>{html.escape(self.label)} "
            f'<input type="range" min="0" max="{len(self.frames) - 1}" step="1" value="{self.start}" '
            f'data-names="{names}" aria-valuetext="{now}" oninput="{html.escape(_SHOW_FRAME)}"></label> '
            f"<output>{now}</output></div>"
            f"<noscript><p>Without JavaScript only one picture is shown: {now}.</p></noscript>"
            f"{caption}</figure>"
        )


_SHOW_FRAME = (
    "var box=this.closest('.lb-slider'),name=this.dataset.names.split('|')[this.value],chosen=+this.value;"
    "box.querySelectorAll('img').forEach(function(image,place){image.hidden=place!==chosen});"
    "box.querySelector('output').textContent=name;this.setAttribute('aria-valuetext',name)"
)


def slider(
    frames: "list[tuple[str, str, Figure]]",
    label: str,
    start: int = 0,
    *,
    caption: str = "",
) -> Slider:
    """Put several figures behind one knob.

    Parameters
    ----------
    frames : list of (name, alt, figure)
        In the order of the knob. ``name`` says where the knob stands (``"h = 0.3"``), ``alt``
        says what one sees, and ``figure`` is a Matplotlib figure. Each figure is drawn once and
        closed.
    label : str
        What the knob turns (``"bandwidth h"``).
    start : int
        The frame that is shown first, and the only one without JavaScript.
    caption : str
        Text under the figure. The book asks for one.

    Returns
    -------
    Slider
        Shown by a notebook as the last value of a cell. The same figures give the same bytes.

    Raises
    ------
    ValueError
        If there are fewer than two frames, a name or an alternative text is empty, a name holds
        ``|``, ``start`` names no frame, or the slider weighs more than ``MAX_SLIDER_BYTES``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> slider([("h = 1", "An empty frame.", Figure()), ("h = 2", "Another.", Figure())], "bandwidth h")
    Slider(bandwidth h: h = 1, h = 2)
    """
    _check_frames(frames, start)
    knob = Slider([_Frame(name, alt, _png(figure)) for name, alt, figure in frames], label, start, caption)
    weight = len(knob._repr_html_())
    if weight > MAX_SLIDER_BYTES:
        raise ValueError(
            f"frames: the slider weighs {weight:,} bytes, allowed are {MAX_SLIDER_BYTES:,}; "
            "use fewer or smaller figures, or fewer colours"
        )
    return knob


def _check_frames(frames, start):
    if len(frames) < 2:
        raise ValueError(f"frames: a slider needs at least 2, got {len(frames)}")
    if not 0 <= start < len(frames):
        raise ValueError(f"start: got {start}, allowed are 0 to {len(frames) - 1}")
    for place, (name, alt, _) in enumerate(frames):
        if not name.strip() or "|" in name:
            raise ValueError(f"frames: frame {place} needs a name without '|', got {name!r}")
        if not alt.strip():
            raise ValueError(f"frames: frame {place} ({name}) needs an alternative text")


def _png(figure) -> str:
    """Draw a figure, close it, and give its PNG in base64, the same bytes every time."""
    from PIL import Image

    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_SLIDER_DPI, metadata={"Software": None})
    _close(figure)
    # A palette of 256 colours is enough for a plot and weighs a third.
    palette = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(packed, format="png", optimize=True)
    return base64.b64encode(packed.getvalue()).decode("ascii")


def _close(figure):
    """Take a figure off pyplot's list, so that a notebook does not show it a second time."""
    import matplotlib.pyplot as plt

    plt.close(figure)
