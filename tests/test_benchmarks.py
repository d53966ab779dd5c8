"""The benchmarks: both sides agree before they are timed, nothing is hidden, and the page says what the file says."""

import copy
import importlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

import locbook as lb
from benchmarks import __main__ as command
from benchmarks import memory, peak, report, roofline, sweep, timing
from benchmarks.case import AbsentError, Case, Cost, Data, Peer, range_error
from tools import BOOK, ROOT

sys.path.insert(0, str(BOOK / "_ext"))
import benchmark_page
import generated_text

ONCE = timing.Effort(most=1, least=1, seconds=0.0)
FAMILIES = [family for family in command.FAMILIES if family != "oracles"]  # these have their own test
PEAK = {
    "gflops": {"float32": {"1": 100.0, "2": 200.0}, "float64": {"1": 50.0, "2": 100.0}},
    "gexp_s": {"float32": {"1": 6.0, "2": 12.0}, "float64": {"1": 2.0, "2": 4.0}},
    "bandwidth_gb_s": {"1": 20.0, "2": 40.0},
}


@pytest.fixture(autouse=True)
def _threads_as_before(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE_S", 0.0)
    with threadpoolctl.threadpool_limits():
        yield
    lb.set_num_threads(None)


def cases(family):
    return importlib.import_module(f"benchmarks.{family}").cases()


def pairs():
    """Each case with each of its peers, KeOps once: it compiles anew for each number of columns."""
    for family in FAMILIES:
        for case in cases(family):
            for peer in case.peers:
                if peer.package != "pykeops" or (case.d, case.dtype) == (2, "float32"):
                    yield pytest.param(case, peer, id=case.name(peer))


# --- rows ---


@pytest.mark.parametrize(("case", "peer"), list(pairs()))
def test_row_agrees_with_its_peer_and_is_timed(case, peer):
    rows, absent = timing.measure(case, 300, 40, ONCE, [peer])
    if absent:
        reason = f"{peer.name} needs {absent[0]['needs']}, which is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    (row,) = rows
    assert row["agree"], (row["error_ours"], row["error_theirs"])
    roofline.add_shares(rows, PEAK)
    for timed in row["threads"].values():
        assert timed["ratio_low"] <= timed["ratio"] <= timed["ratio_high"]
        assert timed["roofline_share"] > 0


def test_rows_and_targets_are_those_that_were_set():
    aims = {
        (case.family, case.dtype, case.d, peer.package): peer.target
        for family in FAMILIES
        for case in cases(family)
        for peer in case.peers
        if peer.target is not None and peer.name != "sklearn.neighbors.RadiusNeighborsRegressor"
    }
    assert [aims["attention", "float32", d, "torch"] for d in (2, 8, 64)] == [2.5, 2.0, 1.2]
    assert [aims["attention", "float64", d, "torch"] for d in (2, 8, 64)] == [2.0, 1.5, 1.2]
    assert [aims["gradient", "float32", d, "torch"] for d in (2, 8, 64)] == [1.5, 1.5, 1.0]
    assert {aims["gaussian", "float32", d, "pykeops"] for d in (2, 8, 64)} == {20.0}
    assert (aims["density", "float64", 2, "scipy"], aims["density", "float64", 2, "sklearn"]) == (8.0, 30.0)
    assert {aims["compact", "float64", d, "scipy"] for d in (2, 3)} == {3.0}
    assert [aims["neighbors", "float32", d, "faiss"] for d in (3, 8, 50)] == [1.0, 2.0, 2.0]
    assert aims["regression", "float64", 2, "statsmodels"] == 40.0
    sizes = {family: {(case.n, case.m) for case in cases(family)} for family in FAMILIES}
    assert sizes["attention"] == sizes["gradient"] == sizes["gaussian"] == {(10_000, 10_000)}
    assert sizes["compact"] == sizes["neighbors"] == {(50_000, 5_000)}


def test_every_row_has_a_name_of_its_own():
    names = [case.name(peer) for f in command.FAMILIES for case in cases(f) for peer in case.peers]
    assert len(set(names)) == len(names)


def make(rng, n, m):
    return Data(x=rng.normal(size=n))


def case_of(*peers, ours=lambda data: data.x, **fields):
    return Case(
        "family", "work", 10, 5, 3, 1, "float64", make, ours, lambda data: data.x, peers, **fields
    )  # fmt: skip


class Counted:
    """A peer's run that remembers its calls."""

    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def __call__(self, data):
        self.calls += 1
        return self.answer(data)


@pytest.mark.parametrize(
    "wrong",
    [lambda data: data.x + 1e-9 * np.ptp(data.x), lambda data: data.x * np.nan, lambda data: data.x[1:]],
    ids=["off", "nan", "shape"],
)
def test_a_row_whose_answers_differ_is_reported_and_not_timed(wrong):
    right = Counted(lambda data: data.x)
    run = Counted(wrong)
    case = case_of(Peer("numpy.wrong", run, 2.0), Peer("numpy.right", right, 2.0))
    (bad, good), _ = timing.measure(case, 10, 5, ONCE, case.peers)
    assert not bad["agree"]
    assert "threads" not in bad
    assert run.calls == 1
    assert report.verdict(bad).startswith("DIFFERS")
    assert report.verdict(bad) in report.line(bad)
    assert good["agree"]
    assert right.calls == 1 + len(timing.THREADS)

    case = case_of(Peer("numpy.right", right), ours=wrong)
    (bad,), _ = timing.measure(case, 10, 5, ONCE, case.peers)
    assert not bad["agree"]


def test_a_missing_peer_is_named():
    def gone(data):
        import no_such_module  # noqa: F401

    def half(data):
        raise AbsentError("a C++ compiler")

    case = case_of(Peer("no_such_module.f", gone), Peer("half.g", half))
    rows, absent = timing.measure(case, 10, 5, ONCE, case.peers)
    assert rows == []
    assert absent == [
        {"peer": "no_such_module.f", "needs": "no_such_module"},
        {"peer": "half.g", "needs": "a C++ compiler"},
    ]


def test_sides_take_turns_and_who_has_had_its_time_drops_out(monkeypatch):
    log = []
    monkeypatch.setattr(timing, "seconds", lambda call, threads: call())
    ours, fast, slow = (
        lambda name=name, time=time: log.append(name) or time
        for name, time in (("ours", 1.0), ("fast", 2.0), ("slow", 10.0))
    )
    effort = timing.Effort(most=4, least=2, seconds=5.0)
    first, second = timing.interleaved(ours, [fast, slow], 1, effort)
    assert log == ["ours", "fast", "slow"] * 2 + ["ours", "fast"]
    assert (first["ratio"], second["ratio"], first["runs"], second["runs"]) == (2.0, 10.0, 3, 2)


def test_each_clock_sees_its_own_time():
    def wait():
        timing.time.sleep(0.05)

    assert timing.seconds(wait, threads=1) < 0.04  # CPU time
    assert timing.seconds(wait, threads=2) > 0.04  # wall clock


def test_range_error_is_relative_to_the_range():
    reference = np.array([100.0, 104.0])
    assert range_error(np.array([100.0, 105.0]), reference) == 0.25
    assert range_error(np.array([100.0, 104.0], dtype=np.float32), reference) == 0.0


def test_a_wrong_neighbour_is_found_out():
    (case,) = (c for c in cases("neighbors") if (c.d, c.p, c.dtype) == (3, 0, "float64"))
    data = case.data(200, 10)
    (distances, rows), right = case.ours(data), case.reference(data)
    assert case.error((distances, rows), right) < 1e-12
    other = rows.copy()
    other[0, 0] = next(k for k in range(200) if k not in rows[0])
    assert case.error((distances, other), right) > 1e-4
    other[0, 0] = rows[0, 1]
    assert case.error((distances, other), right) == np.inf
    assert case.error((1.001 * distances, rows), right) > 1e-4


# --- roofline, peak, memory ---


def row_of(ratio=3.0, target=2.0, **fields):
    timed = {"ours_s": 0.5, "theirs_s": 1.5, "ratio": ratio, "ratio_low": 2.5, "ratio_high": 3.5, "runs": 3}
    row = {
        "name": "gaussian: work", "family": "gaussian", "work": "work", "n": 1000, "m": 100, "d": 2, "p": 1,
        "dtype": "float32", "peer": "numpy.exp", "note": "", "target": target, "agree": True, "bound": 1e-4,
        "error_ours": 0.0, "error_theirs": 0.0, "first_call_s": 1.0, "flops": 1e10, "exponentials": 0.0,
        "bytes": 1e9, "threads": {"1": dict(timed), "2": dict(timed)},
    }  # fmt: skip
    row |= fields
    return row | {"verdict": report.verdict(row)}


def test_roofline_of_a_case_by_hand():
    rows = [row_of(), row_of(exponentials=1e10), row_of(bytes=1e10), row_of(flops=None)]
    roofline.add_shares(rows, PEAK)
    # 1e10 operations at 1e11 a second, beside 1e9 bytes at 2e10 a second
    assert rows[0]["bounded_by"] == "arithmetic"
    assert rows[0]["threads"]["1"]["roofline_share"] == pytest.approx(0.1 / 0.5)
    assert rows[0]["threads"]["2"]["roofline_share"] == pytest.approx(0.05 / 0.5)
    # a polynomial of degree 6 by Horner's rule, and 4 operations around it
    assert rows[1]["threads"]["1"]["roofline_share"] == pytest.approx((0.1 + 1.6) / 0.5)
    assert rows[2]["bounded_by"] == "memory"
    assert rows[2]["threads"]["1"]["roofline_share"] == pytest.approx(0.5 / 0.5)
    assert "roofline_share" not in rows[3]["threads"]["1"]


def test_operations_of_the_gaussian_by_hand():
    (case,) = (c for c in cases("gaussian") if (c.d, c.dtype) == (8, "float32"))
    # 20 queries of 8 columns, 10 samples of 8 with 8 values, 20 answers of 8;
    # 8 differences, 8 squares and sums, a scale, 8 values times a weight and their sums, the total
    cost = Cost(
        200 * (8 + 16 + 1 + 16 + 1), exponentials=200, bytes=4 * 480, instructions=200 * (8 + 8 + 1 + 8 + 1)
    )
    assert case.cost(10, 20) == cost


def test_peaks_are_measured(monkeypatch):
    monkeypatch.setattr(peak, "RUNS", 1)
    found = peak.measure(bandwidth_bytes=1 << 22)
    assert json.loads(json.dumps(found)).keys() == PEAK.keys()
    for dtype, rates in found["gflops"].items():
        assert 0.1 < rates["1"] < 1e4
        assert found["gexp_s"][dtype]["1"] < rates["1"]
    assert found["bandwidth_gb_s"]["2"] > 0
    assert len(peak.lines(found)) == 5


def test_loop_of_the_peak_computes_exponentials():
    for dtype, bound in (("float32", 3e-6), ("float64", 1e-14)):
        x = np.linspace(-5, 5, 101, dtype=dtype)
        y = np.empty_like(x)
        peak._exponential(dtype)(x, y, 1)
        np.testing.assert_allclose(y, np.exp(x), rtol=bound)


def test_memory_that_is_asked_for_is_seen():
    assert 45 < memory.growth_mb(lambda: np.ones(50 << 17).sum()) < 80
    row = memory.measure(n=2000, m=200)
    assert 0 <= row["grown_mb"] < 100


def test_sweep_has_a_point_for_each_value():
    points = sweep.measure(PEAK, ONCE, m=10, axes={"n": (20,), "d": (1, 2)})
    assert [(p["axis"], p["n"], p["d"], p["dtype"]) for p in points[:3]] == [
        ("n", 20, 3, "float32"), ("d", 10_000, 1, "float32"), ("d", 10_000, 2, "float32"),
    ]  # fmt: skip
    # d = 2: 3 d + 2 p + 2 operations and a polynomial of 16, at 100 a nanosecond
    assert points[2]["ns_least"] == pytest.approx((6 + 2 + 2 + 16) / 100)
    assert all(p["ns_per_pair"] > 0 for p in points)


# --- what is printed and written ---


def test_a_target_that_is_missed_is_printed_as_missed():
    assert report.verdict(row_of(ratio=2.0)) == "reached"
    missed = row_of(ratio=1.5)
    missed["threads"]["2"]["ratio"] = 2.5
    assert report.verdict(missed) == "MISSED: short by 25% on 1"
    assert "MISSED: short by 25% on 1" in report.line(missed)
    assert report.verdict(row_of(target=None)) == ""
    grown = {"grown_mb": 150.0, "target_mb": 100.0, "dtype": "float64", "n": 1, "m": 1, "d": 1, "p": 1}
    assert "MISSED: 50% above" in report.line(grown)


def test_machine_is_told_by_processor_cores_and_versions_only():
    told = report.machine()
    assert set(told) == {"processor", "cores", "python", "versions"}
    assert told["versions"]["numpy"] == np.__version__


FIELDS = {
    "name", "family", "work", "n", "m", "d", "p", "dtype", "bound", "error_ours", "error_theirs", "agree",
    "first_call_s", "flops", "exponentials", "bytes", "instructions", "ceiling", "bounded_by",
    "peer", "note", "target", "threads", "verdict",
}  # fmt: skip
TIMED = {"ours_s", "theirs_s", "ratio", "ratio_low", "ratio_high", "runs", "roofline_share"}


def test_command_writes_all_fields_and_nothing_of_the_machine(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peak, "measure", lambda: PEAK)
    monkeypatch.setattr(timing, "QUICK", ONCE)
    monkeypatch.setattr(timing, "prepare", lambda: None)
    monkeypatch.setattr(command, "FAMILIES", ("attention", "density"))
    path = tmp_path / "found.json"
    assert command.main(["--quick", "--only", "scipy.stats.gaussian_kde", "--output", str(path)]) == 0
    text = path.read_text()
    found = json.loads(text)
    assert set(found) == {"quick", "machine", "peak", "rows", "absent", "sweep"}
    (row,) = found["rows"]
    assert set(row) == FIELDS
    assert set(row["threads"]) == {"1", "2"}
    assert all(set(timed) == TIMED for timed in row["threads"].values())
    assert (row["n"], row["m"]) == (5000, 1250)
    for secret in (str(ROOT), str(Path.home()), str(tmp_path), socket.gethostname()):
        assert f'"{secret}' not in text
        assert f"{secret}/" not in text
    printed = capsys.readouterr().out
    assert "density: log-density" in printed
    assert row["verdict"] in printed


def test_a_part_takes_its_places_in_the_file_of_the_same_machine(tmp_path):
    old = {"quick": False, "machine": {"processor": "x"}, "peak": PEAK, "sweep": [1], "absent": []}
    old["rows"] = [row_of(name="a"), row_of(name="b")]
    new = old | {"sweep": [], "rows": [row_of(name="b", ratio=9.0), row_of(name="c")]}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(old))
    command.write(copy.deepcopy(new), path, is_part=True)
    whole = json.loads(path.read_text())
    assert [(row["name"], row["threads"]["1"]["ratio"]) for row in whole["rows"]] == [
        ("a", 3),
        ("b", 9),
        ("c", 3),
    ]
    assert whole["sweep"] == [1]
    before = path.read_text()
    command.write(new | {"machine": {"processor": "y"}}, path, is_part=True)
    assert path.read_text() == before


