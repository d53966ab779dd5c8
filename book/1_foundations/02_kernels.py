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
# (ch-kernels)=
# # 2. Localization kernels
#
# A kernel is nothing but a rule for who counts as a neighbour, and how much.
#
# :::{admonition} In this chapter
# :class: lb-card
#
# **You will be able to**
#
# - say what makes a function a localization kernel, and test it on data;
# - pick a kernel from a zoo of fourteen by its reach and its tail;
# - build new rules from old ones by adding, multiplying and masking;
# - tell these kernels from the positive definite ones of support vector machines;
# - foretell what each kernel does far from all samples and in many columns.
#
# **You need**: weighted means, the exponential function, a little NumPy, and the {doc}`notation <../notation>` at hand. This chapter stands alone.
#
# **Time**: 40 minutes for a first reading without the passages marked *aside*; two hours with the proofs, the code and the exercises. **Memory**: 0.5 GB.
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
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes

import locbook as lb
from locbook.exercises import check
from locbook.notebook import glue
from locbook.plotting import COLOURS, slider, use_style

use_style()
rng = np.random.default_rng(2)

# %% [markdown]
# ## The picture
#
# Off the coast of Peru the sea is warm in some years and cold in others. We have its mean surface temperature for each of the 732 months from January 1950 to December 2010 {cite}`smith2008,seabold2010`. Now strike out one number.
#
# **How warm was the sea in January 1983?**
#
# The plan of this whole book is: look at the neighbours of the question, and take the mean of what they say. But who is a neighbour of January 1983? December 1982 and February 1983? Or January 1982 and January 1984? Here are four rules, each written as a kernel. Read `lb.uniform(r)` as "all within the distance `r` count, and all alike"; `season` measures the distance between two months *round the year*, so that December is 1 away from January, whatever the year; and `*` says *and*.

# %%
# one row a year, one column a month; made one long row, in degrees Celsius
table = sm.datasets.elnino.load_pandas().data
temperature = table.iloc[:, 1:].to_numpy().ravel()  # shape (732,)
# months since January 1950, as a column of shape (732, 1)
months = np.arange(732.0)[:, None]
season = lb.periodic(12.0)

rules = {
    "within 1 month": lb.uniform(1.0),
    "within 6 months": lb.uniform(6.0),
    "same month, any year": lb.uniform(0.5, metric=season),
    "Dec to Feb, within 2 years": lb.uniform(24.0)
    * lb.uniform(1.0, metric=season),
}
january = 12 * (1983 - 1950)  # the row of January 1983
for name, rule in rules.items():
    # each month from the others
    without = lb.leave_one_out(months, temperature, rule)
    error = np.sqrt(((without - temperature) ** 2).mean())
    print(
        f"{name:26s} {without[january]:.2f} °C, typical error {error:.2f} °C"
    )
print(f"{'measured':26s} {temperature[january]:.2f} °C")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-kernels-four-rules", "caption": "Sea surface temperature off Peru, 1979 to 1986, and the neighbours of January 1983 under four rules. Dots are the months that count, the open diamond is their mean, the cross is what was measured. A neighbour outside these years is not drawn, but counts."}, "image": {"alt": "Four copies of one temperature curve that rises and falls once a year between 20 and 29 degrees, highest in 1983. Within 1 month, two dots stand beside the cross and the diamond lies almost on it. Within 6 months, twelve dots cover a whole year and the diamond is 1.7 degrees too low. Same month, any year: one dot a year on the yearly rise, the diamond 2.9 degrees too low. December to February within 2 years: small groups of dots once a year, the diamond 2.8 degrees too low.", "classes": "dark-light"}}
years = 1950 + months[:, 0] / 12
shown = (years >= 1979) & (years < 1987)
fig, axes = plt.subplots(4, 1, figsize=(6.4, 7.2), sharex=True, sharey=True)
for ax, (name, rule) in zip(axes, rules.items(), strict=True):
    counts = rule(months[[january]], months)[0] > 0
    counts[january] = False
    mean = temperature[counts].mean()
    ax.plot(
        years[shown],
        temperature[shown],
        color=COLOURS["sky"],
        linestyle="-",
        linewidth=1.2,
    )
    ax.plot(
        years[shown & counts],
        temperature[shown & counts],
        "o",
        color=COLOURS["blue"],
    )
    diamond = {
        "color": COLOURS["vermilion"],
        "markerfacecolor": "none",
        "markeredgewidth": 2,
        "markersize": 10,
    }
    ax.plot(years[january], mean, "D", **diamond)
    ax.plot(
        years[january],
        temperature[january],
        "x",
        color=COLOURS["black"],
        markersize=8,
        markeredgewidth=2,
    )
    ax.set_title(
        f"{name}: {counts.sum()} neighbours, mean {mean:.1f} °C", fontsize=11
    )
    ax.set_ylabel("°C")
    ax.set_yticks([20, 24, 28])
axes[-1].set_xlabel("year")
plt.show()

# %% tags=["remove-cell"]
answers = [
    lb.leave_one_out(months, temperature, rule)[january]
    for rule in rules.values()
]
glue("apart_1983", round(float(max(answers) - min(answers)), 1))

