"""The answer of a campaign as a sentence: which congestion control carries more, how flows share, from where to where a metric goes.

A sentence names what differs, by how much, with the interval; where the runs do not decide, it says so. Ratios are of means, paired where the seeds
are the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from tcpscape import metrics, stats
from tcpscape.campaign import groups
from tcpscape.campaign.groups import Group
from tcpscape.campaign.outcome import Cell, Outcome, estimates, ratios
from tcpscape.metrics.base import Metric
from tcpscape.metrics.flows import jain_index, limits
from tcpscape.scenario import bottleneck
from tcpscape.stats import Caveat, Estimate, Weakness
from tcpscape.text.numbers import number, percent
from tcpscape.units import counted
from tcpscape.words import traffic

MOST_NAMED = 3
"""Most congestion controls whose delays a sentence has."""
APP_LIMITED = 0.5
"""Share of its time from which a flow counts as limited by its application."""
EVEN = 1.1
"""Share over the equal share up to which flows are said to share evenly."""
UNSURE = 1.3
"""Share over the equal share that the interval of a share may reach where flows are said to share evenly without reserve."""
EVEN_INDEX = 0.95
"""Jain's index from which several points count as even alike."""
CAVEATS: Mapping[Weakness, str] = {
    Weakness.FEW: "{n} values: the interval holds only where they are near normal",
    Weakness.UNSEEN_MODE: "{n} values: a mode with a share below {percent:.0f} % may be unseen",
    Weakness.SKEWED: "skewed values: seldom runs may raise the CV beyond its interval",
    Weakness.OPEN: "{n} values cannot bound it{side}; {needed} can",
    Weakness.FEW_PAIRS: "{n} values: few for a win probability",
    Weakness.MEAN_NOT_POSITIVE: "a CV of values whose mean is not positive has no interval",
    Weakness.NEGATIVE: "a ratio of values that are negative has no interval",
    Weakness.ONE_SAMPLE: "one sample",
}
"""What weakens an interval → its sentence."""


Point = tuple[tuple[str, str], ...]
"""Values of the axes: (axis, value) …"""


def caveat(of: Caveat) -> str:
    """`3 values: the interval holds only where they are near normal`."""
    side = " above" if of.limit > 0.5 else " below" if of.limit < 0.5 else ""
    return CAVEATS[of.weakness].format(n=of.n, percent=100 * of.limit, side=side, needed=of.needed)


def caveats(estimates: Iterable[Estimate]) -> list[str]:
    """What weakens these estimates, each once."""
    return list(dict.fromkeys(caveat(estimate.caveat) for estimate in estimates if estimate.caveat))


SAME = 0.005
"""Difference of a ratio from 1 below which two carry the same, as it is written."""


def run_answer(outcome: Outcome) -> str:
    """The answer of a run as a sentence: who carries more, by which factor, and what it adds to the RTT."""
    cells = outcome.cells
    if len(cells) > 1:
        return _comparison(cells)
    cell = cells[0]
    if not cell.trials[0].flows:
        nothing = "No TCP connection carried data that is known of." if cell.scenarios[0].programs else "There is no flow."
        return next(iter(traffic.sentences(outcome)), nothing)
    of = groups.of(cell)
    if len({(group.direction, group.place) for group in of}) > 1:
        return _network(cell, of)
    return _mixture(cell, of) if len(of) > 1 else _single(cell)


def _single(cell: Cell) -> str:
    """What one congestion control carries."""
    link = bottleneck.link_mbps(cell.scenarios[0])
    share = cell.mean().value / link if link else 0
    full = f" ({percent(share) if share <= 1 else 'all'} of the link)" if link else ""
    return f"{cell.cca} carries {cell.mean().text(most=link)} Mbit/s{full}{_added(cell)}."


def _network(cell: Cell, of: Sequence[Group]) -> str:
    """What each group carries where they do not share one way: shares of each direction, or of groups that use other links their own goodput."""
    adds = f" The flows add {_ms(added)} to the RTT (95th percentile)." if (added := _added_rtt(cell)) else ""
    texts = []
    for direction in dict.fromkeys(group.direction for group in of):
        ways = [group for group in of if group.direction == direction]
        own = [f"{_short(group)} {_carried(cell, group)}" for group in ways]
        if len(ways) > 1 and len({group.place for group in ways}) == 1:
            shares = [f"{_short(group)} {percent(carried(cell, [group]).value / (carried(cell, ways).value or math.nan))}" for group in ways]
            own = [f"{_carried(cell, *ways)} ({', '.join(shares)})"]
        texts.append(f"{direction} {', '.join(own)}" if len({group.direction for group in of}) > 1 else ", ".join(own))
    return f"{'The flows carry ' if len(texts) > 1 else 'Carried: '}{'; '.join(texts)}.{adds}"


