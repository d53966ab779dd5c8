"""Part I: the local mean, the smoother it is, and the choice of its ruler."""

from .bandwidth_selection import BandwidthSelection, select_bandwidth
from .local_mean import Explanation, explain, local_mean, local_weights
from .local_mean_regressor import LocalMeanRegressor
from .smoother import degrees_of_freedom, leave_one_out, smoother_matrix

__all__ = [
    "BandwidthSelection",
    "Explanation",
    "LocalMeanRegressor",
    "degrees_of_freedom",
    "explain",
    "leave_one_out",
    "local_mean",
    "local_weights",
    "select_bandwidth",
    "smoother_matrix",
]
