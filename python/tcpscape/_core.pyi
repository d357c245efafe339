"""The extension module, built from crates/py. No logic here: conversions and the GIL released around heavy calls."""

from collections.abc import Callable, Mapping
from typing import Any

Controls = Mapping[str, Callable[[int], Any]]
"""Congestion controls in Python: name → what makes one, from the flow's seed."""

class Plan:
    """What to simulate, without the seed: parsed and checked once, shared by threads.

    With `controls` a trial holds the GIL; HookError for what a hook raised.
    """

    def __init__(self, json: str, controls: Controls | None = None) -> None:
        """ValueError for a plan that makes no sense."""

    def run(self, seed: int) -> dict[str, Any]:
        """Runs one trial; columns are `(dtype, buffer)`."""

    def write_pcapng(self, path: str, seed: int) -> None:
        """Runs one trial and writes its packets as pcapng; the plan must record them."""

class HookError(RuntimeError):
    """A hook raised something, its `__cause__`; arguments are the control's name and the hook's."""

class Sample:
    """What a hook reads: :class:`tcpscape.controls.hooks.Sample`."""

class Window:
    """What a hook writes: :class:`tcpscape.controls.hooks.Window`."""

def version() -> str:
    """Version of the crates."""

def model_version() -> str:
    """A tag that changes whenever the model's results may change."""

def parse_tc(words: str) -> str:
    """A queue with its children, as JSON, from tc's words; ValueError names the wrong word in one line."""

def to_tc(json: str) -> str:
    """Canonical tc words from the JSON of a queue."""

def cca_registry() -> list[tuple[str, str, str, list[tuple[str, str, int, int, int]]]]:
    """Congestion controls: name, about, source, parameters (name, about, default, smallest, largest)."""

def qdisc_registry() -> list[tuple[str, str]]:
    """Queues: name, about."""

def kernel_profile(name: str) -> str:
    """A kernel profile as JSON; ValueError for an unknown name."""

def kernel_profiles() -> list[str]:
    """Names of the kernel profiles."""

def bench_floor(events: int) -> float:
    """CPU seconds that the event queue alone takes for `events` events: the floor of any simulation."""
