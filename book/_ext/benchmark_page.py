"""The page of the benchmarks: tables, pictures and numbers from ``benchmarks/results.json``.

Nothing is measured here, and nothing of the file is left out: a row that misses its target is shown
as such, and one that the file lacks is named.
"""

import io
import json
import re
from html import escape

from book_map import BOOK

COMMAND = "python -m benchmarks"
FAMILIES = {
    "attention": "Softmax local mean",
    "gradient": "Gradient of the softmax local mean",
    "gaussian": "Gaussian local mean",
    "small": "Gaussian local means of few points",
    "profiles": "Profiles of one's own, and a Mahalanobis distance",
    "density": "Density",
    "compact": "Compact support",
    "neighbors": "Nearest neighbours",
    "regression": "Local linear regression",
    "memory": "Memory",
    "oracles": "All functions that have a peer",
}
# Their rows have no work in common.
EACH_ITS_WORK = ("oracles", "profiles", "small")
# How the tables call a peer; others by the last part of their name.
SHORT = {
    "torch.nn.functional.scaled_dot_product_attention": "PyTorch SDPA",
    "torch.cdist": "PyTorch cdist",
    "pykeops.numpy.Genred": "KeOps",
    "numpy.exp": "NumPy",
    "faiss.IndexFlatL2": "faiss",
}
AXES = {
    "n": "number of samples n",
    "d": "columns of the samples d",
    "p": "columns of the values p",
}
NOT_MEASURED = f"*Not measured yet: run `{COMMAND}`, which writes the file that this page is drawn from.*"


def results(book=BOOK):
    """What was measured, or None."""
    path = book.parent / "benchmarks" / "results.json"
    return (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    )


def texts(book=BOOK):
    """``{name: function}``: MyST texts of the page, each said to be missing where nothing was measured."""
    found = results(book)
    return {
        name: lambda part=part: NOT_MEASURED if found is None else part(found)
        for name, part in PARTS.items()
    }


