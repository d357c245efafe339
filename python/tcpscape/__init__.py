"""tcpscape: a laboratory for TCP congestion control on impaired paths.

>>> import tcpscape
>>> outcome = tcpscape.run("starlink-baseline", cca=["cubic", "bbr"], seeds=5)  # doctest: +SKIP

:func:`run` a scenario, :func:`sweep` a path along axes, :func:`advise` which congestion control to use, find the :func:`cliff` and the
:func:`bound` on latency spikes, :func:`diagnose` a capture or another measurement, :func:`emulate` a path for a program, :func:`compare` and
:func:`plot` results, :func:`load` a scenario or a result directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tcpscape.api.questions import advise, bound, cliff, diagnose, emulate
    from tcpscape.api.trials import compare, load, plot, run, sweep
    from tcpscape.campaign.campaign import Campaign
    from tcpscape.campaign.outcome import Cell, Outcome
    from tcpscape.campaign.record import Record
    from tcpscape.controls.hooks import CaEvent, CaState, Control, Sample, Window
    from tcpscape.errors import TcpscapeError
    from tcpscape.scenario.flows import App, Flow, Probe, Read, Transfers
    from tcpscape.scenario.path import Link, Netem, TracedLink
    from tcpscape.scenario.scenario import Kernel, Scenario
    from tcpscape.scenario.topology import Access, ChainLink
    from tcpscape.stats import Estimate
    from tcpscape.trial import FlowResult, Trial

_MODULES = {
    "api.questions": ("advise", "advise_calls", "bound", "cliff", "diagnose", "emulate"),
    "api.trials": ("compare", "load", "plot", "run", "sweep"),
    "campaign.campaign": ("Campaign",),
    "campaign.outcome": ("Cell", "Outcome"),
    "campaign.record": ("Record",),
    "controls.hooks": ("CaEvent", "CaState", "Control", "Sample", "Window"),
    "errors": ("TcpscapeError",),
    "scenario.flows": ("App", "Flow", "Probe", "Read", "Transfers"),
    "scenario.path": ("Link", "Netem", "TracedLink"),
    "scenario.scenario": ("Kernel", "Scenario"),
    "scenario.topology": ("Access", "ChainLink"),
    "stats": ("Estimate",),
    "trial": ("FlowResult", "Trial"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Access",
    "App",
    "CaEvent",
    "CaState",
    "Campaign",
    "Cell",
    "ChainLink",
    "Control",
    "Estimate",
    "Flow",
    "FlowResult",
    "Kernel",
    "Link",
    "Netem",
    "Outcome",
    "Probe",
    "Read",
    "Record",
    "Sample",
    "Scenario",
    "TcpscapeError",
    "TracedLink",
    "Transfers",
    "Trial",
    "Window",
    "__version__",
    "advise",
    "advise_calls",
    "bound",
    "cliff",
    "compare",
    "diagnose",
    "emulate",
    "load",
    "plot",
    "run",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used, so that the command line starts quickly."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tcpscape' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tcpscape.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
