# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# (ch-local-mean)=
# # 3. The local mean
#
# Every prediction in this book is a weighted mean of known values: a kernel says who is near, and its bandwidth says how near is near.
#
# :::{admonition} In this chapter
# :class: lb-card
#
# **You will be able to**
#
# - compute a local mean by hand, in ten lines of NumPy, and with `locbook`;
# - name the samples that made a prediction, and their shares;
# - write the local mean as a matrix, and predict each sample from the others at no extra cost;
# - choose a bandwidth, and say which samples decided the choice;
# - foretell what a query far from all samples gets, kernel by kernel.
#
# **You need**: weighted means, the exponential function, a little NumPy, and the {doc}`notation <../notation>` at hand. This chapter stands alone.
#
# **Time**: 40 minutes for a first reading; two hours with the proofs, the code and the exercises. **Memory**: 0.5 GB.
# :::

# %% tags=["setup", "hide-cell"]
import sys

if "google.colab" in sys.modules:
    import subprocess

    source = "locbook[book] @ git+https://github.com/locbook/locbook"
    subprocess.check_call(
        [sys.executable, "-m", "pip", "install", "--quiet", source]
    )

import warnings

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

import locbook as lb
from locbook.exercises import check
from locbook.notebook import glue
from locbook.plotting import COLOURS, slider, use_style

use_style()
rng = np.random.default_rng(3)

# %% [markdown]
# ## The picture
#
# In 1857 Ernst Engel studied the budgets of Belgian working-class households {cite}`engel1857`. For 235 of them we know the yearly income and what they spent on food, both in francs {cite}`koenker1982`.
#
# **A household earns 1,000 francs. How much does it spend on food?**
#
# Nobody in the data earns exactly 1,000 francs. But many earn about that. {numref}`fig-local-mean-query` shows the answer of this chapter: look at the households near 1,000 francs, let the nearest count most, and take the mean of what they spend.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-local-mean-query", "caption": "Income and food expenditure of 235 households. The vertical line is the query, 1,000 francs. The larger and darker a dot, the more the household counts. The open diamond is the weighted mean of what they all spend: the prediction."}, "image": {"alt": "A scatter plot. Food expenditure rises with income, and the dots spread out as it rises. Dots near the vertical line at 1,000 francs are large and dark, dots far from it are small and pale. An open diamond on the line, at about 630 francs of food, marks the prediction.", "classes": "dark-light"}}
households = sm.datasets.engel.load_pandas().data
samples = households[["income"]].to_numpy()  # shape (235, 1)
values = households["foodexp"].to_numpy()  # shape (235,)

query = np.array([[1000.0]])
prediction, weights = lb.local_mean(
    query, samples, values, lb.gaussian(130.0), return_weights=True
)

fig, ax = plt.subplots()
share = weights[0] / weights.max()
ax.scatter(
    samples[:, 0],
    values,
    s=8 + 60 * share,
    c=share,
    cmap="cividis_r",
    vmin=-0.3,
    edgecolor="none",
)
ax.axvline(query[0, 0], color=COLOURS["black"], linestyle="--", linewidth=1)
diamond = {
    "color": COLOURS["vermilion"],
    "markerfacecolor": "none",
    "markeredgewidth": 2.5,
    "markersize": 12,
}
ax.plot(query[0, 0], prediction[0], "D", label="prediction", **diamond)
ax.set_xlabel("income (francs a year)")
ax.set_ylabel("food (francs a year)")
ax.legend(loc="lower right")
plt.show()

# %% tags=["remove-cell"]
glue("prediction_1000", round(float(prediction[0])))
glue("largest_share", round(100 * float(weights.max()), 1))
glue("mean_food", round(float(values.mean())))

