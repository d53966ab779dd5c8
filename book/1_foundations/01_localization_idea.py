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
# (ch-localization-idea)=
# # 1. The localization idea
#
# To say something about a new thing, look at the known things most like it, weigh them by how like they are, and take the mean: no rule about the whole world is needed.
#
# :::{admonition} In this chapter
# :class: lb-card
#
# **You will be able to**
#
# - name a garment by its neighbours, and say how sure the answer is;
# - tell a query model from an inference model, and boil the first down to the second;
# - say what lazy learning saves, and what it costs;
# - examine the claim that every model is a local mean: where it holds exactly, where as a limit, where it is only an analogy.
#
# **You need**: a little NumPy, and what a mean and a distance are. No machine learning.
#
# **Time**: 40 minutes for a first reading; an hour and a half with code and exercises. **Memory**: 0.5 GB.
# :::

# %% tags=["setup", "hide-cell"]
import sys

if "google.colab" in sys.modules:
    import subprocess

    source = "locbook[book] @ git+https://github.com/locbook/locbook"
    subprocess.check_call(
        [sys.executable, "-m", "pip", "install", "--quiet", source]
    )

import matplotlib.pyplot as plt
import numpy as np

import locbook as lb
from locbook.exercises import check
from locbook.notebook import glue
from locbook.plotting import COLOURS, slider, use_style

use_style()

# %% [markdown]
# ## The picture
#
# Here are 2,000 small photographs of garments with their names, ten kinds, 200 of each {cite}`xiao2017`. And here is one photograph without a name.
#
# **What is it?**
#
# You could try to write down what makes a shirt a shirt. {numref}`fig-idea-neighbours` shows another way: look through the 2,000 for those that look most like the new one, and see what *they* are.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-idea-neighbours", "caption": "The new garment, in the frame, and the ten most similar of 2,000 known ones, nearest first, each with its name."}, "image": {"alt": "Eleven small grey garments with long sleeves. The first, in a frame, has a question mark as its name. The other ten look much like it: the two nearest are named coat, then come seven named dress, and one more coat.", "classes": "dark-light"}}
known = lb.datasets.load_fashion_mnist(split="train")
new = lb.datasets.load_fashion_mnist(split="test")
kinds = known.names
samples = (
    known.images.reshape(2000, 784) / 255
)  # one row a garment, one column a pixel, 0 black to 1 white
queries = new.images.reshape(500, 784) / 255

asked = 164
distances = np.sqrt(((queries[asked] - samples) ** 2).sum(axis=1))
nearest = np.argsort(distances)[:10]

fig, axes = plt.subplots(2, 6, figsize=(6.8, 2.9))
pictures = [new.images[asked], *known.images[nearest]]
titles = ["?", *[kinds[label] for label in known.labels[nearest]]]
for ax, picture, title in zip(axes.flat, pictures, titles, strict=False):
    ax.imshow(picture, cmap="gray")
    ax.set_title(title, fontsize=9)
for ax in axes.flat:
    ax.set_axis_off()
axes[1, 5].remove()
axes[0, 0].set_axis_on()
axes[0, 0].set(xticks=[], yticks=[])
axes[0, 0].grid(visible=False)
for side in axes[0, 0].spines.values():
    side.set(visible=True, color=COLOURS["vermilion"], linewidth=3)
plt.show()

# %% tags=["remove-cell"]
votes = np.bincount(known.labels[nearest], minlength=10)
glue("first_kind", kinds[int(votes.argmax())])
glue("first_votes", int(votes.max()))
glue("true_kind", kinds[int(new.labels[asked])])

