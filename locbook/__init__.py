"""locbook: localization methods. Look at the neighbours, weigh them by a kernel, take the mean."""

from . import classical, datasets, engine, foundations, kernels
from .classical import *  # noqa: F403
from .engine import EmptyNeighborhoodWarning, get_num_threads, set_num_threads
from .foundations import *  # noqa: F403
from .kernels import *  # noqa: F403

__version__ = "0.1.0"

__all__ = ["EmptyNeighborhoodWarning", "classical", "datasets", "engine", "foundations", "get_num_threads"]
__all__ += ["kernels", "set_num_threads"]
__all__ += classical.__all__
__all__ += foundations.__all__
__all__ += kernels.__all__
