"""Which hunks of a patch make the difference between two kernels.

The difference with the clearest interval is sought: one metric of one path. Kernels with a part of the patch run on that path, and each part shows
the difference, or does not. Parts are halved and, where no half shows it, their complements are tried in ever smaller pieces: the algorithm `ddmin`
of Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing Input* (IEEE TSE 2002), over files first, then over the hunks of those that
are left. A part that does not build is one that tells nothing. What is found is the smallest part that showed the difference; the rest of the patch
runs once more without it.

A part shows the difference where its mean is nearer to that of the whole patch, and too far from that without it to be chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tcpscape.campaign.execute import Runner, TrialsDone
from tcpscape.engines.virtual import Virtual
from tcpscape.errors import EngineError
from tcpscape.kernels import BuiltKernel
from tcpscape.kernels.patches import Hunk, HunkRefused
from tcpscape.kernels.variants import VariantBuilder
from tcpscape.metrics import Metric
from tcpscape.store.results import Store
from tcpscape.units import counted
from tcpscape.validate.conditions import NamedScenario
from tcpscape.validate.kernel_diff import LEAST, KernelComparison, KernelDifference, KernelPair, chance_of, difference

MOST_STEPS = 40
"""Parts that are tried at most."""
RUNS = (6, 12, 24, 40)
"""Runs of a part: more of them until it is clear whether it shows the difference."""
SURE = 0.01
"""A mean as far from another is chance in at most so many cases."""


class Shows(str, Enum):
    """What a part of the patch shows."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"
    """Too near to both, with all runs."""
    UNBUILT = "unbuilt"
    """It does not build, or a hunk does not apply."""


@dataclass(frozen=True)
class Verdict:
    """A part of the patch, measured."""

    hunks: tuple[Hunk, ...]
    shows: Shows
    mean: float = math.nan
    """Of the metric, in its unit."""
    runs: int = 0
    why: str = ""
    """Why it was not measured; one line."""
    between: bool = False
    """Its mean differs from both, the first kernel's and the second's."""


K = TypeVar("K")
"""What stands for a kernel."""
Judge = Callable[[Sequence[Hunk]], Verdict]
"""Builds and measures a part of the patch."""


@dataclass(frozen=True)
class HunkSearch:
    """What a search found."""

    smallest: tuple[Hunk, ...]
    """The smallest part that showed the difference."""
    steps: tuple[Verdict, ...]
    """Every part that was tried, in order."""
    rest: Verdict | None
    """All but the smallest; None where that is nothing, or the search ended before."""
    ended_early: bool
    """Whether as many parts as may be were tried before it was clear."""

    @property
    def unbuilt(self) -> tuple[Verdict, ...]:
        """Parts that could not be tried."""
        return tuple(v for v in self.steps if v.shows is Shows.UNBUILT)


class _Ended(Exception):
    """As many parts as may be were tried."""


class _Search:
    """Parts that were tried, each once."""

    def __init__(self, judge: Judge, most: int) -> None:
        self._judge, self._most = judge, most
        self.steps: dict[frozenset[Hunk], Verdict] = {}

    def verdict(self, hunks: Collection[Hunk]) -> Verdict:
        """What a part shows. :raises _Ended: where no further one may be tried."""
        key = frozenset(hunks)
        if key not in self.steps:
            if len(self.steps) >= self._most:
                raise _Ended
            self.steps[key] = self._judge(sorted(key))
        return self.steps[key]

    def smallest(self, parts: Sequence[tuple[Hunk, ...]]) -> list[tuple[Hunk, ...]]:
        """The fewest of the parts that show the difference, all of which do; as small as could be tried."""
        pieces = 2
        while len(parts) > 1:
            cut = _cut(parts, pieces)
            rests = [[part for part in parts if part not in piece] for piece in cut] if pieces > 2 else []
            shown = next((piece for piece in (*cut, *rests) if self._shows(piece)), None)
            if shown is None and pieces >= len(parts):
                break
            pieces = min(2 * pieces, len(parts)) if shown is None else 2 if shown in cut else max(pieces - 1, 2)
            parts = self.left = parts if shown is None else shown
        return list(parts)

    left: Sequence[tuple[Hunk, ...]] = ()
    """The smallest parts until now."""

    def _shows(self, parts: Sequence[tuple[Hunk, ...]]) -> bool:
        return self.verdict([hunk for part in parts for hunk in part]).shows is Shows.YES


