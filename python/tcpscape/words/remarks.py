"""What an advice rests on, a sentence each: the goal's rule, what is assumed of the jitter, how sure the numbers are; commands that go on."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping

from tcpscape import units
from tcpscape.campaign.groups import Viewing
from tcpscape.controls import spelling
from tcpscape.controls.deployment import DEFAULT
from tcpscape.controls.documentation import load_fidelity
from tcpscape.findings import damage
from tcpscape.findings.advice.answer import Advice, OtherOrder
from tcpscape.findings.advice.assumptions import ASSUMED, Alternative, Assumption
from tcpscape.findings.advice.choice import GOALS, Decision, Goal
from tcpscape.findings.advice.levers import is_short
from tcpscape.names import with_options
from tcpscape.scenario.options import Conditions
from tcpscape.scenario.vocabulary import FLOW, PATH
from tcpscape.text.numbers import joined, number, percent
from tcpscape.units import NS_PER_S, brief_size, brief_time, buffer_bytes, counted
from tcpscape.words import traffic
from tcpscape.words.sentences import times

RULES: Mapping[str, str] = {
    "goodput": "the highest mean goodput",
    "delay": "the least added RTT among those that keep at least half of the best goodput",
    "video": "the highest QoE of a viewer: mean bit rate less switches, stalls and start-up delay (Yin et al. 2015)",
}
"""Goal → how the best is chosen."""
LEADS: Mapping[str, tuple[str, str]] = {
    "goodput": ("carries", "×"),
    "delay": ("adds", "ms less to the RTT (95th percentile) than"),
    "video": ("gives a viewer", "Mbit/s more QoE than"),
}
"""Goal → the verb of a lead, and what stands between its number and the other congestion control."""
MODEL = "model"
"""The engine whose error against Linux is measured."""
LITTLE = 0.2
"""Harm to others below which, its whole interval included, they carry about as much."""
CHANGES = 1.25
"""Factor between two goodputs from which an assumption is named with what it changes."""
VAGUE = 100
"""An interval whose end is so many times its beginning tells no size."""
ENOUGH_ROUND_TRIPS = 100
"""Round trips of a trial of which the start of a connection is a small part."""
PROBES_RTT = {"bbr": 10 * NS_PER_S, "bbr3": 5 * NS_PER_S}
"""Congestion control → the time after which it empties the queue to measure the RTT (PROBE_RTT), ns."""
WEIGHTS = {"decides": "Assumed, and the choice depends on it", "open": "Assumed, and the choice may depend on it", "none": "Assumed"}
"""What the choice has to do with an assumption → how its sentence begins."""
LAST = {"undecided": 1, "same": 2}
"""Outcome of another assumption → its place behind those that change the choice."""
ORDERS = {
    "reorder": "jitter reorders packets, as netem does",
    "correlated": "jitter keeps the order of packets (a delay correlated in time)",
    "clamp": "jitter keeps the order of packets: late ones hold up those behind them, which raises the mean delay",
}
"""What each order means for packets."""


def remarks(advice: Advice) -> Iterator[str]:
    """The rule of the goal where it is not the usual one, how the choice shares, the assumptions, and the model's own error."""
    has_rule = advice.decision.verdict == "only" and any(not s.obstacle for s in advice.ranking if s.cca != advice.choice)  # in the answer itself
    if advice.goal.name != "goodput" and not has_rule:
        yield f"Goal {advice.goal.name}: {RULES[advice.goal.name]}."
    yield from _assumptions(advice, deciding=False)
    yield from _of_length(advice)
    yield from _certainty(advice)


def depends(advice: Advice) -> list[str]:
    """The assumptions without which the choice would be another one, or open: what has to be read with the answer."""
    return list(_assumptions(advice, deciding=True))


def _assumptions(advice: Advice, *, deciding: bool) -> Iterator[str]:
    """The assumptions that decide, or those that do not."""
    of_choice = advice.assumptions if len(advice.ranking) > 1 else ()  # of one control there is no choice
    listed = [a for a in of_choice if (_weight_of(advice, a) != "none") is deciding]
    yield from (_of_assumption(advice, a) for a in listed if a.changes)
    if same := [_parts(advice, a) for a in listed if not a.changes]:
        whats, everywhere = (joined(list(texts)) for texts in zip(*same, strict=True))
        yield f"Assumed: {whats}; the choice is the same {everywhere}."
    if (other := advice.other_order) and (_weight_of(advice, other) != "none") is deciding:
        yield f"{_of_order(advice, other)}{_of_direction(advice)}"