# %% [markdown]
# One question, one data set, four answers, up to {glue:text}`apart_1983` °C apart. Nothing was trained. Only the rule changed. (The *typical error* in the print is the root of the mean squared error, each month predicted from all others.)
#
# It seems that "within 1 month" is simply the best. But ask for January 2013, two years after the data end: within 1 month there is nobody, while "same month, any year" still answers. Which rule is right depends on what you ask. So we need a language for such rules. That language is the kernel.
#
# ## The mathematics
#
# We have samples $x_1, \dots, x_n$ (here: months), points with $d$ columns, written $x \in \mathbb R^d$, and ask at a **{term}`query`** $x^*$. Let $d(x, x')$ be a **{term}`distance`**: a number $\ge 0$ that is $0$ when $x = x'$.
#
# :::{prf:definition} Localization kernel
# :label: def-localization-kernel
#
# A function $K(x^*, x')$ is a **{term}`localization kernel`** for the distance $d$ if
#
# - it is not negative: $K(x^*, x') \ge 0$;
# - it **{term}`decays <decaying>`**: at each query a sample that is no farther counts at least as much,
#
# ```{math}
# :label: eq-decay
# d(x^*, x') \le d(x^*, x'') \quad\Longrightarrow\quad K(x^*, x') \ge K(x^*, x'').
# ```
#
# For several distances $d_1, d_2, \dots$ at once, {eq}`eq-decay` is asked only of those $x'$ that are no farther than $x''$ by *each* of them.
# :::
#
# This book follows a paper, *The General Theory of Localization Methods* {cite}`song2026`, which we know by its abstract and by summaries. The paper (as its summaries tell it) asks for these two things and for no more. **Symmetry**, $K(x, x') = K(x', x)$, is optional. **{term}`Positive definiteness <positive definite>`**, which the kernels of support vector machines must have, is not asked for; what it is comes below. (The wording with several distances is ours.)
#
# The number $K(x^*, x_i)$ becomes a share only when it is divided by the sum over all samples:
#
# $$ w_i(x^*) = \frac{K(x^*, x_i)}{\sum_j K(x^*, x_j)} . $$
#
# These **{term}`weights`** sum to 1, and $\sum_i w_i(x^*)\,y_i$ is the weighted mean of the values $y_i$ (here: temperatures). It is called the **{term}`local mean`** at $x^*$.
#
# ### Profile, bandwidth, distance
#
# Most kernels are made of three parts. A distance $d$ says how far. A **{term}`bandwidth`** $h > 0$, in the units of the distance, says how far is far: $u = d(x^*, x')/h$ is the distance in bandwidths. A **{term}`profile`** $k$ says how the weight falls:
#
# $$ K(x^*, x') = k(s), \qquad s = u^2, \qquad u = \frac{d(x^*, x')}{h} . $$
#
# Any profile $k \ge 0$ that never rises gives a localization kernel. Why the square? The Euclidean distance, written $\lVert x - x'\rVert$, is the root of a sum of squares, $\big(\sum_c (x_c - x'_c)^2\big)^{1/2}$, and $e^{-u^2/2}$ needs only $u^2$: so the root need not be taken.
#
# With several columns the bandwidth may be one number for all; or a vector, one $h_c$ for each column $c$, with $u^2 = \sum_c \big((x^*_c - x'_c)/h_c\big)^2$; where $x_c$ is the entry in column $c$. (A matrix, which can also turn the axes, is possible too.)
#
# | symbol | variable | meaning | here |
# |---|---|---|---|
# | $x^*$ | `queries`, shape `(m, d)` | where we ask | January 1983 |
# | $x_i$ | `samples`, shape `(n, d)` | what we know the answer for | 732 months |
# | $y_i$ | `values`, shape `(n,)` | the answers | temperatures |
# | $d(x, x')$ | `metric` | the distance | months apart, or months apart round the year |
# | $h$ | `bandwidth` | how far is far | 1 month, 6 months |
# | $u$, $s = u^2$ | `u`, `s` | distance in bandwidths, and its square | 0, 1, 2, … |
# | $k$ | `profile` | how the weight falls with $s$ | 1 up to $s = 1$, then 0 |
# | $K$ | `kernel` | how much a sample counts | `lb.uniform(1.0)` |
# | $w_i(x^*)$ | `weights`, shape `(m, n)` | the shares; each row sums to 1 | one half each |
#
# ### The zoo
#
# | kernel | $K$ | `lb.` | a far query gets |
# |---|---|---|---|
# | uniform | $1$ where $u \le 1$, else $0$ | `uniform` | nobody |
# | triangular | $(1 - u)_+$ | `triangular` | nobody |
# | Epanechnikov | $(1 - u^2)_+$ | `epanechnikov` | nobody |
# | biweight | $(1 - u^2)_+^2$ | `biweight` | nobody |
# | triweight | $(1 - u^2)_+^3$ | `triweight` | nobody |
# | tricube | $(1 - u^3)_+^3$ | `tricube` | nobody |
# | cosine | $\cos(\pi u/2)$ where $u \le 1$, else $0$ | `cosine` | nobody |
# | Gaussian | $e^{-u^2/2}$ | `gaussian` | the foremost sample: the nearest |
# | Laplace | $e^{-u}$ | `laplace` | all, by *differences* of distance |
# | Cauchy | $1/(1 + u^2)$ | `cauchy` | all alike |
# | Student-t, $\nu > 0$ | $(1 + u^2/\nu)^{-(\nu+1)/2}$ | `student_t` | all alike |
# | rational quadratic, $\alpha > 0$ | $(1 + u^2/2\alpha)^{-\alpha}$ | `rational_quadratic` | all alike |
# | $k$ nearest neighbours | $1$ for the $k$ samples nearest to $x^*$, else $0$ | `knn` | the $k$ nearest |
# | softmax | $e^{\langle x^*, x'\rangle/\tau}$, $\tau > 0$ | `softmax` | the foremost sample in its direction |
#
# In code the first twelve take the bandwidth, `lb.gaussian(h)`, and two of them a shape, `lb.student_t(h, nu=3)` and `lb.rational_quadratic(h, alpha=1)`; the others are `lb.knn(k)` and `lb.softmax(tau)`. (The library has five more for special data: `lb.von_mises` for angles, `lb.discrete` for tables, `lb.causal`, `lb.window` and `lb.relative_bias` for time.)
#
# Here $(t)_+$ is $t$ where $t > 0$, else $0$, and $\langle x, x'\rangle = \sum_c x_c x'_c$ is the dot product. The last column is proved in {prf:ref}`prop-far`; for the $k$ nearest it is the definition.
#
# The first seven have **{term}`compact support`**: beyond one bandwidth the weight is exactly 0. The next five never reach 0, and differ in their **{term}`tail`**: how fast the weight falls when $u$ is large. {numref}`fig-kernels-zoo` draws these twelve.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-kernels-zoo", "caption": "Twelve profiles over the distance in bandwidths, all drawn with height 1 at the query. Top and bottom left: compact support. Top right: never zero. Bottom right: the same five on logarithmic axes, out to 30 bandwidths. Student-t has ν = 3, rational quadratic α = 1."}, "image": {"alt": "Four panels. In the two panels on the left all curves start at 1 and are 0 from one bandwidth on; the uniform one stays at 1 up to there. Top right, five curves fall smoothly and are positive everywhere. Bottom right, on logarithmic axes, the Gaussian drops below a millionth near 5 bandwidths and the Laplace near 14, while Student-t, Cauchy and rational quadratic fall along straight lines and are still above a millionth at 30.", "classes": "dark-light"}}
panels = {
    "compact, with a jump or a corner": (
        "uniform",
        "triangular",
        "epanechnikov",
        "cosine",
    ),
    "never zero": (
        "gaussian",
        "laplace",
        "cauchy",
        "student_t",
        "rational_quadratic",
    ),
    "compact, smooth": ("biweight", "triweight", "tricube"),
    "never zero, logarithmic": (
        "gaussian",
        "laplace",
        "cauchy",
        "student_t",
        "rational_quadratic",
    ),
}
fig, axes = plt.subplots(2, 2, figsize=(7.0, 5.6))
for ax, (title, names) in zip(axes.flat, panels.items(), strict=True):
    far = "logarithmic" in title
    u = (
        np.geomspace(0.3, 30, 400)
        if far
        else np.linspace(0, 1.3 if "compact" in title else 4, 400)
    )
    for name in names:
        height = lb.KERNELS[name](1.0)(np.zeros((1, 1)), u[:, None])[0]
        ax.plot(u, height, label=name.replace("_", " "))
    ax.set_title(title, fontsize=11)
    ax.set_xlabel("distance u, in bandwidths")
    ax.set_ylabel("weight K")
    if far:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(1e-6, 2)
        ax.set_xticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
    else:
        ax.legend(fontsize=9)
plt.show()

# %% [markdown]
# Student-t and rational quadratic have a knob for the tail. As $\nu \to \infty$, $(1 + u^2/\nu)^{-(\nu+1)/2} \to e^{-u^2/2}$: the Gaussian. At $\nu = 1$ the kernel is Cauchy's.