# %% [markdown]
# The prediction is {glue:text}`prediction_1000` francs. No single household made it: the one that counts most has a share of {glue:text}`largest_share` %.
#
# ## The mathematics
#
# We have samples $(x_i, y_i)$, $i = 1, \dots, n$: here $x_i$ is an income and $y_i$ what that household spends on food. We ask at a **{term}`query`** $x^*$. A **{term}`kernel`** $K(x^*, x_i) \ge 0$ says how much sample $i$ counts there; it falls as the distance grows. This chapter mostly uses the Gaussian kernel
#
# $$ K(x^*, x_i) = e^{-u^2/2}, \qquad u = \frac{\lvert x^* - x_i\rvert}{h}, $$
#
# with the **{term}`bandwidth`** $h > 0$, in the units of $x$ (francs). A household one bandwidth away counts $e^{-1/2} \approx 0.61$ times as much as one at the query; two bandwidths away, $0.14$ times; three, $0.01$ times. Five more kernels will appear. Each is a function of the same $u$, the distance in bandwidths, except the last:
#
# | kernel | $K$ | in code |
# |---|---|---|
# | Gaussian | $e^{-u^2/2}$ | `lb.gaussian(h)` |
# | Laplace | $e^{-u}$ | `lb.laplace(h)` |
# | Cauchy | $1/(1 + u^2)$ | `lb.cauchy(h)` |
# | Epanechnikov | $1 - u^2$ where $u < 1$, else $0$; written $(1 - u^2)_+$ | `lb.epanechnikov(h)` |
# | uniform | $1$ where $u \le 1$, else $0$: all within the radius $h$, alike | `lb.uniform(h)` |
# | $k$ nearest | $1$ for the $k$ samples nearest to the query, else $0$ | `lb.knn(k)` |
#
# :::{prf:definition} Local mean
# :label: def-local-mean
#
# The **{term}`local mean`** at the query $x^*$ is
#
# ```{math}
# :label: eq-local-mean
# \hat y(x^*) = \frac{\sum_i K(x^*, x_i)\, y_i}{\sum_i K(x^*, x_i)} = \sum_i w_i(x^*)\, y_i .
# ```
#
# The **{term}`weights`** $w_i(x^*) = K(x^*, x_i) \,/ \sum_j K(x^*, x_j)$ are not negative and sum to 1.
# :::
#
# The estimator is from 1964, when {cite:t}`nadaraya1964` and {cite:t}`watson1964` found it independently. This book follows a recent paper, *The General Theory of Localization Methods* {cite}`song2026`, which we know by its abstract and by summaries. The paper (as its summaries tell it) writes this formula, calls it by its old name, the Nadaraya–Watson estimator, and builds the rest of its theory on it.
#
# | symbol | variable | meaning | here |
# |---|---|---|---|
# | $x^*$ | `queries`, shape `(m, d)` | where we ask | 1,000 francs |
# | $x_i$ | `samples`, shape `(n, d)` | what we know the answer for | 235 incomes |
# | $y_i$ | `values`, shape `(n,)` | the answers | 235 sums spent on food |
# | $K$ | `kernel` | how much a sample counts | Gaussian |
# | $h$ | `bandwidth` | how near is near | 130 francs |
# | $w_i(x^*)$ | `weights`, shape `(m, n)` | shares, they sum to 1 | at 1,000 francs, at most a few per cent each |
#
# Why a mean? Because it is the best constant.
#
# :::{prf:proposition} The best constant, locally
# :label: prop-best-constant
#
# Where $\sum_i K(x^*, x_i) > 0$, the local mean is the one number $\theta$ that minimises the local squared error
#
# ```{math}
# :label: eq-local-loss
# J(x^*, \theta) = \sum_i K(x^*, x_i)\,(y_i - \theta)^2 .
# ```
# :::
#
# :::{prf:proof}
# $J$ is a parabola in $\theta$ that opens upwards. Its derivative is $-2\sum_i K(x^*, x_i)(y_i - \theta)$. It is zero exactly when $\theta \sum_i K(x^*, x_i) = \sum_i K(x^*, x_i)\,y_i$, which is {eq}`eq-local-mean`.
# :::
#
# The paper (as its summaries tell it) calls the minimiser of {eq}`eq-local-loss` a *local decision*: it holds only at $x^*$, and nothing is computed until a query comes {cite}`song2026`. Three facts follow at once.
#
# - **Range.** The weights are shares, so the local mean lies between the smallest and the largest $y_i$, wherever you ask.
# - **Linearity.** For fixed $x_i$ the local mean is linear in the $y_i$. That makes it a matrix, below.
# - **Limits.** Two samples at distances $a < b$ from the query weigh in the ratio $K_b / K_a = e^{-(b^2 - a^2)/2h^2}$. As $h \to \infty$ the ratio tends to 1: all count the same, and the answer becomes the plain mean of all values. As $h \to 0$ the ratio tends to 0: the nearest sample takes all; if several are equally near, their mean.
#
# ## From scratch
#
# Equation {eq}`eq-local-mean`, for any number of columns. Copy it; it needs NumPy and nothing else. A single column, too, has two axes: shape `(n, 1)`, which `x[:, None]` makes of shape `(n,)`.

# %% tags=["standalone"]
import numpy as np


def local_mean(queries, samples, values, bandwidth):
    """Gaussian; queries (m, d), samples (n, d), values (n,) -> (m,)."""
    difference = queries[:, None, :] - samples[None, :, :]  # (m, n, d)
    squared = (difference**2).sum(axis=2)  # (m, n)
    log_kernel = -0.5 * squared / bandwidth**2
    log_kernel -= log_kernel.max(axis=1, keepdims=True)  # never 0/0
    kernel = np.exp(log_kernel)
    weights = kernel / kernel.sum(axis=1, keepdims=True)  # rows sum to 1
    return weights @ values


x = np.array([[0.0], [1.0], [3.0]])
y = np.array([2.0, 4.0, 9.0])
print(local_mean(np.array([[1.0], [1e6]]), x, y, bandwidth=1.0).round(4))

# %% [markdown]
# Two lines deserve a second look. The first: `None` in an index adds an axis of length 1, and NumPy repeats such an axis to fit the other operand. So `queries[:, None, :] - samples[None, :, :]` holds the difference of *every* query and *every* sample. With plain vectors, `a[:, None] - b[None, :]` does the same.
#
# The second is the subtraction of the maximum. Far from all samples every $e^{-u^2/2}$ is 0 as a floating-point number, and 0/0 is no answer. Subtracting the largest exponent multiplies numerator and denominator of {eq}`eq-local-mean` by the same number, so nothing changes, except that the largest weight is now exactly 1. The query at one million above is safe: it gets the value of the nearest sample.
#
# ## The library
#
# `locbook` does the same for every kernel of the table and many more. Unless you ask for the weights, it never holds all $m \times n$ of them: it takes the samples in small tiles and adds up as it goes. Both must agree, here on 500 incomes:

# %%
kernel = lb.gaussian(130.0)
grid = np.linspace(300, 5000, 500)[:, None]
curve = lb.local_mean(grid, samples, values, kernel)

assert np.allclose(
    curve, local_mean(grid, samples, values, bandwidth=130.0), rtol=1e-12
)
print(kernel, curve.shape)

# %% [markdown]
# ### Who made this prediction?
#
# A local mean can always answer that. `lb.explain` lists the samples with the largest shares, by their row in the data.

# %%
explanation = lb.explain([1000.0], samples, values, kernel, top=4)
print(explanation)
print("their incomes:", samples[explanation.indices, 0].round(1))

# %% tags=["remove-cell"]
glue("effective", round(explanation.effective_neighbors))

# %% [markdown]
# The last line says how many households the prediction really rests on. The **{term}`effective number of neighbours <effective neighbours>`**, $1/\sum_i w_i^2$, is $k$ when $k$ samples weigh $1/k$ each. Here about {glue:text}`effective` households speak for a household of 1,000 francs.
#
# ### Turn the bandwidth
#
# The bandwidth is the one thing that you choose. Before you move the slider: what do you expect at 20 francs, and what at 2,000?

# %% tags=["hide-input"]
frames = []
for h in (20, 40, 80, 130, 250, 500, 1000, 2000):
    k = lb.gaussian(float(h))
    fig, ax = plt.subplots()
    ax.plot(samples[:, 0], values, "o", color=COLOURS["sky"], markersize=4)
    ax.plot(
        grid[:, 0],
        lb.local_mean(grid, samples, values, k),
        color=COLOURS["vermilion"],
    )
    ax.axhline(
        values.mean(), color=COLOURS["black"], linestyle=":", linewidth=1
    )
    ax.set_xlabel("income (francs a year)")
    ax.set_ylabel("food (francs a year)")
    heard = lb.explain([1000.0], samples, values, k).effective_neighbors
    ax.set_title(
        f"h = {h} francs: {heard:.0f} effective neighbours at 1,000 francs"
    )
    low, mid, high = lb.local_mean(
        [[500.0], [1000.0], [2500.0]], samples, values, k
    )
    alt = f"The local mean with bandwidth {h}: {low:.0f}, {mid:.0f} and {high:.0f} francs at incomes of 500, 1,000 and 2,500."
    frames.append((f"h = {h}", alt, fig))
slider(
    frames,
    "bandwidth h",
    start=3,
    caption="The local mean of food expenditure for eight bandwidths. The dotted line is the mean of all households.",
)

# %% [markdown]
# With a small bandwidth, where households are few, the curve jumps from one to the next. Ask 235 *other* households, and it would look quite different: it has much **{term}`variance`**. With a large one, every household is heard everywhere, so other households would give nearly the same curve; but it runs too high for the poor and too low for the rich, whoever is asked: it has much **{term}`bias`**. Between the two lies the choice, and for it we need two tools: a matrix, and a way to test a prediction on a household that it has not seen.
#
# ### The smoother matrix
#
# Ask at the samples themselves. The $n$ predictions at $x_1, \dots, x_n$, the **fitted values**, make a vector $\hat y$. By {eq}`eq-local-mean` it is a matrix times the vector of the values,
#
# $$ \hat y = S y, \qquad S_{ij} = w_j(x_i), $$
#
# with the **{term}`smoother matrix`** $S$. Row $i$ holds the shares of all samples in the prediction at $x_i$, so each row sums to 1. The diagonal entry $S_{ii}$ is the share that sample $i$ has in its *own* prediction. The sum of the diagonal, the trace $\operatorname{tr} S = \sum_i S_{ii}$, says how many samples' worth of freedom the curve has. If everybody counts the same everywhere, all $S_{ii} = 1/n$, and the trace is 1: one number is estimated, the mean. If every sample predicts itself, all $S_{ii} = 1$, and the trace is $n$. In between it is called the **{term}`degrees of freedom`** of the curve {cite}`hastie2009`.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-local-mean-smoother", "caption": "Left: the smoother matrix for h = 130 francs, households in order of income; each row holds the shares in one prediction, on a logarithmic scale that ends at 0.001. Right: its diagonal, the share that each household has in its own prediction, for two bandwidths."}, "image": {"alt": "Left, a square map with a bright band along the diagonal, wide in the middle and narrow at the bottom right, where the rich households stand. Right, two sets of dots over income: below 1,500 francs all own shares are small, above 2,000 francs they rise, and for the two richest households they reach 1 at a bandwidth of 40 francs.", "classes": "dark-light"}}
order = np.argsort(samples[:, 0])
fig, (left_ax, right_ax) = plt.subplots(1, 2, figsize=(7.4, 3.4))
for h, marker in ((40.0, "x"), (130.0, "o")):
    S = lb.smoother_matrix(samples[order], lb.gaussian(h))
    name = f"h = {h:.0f}, trace {np.trace(S):.1f}"
    right_ax.plot(
        samples[order, 0],
        np.diag(S),
        marker,
        linestyle="none",
        markersize=4,
        label=name,
    )
