"""Each check fails on a fixture that is broken on purpose, and passes on one that is whole."""

import sys
import types
from importlib.machinery import ModuleSpec

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from locbook.exercises import Number
from tools.checks.budget import budget_faults
from tools.checks.exercises import exercise_faults, stored_answer_faults
from tools.checks.figures import alt_faults, figure_faults, page_image_faults
from tools.checks.outputs import output_faults
from tools.checks.pairs import main as pairs_command
from tools.checks.pairs import pair_faults
from tools.checks.site import link_faults, offline_faults, unsized_image_faults, weight_faults
from tools.checks.standalone import standalone_faults
from tools.checks.template import template_faults
from tools.linkcheck import outside_faults

PNG = "iVBORw0KGgo="


def write_script(folder, text):
    path = folder / "07_broken.py"
    path.write_text(text, encoding="utf-8")
    return path


def write_notebook(folder, *cells):
    path = folder / "07_broken.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


def write_page(folder, body, name="index.html"):
    (folder / name).write_text(
        f"<html><head></head><body><article>{body}</article></body></html>", encoding="utf-8"
    )
    return folder


def run_cell(source="1", count=1, outputs=(), **metadata):
    return new_code_cell(source, execution_count=count, outputs=list(outputs), metadata=metadata)


# --- pairs ---


def pair(folder, notebook_cell):
    script = write_script(folder, '# %% tags=["a"]\nx = 1\n')
    write_notebook(folder, notebook_cell)
    return script


def test_pair_in_sync(tmp_path):
    assert pair_faults(pair(tmp_path, run_cell("x = 1", tags=["a"]))) == []


@pytest.mark.parametrize(
    "cell",
    [run_cell("x = 2", tags=["a"]), run_cell("x = 1", tags=["b"]), run_cell("x = 1")],
    ids=["text", "tag", "no tag"],
)
def test_pair_out_of_sync(tmp_path, cell):
    script = pair(tmp_path, cell)
    assert "cell 0 differs" in pair_faults(script)[0]
    assert pairs_command([str(script)]) == 1


def test_pair_with_a_cell_too_many_or_without_a_notebook(tmp_path):
    script = pair(tmp_path, run_cell("x = 1", tags=["a"]))
    write_notebook(tmp_path, run_cell("x = 1", tags=["a"]), run_cell("y = 2", 2))
    assert "cell 1 differs" in pair_faults(script)[0]
    script.with_suffix(".ipynb").unlink()
    assert "is missing" in pair_faults(script)[0]


# --- stored outputs ---


def test_whole_outputs(tmp_path):
    error = new_output("error", ename="ValueError", evalue="", traceback=[])
    cells = [run_cell(count=1), run_cell(count=2, outputs=[error], tags=["raises-exception"])]
    assert output_faults(write_notebook(tmp_path, *cells)) == []


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (run_cell(count=None), "not run in order"),
        (run_cell(count=5), "not run in order"),
        (run_cell(outputs=[new_output("stream", name="stderr", text="Warning")]), "stderr"),
        (run_cell(outputs=[new_output("error", ename="E", evalue="", traceback=[])]), "stores an error"),
        (run_cell(tags=["raises-exception"]), "raised nothing"),
    ],
)
def test_broken_outputs(tmp_path, cell, fault):
    assert fault in output_faults(write_notebook(tmp_path, cell))[0]


# --- figures and sliders ---

GOOD = {"figure": {"name": "fig-x", "caption": "A curve."}, "image": {"alt": "A curve that falls."}}


def picture(size=10, **metadata):
    output = new_output("display_data", data={"image/png": PNG * size, "text/plain": "<Figure>"})
    return run_cell(outputs=[output], **metadata)


def slider_html(alt="A curve that falls.", caption="<figcaption>A curve.</figcaption>", size=1):
    image = f'<img src="data:image/png;base64,{PNG * size}" alt="{alt}">'
    html = f'<figure class="lb-slider">{image}{caption}</figure>'
    return run_cell(outputs=[new_output("execute_result", data={"text/html": html})])


def test_whole_figure_and_slider(tmp_path):
    assert figure_faults(write_notebook(tmp_path, picture(mystnb=GOOD), slider_html())) == []


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        (picture(), "no caption"),
        (picture(mystnb={**GOOD, "image": {}}), "no alternative text"),
        (picture(mystnb={**GOOD, "image": {"alt": "../_images/a1b2.png"}}), "file's name"),
        (picture(mystnb={**GOOD, "figure": {"caption": "A curve."}}), "no name"),
        (picture(20_000, mystnb=GOOD), "weighs"),
        (slider_html(alt=""), "no alternative text"),
        (slider_html(alt="plot.png"), "file's name"),
        (slider_html(caption=""), "no caption"),
        (slider_html(size=40_000), "weighs"),
    ],
)
def test_broken_figure(tmp_path, cell, fault):
    assert any(fault in found for found in figure_faults(write_notebook(tmp_path, cell)))