def _short(group: Group) -> str:
    """The title of a group without its direction."""
    return group.title.replace(f" {group.direction}", "", 1)


def _mixture(cell: Cell, of: Sequence[Group]) -> str:
    """How groups share the path; flows that their applications limit take what they need, and have no part in that."""
    flows = {group: [flow for trial in cell.trials for flow in group.of(trial)] for group in of}
    greedy = [group for group in of if limits(flows[group]).get("app", 0.0) < APP_LIMITED]
    counts = {group: len(group.numbers) for group in of}
    needs = [f"{group.title} takes the {_carried(cell, group)} of its application" for group in of if group not in greedy]
    adds = f" The flows add {_ms(added)} to the RTT (95th percentile)." if (added := _added_rtt(cell)) else ""
    beside = f"; {', '.join(needs)}" if needs else ""
    if len(greedy) < 2:
        alone = [f"{group.title} carries {_carried(cell, group)}" for group in greedy]
        text = "; ".join([*alone, *needs])
        return f"{text[0].upper() if not alone else text[0]}{text[1:]}.{adds}"
    total = [sum(f.goodput_mbps for group in greedy for f in group.of(trial)) for trial in cell.trials]
    shares_of = {group: stats.ratio([sum(f.goodput_mbps for f in group.of(t)) for t in cell.trials], total) for group in greedy}
    over_equal = {group: shares_of[group].value * sum(counts[g] for g in greedy) / counts[group] for group in greedy}
    order = sorted(greedy, key=lambda group: -over_equal[group])
    parts = [f"{group.title} {shares_of[group].percent()}" for group in order]
    even = over_equal[order[0]] < EVEN
    highest = max(shares_of[group].high * sum(counts[g] for g in greedy) / counts[group] for group in greedy)
    certain = "" if not even or not highest > UNSURE else " on average, though not surely"
    verdict = f"The flows share evenly{certain}" if even else f"{order[0].title} gets {number(over_equal[order[0]], 2)} × its equal share"
    index = stats.mean([jain_index([f.goodput_mbps for group in greedy for f in group.of(trial)]) for trial in cell.trials])
    return f"{verdict}: {parts[0]} of {_carried(cell, *greedy)}, {', '.join(parts[1:])}; Jain's index {_jain(index)}{beside}.{adds}"


def _jain(index: Estimate) -> str:
    """The index with its interval, which as one of a mean may pass 1, the index's largest value."""
    return replace(index, high=min(1.0, index.high)).text(2)


def carried(cell: Cell, of: Iterable[Group]) -> Estimate:
    """What these groups of flows carry over the whole trial, Mbit/s: the mean over the trials."""
    members = list(of)
    return stats.mean([sum(f.bytes_received for group in members for f in group.of(trial)) * 8e-6 / trial.duration for trial in cell.trials])


def _carried(cell: Cell, *of: Group) -> str:
    """:func:`carried` with its unit; no more than the link's rate."""
    return f"{carried(cell, of).text(most=bottleneck.link_mbps(cell.scenarios[0]))} Mbit/s"


