"""The advice for a path in words: its sentence, its tables, its screen and its document; what it rests on is in :mod:`tcpscape.words.remarks`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from typing_extensions import TypedDict

from tcpscape.campaign import groups
from tcpscape.campaign.groups import Viewing
from tcpscape.controls.deployment import DEFAULT, Deployment
from tcpscape.findings import indicators
from tcpscape.findings.advice.answer import Advice, Standing, StandingNumbers
from tcpscape.findings.advice.assumptions import Assumption
from tcpscape.findings.advice.choice import GOALS, ChoiceVerdict
from tcpscape.findings.advice.levers import Lever
from tcpscape.findings.cliff.levels import Cliff
from tcpscape.findings.damage import Delay
from tcpscape.formats import printed
from tcpscape.scenario.options import Conditions
from tcpscape.stats import Estimate
from tcpscape.stats.comparison import is_alike
from tcpscape.text.numbers import UNKNOWN, Number, joined, number, percent, shares
from tcpscape.text.screen import Code, Screen
from tcpscape.text.table import Table, TableRow, table_of
from tcpscape.words import levers, paths, traffic
from tcpscape.words.remarks import RULES, against, brief_jitter, depends, fairness, lead, link_mbps, remarks
from tcpscape.words.sentences import caveat, runs_text
from tcpscape.words.terms import GLOSSES, glossed

WORTHWHILE = 1.1
"""A gain below this factor is shown as none."""
SAME = 0.005
"""Relative difference of goodputs below which congestion controls carry the same."""
MOST_ROWS = 9
"""Most congestion controls of the ranking without `verbose`, the recommended one and Linux's default among them."""
OWN_CLIFF = "its own cliff"
"""The column that says on which side of each congestion control's own cliff the path is."""
SIDES = {"stable": "before", "near the cliff": "near", "chaos zone": "in the chaos zone", "collapsed": "beyond"}
"""Where a path stands → the word for it behind the name of the column :data:`OWN_CLIFF`."""
DROPPED = ("limited by", "deployable")
"""Columns of the ranking that a narrow screen leaves out, the first one first; then `× BEST` and :data:`OWN_CLIFF`."""
SORTED = {
    "goodput": "",
    "delay": "Sorted by the added RTT; those that keep too little goodput last",
    "video": "Goodput and added RTT, sorted by the QoE of a viewer",
}
"""Goal → title of the ranking: what it is sorted by, where that is not its first column."""


