"""Public names that are imported when they are first used: ``import locbook`` stays free of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy(
    namespace: dict[str, Any], homes: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports some of its names at their first use (PEP 562).

    Parameters
    ----------
    namespace : dict
        The package's ``globals()``; a name is entered when it has been imported.
    homes : dict
        Name -> module that defines it, such as ``".local_mean_regressor"``. Where both are called alike, as
        ``datasets`` and ``".datasets"``, the module itself is meant.

    Returns
    -------
    (callable, callable)
        To be called ``__getattr__``, which raises AttributeError for any other name, and ``__dir__``.
    """
    package = namespace["__name__"]

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(homes[name], package)
        namespace[name] = module if homes[name] == f".{name}" else getattr(module, name)
        return namespace[name]

    return find, lambda: sorted({*namespace, *homes})
