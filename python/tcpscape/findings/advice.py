"""Advice for a path: the congestion control to use, its cliff, the side on which the path stands, the damage by ingredient, the command.

Every number comes from runs on this path; all congestion controls run under the same seeds (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tcpscape import stats
from tcpscape.campaign.execute import Runner
from tcpscape.errors import TcpscapeError
from tcpscape.findings import damage
from tcpscape.findings.chaos import zone
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, jitter_axis, level
from tcpscape.metrics.flows import limits
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.tables import ShownAsTable, Table, percent, shares
from tcpscape.trial import Trial

DEFAULT_CCA = "cubic"
"""Linux's default, which is kept unless another congestion control is clearly better."""
WORTH = 1.05
"""Ratio of goodputs below which a change is not worth it."""
SEEDS = 20
"""Most trials of the path itself for each congestion control."""
FEWEST = 5
"""Fewest trials of the path itself."""
CLIFF_SHARE, DAMAGE_SHARE = 0.4, 0.5
"""Trials of each level and of each ingredient taken away, as a share of those of the path."""
EVENTS = 120e6
"""Simulated events that an answer may take: about ten seconds on two cores."""
LEVELS_AT_FULL_COST = 2.5
"""Cost of the cliff search and the damage, in trials of the path without jitter for each seed of the path; measured."""
PRECISION = 0.10
"""Precision for which the number of required measurements is given."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The results of one congestion control on the path."""

    cca: str
    goodput: Estimate
    """Mean, Mbit/s."""
    median: Estimate
    cv: Estimate
    against_best: Estimate
    """Goodput / goodput of the best congestion control, paired."""
    retransmits: Estimate
    limited_by: dict[str, float]
    """Mean share of the time that each cause limited the flows, the largest first."""
    needed: int
    """Measurements for ± 10 %."""
    cliff: Cliff
    damage: tuple[damage.Damage, ...]

    @property
    def side(self) -> zone.Side:
        """The side of its cliff on which the path stands."""
        return zone.side(self.cliff.here) if self.cliff.here else "stable"


@dataclass(frozen=True, slots=True, repr=False)
class Advice(ShownAsTable):
    """The advice for a path. An interpreter and a notebook show its ranking."""

    path: Conditions
    ranking: tuple[Standing, ...]
    """The best first."""
    choice: str
    """The congestion control to use."""
    why: str
    """The reason, as a clause."""
    caveats: tuple[str, ...]
    trials: int
    """Number of trials that were run."""

    @property
    def jitter_ratio(self) -> float:
        """Jitter / RTT."""
        return self.path.jitter / self.path.rtt

    @property
    def command(self) -> str:
        """The shell command that sets the congestion control."""
        load = f"modprobe tcp_{self.choice}; " if self.choice not in ("cubic", "reno") else ""
        return f"{load}sysctl -w net.ipv4.tcp_congestion_control={self.choice}"

    def table(self) -> Table:
        """The ranking, a row for each congestion control; the answer is its title."""
        columns = ("cca", "goodput Mbit/s: mean [95 %]", f"/ {self.ranking[0].cca} [95 %]", "CV", "runs for ±10 %", "retransmits", "limited by")
        rows = []
        for s in self.ranking:
            spread, retransmits = percent(s.cv.value), number(s.retransmits.value)
            rows.append((s.cca, s.goodput.text(), s.against_best.text(), spread, str(s.needed), retransmits, shares(s.limited_by)))
        return Table(columns, rows, title=f"Use {self.choice}: {self.why}.", notes=[f"caveat: {caveat}" for caveat in self.caveats])


