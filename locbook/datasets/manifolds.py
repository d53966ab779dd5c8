"""Curves in the plane and a sheet in space, with the true projection or the true flat coordinates.

Both the spiral and the roll wind as ``r = a t``; the length of such a curve up to the angle t is
``a (t sqrt(1 + t**2) + asinh t) / 2``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ive

from locbook._validation import (
    RandomState,
    check_array,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)

_SPIRAL = (np.pi, 5 * np.pi)  # the angles of its ends; radius t / (5 pi)
_ROLL = (1.5 * np.pi, 4.5 * np.pi)


class Ridge(NamedTuple):
    """``points`` (n, 2), their ``clean`` origins (n, 2), ``project`` (points -> nearest on the curve)."""

    points: NDArray[np.float64]
    clean: NDArray[np.float64]
    project: Callable[[ArrayLike], NDArray[np.float64]]


class Roll(NamedTuple):
    """``points`` (n, 3), their true flat ``coordinates`` (n, 2), and ``embed`` (coordinates -> points)."""

    points: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    embed: Callable[[ArrayLike], NDArray[np.float64]]


def _winding_length(t: NDArray) -> NDArray:
    """Length of the curve ``r = t`` from 0 to the angle t."""
    return (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2


def _winding_angle(length: NDArray, ends: tuple[float, float]) -> NDArray:
    """Invert :func:`_winding_length` by Newton's method (its derivative is ``sqrt(1 + t**2)``)."""
    t = np.interp(length, _winding_length(grid := np.linspace(*ends, 1001)), grid)
    for _ in range(3):
        t -= (_winding_length(t) - length) / np.sqrt(1 + t**2)
    return t


def make_ridge(
    name: str = "circle", n_samples: int = 300, noise: float = 0.05, *, random_state: RandomState = None
) -> Ridge:
    """Scatter points around a curve in the plane, with the true projection onto it.

    Uniform on the curve (by its length), plus normal noise of standard deviation ``noise`` in both
    directions.

    Parameters
    ----------
    name : {"circle", "spiral"}
        The unit circle; the spiral ``r = t / (5 pi)``, t from pi to 5 pi (two turns, radius 0.2 to 1).
    n_samples : int, >= 1
    noise : float, >= 0
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    Ridge
        Named tuple ``(points, clean, project)``: float64 (n, 2) twice, and a callable from (m, 2) points to
        the nearest points (m, 2) of the curve (from the circle's centre: of the many, (1, 0)).

    Raises
    ------
    ValueError, TypeError
        If the name is unknown or a number is out of range.

    Notes
    -----
    The ridge of the *density* of such points, which principal-component shift looks for, is not the curve: it
    lies a little inside. For the circle it is known, :func:`circle_ridge_radius`.

    Examples
    --------
    >>> import numpy as np
    >>> from locbook.datasets import make_ridge
    >>> points, clean, project = make_ridge("circle", 100, 0.1, random_state=0)
    >>> bool(np.allclose(np.linalg.norm(project(points), axis=1), 1))
    True
    >>> project([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """
    check_option(name, "name", ("circle", "spiral"))
    n = check_integer(n_samples, "n_samples")
    noise = check_real(noise, "noise", 0)
    rng = check_random_state(random_state)
    if name == "circle":
        angle = rng.uniform(0, 2 * np.pi, n)
        clean, project = _polar(1.0, angle), _project_circle
    else:
        length = rng.uniform(*_winding_length(np.array(_SPIRAL)), n)
        clean, project = _spiral(_winding_angle(length, _SPIRAL)), _project_spiral
    return Ridge(clean + noise * rng.standard_normal((n, 2)), clean, project)


def _polar(radius, angle: NDArray) -> NDArray:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def _spiral(t: NDArray) -> NDArray:
    return _polar(t / _SPIRAL[1], t)


def _project_circle(points: ArrayLike) -> NDArray[np.float64]:
    points = check_array(points, "points", (2,), columns=2)
    return _polar(1.0, np.arctan2(points[:, 1], points[:, 0]))


