"""The question `answer`: which congestion control carries how much, as a sentence that becomes surer as the trials come in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from tcpscape import stats
from tcpscape.campaign.campaign import Campaign
from tcpscape.campaign.outcome import Cell, Outcome
from tcpscape.findings.cliff.levels import FEWEST, HALF, level
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import Interval
from tcpscape.web import axes
from tcpscape.web.pool import FIRST, LATER, SOON, Work
from tcpscape.web.questions import Question
from tcpscape.web.questions.runs import Planned, Runs, Wanted, expect_room
from tcpscape.web.state import State
from tcpscape.web.stream import Block
from tcpscape.words import explorer as words
from tcpscape.words import sentences
from tcpscape.words.explorer import Side

MILESTONES = (1, 3, 5, 10, 20, 30, 50, 75, 100, 150, 200)
"""Numbers of trials at which the sentence is written anew: one that changes with every trial cannot be read."""
MOST_SEEDS = 1000
"""Most trials of each congestion control."""
SURE = 20
"""Trials after which the sentence is sure enough to wait for others: it has these as soon as possible."""


class ControlAnswer(Interval):
    """What is known of a congestion control: its mean goodput, Mbit/s, as in the table of `tcpscape run`."""

    label: str
    text: str
    """The goodput with its interval and unit."""
    side: Side | None
    """Where it is to its cliff; `on`: undecided, or in the chaos zone; null where no cliff is asked for, or of too few trials."""
    side_text: str
    """The same as a sentence."""


class AnswerValues(TypedDict):
    """The values of the block `answer`; each replaces the one before."""

    text: str
    """The sentence, that of `tcpscape run` for the same trials."""
    n: int
    """Trials of each congestion control behind it."""
    wanted: int
    """How many there will be."""
    final: bool
    """Whether this is the last block."""
    controls: list[ControlAnswer]
    decided: bool
    """Whether the interval of the ratio that the sentence is about leaves out 1, or lies within ± 5 % of it."""
    more: int | None
    """About so many trials of each are still missing; null where none is."""
    more_text: str
    """`about 12 more runs`."""
    assumes: list[str]
    """Lines; the first one is the path in words, as `tcpscape run` prints it."""
    caveats: list[str]


class Answer(Question):
    """The sentence for the state as it is."""

    kind: ClassVar[str] = "answer"
    blocks: ClassVar[Mapping[str, Any]] = {"answer": AnswerValues}
    seeds: int = Field(default=20, ge=1, le=MOST_SEEDS)
    """Trials of each congestion control."""

    def answer(self, state: State, work: Work, opened: Any) -> None:
        """Runs seed after seed of every congestion control, here and without the impairment, and sends the sentence of what is there."""
        along = impairment(state)
        here, calm = state.campaign(), state.replace(**{along: ""}).campaign() if along else None
        answering = _Answering(here, _planned(here), _planned(calm) if calm else [], along, self.seeds)
        expect_room(self.seeds * (len(answering.cases) + len(answering.calm)), answering.cases[0])
        done, steps = Runs(work), [*(n for n in MILESTONES if n < self.seeds), self.seeds]
        sent = 0
        for _ in done.run(answering.wanted()):
            n = max((step for step in steps if step <= answering.known(done)), default=0)
            if n > sent:
                sent = n
                work.send(answering.block(done, n, final=False))
        work.send(answering.block(done, self.seeds, final=True))


def impairment(state: State) -> str:
    """The impairment whose cliff is asked for: the jitter, the loss where there is none, empty where the path's fields have neither."""
    texts = {name: getattr(state, name) for name in ("jitter", "loss") if name not in state.fixed}
    return next((name for name, text in texts.items() if text and axes.place(text) > 0), "")


@dataclass(frozen=True)
class _Answering:
    """What is asked: the cases here, the same cases without the impairment, and how many trials of each."""

    campaign: Campaign
    cases: Sequence[Planned]
    calm: Sequence[Planned]
    along: str
    seeds: int

    def wanted(self) -> list[Wanted]:
        """Every trial, in the order in which they are to run: those that the sentence needs, then those without the impairment."""
        here = [Wanted.of(c, seed, _urgency(seed)) for seed in range(self.seeds) for c in self.cases]
        return [*here, *(Wanted.of(c, seed, LATER) for seed in range(self.seeds) for c in self.calm)]

    def known(self, done: Runs) -> int:
        """How many seeds of every case here have run."""
        return min(done.count(case) for case in self.cases)

    def block(self, done: Runs, n: int, *, final: bool) -> Block:
        """The answer of the first `n` trials."""
        outcome = done.outcome(self.campaign, self.cases, n)
        decided, more, more_text = _missing(outcome)
        return Block(
            "answer",
            AnswerValues(
                text=sentences.run_answer(outcome),
                n=n,
                wanted=self.seeds,
                final=final,
                controls=list(self._controls(outcome, done)),
                decided=decided,
                more=more,
                more_text=more_text,
                assumes=list(words.assumptions(outcome, self.along)),
                caveats=list(_caveats(outcome)),
            ),
        )

    def _controls(self, outcome: Outcome, done: Runs) -> Iterator[ControlAnswer]:
        """What is known of each congestion control; of a mixture, of each in it."""
        calms: Sequence[Planned | None] = self.calm or [None] * len(outcome.cells)
        for cell, calm in zip(outcome.cells, calms, strict=True):
            for label in cell.ccas if len(cell.ccas) > 1 else [cell.cca]:
                metric = f"goodput:{label}" if len(cell.ccas) > 1 else "goodput"
                known = stats.known(cell.values(metric))
                mean = stats.mean(known) if known else Estimate(math.nan, math.nan, math.nan, 0)
                side, text = self._side(cell, calm, metric, label, done)
                yield ControlAnswer(
                    label=label, value=mean.value, low=mean.low, high=mean.high, text=mean.text(unit="Mbit/s"), side=side, side_text=text
                )

    def _side(self, cell: Cell, calm: Planned | None, metric: str, label: str, done: Runs) -> tuple[Side | None, str]:
        """On which side of its cliff a congestion control is: its goodput here over that without the impairment, under the same seeds."""
        n = min(len(cell.trials), done.count(calm)) if calm else 0
        if not calm or n < FEWEST:
            return None, ""
        values, base = cell.values(metric)[:n], done.cell(calm, n).values(metric)
        if not any(base):
            return None, words.nothing_without(label, self.along)
        here = level(0.0, values, base)
        side: Side = "before" if here.retention.value > HALF else "past"
        if here.chaotic or not here.retention.excludes(HALF):
            side = "on"
        return side, words.side(label, here, side, self.along)


def _planned(campaign: Campaign) -> list[Planned]:
    return [Planned.of(case) for case in campaign.cases()]


def _missing(outcome: Outcome) -> tuple[bool, int | None, str]:
    """Whether the ratio that the sentence is about is decided, and how many trials of each are missing, as a number and in words.

    Nothing is to be decided of one congestion control or a mixture.
    """
    if len(outcome.cells) < 2:
        return True, None, ""
    best, other = sentences.rivals(outcome.cells)
    missing = stats.runs_missing(best.over(other))
    return not missing, missing or None, sentences.runs_text(missing)


def _caveats(outcome: Outcome) -> Iterator[str]:
    """Whatever weakens the answer, as under the table of `tcpscape run`."""
    yield from dict.fromkeys((*outcome.caveats, *sentences.caveats(cell.mean() for cell in outcome.cells)))


def _urgency(seed: int) -> int:
    return FIRST if seed == 0 else SOON if seed < SURE else LATER