# %% [markdown]
# The nearest of all is a coat. But of the ten nearest, {glue:text}`first_votes` carry the name *{glue:text}`first_kind`*. So that is our answer, with a share of {glue:text}`first_votes` tenths. (The true name is *{glue:text}`true_kind`*.) No training took place, nobody said what a sleeve is, and the answer comes with its reasons: you can look at every garment that spoke.
#
# ## The mathematics
#
# A garment is a list of 784 grey values, a point $x$ in a space of 784 dimensions. Two garments are near when their points are: the **{term}`distance`** is the root of the summed squared differences of their pixels $x_1, \dots, x_{784}$ and $x'_1, \dots, x'_{784}$,
#
# $$ d(x, x') = \Big(\sum_{r=1}^{784} (x_r - x'_r)^2\Big)^{1/2} . $$
#
# We know $n = 2000$ **{term}`samples <sample>`** and their names; from here on $x_i$ is the whole $i$-th sample. We ask at a **{term}`query`** $x^*$. A **{term}`kernel`** $K(x^*, x_i) \ge 0$ says how much sample $i$ counts: in {numref}`fig-idea-neighbours` it is 1 for the ten nearest and 0 for the rest. Divide it by its sum, and you have the **{term}`weights`**
#
# $$ w_i(x^*) = \frac{K(x^*, x_i)}{\sum_j K(x^*, x_j)}, \qquad \sum_i w_i(x^*) = 1 . $$
#
# In code, `m` is the number of queries, `n` of samples, `d` of coordinates, and `p` of columns of values.
#
# | symbol | variable | meaning | here |
# |---|---|---|---|
# | $x^*$ | `queries`, shape `(m, d)` | where we ask | 500 garments without a name |
# | $x_i$ | `samples`, shape `(n, d)` | what we know | 2,000 garments |
# | $y_i$ | `values`, shape `(n, p)` | what we know about them | which of ten kinds |
# | $K$ | `kernel` | who counts, and how much | 1 for the ten nearest |
# | $w_i(x^*)$ | `weights`, shape `(m, n)` | the shares, they sum to 1 | $1/10$ or 0 |
#
# How do you take the mean of *names*? Write a name as ten numbers, 1 for its own kind and 0 for the nine others. For sample $i$ and kind $c$ call that number $y_{ic}$ (so here `p` is ten). The mean of such numbers is a share:
#
# :::{prf:definition} Shares and local mode
# :label: def-local-mode
#
# The **{term}`share`** of kind $c$ at the query $x^*$ is the local mean of its indicator,
#
# ```{math}
# :label: eq-shares
# p_c(x^*) = \sum_i w_i(x^*)\, y_{ic}, \qquad \sum_c p_c(x^*) = 1,
# ```
#
# and the **{term}`local mode`** is the kind with the largest share (of several, the first).
# :::
#
# With equal weights on the ten nearest this is the vote that we just took, the rule of the $k$ nearest neighbours {cite}`fix1951,cover1967`. But {eq}`eq-shares` is more general: weights may fall smoothly with distance, and the values may be any numbers, so that the same formula predicts prices, pictures or words. That formula is the **{term}`local mean`**, the subject of chapter 3 and the root of this book.
#
# ### Why should it work?
#
# Because most things change gradually. This book is built on a recent paper {cite}`song2026`, which we know by its abstract and by summaries. The paper (as its summaries tell it) states a principle: in a small enough neighbourhood even a complicated function is nearly constant, or nearly linear. So you need not understand the whole function; it is enough to be right nearby. Here is the simplest exact form.
#
# :::{prf:proposition} A local mean is right where things change slowly
# :label: prop-lipschitz
#
# Let the values be $y_i = f(x_i)$, and let $f$ change by at most $L$ per unit of distance: $\lvert f(x) - f(x')\rvert \le L\,d(x, x')$. Then
#
# $$ \Big\lvert \sum_i w_i(x^*)\, f(x_i) - f(x^*) \Big\rvert \;\le\; L \sum_i w_i(x^*)\, d(x^*, x_i) . $$
#
# The error is at most $L$ times the weighted mean of the distances of those who speak.
# :::
#
# :::{prf:proof}
# The weights sum to 1, so the left side is $\big\lvert\sum_i w_i(x^*)\,\big(f(x_i) - f(x^*)\big)\big\rvert$. The weights are not negative, so this is at most $\sum_i w_i(x^*)\,\lvert f(x_i) - f(x^*)\rvert$, and by the condition on $f$ at most $\sum_i w_i(x^*)\, L\, d(x^*, x_i)$.
# :::
#
# A check with numbers. The sine changes by at most $L = 1$ per unit. We know it at 0, 0.1, 0.2 and so on, and ask at 2.03, with equal weights for all samples within 0.25:

# %%
known_x = np.linspace(0, 6, 61)[:, None]
at = np.array([[2.03]])
guess, w = lb.local_mean(
    at, known_x, np.sin(known_x[:, 0]), lb.uniform(0.25), return_weights=True
)
bound = (w[0] * np.abs(known_x[:, 0] - at[0, 0])).sum()
print(f"error {abs(guess[0] - np.sin(2.03)):.3f}, bound {bound:.3f}")