image = left_ax.imshow(np.log10(np.maximum(S, 1e-3)), vmin=-3, vmax=0)
left_ax.set_xlabel("sample j")
left_ax.set_ylabel("query i")
left_ax.set_title("log10 of the share", fontsize=11)
left_ax.grid(visible=False)
fig.colorbar(image, ax=left_ax)
right_ax.set_xlabel("income (francs a year)")
right_ax.set_ylabel("own share $S_{ii}$")
right_ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %% [markdown]
# Look at the rich households on the right of {numref}`fig-local-mean-smoother`. They have hardly any neighbours, so with a small bandwidth they predict themselves. Keep that in mind.
#
# ### Leave one out
#
# How good is a prediction for a household that was not in the data? Take household $i$ out, predict it from the others, call that $\hat y_{-i}$, and compare it with $y_i$ {cite}`stone1974`. Done one by one, this asks for $n$ predictions from $n$ different data sets. But the local mean needs only the fitted values and the diagonal of $S$.
#
# :::{prf:theorem} Leave-one-out at no extra cost
# :label: thm-leave-one-out
#
# If the kernel value $K(x_i, x_j)$ of two samples does not depend on any other sample, and $S_{ii} < 1$, then
#
# ```{math}
# :label: eq-leave-one-out
# y_i - \hat y_{-i} = \frac{y_i - \hat y_i}{1 - S_{ii}} .
# ```
# :::
#
# :::{prf:proof}
# Write $k_{ij} = K(x_i, x_j)$ and $k_i = \sum_j k_{ij}$. Then $S_{ii} = k_{ii}/k_i$ and $\sum_j k_{ij} y_j = k_i \hat y_i$. Without sample $i$, the sum in the numerator loses $k_{ii} y_i$ and the sum in the denominator loses $k_{ii}$. Divide both by $k_i$:
#
# $$ \hat y_{-i} = \frac{k_i \hat y_i - k_{ii} y_i}{k_i - k_{ii}} = \frac{\hat y_i - S_{ii}\, y_i}{1 - S_{ii}} . $$
#
# Hence $y_i - \hat y_{-i} = \big(y_i - S_{ii}\,y_i - \hat y_i + S_{ii}\,y_i\big)/(1 - S_{ii}) = (y_i - \hat y_i)/(1 - S_{ii})$.
# :::
#
# In words: the **{term}`residual`** $y_i - \hat y_i$, what is left between value and fitted value, looks too small by the factor $1 - S_{ii}$, because the sample helped to predict itself. If $S_{ii} = 1$ nobody else is in the window, and both sides are 0/0.
#
# There is a second road. Set $K(x_i, x_i) = 0$ before you divide by the sum: such a kernel is called **{term}`hollow`**, and its local mean at a sample hears only the others. Both roads must meet:

# %%
shortcut = lb.leave_one_out(samples, values, kernel, method="shortcut")
hollow = lb.leave_one_out(samples, values, kernel, method="hollow")
print(
    "largest difference below 1e-9:",
    bool(np.abs(shortcut - hollow).max() < 1e-9),
)

# %% [markdown]
# The $k$ nearest neighbours break the condition of the theorem: take one out, and somebody else becomes the $k$-th. The library then refuses the shortcut, and the hollow kernel does the work:

# %%
try:
    lb.leave_one_out(samples, values, lb.knn(10), method="shortcut")
except ValueError as error:
    print(error)

# %% [markdown]
# ### Choose the bandwidth
#
# Try many bandwidths and keep the one with the smallest mean of the squared leave-one-out errors $(y_i - \hat y_{-i})^2$. `lb.select_bandwidth` does that, over a range that it takes from the data. A second score is **{term}`generalised cross-validation`** {cite}`craven1979`. In {eq}`eq-leave-one-out` it replaces each $S_{ii}$ by their average, $\operatorname{tr} S/n$:
#
# $$ \mathrm{LOO}(h) = \frac1n \sum_i \Big(\frac{y_i - \hat y_i}{1 - S_{ii}}\Big)^2,
# \qquad
# \mathrm{GCV}(h) = \frac1n \sum_i \Big(\frac{y_i - \hat y_i}{1 - \operatorname{tr} S / n}\Big)^2 . $$

# %%
by_loo = lb.select_bandwidth(samples, values, "gaussian", method="loo")
by_gcv = lb.select_bandwidth(samples, values, "gaussian", method="gcv")
for name, chosen in (("LOO", by_loo), ("GCV", by_gcv)):
    spent = lb.degrees_of_freedom(samples, chosen.kernel)
    print(
        f"{name}: h = {chosen.bandwidth:5.1f} francs, {spent:4.1f} degrees of freedom"
    )

# %% [markdown]
# They disagree widely. Who is right? Ask who decided: look for the household with the largest error.

