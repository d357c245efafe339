"""The three sentences of a diagnosis: what the path is, what limits the flow, what would be better. Everyone should be able to act on them."""

from __future__ import annotations

from collections.abc import Mapping

from tcpscape.findings.advice.choice import Verdict
from tcpscape.findings.diagnosis import limiting
from tcpscape.findings.diagnosis.diagnosis import FlowDiagnosis
from tcpscape.findings.diagnosis.fitted import UNKNOWN, Alternative, FittedPath, PathChange, ReplayAdvice, Withheld
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number
from tcpscape.units import counted

HARDLY_MS, HARDLY_OF_RTT = 0.1, 0.005
"""Jitter below both, ms and as a share of the RTT, is called none."""
RARE_PCT = 0.0005
"""Random loss below this, %, is called none."""
CLEAR = 1.05
"""Gain from which a setting is named beside the congestion control."""
VERDICTS: Mapping[Verdict, str] = {
    "better": "{choice} would carry more than {own}",
    "as good": "Nothing to change: no other congestion control carries clearly more than {own}",
    "undecided": "Whether another congestion control would carry more is undecided: the intervals are too wide",
    "only": "No other congestion control that can be deployed comes near {choice} on this path",
    "nothing carried": "What would carry more cannot be told: no congestion control carried anything in the replay",
    "none deployable": "What would carry more cannot be told: no congestion control of this kernel can be compared",
}
"""Verdict on the congestion controls → the sentence about it, where no setting is named."""
WITHHELD: Mapping[str, str] = {
    "differs": "the replay differs",
    "impossible": "the replay is impossible",
    "no replay": "there is no replay",
    "too wide": "the replay agrees by the width of its interval alone, which tells too little of this path",
}
"""Why nothing is advised, in words."""
ASIDE: Mapping[str, str] = {
    "rtt_ms": "RTT",
    "jitter_ms": "jitter",
    "loss_pct": "random loss",
    "rate_mbps": "rate of the bottleneck",
    "buffer_bytes": "its buffer",
}
"""Fields of a path that the first sentence names where they are not identifiable."""


def answer(diagnosis: FlowDiagnosis) -> str:
    """The three sentences in one line."""
    return " ".join((path_sentence(diagnosis), limiting.sentence(diagnosis), advice_sentence(diagnosis)))


def path_sentence(diagnosis: FlowDiagnosis) -> str:
    """`Your path is a round trip of 50.1 ms with 3.02 ms of jitter that reorders packets, …`."""
    path = diagnosis.path
    if path is None:
        return f"What your path is cannot be told: {diagnosis.reasons.get('path', 'the source does not show it')}."
    parts = [part for part in (_trip(path), _loss(path), _bottleneck(path)) if part]
    if not parts:
        why = path.reasons.get("rtt_ms") or next(iter(path.reasons.values()), "the source does not show it")
        return f"What your path is cannot be told: {_clause(why)}."
    missing = [name for field, name in ASIDE.items() if getattr(path, field) is None]
    aside = f" (not identifiable: {', '.join(missing)})" if missing else ""
    return f"Your path is {_joined(parts)}{aside}{_changes(path)}."


def advice_sentence(diagnosis: FlowDiagnosis) -> str:
    """`bbr would carry 3.20 × as much as cubic [2.80, 3.60].`, or that there is nothing to change, or why nobody knows."""
    advice = diagnosis.advice
    if advice is None or isinstance(advice.verdict, Withheld):
        return _without_advice(diagnosis)
    setting = best_setting(advice)
    if advice.verdict == "better" and advice.choice and advice.gain:
        more = f"; {_setting(setting)}" if setting else ""
        return f"{advice.choice} would carry {_times(advice.gain, in_use(diagnosis))}{more}."
    if setting:
        return f"No other congestion control would carry clearly more, but {_setting(setting)}."
    own = in_use(diagnosis)
    return f"{VERDICTS[advice.verdict].format(choice=advice.choice or own, own=own)}."


def no_advice(withheld: Withheld) -> str:
    """`no advice, because the replay differs: 5.1 Mbit/s was observed, …`."""
    return f"no advice, because {WITHHELD[withheld.why]}{f': {withheld.detail}' * bool(withheld.detail)}"


def in_use(diagnosis: FlowDiagnosis) -> str:
    """The congestion control of the flow, or words for it."""
    if diagnosis.control.name != UNKNOWN:
        return diagnosis.control.name
    replay = diagnosis.replay
    return f"{replay.control} (assumed)" if replay and replay.is_assumed else "the congestion control in use"


