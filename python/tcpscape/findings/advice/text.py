"""The sentences and tables of an advice."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpscape import units
from tcpscape.campaign import video
from tcpscape.campaign.sentences import times
from tcpscape.controls.deployment import DEFAULT
from tcpscape.findings import indicators
from tcpscape.findings.advice.choice import GOALS
from tcpscape.findings.advice.data import AdviceData
from tcpscape.stats import Estimate
from tcpscape.stats.estimate import number
from tcpscape.tables import Table, percent, shares

if TYPE_CHECKING:
    from tcpscape.findings.advice.choice import Decision, Goal
    from tcpscape.findings.advice.standing import Standing
    from tcpscape.findings.cliff.levels import Cliff
    from tcpscape.findings.damage import Delay

WORTHWHILE = 1.1
"""A gain below this factor is shown as none."""
MOST_ROWS = 9
"""Most congestion controls of the ranking without `verbose`, the recommended one and Linux's default among them."""
DROPPED = ("limited by", "deployable")
"""Columns of the ranking that a narrow screen leaves out, the first one first; then `× BEST` and `stands`."""
ORDERS = {
    "reorder": "jitter reorders packets, as netem does", "correlated": "jitter keeps the order of packets (a delay correlated in time)",
    "clamp": "jitter keeps the order of packets: late ones hold up those behind them, which raises the mean delay",
}  # fmt: skip
"""What each order means for packets."""


def sentence(advice: AdviceData) -> str:
    """The whole answer, one sentence."""
    d = advice.decision
    if d.choice is None:
        return f"No recommendation: {reason(advice)}."
    verb = "Keep" if d.choice == DEFAULT else "Use"
    either = f" or {d.follower}" if d.verdict == "as good" and d.choice == d.leader != DEFAULT else ""
    return f"{verb} {d.choice}{either}: {reason(advice)}."


def reason(advice: AdviceData) -> str:
    """Why, as a clause that follows from the numbers."""
    d = advice.decision
    if d.choice is None or d.verdict == "only":
        return _unopposed(advice)
    subject = "it" if d.leader == d.choice else d.leader
    lead = _lead(d, GOALS[d.by] if d.by else advice.goal, subject)
    if d.by:
        return f"{lead}{_adds(advice.standing(d.choice), advice.standing(d.follower))}, which is no worthwhile difference"
    if d.verdict == "better":
        return f"{lead}{_beside(advice)}"
    if d.verdict == "as good":
        return f"no worthwhile difference: {lead}"
    return f"whether {subject} is better than {d.follower} is undecided ({lead}), {d.more_text} would tell"


def _unopposed(advice: AdviceData) -> str:
    """Why nothing can be recommended, or what the only one does that can."""
    names, profile = ", ".join(s.cca for s in advice.ranking), advice.path.kernel.profile
    if advice.decision.verdict == "none deployable":
        return f"Linux {profile} has none of {names}" if len(advice.ranking) > 1 else f"{names} is {advice.ranking[0].obstacle}"
    if advice.choice is None:
        return "nothing gets through this path with any of them"
    own = advice.standing(advice.choice)
    return f"it carries {own.goodput.text(most=_link(advice))} Mbit/s{_adds(own)}, {_alone(advice)}"


def _alone(advice: AdviceData) -> str:
    """Why there is nothing to choose from."""
    others = [s for s in advice.ranking if s.cca != advice.choice]
    if not others:
        return "and there is nothing to compare it with"
    if all(s.obstacle for s in others):
        return "and is the only one that can be deployed"
    return f"and is the only one for which the goal holds ({advice.goal.rule})"


def _lead(d: Decision, goal: Goal, subject: str) -> str:
    """`it carries 1.76 × cubic [1.50, 2.01]`."""
    if d.gain is None:
        return ""
    if math.isnan(d.gain.value):
        return f"{subject} carries something, {d.follower} nothing"
    gain, bracket, interval = d.gain.text().partition(" [")
    return goal.lead.format(leader=subject, gain=gain, follower=d.follower, interval=bracket + interval)


def _adds(own: Standing, other: Standing | None = None) -> str:
    """` and adds 17 ms to the RTT (95th percentile; cubic 3 ms)`; nothing where the engine does not see it."""
    if math.isnan(own.added_rtt.value):
        return ""
    against = f"; {other.cca} {_ms(other.added_rtt)} ms" if other and not math.isnan(other.added_rtt.value) else ""
    return f" and adds {_ms(own.added_rtt)} ms to the RTT (95th percentile{against})"