# %% tags=["hide-input"]
frames = []
u = np.linspace(0, 8, 300)
origin = np.zeros((1, 1))
for nu in (0.5, 1, 2, 4, 8, 16, 64):
    fig, ax = plt.subplots()
    curves = {
        f"Student-t, ν = {nu}": lb.student_t(1.0, nu=nu),
        "Gaussian": lb.gaussian(1.0),
        "Laplace": lb.laplace(1.0),
    }
    for name, k in curves.items():
        ax.plot(u, k(origin, u[:, None])[0], label=name)
    ax.set_yscale("log")
    ax.set_ylim(1e-7, 2)
    ax.set_xlabel("distance u, in bandwidths")
    ax.set_ylabel("weight K")
    ax.legend(loc="lower left")
    at_five = lb.student_t(1.0, nu=nu)(origin, [[5.0]])[0, 0]
    ax.set_title(
        f"ν = {nu}: five bandwidths away a sample counts {at_five:.2g}"
    )
    alt = f"The weight of the Student-t kernel with nu {nu} on a logarithmic axis: {at_five:.2g} at five bandwidths, where the Gaussian has {np.exp(-12.5):.2g} and the Laplace {np.exp(-5):.2g}."
    frames.append((f"ν = {nu}", alt, fig))
slider(
    frames,
    "shape ν",
    start=3,
    caption="The Student-t kernel for seven shapes, between a heavy tail and the Gaussian. The Laplace kernel lies on a straight line: each bandwidth divides the weight by e.",
)

# %% [markdown]
# ### What does not matter, and what may be combined
#
# :::{prf:proposition} A factor of the query drops out
# :label: prop-query-factor
#
# Let $c(x^*) > 0$ depend on the query alone. Then $K$ and $c(x^*)\,K(x^*, x')$ give the same weights.
# :::
#
# :::{prf:proof}
# $c(x^*)\,K(x^*, x_i)\big/\sum_j c(x^*)\,K(x^*, x_j)$: the factor stands in front of both sums and cancels.
# :::
#
# Three things follow.
#
# - **Height.** We may give every profile the height $k(0) = 1$. Statisticians often multiply a kernel by a constant that makes its integral 1; then it is called a *density*. For a mean the constant is not needed.
# - **Softmax is a Gaussian in disguise.** From $\lVert x^* - x'\rVert^2 = \lVert x^*\rVert^2 - 2\langle x^*, x'\rangle + \lVert x'\rVert^2$,
#
#   $$ e^{\langle x^*, x'\rangle/\tau} = e^{\lVert x^*\rVert^2/2\tau}\; e^{\lVert x'\rVert^2/2\tau}\; e^{-\lVert x^* - x'\rVert^2/2\tau} . $$
#
#   The first factor drops out. If all samples have one length, so does the second. What is left is the Gaussian kernel with $h^2 = \tau$. This is the kernel of attention in neural networks {cite}`tsai2019`.
# - **A factor of the sample stays.** If the lengths differ, $e^{\lVert x'\rVert^2/2\tau}$ makes long samples count more everywhere. Then softmax need not decay with the distance, and is no localization kernel in the strict sense; it stands in the zoo because everybody uses it as one.
#
# :::{prf:proposition} Sums and products
# :label: prop-sums-products
#
# Let $K_1$ be a localization kernel for the distance $d_1$, and $K_2$ for $d_2$. Then $K_1 + K_2$, $K_1 K_2$ and $cK_1$ with $c > 0$ are localization kernels for the two distances together. If $d_1 = d_2$, they are so for that one distance.
# :::
#
# :::{prf:proof}
# Let $x'$ be no farther from $x^*$ than $x''$, by $d_1$ and by $d_2$. Write $a_i = K_i(x^*, x')$ and $b_i = K_i(x^*, x'')$. By {eq}`eq-decay`, $a_1 \ge b_1 \ge 0$ and $a_2 \ge b_2 \ge 0$. Hence $a_1 + a_2 \ge b_1 + b_2$, $a_1 a_2 \ge b_1 b_2$ and $c\,a_1 \ge c\,b_1$, and none of them is negative.
# :::
#
# A **product** says *and*: near in time and near in season. A **sum** says *or*: near in time, or else near in season.
#
# ### Aside: what positive definite kernels ask, and these do not
#
# You may have met kernels elsewhere, in *support vector machines*, which separate two classes by a surface, or in *kernel ridge regression*. Those kernels must have a property that ours need not have. Put a symmetric kernel on $n$ samples: the matrix $G_{ij} = K(x_i, x_j)$. The kernel is **{term}`positive definite`** if
#
# ```{math}
# :label: eq-positive-definite
# \sum_{i,j} c_i\, c_j\, K(x_i, x_j) \ge 0
# ```
#
# for all samples $x_1, \dots, x_n$ and all numbers $c_1, \dots, c_n$. (Many books say *positive semidefinite*.) There is a test by **eigenvalues**: $\lambda$ is an eigenvalue of $G$ if $Gv = \lambda v$ for some vector $v \ne 0$, and then, multiplying by $v_i$ and adding up, $\sum_{i,j} v_i G_{ij} v_j = \sum_i v_i \lambda v_i = \lambda \sum_i v_i^2$. So one negative eigenvalue breaks {eq}`eq-positive-definite`. The converse is a theorem of linear algebra that we take on trust: if no eigenvalue of a symmetric matrix is negative, {eq}`eq-positive-definite` holds for these samples.
#
# Why would one ask for it? Because then, and only then, each $x$ can be turned into a vector $\varphi(x)$, possibly with infinitely many entries, such that the kernel is a dot product: $K(x, x') = \langle\varphi(x), \varphi(x')\rangle$ {cite}`aronszajn1950`. The sum in {eq}`eq-positive-definite` is then a squared length, $\lVert\sum_i c_i\,\varphi(x_i)\rVert^2$. Support vector machines and kernel ridge regression keep such a length small {cite}`scholkopf2002`. With a negative "squared length" that makes no sense. A local mean measures no length: it divides numbers $\ge 0$ by their sum. So it can use the simplest rule there is:
#
# :::{prf:proposition} The uniform kernel is not positive definite
# :label: prop-uniform-not-pd
#
# Not even on the line.
# :::
#
# :::{prf:proof}
# Take $x = 0, 1, 2$, $h = 1$ and $c = (1, -1, 1)$. The neighbours are $0$ and $1$, $1$ and $2$, and each sample with itself, but not $0$ and $2$. The three squares $c_i^2$ give $+3$; the two pairs of neighbours, each counted twice, give $-4$. The sum is $-1$.
# :::
#
# The two notions really are different, for neither includes the other. The dot product $\langle x, x'\rangle$ is positive definite and can be negative: it is no localization kernel. The uniform kernel is the other way round. The Gaussian is both.
#
# ## From scratch
#
# Three profiles, and the weights that any profile gives. Copy it; it needs NumPy and nothing else.

# %% tags=["standalone"]
import numpy as np


def gaussian(s):
    return np.exp(-s / 2)


def epanechnikov(s):
    return np.maximum(1 - s, 0)


def cauchy(s):
    return 1 / (1 + s)


def kernel_matrix(queries, samples, profile, bandwidth):
    """K of each query (m, d) and each sample (n, d), shape (m, n)."""
    difference = queries[:, None, :] - samples[None, :, :]  # (m, n, d)
    squared_distance = (difference**2).sum(axis=2)  # (m, n)
    return profile(squared_distance / bandwidth**2)


queries, samples = np.array([[1.0], [6.0]]), np.array([[0.0], [1.0], [3.0]])
K = kernel_matrix(queries, samples, epanechnikov, bandwidth=4.0)
weights = K / K.sum(axis=1, keepdims=True)  # each row sums to 1
print(K)
print(weights.round(3))

