"""The checks at the border: what is taken, what is refused, and that the message names it."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from locbook._validation import (
    as_real,
    check_finite,
    check_integer,
    check_mask,
    check_option,
    check_positive,
    check_same_columns,
    check_sample_weight,
    check_square_matrix,
    check_values,
    check_vector,
    read_only,
    result_dtype,
)

# -- arrays --------------------------------------------------------------------------------------------------------


def test_floats_pass_without_a_copy():
    for dtype in (np.float32, np.float64):
        for array in (np.ones((3, 2), dtype), np.ones((2, 3), dtype).T, np.ones((6, 4), dtype)[::2, ::2]):
            assert as_real(array, "x") is array
    array = np.ones((2, 2))
    array.flags.writeable = False
    assert as_real(array, "x") is array


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int64, np.bool_])
def test_small_types_keep_their_memory(dtype):
    """scikit-learn#16946: a gigabyte of bytes must not become eight."""
    array = np.ones((3, 2), dtype)
    assert as_real(array, "x") is array


def test_other_floats_and_objects_become_floats():
    assert as_real(np.ones((1, 1), np.float16), "x").dtype == np.float32
    assert as_real(np.ones((1, 1), np.longdouble), "x").dtype == np.float64
    objects = as_real(np.array([[1, 2.5], [Fraction(1, 2), Decimal(3)]], dtype=object), "x")
    assert objects.dtype == np.float64
    assert objects.tolist() == [[1, 2.5], [0.5, 3]]
    assert as_real([[1, 2], [3, 4]], "x").dtype == np.int64
    assert as_real(np.ones((1, 1), ">f8"), "x").tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (
            csr_array(np.eye(2)),
            TypeError,
            r"samples must be a dense array, got a sparse one: use samples.toarray\(\)",
        ),
        (np.eye(2) * 1j, TypeError, "samples: complex data not supported, got dtype complex128"),
        (np.array([[1j, "a"]], dtype=object), TypeError, "samples must be numeric, got dtype object"),
        (np.array([[{}]]), TypeError, "samples must be numeric, got dtype object"),
        (np.array([["1"]]), TypeError, "samples must be numeric, got dtype <U1"),
        (np.array([[b"1"]]), TypeError, "samples must be numeric, got dtype .S1"),
        (np.array([["2020-01-01"]], "M8[D]"), TypeError, "samples must be numeric, got dtype datetime64"),
        (np.array([[1]], "m8[s]"), TypeError, "samples must be numeric, got dtype timedelta64"),
        (np.array([[(1, 2)]], "i4,i4"), TypeError, "samples must be numeric"),
        ("text", TypeError, "samples must be numeric"),
        (None, (TypeError, ValueError), "samples must be"),
        ([[1], [1, 2]], ValueError, "samples must be a rectangular array of numbers"),
        (
            [1.0, 2.0],
            ValueError,
            r"samples must be 2-D, got .*\(2,\)\. Reshape a single feature with samples.reshape",
        ),
        (1.0, ValueError, r"samples must be 2-D, got an array of shape \(\)"),
        (np.ones((1, 1, 1)), ValueError, "samples must be 2-D"),
        (np.ones((0, 2)), ValueError, r"samples must not be empty, got shape \(0, 2\)"),
        (np.ones((2, 0)), ValueError, r"samples must not be empty, got shape \(2, 0\)"),
        (
            [[1.0, math.nan]],
            ValueError,
            r"samples contains NaN \(first at row 0, column 1\); it must be finite",
        ),
        ([[1.0], [-math.inf]], ValueError, r"samples contains infinity \(first at row 1, column 0\)"),
        ([[10**400]], ValueError, "samples must be finite, got a number that no float64 can hold"),
        (np.array([["1e4000"]], np.longdouble), ValueError, "samples contains infinity"),
        (np.array([[None]], dtype=object), ValueError, "samples contains NaN"),
        (
            np.ma.array([[1.0], [2.0]], mask=[[False], [True]]),
            TypeError,
            "samples must not be a masked array",
        ),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(array, error, message):
    with pytest.raises(error, match=message):
        as_real(array, "samples")


def test_a_masked_array_that_hides_nothing_is_an_array():
    assert as_real(np.ma.array([[1.0], [2.0]]), "x").tolist() == [[1.0], [2.0]]