def _cut(parts: Sequence[tuple[Hunk, ...]], pieces: int) -> list[list[tuple[Hunk, ...]]]:
    """The parts in so many pieces, as equal as can be."""
    ends = [len(parts) * i // pieces for i in range(pieces + 1)]
    return [list(parts[start:end]) for start, end in pairwise(ends) if end > start]


def about_steps(hunks: Sequence[Hunk]) -> int:
    """How many steps a search takes where one hunk makes the difference: both halves each time, and what comes before."""
    files = len({hunk.file for hunk in hunks})
    return 4 + 2 * math.ceil(math.log2(max(2, files))) + 2 * math.ceil(math.log2(max(2, len(hunks) / files)))


def search(hunks: Sequence[Hunk], judge: Judge, most: int = MOST_STEPS) -> HunkSearch:
    """The smallest part of a patch, all of which shows a difference, that shows it too.

    :param judge: called with parts, never with the whole patch.
    :param most: parts that are tried at most.
    """
    state, ended, rest = _Search(judge, most), False, None
    files = [tuple(h for h in hunks if h.file == file) for file in dict.fromkeys(h.file for h in hunks)]
    state.left = files
    try:
        inside = state.smallest(files)
        state.left = [(hunk,) for part in inside for hunk in part]
        state.smallest(state.left)
        found = {hunk for part in state.left for hunk in part}
        if others := [h for h in hunks if h not in found]:
            rest = state.verdict(others)
    except _Ended:
        ended = True
    return HunkSearch(tuple(hunk for part in state.left for hunk in part), tuple(state.steps.values()), rest, ended)


@dataclass(frozen=True)
class Sought:
    """The difference whose hunks are sought: one metric of one path on the kernels without and with the whole patch."""

    difference: KernelDifference
    values: tuple[Sequence[float], Sequence[float]]
    """The metric of each run without and with the patch."""

    @property
    def condition(self) -> NamedScenario:
        """The path."""
        return self.difference.condition

    @property
    def metric(self) -> Metric:
        """What is measured on it."""
        return self.difference.metric

    def verdict(self, hunks: Sequence[Hunk], values: Sequence[float]) -> Verdict:
        """What the metric of some runs of a part shows; unclear where more runs are needed."""
        mean, means = float(np.mean(values)), [float(np.mean(side)) for side in self.values]
        apart = [chance_of(values, side) <= SURE for side in self.values]
        nearer = abs(mean - means[1]) < abs(mean - means[0])
        shows = (Shows.YES if apart[0] else Shows.UNCLEAR) if nearer else (Shows.NO if apart[1] else Shows.UNCLEAR)
        return Verdict(tuple(hunks), shows, mean, len(values), between=all(apart))


def clearest(told: Sequence[KernelDifference]) -> KernelDifference:
    """The difference that fewest runs tell: the largest beside its interval."""

    def clearness(d: KernelDifference) -> float:
        ratio = d.comparison.ratio
        width = (ratio.high - ratio.low) / 2
        return abs(ratio.value - 1) / width if width > 0 and math.isfinite(width) else math.inf if math.isfinite(ratio.value) else 0.0

    return max(told, key=clearness)


@dataclass(frozen=True)
class HunkComparison:
    """Two trees compared, and the hunks between them searched."""

    result: KernelComparison
    """Of the kernels without and with all hunks."""
    hunks: tuple[Hunk, ...]
    """Those that take part in the kernel."""
    left_out: tuple[str, ...]
    """Files that differ and that the kernel is not built from."""
    sought: Sought | None = None
    """The difference whose hunks were sought; None where there is none that is no chance."""
    search: HunkSearch | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the rest of the patch does not show the difference."""
        return bool(self.search and self.search.rest and self.search.rest.shows is Shows.NO)


def compare_trees(
    builder: VariantBuilder,
    scenarios: Sequence[NamedScenario],
    least: float = LEAST,
    jobs: int = 0,
    store: Store | None = None,
    say: Callable[[str], TrialsDone | None] = lambda _: None,
) -> HunkComparison:
    """Compares the kernels of two trees on paths, and searches the hunks that make the clearest difference.

    :param builder: makes kernels of the first tree with some of the hunks; it is prepared.
    :param least: smallest relative difference that is told.
    :param jobs: cores for trials; 0 is all.
    :param store: keeps the trials.
    :param say: called with what is done next; returns the function that takes its progress, or None.
    :raises TcpscapeError: where no scenario runs on both kernels.
    """
    first, second, hunks = builder.first, builder.second, builder.hunks
    both = KernelPair((Virtual.of_kernel(first), Virtual.of_kernel(second)), builder.names, (first.release, second.release), jobs, store)
    result = difference(both, scenarios, least, say)
    if not result.told:
        return HunkComparison(result, hunks, builder.left_out)
    told = clearest(result.told)
    progress = say(f"{told.metric.name} of {told.condition.id}")

    def measure(kernel: BuiltKernel, runs: int) -> list[float]:
        runner = Runner(Virtual.of_kernel(kernel), jobs, store=store, progress=progress)
        return [told.metric.of(trial) for trial in runner.run(told.condition.scenario, range(runs))]

    def build(part: Sequence[Hunk]) -> BuiltKernel:
        nonlocal progress
        progress = say(f"{len(part)} of {counted(len(hunks), 'hunk')}")
        return builder(part)

    sought = Sought(told, (measure(first, RUNS[-1]), measure(second, RUNS[-1])))
    return HunkComparison(result, hunks, builder.left_out, sought, search(hunks, judge_of(sought, build, measure)))


def judge_of(sought: Sought, build: Callable[[Sequence[Hunk]], K], measure: Callable[[K, int], Sequence[float]]) -> Judge:
    """Builds a part and measures it with more and more runs.

    :param build: makes the kernel; EngineError or HunkRefused where it cannot.
    :param measure: the metric of so many runs on that kernel.
    """

    def judge(hunks: Sequence[Hunk]) -> Verdict:
        try:
            kernel = build(hunks)
        except (HunkRefused, EngineError) as e:
            return Verdict(tuple(hunks), Shows.UNBUILT, why=str(e))
        verdict = Verdict(tuple(hunks), Shows.UNCLEAR)
        for runs in RUNS:
            values = [v for v in measure(kernel, runs) if math.isfinite(v)]
            if len(values) == runs and (verdict := sought.verdict(hunks, values)).shows is not Shows.UNCLEAR:
                break
        return verdict

    return judge