# %% [markdown]
# For our garments the condition fails at the border between two kinds, where an indicator jumps from 0 to 1. Away from the borders it holds, with $L = 0$. So expect the neighbours to be right inside a kind, and to quarrel where kinds meet.
#
# Two ways to make the bound small: listen only to the near ones, or know more samples, so that there *are* near ones. The first has a price. Few speakers make a chancy mean if what they say is noisy. This tug-of-war runs through the book; chapter 3 shows how to settle it.
#
# ## From scratch
#
# The $k$ nearest neighbours, for any number of queries. Copy it; it needs NumPy and nothing else.

# %% tags=["standalone"]
import numpy as np


def shares(queries, samples, labels, n_kinds, k):
    """Shares of kinds among the k nearest; (m, d) -> (m, n_kinds)."""
    result = np.zeros((len(queries), n_kinds))
    for row, query in enumerate(queries):
        squared = ((query - samples) ** 2).sum(axis=1)  # to every sample
        nearest = np.argsort(squared, kind="stable")[:k]
        result[row] = np.bincount(labels[nearest], minlength=n_kinds) / k
    return result


points = np.array([[0.0], [1.0], [2.0], [10.0]])
print(
    shares(
        np.array([[0.4], [8.0]]),
        points,
        np.array([0, 0, 1, 1]),
        n_kinds=2,
        k=3,
    ).round(2)
)

# %% [markdown]
# The query at 0.4 hears the samples at 0, 1 and 2, with names 0, 0 and 1: two thirds for kind 0. The query at 8 hears those at 10, 2 and 1.
#
# ## The library
#
# In `locbook` one call does it: the local mean, with the kernel `lb.knn(10)` for the ten nearest, of the ten indicator columns.

# %%
indicators = np.eye(10)[
    known.labels
]  # row i: 1 in the column of its kind, else 0
by_ten = lb.local_mean(queries, samples, indicators, lb.knn(10))

assert np.allclose(by_ten, shares(queries, samples, known.labels, 10, k=10))
right = by_ten.argmax(axis=1) == new.labels
print(
    f"named rightly: {right.mean():.0%} of {len(queries)} garments; by chance it would be 10%"
)

# %% [markdown]
# ### How sure is it?
#
# The shares are more than a vote. Sort the 500 answers by the share of the winner, and see how often they are right.

# %%
winner = by_ten.max(axis=1)
for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
    group = (winner >= low) & (winner < high)
    print(
        f"winner's share from {low:.1f}: {group.sum():3d} garments, {right[group].mean():4.0%} right"
    )

# %% [markdown]
# When the neighbours agree, the answer is nearly always right; when they quarrel, it is right less often, and the share says so. Do not read a share as a probability, though: of the answers with a share of 0.7 or 0.8, compare how many are right. A share tells *which* answers to trust more, and the table above, made with garments whose names we know, tells *how much*.
#
# ### Weights that fall
#
# Ten nearest, all alike, and then nobody: that is a hard edge. A softer kernel lets the weight fall with the distance, for example the Gaussian kernel, $K = e^{-d^2/2h^2}$, with a **{term}`bandwidth`** $h$. Two samples at distances $a < b$ then weigh in the ratio $e^{-(b^2 - a^2)/2h^2}$, and after the division by the sum only such ratios count. So a small $h$ does not mean that nobody is near enough; it means that the nearest count far more than the next. Move the slider for one garment: who speaks, and what are the shares?

# %%
puzzle = 5
far = np.sort(np.sqrt(((queries[puzzle] - samples) ** 2).sum(axis=1)))
print(
    "distances: nearest",
    far[0].round(1),
    " tenth",
    far[9].round(1),
    " farthest",
    far[-1].round(1),
)