def test_missing_values_where_they_are_allowed():
    assert np.isnan(as_real([[math.nan]], "x", allow_nan=True)).all()
    with pytest.raises(ValueError, match=r"x contains infinity .*it must be finite or NaN"):
        as_real([[math.nan, math.inf]], "x", allow_nan=True)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_first_bad_place_is_named_in_any_block(value):
    array = np.zeros((70_000, 17))
    array[65_000:, 3] = value
    with pytest.raises(ValueError, match="first at row 65000, column 3"):
        check_finite(array, "x")
    with pytest.raises(ValueError, match="first at row 0, column 0"):
        check_finite(np.array(value), "x")
    check_finite(np.zeros((3, 2, 2)), "x")


def test_pandas_frames_are_arrays_and_their_holes_are_refused():
    pd = pytest.importorskip("pandas")
    assert as_real(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}), "x").tolist() == [[1, 0.5], [2, 1.5]]
    with pytest.raises(ValueError, match="x contains NaN"):
        as_real(pd.DataFrame({"a": [1.0, None]}), "x")
    with pytest.raises((TypeError, ValueError), match=r"x (must be numeric|contains NaN)"):
        as_real(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "x")
    with pytest.raises(TypeError, match="x must be numeric"):
        as_real(pd.DataFrame({"a": ["b", "c"]}), "x")


def test_the_dtype_of_an_answer():
    single, double, integer = np.ones(1, np.float32), np.ones(1), np.ones(1, np.int64)
    assert result_dtype(single, single) == np.float32
    assert result_dtype(single, double) == result_dtype(double) == result_dtype(single, integer) == np.float64


def test_columns_must_agree():
    check_same_columns(np.ones((2, 3)), np.ones((5, 3)))
    with pytest.raises(ValueError, match="queries have 2 columns, but samples have 3; they must agree"):
        check_same_columns(np.ones((5, 2)), np.ones((5, 3)))


def test_values_have_a_row_for_each_sample():
    assert check_values([1, 2], 2).shape == (2,)
    assert check_values([[1], [2]], 2).shape == (2, 1)
    with pytest.raises(ValueError, match="labels has 2 rows, but samples have 3; they must agree"):
        check_values([1, 2], 3, name="labels")
    with pytest.raises(ValueError, match="values must be 1-D or 2-D"):
        check_values(1.0, 1)
    with pytest.raises(ValueError, match="values contains NaN"):
        check_values([math.nan], 1)


# -- weights and masks ---------------------------------------------------------------------------------------------


def test_sample_weights():
    assert check_sample_weight(None, 3) is None
    for value in (2, 2.0, np.float32(2), np.array(2)):
        assert check_sample_weight(value, 3).tolist() == [2.0, 2.0, 2.0]
    theirs = np.array([0.0, 1.0])
    ours = check_sample_weight(theirs, 2)
    assert ours.dtype == np.float64
    ours[0] = 5.0
    assert theirs[0] == 0.0


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1.0, -1.0], ValueError, "sample_weight must be >= 0, got -1.0"),
        (-1.0, ValueError, "sample_weight must be >= 0, got -1.0"),
        ([0.0, 0.0], ValueError, "sample_weight must not be zero for all samples"),
        (0.0, ValueError, "sample_weight must not be zero for all samples"),
        ([1.0], ValueError, r"sample_weight must have shape \(2,\), one for each sample, got \(1,\)"),
        ([[1.0, 1.0]], ValueError, "sample_weight must be 0-D or 1-D"),
        ([1.0, math.nan], ValueError, "sample_weight contains NaN"),
        (math.nan, ValueError, "sample_weight contains NaN"),
        (math.inf, ValueError, "sample_weight contains infinity"),
        ("balanced", TypeError, "sample_weight must be numeric"),
        ([1j, 1], TypeError, "sample_weight: complex"),
    ],
)
def test_bad_sample_weights_are_named(value, error, message):
    with pytest.raises(error, match=message):
        check_sample_weight(value, 2)


