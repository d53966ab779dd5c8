"""``import locbook`` is light: what takes scikit-learn or SciPy is imported when it is first used."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module

import numpy as np
import pytest

import locbook as lb
from locbook._lazy import lazy
from tests import background

HEAVY = ("sklearn", "scipy", "pandas", "matplotlib")


def fresh(code, **options):
    """What a fresh process prints as JSON."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, **options)
    assert run.returncode == 0, run.stderr.decode()
    return json.loads(run.stdout)


def heavy_after(statement):
    """Modules of the heavy packages that a statement loads; Numba itself looks at SciPy's version."""
    code = (
        f"import json, sys, numba; before = set(sys.modules); {statement}; "
        f"print(json.dumps([m for m in set(sys.modules) - before if m.partition('.')[0] in {HEAVY}]))"
    )
    return fresh(code)


def test_import_takes_no_heavy_package():
    assert heavy_after("import locbook as lb; lb.local_mean, lb.gaussian, lb.engine, dir(lb)") == []


@pytest.mark.parametrize(
    ("statement", "package"),
    [
        ("import locbook; locbook.LocalMeanRegressor", "sklearn"),
        ("import locbook; locbook.datasets.make_mixture", "scipy"),
    ],
)
def test_what_is_imported_late_is_seen_by_the_check(statement, package):
    assert any(name.startswith(f"{package}.") for name in heavy_after(statement))


def test_every_public_name_is_that_of_its_home():
    code = """if True:
        import importlib, inspect, json, locbook
        listed, found = dir(locbook), {}
        exec("from locbook import *", found)
        found.pop("__builtins__")
        made = {n: o for n, o in found.items() if inspect.isclass(o) or inspect.isfunction(o)}
        same = [n for n, o in made.items() if getattr(importlib.import_module(o.__module__), n) is o]
        print(json.dumps([listed, sorted(found), sorted(made), sorted(same)]))"""
    listed, found, made, same = fresh(code)
    assert found == sorted(lb.__all__)
    assert set(found) <= set(listed)
    assert same == made
    assert {"LocalMeanRegressor", "local_mean", "gaussian", "density"} <= set(made)


@pytest.mark.parametrize("package", [lb, lb.foundations])
def test_a_name_is_listed_once_and_there(package):
    assert len(set(package.__all__)) == len(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    assert all(hasattr(package, name) for name in dir(package))


@pytest.mark.parametrize("part", [lb.classical, lb.foundations, lb.kernels])
def test_the_front_door_shows_what_the_parts_offer(part):
    assert all(getattr(lb, name) is getattr(part, name) for name in part.__all__)
    assert getattr(lb, part.__name__.rpartition(".")[2]) is part


@pytest.mark.parametrize("package", [lb, lb.foundations])
def test_a_wrong_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'local_means'"):
        _ = package.local_means
    with pytest.raises(ImportError, match="local_means"):
        exec(f"from {package.__name__} import local_means")


def test_a_name_or_a_whole_module_is_found_and_kept():
    namespace = {"__name__": "locbook.foundations"}
    find, names = lazy(namespace, {"METHODS": ".bandwidth_selection", "smoother": ".smoother"})
    assert names() == ["METHODS", "__name__", "smoother"]
    assert find("smoother") is import_module("locbook.foundations.smoother")
    assert find("METHODS") is namespace["METHODS"]
    assert namespace["METHODS"] == ("loo", "gcv", "aicc")


def test_a_fitted_regressor_is_unpickled_in_a_fresh_process():
    X = np.linspace(0, 1, 20)[:, None]
    model = lb.LocalMeanRegressor("epanechnikov", bandwidth=0.3).fit(X, X[:, 0] ** 2)
    code = """if True:
        import json, pickle, sys
        model = pickle.load(sys.stdin.buffer)
        import locbook, sklearn.base
        assert type(model) is locbook.LocalMeanRegressor is type(sklearn.base.clone(model))
        print(json.dumps(model.predict([[0.25], [0.5]]).tolist()))"""
    assert fresh(code, input=pickle.dumps(model)) == model.predict([[0.25], [0.5]]).tolist()


def modules_of_first_calls():
    """Whose functions the first calls of a fresh process compile."""
    code = """if True:
        import json, numpy as np, locbook as lb
        from numba.core import event
        x = np.random.default_rng(0).normal(size=(5000, 2))
        with event.install_recorder("numba:compile") as recorder:
            lb.local_mean(x, x, x[:, 0], lb.gaussian(0.05))
            lb.local_mean(x[:1000], x, x[:, 0], lb.tricube(0.1) * lb.laplace(1.0))
        modules = {e.data["dispatcher"].py_func.__module__ for _, e in recorder.buffer}
        print(json.dumps(sorted(modules)))"""
    with tempfile.TemporaryDirectory() as folder:
        return fresh(code, env={**os.environ, "NUMBA_CACHE_DIR": folder})


@cache
def first_calls():
    return background.submit(modules_of_first_calls)


@background.waits_for(first_calls)
def test_no_first_call_compiles_strings():
    """Numba's check of ``a[i:j] = b`` builds a message, and with it seconds of string functions."""
    modules = first_calls().result()
    assert "locbook.engine.pruning" in modules
    assert not [name for name in modules if "unicode" in name]
