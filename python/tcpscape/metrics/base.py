"""The type of a metric, and the restriction of a trial to some of its flows, or to one probe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from tcpscape.controls.spelling import name_of
from tcpscape.trial import Capture, Trial

if TYPE_CHECKING:
    import polars as pl

UNKNOWN = float("nan")
"""The value of a metric where the source of a trial cannot see it."""

Better = Literal["more", "less", "neither"]
"""Which of two values of a metric is preferable; `neither` where a metric describes and does not judge."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a trial, and everything that other modules have to know about it: no module compares the names of metrics.

    A metric is computed from one trial. Over several trials a :class:`tcpscape.stats.Statistic` (mean, median, cv, …) turns its values into
    an estimate; the interval and the standard error belong to the statistic, whose unit is `statistic.unit_of(metric.unit)`.
    """

    name: str
    unit: str
    """`1` is a plain number: a fraction, a ratio or a count of events."""
    about: str
    """What the metric is, as one phrase for lists and captions."""
    of: Callable[[Trial], float]
    """Computes the metric; :data:`UNKNOWN` where the source of the trial cannot see it."""
    better: Better
    """Whether more or less of it is preferable: what ranks, verdicts and colours go by."""
    needs: Capture = field(default_factory=Capture)
    """What has to be kept of a trial for it."""
    of_flows: bool = True
    """Whether it can be restricted to some flows (`goodput:bbr`, `goodput:up`)."""
    of_probes: bool = False
    """Whether it is one of probes, which can be restricted to one of them by its name (`latency_p95:voice`)."""
    least_flows: int = 1
    """Fewest flows of a trial for which it is informative: 2 for a metric of how flows share, which is 1 for any single flow."""
    reads: tuple[str, ...] = ()
    """Fields of a flow's result that hold a number in every trial, although a recording from another program may not contain it. A reader of
    such recordings refuses the metric where one of these fields was missing."""

    @property
    def printed_unit(self) -> str:
        """The unit as printed behind a value; empty for a plain number."""
        return "" if self.unit == "1" else self.unit

    def within(self, which: str) -> Metric:
        """The same metric of some flows (`cubic`, `cubic:hystart=0`, `up`, `group0`: see :func:`under`), or of the probe of this name."""
        part = only_probe if self.of_probes else only
        return replace(
            self, name=f"{self.name}:{which}", about=f"{self.about}, {which} alone", of=lambda trial: self.of(part(trial, which)), least_flows=1
        )


def under(trial: Trial, which: str) -> list[int]:
    """Numbers of some flows: those under a congestion control (its label, or a name that stands for all its settings), `up`, `down`, or `group0`.

    `up` and `down` are those whose data travel that way, `group0` those of the first entry of the scenario's flows.
    """
    return [i for i, flow in enumerate(trial.flows) if which in (flow.cca, name_of(flow.cca), flow.direction, f"group{flow.group}")]


def only_probe(trial: Trial, name: str) -> Trial:
    """The trial with the probes of this name alone."""
    return replace(trial, probes=tuple(probe for probe in trial.probes if probe.name == name))


def only(trial: Trial, which: str) -> Trial:
    """The trial with some flows alone (see :func:`under`), numbered anew from 0.

    A congestion control that no flow has gives a trial without flows; queues stay those of all flows.
    """
    numbers = under(trial, which)
    flows = tuple(trial.flows[i] for i in numbers)
    return replace(trial, flows=flows, samples=_rows(trial.samples, numbers), packets=_rows(trial.packets, numbers))


def _rows(frame: pl.DataFrame | None, numbers: list[int]) -> pl.DataFrame | None:
    """The rows of the flows with these numbers, numbered anew from 0."""
    if frame is None:
        return None
    import polars as pl

    rows = frame.filter(pl.col("flow").is_in(numbers))
    new = {old: i for i, old in enumerate(numbers)}
    return rows.with_columns(pl.col("flow").replace_strict(new, return_dtype=frame.schema["flow"])) if numbers else rows
