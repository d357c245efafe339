"""The extension module, built from crates/py. No logic here: conversions and the GIL released around heavy calls."""

from collections.abc import Callable, Mapping
from typing import Any

Controls = Mapping[str, Callable[[int], Any]]
"""Congestion controls in Python: name → what makes one, from the flow's seed."""

class HookError(RuntimeError):
    """A hook raised something, its `__cause__`; arguments are the control's name and the hook's."""

class Sample:
    """What a hook reads: :class:`tcpscape.hooks.Sample`."""

class Window:
    """What a hook writes: :class:`tcpscape.hooks.Window`."""

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

def run(plan_json: str, seeds: list[int], threads: int, controls: Controls | None = None) -> list[dict[str, Any]]:
    """Runs one trial for each seed, in order; columns are `(dtype, buffer)`. ValueError for a plan that makes no sense.

    With `controls`, one trial after the other, with the GIL; HookError for what a hook raised.
    """

def bench_floor(events: int) -> float:
    """CPU seconds that the event queue alone takes for `events` events: the floor of any simulation."""

def write_pcapng(path: str, plan_json: str, seed: int, controls: Controls | None = None) -> None:
    """Runs one trial and writes its packets as pcapng."""