def _weight_of(advice: Advice, of: Assumption | OtherOrder) -> str:
    """What the choice has to do with an assumption: it makes another one otherwise, or leaves open what is decided now, or neither."""
    if isinstance(of, OtherOrder):
        decides, is_open = of.changes, of.decision is not None and of.decision.verdict == "undecided"
    else:
        outcomes = {alternative.outcome for alternative in of.alternatives}
        decides, is_open = bool(outcomes - {"same", "undecided"}), "undecided" in outcomes
    return "decides" if decides else "open" if is_open and advice.decision.verdict == "better" else "none"


def fairness(advice: Advice) -> str:
    """What the choice gets beside Linux's default, and what that costs the others; empty where it is not known."""
    if (shared := advice.shared) is None:
        return ""
    count, share, harm = advice.path.flows, shared.share, shared.harm
    flows = f"{'a' if count == 1 else count} {DEFAULT} flow{'s' * (count > 1)}"
    interval = f" [{100 * max(0.0, share.low):.0f}, {100 * min(1.0, share.high):.0f}]" if share.n > 1 else ""
    text = f"Beside {flows} on this path it gets {percent(share.value)}{interval} of the goodput"
    if not shared.takes_more:
        return f"{text}."
    that, kind = ("that one carries", "another") if count == 1 else ("those carry", "as many")
    if harm.low <= 0 <= harm.high:
        size = f"({_less(-harm.value)} [{_less(-harm.high)}, {_less(-harm.low)}] %)"
        if max(-harm.low, harm.high) > LITTLE:
            return f"{text}; whether {that} less than beside {kind} {DEFAULT} is open {size}."
        return f"{text}; {that} about as much as beside {kind} {DEFAULT} {size}."
    more = "less" if harm.value > 0 else "more"
    ends = sorted((abs(harm.low), abs(harm.high)))
    return f"{text}; {that} {percent(abs(harm.value))} [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}] {more} than beside {kind} {DEFAULT}."


def _less(share: float) -> str:
    """`-12`, `+3`."""
    return f"{100 * share:+.0f}".replace("-0", "0").replace("+0", "0")


def _parts(advice: Advice, assumption: Assumption) -> tuple[str, str]:
    """What is assumed, and where else the congestion controls ran: `a buffer of 1 BDP (100kB)`, `from 0.25 to 4 BDP`."""
    what = {
        "buffer": f"a buffer of {_value(advice, 'buffer', ASSUMED['buffer'])}",
        "rcvbuf": f"the receive buffer of Linux {advice.path.kernel.profile}",
        "rate": "no bottleneck (no --rate)",
        "loss": "no random loss (no --loss)",
        "loss_on": "the loss each way",
    }[assumption.field]
    if assumption.field == "buffer":
        return what, "from 0.25 to 4 BDP"
    if assumption.field == "rcvbuf":
        return what, f"with tcp_rmem up to {joined([a.value for a in assumption.alternatives])}"
    return what, f"with {joined([_value(advice, assumption.field, a.value) for a in assumption.alternatives])}"


def _of_assumption(advice: Advice, assumption: Assumption) -> str:
    """What is assumed, and where the choice is another one."""
    what, _ = _parts(advice, assumption)
    by_consequence: dict[str, list[str]] = {}
    for a in sorted(assumption.alternatives, key=lambda a: LAST.get(a.outcome, 0)):
        by_consequence.setdefault(_consequence(advice, a), []).append(_value(advice, assumption.field, a.value))
    clauses = [f"with {joined(values)} {text}" for text, values in by_consequence.items()]
    return f"{WEIGHTS[_weight_of(advice, assumption)]}: {what}; {'; '.join(clauses)}."