# %% tags=["hide-input"]
frames = []
for h in (0.5, 1.0, 1.5, 2.5, 4.0, 8.0, 20.0):
    weights = lb.local_weights(queries[[puzzle]], samples, lb.gaussian(h))[0]
    speakers = 1 / (weights**2).sum()
    answer = weights @ indicators
    fig, axes = plt.subplots(1, 3, figsize=(7.0, 3.2), width_ratios=(1, 1, 2))
    drawn = weights @ samples  # the weighted mean of all known pictures
    for ax, picture, title in zip(
        axes, (queries[puzzle], drawn), ("query", "mean"), strict=False
    ):
        ax.imshow(picture.reshape(28, 28), cmap="gray", vmin=0, vmax=1)
        ax.set_title(title, fontsize=10)
        ax.set_axis_off()
    axes[2].barh(kinds, answer, color=COLOURS["blue"])
    axes[2].invert_yaxis()
    axes[2].set(xlim=(0, 1), xlabel="share")
    axes[2].set_title(
        f"h = {h}: about {speakers:.0f} of 2,000 speak", fontsize=10
    )
    best = int(answer.argmax())
    alt = f"With h = {h} about {speakers:.0f} garments speak; "
    alt += f"the largest share, {answer[best]:.0%}, is that of {kinds[best]}."
    frames.append((f"h = {h}", alt, fig))
slider(
    frames,
    "bandwidth h",
    start=2,
    caption="One garment (in truth a pullover), seven bandwidths. Left: the query. Middle: the "
    "weighted mean of all known garments. Right: the shares of the ten kinds.",
)

# %% tags=["remove-cell"]
widest = lb.local_mean(
    queries[[puzzle]], samples, indicators, lb.gaussian(20.0)
)
glue("widest_kind", kinds[int(widest.argmax())])
# the reason that the text gives
assert samples[known.labels == widest.argmax()].mean() < samples.mean()
glue("operations", round(samples.size / 1e6, 1))

# %% [markdown]
# With a small bandwidth one garment decides. With a large one everybody speaks, every kind gets nearly a tenth, and the answer says nothing about *this* query: at $h = 20$ the largest share belongs to the kind *{glue:text}`widest_kind`*, only because its pictures have few bright pixels and are not very far from anything. (How many speak is counted by $1/\sum_i w_i^2$, which is $k$ when $k$ samples weigh $1/k$ each.)
#
# ### Query models and inference models
#
# So far we kept all 2,000 garments and *looked them up*: a **{term}`query model`**, also called retrieval. Nothing was computed before the question came; that is why it is called **{term}`lazy learning`**. The other way is to boil the samples down to a few **{term}`rules <rule>`** and throw them away: an **{term}`inference model`**. The two names are the paper's (as its summaries tell it), and so is the hope that both may help to interpret what a model does {cite}`song2026`.
#
# The simplest rules for our garments: ten of them, one for each kind, "a garment that looks like *this* is a bag", where *this* is the mean picture of all 200 bags. The formula does not change at all. It is the same local mean, over ten rules in the place of 2,000 samples. And between ten and 2,000 there is everything: several typical pictures for each kind. We find them by *k-means clustering*, which places a given number of centres among the pictures of one kind, so that each picture is near some centre; a centre is the mean of the pictures nearest to it. With one centre it is the mean of them all.

# %%
from sklearn.cluster import KMeans


def rules(per_kind):
    """Typical pictures of each kind, and their indicators."""
    centres, labels = [], []
    for kind in range(10):
        pictures = samples[known.labels == kind]
        centres.append(
            KMeans(per_kind, n_init=1, random_state=0)
            .fit(pictures)
            .cluster_centers_
        )
        labels += [kind] * per_kind
    return np.concatenate(centres), np.eye(10)[labels]


for per_kind in (1, 5, 20):
    pictures, of_kind = rules(per_kind)
    answer = lb.local_mean(queries, pictures, of_kind, lb.knn(1)).argmax(
        axis=1
    )
    print(
        f"{10 * per_kind:4d} rules:   {(answer == new.labels).mean():.0%} right"
    )
answer = lb.local_mean(queries, samples, indicators, lb.knn(1)).argmax(axis=1)
print(f"2000 samples: {(answer == new.labels).mean():.0%} right")

# %% [markdown]
# Ten rules already go a long way, and 200 good rules name garments about as well as 2,000 samples (one per cent is five garments of our 500, within chance), at a tenth of the cost for each question. Rules took work beforehand, though, and a rule is a picture of nobody: when it errs, there is no real garment to point at. Chapter 11 meets rules again as fuzzy inference.
#
# ## The outside check
#
# scikit-learn's `KNeighborsClassifier` {cite}`pedregosa2011` must give the same shares.

# %%
from sklearn.neighbors import KNeighborsClassifier

