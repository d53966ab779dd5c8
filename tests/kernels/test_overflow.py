"""Weights at the edge of what a float holds."""

import numpy as np
import pytest

import locbook as lb


def test_no_common_column_has_weight_0_under_a_users_profile():
    queries, samples = np.array([[np.nan, 1.0]]), np.array([[1.0, np.nan], [1.0, 1.0]])
    for profile in (lambda s: 1.0, lambda s: s * np.exp(-s) + 1.0):
        kernel = lb.Kernel(profile=profile, metric="nan_euclidean")
        assert kernel(queries, samples).tolist() == [[0.0, 1.0]]
    kernel = lb.Kernel(log_profile=lambda s: -0.0 * s, metric="nan_euclidean")
    assert kernel.log(queries, samples).tolist() == [[-np.inf, 0.0]]


@pytest.mark.parametrize(("size", "dtype"), [(10.0, np.float32), (30.0, np.float64)])
def test_dense_weights_that_overflow_are_refused(size, dtype):
    x = np.array([[size]], dtype=dtype)
    with pytest.raises(ValueError, match="overflow"):
        lb.softmax()(x, x)
    assert lb.softmax().log(x, x) == pytest.approx(size * size)
