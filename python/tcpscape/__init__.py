"""tcpscape: a laboratory for TCP congestion control on impaired paths.

>>> import tcpscape
>>> frame = tcpscape.run("starlink-baseline", cca=["cubic", "bbr"], seeds=range(5))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tcpscape.api import run, trials
    from tcpscape.errors import TcpscapeError
    from tcpscape.scenario.files import load
    from tcpscape.scenario.path import Link, Netem, TracedLink
    from tcpscape.scenario.scenario import App, Flow, Kernel, Read, Scenario
    from tcpscape.trial import FlowResult, Trial

_HOMES = {
    "run": "api", "trials": "api", "load": "scenario.files", "Scenario": "scenario.scenario", "Flow": "scenario.scenario", "App": "scenario.scenario",
    "Read": "scenario.scenario", "Kernel": "scenario.scenario", "Netem": "scenario.path", "Link": "scenario.path", "TracedLink": "scenario.path",
    "Trial": "trial", "FlowResult": "trial", "TcpscapeError": "errors",
}

__all__ = [
    "App", "Flow", "FlowResult", "Kernel", "Link", "Netem", "Read", "Scenario", "TcpscapeError", "TracedLink", "Trial", "__version__",
    "load", "run", "trials",
]


def __getattr__(name: str) -> Any:
    """Loads a noun when it is first asked for, so that the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tcpscape' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tcpscape.{_HOMES[name]}"), name)
