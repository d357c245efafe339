"""The worst cell for a congestion control: searched over paths, schedules and cross traffic, then made as simple as it may be.

A cell is a set of ingredients (:data:`INGREDIENTS`), each of which may be absent. SciPy's differential evolution looks for the cell with the greatest
badness (:class:`Goal`), several times from random beginnings. Each result is reduced: an ingredient is taken away and numbers are rounded as long as
most of the badness stays. What it then still needs is its cause; the next search does without it, so that several causes are found instead of one
several times. Fresh seeds confirm. Everything follows from the seed, unless the time runs out.

Sources of what is known to go wrong: Hock et al., ICNP 2017 (BBR's losses in shallow buffers); Arun et al., SIGCOMM 2022 (starvation of delay-based
controls by jitter of one of two flows); Kuzmanovic and Knightly, SIGCOMM 2003 (pulses against the retransmission timeout). Nothing here names them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tcpscape import stats
from tcpscape.engines import Engine
from tcpscape.errors import TcpscapeError
from tcpscape.metrics import flows as of_flows
from tcpscape.scenario.fields import validate
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import Trial

GoalName = Literal["starve", "stall", "loss", "delay"]
GOALS: tuple[GoalName, ...] = get_args(GoalName)
"""What may be searched."""
ABSENT = 0.45
"""Part of an optional ingredient's range in which it is absent, so that cells with few of them are found too."""
KEPT = 0.8
"""Share of a cell's badness that a simpler one must keep."""
RESTARTS = 4
"""Searches, each without the causes that were found before."""
POPULATION = 12
"""Cells of a generation."""
DURATION_S = 10.0
"""Length of a trial."""
FRESH_SEEDS = 10
"""Trials that confirm a cell, with seeds that the search has not seen."""
FRAME = 1514
"""Bytes of a full packet on the link."""
PULSE_SIZE, PULSE_RATE, FIRST_PULSE_S = 1472, 3, 0.5
"""Bytes of a pulse's packet, its rate in multiples of the link's, and when the first begins, s."""
PAYLOAD = 1448 / 1514
"""Share of a link's rate that goodput can have."""
FIRST_FRESH = 1_000
"""First of those seeds, above the one of the search."""


@dataclass(frozen=True)
class Ingredient:
    """A quantity of a cell."""

    name: str
    low: float
    high: float
    plain: float
    """The value that a simple path has; of an optional one, that of its absence."""
    text: str
    """How it is shown: `{:g} ms of …`."""
    optional: bool = True
    goals: tuple[GoalName, ...] = GOALS
    """Goals that it is of use for: loss that the path causes is none that the control causes."""

    def value(self, x: float) -> float:
        """Its value for a coordinate from 0 to 1, with equal ratios."""
        if self.optional:
            if x <= ABSENT:
                return self.plain
            x = (x - ABSENT) / (1 - ABSENT)
        return float(self.low * (self.high / self.low) ** x)


INGREDIENTS = (
    Ingredient("rate", 2, 100, 20, "{:g} Mbit/s", optional=False),
    Ingredient("rtt", 5, 200, 40, "{:g} ms", optional=False),
    Ingredient("buffer", 0.05, 8, 1, "a buffer of {:g} BDP", optional=False),
    Ingredient("loss", 0.1, 3, 0, "{:g} % random loss", goals=("stall", "delay", "starve")),
    Ingredient("reordering", 0.02, 0.4, 0, "reordering by a jitter of {:g} RTT", goals=("stall", "starve")),
    Ingredient("jitter", 0.05, 2.0, 0, "jitter of {:g} RTT, in order, on the ACKs of one flow", goals=("starve", "stall")),
    Ingredient("other_rtt", 2, 10, 1, "an RTT {:g} times as long for the other flow", goals=("starve",)),
    Ingredient("flows", 2, 8, 1, "{:g} flows", goals=("loss", "delay")),
    Ingredient("pulse", 20, 250, 0, "pulses of UDP, {:g} ms at three times the link's rate", goals=("stall", "starve")),
    Ingredient("period", 0.2, 2.0, 1.0, "one every {:g} s", optional=False, goals=("stall", "starve")),
    Ingredient("drop", 2, 10, 1, "the rate falling to 1/{:g} half-way", goals=("loss", "delay")),
)
"""What a cell is made of."""
Values = Mapping[str, float]
"""Ingredient → its value."""