def _consequence(advice: Advice, alternative: Alternative) -> str:
    """`bbr carries 1.62 × cubic [1.5, 1.7]: use bbr then`, `the choice is the same`."""
    d = alternative.decision
    ahead = lead(d, GOALS[d.by] if d.by else advice.goal, d.leader) if d.leader else ""
    if alternative.outcome == "same":
        return "the choice is the same"
    if alternative.outcome == "undecided":
        return "these runs do not decide"
    if alternative.outcome == "alike":
        return f"it brings nothing worthwhile ({ahead})"
    return f"{ahead}: use {d.choice} then" if ahead else f"use {d.choice}"


def _value(advice: Advice, field: str, value: str) -> str:
    """`0.25 BDP (25kB)`, `loss on the data alone (--loss-on forward)`."""
    if field == "rate":
        return value
    if field == "rcvbuf":
        return f"tcp_rmem up to {value}"
    if field == "loss":
        return f"a loss of {value}"
    if field != "buffer":
        return f"loss on the data alone (--loss-on {value})"
    size = buffer_bytes(value, advice.path.rate or 0, advice.path.rtt)
    return f"{value.removesuffix('bdp')} BDP ({brief_size(size)})"


def _of_length(advice: Advice) -> Iterator[str]:
    """That a trial is short for the path, with a duration that is not."""
    rtt, duration = advice.path.rtt, advice.path.duration
    if is_short(advice.path):
        enough = brief_time(math.ceil(ENOUGH_ROUND_TRIPS * rtt / NS_PER_S) * NS_PER_S)
        names = [name for s in advice.ranking if (name := spelling.split(s.cca)[0]) in PROBES_RTT and duration <= PROBES_RTT[name]]
        probes = f", and {joined(names)} {'measures' if len(names) == 1 else 'measure'} no RTT anew in it (PROBE_RTT)" if names else ""
        yield (
            f"{brief_time(duration)} are {counted(round(duration / rtt), 'round trip')}, mostly the start of a connection{probes}; "
            f"for longer ones: --duration {enough}."
        )


def _of_order(advice: Advice, other: OtherOrder) -> str:
    """The assumption about the order of packets, and what the other one gives."""
    assumed = f"{WEIGHTS[_weight_of(advice, other)]}: {ORDERS[advice.path.order]}."
    condition = f"If it {'keeps the order' if other.order == 'keep' else 'reorders them'} (--order {other.order})"
    if other.decision is None:
        return f"{assumed} The other case (--order {other.order}) needs --engine model."
    d = other.decision
    shown = d.leader or d.choice
    if d.choice is None or shown is None:
        return f"{assumed} {condition}, nothing gets through."
    if advice.goal.name == "video" and shown in other.views:
        carried, ahead = f"a viewer sees with {shown} {against(other.views[shown], d.follower, other.views.get(d.follower))}", ""
    elif advice.goal.is_ratio:
        carried = f"{shown} carries {other.goodputs[shown].text(most=link_mbps(advice))} Mbit/s"
        ahead = f", {times(d.gain, d.follower)}" if d.gain and not math.isnan(d.gain.value) else ""
    else:
        goal = GOALS[d.by] if d.by else advice.goal
        carried, ahead = lead(d, goal, shown) or f"{shown} is the only one for which the goal holds", ""
    same = "undecided" if d.verdict == "undecided" else f"use {d.choice} then" if other.changes else "the same choice"
    verdict = f": {same}" if len(advice.ranking) > 1 else ""
    return f"{assumed} {condition}, {carried}{ahead}{verdict}."


def _of_direction(advice: Advice) -> str:
    """What the shown congestion control carries with the jitter on the data alone, where that differs much from the same jitter each way."""
    cca, jitter = advice.decision.leader or advice.choice, brief_jitter(advice.path.jitter)
    own = next((d for s in advice.ranking if s.cca == cca for d in s.damage if d.ingredient == damage.OF_ACKS), None)
    if cca is None or own is None or 1 / CHANGES < own.gain.value < CHANGES:
        return ""
    if own.goodput.high > VAGUE * own.goodput.low:
        return f" With {jitter} on the data alone (--jitter {jitter} --jitter-on forward), the runs of {cca} differ too much to say what it carries."
    return (
        f" With {jitter} on the data alone (--jitter {jitter} --jitter-on forward), {cca} carries {own.goodput.text(most=link_mbps(advice))} Mbit/s"
        f" instead of {number(advice.standing(cca).goodput.value)}."
    )