def best_setting(advice: ReplayAdvice) -> Alternative | None:
    """The setting with the largest gain, where that is clear and larger than the chosen congestion control's."""
    beaten = advice.gain.value if advice.verdict == "better" and advice.gain else CLEAR
    clear = [s for s in advice.settings if s.gain.low >= CLEAR and s.gain.value > beaten]
    return max(clear, key=lambda s: s.gain.value, default=None)


def _without_advice(diagnosis: FlowDiagnosis) -> str:
    """Why nothing is advised; where the application is slow or the bottleneck full, that nothing has to be."""
    if limiting.holds(diagnosis, "application"):
        return "Nothing to change on the path or in TCP: only the application could make it faster."
    if limiting.filled(diagnosis):
        return "No congestion control can carry much more than that."
    withheld = diagnosis.advice.verdict if diagnosis.advice else None
    why = _clause(withheld.detail if isinstance(withheld, Withheld) else diagnosis.reasons.get("advice", "there was no replay"))
    if isinstance(withheld, Withheld) and withheld.why != "no replay":
        why = f"{WITHHELD[withheld.why]}{f': {why}' * bool(why)}"
    if limiting.holds(diagnosis, "receive_window") or limiting.holds(diagnosis, "send_buffer"):
        return f"How much more that would carry is not known: {why}."
    return f"What would carry more is not known: {why}."


def _setting(setting: Alternative) -> str:
    name = setting.name[:1].lower() + setting.name[1:]
    return f"this setting would carry {_times(setting.gain)}: {name}"


def _times(gain: Estimate, other: str = "") -> str:
    """`3.20 × as much as cubic [2.80, 3.60]`."""
    value, bracket, interval = gain.text().partition(" [")
    return f"{value} × as much{f' as {other}' if other else ''}{bracket}{interval}"


def _trip(path: FittedPath) -> str:
    """The round trip and its jitter."""
    if path.rtt_ms is None:
        return _jitter(path)
    trip, jitter = f"a round trip of {_ms(path.rtt_ms)}", _jitter(path)
    return f"{trip} with {jitter}" if jitter else trip


def _jitter(path: FittedPath) -> str:
    if path.jitter_ms is None:
        return ""
    is_small = path.jitter_ms.value < HARDLY_MS and (path.rtt_ms is None or path.jitter_ms.value < HARDLY_OF_RTT * path.rtt_ms.value)
    if is_small or path.jitter_on == "none":
        return "hardly any jitter"
    where = {"forward": " of the data", "reverse": " of the ACKs", "both": " each way"}.get(path.jitter_on or "", "")
    order = {True: " that keeps packets in order", False: " that reorders packets", None: ""}[path.order_kept]
    return f"{_ms(path.jitter_ms)} of jitter{where}{order}"


def _loss(path: FittedPath) -> str:
    if path.loss_pct is None:
        return ""
    return f"{number(path.loss_pct.value, 2)} % of random loss" if path.loss_pct.value >= RARE_PCT else "no random loss"


def _bottleneck(path: FittedPath) -> str:
    """`a bottleneck of 20 Mbit/s with a buffer of 200 kB (80 ms)`."""
    if path.rate_mbps is None:
        return ""
    link = f"a bottleneck of {number(path.rate_mbps.value)} Mbit/s"
    if path.buffer_bytes is None:
        return link
    size = path.buffer_bytes.value
    delay = size * 8 / (path.rate_mbps.value * 1e3) if path.rate_mbps.value > 0 else 0.0
    return f"{link} with a buffer of {number(size / 1e3)} kB ({number(delay, 2)} ms when full)"


def _changes(path: FittedPath) -> str:
    """`; it changed 3 times, first at 8.0 s: rate 20 → 5 Mbit/s`."""
    if not path.changes:
        return ""
    first = min(path.changes, key=lambda change: change.at_s)
    times = "once" if len(path.changes) == 1 else counted(len(path.changes), "time")
    return f"; it changed {times}, {'first ' if len(path.changes) > 1 else ''}at {first.at_s:.1f} s: {change_text(first)}"


def change_text(change: PathChange) -> str:
    """`rate 20.0 → 5.00 Mbit/s`, `an outage of 0.500 s`."""
    if change.kind == "outage":
        return f"an outage of {number(change.after)} s" if change.after is not None else "an outage"
    name, unit, factor = {"rtt": ("RTT", "ms", 1.0), "rate": ("rate", "Mbit/s", 1.0), "loss": ("loss", "%", 100.0)}[change.kind]
    before, after = ("?" if v is None else number(v * factor) for v in (change.before, change.after))
    return f"{name} {before} → {after} {unit}"


def _ms(estimate: Estimate) -> str:
    return f"{number(estimate.value)} ms"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _clause(text: str) -> str:
    """A sentence as a clause: without its full stop, with a small letter where a word begins it."""
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