def test_masks():
    assert check_mask(None, 2, 3) is None
    assert check_mask([[True, False, True]], 1, 3).shape == (1, 3)
    for mask in (np.ones((2, 3)), np.ones((2, 3), int), "mask", np.full((2, 3), None)):
        with pytest.raises(TypeError, match=r"mask must be boolean .True takes part., got dtype"):
            check_mask(mask, 2, 3)
    for shape in ((3, 2), (3,), (1, 3), (2, 1), ()):
        with pytest.raises(ValueError, match=r"patch must have shape \(2, 3\), got"):
            check_mask(np.ones(shape, bool), 2, 3, name="patch")


# -- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float16(2), np.int8(2), np.uint64(2), np.array(2), Fraction(2)], ids=repr
)
def test_a_positive_number_becomes_a_float(value):
    assert check_positive(value, "h") == 2.0
    assert type(check_positive(value, "h")) is float


@pytest.mark.parametrize(
    "value", [0, -1, -0.0, math.nan, math.inf, 10**400, -(10**400), np.float32(0)], ids=repr
)
def test_a_number_out_of_range_is_named(value):
    with pytest.raises(ValueError, match="h must be a finite number above 0, got"):
        check_positive(value, "h")


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        np.array(True),
        "1",
        b"1",
        None,
        1j,
        np.complex64(1),
        [1.0],
        np.ones(1),
        {},
        Decimal(1),
        len,
    ],
    ids=repr,
)
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match="h must be a number, got"):
        check_positive(value, "h")


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)], ids=repr)
def test_an_integer_becomes_an_int(value):
    assert type(check_integer(value, "k")) is int
    assert check_integer(value, "k", minimum=3, maximum=3) == 3


@pytest.mark.parametrize(
    "value", [3.0, np.float64(3), True, np.True_, "3", None, [3], np.array(3.0), 3j], ids=repr
)
def test_what_is_no_integer_is_named(value):
    with pytest.raises(TypeError, match="k must be an integer, got"):
        check_integer(value, "k")


def test_the_bounds_of_an_integer_are_named():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        check_integer(0, "k")
    with pytest.raises(ValueError, match="k must be between 2 and 5, got 6"):
        check_integer(6, "k", minimum=2, maximum=5)
    with pytest.raises(ValueError, match="k must be between 2 and 5, got 1"):
        check_integer(1, "k", minimum=2, maximum=5)


@pytest.mark.parametrize("value", ["c", "", "A", None, 0, ["a"], True], ids=repr)
def test_an_unknown_option_is_named_with_the_known_ones(value):
    assert check_option("a", "mode", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="mode must be one of 'a', 'b', got "):
        check_option(value, "mode", ("a", "b"))


def test_vectors_and_matrices_are_private_and_read_only():
    vector, matrix = np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 2.0]])
    for check, theirs in ((check_vector, vector), (check_square_matrix, matrix)):
        ours = check(theirs, "x")
        assert not np.shares_memory(ours, theirs)
        assert not ours.flags.writeable
        assert theirs.flags.writeable
        assert ours.dtype == np.float64
    assert check_vector([-1, 2], "x").tolist() == [-1.0, 2.0]
    assert read_only("text") == "text"
    assert not read_only(vector).flags.writeable


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
def test_matrices_are_judged_in_their_own_units(scale):
    good = scale * np.array([[2.0, 1.0], [1.0, 2.0]])
    check_square_matrix(good, "c")
    check_square_matrix(good, "c", symmetric=True)
    units = np.diag([1.0, 1e9])
    check_square_matrix(units @ good @ units, "c", symmetric=True)
    with pytest.raises(ValueError, match="c must be symmetric"):
        check_square_matrix(scale * np.array([[2.0, 1.0], [1.0 + 1e-6, 2.0]]), "c", symmetric=True)
    with pytest.raises(ValueError, match="c must be positive definite"):
        check_square_matrix(scale * np.array([[1.0, 1.0], [1.0, 1.0]]), "c", symmetric=True)
    with pytest.raises(ValueError, match="c must be positive definite, got smallest eigenvalue -"):
        check_square_matrix(units @ (scale * np.array([[1.0, 2.0], [2.0, 1.0]])) @ units, "c", symmetric=True)
    with pytest.raises(ValueError, match="c must be invertible"):
        check_square_matrix(scale * np.array([[1.0, 2.0], [2.0, 4.0]]), "c")