def test_committed_file_has_the_rows_of_the_table():
    if not command.RESULTS.exists():
        pytest.skip("nothing measured is committed")
    found = json.loads(command.RESULTS.read_text())
    assert not found["quick"]
    left_out = {entry["peer"] for entry in found["absent"]}
    names = {
        case.name(peer)
        for f in command.FAMILIES
        for case in cases(f)
        for peer in case.peers
        if peer.name not in left_out
    }
    assert {row["name"] for row in found["rows"]} == names | {memory.NAME}
    assert {(p["axis"], p[p["axis"]]) for p in found["sweep"]} == {
        (axis, value) for axis, values in sweep.AXES.items() for value in values
    }


# --- the page ---


def measured():
    rows = [row_of(n=1234), row_of(ratio=1.234, n=1234, peer="numpy.other", note="told")]
    roofline.add_shares(rows, PEAK)
    points = [
        {
            "axis": "n",
            "n": n,
            "m": 10,
            "d": 3,
            "p": 1,
            "dtype": dtype,
            "ns_per_pair": 1 + n / 1000,
            "ns_least": 0.1,
        }
        for dtype in ("float32", "float64")
        for n in (100, 2000)
    ]
    machine = {
        "processor": "Some processor",
        "cores": 7,
        "python": "3.99",
        "versions": {"numpy": "9.9", "torch": None},
    }
    absent = [{"peer": "torch.cdist", "needs": "torch"}]
    return {"quick": False, "machine": machine, "peak": PEAK, "rows": rows, "absent": absent, "sweep": points}


