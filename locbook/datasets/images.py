"""Images whose truth is known: label images with wrong labels, and masks of missing pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locbook._validation import RandomState, check_integer, check_option, check_random_state, check_real


class LabelImage(NamedTuple):
    """``labels`` (h, w) int64 with wrong ones among them, and the ``truth`` (h, w) int64."""

    labels: NDArray[np.int64]
    truth: NDArray[np.int64]


def make_label_image(
    shape: tuple[int, int] = (48, 48),
    n_labels: int = 3,
    *,
    flip: float = 0.2,
    random_state: RandomState = None,
) -> LabelImage:
    """Regions of one label each, in which a share of the pixels got a wrong one.

    The regions are the cells of ``2 * n_labels`` random points (each pixel takes the label of the nearest,
    point i the label ``i mod n_labels``). A grey image with known truth is ``truth + noise``.

    Parameters
    ----------
    shape : (int, int), each >= 1
        Height and width.
    n_labels : int, >= 2
    flip : float in [0, 1]
        Probability that a pixel's label is replaced by one of the others, each as likely.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    LabelImage
        Named tuple ``(labels, truth)``: int64 (h, w) in 0..n_labels - 1.

    Raises
    ------
    ValueError, TypeError
        If a number is out of range.

    Examples
    --------
    >>> from locbook.datasets import make_label_image
    >>> labels, truth = make_label_image((40, 50), flip=0.25, random_state=0)
    >>> labels.shape, bool(abs((labels != truth).mean() - 0.25) < 0.05)
    ((40, 50), True)
    """
    if not isinstance(shape, (tuple, list)) or len(shape) != 2:
        raise TypeError(f"shape must be two ints (height, width), got {shape!r}")
    height, width = (check_integer(side, f"shape[{i}]") for i, side in enumerate(shape))
    n_labels = check_integer(n_labels, "n_labels", minimum=2)
    flip = check_real(flip, "flip", 0, 1)
    rng = check_random_state(random_state)
    centres = rng.random((2 * n_labels, 2)) * [height, width]
    pixels = np.stack(np.mgrid[:height, :width], axis=-1) + 0.5
    nearest = np.argmin(((pixels[:, :, None] - centres) ** 2).sum(axis=-1), axis=-1)
    truth = (nearest % n_labels).astype(np.int64)
    wrong = rng.random(truth.shape) < flip
    labels = (truth + wrong * rng.integers(1, n_labels, truth.shape)) % n_labels
    return LabelImage(labels, truth)


def mask_pixels(
    images: ArrayLike, fraction: float = 0.3, *, pattern: str = "random", random_state: RandomState = None
) -> NDArray[np.bool_]:
    """Choose the pixels that are to be missing, for each image anew.

    Parameters
    ----------
    images : array, shape (n, h, w) or (h, w)
        Only its shape is used.
    fraction : float in [0, 1]
        Share of the pixels.
    pattern : {"random", "block"}
        "random": ``round(fraction * h * w)`` single pixels. "block": one rectangle at a random place, of
        ``round(sqrt(fraction) * h)`` by ``round(sqrt(fraction) * w)`` pixels.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    array of bool, same shape as ``images``
        True where the pixel is missing: ``np.where(mask, np.nan, images)``.

    Raises
    ------
    ValueError, TypeError
        If ``images`` has another number of axes or is empty, or ``fraction`` or ``pattern`` is not allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from locbook.datasets import load_fashion_mnist, mask_pixels
    >>> images = load_fashion_mnist(split="test").images
    >>> mask = mask_pixels(images, 0.25, pattern="block", random_state=0)
    >>> mask.shape, int(mask[0].sum())  # 14 x 14 pixels
    ((500, 28, 28), 196)
    """
    shape = np.shape(images)
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(f"images must have shape (n, h, w) or (h, w) and not be empty, got {shape}")
    fraction = check_real(fraction, "fraction", 0, 1)
    check_option(pattern, "pattern", ("random", "block"))
    rng = check_random_state(random_state)
    height, width = shape[-2:]
    n = shape[0] if len(shape) == 3 else 1
    if pattern == "random":
        order = rng.permuted(np.tile(np.arange(height * width), (n, 1)), axis=1)
        return (order < round(fraction * height * width)).reshape(shape)
    rows, columns = (round(fraction**0.5 * side) for side in (height, width))
    top = rng.integers(0, height - rows + 1, n)[:, None]
    left = rng.integers(0, width - columns + 1, n)[:, None]
    y, x = np.arange(height), np.arange(width)
    mask = ((y >= top) & (y < top + rows))[:, :, None] & ((x >= left) & (x < left + columns))[:, None, :]
    return mask.reshape(shape)
