"""The style, the slider, and glue."""

import base64
import io
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from locbook.plotting import COLOURS, LINE_STYLES, MAX_SLIDER_BYTES, slider, use_style


def frames(n=3, size=(3, 2)):
    made = []
    for k in range(n):
        figure = Figure(figsize=size)
        figure.subplots().plot(np.arange(10.0) ** k)
        made.append((f"k = {k}", f"A curve of degree {k} & more.", figure))
    return made


def test_style_pairs_each_colour_with_a_line_style():
    assert len(COLOURS) == len(LINE_STYLES)
    with plt.rc_context():
        use_style()
        cycle = list(plt.rcParams["axes.prop_cycle"])
        assert [entry["color"] for entry in cycle] == list(COLOURS.values())
        assert len({str(entry["linestyle"]) for entry in cycle}) == len(cycle)


def test_background_is_opaque():
    with plt.rc_context():
        use_style()
        figure = plt.figure()
        assert figure.get_facecolor()[3] == 1.0
        plt.close(figure)


def test_slider_shows_one_frame_and_names_all():
    html = slider(frames(), "degree <k>", start=1, caption="Turn it.")._repr_html_()
    images = re.findall(r"<img [^>]*>", html)
    assert [("hidden" in image) for image in images] == [True, False, True]
    assert 'alt="A curve of degree 1 &amp; more."' in html
    assert "degree &lt;k&gt;" in html
    assert 'aria-valuetext="k = 1"' in html
    assert "<figcaption>Turn it.</figcaption>" in html
    assert "http" not in html


def test_slider_closes_its_figures_and_is_deterministic():
    before = plt.get_fignums()
    one, two = (slider(frames(), "k")._repr_html_() for _ in range(2))
    assert one == two
    assert plt.get_fignums() == before


def test_slider_frames_are_png():
    image = re.search(r"base64,([^\"]+)", slider(frames(), "k")._repr_html_()).group(1)
    assert plt.imread(io.BytesIO(base64.b64decode(image)), format="png").ndim == 3


def test_slider_refuses_too_much():
    rng = np.random.default_rng(0)
    heavy = []
    for k in range(3):
        figure = Figure(figsize=(8, 8))
        figure.subplots().imshow(rng.uniform(size=(700, 700)))
        heavy.append((f"{k}", "Noise in all colours.", figure))
    with pytest.raises(ValueError, match=f"allowed are {MAX_SLIDER_BYTES:,}"):
        slider(heavy, "k")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f[:1], 0), "at least 2"),
        (lambda f: (f, 3), "start"),
        (lambda f: (f, -1), "start"),
        (lambda f: ([("a|b", *f[0][1:]), f[1]], 0), r"without '\|'"),
        (lambda f: ([(f[0][0], " ", f[0][2]), f[1]], 0), "alternative text"),
    ],
)
def test_slider_names_what_is_wrong(change, message):
    chosen, start = change(frames())
    with pytest.raises(ValueError, match=message):
        slider(chosen, "k", start)


def test_glue_records_plain_numbers(capsys):
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    from locbook.notebook import glue

    shell = InteractiveShell.instance()
    shell.display_pub, kept = CapturingDisplayPublisher(shell=shell), shell.display_pub
    try:
        glue("half", np.float64(0.5))
        (output,) = shell.display_pub.outputs
    finally:
        shell.display_pub = kept
        InteractiveShell.clear_instance()
    assert output["data"] == {"application/papermill.record/text/plain": "0.5"}
    assert output["metadata"]["scrapbook"]["name"] == "half"


def test_import_of_locbook_is_light():
    loaded = "import sys, locbook; print([m for m in ('matplotlib', 'IPython', 'pooch', 'tqdm') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
