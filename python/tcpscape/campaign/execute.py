"""Runs a campaign: each engine's cases over all cores, what the store has already left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcpscape import build, engines
from tcpscape.campaign.outcome import Outcome, gather
from tcpscape.campaign.plan import Campaign, Case
from tcpscape.campaign.runner import Progress, Runner
from tcpscape.engines import Engine
from tcpscape.results import Store
from tcpscape.trial import Trial


@dataclass(frozen=True)
class Means:
    """What a campaign is run with."""

    jobs: int = 0
    """Cores; 0 is all."""
    store: Store | None = None
    progress: Progress | None = None
    make: Callable[[str], Engine] = engines.make
    """An engine by its name."""


def run(campaign: Campaign, means: Means = Means()) -> Outcome:
    """Every case with every seed; what an engine cannot run is refused before anything runs."""
    cases = campaign.cases()
    made = {name: means.make(name) for name in campaign.engines}
    for case in cases:
        made[case.engine].check(case.scenario)
    found: dict[int, list[Trial]] = {}
    for name, engine in made.items():
        mine = [(i, c) for i, c in enumerate(cases) if c.engine == name]
        runner = _runner(campaign, engine, means, done=sum(len(t) for t in found.values()), cases=len(cases))
        trials = _run(campaign, runner, [c for _, c in mine])
        found |= {i: some for (i, _), some in zip(mine, trials, strict=True)}
    return gather(campaign, cases, [found[i] for i in range(len(cases))], {n: e.version for n, e in made.items()})


def _runner(campaign: Campaign, engine: Engine, means: Means, done: int, cases: int) -> Runner:
    total = cases * len(build.seeds(campaign.seeds))
    tell = means.progress
    progress = (lambda now, _: tell(done + now, total)) if tell else None
    return Runner(engine, means.jobs, campaign.capture(), means.store, progress)


def _run(campaign: Campaign, runner: Runner, cases: list[Case]) -> list[list[Trial]]:
    """The trials of each case."""
    seeds = build.seeds(campaign.seeds)
    return runner.run_all([(c.scenario, seeds) for c in cases])