class CliffDocument(TypedDict):
    """The cliff of a congestion control along jitter."""

    jitter_ns: float | None
    """Jitter each way at which half of the goodput is left, ns; null where there is none on the axis."""
    interval_ns: tuple[float | None, float | None] | None
    """Ends of its 95 % interval, ns; an open end is null."""
    bracket_ns: tuple[float | None, float | None] | None
    """Jitters between which it was searched, ns."""
    chaos_ns: tuple[float | None, float | None] | None
    """Ends of the chaos zone, ns; null where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingDocument(StandingNumbers):
    """One congestion control on the path of an advice."""

    deployable: bool
    """Whether the kernel has it."""
    side: str
    """The side of its cliff on which the path stands: stable, chaos, collapsed."""
    stands: str
    """The same, or that a stable path is near the cliff."""
    cliff: CliffDocument
    """Its cliff along jitter."""


class OrderDocument(TypedDict):
    """What the other assumption about the order of packets would give."""

    assumed: str
    """What was assumed of jitter: reorder, keep, clamp."""
    other: str
    """The other assumption."""
    choice: str | None
    """The congestion control to use under it; null where there is none."""
    changes: bool
    """Whether another congestion control would be recommended."""
    viewer: dict[str, Viewing]
    """Congestion control → what a viewer sees; empty without players."""
    goodput: dict[str, Estimate]
    """Congestion control → mean goodput, Mbit/s."""


class AdviceDocument(TypedDict):
    """Which congestion control to use on a path. What `tcpscape advise --json` prints, and `advice.json` of its directory.

    A number that is infinite or not known is null.
    """

    format: Literal[1]
    """Format of an advice."""
    path: Conditions
    """The path and its flows."""
    jitter_over_rtt: float
    """Jitter each way / RTT."""
    goal: str
    """What the best one is best in: goodput, delay, video."""
    choice: str | None
    """The congestion control to use; null where nothing can be recommended."""
    verdict: ChoiceVerdict
    """How certain that is."""
    by: str
    """The goal that decided, where those compared are as good by `goal` itself."""
    answer: str
    """The answer as a sentence."""
    why: str
    """The reason, as a clause."""
    leader: str | None
    """The better one of the two that were compared."""
    follower: str | None
    """The other one."""
    gain: Estimate | None
    """Of the leader over the follower: ratio of the means, or difference in the goal's unit."""
    more_runs: int | None
    """Further trials of each that would probably decide; null where it is decided."""
    command: str
    """The shell commands that set the congestion control until the next start; empty where nothing has to change."""
    deployment: Deployment | None
    """What to type on the machine that sends the data; null where nothing can be recommended."""
    order: OrderDocument | None
    """The other assumption about the order of packets; null without jitter."""
    share_beside_default: Estimate | None
    """Share of the goodput that flows under the choice get beside as many under Linux's default, a fraction."""
    harm_to_default: Estimate | None
    """How much less those carry than beside as many of their own kind, a fraction of that; below 0 where they carry more."""
    levers: list[Lever]
    """Congestion controls with one setting changed, those settings that may matter on this path; the largest lead first."""
    own_queue: bool
    """Whether the queue of the bottleneck is the user's own, so that others are tried there."""
    assumptions: list[Assumption]
    """What is assumed of the path, and the decisions where it is otherwise."""
    taken: list[str]
    """What of the path comes from a file, and what is assumed all the same; sentences."""
    cliff_runs: int
    """First trials of each level of a cliff."""
    trials: int
    """Number of trials that the answer rests on."""
    caveats: list[str]
    """What limits the validity, a sentence each."""
    best: str
    """The congestion control with the highest goodput among those that can be deployed."""
    ranking: list[StandingDocument]
    """Every congestion control, the best by the goal first."""


def screen(advice: Advice) -> Screen:
    """The answer as the command shows it."""
    scenario = advice.path.scenario(advice.ranking[0].cca)
    count = len(advice.outcome.cells[0].trials)
    path = f"{paths.in_words(scenario)}; {count} trial{'s' * (count > 1)} each, {advice.outcome.label}"
    return Screen(
        path,
        sentence(advice),
        remarks=[*advice.taken, *depends(advice), *([fair] if (fair := fairness(advice)) else []), *levers.remarks(advice), *remarks(advice)],
        tables=tables(advice),
        details=details(advice),
        caveats=advice.caveats,
    )


@table_of.register
def table(advice: Advice) -> Table:
    """The ranking, a row for each congestion control; the answer is its title."""
    return ranking(advice, title=sentence(advice), notes=[f"caveat: {caveat}" for caveat in advice.caveats])


def sentence(advice: Advice) -> str:
    """The whole answer, one sentence."""
    d = advice.decision
    if d.choice is None:
        return f"No recommendation: {reason(advice)}."
    verb = "Keep" if d.choice == DEFAULT else "Use"
    either = f" or {d.follower}" if d.verdict == "as good" and d.choice == d.leader != DEFAULT else ""
    control = f"{verb.lower() if advice.is_setting_first else verb} {d.choice}{either}: {reason(advice)}."
    return f"{levers.sentence(advice, advice.lever)} As it is, {control}" if advice.lever and advice.is_setting_first else control