def test_two_figures_in_a_cell(tmp_path):
    cell = picture(mystnb=GOOD)
    cell.outputs = cell.outputs * 2
    assert "more than one figure" in figure_faults(write_notebook(tmp_path, cell))[0]


def test_picture_on_a_page_without_alt(tmp_path):
    page = write_page(tmp_path, '<img src="a.png" alt="_images/a.png">') / "index.html"
    assert "file's name" in page_image_faults(page)[0]
    assert "does not say" in alt_faults("a curve")[0]


# --- standalone cells ---


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("print(np.pi)", "fails alone: NameError"),
        ("\n".join(f"x{k} = {k}" for k in range(26)), "26 lines"),
        ("import math\n\nprint(math.pi)", None),
    ],
)
def test_standalone(tmp_path, source, fault):
    script = write_script(tmp_path, f'# %%\nimport numpy as np\n\n# %% tags=["standalone"]\n{source}\n')
    faults = standalone_faults(script)
    assert fault in faults[0] if fault else faults == []


# --- budget ---


def test_budget(tmp_path):
    script = write_script(tmp_path, '# %%\nx = bytearray(10**8)\n\n# %% tags=["raises-exception"]\n1 / 0\n')
    assert budget_faults(script) == []
    assert "took" in budget_faults(script, max_seconds=0.0)[0]
    assert "GB" in budget_faults(script, max_bytes=10**7)[0]
    assert "fails as a script: ZeroDivisionError" in budget_faults(write_script(tmp_path, "# %%\n1 / 0\n"))[0]


# --- template ---

WHOLE = """# %% [markdown]
# (ch-broken)=
# # 7. A whole chapter
#
# A claim.
#
# :::{admonition} In this chapter
# :class: lb-card
#
# **You will be able to**
#
# - see;
# - say;
# - do.
#
# **You need** nothing. **Time** 1 minute. **Memory** 1 GB.
# :::

# %% tags=["setup", "hide-cell"]
import numpy as np

# %% [markdown]
# ## The picture
# ## The mathematics: of it
# | symbol | variable |
# |---|---|
# ## From scratch

# %% tags=["standalone"]
import math

# %% [markdown]
# ## The library
# ## The outside check
# ## The experiment
# ## Where it breaks
# ## As a local mean
# | space | kernel | samples | values | normalised | iterated |
# ## Exercises
# :::{exercise} One
# :label: ex-a-one
# :::
# :::{exercise} Two
# :label: ex-a-two
# :::
# :::{exercise} Three
# :label: ex-a-three
# :::
# ## Summary
# - 1
# - 2
# - 3
# - 4
# - 5
#
# ## Further reading
# {cite:t}`x`
#
# :::{dropdown} For teachers
# :::
"""


def test_whole_chapter(tmp_path):
    assert template_faults(write_script(tmp_path, WHOLE)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("# 7. A whole", "# 8. A whole", "must open with"),
        ("# A claim.\n", "# :::\n", "must open with"),
        ("# %% [markdown]\n# (ch-", "# %% [markdown]\n# %% [markdown]\n# (ch-", "cell 0 is empty"),
        ("In this chapter", "Hello", "no card"),
        ("**Memory**", "Memory", "card lacks **Memory**"),
        ("# - see;\n", "", "2 things"),
        ('tags=["setup", "hide-cell"]', "", "tagged setup"),
        ("## Where it breaks", "## Where it ends", "'## Where it breaks' is missing"),
        ("## The library\n# ## The outside check", "## The outside check\n# ## The library", "out of order"),
        ('tags=["standalone"]', "", "no cell tagged standalone"),
        ("import math", "import locbook", "imports locbook"),
        ("| iterated |", "|", "lacks: iterated"),
        ("{exercise} Three", "{note} Three", "2 exercises"),
        ("# - 5\n", "", "4 lines"),
        ("{cite:t}`x`", "nothing", "cites nothing"),
        ("{dropdown} For teachers", "{note} For all", "no folded note"),
        ("# | symbol | variable |\n# |---|---|\n", "", "no table of symbols"),
    ],
)
def test_broken_chapter(tmp_path, old, new, fault):
    assert old in WHOLE
    faults = template_faults(write_script(tmp_path, WHOLE.replace(old, new)))
    assert any(fault in found for found in faults), faults