def _comparison(cells: Sequence[Cell]) -> str:
    """Which cell carries most, against the first one, or against the next where the first is the best."""
    best, other = rivals(cells)
    a, b = _names(best, other)
    if other.mean().value <= 0:
        return f"{a} carries {best.mean().text()} Mbit/s, {b} nothing." if best.mean().value > 0 else "Nothing gets through this path."
    if all({flow.direction for flow in cell.trials[0].flows} == {"down", "up"} for cell in (best, other)):
        return _of_directions(best, other)
    gain, added = best.over(other), _added(best, other)
    if gain.n > 1 and stats.is_alike(gain):
        links = [bottleneck.link_mbps(one.scenarios[0]) for one in (best, other)]
        means = list(dict.fromkeys(one.mean().cell(most=link).text for one, link in zip((best, other), links, strict=True)))
        is_tight = len(means) == 1 and all(abs(end - 1) <= SAME for end in (gain.value, gain.low, gain.high))
        of = best.mean().text(most=links[0]) if is_tight else " and ".join(means)
        return f"{a} and {b} carry {'nearly ' * (len(means) > 1)}the same, {of} Mbit/s{added.replace(' and adds', f'; {a} adds', 1)}."
    if gain.n > 1 and not gain.excludes(1):
        missing = f" {more[0].upper()}{more[1:]} would probably decide." if (more := runs_text(stats.runs_missing(gain))) else ""
        return f"{a} and {b} do not differ clearly: {a} carries {times(gain, b)}{added}.{missing}"
    return f"{a} carries {times(gain, b)}{added}." + (" One trial has no interval: give --seeds 10." if gain.n < 2 else "")


def _of_directions(best: Cell, other: Cell) -> str:
    """How two cells with data both ways compare in each: `cubic carries 1.5 × bbr down [1.4, 1.6] and 1.0 × bbr up [1.0, 1.0]`."""
    a, b = _names(best, other)
    parts = [f"{best.over(other, f'goodput_{way}').text(unit=f'× {b} {way}')}" for way in ("down", "up")]
    return f"{a} carries {' and '.join(parts)}{_added(best, other).replace(' and adds', ', and adds', 1)}."


def rivals(cells: Sequence[Cell]) -> tuple[Cell, Cell]:
    """The cell that carries most, and what it is compared with: the first cell, or the next best where the first is the best."""
    order = sorted(cells, key=lambda cell: -cell.mean().value)
    return order[0], cells[0] if cells[0] is not order[0] else order[1]


def times(ratio: Estimate, other: str) -> str:
    """A ratio with its interval behind what it is compared with, `6.42 × cubic [6.03, 6.91]`."""
    return ratio.text(unit=f"× {other}")


def _names(a: Cell, b: Cell) -> tuple[str, str]:
    """The names of two cells; with the engine where that is what differs."""
    return (a.cca, b.cca) if a.cca != b.cca else (f"{a.cca} on {a.engine}", f"{b.cca} on {b.engine}")


def _added(cell: Cell, other: Cell | None = None) -> str:
    """What a cell adds to the RTT, and what another one does: ` and adds 17 ms [16, 18] to the RTT (95th percentile; cubic 3 ms)`."""
    own, others = _added_rtt(cell), _added_rtt(other) if other else None
    if not own:
        return ""
    against = f"; {_names(cell, other)[1]} {_ms(others)}" if other and others else ""
    return f" and adds {_ms(own)} to the RTT (95th percentile{against})"


def _added_rtt(cell: Cell) -> Estimate | None:
    """Mean of what queues and jitter add to the RTT, ms; None where the engine does not see it."""
    values = stats.known(cell.values("added_rtt"))
    return stats.mean(values) if values else None


def _ms(added: Estimate) -> str:
    """`17 ms [16, 18]`; the interval is left out where it has the same digits as the value."""
    value, low, high = (number(max(0.0, end), 2) for end in (added.value, added.low, added.high))
    return f"{value} ms" if added.n < 2 or math.isnan(added.low) or low == high == value else f"{value} ms [{low}, {high}]"


def sweep_answer(outcome: Outcome) -> str:
    """The answer of a campaign: where which congestion control is the best, how mixtures share, or from where to where the metric goes."""
    if is_of_run(outcome):
        return run_answer(outcome)
    if _is_of_mixtures(outcome):
        return _sharing(outcome)
    metric = metrics.find(outcome.campaign.metric)
    if not _has_rivals(outcome, metric):
        return _extremes(outcome, metric)
    standings = Standings.of(outcome, metric)
    text = standings.text(metric)
    return f"{text} {_extremes(outcome, metrics.find('added_rtt'))}" if _is_about_delay(outcome, metric, standings) else text


def subject(outcome: Outcome) -> str:
    """The metric that the answer is about: the campaign's, or the delay where all carry the same."""
    metric = metrics.find(outcome.campaign.metric)
    if metric.name != "goodput" or is_of_run(outcome) or _is_of_mixtures(outcome) or not _has_rivals(outcome, metric):
        return metric.name
    return "added_rtt" if _is_about_delay(outcome, metric, Standings.of(outcome, metric)) else metric.name