@pytest.fixture
def page(tmp_path):
    """Makes the texts of the page from a file that holds this."""

    def texts(found):
        (tmp_path / "benchmarks").mkdir(exist_ok=True)
        (tmp_path / "benchmarks" / "results.json").write_text(json.dumps(found))
        made = benchmark_page.texts(tmp_path / "book")
        return {name: text() for name, text in made.items()}

    return texts


def test_page_is_drawn_from_the_file(page):
    texts = page(measured())
    table = texts["benchmark tables"]
    assert "\nWork, 1,234 samples and 100 queries.\n" in table
    assert (
        "| 2, 1 | float32 | NumPy | 2 | 3.00 (2.50–3.50) | 3.00 (2.50–3.50) | reached | 20 % | 500 / 1,500 |"
        in table
    )
    assert (
        "| other<br>told | 2 | 1.23 (2.50–3.50) | 1.23 (2.50–3.50) | **missed** | 20 % | 500 / 1,500 |"
        in table
    )
    assert "1 of 2 targets are reached." in texts["benchmark tally"]
    assert "Some processor with 7 cores" in texts["benchmark machine"]
    assert "torch" not in texts["benchmark machine"]
    assert "`torch.cdist` (needs torch)" in texts["absent peers"]
    short = texts["benchmark shortfalls"]
    assert short.startswith(
        "- Work, d = 2, p = 1, float32, beside `numpy.other` (told): MISSED: short by 38% on 1, 38%"
    )
    assert "\n" not in short
    assert (
        "locbook is at 20 % of the roofline, the peer at 16 %; on the roofline the ratio would be 6.17."
        in short
    )
    assert "in float32 1.1 ns at n = 100 and 3 ns at n = 2,000" in texts["benchmark pictures"]