# %%
errors = (values - lb.leave_one_out(samples, values, by_loo.kernel)) ** 2
loudest = errors.argmax()
print(f"income {samples[loudest, 0]:.0f}, food {values[loudest]:.0f} francs")
print(
    f"its part of the sum of squared errors: {errors[loudest] / errors.sum():.0%}"
)
for chosen in (by_gcv, by_loo):
    error = (
        values[loudest]
        - lb.leave_one_out(samples, values, chosen.kernel)[loudest]
    )
    others = 1 - lb.smoother_matrix(samples, chosen.kernel)[loudest, loudest]
    print(
        f"h = {chosen.bandwidth:5.1f}: leave-one-out error {error:4.0f} francs, share of all others {others:.4f}"
    )

# %% tags=["remove-cell"]
glue("loudest_share", f"{errors[loudest] / errors.sum():.0%}")
glue(
    "average_own",
    round(lb.degrees_of_freedom(samples, by_gcv.kernel) / len(values), 2),
)

# %% [markdown]
# One household makes {glue:text}`loudest_share` of the whole leave-one-out score. It has few neighbours, and it spends far more than they do. A wider window predicts it a little better, so leave-one-out widens the window for everybody.
#
# Generalised cross-validation hardly sees that household. With the bandwidth that GCV chose, it predicts itself: the others have no share to speak of, and its residual is almost nothing. The exact formula would divide that almost-nothing by $1 - S_{ii}$, which is almost nothing too, and find the large error. GCV divides by one minus the *average* share, $1 - \operatorname{tr} S/n$, where $\operatorname{tr} S/n$ is {glue:text}`average_own`, and finds none.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-local-mean-scores", "caption": "Leave-one-out (solid) and generalised cross-validation (dashed) for each bandwidth, as a root, in francs. Markers show the minima. The dash-dotted line is leave-one-out without the one loudest household."}, "image": {"alt": "Three curves over the bandwidth on a logarithmic axis, each with one valley. Generalised cross-validation is lowest near 40 francs, leave-one-out near 134 francs. Without the loudest household the leave-one-out curve is lower, and its valley lies between the other two, near 80 francs.", "classes": "dark-light"}}
bandwidths = np.geomspace(15, 1000, 60)
quiet = np.arange(len(values)) != loudest
loo, gcv, loo_quiet = [], [], []
for h in bandwidths:
    k = lb.gaussian(h)
    residual = values - lb.local_mean(samples, samples, values, k)
    left_out = (values - lb.leave_one_out(samples, values, k)) ** 2
    loo.append(np.sqrt(left_out.mean()))
    loo_quiet.append(np.sqrt(left_out[quiet].mean()))
    gcv.append(
        np.sqrt((residual**2).mean())
        / (1 - lb.degrees_of_freedom(samples, k) / len(values))
    )

fig, ax = plt.subplots()
for curve_, name in (
    (loo, "leave-one-out"),
    (gcv, "GCV"),
    (loo_quiet, "leave-one-out, loudest left aside"),
):
    (line,) = ax.plot(bandwidths, curve_, label=name)
    ax.plot(
        bandwidths[np.argmin(curve_)],
        np.min(curve_),
        "o",
        color=line.get_color(),
        markersize=8,
    )