def reason(advice: Advice) -> str:
    """Why, as a clause that follows from the numbers."""
    d = advice.decision
    if d.choice is None or d.verdict == "only":
        return _unopposed(advice)
    subject = "it" if d.leader == d.choice else d.leader
    ahead = lead(d, GOALS[d.by] if d.by else advice.goal, subject)
    if d.by:
        return f"{ahead}{_adds(advice.standing(d.choice), advice.standing(d.follower))}, which is no worthwhile difference"
    if d.verdict == "better":
        return _better(advice, ahead)
    if d.verdict == "as good":
        return _the_same(advice) or f"no worthwhile difference: {ahead}"
    return f"whether {subject} is better than {d.follower} is undecided ({ahead}), {runs_text(d.more)} would tell"


def _the_same(advice: Advice) -> str:
    """`cubic, reno and bbr carry the same, 19.0 Mbit/s`, where the goal is goodput and they do; nearly where digits differ; else empty."""
    own = advice.standing(advice.choice or "")
    near = [s for s in advice.ranking if not s.obstacle and _is_near(s.goodput, own.goodput)]
    names = [s.cca for s in near]
    if advice.goal.name != "goodput" or not {advice.decision.leader, advice.decision.follower} <= set(names):
        return ""
    digits = list(dict.fromkeys(s.goodput.cell(most=link_mbps(advice)).text for s in near))
    if len(digits) > 1:
        return f"{joined(names)} carry nearly the same, {digits[-1]} to {digits[0]} Mbit/s"
    return f"{joined(names)} carry the same, {own.goodput.text(most=link_mbps(advice))} Mbit/s"


def _is_near(one: Estimate, other: Estimate) -> bool:
    """Whether two goodputs, and the ends of their intervals, differ by less than is written."""
    return all(abs(x - y) <= SAME * y for x, y in ((one.value, other.value), (one.low, other.low), (one.high, other.high)))


def _unopposed(advice: Advice) -> str:
    """Why nothing can be recommended, or what the only one does that can."""
    names, profile = ", ".join(s.cca for s in advice.ranking), advice.path.kernel.profile
    if advice.decision.verdict == "none deployable":
        return f"Linux {profile} has none of {names}" if len(advice.ranking) > 1 else f"{names} is {advice.ranking[0].obstacle}"
    if advice.choice is None:
        return "nothing gets through this path with any of them"
    own = advice.standing(advice.choice)
    return f"it carries {own.goodput.text(most=link_mbps(advice))} Mbit/s{_adds(own)}, {_alone(advice)}"


def _alone(advice: Advice) -> str:
    """Why there is nothing to choose from."""
    others = [s for s in advice.ranking if s.cca != advice.choice]
    if not others:
        return "and there is nothing to compare it with"
    if all(s.obstacle for s in others):
        return "and is the only one that can be deployed"
    return f"and is the only one for which the goal holds ({RULES[advice.goal.name]})"


def _adds(own: Standing, other: Standing | None = None) -> str:
    """` and adds 17 ms to the RTT (95th percentile; cubic 3 ms)`; nothing where the engine does not see it."""
    if math.isnan(own.added_rtt.value):
        return ""
    against = f"; {other.cca} {_ms(other.added_rtt)} ms" if other and not math.isnan(other.added_rtt.value) else ""
    return f" and adds {_ms(own.added_rtt)} ms to the RTT (95th percentile{against})"


def _better(advice: Advice, ahead: str) -> str:
    """The lead with what else it brings; for a viewer, what is seen comes first."""
    d = advice.decision
    view = view_of(advice, d.leader) if advice.goal.name == "video" else None
    if view and d.gain:
        return f"a viewer sees {against(view, d.follower, view_of(advice, d.follower))} (QoE +{d.gain.text()})"
    return f"{ahead}{_beside(advice)}"


def _beside(advice: Advice) -> str:
    """What the better one does besides what the goal counts."""
    d, own = advice.decision, advice.standing(advice.choice or "")
    if advice.goal.name == "delay":
        return f", and carries {percent(own.against_best.value)} of the best goodput ({advice.best})"
    return _adds(own, advice.standing(d.follower))