def test_page_says_what_the_file_lacks(page, tmp_path):
    texts = page(measured())
    assert (
        texts["benchmark tables"].count("The file has no rows of this kind")
        == len(benchmark_page.FAMILIES) - 1
    )
    assert "lacks the cost against d and p" in texts["benchmark pictures"]
    assert "quick" not in texts["benchmark machine"]
    assert "quick figures" in page(measured() | {"quick": True})["benchmark machine"]
    missing = benchmark_page.texts(tmp_path / "elsewhere" / "book")
    assert {text() for text in missing.values()} == {benchmark_page.NOT_MEASURED}


def test_a_target_beyond_the_roofline_is_said_to_be_so(page):
    found = measured()
    found["rows"] = [row_of(ratio=1.5, flops=4e10)]  # 80 % of the roofline
    roofline.add_shares(found["rows"], PEAK)
    assert "on the roofline the ratio would be 1.88, below the target." in page(found)["benchmark shortfalls"]
    found["rows"] = [row_of(agree=False, error_ours=1.0)]
    assert "DIFFERS: error 1.0e+00 > 1e-04, not timed" in page(found)["benchmark shortfalls"]
    assert "**differs**" in page(found)["benchmark tables"]
    found["rows"][0]["work"] = "a Gaussian of one's own, log K"
    assert page(found)["benchmark shortfalls"].startswith("- A Gaussian of one's own, log K, d = 2")
    found["rows"] = [row_of()]
    assert page(found)["benchmark shortfalls"] == "No row falls short."