def _rate(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _joined(items):
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


# --- in words ---


def machine(found):
    """Processor, versions, and what the processor can do at most."""
    where, peak = found["machine"], found["peak"]
    versions = {k: v for k, v in where["versions"].items() if v}
    lines = [
        f"Measured on {where['processor']} with {where['cores']} cores, by Python {where['python']} and "
        + _joined([f"{name} {version}" for name, version in versions.items()])
        + ".",
        "",
    ]
    if found["quick"]:
        lines += [
            "**These are the quick figures**: a quarter of each size, and few runs.",
            "",
        ]
    lines += [
        "| at most | one thread | two threads |",
        "|---|--:|--:|",
    ]
    for label, unit, by_dtype in (
        ("multiply-adds", "GFLOP/s", peak["gflops"]),
        ("exponentials", "10⁹/s", peak["gexp_s"]),
        ("bytes read", "GB/s", {"": peak["bandwidth_gb_s"]}),
    ):
        for dtype, rate in by_dtype.items():
            name = ", ".join(filter(None, (label, dtype, unit)))
            lines.append(
                f"| {name} | {_rate(rate['1'])} | {_rate(rate['2'])} |"
            )
    return "\n".join(lines)


def absent(found):
    """Peers that were not there."""
    if not found["absent"]:
        return "No peer was absent."
    told = [
        f"`{entry['peer']}` (needs {entry['needs']})"
        for entry in found["absent"]
    ]
    return f"Absent, and so not compared: {_joined(told)}."


def tally(found):
    """How many targets are reached."""
    aims = [row for row in found["rows"] if _has_target(row)]
    reached = sum(row["verdict"] == "reached" for row in aims)
    return f"{reached} of {len(aims)} targets are reached."


def _has_target(row):
    return row.get("target") is not None or "target_mb" in row


# --- tables ---


def tables(found):
    """A table for each family, in the order of the page."""
    lines = []
    for family, title in FAMILIES.items():
        rows = [row for row in found["rows"] if row["family"] == family]
        lines += [f"### {title}", ""]
        if not rows:
            lines += [
                f"*The file has no rows of this kind: run `{COMMAND}`.*",
                "",
            ]
        elif family == "memory":
            lines += [_memory(row) for row in rows] + [""]
        else:
            lines += _table(rows, family in EACH_ITS_WORK)
    return "\n".join(lines)


def _begun(text):
    """As the beginning of a sentence; names in it keep their capitals."""
    return text[:1].upper() + text[1:]


def _memory(row):
    return (
        f"A Gaussian local mean of {row['n']:,} samples at {row['m']:,} queries (d = {row['d']}) makes the "
        f"process grow by {row['grown_mb']:.1f} MB; the target is {row['target_mb']:.0f} MB: {_result(row)}."
    )


def _table(rows, each_its_work):
    """Rows with a common work tell it once, above the table."""
    lines = []
    if not each_its_work:
        works = {
            f"{_begun(row['work'])}, {row['n']:,} samples and {row['m']:,} queries": None
            for row in rows
        }
        lines += [f"{'; '.join(works)}.", ""]
    head = "work" if each_its_work else "d, p"
    lines += [
        ":::{div} lb-figures",
        "",
        f"| {head} | dtype | peer | target | one thread | two threads | result | roofline | ms |",
        "|---|---|---|--:|--:|--:|---|--:|--:|",
    ]
    for row in rows:
        lines.append(f"| {' | '.join(_cells(row, each_its_work))} |")
    return [*lines, "", ":::", ""]


def _cells(row, each_its_work):
    timed = row.get("threads", {})
    one = timed.get("1")
    share = one and one.get("roofline_share")
    columns = ", ".join(str(row[k]) for k in "dp" if row[k])
    size = {"profiles": f", ({columns})", "small": ""}.get(
        row["family"], f", {_size(row)}"
    )
    return [
        f"{row['work']}{size}" if each_its_work else columns,
        row["dtype"],
        _peer(row),
        "" if row["target"] is None else f"{row['target']:g}",
        *(_ratio(timed[k]) if k in timed else "" for k in ("1", "2")),
        _result(row),
        _percent(share) if share else "",
        f"{_rate(1e3 * one['ours_s'])} / {_rate(1e3 * one['theirs_s'])}"
        if one
        else "",
    ]


def _size(row):
    return f"{row['n']:,}" + (f" × {row['m']:,}" if row["m"] else "")


def _peer(row):
    name = SHORT.get(row["peer"], row["peer"].rpartition(".")[2])
    return name + (f"<br>{row['note']}" if row["note"] else "")


def _ratio(timed):
    return f"{timed['ratio']:.2f} ({timed['ratio_low']:.2f}–{timed['ratio_high']:.2f})"


def _percent(share):
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _result(row):
    """``reached``, or in bold what became of it instead; the whole verdict stands further below."""
    first = row["verdict"].partition(":")[0].lower()
    return first if first in ("", "reached") else f"**{first}**"


def shortfalls(found):
    """Each row that misses its target or differs, and what the roofline says about it."""
    missed = [
        row for row in found["rows"] if row["verdict"] not in ("", "reached")
    ]
    if not missed:
        return "No row falls short."
    return "\n".join(f"- {_shortfall(row)}" for row in missed)


def _shortfall(row):
    if "grown_mb" in row:
        return _memory(row)
    columns = "".join(f", {k} = {row[k]}" for k in "dp" if row[k])
    text = f"{_begun(row['work'])}{columns}, {row['dtype']}, beside `{row['peer']}`"
    text += f" ({row['note']})" if row["note"] else ""
    text += f": {row['verdict']}."
    timed = row.get("threads", {}).get("1", {})
    if "roofline_share" in timed:
        share, ratio = timed["roofline_share"], timed["ratio"]
        text += (
            f" On one thread locbook is at {_percent(share)} of the roofline, the peer at "
            f"{_percent(share / ratio)}; on the roofline the ratio would be {_rate(ratio / share)}"
        )
        text += ", below the target." if ratio / share < row["target"] else "."
        if row.get("ceiling") is not None:
            most = row["ceiling"] * ratio / share
            text += (
                f" Where each instruction takes the place of a multiply-add, {_percent(row['ceiling'])} "
                f"is the most, and a ratio of {_rate(most)}"
            )
            text += ", below the target." if most < row["target"] else "."
    return text


# --- pictures ---

# Colours that Matplotlib writes and the page replaces by its own, light or dark.
INK, FAINT = "#010203", "#040506"
PAGE_COLOURS = {
    INK: "var(--pst-color-text-base)",
    FAINT: "var(--pst-color-border)",
}
LOOKS = {"float32": ("#0072B2", "o"), "float64": ("#D55E00", "s")}


def pictures(found):
    """HTML: the cost of a pair against n, d and p, all in one scale."""
    by_axis = {
        axis: [p for p in found["sweep"] if p["axis"] == axis] for axis in AXES
    }
    costs = [p[k] for p in found["sweep"] for k in ("ns_per_pair", "ns_least")]
    lines = ["```{raw} html", '<div class="lb-benchmarks">']
    for axis, points in by_axis.items():
        if points:
            picture = _svg(axis, points, (min(costs) / 1.3, max(costs) * 1.3))
            fixed = ", ".join(
                f"{other} = {points[0][other]:,}"
                for other in "nmdp"
                if other != axis
            )
            caption = f"Against the {AXES[axis]}, with {fixed}."
            lines.append(
                f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"
            )
    lines += ["</div>", "```"]
    missing = [axis for axis, points in by_axis.items() if not points]
    if missing:
        lines += [
            "",
            f"*The file lacks the cost against {_joined(missing)}: run `{COMMAND}`.*",
        ]
    return "\n".join(lines)


def describe(axis, points):
    """What one sees in a picture, in a sentence."""
    told = []
    for dtype in LOOKS:
        line = [p for p in points if p["dtype"] == dtype]
        if line:
            ends = [
                f"{_rate(p['ns_per_pair'])} ns at {axis} = {p[axis]:,}"
                for p in (line[0], line[-1])
            ]
            told.append(f"in {dtype} {_joined(ends)}")
    return f"Cost of a pair against the {AXES[axis]}: {'; '.join(told)}."


def _svg(axis, points, limits):
    """One picture as SVG inside the page, without names that could stand twice in it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    look = {
        "svg.fonttype": "none",
        "svg.hashsalt": axis,
        "font.size": 11,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": FAINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(look):
        figure = Figure(figsize=(4.6, 3.8), layout="constrained")
        axes = figure.subplots()
        for dtype, (colour, marker) in LOOKS.items():
            line = [p for p in points if p["dtype"] == dtype]
            at = [p[axis] for p in line]
            costs = [p["ns_per_pair"] for p in line]
            least = [p["ns_least"] for p in line]
            axes.plot(at, costs, color=colour, marker=marker, label=dtype)
            roof = f"{dtype}, roofline"
            axes.plot(at, least, color=colour, linestyle=":", label=roof)
        axes.set(xscale="log", yscale="log", ylim=limits)
        axes.set(xlabel=AXES[axis], ylabel="ns a pair")
        for side in (axes.xaxis, axes.yaxis):
            side.set_major_formatter("{x:,g}")
            side.set_minor_formatter(NullFormatter())
        axes.grid(True)
        figure.legend(
            loc="outside upper center", ncols=2, frameon=False, fontsize=9
        )
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True)
    return _for_page(file.getvalue(), describe(axis, points))


def _for_page(svg, description):
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->",
        "",
        svg,
        flags=re.DOTALL,
    )
    svg = re.sub(r"<g id=\"[^\"]*\"", "<g", svg)
    for colour, name in PAGE_COLOURS.items():
        svg = svg.replace(colour, name)
    return svg.replace(
        "<svg", f'<svg role="img" aria-label="{escape(description)}"', 1
    )


PARTS = {
    "benchmark machine": machine,
    "benchmark tally": tally,
    "benchmark tables": tables,
    "benchmark pictures": pictures,
    "benchmark shortfalls": shortfalls,
    "absent peers": absent,
}