# %% [markdown]
# `None` in an index adds an axis of length 1, and NumPy repeats such an axis to fit the other operand. So `queries[:, None, :] - samples[None, :, :]` holds the difference of *every* query and *every* sample, and summing the squares over the last axis leaves one number for each pair. In the line that makes the weights, `keepdims=True` keeps the sums as a column, so that each row is divided by its own sum.
#
# Read the first line of the output: the query at 1 is itself a sample, with $K = 1$; the others are 1 and 2 away, a quarter and half a bandwidth. The second query, at 6, has only the sample at 3 within its 4, which therefore gets the whole weight. Change 6 to 20 in your copy: nobody is left, and the division is 0/0.
#
# ## The library
#
# In `locbook` a kernel is a value: it holds no data, has a name that you can read, and can be called. `kernel(queries, samples)` gives the matrix of all $K(x^*_i, x_j)$.

# %%
grid = rng.uniform(-3, 3, size=(40, 2))
points = rng.uniform(-3, 3, size=(60, 2))
for ours, profile in (
    (lb.gaussian(1.5), gaussian),
    (lb.epanechnikov(1.5), epanechnikov),
    (lb.cauchy(1.5), cauchy),
):
    assert np.allclose(
        ours(grid, points),
        kernel_matrix(grid, points, profile, 1.5),
        rtol=1e-12,
    )
    print(ours, ours(grid, points).shape)

# one bandwidth for each of two columns
print(lb.gaussian([1.0, 12.0]))
# another distance, and columns 0 and 3 only
print(lb.laplace(2.0, metric="manhattan", on=[0, 3]))

# %% [markdown]
# Fifty bandwidths away, the Gaussian weighs $e^{-1250}$. No floating-point number is so small, and the matrix says 0. Its logarithm is harmless, and the library computes its means from logarithms. So the *ratio* of two such weights is not lost:

# %%
kernel = lb.gaussian(1.0)
print(kernel([[50.0]], [[0.0], [1.0]]), kernel.log([[50.0]], [[0.0], [1.0]]))
print(lb.local_mean([[50.0]], [[0.0], [1.0]], [7.0, 8.0], kernel))

# %% [markdown]
# ### The algebra, at sea
#
# Back to the sea, and to January 2013, month 756 when January 1950 is month 0. "Within 1 month" has nobody to ask. By {prf:ref}`prop-sums-products` we may add a second rule that speaks softly. Where neighbours in time exist, they drown it; where none exist, it is the only voice.

# %%
near = lb.uniform(1.0)
same_month = lb.uniform(0.5, metric=season)
for kernel in (near, near + 0.001 * same_month, near + 0.001):
    with warnings.catch_warnings():  # nobody to ask: the answer is nan
        warnings.simplefilter("ignore", lb.EmptyNeighborhoodWarning)
        future = lb.local_mean([[756.0]], months, temperature, kernel)[0]
    past = lb.leave_one_out(months, temperature, kernel)[january]
    print(kernel)
    print(f"   January 2013: {future:5.2f} °C   January 1983: {past:5.2f} °C")

# %% tags=["remove-cell"]
glue("mean_sea", round(float(temperature.mean()), 2))
pulls = [
    lb.leave_one_out(months, temperature, k)[january]
    for k in (near, near + 0.001 * same_month, near + 0.001)
]
glue("pull_season", round(float(pulls[0] - pulls[1]), 2))
glue("pull_mean", round(float(pulls[0] - pulls[2]), 2))
glue("crowd", round(0.001 * 731, 2))

# %% [markdown]
# The first rule gives `nan`, "not a number": there is no answer. (By default a warning says so too; here it is switched off.) The second falls back on the Januaries. The third adds the constant $\varepsilon = 0.001$: everybody counts a little, and the far query gets the mean of all months, {glue:text}`mean_sea` °C.
#
# Nothing is free. The soft voices are heard in January 1983 as well. The 60 other Januaries pull the answer down by {glue:text}`pull_season` °C, and the constant pulls it down by {glue:text}`pull_mean` °C: 731 voices of 0.001 make {glue:text}`crowd`, more than a third of the two real neighbours together. So $n\varepsilon$ must be small compared with the sum of the kernel over the real neighbours.
#
# Two more operations. `kernel.hollow()` sets $K(x_i, x_i) = 0$: each sample is estimated from the *others* alone. That is what `lb.leave_one_out` did all the time. `kernel.masked(mask)` silences all pairs where the mask is `False`; among the others the rule stays as it was. With it, "same month" becomes an honest forecast, which hears only months at least a year before the one asked for:

# %%
# row: the month asked for; column: the month that speaks; shape (732, 732)
known = months - months.T >= 12
forecast = lb.local_mean(
    months[12:], months, temperature, same_month.masked(known[12:])
)
error = np.sqrt(((forecast - temperature[12:]) ** 2).mean())
print(f"forecast from the same month, earlier years: error {error:.2f} °C")

hollow = lb.local_mean(months, months, temperature, near.hollow())
assert np.allclose(hollow, lb.leave_one_out(months, temperature, near))

# %% [markdown]
# That is hardly worse than the error in the first cell of this chapter, where later years had a say as well. (`months.T` is a row and `months` a column; their difference holds every pair.) With columns of different kinds, give each its own kernel by `on=` and multiply. For Gaussians that is the same as a vector of bandwidths, because $e^{-a}e^{-b} = e^{-(a+b)}$. We check it on a table that will come back: ten measurements of 442 people with diabetes {cite}`efron2004`. Columns 2 and 3 are body-mass index (BMI, in kg/m²) and blood pressure (in mmHg).

# %%
patients = load_diabetes(scaled=False).data  # shape (442, 10)
product = lb.gaussian(2.0, on=2) * lb.gaussian(10.0, on=3)
vector = lb.gaussian([2.0, 10.0], on=[2, 3])
largest = np.abs(product(patients) - vector(patients)).max()
print(product)
print(vector, " largest difference below 1e-12:", bool(largest < 1e-12))

# %% [markdown]
# ### Your own kernel, and a check
#
# A profile of your own is a plain function of $s = u^2$. This one is compact and smooth, and it is known to be positive definite in up to three dimensions {cite}`wendland1995`. Beside it stands a ring: those at the query count nothing, those some way off count most. We test both on the yearly incomes of 235 Belgian working-class households, in francs {cite}`engel1857,koenker1982`.


# %%
def wendland(s):
    u = s**0.5
    return (1 - u) ** 4 * (4 * u + 1) if s < 1 else 0.0


def ring(s):
    return s * np.exp(-s)


households = sm.datasets.engel.load_pandas().data
income = households[["income"]].to_numpy()  # shape (235, 1), francs a year
food = households["foodexp"].to_numpy()  # shape (235,), francs a year

for profile in (wendland, ring):
    own = lb.Kernel(profile=profile, bandwidth=130.0)
    report = lb.check_kernel(own, income)
    print(own, "localization kernel:", report.is_localization_kernel)
print(report)

# %% [markdown]
# `lb.check_kernel` looks at the weights on a sample and prints the evidence: the smallest weight; the largest rise from a nearer to a farther sample, as a share of the largest weight of its query, and where (three rows: the query, the nearer and the farther sample; here the nearer is the query itself); the largest $\lvert K(a,b) - K(b,a)\rvert$; the smallest eigenvalue, as a share of the largest in size. A "no" is a proof. A "yes" speaks of this sample only.
#
# A function that goes negative is refused at once:


# %%
def dip(s):
    return 1.0 - s


try:
    lb.check_kernel(lb.Kernel(profile=dip, bandwidth=130.0), income)
except ValueError as error:
    print(error)

# %% [markdown]
# ### Aside: who is positive definite?