def _beside(advice: AdviceData) -> str:
    """What the better one does besides what the goal counts."""
    d, own = advice.decision, advice.standing(advice.choice or "")
    if advice.goal.name == "delay":
        return f", and carries {percent(own.against_best.value)} of the best goodput ({advice.best})"
    cell = next(cell for cell in advice.outcome.cells if cell.cca == own.cca)
    if advice.goal.name == "video" and (view := video.viewer(cell.trials)):
        return f": {video.seen(view)}"
    return _adds(own, advice.standing(d.follower))


def _ms(estimate: Estimate) -> str:
    return number(max(0.0, estimate.value), 2)


def _link(advice: AdviceData) -> float | None:
    return advice.path.rate / 1e6 if advice.path.rate else None


def remarks(advice: AdviceData) -> Iterator[str]:
    """The rule of the goal where it is not the usual one, and the assumption about the order of packets with what depends on it."""
    if advice.goal.name != "goodput":
        yield f"Goal {advice.goal.name}: {advice.goal.rule}."
    if shared := advice.shared:
        count = advice.path.flows
        flows = f"{'a' if count == 1 else count} {DEFAULT} flow{'s' * (count > 1)}"
        interval = f" [{100 * shared.low:.0f}, {100 * shared.high:.0f}]" if shared.n > 1 else ""
        yield f"Beside {flows} on this path it gets {percent(shared.value)}{interval} of the goodput."
    other = advice.other_order
    if other is None:
        return
    assumed = f"Assumed: {ORDERS[advice.path.order]}."
    condition = f"If it {'keeps the order' if other.order == 'keep' else 'reorders them'} (--order {other.order})"
    if other.decision is None:
        yield f"{assumed} The other case (--order {other.order}) needs --engine model."
        return
    d = other.decision
    shown = d.leader or d.choice
    if d.choice is None or shown is None:
        yield f"{assumed} {condition}, nothing gets through."
        return
    if advice.goal.is_ratio:
        carried = f"{shown} carries {other.goodputs[shown].text(most=_link(advice))} Mbit/s"
        lead = f", {times(d.gain, d.follower)}" if d.gain and not math.isnan(d.gain.value) else ""
    else:
        goal = GOALS[d.by] if d.by else advice.goal
        carried, lead = _lead(d, goal, shown) or f"{shown} is the only one for which the goal holds", ""
    same = "undecided" if d.verdict == "undecided" else f"use {d.choice} then" if other.changes else "the same choice"
    yield f"{assumed} {condition}, {carried}{lead}: {same}."


def ranking(advice: AdviceData, title: str = "", notes: Sequence[str] = (), *, every: bool = True) -> Table:
    """A row for each congestion control, the best by the goal first; `every`: also where they are many."""
    against = f"× {advice.best} [95 %]"
    columns = ("cca", "goodput Mbit/s, mean [95 %]", "added RTT p95 ms [95 %]", against, "stands", "deployable", "limited by")
    shown = advice.ranking if every else _first(advice)
    rows = [
        (
            s.cca, s.goodput.text(most=_link(advice)), s.added_rtt.text(), "1" if s.cca == advice.best else s.against_best.text(), s.stands,
            s.obstacle or "yes", shares(s.limited_by),
        )
        for s in shown
    ]  # fmt: skip
    table = Table(columns, rows, title=title, notes=notes, drop=(*DROPPED, against, "stands"), words=("stands", "deployable", "limited by"))
    idle = [*(["stands"] if not advice.path.jitter else []), *(["deployable"] if not any(s.obstacle for s in shown) else [])]
    return functools.reduce(Table.without, idle, table)


def tables(advice: AdviceData) -> tuple[Table, ...]:
    """What is always shown: the ranking, and what viewers see where there are any."""
    if advice.goal.name != "video":
        return (ranking(advice, notes=notes(advice), every=False),)
    order = [s.cca for s in advice.ranking]
    (view,) = video.tables(advice.outcome)
    rows = sorted(view.rows, key=lambda row: order.index(row[0]))
    seen = replace(view, rows=rows, drop=("switches", "without stall", "stalls", "start-up s"), notes=notes(advice))
    return ranking(advice, every=False), seen


def _first(advice: AdviceData) -> tuple[Standing, ...]:
    """The first of a long ranking, with the recommended one and Linux's default."""
    if len(advice.ranking) <= MOST_ROWS + 1:
        return advice.ranking
    wanted = {s.cca for s in advice.ranking if s.cca in (advice.choice, DEFAULT)}
    others = [s.cca for s in advice.ranking if s.cca not in wanted][: MOST_ROWS - len(wanted)]
    return tuple(s for s in advice.ranking if s.cca in wanted or s.cca in others)