ax.set_xscale("log")
ax.set_xticks(
    [20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1000"]
)
ax.set_ylim(75, 160)
ax.set_xlabel("bandwidth h (francs)")
ax.set_ylabel("root of the score (francs)")
ax.legend()
plt.show()

# %% tags=["remove-cell"]
glue("h_quiet", round(float(bandwidths[np.argmin(loo_quiet)])))

# %% [markdown]
# Set that one error aside, and leave-one-out would choose about {glue:text}`h_quiet` francs, between the two.
#
# So neither score is wrong; they answer different questions. The data are hard for a single bandwidth: dense among the poor, thin among the rich. Remedies come later: a ruler that stretches where samples are rare ({ref}`the third exercise <ex-local-mean-logarithms>` is a first step, chapter 19 the whole story), and losses that do not square large errors (chapter 4). Until then: choose by leave-one-out, and look at who decided.
#
# One warning. You may meet the bandwidth rules of Silverman and Scott. They look only at the $x_i$, to estimate how densely these lie, and know nothing of $y$. Do not use them here.
#
# ## The outside check
#
# A result is worth more when somebody else's code finds it too. `statsmodels` has the local mean as `KernelReg` with `reg_type="lc"`, for "locally constant" {cite}`seabold2010`; scikit-learn has the uniform kernel and the nearest neighbours {cite}`pedregosa2011`.

# %%
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from statsmodels.nonparametric.kernel_regression import KernelReg

incomes = np.linspace(400, 2500, 200)[:, None]
peers = {
    "statsmodels, Gaussian": (
        KernelReg(
            values, samples, var_type="c", reg_type="lc", bw=[130.0], rng=rng
        ).fit(incomes)[0],
        lb.gaussian(130.0),
    ),
    "scikit-learn, radius": (
        RadiusNeighborsRegressor(radius=300.0)
        .fit(samples, values)
        .predict(incomes),
        lb.uniform(300.0),
    ),
    "scikit-learn, 10 nearest": (
        KNeighborsRegressor(n_neighbors=10)
        .fit(samples, values)
        .predict(incomes),
        lb.knn(10),
    ),
}
for name, (theirs, k) in peers.items():
    difference = np.abs(
        theirs - lb.local_mean(incomes, samples, values, k)
    ).max()
    print(
        f"{name:25s} largest difference below 1e-9 francs: {bool(difference < 1e-9)}"
    )

# %% [markdown]
# ## The experiment: half a garment
#
# Nothing in {eq}`eq-local-mean` asks $y$ to be a number. Let it be a picture. Fashion-MNIST {cite}`xiao2017` holds small grey images of garments. Cut each in two: the left half, 392 pixels, is $x$; the right half is $y$. Given the left half of a garment that we have never seen, draw the right half.
#
# **A question before the answer.** Which will come closest: the right half of the *one* nearest garment, the mean of *all* garments, or something between? And how many garments should speak?

# %%
train = lb.datasets.load_fashion_mnist(split="train")
test = lb.datasets.load_fashion_mnist(split="test")
left, right = train.images[:, :, :14] / 255, train.images[:, :, 14:] / 255
left, right = left.reshape(2000, -1), right.reshape(2000, -1)
left_test, right_test = (
    test.images[:, :, :14] / 255,
    test.images[:, :, 14:] / 255,
)
left_test, right_test = left_test.reshape(500, -1), right_test.reshape(500, -1)


def rmse(drawn):
    """Root mean squared error of a pixel; black is 0, white is 1."""
    return np.sqrt(((drawn - right_test) ** 2).mean())


chosen = lb.select_bandwidth(left, right, "gaussian", method="loo")
by_name = {
    "mean of all": np.tile(right.mean(axis=0), (500, 1)),
    "nearest garment": lb.local_mean(left_test, left, right, lb.knn(1)),
    "10 nearest": lb.local_mean(left_test, left, right, lb.knn(10)),
    "local mean": lb.local_mean(left_test, left, right, chosen.kernel),
}
for name, drawn in by_name.items():
    print(f"{name:16s} RMSE {rmse(drawn):.3f}")

# %% tags=["remove-cell"]
w = lb.local_weights(left_test, left, chosen.kernel)
effective = 1 / (w**2).sum(axis=1)
glue("h_garment", round(chosen.bandwidth, 2))
glue("eff_low", round(float(np.quantile(effective, 0.1)), 1))
glue("eff_median", round(float(np.median(effective))))
glue("eff_high", round(float(np.quantile(effective, 0.9))))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-local-mean-garments", "caption": "Seven test garments. Top row: the truth. In the rows below, the left half is given and the right half is drawn: by the mean of all garments, by the nearest garment, and by the local mean with the bandwidth that leave-one-out chose."}, "image": {"alt": "A grid of small grey garments, four rows and seven columns. With the mean of all, every right half is the same grey blur. With the nearest garment, right halves are sharp but sometimes of the wrong brightness or length. With the local mean they are soft and fit the left halves best.", "classes": "dark-light"}}
rows = {
    "truth": right_test,
    "mean of all": by_name["mean of all"],
    "nearest": by_name["nearest garment"],
    "local mean": by_name["local mean"],
}
columns = [0, 1, 2, 3, 6, 8, 9]
fig, axes = plt.subplots(4, 7, figsize=(6.4, 3.9))
for line, (name, drawn) in zip(axes, rows.items(), strict=True):
    for ax, i in zip(line, columns, strict=True):
        halves = left_test[i].reshape(28, 14), drawn[i].reshape(28, 14)
        ax.imshow(np.hstack(halves), cmap="gray", vmin=0, vmax=1)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.grid(visible=False)
    line[0].set_ylabel(name, fontsize=9)
plt.show()

# %% [markdown]
# Something between. One garment is sharp but too sure of itself; the mean of all ignores the question. The local mean listens to some garments (the bandwidth, {glue:text}`h_garment`, is a distance between left halves), and to a different number each time: half of the 500 queries have fewer than {glue:text}`eff_median` effective neighbours, one in ten has fewer than {glue:text}`eff_low`, one in ten more than {glue:text}`eff_high`. Common garments have many look-alikes, odd ones few, and a bandwidth adapts to that where a fixed $k$ cannot. Still, the gain over the ten nearest is small.
#
# ## Where it breaks
#
# ### Far from everybody
#
# What does a household with 20,000 francs spend on food? No data can tell, but the formula will say something, and *what* it says depends on the tail of the kernel.

# %%
far = np.array([[20_000.0], [1_000_000.0]])
for k in (lb.gaussian(130.0), lb.laplace(130.0), lb.cauchy(130.0)):
    print(f"{k!r:18}", lb.local_mean(far, samples, values, k).round(1))
print(
    "richest household:",
    values[np.argmax(samples)].round(1),
    "  mean of all:",
    values.mean().round(1),
)

# %% tags=["remove-cell"]
richest, second = np.sort(samples[:, 0])[[-1, -2]]
glue("behind", round(float((richest - second) / 130.0)))

# %% [markdown]
# - **Gaussian**: the nearest sample takes all, here the richest household.
# - **Laplace**: far away only *differences* of distance matter: a sample that is $b - a$ farther than the nearest weighs $e^{-(b-a)/h}$ times as much, however far both are. Here the next richest household is {glue:text}`behind` bandwidths behind, so the richest still takes all; closer together, they would share.
# - **Cauchy**: far away all samples are about equally far, and the answer drifts to the mean of all.
#
# A kernel with **{term}`compact support`** reaches only as far as its bandwidth. Out there the Epanechnikov kernel has nobody to ask, and the local mean is 0/0. You say what should happen then:

# %%
compact = lb.epanechnikov(300.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    answer = lb.local_mean(
        [[1000.0], [4000.0], [20_000.0]], samples, values, compact
    )
print(answer.round(1))
print(caught[0].message)
for policy in ("nearest", "mean"):
    print(
        policy,
        lb.local_mean(
            [[4000.0]], samples, values, compact, empty=policy
        ).round(1),
    )

# %% [markdown]
# The default is an honest NaN, with one warning that counts the queries concerned. `empty="raise"` turns it into an error. The second query, 4,000 francs, lies *inside* the data, between two rich households: empty windows are not only a matter of the edge.
#
# ### At the edge
#
# At the lowest income every neighbour is richer, so the mean is too high. The bias needs no noise. Take the line $y = x$ on $[0, 1]$:

# %%
line = np.linspace(0, 1, 1001)[:, None]
at = np.array([[0.0], [0.5], [1.0]])
print(lb.local_mean(at, line, line[:, 0], lb.gaussian(0.1)).round(3))

# %% [markdown]
# In the middle the local mean is right; at both ends it is off by about $0.8\,h$: with neighbours on one side only, the mean distance to them is $\sqrt{2/\pi}\,h$. A local *line* mends that {cite}`fan1993`. It is the subject of chapter 5, which shows that it is a local mean too, with weights that may be negative.
#
# ### In many dimensions
#
# With many columns there is no "near". {numref}`fig-local-mean-dimension` predicts $\sin(2\pi x_1)$ from 1,000 samples that are spread evenly over the unit cube. Only the first column matters, but the distance cannot know that. Each bandwidth is chosen by leave-one-out.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-local-mean-dimension", "caption": "Error of the local mean against the number of columns, 1,000 samples. Dots: the kernel looks at all columns. Squares: it looks at the first only. The dotted line is the error of the plain mean."}, "image": {"alt": "A rising curve: with all columns the error grows from almost zero for one column to about two thirds of that of the plain mean, the dotted line, for twelve. With the first column only, the error stays near zero.", "classes": "dark-light"}}
dimensions = (1, 2, 3, 5, 8, 12)
all_columns, first_column = [], []
for d in dimensions:
    x_train, x_test = rng.uniform(size=(1000, d)), rng.uniform(size=(300, d))
    y_train, y_test = (
        np.sin(2 * np.pi * x_train[:, 0]),
        np.sin(2 * np.pi * x_test[:, 0]),
    )
    for errors_, form in (
        (all_columns, lb.gaussian(1.0)),
        (first_column, lb.gaussian(1.0, on=0)),
    ):
        best = lb.select_bandwidth(x_train, y_train, form).kernel
        drawn = lb.local_mean(x_test, x_train, y_train, best)
        errors_.append(np.sqrt(((drawn - y_test) ** 2).mean()))

fig, ax = plt.subplots()
ax.plot(dimensions, all_columns, "o-", label="all columns")
ax.plot(dimensions, first_column, "s--", label="on=0: the first column")
ax.axhline(
    np.sqrt(0.5), color=COLOURS["black"], linestyle=":", label="plain mean"
)
ax.set_xlabel("number of columns d")
ax.set_ylabel("root mean squared error")
ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.9))
plt.show()

