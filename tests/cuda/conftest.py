"""Which tests of this folder a process takes.

``simulated`` and ``test_on_card.py`` need numba-cuda in one mode each, and a process has one mode: where
``NUMBA_ENABLE_CUDASIM`` is set, kernels run in the simulator. ``test_runs.py`` starts the processes.
"""

import os

collect_ignore = ["compile_all.py", "copies.py", "lanes.py", "tensors.py"]
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    collect_ignore.append("simulated")
