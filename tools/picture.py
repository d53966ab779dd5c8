"""Draw the project's picture: a query, its neighbours, their weights, and the mean.

Usage: ``python -m tools.picture``. The same code gives the same bytes.
"""

from pathlib import Path

import matplotlib
import numpy as np

from locbook.plotting import COLOURS, use_style
from tools import BOOK

PICTURE = BOOK / "_static" / "idea.svg"
QUERY, BANDWIDTH = 0.62, 0.06


def local_mean(queries, samples, values, bandwidth):
    """Weights and local means with the Gaussian kernel, in one dimension."""
    weights = np.exp(-0.5 * ((queries[:, None] - samples) / bandwidth) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights, weights @ values


def draw(to: Path = PICTURE) -> Path:
    """Write the picture as SVG, its letters as outlines."""
    import matplotlib.pyplot as plt

    use_style()
    matplotlib.rcParams["svg.hashsalt"] = "locbook"  # else the identifiers in the file are random
    rng = np.random.default_rng(11)
    samples = np.sort(rng.uniform(size=60))
    values = np.sin(5 * samples) + 0.5 * samples + 0.22 * rng.normal(size=60)
    grid = np.linspace(0, 1, 300)
    weights, (mean,) = local_mean(np.array([QUERY]), samples, values, BANDWIDTH)
    _, curve = local_mean(grid, samples, values, BANDWIDTH)

    figure, axes = plt.subplots(figsize=(8, 3.4))
    floor = values.min() - 0.75
    kernel = np.exp(-0.5 * ((grid - QUERY) / BANDWIDTH) ** 2)
    axes.fill_between(grid, floor, floor + 0.6 * kernel, color=COLOURS["sky"], alpha=0.5, linewidth=0)
    axes.annotate("kernel", (QUERY + 0.085, floor + 0.28), color=COLOURS["blue"])
    axes.plot(
        grid, curve, color=COLOURS["black"], linewidth=1.2, linestyle="--", label="local mean everywhere"
    )
    share = weights[0] / weights.max()
    order = np.argsort(share)  # the heaviest on top
    axes.scatter(
        samples[order], values[order], s=16 + 150 * share[order], c=share[order],
        cmap="cividis_r", edgecolors="black", linewidths=0.5, label="samples, large if they count",
    )  # fmt: skip
    axes.vlines(QUERY, floor, mean, color=COLOURS["vermilion"], linestyle=":")
    axes.plot(
        QUERY,
        mean,
        "*",
        markersize=19,
        color=COLOURS["vermilion"],
        markeredgecolor="black",
        label="the mean at the query",
    )
    axes.set(xlim=(0, 1), ylim=(floor, values.max() + 0.2), yticks=[], xticks=[QUERY])
    axes.set_xticklabels(["query"])
    axes.grid(visible=False)
    axes.legend(loc="lower left", fontsize=9)
    figure.savefig(to, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return to


if __name__ == "__main__":
    print(draw())
