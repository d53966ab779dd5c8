"""``make notebooks`` gives the same bytes each time."""

from nbformat.v4 import new_output

from tools import chapter_scripts
from tools.checks.outputs import output_faults
from tools.notebooks import joined_streams, refresh

# One of each kind of output; nbval holds the chapters' own.
CELLS = """

# %%
import sys

import matplotlib.pyplot as plt

from locbook.notebook import glue
from locbook.plotting import slider, use_style

use_style()
print(set("local mean"))
glue("two", 2)

# %%
fig, ax = plt.subplots()
ax.plot([1, 2])
plt.show()

# %%
frames = []
for k in (1, 2):
    fig, ax = plt.subplots()
    ax.plot([1, k])
    frames.append((str(k), "A line that rises.", fig))
slider(frames, "k")

# %% tags=["raises-exception"]
raise ValueError("broken")
"""


def test_a_rerun_is_byte_identical(tmp_path):
    header = chapter_scripts()[0].read_text(encoding="utf-8").split("\n\n", 1)[0]
    script = tmp_path / "01_short.py"
    script.write_text(header + CELLS, encoding="utf-8")
    one, two = refresh(script), refresh(script, tmp_path / "two.ipynb")
    assert one.read_bytes() == two.read_bytes()
    assert output_faults(one) == []


def test_pieces_of_a_stream_are_joined():
    pieces = [("stdout", "a"), ("stdout", "b"), ("stderr", "c")]
    joined = joined_streams([new_output("stream", name=name, text=text) for name, text in pieces])
    assert [(o.name, o.text) for o in joined] == [("stdout", "ab"), ("stderr", "c")]