# %%
def lowest_eigenvalue(kernel):
    """Relative to the largest, on the incomes; 0 if it is only rounding."""
    lowest = lb.check_kernel(kernel, income).positive_definite.evidence
    return 0.0 if abs(lowest) < 1e-10 else lowest


safe = ("gaussian", "laplace", "cauchy", "triangular")
others = ("uniform", "epanechnikov", "biweight", "tricube")
print("lowest eigenvalue")
for name in safe + others:
    print(f"{name:14s} {lowest_eigenvalue(lb.KERNELS[name](130.0)):6.3f}")
print(f"{'knn(10)':14s} {lowest_eigenvalue(lb.knn(10)):6.3f}")

# %% [markdown]
# The first four have no negative eigenvalue here. Gaussian, Laplace and Cauchy never have one, in any number of columns; the triangular kernel is safe on the line {cite}`rasmussen2006,wendland1995`. The others have one, far beyond rounding, so they are not positive definite. They are among the most used localization kernels all the same. (For the kernel of the ten nearest, which is not symmetric, these are the eigenvalues of the mean of the matrix and its mirror image.)
#
# ### Asymmetry: you are on my list, am I on yours?
#
# The $k$-nearest-neighbour kernel is not symmetric. Think of the richest household: its ten nearest are the ten next richest, but each of these may have ten others that are nearer. Moreover the weight of a pair depends on who else is there: such a kernel is called **adaptive**. (If several samples tie for place $k$, the first rows win; `lb.knn(k, ties="include")` takes all of them, and then {eq}`eq-decay` holds to the letter.) How common are one-sided relations? We let each sample name its ten nearest among the others, in three data sets with more and more columns. The third is Fashion-MNIST: 2,000 small grey pictures of garments, 784 pixels each {cite}`xiao2017`.

# %%
train = lb.datasets.load_fashion_mnist(split="train")
collections = {
    "incomes": income,
    "diabetes": load_diabetes().data,  # the ten columns, scaled to one spread
    "garments": train.images.reshape(2000, -1) / 255,
}
named = {}
for name, x in collections.items():
    names = lb.knn(10).hollow()(x) > 0  # names[i, j]: i names j
    mutual = (names & names.T).sum() / names.sum()
    named[name] = names.sum(axis=0)  # on how many lists each sample is
    most, none = named[name].max(), (named[name] == 0).sum()
    print(f"{name}, {x.shape[1]} columns: {mutual:.0%} mutual;", end=" ")
    print(f"one is on {most} lists, {none} on no list")

# %% tags=["remove-cell"]
glue("richest_lists", int(named["incomes"][income[:, 0].argmax()]))
glue("hub", int(named["garments"].max()))
glue("orphans", int((named["garments"] == 0).sum()))

# %% [markdown]
# The richest household names ten others and is on {glue:text}`richest_lists` lists. Among the garments fewer than half of the relations are mutual. One garment is on {glue:text}`hub` lists, and {glue:text}`orphans` are on none: they will never have a say in the prediction for another garment of the set. That a few samples become everybody's neighbour is typical of many columns, and known as *hubness* {cite}`radovanovic2010`.
#
# A bandwidth that stretches where samples are rare makes any profile asymmetric: `lb.gaussian(lb.knn_bandwidth(10))` takes the distance to the tenth neighbour as $h$. The third exercise uses it.
#
# ### Aside: same name, another bandwidth
#
# "Epanechnikov with bandwidth 130" does not mean the same in all packages. Here $h$ is what divides the distance: for a compact kernel the radius of its support, for the Gaussian its standard deviation. In the function `density` of R, `bw` is the standard deviation of *every* kernel ([its documentation](https://stat.ethz.ch/R-manual/R-devel/library/stats/html/density.html)). `lb.convert_bandwidth` goes from one to the other; two kernels are held to be equally wide if they have the same standard deviation: the root of the mean of $(x - x')^2$, where each distance counts in proportion to $K$.

# %%
for target in ("uniform", "epanechnikov", "tricube", "laplace", "std"):
    same = lb.convert_bandwidth(130.0, "gaussian", target)
    print(f"gaussian 130 francs = {target} {same:.0f} francs")
try:
    lb.convert_bandwidth(130.0, "gaussian", "cauchy")
except ValueError as error:
    print(error)

# %% [markdown]
# ## The outside check
#
# Distances from SciPy {cite}`virtanen2020`, kernels from scikit-learn {cite}`pedregosa2011`, a density from SciPy. Where a positive definite kernel of scikit-learn has our formula, both must give the same matrix. Mind the names of the knobs: `gamma` is $1/2h^2$ in `rbf_kernel`, and `laplacian_kernel` uses the Manhattan distance with `gamma` $= 1/h$.

# %%
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ExpSineSquared, RationalQuadratic
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.neighbors import kneighbors_graph

x, h = patients / patients.std(axis=0), 1.7
angle = 2 * np.pi * months[:60] / 12
sine_squared = ExpSineSquared(0.8, periodicity=12.0)(months[:60])
waves = lb.von_mises(1 / 0.8**2)(angle) / sine_squared
pairs = {
    "scipy cdist, chebyshev": (
        np.exp(-cdist(x, x, "chebyshev") / h),
        lb.laplace(h, metric="chebyshev")(x),
    ),
    "sklearn rbf_kernel": (
        rbf_kernel(x, gamma=1 / (2 * h**2)),
        lb.gaussian(h)(x),
    ),
    "sklearn laplacian_kernel": (
        laplacian_kernel(x, gamma=1 / h),
        lb.laplace(h, metric="manhattan")(x),
    ),
    "sklearn RationalQuadratic": (
        RationalQuadratic(h, alpha=2.0)(x),
        lb.rational_quadratic(h, alpha=2.0)(x),
    ),
    "sklearn kneighbors_graph": (
        kneighbors_graph(x, 10).toarray(),
        lb.knn(10).hollow()(x),
    ),
    "sklearn ExpSineSquared": (waves / waves[0, 0], np.ones_like(waves)),
    "scipy normal density": (
        multivariate_normal(np.zeros(3), h**2 * np.eye(3)).logpdf(np.zeros(3)),
        lb.gaussian(h).log_normalizer(3),
    ),
}
print("largest difference below 1e-12?")
for name, (theirs, ours) in pairs.items():
    print(f"{name:26s} {bool(np.abs(theirs - ours).max() < 1e-12)}")

# %% [markdown]
# Two lines need a word. `ExpSineSquared` is the von Mises kernel $e^{\kappa\cos(\theta - \theta')}$ of angles, times a constant: the ratio of the two is the same everywhere, so by {prf:ref}`prop-query-factor` they give the same weights. And `log_normalizer(3)` is the logarithm of the constant that makes the kernel a density in three dimensions.
#
# ## The experiment: kernel or bandwidth?
#
# The zoo has twelve kernels with a profile, and each has a bandwidth. You have time to choose one of the two with care. Which?
#
# Theory has an answer for the *density* of numbers on the line. With the best bandwidth for each, and many samples, the Epanechnikov kernel leaves the smallest error {cite}`epanechnikov1969`. The **efficiency** of another kernel is the share of the samples with which Epanechnikov's would do as well {cite}`silverman1986`. It follows from two integrals of the profile, which the library knows:


# %%
def efficiency(name):
    best, other = lb.get_profile("epanechnikov"), lb.get_profile(name)
    # the standard deviations, and the integrals of the squared densities
    spread = np.sqrt(best.second_moment() / other.second_moment())
    return spread * best.roughness() / other.roughness()


