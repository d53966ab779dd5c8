"""locbook: localization methods. Look at the neighbours, weigh them by a kernel, take the mean."""

from typing import TYPE_CHECKING

from . import classical, engine, foundations, kernels, learned_kernels
from ._lazy import lazy
from .engine import EmptyNeighborhoodWarning, get_num_threads, set_num_threads

if TYPE_CHECKING:
    from . import datasets
    from .classical import *  # noqa: F403
    from .foundations import *  # noqa: F403
    from .kernels import *  # noqa: F403
    from .learned_kernels import *  # noqa: F403
else:
    _PARTS = (classical, foundations, kernels, learned_kernels)
    _HOMES = {name: part.__name__ for part in _PARTS for name in part.__all__}
    __getattr__, __dir__ = lazy(globals(), _HOMES | {"datasets": ".datasets"})

__version__ = "0.1.0"

__all__ = ["EmptyNeighborhoodWarning", "classical", "datasets", "engine", "foundations", "get_num_threads"]
__all__ += ["kernels", "learned_kernels", "set_num_threads"]
__all__ += classical.__all__
__all__ += foundations.__all__
__all__ += kernels.__all__
__all__ += learned_kernels.__all__
