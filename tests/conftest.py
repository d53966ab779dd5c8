"""What all tests share."""

import os

# Before anyone imports Matplotlib: no window, on any machine.
os.environ.setdefault("MPLBACKEND", "Agg")