def notes(advice: AdviceData) -> list[str]:
    """What to type, in one line, behind what the table leaves out."""
    lines = []
    if hidden := len(advice.ranking) - len(_first(advice)):
        lines.append(f"{hidden} more congestion controls: --verbose")
    if blocked := [s.cca for s in advice.ranking if s.obstacle]:
        lines.append(f"Not deployable, never recommended: {', '.join(blocked)}.")
    deploy = advice.deployment
    if deploy and deploy.now:
        lines.append(f"Deploy, as root on the sender: {deploy.command}; permanently, verify, go back: --verbose")
    elif deploy:
        lines.append(f"Nothing to change: {advice.choice} is Linux's default.")
    return lines


def details(advice: AdviceData) -> list[Table | str]:
    """What `--verbose` shows: deployment, all rows, spread and runs, the cliff, the damage, the published rule."""
    parts: list[Table | str] = []
    if advice.deployment:
        parts.append("\n".join((" ".join(("What to type.", *advice.deployment.notes)), *advice.deployment.lines())))
    if len(_first(advice)) < len(advice.ranking):
        parts.append(ranking(advice, "Every congestion control"))
    runs = [(s.cca, percent(s.cv.value), str(s.needed), s.median.text(most=_link(advice)), number(s.retransmits.value)) for s in advice.ranking]
    parts.append(Table(("cca", "CV", "runs for ±10 %", "goodput Mbit/s, median [95 %]", "retransmits"), runs, title="The runs"))
    parts.append(_cliffs(advice))
    if any(s.damage for s in advice.ranking):
        heads = ("cca", "without", "Mbit/s [95 %]", "gain [95 %]", "delay of the data, overtaken", "how it is taken away")
        rows = [row for s in advice.ranking for row in _damage_rows(s)]
        title = "What does the damage (goodput on the same path without it)"
        missing = [f"The engine cannot run it without {', '.join(advice.left_out)}."] if advice.left_out else []
        parts.append(Table(heads, rows, left=2, title=title, notes=missing, drop=(heads[4], heads[5], heads[2]), words=("how it is taken away",)))
    return parts


def _cliffs(advice: AdviceData) -> Table:
    """Where the measured cliff is, and what the published rule says of this path."""
    columns = ("cca", "cliff [95 %]", "chaos zone", "you stand")
    rows = [(s.cca, _edge(s.cliff), _zone(s.cliff), s.stands) for s in advice.ranking]
    title = "Where the cliff is on this path (jitter at which half of the goodput is gone)"
    return Table(columns, rows, left=4, title=title, notes=[*_published(advice)], drop=("chaos zone",))


def _published(advice: AdviceData) -> Iterator[str]:
    """The published rule of jitter / RTT, with its verdict, where it applies: to normal jitter that reorders."""
    path = advice.path
    if path.jitter and (path.order, path.distribution) == ("reorder", "normal"):
        zone = indicators.zone(path.jitter, path.rtt)
        yield f"Published rule: jitter of {percent(advice.jitter_ratio)} of the RTT is {zone!r}; {indicators.ZONE_VERDICT}."


def _edge(cliff: Cliff) -> str:
    if not cliff.levels:
        return "nothing gets through even without jitter"
    if cliff.edge is None:
        return f"none up to {_jitter(cliff.levels[-1].at)}"
    low, high = (percent(x / cliff.axis.harsh) for x in (cliff.edge.low, cliff.edge.high))
    return f"{_jitter(cliff.edge.value)} [{_jitter(cliff.edge.low)}, {_jitter(cliff.edge.high)}], {low} to {high} of RTT"


def _jitter(ns: float) -> str:
    return units.brief_time(ns) if math.isfinite(ns) else "more"


def _zone(cliff: Cliff) -> str:
    if cliff.zone is None:
        return "none seen"
    low, high = cliff.zone
    return f"around {_jitter(low)}" if low == high else f"{_jitter(low)} to {_jitter(high)}"


def _damage_rows(s: Standing) -> Iterator[tuple[str, ...]]:
    for d in s.damage:
        gain = d.gain.text() + (" x" if d.gain.value >= WORTHWHILE else " (none)")
        yield s.cca, d.ingredient, d.goodput.text(), gain, _delay(d.achieved.data), d.how


def _delay(delay: Delay | None) -> str:
    """`13.0 ± 6.9 ms, 82 %`: mean and standard deviation over the packets, and the share that was overtaken."""
    return f"{delay.mean_ms:.1f} ± {delay.sd_ms:.1f} ms, {percent(delay.overtaken)}" if delay else "–"