@dataclass(frozen=True)
class Goal:
    """What is searched: a number of a trial that is greater where it is worse."""

    name: GoalName
    about: str
    """What the number is, for sentences: `of the goodput is lost`."""
    of: Callable[[Trial, Values], float]
    """The badness of a trial; of `starve`, `stall` and `loss` from 0 to 1, of `delay` in RTTs of the path."""
    shows: float
    """From here on it is a finding."""


def _starvation(trial: Trial, _: Values) -> float:
    rates = [flow.goodput_mbps for flow in trial.flows]
    return 1 - min(rates) * len(rates) / total if (total := sum(rates)) > 0 else 0.0


def _stall(trial: Trial, cell: Values) -> float:
    pulses = sum(probe.received for probe in trial.probes) * FRAME * 8e-6 / trial.duration
    free = (cell["rate"] - pulses) * PAYLOAD
    return max(0.0, 1 - sum(flow.goodput_mbps for flow in trial.flows) / free) if free > cell["rate"] / 2 else 0.0


def _loss(trial: Trial, _: Values) -> float:
    rate = of_flows.retransmit_rate(trial)
    return 0.0 if np.isnan(rate) else float(rate)


def _delay(trial: Trial, cell: Values) -> float:
    added = of_flows.added_rtt(trial)
    return 0.0 if np.isnan(added) else float(added) / cell["rtt"]


KINDS: Mapping[GoalName, Goal] = {
    "starve": Goal("starve", "less than its fair share for one of two flows", _starvation, 0.75),
    "stall": Goal("stall", "of the free capacity left unused", _stall, 0.6),
    "loss": Goal("loss", "of the segments sent again", _loss, 0.05),
    "delay": Goal("delay", "RTTs of the path added (95th percentile)", _delay, 3.0),
}


REFERENCES: Mapping[GoalName, tuple[str, ...]] = {"loss": ("cubic", "reno"), "delay": ("cubic", "reno")}
"""Goal → the control that is compared with where none is named, and the one for that control itself: everybody loses something, and delays."""


def reference(goal: GoalName, control: str) -> str | None:
    """The control that a search compares with where none is named; None: the goal stands for itself."""
    return next((name for name in REFERENCES.get(goal, ()) if name != control), None)


class Proof(NamedTuple):
    """What a kernel in virtual time shows on a cell."""

    kernel: str = ""
    """Its name and release."""
    value: float | None = None
    """Badness of the one trial there; None where none ran."""
    shows: bool = False
    """Whether it exceeds what the other control shows there by most of what it does in the model."""
    reason: str = ""
    """Why none ran."""


class Finding(NamedTuple):
    """A cell, as simple as it may be."""

    cell: Values
    cause: tuple[str, ...]
    """Optional ingredients that it needs, or `buffer` where its buffer is the only thing unusual; empty where it is a matter of rate and RTT."""
    badness: Estimate
    """On fresh seeds."""
    against: Estimate | None
    """That of the other control on the same cell and seeds; None where there is none."""
    scenario: Scenario
    proof: Proof | None = None
    """What a kernel in virtual time shows, where it was asked."""

    @property
    def excess(self) -> float:
        """The badness, above that of the other control where there is one."""
        return self.badness.value - (self.against.value if self.against else 0.0)