for name in ("tricube", "biweight", "triangular", "gaussian", "uniform"):
    print(f"{name:12s} efficiency {efficiency(name):.1%}")

# %% [markdown]
# So the kernel hardly matters, most books conclude. **A question before the answer**: does that hold for a local mean on real data? We try three.
#
# - **BMI**: predict how far diabetes has progressed after one year, a score, from the body-mass index alone: 442 patients, 1 column.
# - **Ten columns**: the same from all ten measurements.
# - **Incomes**: predict what a household spends on food from its income: 235 households, 1 column.
#
# Each kernel gets the best bandwidth that the search finds for it by **{term}`leave-one-out`**: predict each sample from all others, and keep the bandwidth with the smallest root mean squared error. `lb.select_bandwidth` does that, and keeps all that it tried. (Student-t has $\nu = 3$, rational quadratic $\alpha = 1$.)

# %%
diabetes = load_diabetes()
tasks = {
    "BMI": (patients[:, [2]], diabetes.target, "kg/m²"),
    "ten columns": (diabetes.data, diabetes.target, "scaled"),
    "incomes": (income, food, "francs"),
}
zoo = [name for name in lb.KERNELS if name in lb.PROFILES]  # twelve
results = {
    task: {name: lb.select_bandwidth(x, y, name) for name in zoo}
    for task, (x, y, _) in tasks.items()
}


def show(name, numbers):
    print(f"{name:20s}" + "".join(f"{number:13.1f}" for number in numbers))


print(f"{'':20s}" + "".join(f"{task:>13s}" for task in tasks))
for name in zoo:
    show(name, [np.sqrt(results[task][name].score) for task in tasks])
show("mean of all", [y.std() for _, y, _ in tasks.values()])

# %% tags=["remove-cell"]
best = {
    task: {name: float(np.sqrt(c.score)) for name, c in found.items()}
    for task, found in results.items()
}
glue("bmi_low", round(min(best["BMI"].values()), 1))
glue("bmi_high", round(max(best["BMI"].values()), 1))
glue(
    "bmi_spread",
    round(
        100 * (max(best["BMI"].values()) / min(best["BMI"].values()) - 1), 1
    ),
)
h_bmi = results["BMI"]["gaussian"].bandwidth
wide = lb.leave_one_out(
    patients[:, [2]], diabetes.target, lb.gaussian(4 * h_bmi)
)
glue(
    "bmi_wide",
    round(float(np.sqrt(((wide - diabetes.target) ** 2).mean())), 1),
)
glue("bmi_h", round(float(h_bmi), 1))
glue("cauchy_ten", round(best["ten columns"]["cauchy"], 1))
glue("gaussian_ten", round(best["ten columns"]["gaussian"], 1))
glue("epan_income", round(best["incomes"]["epanechnikov"]))
glue("mean_income", round(float(food.std())))
glue("laplace_income", round(best["incomes"]["laplace"]))

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-kernels-bandwidth", "caption": "Leave-one-out error of five kernels against the bandwidth, for three tasks; both axes logarithmic. A curve begins at the smallest bandwidth tried at which every sample has a neighbour. Dotted: the error of the mean of all."}, "image": {"alt": "Three panels. BMI: five curves with valleys at different bandwidths but of the same depth, near 63. Ten columns: uniform, Epanechnikov, Gaussian and Laplace reach about 57 to 58, while the Cauchy curve stays above 67. Incomes: Gaussian, Laplace and Cauchy dip to between 115 and 144, while the curves of uniform and Epanechnikov begin only at about 2,100 francs, above 230.", "classes": "dark-light"}}
fig, axes = plt.subplots(1, 3, figsize=(9.6, 3.9))
for ax, (task, (_, y, unit)) in zip(axes, tasks.items(), strict=True):
    for name in ("gaussian", "laplace", "cauchy", "uniform", "epanechnikov"):
        tried = results[task][name]
        ax.plot(tried.bandwidths, np.sqrt(tried.scores), label=name)
    ax.axhline(y.std(), color=COLOURS["black"], linestyle=":", linewidth=1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = (110, 150, 200, 280) if task == "incomes" else (57, 60, 65, 70, 77)
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.set_ylim(ticks[0] * 0.98, ticks[-1] * 1.03)
    ax.minorticks_off()
    ax.set_title(task, fontsize=11)
    ax.set_xlabel(f"bandwidth ({unit})")
axes[0].set_ylabel("leave-one-out error")
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncol=5,
    fontsize=9,
)
plt.show()

# %% [markdown]
# **BMI: the bandwidth, by far.** Twelve kernels, each at the best bandwidth found for it, err by {glue:text}`bmi_low` to {glue:text}`bmi_high`: the worst is {glue:text}`bmi_spread` % behind the best. Keep the Gaussian but take four times its best bandwidth of {glue:text}`bmi_h` kg/m², and the error is {glue:text}`bmi_wide`. The books are right.
#
# **Ten columns: the tail.** Gaussian, {glue:text}`gaussian_ten`; Cauchy, {glue:text}`cauchy_ten`, and no bandwidth helps. The next section says why.
#
# **Incomes: the reach.** Laplace errs by {glue:text}`laplace_income` francs, Epanechnikov by {glue:text}`epan_income`; the mean of all, with no kernel, errs by {glue:text}`mean_income`. Why? A compact kernel needs somebody within its radius, for *everybody*. Look for the loneliest household:

# %%
apart = cdist(income, income)
np.fill_diagonal(apart, np.inf)
lonely = apart.min(axis=1).argmax()
print(f"income {income[lonely, 0]:.0f} francs")
print(f"nearest other {apart[lonely].min():.0f} francs away; without it:")
others = np.arange(len(income)) != lonely
for name in ("epanechnikov", "laplace"):
    chosen = lb.select_bandwidth(income[others], food[others], name)
    error = np.sqrt(chosen.score)
    print(f"{name:12s} h = {chosen.bandwidth:3.0f}, error {error:.0f} francs")

# %% tags=["remove-cell"]
quiet = {
    name: np.sqrt(
        lb.select_bandwidth(income[others], food[others], name).score
    )
    for name in ("epanechnikov", "laplace")
}
glue("gap_income", round(float(quiet["epanechnikov"] - quiet["laplace"])))

