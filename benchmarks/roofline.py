r"""What the machine could do at best, and which share of that was reached.

No program can be faster than its arithmetic at the measured peak, or than its data at the measured bandwidth:

.. math:: t_{\min} = \max\left(\frac{\text{flops}}{\text{peak}}, \frac{\text{bytes}}{\text{bandwidth}}\right),
   \qquad \text{share} = t_{\min} / t .

(Williams, Waterman and Patterson 2009.) The peak is that of fused multiply-adds, two operations at once. Where
a processor adds in the same units, a lone subtraction takes as long, and sums of squared differences end at a share of
3/4; where it adds in units of their own, they may come close to 1. Comparisons and maxima are not counted at all.
"""

from __future__ import annotations

from typing import Any

#: Degree of the polynomial for 2^f, |f| <= 1/2: the least whose error is below half a unit in the last place. The
#: Chebyshev bound 2 (ln 2 / 4)^(k+1) / (k+1)! gives 2e-9 for k = 6 (needed: 3e-8), 3e-18 for k = 11 (needed: 1e-16).
DEGREE = {"float32": 6, "float64": 11}

#: Operations of one exponential: times log2(e), round, subtract, Horner's rule, times 2^k.
EXPONENTIAL = {dtype: 3 + 2 * degree + 1 for dtype, degree in DEGREE.items()}


#: Instructions of one exponential: round by an addition, two subtractions, Horner's rule, shift and add to multiply by
#: 2^k, compare and select what is too small; and the comparison that keeps the largest exponent.
INSTRUCTIONS = {dtype: 3 + degree + 2 + 2 + 1 for dtype, degree in DEGREE.items()}


def ceiling(row: dict[str, Any]) -> float | None:
    """Share of the peak that is left where every arithmetic instruction takes the place of a multiply-add."""
    if row.get("instructions") is None:
        return None
    operations = row["flops"] + EXPONENTIAL[row["dtype"]] * row["exponentials"]
    return operations / 2 / (row["instructions"] + INSTRUCTIONS[row["dtype"]] * row["exponentials"])


def least_seconds(row: dict[str, Any], peak: dict[str, Any], threads: int) -> tuple[float, str]:
    """Least time for a row's operations and bytes, and what sets it: ``"arithmetic"`` or ``"memory"``."""
    operations = row["flops"] + EXPONENTIAL[row["dtype"]] * row["exponentials"]
    arithmetic = operations / (1e9 * peak["gflops"][row["dtype"]][str(threads)])
    memory = row["bytes"] / (1e9 * peak["bandwidth_gb_s"][str(threads)])
    return max((arithmetic, "arithmetic"), (memory, "memory"))


def add_shares(rows: list[dict[str, Any]], peak: dict[str, Any]) -> None:
    """Write the share of the roofline into each timed row whose cost is counted."""
    for row in rows:
        if row.get("flops") is None:
            continue
        row["ceiling"] = ceiling(row)
        for threads, timed in row.get("threads", {}).items():
            least, row["bounded_by"] = least_seconds(row, peak, int(threads))
            timed["roofline_share"] = least / timed["ours_s"]