def view_of(advice: Advice, cca: str) -> Viewing | None:
    """What a viewer sees on the path as it is."""
    return next((groups.viewer(cell.trials) for cell in advice.outcome.cells if cell.cca == cca), None)


def _ms(estimate: Estimate) -> str:
    return number(max(0.0, estimate.value), 2)


def ranking(advice: Advice, title: str | None = None, notes: Sequence[str] = (), *, every: bool = True) -> Table:
    """A row for each congestion control, the best by the goal first; `every`: also where they are many."""
    against = f"× {advice.best} [95 %]"
    columns = ("cca", "goodput Mbit/s, mean [95 %]", "added RTT p95 ms [95 %]", against, OWN_CLIFF, "deployable", "limited by")
    shown = advice.ranking if every else _first(advice)
    rows = [
        (
            s.cca,
            s.goodput.cell(most=link_mbps(advice)),
            s.added_rtt.cell(),
            Number.count(1) if s.cca == advice.best else s.against_best.cell(),
            SIDES[s.stands],
            s.obstacle or "yes",
            shares(s.limited_by),
        )
        for s in shown
    ]
    name = SORTED[advice.goal.name] if title is None else title
    terms = ["cliff"] * bool(advice.path.jitter) + ["chaos zone"] * (bool(advice.path.jitter) and any(s.stands == "chaos zone" for s in shown))
    notes = [*glossed(terms), *notes]
    table = Table(columns, rows, title=name, notes=notes, drop=(*DROPPED, against, OWN_CLIFF), words=(OWN_CLIFF, "deployable", "limited by"))
    idle = [*([OWN_CLIFF] if not advice.path.jitter else []), *(["deployable"] if not any(s.obstacle for s in shown) else [])]
    return functools.reduce(Table.without, idle, table)


def tables(advice: Advice) -> tuple[Table | Code, ...]:
    """What is always shown: what viewers see where that is the goal, the ranking, and what to type."""
    deploy = advice.deployment
    lines = [Code((deploy.command,), "As root on the sender (permanently, verify, go back: --verbose):")] if deploy and deploy.now else []
    lines += levers.typed(advice)
    settings = levers.shown(advice)
    views = [_viewers(advice, {c.cca: v for c in advice.outcome.cells if (v := groups.viewer(c.trials))})] if advice.goal.name == "video" else []
    return (*views, ranking(advice, notes=notes(advice), every=False), *([levers.table(advice, settings)] if settings else []), *lines)


def is_typed(advice: Advice) -> bool:
    """Whether anything is to be typed on a host, so that there is something to verify and to undo."""
    return bool((advice.deployment and advice.deployment.now) or levers.deployments(advice))


def _viewers(advice: Advice, views: Mapping[str, Viewing], title: str = "What a viewer sees") -> Table:
    """A row for each congestion control, in the order of the ranking."""
    order = sorted((s.cca for s in advice.ranking if s.cca in views), key=lambda cca: -views[cca].qoe.value)
    rows = [traffic.view_row(cca, views[cca]) for cca in order]
    return Table(traffic.VIEW_COLUMNS, rows, title=f"{title}, sorted by QoE", drop=("switches", "without stall", "stalls", "start-up s"))


def _first(advice: Advice) -> tuple[Standing, ...]:
    """The first of a long ranking, with the recommended one and Linux's default."""
    if len(advice.ranking) <= MOST_ROWS + 1:
        return advice.ranking
    wanted = {s.cca for s in advice.ranking if s.cca in (advice.choice, DEFAULT)}
    others = [s.cca for s in advice.ranking if s.cca not in wanted][: MOST_ROWS - len(wanted)]
    return tuple(s for s in advice.ranking if s.cca in wanted or s.cca in others)


