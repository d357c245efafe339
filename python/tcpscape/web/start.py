"""`GET /api/start`: what the page needs to begin.

- `version`, `opened` (what the command line named), `state`: the standard state.
- `controls`: `name`, `colour`, `dash` (0 solid, 1 dashed, 2 dotted, 3 mixed), `marker`, `about`, `source`, `parameters` (`name`, `about`, `default`,
  `values`: a range as text).
- `fields`: of each field of the path that has a slider, `{label, kind, unit, standard, low, high, log, zero, zero_text}`. `kind` is `time`,
  `rate`, `percent`, `size`, `buffer`, `byterate` or `number`; `low` and `high` are texts of the slider's ends, `standard` what an empty text stands
  for; `zero` is whether the slider's left end is the empty text, which `zero_text` calls by its name.
- `choices`: of each field with a choice, `[{value, title}]`.
- `axes`: `[{axis, title, quantity, log}]` of curves and maps. `metrics`: `[{name, title, unit, better, about}]`, named as in the blocks of a curve.
- `presets`: see :mod:`tcpscape.web.presets`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from tcpscape import engines, metrics
from tcpscape.controls import palette
from tcpscape.engines.model import CcaEntry, Model
from tcpscape.web import axes, presets
from tcpscape.web.questions.runs import METRICS, SPREAD
from tcpscape.web.routes import Get
from tcpscape.web.state import State

if TYPE_CHECKING:
    from tcpscape.web.opened import Opened


def document(opened: Opened | None = None) -> dict[str, Any]:
    """The document of `/api/start`; `opened`: what the command line named."""
    model = Model()
    return {
        "version": engines.make("model").version,
        "opened": opened.document() if opened else None,
        "state": State().model_dump(mode="json"),
        "controls": _controls(model.registry()),
        "fields": {name: slider.document() for name, slider in FIELDS.items()},
        "choices": _choices(model),
        "axes": [{"axis": axis.name, "title": axis.title, "quantity": axis.quantity, "log": axis.log} for axis in axes.AXES.values()],
        "metrics": _metrics(),
        "presets": presets.document(),
    }


def _controls(entries: list[CcaEntry]) -> list[dict[str, Any]]:
    """The congestion controls, those with a fixed look first."""
    by_name = {entry.name: entry for entry in entries}
    order = [*(name for name in palette.KNOWN if name in by_name), *(name for name in by_name if name not in palette.KNOWN)]
    return [
        {
            "name": name, "colour": look.colour, "dash": palette.DASHES.index(look.dash), "marker": look.marker,
            "about": by_name[name].about, "source": by_name[name].source,
            "parameters": [{"name": p.name, "about": p.about, "default": p.default, "values": p.range} for p in by_name[name].params],
        }
        for name, look in palette.looks(order).items()
    ]  # fmt: skip


def _choices(model: Model) -> dict[str, list[dict[str, str]]]:
    """The fields that have a choice."""
    queues = [{"value": name, "title": QUEUES.get(name, name)} for name, _ in model.queues() if name not in NO_QUEUES]
    kernels = [{"value": name, "title": f"Linux {name}"} for name in model.kernels()]
    return {**CHOICES, "queue": [{"value": "", "title": "a FIFO in bytes"}, *queues], "kernel": [{"value": "", "title": "Linux 6.1"}, *kernels]}


def _metrics() -> list[dict[str, Any]]:
    """The metrics of curves."""
    rows: list[dict[str, Any]] = []
    for name, (own, _) in METRICS.items():
        metric = metrics.find(own)
        rows.append({"name": name, "title": TITLES[name], "unit": UNITS[name], "better": metric.better, "about": metric.about})
    spread = {"name": SPREAD, "title": TITLES[SPREAD], "unit": "1", "better": "less", "about": "goodput, standard deviation / mean of the trials"}
    return [*rows, spread]


def _titled(**titles: str) -> list[dict[str, str]]:
    return [{"value": value.strip("_"), "title": title} for value, title in titles.items()]


@dataclass(frozen=True)
class Slider:
    """A field with a slider; values are texts as a user writes them."""

    label: str
    kind: Literal["time", "rate", "percent", "size", "buffer", "byterate", "number"]
    unit: str
    low: str
    high: str
    standard: str = ""
    """What an empty text stands for; empty where that is no value."""
    zero_text: str = ""
    """What the slider's left end is called where it is the empty text."""
    log: bool = True

    def document(self) -> dict[str, Any]:
        """As `/api/start` has it."""
        return {**asdict(self), "zero": bool(self.zero_text)}


