"""The special functions of SciPy that are used here, without the rest of their package.

`scipy.special` makes its functions ready for other array libraries, for which it loads every part of NumPy (f2py, testing, ma): nine tenths of the
time and of the memory that importing it takes. The functions themselves are in a compiled module, which needs none of that. Until something else
of the package is asked for, it is therefore empty.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module, util
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import bdtr, bdtrc, betainc, betaincinv, chdtri, erf, gammaincinv, log_ndtr, ndtr, stdtr, stdtrit, xlogy

__all__ = ["bdtr", "bdtrc", "betainc", "betaincinv", "chdtri", "erf", "gammaincinv", "log_ndtr", "ndtr", "stdtr", "stdtrit", "xlogy"]
PACKAGE, COMPILED = "scipy.special", "scipy.special._ufuncs"


def _postpone(name: str) -> None:
    """Imports a package without running it; that happens when an attribute is asked for that none of its imported modules has given it."""
    spec = util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    module, loader = util.module_from_spec(spec), spec.loader
    running, state = threading.RLock(), {"is_begun": False}

    def attribute(asked: str) -> Any:
        with running:  # another thread waits until the package is whole; the package itself may ask for what it does not have yet
            if not state["is_begun"]:
                state["is_begun"] = True
                loader.exec_module(module)
            if asked in module.__dict__:
                return module.__dict__[asked]
        raise AttributeError(f"module {name!r} has no attribute {asked!r}")

    module.__getattr__ = attribute  # type: ignore[method-assign]
    parent, _, last = name.rpartition(".")
    sys.modules[name] = module
    setattr(sys.modules[parent], last, module)


def _functions() -> ModuleType:
    """The module that has the functions."""
    try:
        if PACKAGE not in sys.modules:
            _postpone(PACKAGE)
        return import_module(COMPILED)
    except ImportError:  # a SciPy that keeps them elsewhere
        return import_module(PACKAGE)


globals().update({name: getattr(_functions(), name) for name in __all__})
