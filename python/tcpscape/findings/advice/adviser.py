"""The trials that an advice needs, each run once: the path as it is, along its jitter, without each ingredient, and with the other order of packets.

All congestion controls run under the same seeds (common random numbers). With a store, what it has does not run again.

An advice in a result directory is the answer as JSON; :func:`restore` makes the advice itself again from the trials that are kept there, and runs
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tcpscape import engines, formats, metrics, stats, writing
from tcpscape.campaign import execute, groups, record
from tcpscape.campaign.axes import parse_seeds
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.execute import Execution, Runner
from tcpscape.campaign.executors import Executor, ScenarioTrials, Task, Trials
from tcpscape.campaign.outcome import Outcome, smoothed
from tcpscape.campaign.record import Record
from tcpscape.controls.deployment import DEFAULT, obstacle
from tcpscape.errors import StoreError, TcpscapeError, refuse
from tcpscape.findings import damage
from tcpscape.findings.advice import assumptions, levers
from tcpscape.findings.advice.answer import Advice, OtherOrder, Shared, Standing
from tcpscape.findings.advice.assumptions import Assumption
from tcpscape.findings.advice.choice import GOALS, CandidateRuns, Decision, Goal, decide, ranked
from tcpscape.findings.advice.levers import Lever
from tcpscape.findings.cliff import search
from tcpscape.findings.cliff.levels import Cliff, jitter_axis, level
from tcpscape.findings.steps import Tell, untold
from tcpscape.metrics.flows import limits
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.scenario import Scenario
from tcpscape.store.results import Store
from tcpscape.trial import Trial
from tcpscape.units import format_percent

SEEDS = 20
"""Most trials of the path itself for each congestion control."""
FEWEST = 5
"""Fewest trials of the path itself."""
CLIFF_SHARE, DAMAGE_SHARE = 0.4, 0.5
"""Trials of each level and of each ingredient taken away, as a share of those of the path."""
EVENTS = 120e6
"""Simulated events that an answer may take: about ten seconds on two cores."""
AGREE = 0.01
"""Spread below which :data:`FEWEST` trials of a single flow are enough on a path that draws nothing at random (docs/models/methods/advice.md)."""
LEVELS_AT_FULL_COST = 3
"""Cost of the cliff search, in levels that cost as much as the dearer of the path with and without jitter; the collapsed ones are cheap."""
PRECISION = 0.10
"""Precision for which the number of required measurements is given."""
NAME = "advise"
"""Name of the campaign that compares the congestion controls."""


@dataclass
class Adviser:
    """Runs the trials that the advice needs, each once."""

    path: Conditions
    ccas: Sequence[str]
    runner: Runner
    seeds: str | None = None
    """Seeds of the path itself, as a campaign has them; None is as many as :data:`EVENTS` allows."""
    goal: Goal = GOALS["goodput"]
    own_queue: bool = False
    """Whether the queue of the bottleneck is the user's own, so that others are tried there."""
    tell: Tell = untold
    command: str = ""
    """What to type to run it again, for the record of a store."""
    checked: Sequence[str] = ()
    """Metrics that will be asked for besides."""
    taken: Sequence[str] = ()
    """What of the path comes from a file, and what is assumed all the same; sentences."""
    outcome: Outcome | None = None
    """The comparison on the path itself, where it is measured already."""
    cliff_runs: int = 0
    """First trials of each level of a cliff; 0 is a share (:data:`CLIFF_SHARE`) of the path's."""
    in_brief: bool = False
    """Whether the cliffs along jitter are left out where the path has none: an answer in brief does not show them, and they take most of its time."""
    known: dict[tuple[str, int], Trial] = field(default_factory=dict)
    """(address of the scenario, seed) → its trial."""

    def advise(self) -> Advice:
        """Runs the path as it is, along its jitter, and without each of its ingredients; returns the advice.

        :raises ScenarioError: one line, where the queue of a bottleneck is the user's own and there is no bottleneck.
        """
        if self.own_queue and not self.path.rate:
            refuse("own-queue", "there is no bottleneck that has it", "give its rate too, for example --rate 20mbit")
        seeds = self.seeds or str(self._enough_of_path())
        numbers = parse_seeds(seeds)
        self.cliff_runs = self.cliff_runs or _share(CLIFF_SHARE, len(numbers))
        self.tell("controls", "")
        outcome = self._compare(seeds)
        trials = {cell.cca: list(cell.trials) for cell in outcome.cells}
        candidates = self._candidates(trials)
        decision = decide(candidates, self.goal, self._rtt_ms)
        if decision.choice:
            self.tell("choice", decision.choice)
        reference = max((c for c in candidates if c.deployable), key=lambda c: sum(c.goodputs), default=ranked(candidates, self.goal)[0])
        ranking = tuple(self._standing(c, trials[c.cca], reference, numbers) for c in ranked(candidates, self.goal))
        other = self._other_order(numbers, decision) if self.path.jitter else None
        shared = self._shared(decision.choice, numbers) if self.path.rate and decision.choice and decision.choice != DEFAULT else None
        pulled = self._levers(ranking, decision, numbers)
        assumed = self._assumptions(ranking, decision, numbers)
        left_out = tuple(c.ingredient for c in damage.without(self.path) if not self._can(c.path))
        of_trials = sorted({c for runs in trials.values() for t in runs for c in t.caveats})
        caveats = (*of_trials, *smoothed(outcome, ("added_rtt",)), *groups.player_caveats(outcome.cells[0].scenarios[0]))
        return Advice(
            self.path,
            self.goal,
            ranking,
            decision,
            reference.cca,
            other,
            shared,
            pulled,
            self.own_queue,
            assumed,
            tuple(self.taken),
            self.cliff_runs,
            left_out,
            caveats,
            len(self.known),
            outcome,
        )

    def campaign(self, seeds: str = str(FEWEST)) -> Campaign:
        """The comparison of the congestion controls on the path itself."""
        fields = self.path.model_dump(mode="json", exclude_defaults=True)
        if "loss" in self.path.model_fields_set:  # also where it is 0: nothing is assumed of it then
            fields["loss"] = format_percent(self.path.loss)
        metrics_ = tuple(dict.fromkeys((self.goal.metric, "added_rtt", *self.checked)))
        return Campaign.of(
            {"name": NAME, "conditions": fields, "cca": list(self.ccas), "engines": [self.runner.engine.spec], "seeds": seeds, "metrics": metrics_}
        )

    @property
    def steps(self) -> int:
        """About how many steps :attr:`tell` is told of: a comparison, its choice, a search and a decomposition for each control, and more."""
        besides = (self.seeds is None, self.path.jitter > 0, bool(self.path.rate), self.own_queue)
        return 2 + (1 + self._has_cliffs) * len(self.ccas) + sum(besides) + len(assumptions.assumed(self.path))

    @property
    def _has_cliffs(self) -> bool:
        """Whether the cliffs along jitter are searched."""
        return self.path.jitter > 0 or not self.in_brief

    @property
    def _rtt_ms(self) -> float:
        return self.path.rtt / 1e6

    def _compare(self, seeds: str) -> Outcome:
        """Runs the comparison, unless it is measured already, and keeps it where there is a store."""
        runner, campaign, outcome = self.runner, self.campaign(seeds), self.outcome
        self.runner = replace(runner, capture=campaign.capture())
        if outcome is None:
            outcome, _ = record.measure("advise", campaign, self._execution, self.command)
        self._remember(outcome)
        return outcome

    def _remember(self, outcome: Outcome) -> None:
        """What need not run again."""
        for cell in outcome.cells:
            self.known |= {(cell.scenarios[0].address(), t.seed): t for t in cell.trials}

    @property
    def _execution(self) -> Execution:
        runner = self.runner
        known = {trial.address: trial for trial in self.known.values()}
        return Execution(runner.jobs, runner.store, runner.progress, lambda _: runner.engine, runner.executor, known)

    def _candidates(self, trials: dict[str, list[Trial]]) -> list[CandidateRuns]:
        of, profile = metrics.find(self.goal.metric).of, self.path.kernel.profile
        return [CandidateRuns(cca, [t.goodput_mbps for t in runs], [of(t) for t in runs], not obstacle(cca, profile)) for cca, runs in trials.items()]

    def _enough_of_path(self) -> int:
        """Number of seeds for the path itself: what is affordable, or few where nothing is drawn and a few agree (:data:`AGREE`)."""
        self.tell("path", "")
        affordable = self._affordable()
        self.cliff_runs = _share(CLIFF_SHARE, affordable)
        if affordable > FEWEST and self._draws_nothing:
            first = execute.run(self.campaign(str(FEWEST)), self._execution)
            self._remember(first)
            asked = {metrics.find(name).of for name in ("goodput", "added_rtt", self.goal.metric)}
            if all(_agree([of(t) for t in cell.trials]) for cell in first.cells for of in asked):
                self.outcome = None if self.runner.store else first
                return FEWEST
        return affordable

    @property
    def _draws_nothing(self) -> bool:
        """Whether the path draws nothing at random, nor does the engine; its queue is a FIFO and its flow is alone."""
        is_drawn = self.path.jitter or self.path.loss or self.path.corrupt or self.path.queue
        return not is_drawn and self.path.flows == 1 and self.runner.engine.repeatable

    def _affordable(self) -> int:
        """Number of seeds that :data:`EVENTS` allow, estimated from the events of one trial with and one without jitter."""
        calm = self.path.model_copy(update={"jitter": 0})
        probes = self._run([p.scenario(cca) for cca in self.ccas for p in (self.path, calm)], range(1))
        events = [t.events or 0 for trials in probes for t in trials]
        shares = CLIFF_SHARE * LEVELS_AT_FULL_COST + DAMAGE_SHARE * len(damage.without(self.path))
        each = sum(events[0::2]) + shares * sum(map(max, events[0::2], events[1::2]))
        return max(FEWEST, min(SEEDS, int(EVENTS / each))) if each else SEEDS

    def _standing(self, candidate: CandidateRuns, trials: Sequence[Trial], reference: CandidateRuns, seeds: Sequence[int]) -> Standing:
        cca, goodputs = candidate.cca, candidate.goodputs
        spread, added = stats.cv(goodputs), metrics.find("added_rtt").of
        flows = [f for t in trials for f in t.flows]
        resent = stats.mean([float(sum(f.retransmits for f in t.flows)) for t in trials])
        return Standing(
            cca=cca,
            obstacle=obstacle(cca, self.path.kernel.profile),
            goodput=stats.mean(goodputs, "Mbit/s"),
            added_rtt=stats.mean([added(t) for t in trials], "ms"),
            median=stats.median(goodputs, "Mbit/s"),
            cv=spread,
            against_best=stats.ratio(goodputs, reference.goodputs),
            retransmits=resent,
            limited_by=limits(flows),
            needed=stats.runs_needed(spread.value, PRECISION),
            cliff=self._cliff(cca, goodputs, seeds) if self._has_cliffs else None,
            damage=self._damage(cca, seeds),
        )

    def _cliff(self, cca: str, goodputs: Sequence[float], seeds: Sequence[int]) -> Cliff:
        """The cliff along this path's jitter, with the path itself (its `goodputs`) on it."""
        self.tell("cliff", cca)

        def measure(jitters: Sequence[float], which: range) -> list[list[float]]:
            paths = [self.path.model_copy(update={"jitter": round(j)}) for j in jitters]
            return self._goodputs(paths, cca, range(seeds[0] + which.start, seeds[0] + which.stop))

        effort = replace(search.QUICK, seeds=self.cliff_runs)
        edge = search.find(measure, jitter_axis(self.path.rtt), effort)
        calm = self._goodputs([self.path.model_copy(update={"jitter": 0})], cca, seeds)[0]
        return replace(edge, here=level(self.path.jitter, goodputs, calm))

    def _damage(self, cca: str, seeds: Sequence[int]) -> tuple[damage.Damage, ...]:
        """The damage of each ingredient, with part of the seeds."""
        self.tell("damage", cca)
        few = self._few(seeds)
        return tuple(damage.decompose(self.path, lambda paths: self._run([p.scenario(cca) for p in paths], few), self._can))

    def _other_order(self, seeds: Sequence[int], decision: Decision) -> OtherOrder:
        """The decision if the jitter kept the order of packets, or reordered them where it is assumed to keep it."""
        keeps = self.path.order == "reorder"
        path = self.path.model_copy(update={"order": "correlated" if keeps else "reorder"})
        name = "keep" if keeps else "reorder"
        if not self._can(path):
            return OtherOrder(name, None, {}, {}, changes=False)
        self.tell("other order", "")
        few = self._enough(seeds)
        trials = dict(zip(self.ccas, self._run([path.scenario(cca) for cca in self.ccas], few), strict=True))
        other = decide(self._candidates(trials), self.goal, self._rtt_ms)
        goodputs = {cca: stats.mean([t.goodput_mbps for t in runs], "Mbit/s") for cca, runs in trials.items()}
        views = {cca: view for cca, runs in trials.items() if (view := groups.viewer(runs))}
        return OtherOrder(name, other, goodputs, views, changes=other.choice != decision.choice and other.verdict != "undecided")

    def _shared(self, choice: str, seeds: Sequence[int]) -> Shared:
        """What flows under the choice get beside as many under Linux's default, and what that costs those."""
        self.tell("beside default", choice)
        alone = self.path.scenario(choice)
        others = alone.with_cca(DEFAULT).flows
        mixed = alone.model_copy(update={"flows": (*alone.flows, *others)})
        equal = alone.model_copy(update={"flows": (*others, *others)})
        beside, among = self._run([mixed, equal], self._enough(seeds))
        share = metrics.find(f"share:{choice}").of
        left = [sum(f.goodput_mbps for f in t.flows if f.cca == DEFAULT) for t in beside]
        kept = stats.ratio(left, [t.goodput_mbps / 2 for t in among])
        harm = replace(kept, value=1 - kept.value, low=1 - kept.high, high=1 - kept.low)
        return Shared(stats.mean([share(t) for t in beside], "1"), harm)

    def _levers(self, ranking: Sequence[Standing], decision: Decision, seeds: Sequence[int]) -> tuple[Lever, ...]:
        """The congestion controls with one setting changed: buffers that held them, and other settings that may matter.

        The best one runs with all seeds, since its interval is what is promised.
        """
        choice, few = decision.choice, self._enough(seeds)
        if not choice:
            return ()

        def run(scenario: Scenario, count: int | None) -> Sequence[Trial]:
            return self._run([scenario], seeds[:count] if count else few)[0]

        bench = levers.Bench(self.path, choice, self.goal, run)
        pulled = [*self._larger_buffers(bench, ranking), *self._other_settings(bench, ranking)]
        best = max((lever for lever in pulled if lever.is_worthwhile), key=lambda lever: lever.lead.value, default=None)
        pulled = [bench.pull(lever.cca, lever.setting, len(seeds)) if lever is best else lever for lever in pulled]
        return tuple(sorted(pulled, key=lambda lever: -lever.lead.value))

    def _larger_buffers(self, bench: levers.Bench, ranking: Sequence[Standing]) -> Iterator[Lever]:
        """Where the goal is goodput and the rate is known: without a bottleneck, buffers are all that ends the growth of a flow."""
        held = [s for s in ranking if not s.obstacle and levers.blamed(s.limited_by)]
        larger = levers.for_path(self.path, ("receive", "send"))
        if not (held and self.path.rate and self.goal.name == "goodput" and self._can_run(larger.on(self.path.scenario(bench.choice)))):
            return
        for standing in sorted(held, key=lambda s: -s.goodput.value)[: levers.MOST]:
            self.tell("lever", standing.cca)
            yield bench.larger_buffers(standing.cca, levers.blamed(standing.limited_by))

    def _other_settings(self, bench: levers.Bench, ranking: Sequence[Standing]) -> Iterator[Lever]:
        """Of the choice and of Linux's default: what leaves no gain after a few runs does not run on."""
        for standing in (s for s in ranking if s.cca in (bench.choice, DEFAULT)):
            for setting in levers.may_matter(self.path, standing.cca, standing.retransmits.value, own_queue=self.own_queue):
                if self._can_run(setting.on(self.path.scenario(standing.cca))):
                    self.tell("lever", standing.cca)
                    yield bench.other(standing.cca, setting)

    def _assumptions(self, ranking: Sequence[Standing], decision: Decision, seeds: Sequence[int]) -> tuple[Assumption, ...]:
        """What the decision would be if the path were otherwise where its user did not say how it is: of the best, the choice and the default."""
        if not decision.choice:
            return ()
        best = [s.cca for s in ranking if not s.obstacle][: assumptions.MOST]
        ccas = [s.cca for s in ranking if s.cca in (*best, decision.choice, DEFAULT)]

        def decide_on(path: Conditions) -> Decision | None:
            if not self._can(path):
                return None
            count = max(min(FEWEST, len(seeds)), self.cliff_runs if path.loss > self.path.loss else 0)  # what draws needs more
            numbers = range(seeds[0], seeds[0] + count) if count > len(seeds) else seeds[:count]
            trials = dict(zip(ccas, self._run([path.scenario(cca) for cca in ccas], numbers), strict=True))
            return decide(self._candidates(trials), self.goal, self._rtt_ms)

        found = []
        for field_ in assumptions.assumed(self.path):
            self.tell("assumption", field_)
            found.append(assumptions.otherwise(self.path, field_, decision.choice, decide_on))
        return tuple(a for a in found if a.alternatives)

    @staticmethod
    def _few(seeds: Sequence[int]) -> Sequence[int]:
        return seeds[: _share(DAMAGE_SHARE, len(seeds))]

    @classmethod
    def _enough(cls, seeds: Sequence[int]) -> Sequence[int]:
        """As few, and not fewer than decide anything."""
        return seeds[: max(FEWEST, len(cls._few(seeds)))]

    def _can(self, path: Conditions) -> bool:
        """Whether the engine can run the path: a real kernel cannot delay at random and keep the order."""
        return self._can_run(path.scenario(self.ccas[0]))

    def _can_run(self, scenario: Scenario) -> bool:
        """Whether the engine can run a scenario."""
        try:
            self.runner.engine.check(scenario)
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