TITLES = {
    "goodput": "goodput", "rtt": "RTT", "delay": "added RTT (95th percentile)", "retransmissions": "retransmissions", "cv": "spread of runs (CV)",
}  # fmt: skip
"""Metric of a curve → its title."""
UNITS = {"goodput": "bit/s", "rtt": "s", "delay": "s", "retransmissions": "1"}
"""Metric of a curve → the unit of its column."""
FIELDS = {
    "rtt": Slider("RTT", "time", "ms", "1ms", "1s"),
    "jitter": Slider("Jitter", "time", "ms", "0.1ms", "200ms", "0ms", "no jitter"),
    "loss": Slider("Loss", "percent", "%", "0.01%", "20%", "0%", "no loss"),
    "loss_burst": Slider("Packets lost in a row", "number", "", "1", "50", "1", "each by itself"),
    "rate": Slider("Rate", "rate", "Mbit/s", "500kbit", "1gbit", "", "no limit"),
    "buffer": Slider("Buffer", "buffer", "BDP", "0.1bdp", "20bdp", "1bdp"),
    "rcvbuf": Slider("Receive buffer", "size", "KiB", "16KiB", "16MiB", "", "autotuned"),
    "app": Slider("Application", "byterate", "MB/s", "100kB/s", "100MB/s", "", "as fast as it can"),
    "duration": Slider("Duration", "time", "s", "1s", "60s", "10s"),
    "limit": Slider("netem's limit", "number", "packets", "10", "100000", "100000"),
}  # fmt: skip
"""The fields that have a slider."""
DIRECTIONS = _titled(_="both directions", forward="the data", reverse="the ACKs")
NODES = _titled(_="a router (each packet by itself)", sender="the sending host (super-packets as one)")
CHOICES = {
    "distribution": _titled(_="normal", uniform="uniform", pareto="pareto", paretonormal="paretonormal"),
    "order": _titled(_="reorders packets", keep="keeps the order", clamp="late packets hold up those behind"),
    "jitter_on": DIRECTIONS, "loss_on": DIRECTIONS, "forward_at": NODES, "reverse_at": NODES,
}  # fmt: skip
"""Fields with a fixed choice; an empty value is the standard."""
QUEUES = {
    "fifo": "FIFO in bytes", "pfifo": "FIFO in packets", "bfifo": "FIFO in bytes (tc's bfifo)", "red": "RED: random early detection",
    "codel": "CoDel: drops by the time that packets wait", "fq_codel": "fq_codel: a CoDel queue for each flow",
    "pie": "PIE: a controller of the delay", "fq_pie": "fq_pie: a PIE queue for each flow", "cake": "CAKE: shaper, fair queues and CoDel",
    "dualpi2": "DualPI2: L4S beside classic traffic", "fq": "fq: fair queues", "pfifo_head_drop": "FIFO that drops the oldest",
    "sfq": "SFQ: stochastic fair queues", "choke": "CHOKe: drops what matches a random packet",
}  # fmt: skip
"""Queue of a bottleneck → its title."""
NO_QUEUES = ("netem", "tbf", "htb", "jitter")
"""Disciplines that delay or shape: no queue of a bottleneck."""
ROUTES = (Get("start", lambda pages: document(pages.opened)),)