def test_pictures_take_the_colours_of_the_page_and_no_name_twice(page):
    found = measured()
    found["sweep"] += [p | {"axis": axis, axis: k} for axis in "dp" for k, p in enumerate(found["sweep"], 1)]
    text = page(found)["benchmark pictures"]
    assert text == page(found)["benchmark pictures"]
    assert text.count("<svg role=") == 3
    assert "lacks" not in text
    names = re.findall(r'id="([^"]+)"', text)
    assert len(set(names)) == len(names)
    assert set(re.findall(r'(?:href="#|url\(#)([\w-]+)', text)) <= set(names)
    assert "var(--pst-color-text-base)" in text
    assert benchmark_page.INK not in text
    assert "<style" not in text


def test_every_text_of_the_page_is_on_it():
    asked = generated_text.PLACEHOLDER.findall((BOOK / "benchmarks.md").read_text(encoding="utf-8"))
    assert sorted(asked) == sorted(benchmark_page.texts())


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be forgotten on Linux only")
def test_memory_is_measured_in_a_process_that_a_larger_one_started():
    held = np.ones(25_000_000)  # 200 MB: a child begins with this peak, by getrusage
    script = (
        "import numpy as np; from benchmarks.memory import growth_mb; "
        "print(growth_mb(lambda: np.ones(5_000_000).sum()))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert held[0] == 1
    assert 35 < float(run.stdout) < 60


def test_share_that_is_left_where_each_instruction_counts():
    """Two columns, one value: 10 operations and an exponential of 16, in 7 and 14 instructions."""
    (case,) = [c for c in cases("gaussian") if (c.d, c.dtype) == (2, "float32")]
    cost = vars(case.cost(10, 10))
    assert roofline.ceiling(cost | {"dtype": "float32"}) == pytest.approx(26 / 2 / 21)
    assert roofline.ceiling(cost | {"dtype": "float32", "instructions": None}) is None