peer = KNeighborsClassifier(n_neighbors=10).fit(samples, known.labels)
difference = np.abs(peer.predict_proba(queries) - by_ten).max()
print(
    "largest difference of all 5,000 shares below 1e-12:",
    bool(difference < 1e-12),
)

# %% [markdown]
# ## The experiment: how much must one know?
#
# **A question before the answer.** Suppose you know just *one* garment of each kind, ten in all. How many of the 500 new ones would you name rightly: 10 %, 40 %, 70 %? And what does it take to reach 75 %?
#
# The known garments are stored so that each block of ten holds one of each kind. So we can start with ten and add more.

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-idea-learning-curve", "caption": "Share of 500 new garments that are named rightly, against the number of known garments, for the nearest and for the ten nearest. The dotted line is chance."}, "image": {"alt": "Two rising curves over a logarithmic axis from 10 to 2,000 known garments. The nearest garment alone starts at 40 per cent and ends at 77. The ten nearest start at chance, 10 per cent, overtake near 500 and end at 77 as well.", "classes": "dark-light"}}
sizes = (10, 20, 50, 100, 200, 500, 1000, 2000)
curves = {1: [], 10: []}
for n in sizes:
    for k, curve in curves.items():
        answer = lb.local_mean(
            queries, samples[:n], indicators[:n], lb.knn(k)
        ).argmax(axis=1)
        curve.append(100 * (answer == new.labels).mean())

fig, ax = plt.subplots()
ax.plot(sizes, curves[1], "o-", label="the nearest")
ax.plot(sizes, curves[10], "s--", label="the ten nearest")
ax.axhline(10, color=COLOURS["black"], linestyle=":", label="chance")
ax.set_xscale("log")
ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
ax.set(
    ylim=(0, 100), xlabel="known garments", ylabel="named rightly (per cent)"
)
ax.legend(loc="upper left")
plt.show()

# %% tags=["remove-cell"]
glue("with_ten", f"{curves[1][0]:.0f} %")
glue("with_all", f"{curves[1][-1]:.0f} %")
enough = [
    n for n, percent in zip(sizes, curves[10], strict=True) if percent >= 75
]
glue("enough", f"{enough[0]:,}")

# %% [markdown]
# One example of each kind is enough for {glue:text}`with_ten`, four times better than chance. To pass 75 % takes {glue:text}`enough` known garments with the ten nearest. With all 2,000 both rules reach {glue:text}`with_all`. That is the price of assuming nothing: the last points are dear.
#
# Look at where the curves cross. With few known garments the one nearest is better, because the tenth nearest is already far away; with ten known garments "the ten nearest" are *all* of them, every kind gets the same share, and the first kind of the list is named. With many, ten are better than one, because single garments mislead. That is the tug-of-war from above, as a picture.
#
# ## Where it breaks
#
# ### Near is not alike
#
# Everything rests on the distance. Ours compares pixel with pixel, so it takes two pictures of one shirt for very different if one is moved aside. Move all new garments to the right by a few pixels:

# %%
nearest_known = lb.local_mean(queries, samples, samples, lb.knn(1))
stranger = np.sqrt(((queries - nearest_known) ** 2).sum(axis=1)).mean()
print(f"the nearest known garment is {stranger:.1f} away on average")
for shift in (1, 2, 3):
    moved = np.zeros_like(new.images)
    moved[:, :, shift:] = new.images[:, :, : 28 - shift]
    moved = moved.reshape(500, 784) / 255
    answer = lb.local_mean(moved, samples, indicators, lb.knn(10))
    correct = (answer.argmax(axis=1) == new.labels).mean()
    itself = np.sqrt(((moved - queries) ** 2).sum(axis=1)).mean()
    print(f"moved by {shift}: {itself:.1f} from itself, {correct:.0%} right")