@dataclass
class Search:
    """A search and what it has found so far."""

    engine: Engine
    control: str
    goal: Goal
    against: str | None = None
    seed: int = 1
    trials: int = 300
    """Most trials of the searches; reducing and confirming take some more."""
    seconds: float = 60.0
    """Longest time."""
    jobs: int = 1
    progress: Callable[[int, int], None] | None = None
    findings: list[Finding] = field(default_factory=list)
    worst: tuple[float, Values | None] = (0.0, None)
    """The worst cell of the search that goes on, and its badness."""
    could_run: bool = False
    """Whether any cell could be simulated."""
    was_cut: bool = False
    """The time ran out, so that a faster machine may find more."""
    done: int = 0
    """Trials that have run."""
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Searches, reduces and confirms; `findings` holds what there is whenever it ends. :raises TcpscapeError: nothing can run."""
        for control in filter(None, (self.control, self.against)):
            self.engine.check(self.scenario(control, {i.name: i.plain for i in INGREDIENTS}))
        without: set[str] = set()
        for restart in range(RESTARTS):
            cell = self._search(restart, without)
            if cell is None:
                break
            if self._is_over and self.findings:
                self.keep()
                break
            if self.findings and self.worst[0] < self.goal.shows:
                continue  # another beginning may do better
            cell = self._reduced(cell)
            cause = self._cause(cell)
            self.findings.append(self._confirmed(cell, cause))
            self.worst = (0.0, None)
            without |= set(cause)
            if self._is_over:
                break
        self.findings.sort(key=lambda f: -f.excess)

    @property
    def _is_over(self) -> bool:
        over = time.monotonic() - self._began > self.seconds
        self.was_cut |= over
        return over

    # ---- cells ----

    def _ingredients(self, without: set[str]) -> list[Ingredient]:
        return [i for i in INGREDIENTS if self.goal.name in i.goals and i.name not in without]

    def scenario(self, control: str, cell: Values) -> Scenario:
        """The path and the flows of a cell; `control`: of the flows that are tested."""
        half = cell["rtt"] / 2
        spread = cell["reordering"] * cell["rtt"] / 2
        loss = f" loss {cell['loss']:g}%" if cell["loss"] else ""
        # Paced flows whose packets all take another time: a reordering that netem makes.
        jitter = f" {spread:.3f}ms distribution normal" if spread else ""
        fields: dict[str, Any] = {
            "name": "worst",
            "forward": f"netem delay {half:.3f}ms{jitter}{loss} limit 100000",
            "bottleneck": {"rate": f"{cell['rate']:g}mbit", "buffer": f"{cell['buffer']:g}bdp"},
            "reverse": f"netem delay {half:.3f}ms limit 100000",
            "flows": list(self._flows(control, cell)),
            "duration": f"{DURATION_S:g}s",
        }
        if cell["pulse"]:
            fields["probes"] = list(_pulses(cell))
        if cell["drop"] > 1:
            after = {"where": "bottleneck", "at": f"{DURATION_S / 2:g}s", "set": {"rate": f"{cell['rate'] / cell['drop']:.3f}mbit"}}
            fields["changes"] = [after]
        scenario: Scenario = validate(Scenario, fields, "stress")
        return scenario

    def _flows(self, control: str, cell: Values) -> Iterator[dict[str, Any]]:
        access = {}
        if cell["jitter"]:
            spread = cell["jitter"] * cell["rtt"]
            access = {"access": {"acks_after": [{"delay": f"{spread / 2:.3f}ms", "jitter": f"{spread / 4:.3f}ms", "order": "keep"}]}}
        if self.goal.name == "starve":
            other = {"rtt": f"{cell['rtt'] * cell['other_rtt']:.3f}ms"} if cell["other_rtt"] > 1 else {}
            yield {"cca": control, **access}
            yield {"cca": self.against or control, "start": "50ms", **other}
        else:
            yield {"cca": control, "count": round(cell["flows"]), **access}

    def _badness(self, cell: Values) -> float:
        return self._of([cell])[0]

    def _of(self, cells: Sequence[Values]) -> list[float]:
        """How bad cells are, each in one trial with the seed of the search; with another control, by how much worse than with that one."""
        controls = [self.control, *([self.against] if self.against and self.goal.name != "starve" else [])]

        def one(cell: Values) -> float:
            try:
                own, *other = (self.goal.of(self.engine.run(self.scenario(c, cell), [self.seed])[0], cell) for c in controls)
            except TcpscapeError:
                return math.nan  # a cell that cannot be simulated is none
            return own - sum(other)

        with ThreadPoolExecutor(max(1, self.jobs)) as pool:
            scores = list(pool.map(one, cells))
        self.could_run |= not all(map(math.isnan, scores))
        scores = [0.0 if math.isnan(score) else score for score in scores]
        self.done += len(cells) * len(controls)
        if self.progress:
            self.progress(min(self.done, self._total), self._total)
        return scores

    @property
    def _total(self) -> int:
        """About how many trials the whole takes."""
        return self.trials + RESTARTS * (len(INGREDIENTS) * 2 + 2 * FRESH_SEEDS)

    # ---- searching, reducing, confirming ----

    def _search(self, restart: int, without: set[str]) -> Values | None:
        """The worst cell that one search finds without these causes."""
        from scipy.optimize import Bounds, OptimizeResult, differential_evolution

        used = self._ingredients(without)
        self.worst = (0.0, None)

        def cell_of(x: np.ndarray) -> dict[str, float]:
            plain = {i.name: i.plain for i in INGREDIENTS}
            return plain | {i.name: i.value(float(c)) for i, c in zip(used, x, strict=True)}

        def scores(population: np.ndarray, /) -> np.ndarray:
            if self._is_over and self.worst[1] is not None:
                return np.zeros(population.shape[1])
            cells = [cell_of(x) for x in population.T]
            values = self._of(cells)
            for value, cell in zip(values, cells, strict=True):
                if value > self.worst[0]:
                    self.worst = (value, cell)
            return -np.asarray(values)

        def generation(intermediate_result: OptimizeResult) -> None:  # the name is SciPy's
            if self._is_over:
                raise StopIteration

        rng = np.random.default_rng([self.seed, restart])
        start = rng.uniform(size=(POPULATION, len(used)))
        generations = max(1, self.trials // RESTARTS // POPULATION - 1)
        differential_evolution(
            scores,  # type: ignore[arg-type]  # the stubs do not know what `vectorized` hands over
            Bounds(np.zeros(len(used)), np.ones(len(used))),
            init=start,
            maxiter=generations,
            tol=0,
            polish=False,
            updating="deferred",
            vectorized=True,
            rng=rng,
            callback=generation,
        )
        return self.worst[1]

    def keep(self) -> None:
        """After an interruption: the worst cell so far, as it is, where it is worse than what was found before."""
        value, cell = self.worst
        if cell is not None and all(value > finding.excess for finding in self.findings):
            self.findings.append(self._confirmed(cell, self._cause(cell)))
        self.findings.sort(key=lambda f: -f.excess)

    def _reduced(self, cell: Values) -> Values:
        """The cell without what it can do without, its numbers those of a plain path, or rounded, wherever most of the badness stays."""
        least = KEPT * self._badness(cell)
        for i in self._ingredients(set()):
            candidates = [{**cell, i.name: v} for v in dict.fromkeys((i.plain, *(_rounded(cell[i.name], digits) for digits in (1, 2, 3))))]
            cell = next((c for c, score in zip(candidates[:-1], self._of(candidates[:-1]), strict=True) if score >= least), candidates[-1])
        return cell

    def _cause(self, cell: Values) -> tuple[str, ...]:
        """What is left that a plain path does not have."""
        causes = tuple(i.name for i in self._ingredients(set()) if i.optional and cell[i.name] != i.plain)
        return causes or (("buffer",) if cell["buffer"] != 1 else ())

    def _confirmed(self, cell: Values, cause: tuple[str, ...]) -> Finding:
        scenario = self.scenario(self.control, cell)
        badness, against = self._fresh(scenario, cell), None
        if self.against and self.goal.name != "starve":
            against = self._fresh(self.scenario(self.against, cell), cell)
        return Finding(cell, cause, badness, against, scenario)

    def _fresh(self, scenario: Scenario, cell: Values) -> Estimate:
        trials = self.engine.run(scenario, range(self.seed + FIRST_FRESH, self.seed + FIRST_FRESH + FRESH_SEEDS), threads=self.jobs)
        self.done += FRESH_SEEDS
        return stats.median([self.goal.of(trial, cell) for trial in trials])


def _pulses(cell: Values) -> Iterator[dict[str, Any]]:
    """Bursts of UDP that nobody sends again, at some times the link's rate, as probes one after the other."""
    interval, period = FRAME * 8e3 / (cell["rate"] * PULSE_RATE), max(cell["period"], 2 * cell["pulse"] / 1e3)
    for n in range(int((DURATION_S - FIRST_PULSE_S) / period)):
        start = FIRST_PULSE_S + n * period
        times = {"interval": f"{interval:.0f}ns", "start": f"{start:.3f}s", "stop": f"{start + cell['pulse'] / 1e3:.3f}s"}
        yield {"name": f"pulse{n}", "kind": "udp", "size": PULSE_SIZE, **times}


def prove(search: Search, finding: Finding, engine: Engine) -> Finding:
    """The finding with what a real kernel in virtual time shows on its cell, one trial on a fresh seed."""
    try:
        if reason := engine.unavailable():
            return finding._replace(proof=Proof(reason=reason))
        scenarios = [finding.scenario, *([search.scenario(search.against, finding.cell)] if search.against and finding.against else [])]
        for scenario in scenarios:
            engine.check(scenario)
        trial, *others = (engine.run(scenario, [search.seed + FIRST_FRESH])[0] for scenario in scenarios)
    except TcpscapeError as e:
        return finding._replace(proof=Proof(reason=str(e)))
    value = search.goal.of(trial, finding.cell)
    excess = value - sum(search.goal.of(other, finding.cell) for other in others)
    return finding._replace(proof=Proof(trial.kernel or engine.name, value, excess >= KEPT * finding.excess > 0))


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def told(finding: Finding, goal: Goal) -> list[str]:
    """The ingredients of a cell in words: the path, then what it needs besides."""
    used = [i for i in INGREDIENTS if goal.name in i.goals and (not i.optional or finding.cell[i.name] != i.plain)]
    return [i.text.format(finding.cell[i.name]) for i in used if i.name != "period" or finding.cell["pulse"]]