# %% [markdown]
# One household dictated the radius for all 235. Without it, Epanechnikov's error is nearly halved, and the two kernels are {glue:text}`gap_income` francs apart. So the rule of the books needs two provisos: **the bandwidth matters more than the kernel, as long as everybody has neighbours within reach, and as long as the tail is not too heavy.** (The second proviso also explains Cauchy on the incomes: a lonely household is drawn towards the mean of all. And the rational quadratic kernel with $\alpha = 1$ is Cauchy's with another bandwidth; their lines differ only by the bandwidths tried.)
#
# ## Where it breaks
#
# ### Far from everybody
#
# :::{prf:proposition} What a far query gets
# :label: prop-far
#
# Let the samples be points of $\mathbb R^d$ with the Euclidean distance, and let the query go off in a fixed direction: $x^* = r v$ with $\lVert v\rVert = 1$ and $r \to \infty$. Let $\delta_i = \max_j \langle v, x_j\rangle - \langle v, x_i\rangle \ge 0$ be how far sample $i$ lies behind the foremost one in that direction. Then
#
# - **Gaussian** and **softmax**: the samples with $\delta_i > 0$ lose all weight; the foremost takes all, or those that are foremost together share;
# - **Laplace**: $w_i \to e^{-\delta_i/h} \big/ \sum_j e^{-\delta_j/h}$;
# - **Cauchy, Student-t, rational quadratic**: $w_i \to 1/n$, the mean of all;
# - **{term}`compact support`**: all $K = 0$ as soon as the nearest sample is farther than $h$.
# :::
#
# :::{prf:proof}
# Write $d_i = \lVert rv - x_i\rVert$ and $K_i = K(rv, x_i)$. Then $d_i^2 = r^2 - 2r\langle v, x_i\rangle + \lVert x_i\rVert^2$. For two samples, $d_i^2 - d_j^2 = 2r(\delta_i - \delta_j) + \lVert x_i\rVert^2 - \lVert x_j\rVert^2$, and therefore
#
# $$ d_i - d_j = \frac{d_i^2 - d_j^2}{d_i + d_j} = \frac{2r(\delta_i - \delta_j) + \text{const}}{2r + \text{bounded}} \to \delta_i - \delta_j, \qquad \frac{d_i}{d_j} \to 1 . $$
#
# Now take the ratio $K_i/K_j$ with a foremost $j$, so $\delta_j = 0$. Gaussian: $e^{-(d_i^2 - d_j^2)/2h^2} \to 0$ if $\delta_i > 0$. Softmax: $e^{-r\delta_i/\tau} \to 0$ if $\delta_i > 0$. Laplace: $e^{-(d_i - d_j)/h} \to e^{-\delta_i/h}$. The other three: a ratio like $(1 + d_j^2/h^2)/(1 + d_i^2/h^2)$, to a fixed power, tends to 1. Weights follow from their ratios. Compact support is its own definition.
# :::
#
# Ask for the temperature of the sea one month after December 2010, and long after. We count who is heard by the **{term}`effective number of neighbours <effective neighbours>`**, $1/\sum_i w_i^2$: it is $k$ when $k$ samples weigh $1/k$ each.

# %%
# months after December 2010
ahead = np.unique(np.geomspace(1, 1e5, 60).round())
heard = {}
for kernel in (
    lb.gaussian(5.0),
    lb.laplace(5.0),
    lb.student_t(5.0, nu=3),
    lb.cauchy(5.0),
    lb.knn(10),
):
    weights = lb.local_weights(731 + ahead[:, None], months, kernel)
    heard[repr(kernel)] = 1 / (weights**2).sum(axis=1)
    near_answer, far_answer = (
        weights[0] @ temperature,
        weights[-1] @ temperature,
    )
    print(
        f"{kernel!r:24s} {near_answer:.1f} °C, far ahead {far_answer:.1f} °C"
    )
print(f"December 2010: {temperature[-1]:.1f} °C")
print(f"mean of all months: {temperature.mean():.1f} °C")

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-kernels-far", "caption": "How many months are heard, as the query moves away from the end of the data; bandwidth 5 months. The dotted line is all 732 months. A compact kernel would end at its bandwidth, with nobody."}, "image": {"alt": "Five curves on logarithmic axes. The Gaussian falls from 8.5 to 1 at about a hundred months ahead. Laplace and the ten nearest lie on each other, level at 10. Cauchy rises from 16 and Student-t from 10 to the dotted line; at a hundred months the Cauchy kernel hears more than 200 months, Student-t fewer than 100.", "classes": "dark-light"}}
fig, ax = plt.subplots()
for name, count in heard.items():
    ax.plot(ahead, count, label=name, linewidth=5 if "laplace" in name else 2)
ax.axhline(len(months), color=COLOURS["black"], linestyle=":", linewidth=1)
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_yticks([1, 10, 100, 732], ["1", "10", "100", "732"])
ax.set_xlabel("months after December 2010")
ax.set_ylabel("effective number of neighbours")
ax.legend(fontsize=9, loc="center left", bbox_to_anchor=(0.0, 0.72))
plt.show()

# %% [markdown]
# None of these answers is knowledge about the future. But you should know which one you will get: the last month for ever, the last few months, or the mean of all. If you would rather have no answer, take a compact kernel: it gives `nan` and a warning.
#
# ### In many columns all are about equally far
#
# Draw 1,000 samples at random, evenly over a cube, ask at 100 random points of it, and compare the farthest sample with the nearest. On the line the ratio is in the thousands. Under broad conditions, met here, it tends to 1 as the number of columns grows {cite}`beyer1999`.


# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-kernels-concentration", "caption": "Distance to the farthest sample divided by the distance to the nearest, median of 100 queries. Dots: samples spread evenly over a cube. The markers are two real data sets."}, "image": {"alt": "On logarithmic axes the ratio falls steeply, from above 1,000 for one column to below 5 for eight columns and to 1.2 for 512. The diabetes data with ten columns lie at 6, a little above the curve. The garments with 784 pixels lie at 3.7, far above the curve, level with a cube of about ten columns.", "classes": "dark-light"}}
def contrast(queries, samples):
    """Farthest over nearest distance, the median over the queries."""
    distance = cdist(queries, samples)
    return np.median(distance.max(axis=1) / distance.min(axis=1))


columns = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
cube = [
    contrast(rng.uniform(size=(100, d)), rng.uniform(size=(1000, d)))
    for d in columns
]
garments = collections["garments"]
real = {
    "diabetes": (10, contrast(diabetes.data[:100], diabetes.data[100:]), "s"),
    "garments": (784, contrast(garments[:100], garments[100:1100]), "D"),
}
fig, ax = plt.subplots()
ax.plot(columns, cube, "o-", label="evenly in a cube")
for (name, (d, ratio, marker)), colour in zip(
    real.items(), ("vermilion", "purple"), strict=True
):
    ax.plot(
        d,
        ratio,
        marker,
        color=COLOURS[colour],
        linestyle="none",
        markersize=9,
        label=name,
    )
ax.set_xscale("log")
ax.set_yscale("log")
ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1000"])
ax.set_xlabel("number of columns d")
ax.set_ylabel("farthest / nearest")
ax.legend()
plt.show()

# %% tags=["remove-cell"]
glue("ratio_1", round(float(cube[0]), -2))
glue("ratio_8", round(float(cube[3]), 1))
glue("ratio_512", round(float(cube[-1]), 2))
glue("ratio_garments", round(float(real["garments"][1]), 1))
glue("ratio_diabetes", round(float(real["diabetes"][1]), 1))
like = np.interp(-np.log(real["garments"][1]), -np.log(cube), np.log(columns))
glue("like_cube", round(float(np.exp(like))))

# %% [markdown]
# With 8 columns the farthest sample is {glue:text}`ratio_8` times as far as the nearest, with 512 only {glue:text}`ratio_512` times. Garments have 784 columns and a ratio of {glue:text}`ratio_garments`, like a cube of about {glue:text}`like_cube` columns. Neighbouring pixels are alike, so the pictures fill only a small part of all that 784 numbers could be.
#
# Now we can explain the Cauchy kernel on ten columns. Let its bandwidth go to 0. By {prf:ref}`prop-query-factor` we may multiply by $1/h^2$: the kernel $1/(h^2 + d^2)$ gives the same weights, and tends to $1/d^2$. The bandwidth is gone! (This limit has a name, inverse distance weighting {cite}`shepard1968`.) However small $h$, a sample twice as far still counts a quarter. And for half of the patients asked, even the *farthest* other is less than {glue:text}`ratio_diabetes` times as far as the nearest. Hence the farthest still counts at least one over the square of that, and a great part of all are heard. The cell prints the effective number of neighbours, the median over the patients:

# %%
compared = {
    "Gaussian, best bandwidth": results["ten columns"]["gaussian"].kernel,
    "Cauchy, h = 0.001": lb.cauchy(1e-3),
    "Cauchy, h = 0.000001": lb.cauchy(1e-6),
}
for name, kernel in compared.items():
    weights = lb.local_weights(diabetes.data, diabetes.data, kernel.hollow())
    effective = 1 / (weights**2).sum(axis=1)
    print(f"{name:25s} {np.median(effective):3.0f} of 441")

# %% [markdown]
# So: in many columns use light tails, such as the Gaussian's, or a hard limit, such as $k$ nearest or compact support; and measure distance by fewer or better columns.
#
# Heavy tails break a second thing, the density. A density needs an integral of 1, and there is so much room far out in $d$ dimensions that $\int (1 + u^2)^{-1}$ is infinite already for $d = 2$. With the powers used here, Student-t needs $d < \nu + 1$ and the rational quadratic $d < 2\alpha$. Weights of a mean do not mind, for there the constant drops out. A density cannot be had, and the library says so:

# %%
constant = np.exp(lb.cauchy(1.0).log_normalizer(1))
print(f"in one dimension: {constant:.4f}, which is 1/π")
try:
    lb.cauchy(1.0).log_normalizer(2)
except ValueError as error:
    print(error)

# %% [markdown]
# ## As a local mean
#
# Each chapter ends with this table. A kernel alone predicts nothing; it fills one line.
#
# | | kernels in a local mean |
# |---|---|
# | space | any with a distance, or with several: months on the line and round the year, incomes, pictures |
# | kernel | the subject: not negative, decaying; sums and products of such |
# | samples | the known $x_i$ |
# | values | the known $y_i$: temperatures, scores, francs |
# | normalised | yes, by $\sum_j K(x^*, x_j)$; that is why a factor of the query drops out |
# | iterated | no: the output is not fed back as a query |
#
# ## Exercises
#
# :::{exercise} Far away, two voices
# :label: ex-kernels-far-share
#
# Two samples lie at $x = 0$ and $x = 3$. The kernel is Laplace's, $K = e^{-u}$, with bandwidth $h = 2$. What share does the sample at $0$ have in the local mean at $x^* = 1000$, to two decimals?
# :::

# %% tags=["exercise"]
answer = ...
check("kernels.far_share", answer)

# %% [markdown]
# :::{solution-start} ex-kernels-far-share
# :class: dropdown
# :::
#
# The distances are $1000$ and $997$, so $u = 500$ and $498.5$. Multiply both kernel values by $e^{498.5}$, which changes no share: they become $e^{-1.5}$ and $1$. The share is $e^{-1.5}/(1 + e^{-1.5})$. The number 1000 does not appear: for the Laplace kernel only the difference of the distances matters, 3, in bandwidths.

# %% tags=["solution"]
answer = np.exp(-1.5) / (1 + np.exp(-1.5))
print(
    f"{answer:.2f}",
    lb.local_weights([[1000.0]], [[0.0], [3.0]], lb.laplace(2.0)).round(2),
)
check("kernels.far_share", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} Mutual friends
# :label: ex-kernels-mutual
#
# Write `answer(samples, n_neighbors)` in NumPy. It gets `samples` of shape `(n, d)`. Each sample names its `n_neighbors` nearest among the *others*, by the Euclidean distance. Return the share of these `n * n_neighbors` relations that are mutual, a number between 0 and 1. `np.argsort(matrix, axis=1)` sorts each row and gives the column numbers in that order; there are no ties.
# :::

# %% tags=["exercise"]
answer = ...
check("kernels.mutual", answer)

# %% [markdown]
# :::{solution-start} ex-kernels-mutual
# :class: dropdown
# :::
#
# Put infinity on the diagonal, so that nobody names himself. Then mark who names whom, and compare the table of marks with its transpose.


# %% tags=["solution"]
def answer(samples, n_neighbors):
    squared = ((samples[:, None, :] - samples[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    nearest = np.argsort(squared, axis=1)[:, :n_neighbors]
    names = np.zeros(squared.shape, dtype=bool)
    names[np.arange(len(samples))[:, None], nearest] = True
    return (names & names.T).sum() / names.sum()


print(f"incomes, 10 nearest: {answer(income, 10):.2f}")
check("kernels.mutual", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} A radius for the lonely
# :label: ex-kernels-stretching
#
# With one radius for all, the Epanechnikov kernel failed on the incomes: the loneliest household dictated it. Let the radius stretch instead: `lb.epanechnikov(lb.knn_bandwidth(k))` takes the distance from the query to its $k$-th neighbour. Try $k = 5, 10, 15, 20, 30$ on all 235 households. What is the smallest leave-one-out error, root mean square, in francs, to one decimal? `lb.leave_one_out(income, food, kernel)` gives the predictions. Compare it with the best kernel in the column "incomes" above.
# :::

# %% tags=["exercise"]
answer = ...
check("kernels.stretching", answer)

# %% [markdown]
# :::{solution-start} ex-kernels-stretching
# :class: dropdown
# :::
#
# The stretched Epanechnikov kernel is now level with the best of the zoo. The shape was never to blame; the ruler was.

# %% tags=["solution"]
errors = {}
for k in (5, 10, 15, 20, 30):
    left_out = lb.leave_one_out(
        income, food, lb.epanechnikov(lb.knn_bandwidth(k))
    )
    errors[k] = np.sqrt(((left_out - food) ** 2).mean())
    print(f"k = {k:2d}: {errors[k]:.1f} francs")
answer = min(errors.values())
check("kernels.stretching", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# ## Summary
#
# - A localization kernel is not negative and falls with the distance; it need be neither symmetric nor positive definite.
# - Distance, bandwidth and profile make most kernels; a factor that depends on the query alone changes no weight.
# - Sums say *or*, products say *and*; hollow leaves a sample out of its own prediction, a mask silences pairs.
# - The bandwidth matters more than the shape, unless somebody has no neighbour within reach or the tail is too heavy for the columns.
# - A far query gets the nearest sample, all by differences of distance, all alike, or nobody, according to the tail.
#
# ## Further reading
#
# {cite:t}`wand1995`, chapter 2, and {cite:t}`silverman1986`, section 3.3, compare kernels for densities; {cite:t}`hastie2009`, chapter 6, uses them for regression. {cite:t}`scholkopf2002` and {cite:t}`rasmussen2006`, chapter 4, are about positive definite kernels, {cite:t}`aronszajn1950` their foundation. {cite:t}`beyer1999` and {cite:t}`radovanovic2010` show what many dimensions do to neighbours. For the theory that this book follows, see {cite:t}`song2026`.
#
# :::{dropdown} For teachers
# Two hours. First hour: strike out January 1983 and let the class propose rules before they see the figure; collect their rules on the board and write each as a distance, a bandwidth and a profile. Second hour: the three-point proof for the uniform kernel, then the experiment; let the class vote "kernel or bandwidth" before each of the three columns of the table, for the right vote changes. Common errors: reading $h$ as the width of the support for every kernel; believing that a kernel must be positive definite because the word is the same; adding an $\varepsilon$ "for safety" without multiplying it by $n$. A small project: find the garment that is on most lists, look at it, and say why.
# :::
