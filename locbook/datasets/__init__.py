"""Data for the chapters: two real sets, and generators whose truth is known.

========================== ==========================================================================
Fashion-MNIST              :func:`load_fashion_mnist`
*Oliver Twist*             :func:`load_oliver_twist`, :func:`load_oliver_twist_counts`,
                           :func:`oliver_twist_chapters`, :func:`oliver_twist_tokens`,
                           :func:`count_word_pairs`
curves and time series     :func:`make_curve`, :func:`make_seasonal`
densities                  :func:`make_mixture`, :class:`KnownMixture`
manifolds                  :func:`make_ridge`, :func:`circle_ridge_radius`, :func:`make_roll`
relations between items    :func:`make_asymmetric`, :func:`make_triplets`
images                     :func:`make_label_image`, :func:`mask_pixels`
========================== ==========================================================================

What is not in the package is looked for in ``$LOCBOOK_DATA``, then in the cache (``$LOCBOOK_CACHE``, or the
operating system's cache folder), then on the system, then on the net (``pip install "locbook[data]"``).
:func:`is_available` says, without a download, whether a set can be had. Sources and licences: ``README.md``
beside this file. scikit-learn's sets and generators are not repeated here.
"""

from locbook.datasets._sources import cache_folder, is_available
from locbook.datasets.curves import Curve, TimeSeries, make_curve, make_seasonal
from locbook.datasets.fashion_mnist import FashionMNIST, load_fashion_mnist
from locbook.datasets.images import LabelImage, make_label_image, mask_pixels
from locbook.datasets.manifolds import Ridge, Roll, circle_ridge_radius, make_ridge, make_roll
from locbook.datasets.mixture import KnownMixture, MixtureSample, make_mixture
from locbook.datasets.oliver_twist import (
    Chapter,
    WordCounts,
    count_word_pairs,
    load_oliver_twist,
    load_oliver_twist_counts,
    oliver_twist_chapters,
    oliver_twist_tokens,
)
from locbook.datasets.relations import AsymmetricData, make_asymmetric, make_triplets

__all__ = [
    "AsymmetricData",
    "Chapter",
    "Curve",
    "FashionMNIST",
    "KnownMixture",
    "LabelImage",
    "MixtureSample",
    "Ridge",
    "Roll",
    "TimeSeries",
    "WordCounts",
    "cache_folder",
    "circle_ridge_radius",
    "count_word_pairs",
    "is_available",
    "load_fashion_mnist",
    "load_oliver_twist",
    "load_oliver_twist_counts",
    "make_asymmetric",
    "make_curve",
    "make_label_image",
    "make_mixture",
    "make_ridge",
    "make_roll",
    "make_seasonal",
    "make_triplets",
    "mask_pixels",
    "oliver_twist_chapters",
    "oliver_twist_tokens",
]