def notes(advice: Advice) -> list[str]:
    """What the table leaves out, what its column of cliffs is about, and that nothing has to change."""
    lines = []
    if hidden := len(advice.ranking) - len(_first(advice)):
        lines.append(f"{hidden} more congestion controls: --verbose")
    if blocked := [s.cca for s in advice.ranking if s.obstacle]:
        lines.append(f"Not deployable, never recommended: {', '.join(blocked)}.")
    d = advice.decision
    higher = next((s for s in advice.ranking if not s.obstacle), None)
    is_first = higher is None or higher.cca == d.choice
    if advice.path.jitter and d.choice == d.leader and d.choice and advice.standing(d.choice).side == "collapsed":
        best = ", and still the best here" if is_first else ""
        lines.append(f"{d.choice} is beyond its own cliff{best}.")
    if d.verdict == "better" and higher and not is_first:
        runs = higher.goodput.n
        lines.append(f"{higher.cca} has the better mean, but {runs} runs do not make its lead sure: try --seeds {4 * runs}.")
    if advice.deployment and not advice.deployment.now:
        lines.append(f"Nothing to change: {advice.choice} is Linux's default.")
    return lines


def details(advice: Advice) -> list[Table | Code | str]:
    """What `--verbose` shows: deployment, all rows, spread and runs, the cliff, the damage, the published rule."""
    parts: list[Table | Code | str] = []
    if advice.deployment and advice.deployment.now:
        parts += [" ".join(("What to type.", *advice.deployment.notes)), Code(advice.deployment.lines())]
    if len(levers.shown(advice)) < len(advice.levers):
        parts.append(levers.table(advice, advice.levers, "Every setting that was tried"))
    for _, text, d in levers.deployments(advice):
        parts += [" ".join((f"What to type for {text}.", *d.notes)), Code(d.lines())]
    if advice.goal.name == "video" and advice.other_order and advice.other_order.views:
        parts.append(_viewers(advice, advice.other_order.views, f"What a viewer sees with --order {advice.other_order.order}"))
    if len(_first(advice)) < len(advice.ranking):
        parts.append(ranking(advice, "Every congestion control"))
    link = link_mbps(advice)
    runs = [
        (s.cca, Number.percent(s.cv.value), Number.count(s.needed), s.median.cell(most=link), Number.of(s.retransmits.value)) for s in advice.ranking
    ]
    needed = "runs for ±10 %"
    notes = [f"{needed}: {GLOSSES[needed]} of the mean"]
    parts.append(Table(("cca", "CV", needed, "goodput Mbit/s, median [95 %]", "retransmits"), runs, title="The runs", notes=notes))
    if any(s.cliff for s in advice.ranking):
        parts.append(_cliffs(advice))
    if any(s.damage for s in advice.ranking):
        heads = ("cca", "without", "Mbit/s [95 %]", "gain [95 %]", "delay of the data, overtaken", "how it is taken away")
        rows = [row for s in advice.ranking for row in _damage_rows(s)]
        title = "What does the damage (goodput on the same path without it)"
        missing = [f"The engine cannot run it without {', '.join(advice.left_out)}."] if advice.left_out else []
        parts.append(Table(heads, rows, left=2, title=title, notes=missing, drop=(heads[4], heads[5], heads[2]), words=("how it is taken away",)))
    return parts


def _cliffs(advice: Advice) -> Table:
    """Where the measured cliff is, and what the published rule says of this path."""
    columns = ("cca", "cliff [95 %]", "chaos zone", "this path is")
    rows = [(s.cca, _edge(s.cliff), _zone(s.cliff), SIDES[s.stands]) for s in advice.ranking if s.cliff]
    title = "Where the cliff is on this path (jitter at which half of the goodput is gone)"
    return Table(columns, rows, left=4, title=title, notes=[*_published(advice)], drop=("chaos zone",))


def _published(advice: Advice) -> Iterator[str]:
    """The published rule of jitter / RTT, with its verdict, where it applies: to normal jitter that reorders."""
    path = advice.path
    if path.jitter and (path.order, path.distribution) == ("reorder", "normal"):
        zone = indicators.zone(path.jitter, path.rtt)
        yield f"Published rule: jitter of {percent(advice.jitter_ratio)} of the RTT is {zone!r}; {indicators.ZONE_VERDICT}."