# %% tags=["remove-cell"]
glue("error_1", round(float(all_columns[0]), 3))
glue("error_12", round(float(all_columns[-1]), 2))
glue("edge_12", round(0.1 ** (1 / 12), 2))
spread = np.linalg.svd(left - left.mean(axis=0), compute_uv=False) ** 2
ninety = np.searchsorted(np.cumsum(spread) / spread.sum(), 0.9) + 1
glue("directions", int(ninety))

# %% [markdown]
# The error grows from {glue:text}`error_1` with one column to {glue:text}`error_12` with twelve, each with the best bandwidth that leave-one-out could find. The reason: a cube that holds a tenth of the unit cube in twelve dimensions has edges of length $0.1^{1/12}$, which is {glue:text}`edge_12`. To catch a tenth of the samples, the window must be almost as wide as the data, and "near" means nothing. This is the *curse of dimension*. With ever more samples the local mean still tends to the truth {cite}`stone1977,gyorfi2002`, only too slowly to wait for. What helps is a better ruler: leave out columns that do not matter (`on=`), give each column its own bandwidth, or learn the ruler from the data (chapter 19). Why, then, did 392 pixels work? Because garments do not fill the cube of all images: {glue:text}`directions` of the 392 directions (principal components) hold 90 % of the variance of the left halves.
#
# ## As a local mean
#
# Each chapter ends with this table. Here every entry is the plainest it can be; from now on watch which entry changes.
#
# | | the local mean |
# |---|---|
# | space | any with a distance: here incomes, and half images |
# | kernel | Gaussian, bandwidth $h$ |
# | samples | the known $x_i$ |
# | values | the known $y_i$: numbers, or half images |
# | normalised | yes, by $\sum_j K(x^*, x_j)$: the weights sum to 1 |
# | iterated | no: the output is not fed back as a query |
#
# ## Exercises
#
# :::{exercise} By hand
# :label: ex-local-mean-by-hand
#
# Three samples: $x = 0, 1, 3$ with $y = 2, 4, 9$. The kernel is Epanechnikov's: $K = 1-u^2$ where $u < 1$, else $0$. The bandwidth is $h = 2$. What is the local mean at $x^* = 1$, to two decimals?
# :::