def _project_spiral(points: ArrayLike) -> NDArray[np.float64]:
    """Nearest grid point, then Newton on ``|p - c(t)|**2 / 2`` within its two cells."""
    points = check_array(points, "points", (2,), columns=2)
    grid = np.linspace(*_SPIRAL, 1001)
    curve = _spiral(grid)
    nearest = np.array([np.argmin(((curve - p) ** 2).sum(axis=1)) for p in points])
    low, high = grid[np.maximum(nearest - 1, 0)], grid[np.minimum(nearest + 1, len(grid) - 1)]
    t = grid[nearest]
    for _ in range(20):
        sine, cosine, gap = np.sin(t), np.cos(t), points - _spiral(t)
        first = np.stack([cosine - t * sine, sine + t * cosine], axis=1) / _SPIRAL[1]
        second = np.stack([-2 * sine - t * cosine, 2 * cosine - t * sine], axis=1) / _SPIRAL[1]
        slope = -(gap * first).sum(axis=1)
        bend = (first**2).sum(axis=1) - (gap * second).sum(axis=1)
        t = np.clip(t - slope / np.where(bend > 0, bend, (first**2).sum(axis=1)), low, high)
    return _spiral(t)


def circle_ridge_radius(noise: float) -> float:
    """Radius of the ridge of the density of noisy points on the unit circle.

    At the distance r from the centre the density is proportional to ``exp(-(r**2 + 1) / (2 s**2)) I_0(r /
    s**2)``, so its crest solves ``r = I_1(r / s**2) / I_0(r / s**2)``: about ``1 - s**2 / 2``, and 0 once
    ``s**2 >= 1/2``.

    Parameters
    ----------
    noise : float, >= 0
        Standard deviation s of the noise. Seen through a Gaussian kernel density of bandwidth h:
        ``sqrt(noise**2 + h**2)``.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        If ``noise`` is out of range.

    Examples
    --------
    >>> from locbook.datasets import circle_ridge_radius
    >>> round(circle_ridge_radius(0.2), 4)
    0.9794
    """
    variance = check_real(noise, "noise", 0) ** 2
    if variance < 1e-6:
        return 1 - variance / 2
    if variance >= 0.5:
        return 0.0
    low, high = 0.0, 1.0  # the crest's condition changes sign once in (0, 1]
    for _ in range(60):
        r = (low + high) / 2
        if ive(1, r / variance) > r * ive(0, r / variance):
            low = r
        else:
            high = r
    return float(low)


def make_roll(
    n_samples: int = 1000, noise: float = 0.0, *, height: float = 21.0, random_state: RandomState = None
) -> Roll:
    """Draw points of a rolled-up sheet ("Swiss roll"), with the flat coordinates that unrolling should find.

    ``(t cos t, v, t sin t)``, t from 1.5 pi to 4.5 pi, v from 0 to ``height``; the true coordinates are
    ``(s(t) - s(1.5 pi), v)`` with s the length along the roll, so that distances in the sheet are those of
    the coordinates. Drawn uniformly over the *sheet*. (scikit-learn's ``make_swiss_roll`` draws t uniformly,
    which crowds the inner turns, and returns t.)

    Parameters
    ----------
    n_samples : int, >= 1
    noise : float, >= 0
        Standard deviation of normal noise in the three directions.
    height : float, > 0
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    Roll
        Named tuple ``(points, coordinates, embed)``: float64 (n, 3), (n, 2), and a callable from coordinates
        (m, 2) on the sheet to points (m, 3).

    Raises
    ------
    ValueError, TypeError
        If a number is out of range, or ``embed`` gets coordinates outside the sheet.

    Examples
    --------
    >>> import numpy as np
    >>> from locbook.datasets import make_roll
    >>> points, coordinates, embed = make_roll(100, random_state=0)
    >>> points.shape, coordinates.shape, bool(np.allclose(embed(coordinates), points))
    ((100, 3), (100, 2), True)
    """
    n = check_integer(n_samples, "n_samples")
    noise = check_real(noise, "noise", 0)
    height = check_real(height, "height", 0, open_low=True)
    rng = check_random_state(random_state)
    start, stop = _winding_length(np.array(_ROLL))

    def embed(coordinates: ArrayLike) -> NDArray[np.float64]:
        coordinates = check_array(coordinates, "coordinates", (2,), columns=2)
        if (coordinates < 0).any() or (coordinates > [stop - start, height]).any():
            raise ValueError(f"coordinates must lie in [0, {stop - start:.6g}] x [0, {height:g}], the sheet")
        t = _winding_angle(start + coordinates[:, 0], _ROLL)
        return np.stack([t * np.cos(t), coordinates[:, 1], t * np.sin(t)], axis=1)

    coordinates = rng.random((n, 2)) * [stop - start, height]
    return Roll(embed(coordinates) + noise * rng.standard_normal((n, 3)), coordinates, embed)