def _is_about_delay(outcome: Outcome, metric: Metric, standings: Standings) -> bool:
    """Whether the delay is what differs: no congestion control is ahead in goodput anywhere, and the delay is known."""
    return metric.name == "goodput" and not standings.clear and any(cell.knows("added_rtt") for cell in outcome.cells)


def is_of_run(outcome: Outcome) -> bool:
    """Whether it is what a run has: the goodput at one point."""
    return len(by_point(outcome)) == 1 and outcome.campaign.metric == "goodput"


def by_point(outcome: Outcome) -> dict[Point, list[Cell]]:
    """The cells at each point on the axes."""
    points: dict[Point, list[Cell]] = {}
    for cell in outcome.cells:
        points.setdefault(tuple(cell.at.items()), []).append(cell)
    return points


def _is_of_mixtures(outcome: Outcome) -> bool:
    """Whether all cells are of mixtures, whose sharing is the question."""
    return outcome.campaign.metric == "goodput" and all("+" in cell.cca for cell in outcome.cells)


def _has_rivals(outcome: Outcome, metric: Metric) -> bool:
    """Whether several congestion controls are to be ranked at each point, on one engine."""
    return metric.better != "neither" and min(map(len, by_point(outcome).values())) > 1 and len(outcome.versions) == 1


@dataclass
class Standings:
    """Which congestion control is the best at how many points."""

    points: int
    wins: dict[str, int] = field(default_factory=dict)
    """Congestion control → points at which it is clearly better than any other."""
    level: int = 0
    """Points at which the best two are within 5 %."""
    clear: list[tuple[float, str]] = field(default_factory=list)
    """|ln ratio| of the best two and the ratio in words, at each point with a winner."""

    @classmethod
    def of(cls, outcome: Outcome, metric: Metric) -> Standings:
        """The standings of the cells at each point, by the ratio of the means of the best two."""
        sign = 1 if metric.better == "less" else -1
        varied = [axis for axis in outcome.axes if len(outcome.levels(axis)) > 1]
        points = by_point(outcome)
        standings, best_two = cls(len(points)), list[tuple[Point, Cell, Cell]]()
        for at, cells in points.items():
            means = [(sign * fmean(cell.values(metric.name)), cell) for cell in cells]  # an interval of each would take most of the time
            known = sorted((pair for pair in means if math.isfinite(pair[0])), key=lambda pair: pair[0])
            if len(known) < 2:
                continue
            best_two.append((at, known[0][1], known[1][1]))
        for (at, best, other), ratio in zip(best_two, ratios([(best, other) for _, best, other in best_two], metric.name), strict=True):
            if stats.is_alike(ratio):
                standings.level += 1
            elif ratio.excludes(1):
                standings.wins[best.cca] = standings.wins.get(best.cca, 0) + 1
                place = ", ".join(f"{axis} {value}" for axis, value in at if axis in varied)
                size = abs(math.log(ratio.value)) if ratio.value > 0 else math.inf
                standings.clear.append((size, f"{best.cca} {times(ratio, other.cca)} at {place}"))
        return standings

    def text(self, metric: Metric) -> str:
        """The standings in a sentence, with the largest clear ratio in another."""
        undecided = self.points - self.level - sum(self.wins.values())
        verb = "carries most" if metric.name == "goodput" else f"has the {'least' if metric.better == 'less' else 'most'} {metric.name}"
        ranked = sorted(self.wins.items(), key=lambda pair: -pair[1])
        of = f" of {self.points} points"
        parts = [f"{ranked[0][0]} {verb} at {ranked[0][1]}{of}"] if ranked else []
        parts += [f"{cca} at {count}" for cca, count in ranked[1:]]
        parts += [f"the best two are within 5 % in {metric.name} at {self.level}{'' if ranked else of}"] if self.level else []
        parts += [f"{undecided}{'' if parts else of} undecided"] if undecided else []
        most = f" The largest ratio of means: {max(self.clear)[1]}." if self.clear else ""
        text = f"{'; '.join(parts)}.{most}"
        return text if ranked else f"{text[0].upper()}{text[1:]}"