# %% tags=["exercise"]
answer = ...
check("local_mean.by_hand", answer)

# %% [markdown]
# :::{solution-start} ex-local-mean-by-hand
# :class: dropdown
# :::
#
# The distances from $x^* = 1$ are 1, 0 and 2, so $u = 0.5, 0, 1$, and the kernel gives $0.75$, $1$ and $0$: the third sample lies exactly on the edge of the window and does not count. The mean is $(0.75 \cdot 2 + 1 \cdot 4) / 1.75$.

# %% tags=["solution"]
answer = (0.75 * 2 + 1 * 4) / (0.75 + 1)
print(
    round(answer, 2),
    lb.local_mean(
        [[1.0]], [[0.0], [1.0], [3.0]], [2.0, 4.0, 9.0], lb.epanechnikov(2.0)
    ).round(2),
)
check("local_mean.by_hand", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} Leave one out, yourself
# :label: ex-local-mean-leave-one-out
#
# Write `answer(samples, values, bandwidth)` in NumPy. It gets `samples` and `values` of shape `(n,)` and returns, with shape `(n,)`, what the Gaussian local mean predicts at each sample from the *others*. Use no loop: `samples[:, None] - samples[None, :]` holds all differences, and `np.fill_diagonal(matrix, value)` sets a diagonal.
# :::

# %% tags=["exercise"]
answer = ...
check("local_mean.leave_one_out", answer)

# %% [markdown]
# :::{solution-start} ex-local-mean-leave-one-out
# :class: dropdown
# :::
#
# Make the kernel hollow: a sample has no weight in its own prediction.


# %% tags=["solution"]
def answer(samples, values, bandwidth):
    kernel = np.exp(
        -0.5 * ((samples[:, None] - samples[None, :]) / bandwidth) ** 2
    )
    np.fill_diagonal(kernel, 0.0)
    return kernel @ values / kernel.sum(axis=1)


check("local_mean.leave_one_out", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} Another ruler
# :label: ex-local-mean-logarithms
#
# 100 francs more mean much to a poor household and little to a rich one. So measure incomes by their logarithm, and food by its logarithm too: with `u = np.log(samples)` and `v = np.log(values)`, choose a Gaussian bandwidth by leave-one-out, predict at the logarithm of 1,000 francs, and go back by `np.exp`. How many francs does a household of 1,000 francs spend on food now, to the nearest franc? Then think: what does one bandwidth in logarithms mean in francs, for a poor household and for a rich one?
# :::

# %% tags=["exercise"]
answer = ...
check("local_mean.logarithms", answer)

# %% [markdown]
# :::{solution-start} ex-local-mean-logarithms
# :class: dropdown
# :::
#
# One step in logarithms is a *factor* in francs. So the window grows with the income, as the cell prints, and rich households find neighbours. That is the point: one bandwidth, but a better ruler. The answer itself is close to the first one of this chapter, for at 1,000 francs there was no lack of neighbours.

# %% tags=["solution"]
u, v = np.log(samples), np.log(values)
in_logs = lb.select_bandwidth(u, v, "gaussian", method="loo")
answer = np.exp(lb.local_mean(np.log([[1000.0]]), u, v, in_logs.kernel))[0]
print(f"{answer:.1f} francs")
for income in (500, 1000, 3000):
    wide = income * (np.exp(in_logs.bandwidth) - 1)
    print(f"one bandwidth above {income} francs is {wide:.0f} francs")
check("local_mean.logarithms", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# ## Summary
#
# - The local mean is $\sum_i w_i(x^*)\,y_i$: kernel weights that sum to 1, times the known values.
# - It is the best constant near the query; nothing is fitted before the query comes.
# - In matrix form $\hat y = S y$; the trace of $S$ counts degrees of freedom, its diagonal gives leave-one-out at no extra cost.
# - Choose the bandwidth by leave-one-out, and ask which samples decided.
# - Far queries get the nearest sample, the mean of all, or nothing, depending on the kernel's tail; many columns need a better ruler.
#
# ## Further reading
#
# {cite:t}`hastie2009`, chapter 6, and {cite:t}`hardle1990` tell the story of kernel regression; {cite:t}`wand1995` the theory of the bandwidth; {cite:t}`gyorfi2002` what can be proved without assumptions. For the general theory that this book follows, see {cite:t}`song2026`.
#
# :::{dropdown} For teachers
# Two hours. First hour: the picture, the definition, the slider; let the class guess each frame before it is shown. Second hour: the leave-one-out theorem on the board (three lines), then the disagreement of the two scores: ask who of the class would drop the loudest household, and what it would have to be for that to be right. For a third score, AICc, see `lb.select_bandwidth` and chapter 6. Common errors: forgetting to divide by the sum of the weights; taking the bandwidth of a density rule for regression; believing that a smooth curve outside the data means knowledge. The third exercise leads to adaptive kernels; the experiment leads to attention, where query, sample and value are all vectors.
# :::