def _certainty(advice: Advice) -> Iterator[str]:
    """That intervals are of the runs alone, and how far the model of the shown congestion control was from Linux."""
    cca = advice.decision.leader or advice.choice
    if cca is None or advice.outcome.cells[0].engine != MODEL:
        return
    measured, kind = load_fidelity(), "alone" if advice.path.flows == 1 else "shared"
    name = spelling.split(cca)[0]
    error = next((e for e in measured.errors("controls", name) if e.kind == kind), None)
    known = (
        f"the model's goodput of {name} was off Linux {measured.kernels} by {_off(error.median)} in the median, by {_off(error.p90)} or more in one"
        f" case of ten (n {error.n})"
        if error
        else f"the model of {name} was not compared with a kernel yet"
    )
    yield f"Intervals are run-to-run spread; {known}."


def _off(error: float) -> str:
    """`3 %` from a difference of logarithms."""
    return f"{100 * math.expm1(error):.2g} %"


MOST_ADVISED = 400
"""Most further runs that are advised."""


def more_runs(advice: Advice, typed: str) -> str:
    """The command line that was typed, with as many runs as would probably decide; empty where it is decided, or they are too many."""
    d = advice.decision
    if d.verdict != "undecided" or not d.gain or d.more > MOST_ADVISED:
        return ""
    return f"{with_options(typed, f'--seeds {d.gain.n + d.more}')} (probably enough to decide)"


def sharing(advice: Advice) -> str:
    """The command that shows how the recommended congestion control shares the path with Linux's default; empty where that is recommended.

    Empty, too, where an application has more than a rate (pauses, sizes, answers), which options do not say.
    """
    path = _of_path(advice.path)
    if advice.choice in (None, DEFAULT) or path is None:
        return ""
    cell, seeds = advice.outcome.cells[0], advice.outcome.campaign.seeds
    trials = [*(["--engine", cell.engine] if cell.engine != MODEL else []), "--seeds", str(seeds)]
    words = ["tcpscape", "sweep", *path, "--mix", f"{DEFAULT},{advice.choice}", *trials]
    return f"{shlex.join(words)} (how {advice.choice} shares this path with {DEFAULT})"


def _of_path(path: Conditions) -> list[str] | None:
    """The path, its flows' fields and its hosts as options of `sweep`; None where an application has more than a rate."""
    values = path.model_dump(mode="json", exclude_defaults=True)
    if any(isinstance(value, dict) and value.keys() - {"rate"} for value in values.get("flow", {}).values()):
        return None
    flow = {name: value.get("rate") if isinstance(value, dict) else value for name, value in values.get("flow", {}).items()}
    fields = {**values, **{name: value for name, value in flow.items() if name in FLOW and value is not None}}
    words = [word for name in (*PATH, *FLOW, "duration") if name in fields for word in (f"--{name.replace('_', '-')}", str(fields[name]))]
    kernel = values.get("kernel", {})
    settings = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in kernel.items() if name != "profile"]
    return [*words, *(["--kernel", ",".join([path.kernel.profile, *settings])] if kernel else [])]


def lead(d: Decision, goal: Goal, subject: str) -> str:
    """`it carries 1.76 × cubic [1.50, 2.01]`."""
    if d.gain is None:
        return ""
    if math.isnan(d.gain.value):
        return f"{subject} carries something, {d.follower} nothing"
    verb, unit = LEADS[goal.name]
    return f"{subject} {verb} {d.gain.text(unit=f'{unit} {d.follower}')}"


def against(view: Viewing, follower: str, other: Viewing | None) -> str:
    """What a viewer sees, beside what another congestion control shows where there is one."""
    return traffic.seen_against(view, follower, other) if other else traffic.seen(view)


def link_mbps(advice: Advice) -> float | None:
    """The rate of the bottleneck; None without one."""
    return advice.path.rate / 1e6 if advice.path.rate else None


def brief_jitter(ns: float) -> str:
    """A jitter for people, `more` where it has no end."""
    return units.brief_time(ns) if math.isfinite(ns) else "more"
