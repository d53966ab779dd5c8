"""Part I: the local mean, the smoother it is, and the choice of its ruler."""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..engine import LocalMeanGradient
from .bandwidth_selection import BandwidthSelection, select_bandwidth
from .local_mean import Explanation, explain, local_mean, local_weights
from .local_mean_gradient import local_mean_vjp
from .smoother import degrees_of_freedom, leave_one_out, smoother_matrix

if TYPE_CHECKING:
    from .local_mean_regressor import LocalMeanRegressor
else:
    __getattr__, __dir__ = lazy(globals(), {"LocalMeanRegressor": ".local_mean_regressor"})  # scikit-learn's

__all__ = [
    "BandwidthSelection",
    "Explanation",
    "LocalMeanGradient",
    "LocalMeanRegressor",
    "degrees_of_freedom",
    "explain",
    "leave_one_out",
    "local_mean",
    "local_mean_vjp",
    "local_weights",
    "select_bandwidth",
    "smoother_matrix",
]