def _share(share: float, trials: int) -> int:
    """A share of some trials, at least two."""
    return max(2, round(share * trials))


def _agree(values: Sequence[float]) -> bool:
    """Whether the largest and the smallest are within :data:`AGREE` of each other."""
    return max(values) - min(values) <= AGREE * abs(max(values, key=abs))


KEPT = Kind("a kept advice", "run advise again with the same --out", most=64 * MIB, error=StoreError)
ANSWER = "advice.json"
"""The answer's name in the directory."""


@dataclass(frozen=True)
class KeptAdvice:
    """What is read again of an answer: all else is made again from the trials."""

    goal: str
    taken: tuple[str, ...]
    own_queue: bool = False
    cliff_runs: int = 0
    """First trials of each level of a cliff; 0 of an answer that did not say it."""


def save(document: Mapping[str, Any], root: Path) -> Path:
    """Writes the document of an answer; returns the file. :raises TcpscapeError: one line, where it cannot be written."""
    return writing.whole(root / ANSWER, json.dumps(document, allow_nan=False, indent=1) + "\n")


def restore(record: Record, root: Path) -> Advice | None:
    """The advice that `root` was measured for; None where it holds something else too, or not all of its trials under this version.

    :raises StoreError: for an answer of a newer format.
    """
    file = root / ANSWER
    if record.kind != "advise" or len(record.parts) != 1 or not reading.exists(file, KEPT, "out"):
        return None
    outcome = record.outcomes[0]
    if len({tuple(t.seed for t in cell.trials) for cell in outcome.cells}) != 1 or len(outcome.versions) != 1:
        return None
    answer = read(file)
    if answer is None:
        return None
    try:
        path = Conditions.model_validate(outcome.campaign.conditions)
        with Store(root, create=False) as store:
            runner = Runner(engines.make(outcome.campaign.engines[0]), store=store, executor=_OfKept())
            adviser = Adviser(
                path,
                outcome.ccas,
                runner,
                outcome.campaign.seeds,
                GOALS[answer.goal],
                answer.own_queue,
                taken=answer.taken,
                outcome=outcome,
                cliff_runs=answer.cliff_runs,
            )
            return adviser.advise()
    except (ValueError, KeyError, TcpscapeError):
        return None


def read(file: Path) -> KeptAdvice | None:
    """The answer in a file; None where it is damaged: the trials are there all the same. :raises StoreError: for an answer of a newer format."""
    try:
        values = documents.json_file(file, KEPT, "out")
    except StoreError:
        return None
    formats.expect("advice", values, str(file))
    try:
        return documents.as_type(KeptAdvice, values, Origin(str(file), KEPT, "out"))
    except StoreError:
        return None


class _OfKept(Executor):
    """Runs nothing: what is not kept is missing."""

    def run(self, task: Task, work: Sequence[ScenarioTrials]) -> Trials:
        """No trial. :raises StoreError: where one would have to run."""
        if any(w.seeds for w in work):
            raise StoreError("advice: a trial of it is missing; run again with the same --out")
        yield from ()