# %% [markdown]
# A garment that is moved by two pixels is farther from *itself* than from some other garment. No rule that trusts this distance can be better than the distance. What helps is a better one. Moved copies could be added to the samples; pictures could be compared patch by patch; or the ruler itself could be learned from the data, which is the subject of chapter 19.
#
# ### Lazy is not free
#
# Nothing is computed before the question, so everything is computed after it: one answer compares the query with all $n$ samples, $n \times d$ differences, {glue:text}`operations` million here, and all samples must be kept. Chapter 28 shows how far careful code takes that.
#
# ## As a local mean
#
# Each chapter ends with this table.
#
# | | a vote of the neighbours |
# |---|---|
# | space | garments as points with 784 coordinates |
# | kernel | 1 for the $k$ nearest, else 0; or Gaussian |
# | samples | 2,000 garments, or a few rules |
# | values | ten indicator numbers |
# | normalised | yes: shares sum to 1 |
# | iterated | no: the output is not fed back as a query |
#
# ### Is every model a local mean?
#
# The paper (as its summaries tell it) makes a bold claim: *any* model, at least any built by people, is in essence a local model, a local mean {cite}`song2026`. This book does not ask you to believe it. It goes through the models one by one and says what kind of truth each case is. You need not know these names yet; the table is a promise.
#
# | model | as a local mean | kind of truth | chapter |
# |---|---|---|---|
# | $k$ nearest neighbours | the definition above | exact | 1, 8 |
# | decision tree | the mean of the samples in one box | exact: see below | 8 |
# | random forest | the mean of its trees' weights {cite}`lin2006` | exact | 8 |
# | attention in a Transformer | a local mean with weights $e^{\langle q, k\rangle}$ {cite}`tsai2019` | exact | 23 |
# | local linear regression | a weighted sum whose weights sum to 1, but may be negative | exact, but outside $K \ge 0$ | 5 |
# | denoising network | the best denoiser of known samples is a local mean; a trained network tends to it | a limit | 17 |
# | the Transformer's other layers | a sum over learned keys and values, of either sign, not normalised | an analogy | 25 |
# | linear regression | every sample counts at every query, with either sign | a weighted sum, nothing local | 5 |
#
# Take the decision tree. It cuts the axis into boxes, one question after the other ("is $x$ below 2.3?"), and chooses the cuts so that the values in each box differ little. Asked at $x^*$, it finds the box and answers with the mean of the known values there. That is a local mean, whose kernel is 1 for two points in one box and 0 otherwise. If so, `lb.local_mean` must repeat a tree's predictions once it is told who is in which box. Let a tree learn a noisy wave, and see:

# %% tags=["hide-input"] mystnb={"figure": {"name": "fig-idea-tree", "caption": "A decision tree with twelve boxes (line) learns a noisy wave (dots). Crosses: the local mean with the kernel 1 for two points in one box, else 0."}, "image": {"alt": "Dots scatter around a wave. A step function with twelve flat pieces follows it. Crosses lie exactly on the steps.", "classes": "dark-light"}}
from sklearn.tree import DecisionTreeRegressor

wave = lb.datasets.make_curve("sine", 300, 0.3, random_state=0)
tree = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0)
tree.fit(wave.x, wave.y)

asked_x = np.linspace(wave.x.min(), wave.x.max(), 60)[:, None]
boxes = tree.apply(wave.x)[:, None]  # the number of each sample's box
asked_boxes = tree.apply(asked_x)[:, None]
same_box = lb.uniform(0.5)  # whole numbers less than 0.5 apart are equal
ours = lb.local_mean(asked_boxes, boxes, wave.y, same_box)
assert np.allclose(ours, tree.predict(asked_x), rtol=1e-12)

fine = np.linspace(wave.x.min(), wave.x.max(), 1000)[:, None]
fig, ax = plt.subplots()
ax.plot(wave.x, wave.y, "o", color=COLOURS["sky"], markersize=3)
ax.plot(fine, tree.predict(fine), "-", color=COLOURS["blue"], label="tree")
ax.plot(asked_x, ours, "x", color=COLOURS["vermilion"], label="local mean")
ax.set(xlabel="x", ylabel="y")
ax.legend()
plt.show()

# %% [markdown]
# So the claim is not empty; and it is not simply true either. Keep three questions ready, whenever somebody tells you that some model is a local mean. Are the weights non-negative? Do they sum to 1? And does the weight fall with a distance that was there *before* the answer, or was it learned, like the tree's boxes, to make the answer come out?
#
# ## Exercises
#
# :::{exercise} A weighted vote
# :label: ex-localization-idea-weighted-vote
#
# Five neighbours. The kernel gives them 4, 3, 2, 2 and 1. The first is a dress, the second and third are shirts, the fourth and fifth are coats. What is the share of the local mode, to two decimals?
# :::

# %% tags=["exercise"]
answer = ...
check("localization_idea.weighted_vote", answer)

