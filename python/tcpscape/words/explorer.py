"""What the explorer says beside the sentences of the command line: the side of a cliff, what an answer assumes, a kernel beside the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from tcpscape import stats, units
from tcpscape.campaign.outcome import Outcome
from tcpscape.findings.cliff.levels import HALF, Level
from tcpscape.scenario.path import Netem
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import ALIKE
from tcpscape.text.numbers import percent
from tcpscape.words import paths, sentences

Side = Literal["before", "past", "on"]
"""Where a congestion control is to its cliff; `on`: undecided, or in the chaos zone."""


def side(label: str, here: Level, which: Side, along: str) -> str:
    """On which side of its cliff a congestion control is. `here`: its goodput over that without the impairment `along`."""
    why = "" if which != "on" else ", in its chaos zone: single runs differ much" if here.chaotic else ", undecided"
    return f"{label} is {which} its cliff{why}; it keeps {here.retention.percent()} of its goodput without {along}."


def nothing_without(label: str, along: str) -> str:
    """There is no cliff of what carries nothing anyway."""
    return f"{label} carries nothing without {along} either."


def assumptions(outcome: Outcome, along: str) -> Iterator[str]:
    """What an answer assumes: the path, the trials, what the impairment is, and what a cliff is. `along`: the impairment; empty without one."""
    scenario = outcome.cells[0].scenarios[0]
    yield paths.in_words(scenario)
    yield f"{units.counted(len(outcome.cells[0].trials), 'trial')} each, seeds from 0, {outcome.label}; the same seeds for all"
    if len(outcome.cells[0].ccas) > 1:
        yield "each row is the sum of the flows of a congestion control, each over its own time"
    jittery = next((hop for hop in (*scenario.forward, *scenario.reverse) if isinstance(hop, Netem) and hop.jitter), None)
    if jittery:
        yield paths.jitter_meaning(jittery.distribution, jittery.order)
    if along:
        yield (
            f"past its cliff is below {percent(HALF)} of the mean goodput of the same path without {along}, under the same seeds; "
            f"all else, the RTT and the buffers too, is taken to stay; `tcpscape cliff` searches for the edge itself"
        )


def check(ratios: Mapping[str, Estimate | None], engine: str, done: int) -> str:
    """What a check on a kernel says so far. A difference is one whose interval excludes 1, and that is not small; what is open is said to be.

    :param ratios: congestion control → kernel / model, None before there is one.
    """
    known = {cca: ratio for cca, ratio in ratios.items() if ratio is not None}
    if not done:
        return f"The first trial on {engine} runs."
    if len(known) < len(ratios) or any(ratio.n < 2 for ratio in known.values()):
        return f"{units.counted(done, 'trial')} on {engine} so far: one run of each has no interval, so it tells no difference."
    differing = {cca: ratio for cca, ratio in known.items() if ratio.excludes(1) and not stats.is_alike(ratio)}
    if differing:
        told = ", ".join(f"{ratio.text()} × under {cca}" for cca, ratio in differing.items())
        return f"The kernel and the model differ: the kernel carries {told} what the model does."
    if undecided := {cca: ratio for cca, ratio in known.items() if not stats.is_alike(ratio)}:
        cca, ratio = max(undecided.items(), key=lambda item: item[1].high - item[1].low)
        more = sentences.runs_text(stats.runs_missing(ratio))
        told = f" {more[0].upper()}{more[1:]} would probably decide." if more else ""
        open_ = f"under {cca} the kernel carries {ratio.text()} × what the model does"
        return f"{units.counted(ratio.n, 'run')} of each show no difference, and leave one open: {open_}.{told}"
    return f"The kernel and the model agree within {percent(ALIKE)}."