def _sharing(outcome: Outcome) -> str:
    """Where the flows of mixtures share most and least evenly, and what is added to the RTT of each congestion control."""
    known = [(index, cell) for cell in outcome.cells for index in [cell.median("jain")] if math.isfinite(index.value)]
    if not known:
        return "No cell has two flows that carry anything."
    (worst, at_worst), (best, at_best) = min(known, key=lambda pair: pair[0].value), max(known, key=lambda pair: pair[0].value)
    favoured, over_equal = _favoured(at_worst)
    ends = f"most evenly at {_where(at_best, outcome)} (Jain's index {_jain(best)}), least at {_where(at_worst, outcome)} ({_jain(worst)})"
    text = f"The flows share {ends}: there {favoured} gets {number(over_equal, 2)} × its equal share"
    if worst.value >= EVEN_INDEX:
        text = f"The flows share evenly at every point (Jain's index {number(worst.value, 2)} or more)"
    ccas = list(dict.fromkeys(cca for cell in outcome.cells for cca in cell.cca.split("+")))[:MOST_NAMED]
    delays = [f"{cca} {delay}" for cca in ccas if (delay := _range_of(outcome, f"added_rtt:{cca}"))]
    return f"{text}." + (f" Added RTT (95th percentile): {', '.join(delays)}." if delays else "")


def _favoured(cell: Cell) -> tuple[str, float]:
    """The congestion control whose flows have most, each, and how many times the share of equal flows that is."""
    flows = cell.trials[0].flows
    counts = {cca: sum(f.cca == cca for f in flows) for cca in dict.fromkeys(f.cca for f in flows)}
    over_equal = {cca: stats.median(cell.values(f"share:{cca}")).value * len(flows) / count for cca, count in counts.items()}
    favoured = max(over_equal, key=lambda cca: over_equal[cca])
    return favoured, over_equal[favoured]


def _range_of(outcome: Outcome, metric: str) -> str:
    """`7.3 to 198 ms`: the lowest and the highest median of a metric; empty where none is known."""
    values = [median.value for median in estimates(outcome.cells, "median", metric) if math.isfinite(median.value)]
    unit = metrics.find(metric).printed_unit
    return f"{number(min(values), 2)} to {number(max(values), 2)} {unit}" if values else ""


def _extremes(outcome: Outcome, metric: Metric) -> str:
    """The lowest and the highest median, and where they are."""
    medians = list(zip(estimates(outcome.cells, "median", metric.name), outcome.cells, strict=True))
    known = [pair for pair in medians if math.isfinite(pair[0].value)]
    if not known and metric.name == "completion":
        return "No command succeeded: each failed or was ended by its duration."
    if not known:
        return f"No cell has a {metric.name}: the engine does not see it."
    low, high = min(known, key=lambda pair: pair[0].value), max(known, key=lambda pair: pair[0].value)
    unit, name = f" {metric.printed_unit}" if metric.printed_unit else "", metrics.title(metric.name)
    if len(medians) == 1:
        return f"The median {name} of {low[1].cca} is {low[0].text(most=most(low[1], metric))}{unit}."
    if (same := number(low[0].value)) == number(high[0].value):
        where = f"all {len(known)} cells" if len(known) == len(medians) else f"{len(known)} of {len(medians)} cells"
        return f"The median {name} is {same}{unit} in {where}."
    ends = " to ".join(f"{estimate.text(most=most(cell, metric))}{unit} ({_where(cell, outcome)})" for estimate, cell in (low, high))
    return f"The median {name} goes from {ends}."


def _where(cell: Cell, outcome: Outcome) -> str:
    """Where a cell stands among the others: what differs between them."""
    parts = [cell.cca] if len(outcome.ccas) > 1 else []
    parts += [cell.engine] if len(outcome.versions) > 1 else []
    return ", ".join([*parts, *(f"{axis} {cell.at[axis]}" for axis in outcome.axes if axis in cell.at and len(outcome.levels(axis)) > 1)])


def most(cell: Cell, metric: Metric) -> float | None:
    """What the metric of a cell cannot exceed: the link's rate, if it is a goodput."""
    return bottleneck.link_mbps(cell.scenarios[0]) if metric.name == "goodput" else None


def runs_text(missing: int) -> str:
    """`about 16 more runs`; empty where none is missing."""
    return f"{'more than' if missing >= stats.MOST_RUNS else 'about'} {counted(missing, 'more run')}" if missing else ""