# %% [markdown]
# :::{solution-start} ex-localization-idea-weighted-vote
# :class: dropdown
# :::
#
# The kernel values sum to 12. Dress has 4/12, shirt $(3 + 2)/12$, coat $(2 + 1)/12$. The local mode is shirt, although the nearest neighbour is a dress.

# %% tags=["solution"]
answer = max(4, 3 + 2, 2 + 1) / (4 + 3 + 2 + 2 + 1)
print(round(answer, 2))
check("localization_idea.weighted_vote", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} Neighbours with distances that count
# :label: ex-localization-idea-gaussian-shares
#
# Define a function `answer(query, samples, labels, n_kinds, bandwidth)` in place of the line `answer = ...`. It returns the shares of the kinds at one query, shape `(n_kinds,)`, with the Gaussian kernel $e^{-d^2/2h^2}$. `query` has shape `(d,)`, `samples` `(n, d)`, `labels` `(n,)` with integers from 0. (`np.bincount(labels, weights=w, minlength=n_kinds)` adds up the weights of each label.)
# :::

# %% tags=["exercise"]
answer = ...
check("localization_idea.gaussian_shares", answer)

# %% [markdown]
# :::{solution-start} ex-localization-idea-gaussian-shares
# :class: dropdown
# :::
#
# Two lines of the cell "from scratch" change: the weights are no longer 0 or 1, and we divide by their sum instead of $k$.


# %% tags=["solution"]
def answer(query, samples, labels, n_kinds, bandwidth):
    kernel = np.exp(-0.5 * ((query - samples) ** 2).sum(axis=1) / bandwidth**2)
    return (
        np.bincount(labels, weights=kernel, minlength=n_kinds) / kernel.sum()
    )


check("localization_idea.gaussian_shares", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# :::{exercise} Which garments are taken for which?
# :label: ex-localization-idea-confusion
#
# Go through the garments that `lb.knn(10)` names wrongly, and count the pairs (true kind, named kind). Which true kind is named wrongly most often? Answer with its name, such as `"Bag"`. And which wrong name does it get most often?
# :::

# %% tags=["exercise"]
answer = ...
check("localization_idea.confusion", answer)

# %% [markdown]
# :::{solution-start} ex-localization-idea-confusion
# :class: dropdown
# :::
#
# Count the errors of each true kind. The table of pairs tells more: what is confused is what differs in a detail, a collar or a zip, that a pixel-by-pixel distance hardly sees.

# %% tags=["solution"]
named = by_ten.argmax(axis=1)
errors = np.bincount(new.labels[named != new.labels], minlength=10)
pairs = np.zeros((10, 10), dtype=int)
np.add.at(pairs, (new.labels, named), 1)
np.fill_diagonal(pairs, 0)
for flat in np.argsort(-pairs, axis=None, kind="stable")[:3]:
    true, taken = np.unravel_index(flat, pairs.shape)
    print(
        f"{kinds[true]} taken for {kinds[taken]}: {pairs[true, taken]} times"
    )
answer = kinds[errors.argmax()]
print(answer, errors.max(), "of 50")
check("localization_idea.confusion", answer)

# %% [markdown]
# :::{solution-end}
# :::
#
# ## Summary
#
# - Look at the neighbours, weigh them, take the mean: of names written as indicators, that mean is a share.
# - The error is at most the rate of change times the mean distance of those who speak.
# - Query models keep the samples and look them up; inference models keep rules; the formula is one.
# - Lazy learning needs no training and shows its reasons; it pays when the question comes, and trusts its distance.
# - That every model is a local mean is a claim to be examined case by case.
#
# ## Further reading
#
# The nearest-neighbour rule is from {cite:t}`fix1951`; {cite:t}`cover1967` proved that, with ever more samples, the single nearest neighbour errs at most twice as often as the best possible rule. {cite:t}`stone1977` proved that growing numbers of neighbours reach the best. On forests as weighted neighbours see {cite:t}`lin2006`. The paper behind this book is {cite:t}`song2026`.
#
# :::{dropdown} For teachers
# One hour. Begin with the picture and no code: print the eleven garments, let the class name the first, and ask how they did it. Let them bet on the learning curve before it is shown. The discussion worth having is the last table: let groups defend "exact", "limit" or "analogy" for one row each. Common errors: taking the share for a probability that was calibrated (compare it with the table of how often it is right, and ask how many garments each line rests on), and thinking that more neighbours are always safer.
# :::