# --- exercises ---

EXERCISE = """# %% [markdown]
# :::{exercise} One
# :label: ex-broken-one
# :::

# %% tags=["exercise"]
answer = ...
check("broken.one", answer)

# %% [markdown]
# :::{solution-start} ex-broken-one
# :class: dropdown
# :::

# %% tags=["solution"]
answer = 3
check("broken.one", answer)
"""


@pytest.fixture(autouse=True)
def answers(monkeypatch):
    """A module of answers for the chapter that is broken."""
    module = types.ModuleType("locbook.exercises.broken")
    module.__spec__ = ModuleSpec(module.__name__, None)
    module.EXERCISES = {"one": Number(lambda: 3.0)}
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_whole_exercise(tmp_path):
    assert exercise_faults(write_script(tmp_path, EXERCISE)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("answer = ...", "answer = 3", "must ship with"),
        ('tags=["exercise"]', "", "no cell tagged exercise"),
        ('tags=["solution"]', "", "no cell tagged solution"),
        ("# :class: dropdown\n", "", "no folded solution"),
        (":label: ex-broken-one", ":label: ex-other", "no exercise block for ex-broken-one"),
        ('check("broken.one"', 'check("broken.nothing"', "key: got 'broken.nothing'"),
    ],
)
def test_broken_exercise(tmp_path, old, new, fault):
    faults = exercise_faults(write_script(tmp_path, EXERCISE.replace(old, new)))
    assert any(fault in found for found in faults), faults


@pytest.mark.parametrize(
    ("tag", "right", "wrong"),
    [("exercise", "Not answered yet", "Right."), ("solution", "Right.", "Not yet.")],
)
def test_stored_answers(tmp_path, tag, right, wrong):
    for said, whole in ((right, True), (wrong, False)):
        cell = run_cell(outputs=[new_output("execute_result", data={"text/plain": said})], tags=[tag])
        assert (stored_answer_faults(write_notebook(tmp_path, cell)) == []) is whole
    assert stored_answer_faults(write_notebook(tmp_path, run_cell(tags=[tag])))


# --- built pages ---


def test_links(tmp_path):
    write_page(tmp_path, '<h2 id="there"></h2>', "other.html")
    whole = '<a href="other.html#there">x</a><a href="https://example.org">y</a><a href="#top">z</a><i id="top"></i>'
    assert link_faults(write_page(tmp_path, whole)) == []
    broken = '<a href="other.html#gone">x</a><a href="gone.html">y</a><a href="#gone">z</a>'
    faults = link_faults(write_page(tmp_path, broken))
    assert sorted(fault.split(": ")[-1] for fault in faults) == [
        "no such anchor",
        "no such anchor",
        "no such file",
    ]


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://example.org/a.js"></script>',
        '<img src="//example.org/a.png">',
        '<img srcset="a.png 1x, https://example.org/a.png 2x">',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        "<style>@font-face { src: url(https://example.org/a.woff) }</style>",
        '<iframe src="https://example.org"></iframe>',
    ],
)
def test_page_that_loads_from_the_network(tmp_path, body):
    assert len(offline_faults(write_page(tmp_path, body))) == 1


def test_page_and_style_that_load_nothing(tmp_path):
    write_page(
        tmp_path, '<a href="https://example.org">x</a><link rel="canonical" href="https://example.org">'
    )
    assert offline_faults(tmp_path) == []
    (tmp_path / "style.css").write_text('@import "https://example.org/a.css";')
    assert "style.css" in offline_faults(tmp_path)[0]


def test_weight_of_a_page(tmp_path):
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "a.png").write_bytes(b"0" * 1_500_000)
    write_page(tmp_path, '<img src="_images/a.png">')
    assert weight_faults(tmp_path) == []
    write_page(tmp_path, '<img src="_images/a.png">' + "x" * 600_000)
    assert "weighs 2,1" in weight_faults(tmp_path)[0]


def test_size_of_a_picture(tmp_path):
    write_page(tmp_path, '<img src="a.png" width="2" height="1">')
    assert unsized_image_faults(tmp_path) == []
    write_page(tmp_path, '<img src="a.png" width="2">')
    assert "a.png has no size" in unsized_image_faults(tmp_path)[0]


def test_links_outside(tmp_path):
    write_page(
        tmp_path,
        '<a href="https://a.example/x#y">a</a> <a href="https://b.example/">b</a> <a href="c.html">c</a>',
    )
    answers = {"https://a.example/x": None, "https://b.example/": "answers 404"}
    assert outside_faults(tmp_path, answers.__getitem__) == [
        "https://b.example/: answers 404 (on index.html)"
    ]