@dataclass
class Adviser:
    """Runs the trials that the advice needs, each once."""

    path: Conditions
    ccas: Sequence[str]
    runner: Runner
    seeds: Sequence[int] | None = None
    """Seeds of the path itself; None is as many as :data:`EVENTS` allows."""
    say: Callable[[str], None] = lambda _: None
    """Called with the name of each stage as it begins."""
    known: dict[tuple[str, int], Trial] = field(default_factory=dict)
    """(address of the scenario, seed) → its trial."""

    def advise(self) -> Advice:
        """Runs the path as it is, along its jitter, and without each of its ingredients; returns the advice."""
        seeds = self.seeds or range(self._affordable())
        self.say("comparing congestion controls")
        trials = dict(zip(self.ccas, self._run([self.path.scenario(cca) for cca in self.ccas], seeds), strict=True))
        goodputs = {cca: [t.goodput_mbps for t in runs] for cca, runs in trials.items()}
        order = sorted(self.ccas, key=lambda c: -sum(goodputs[c]))
        ranking = tuple(self._standing(cca, trials[cca], goodputs[order[0]], seeds) for cca in order)
        choice, why = choose(ranking, {cca: goodputs[cca] for cca in order})
        engine = self.runner.engine.name
        left_out = [f"without {c.ingredient}: the {engine} engine cannot" for c in damage.without(self.path) if not self._can(c.path)]
        caveats = sorted({c for runs in trials.values() for t in runs for c in t.caveats} | set(left_out))
        return Advice(self.path, ranking, choice, why, tuple(caveats), len(self.known))

    def _affordable(self) -> int:
        """Number of seeds for the path itself, estimated from the events of one trial with and one without jitter."""
        self.say("looking at the path")
        calm = self.path.model_copy(update={"jitter": 0})
        probes = self._run([p.scenario(cca) for cca in self.ccas for p in (self.path, calm)], range(1))
        events = [t.events or 0 for trials in probes for t in trials]
        each = sum(events[0::2]) + LEVELS_AT_FULL_COST * sum(events[1::2])
        return max(FEWEST, min(SEEDS, int(EVENTS / each))) if each else SEEDS

    def _standing(self, cca: str, trials: Sequence[Trial], best: Sequence[float], seeds: Sequence[int]) -> Standing:
        goodputs = [t.goodput_mbps for t in trials]
        spread = stats.cv(goodputs)
        flows = [f for t in trials for f in t.flows]
        resent = stats.mean([float(sum(f.retransmits for f in t.flows)) for t in trials])
        return Standing(
            cca=cca, goodput=stats.mean(goodputs, "Mbit/s"), median=stats.median(goodputs, "Mbit/s"), cv=spread,
            against_best=stats.ratio(goodputs, best), retransmits=resent, limited_by=limits(flows),
            needed=stats.runs_needed(spread.value, PRECISION), cliff=self._cliff(cca, goodputs, seeds), damage=self._damage(cca, seeds),
        )

    def _cliff(self, cca: str, goodputs: Sequence[float], seeds: Sequence[int]) -> Cliff:
        """The cliff along this path's jitter, with the path itself (its `goodputs`) on it."""
        self.say(f"{cca}: looking for the cliff")

        def measure(jitters: Sequence[float], which: range) -> list[list[float]]:
            paths = [self.path.model_copy(update={"jitter": round(j)}) for j in jitters]
            return self._goodputs(paths, cca, range(seeds[0] + which.start, seeds[0] + which.stop))

        effort = replace(search.QUICK, seeds=max(2, round(CLIFF_SHARE * len(seeds))))
        edge = search.find(measure, jitter_axis(self.path.rtt), effort)
        calm = self._goodputs([self.path.model_copy(update={"jitter": 0})], cca, seeds)[0]
        return replace(edge, here=level(self.path.jitter, goodputs, calm))

    def _damage(self, cca: str, seeds: Sequence[int]) -> tuple[damage.Damage, ...]:
        """The damage of each ingredient, with part of the seeds."""
        self.say(f"{cca}: taking the ingredients away")
        few = seeds[: max(2, round(DAMAGE_SHARE * len(seeds)))]
        return tuple(damage.decompose(self.path, lambda paths: self._run([p.scenario(cca) for p in paths], few), self._can))

    def _can(self, path: Conditions) -> bool:
        """Whether the engine can run the path: a real kernel cannot delay at random and keep the order."""
        try:
            self.runner.engine.check(path.scenario(self.ccas[0]))
        except TcpscapeError:
            return False
        return True

    def _goodputs(self, paths: Sequence[Conditions], cca: str, seeds: Sequence[int]) -> list[list[float]]:
        return [[t.goodput_mbps for t in trials] for trials in self._run([p.scenario(cca) for p in paths], seeds)]

    def _run(self, scenarios: Sequence[Scenario], seeds: Sequence[int]) -> list[list[Trial]]:
        """Trials of each scenario; trials that are known already are not run again."""
        keys = [s.address() for s in scenarios]
        missing = [(s, [n for n in seeds if (k, n) not in self.known]) for s, k in zip(scenarios, keys, strict=True)]
        for key, trials in zip(keys, self.runner.run_all(missing), strict=True):
            self.known |= {(key, t.seed): t for t in trials}
        return [[self.known[key, n] for n in seeds] for key in keys]


def choose(ranking: Sequence[Standing], goodputs: dict[str, list[float]]) -> tuple[str, str]:
    """The congestion control to use and the reason: the best, unless the default is as good within the measured interval."""
    best = ranking[0]
    if best.goodput.value <= 0:
        return DEFAULT_CCA, "nothing gets through this path with any of them"
    if len(ranking) == 1:
        return best.cca, "it was the only one asked for"
    default = next((s for s in ranking if s.cca == DEFAULT_CCA), ranking[1])
    if default.cca == best.cca:
        second = stats.ratio(goodputs[best.cca], goodputs[ranking[1].cca])
        return best.cca, f"it carries {second.text()} times the goodput of {ranking[1].cca}"
    gain = stats.ratio(goodputs[best.cca], goodputs[default.cca])
    if gain.value < WORTH or not gain.excludes(1.0):
        return default.cca, f"{best.cca} carries {gain.text()} times its goodput, too little to change Linux's default"
    return best.cca, f"it carries {gain.text()} times the goodput of {default.cca}"
