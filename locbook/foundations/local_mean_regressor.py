"""The local mean as a scikit-learn estimator: nothing is fitted until a query comes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import engine
from .._validation import check_option
from ..engine import EMPTY, Problem
from ..kernels import Kernel
from ..kernels.constructors import make_kernel
from .bandwidth_selection import METHODS, select_bandwidth
from .local_mean import Explanation, explain, local_mean


class LocalMeanRegressor(RegressorMixin, BaseEstimator):
    r"""Nadaraya-Watson regression.

    Parameters
    ----------
    kernel : str or Kernel
        A name of :data:`locbook.KERNELS`, whose parameters are those below; or a Kernel, and all below up to ``on``
        stay None.
    bandwidth : float, array or {"loo", "gcv", "aicc"}, optional
        In the units of the distance. None is 1. A method's name chooses it at ``fit`` by
        :func:`locbook.select_bandwidth`.
    metric : str, Metric or callable, optional
        None is Euclidean.
    n_neighbors : int, optional
        Of the kernel ``"knn"``.
    ties : {"index", "include"}, optional
        Of the kernel ``"knn"``.
    temperature, concentration : float, optional
        Of the kernels ``"softmax"`` and ``"von_mises"``.
    shape : float, optional
        ``nu`` of the kernel ``"student_t"``, ``alpha`` of ``"rational_quadratic"``.
    on : int or sequence of int, optional
        The columns that the kernel looks at.
    empty : {"nan", "nearest", "mean", "raise"}
        Answer for a query without a neighbour; see :func:`locbook.local_mean`.
    device : {"auto", "cpu", "cuda"}
        Where predictions are computed; see :func:`locbook.local_mean`.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel in use, with the chosen bandwidth.
    bandwidth_ : float, array or None
        Its bandwidth, None where it has none.
    X_, y_, sample_weight_
        The samples, as fitted.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from locbook import LocalMeanRegressor
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> LocalMeanRegressor("uniform", bandwidth=1.0).fit(X, y).predict([[2.5]])
    array([0.5])
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        bandwidth: Any = None,
        metric: Any = None,
        n_neighbors: int | None = None,
        ties: str | None = None,
        temperature: float | None = None,
        concentration: float | None = None,
        shape: float | None = None,
        on: Any = None,
        empty: str = "nan",
        device: str = "auto",
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.ties = ties
        self.temperature = temperature
        self.concentration = concentration
        self.shape = shape
        self.on = on
        self.empty = empty
        self.device = device

    def _make_kernel(self) -> Kernel:
        chosen = isinstance(self.bandwidth, str)
        if chosen and isinstance(self.kernel, Kernel):
            raise ValueError("bandwidth must be None when kernel is a Kernel: it has its own")
        return make_kernel(
            self.kernel,
            None if chosen else self.bandwidth,
            self.metric,
            n_neighbors=self.n_neighbors,
            ties=self.ties,
            temperature=self.temperature,
            concentration=self.concentration,
            shape=self.shape,
            on=self.on,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocalMeanRegressor:
        """Keep the samples; choose the bandwidth if asked.

        Parameters
        ----------
        X : array or DataFrame, shape (n, d)
        y : array, shape (n,) or (n, p)
        sample_weight : array, shape (n,), optional
            Multiplicities, >= 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Naming the parameter.
        """
        check_option(self.empty, "empty", EMPTY)
        engine.reductions_of(engine.choose_device(self.device))
        if isinstance(self.bandwidth, str):
            check_option(self.bandwidth, "bandwidth", METHODS)
        kernel = self._make_kernel()
        self.y_columns_ = getattr(y, "columns", None) if hasattr(y, "iloc") else None
        self.y_name_ = getattr(y, "name", None) if hasattr(y, "iloc") else None
        X, y = validate_data(
            self,
            X,
            y,
            dtype=(np.float64, np.float32),
            multi_output=True,
            y_numeric=True,
            ensure_all_finite="allow-nan" if kernel.allows_nan else True,
        )
        if isinstance(self.bandwidth, str):
            kernel = select_bandwidth(X, y, kernel, method=self.bandwidth, sample_weight=sample_weight).kernel
        self.kernel_, self.bandwidth_ = kernel, kernel.bandwidth
        self.X_, self.y_, self.sample_weight_ = X, y, sample_weight
        # one query through everything: what does not fit together fails here, not at the first prediction
        problem = Problem.check(X, X, kernel, sample_weight=sample_weight)
        values = problem.values(y, "y")
        engine.mean(problem.rows(np.zeros(1, dtype=int), kernel), values.reshape(len(X), -1), warn=False)
        return self

    def predict(self, X: Any) -> Any:
        """Local means around the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame, shape (m, d)

        Returns
        -------
        array, shape (m,) or (m, p)
            For a DataFrame a Series or DataFrame with its index, and the name(s) that ``y`` had.
        """
        check_is_fitted(self)
        index = getattr(X, "index", None) if hasattr(X, "iloc") else None
        X = validate_data(
            self,
            X,
            reset=False,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan" if self.kernel_.allows_nan else True,
        )
        answer = local_mean(
            *(X, self.X_, self.y_, self.kernel_),
            sample_weight=self.sample_weight_,
            empty=self.empty,
            device=self.device,
        )
        if index is None:
            return answer
        import pandas as pd  # it is there: X is a DataFrame

        if answer.ndim == 1:
            return pd.Series(answer, index=index, name=self.y_name_)
        return pd.DataFrame(answer, index=index, columns=self.y_columns_)

    def explain(self, query: Any, *, top: int = 10) -> Explanation:
        """The samples that make the prediction at one query; see :func:`locbook.explain`."""
        check_is_fitted(self)
        return explain(
            query,
            self.X_,
            self.y_,
            self.kernel_,
            top=top,
            sample_weight=self.sample_weight_,
            empty=self.empty,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        try:
            tags.input_tags.allow_nan = self._make_kernel().allows_nan
        except (TypeError, ValueError):
            tags.input_tags.allow_nan = False  # parameters that do not fit are fit's to report
        return tags
