"""Advice for a path: which congestion control, where its cliff is, on which side you stand, what does the damage, what to type.

Every number comes from runs on this path; all congestion controls meet the same seeds (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tcpscape import stats
from tcpscape.campaign import Runner
from tcpscape.errors import TcpscapeError
from tcpscape.findings import damage
from tcpscape.findings.chaos import zone
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, jitter_axis, level
from tcpscape.scenario.conditions import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.stats import Estimate
from tcpscape.trial import FlowResult, Trial

DEFAULT_CCA = "cubic"
"""What Linux uses when nobody says anything: kept unless another one is clearly better."""
WORTH = 1.05
"""A smaller ratio is not worth a change."""
SEEDS = 20
"""Trials of the path itself for each congestion control, where the work allows."""
FEWEST = 5
"""Never fewer than this."""
CLIFF_SHARE, DAMAGE_SHARE = 0.4, 0.5
"""Trials of each level and of each ingredient taken away, as a share of those of the path."""
EVENTS = 120e6
"""Simulated events that an answer may take: some ten seconds on two cores."""
LEVELS_AT_FULL_COST = 2.5
"""Levels that cost as much as the path without jitter, in units of the path's seeds; measured."""
PRECISION = 0.10
"""Precision for which the number of measurements is given."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one congestion control does on the path."""

    cca: str
    goodput: Estimate
    """Mean, Mbit/s."""
    median: Estimate
    cv: Estimate
    against_best: Estimate
    """Goodput / the best one's, paired."""
    retransmits: Estimate
    limited_by: dict[str, float]
    """Mean share of the time each cause held it back."""
    needed: int
    """Measurements for ± 10 %."""
    cliff: Cliff
    damage: tuple[damage.Damage, ...]

    @property
    def side(self) -> zone.Side:
        """On which side of its cliff it stands."""
        return zone.side(self.cliff.here) if self.cliff.here else "stable"


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer."""

    path: Conditions
    ranking: tuple[Standing, ...]
    """The best first."""
    choice: str
    """What to use."""
    why: str
    caveats: tuple[str, ...]
    trials: int
    """Trials run."""

    @property
    def jitter_ratio(self) -> float:
        """Jitter / RTT."""
        return self.path.jitter / self.path.rtt

    @property
    def command(self) -> str:
        """The line to type."""
        load = f"modprobe tcp_{self.choice}; " if self.choice not in ("cubic", "reno") else ""
        return f"{load}sysctl -w net.ipv4.tcp_congestion_control={self.choice}"


@dataclass
class Adviser:
    """Runs what the answer needs; each trial once."""

    path: Conditions
    ccas: Sequence[str]
    runner: Runner
    seeds: Sequence[int] | None = None
    """Seeds of the path itself; None is as many as the work allows."""
    say: Callable[[str], None] = lambda _: None
    known: dict[tuple[str, int], Trial] = field(default_factory=dict)

    def advise(self) -> Advice:
        """Runs the path, along its jitter and without its ingredients, and answers."""
        seeds = self.seeds or range(self._affordable())
        self.say("comparing congestion controls")
        trials = dict(zip(self.ccas, self._run([self.path.scenario(cca) for cca in self.ccas], seeds), strict=True))
        goodputs = {cca: [t.goodput_mbps for t in some] for cca, some in trials.items()}
        order = sorted(self.ccas, key=lambda c: -sum(goodputs[c]))
        ranking = tuple(self._standing(cca, trials[cca], goodputs[order[0]], seeds) for cca in order)
        choice, why = choose(ranking, {cca: goodputs[cca] for cca in order})
        engine = self.runner.engine.name
        left_out = [f"without {c.ingredient}: the {engine} engine cannot" for c in damage.without(self.path) if not self._can(c.path)]
        caveats = sorted({c for some in trials.values() for t in some for c in t.caveats} | set(left_out))
        return Advice(self.path, ranking, choice, why, tuple(caveats), len(self.known))

    def _affordable(self) -> int:
        """Seeds for the path itself: as many as the events of one trial, with and without jitter, let the answer have."""
        self.say("looking at the path")
        calm = self.path.model_copy(update={"jitter": 0})
        one = self._run([p.scenario(cca) for cca in self.ccas for p in (self.path, calm)], range(1))
        events = [t.events or 0 for trials in one for t in trials]
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
        self.say(f"{cca}: taking the ingredients away")
        few = seeds[: max(2, round(DAMAGE_SHARE * len(seeds)))]
        return tuple(damage.decompose(self.path, lambda paths: self._run([p.scenario(cca) for p in paths], few), self._can))

    def _can(self, path: Conditions) -> bool:
        """Whether the engine has what the path asks for: a real kernel cannot delay at random and keep the order."""
        try:
            self.runner.engine.check(path.scenario(self.ccas[0]))
        except TcpscapeError:
            return False
        return True

    def _goodputs(self, paths: Sequence[Conditions], cca: str, seeds: Sequence[int]) -> list[list[float]]:
        return [[t.goodput_mbps for t in trials] for trials in self._run([p.scenario(cca) for p in paths], seeds)]

    def _run(self, scenarios: Sequence[Scenario], seeds: Sequence[int]) -> list[list[Trial]]:
        """Trials of each scenario; those known already are not run again."""
        keys = [s.address() for s in scenarios]
        missing = [(s, [n for n in seeds if (k, n) not in self.known]) for s, k in zip(scenarios, keys, strict=True)]
        for key, trials in zip(keys, self.runner.run_all(missing), strict=True):
            self.known |= {(key, t.seed): t for t in trials}
        return [[self.known[key, n] for n in seeds] for key in keys]


def limits(flows: Sequence[FlowResult]) -> dict[str, float]:
    """Mean share of the time each cause held the flows back, the largest first."""
    total: dict[str, float] = {}
    for flow in flows:
        for cause, share in flow.limited_by.items():
            total[cause] = total.get(cause, 0.0) + share / len(flows)
    return dict(sorted(total.items(), key=lambda kv: -kv[1]))


def choose(ranking: Sequence[Standing], goodputs: dict[str, list[float]]) -> tuple[str, str]:
    """The congestion control to use and why: the best, unless the default is as good within what was measured."""
    best = ranking[0]
    if best.goodput.value <= 0:
        return DEFAULT_CCA, "nothing gets through this path with any of them"
    if len(ranking) == 1:
        return best.cca, "it was the only one asked for"
    rival = next((s for s in ranking if s.cca == DEFAULT_CCA), ranking[1])
    if rival.cca == best.cca:
        second = stats.ratio(goodputs[best.cca], goodputs[ranking[1].cca])
        return best.cca, f"it carries {second.text()} times the goodput of {ranking[1].cca}"
    gain = stats.ratio(goodputs[best.cca], goodputs[rival.cca])
    if gain.value < WORTH or not gain.excludes(1.0):
        return rival.cca, f"{best.cca} carries {gain.text()} times its goodput, too little to change Linux's default"
    return best.cca, f"it carries {gain.text()} times the goodput of {rival.cca}"