def _edge(cliff: Cliff) -> str:
    if not cliff.levels:
        return "nothing gets through even without jitter"
    if cliff.edge is None:
        return f"none up to {brief_jitter(cliff.levels[-1].at)}"
    low, high = (percent(x / cliff.axis.harsh) for x in (cliff.edge.low, cliff.edge.high))
    return f"{brief_jitter(cliff.edge.value)} [{brief_jitter(cliff.edge.low)}, {brief_jitter(cliff.edge.high)}], {low} to {high} of RTT"


def _zone(cliff: Cliff) -> str:
    if cliff.zone is None:
        return "none seen"
    low, high = cliff.zone
    return f"around {brief_jitter(low)}" if low == high else f"{brief_jitter(low)} to {brief_jitter(high)}"


def _damage_rows(s: Standing) -> Iterator[TableRow]:
    for d in s.damage:
        gain, mark = d.gain.cell(), "x" if d.gain.value >= WORTHWHILE else "(none)"
        shown = Number(gain.value, "none") if is_alike(d.gain) else replace(gain, interval=f"{gain.interval} {mark}".lstrip())
        yield s.cca, d.ingredient, d.goodput.cell(), shown, _delay(d.achieved.data), d.how


def _delay(delay: Delay | None) -> Number:
    """`13.0 ± 6.9 ms, 82 %`: mean and standard deviation over the packets, and the share that was overtaken."""
    return Number(delay.mean_ms, f"{delay.mean_ms:.1f} ± {delay.sd_ms:.1f} ms, {percent(delay.overtaken)}") if delay else UNKNOWN


def document(advice: Advice) -> dict[str, Any]:
    """What `--json` prints of an advice."""
    d, deploy = advice.decision, advice.deployment
    values = AdviceDocument(
        format=1,
        path=advice.path,
        jitter_over_rtt=advice.jitter_ratio,
        goal=advice.goal.name,
        choice=d.choice,
        verdict=d.verdict,
        by=d.by or advice.goal.name,
        answer=sentence(advice),
        why=reason(advice),
        leader=d.leader or None,
        follower=d.follower or None,
        gain=d.gain,
        more_runs=d.more or None,
        command=advice.command,
        deployment=deploy,
        order=_order(advice),
        share_beside_default=advice.shared.share if advice.shared else None,
        harm_to_default=advice.shared.harm if advice.shared else None,
        levers=list(advice.levers),
        own_queue=advice.own_queue,
        assumptions=list(advice.assumptions),
        taken=list(advice.taken),
        cliff_runs=advice.cliff_runs,
        trials=advice.trials,
        caveats=list(advice.caveats),
        best=advice.best,
        ranking=[_standing(s) for s in advice.ranking],
    )
    return printed(AdviceDocument, values, caveat=caveat)


def _order(advice: Advice) -> OrderDocument | None:
    other = advice.other_order
    if other is None:
        return None
    return OrderDocument(
        assumed="keep" if advice.path.order == "correlated" else advice.path.order,
        other=other.order,
        choice=other.decision.choice if other.decision else None,
        changes=other.changes,
        viewer=other.views,
        goodput=other.goodputs,
    )


def _standing(s: Standing) -> StandingDocument:
    edge = s.cliff.edge if s.cliff else None
    cliff = CliffDocument(
        jitter_ns=edge.value if edge else None,
        interval_ns=(edge.low, edge.high) if edge else None,
        bracket_ns=s.cliff.bracket if s.cliff else None,
        chaos_ns=s.cliff.zone if s.cliff else None,
    )
    numbers = {field.name: getattr(s, field.name) for field in fields(StandingNumbers)}
    return StandingDocument(**numbers, deployable=not s.obstacle, side=s.side, stands=s.stands, cliff=cliff)
