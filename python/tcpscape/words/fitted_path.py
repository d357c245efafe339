"""A fitted path as a scenario's file, each value with its interval or that it is assumed; and what stands for what is not identifiable, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpscape import writing
from tcpscape.errors import refuse
from tcpscape.findings.diagnosis.diagnosis import Diagnosis
from tcpscape.findings.diagnosis.fitted import UNSEEN_RATE, Assumption
from tcpscape.stats import Estimate
from tcpscape.text.numbers import number
from tcpscape.words import reasons

if TYPE_CHECKING:
    from tcpscape.findings.diagnosis.replay.scenario import FittedFlow

ASSUMPTIONS: Mapping[str, str] = {
    "busy sender": "The sender is assumed to have had data to send at all times, because what held it is not identifiable here.",
    "unseen rate": (
        f"The bottleneck is assumed to be {UNSEEN_RATE:.0f} times as fast as the fastest round trip of the flow, which never filled it: a gain may"
        " end at another rate."
    ),
    "unseen buffer": "The bottleneck's buffer is assumed to be one bandwidth-delay product, because it was not identifiable.",
    "queue": "The path is assumed to have {what}, because that replay is the nearest to what was observed: the packets do not show it.",
    "jitter both ways": "The jitter is assumed to be alike in both directions, which cannot be told apart here.",
    "reordering": "The jitter is assumed to reorder packets, as netem's does, because the capture does not show the order.",
    "no random loss": "No random loss is assumed, because it was not identifiable.",
    "application": "The application is assumed to write at the same rate under another congestion control.",
    "independent delays": "Each packet's delay is assumed to be drawn independently, half of the RTT being the mean in each direction.",
    "control": "The congestion control is not known: {what} is assumed, and its replay agrees with the observation.",
    "unchanged path": "The path is assumed to stay as it was, whatever this flow sends.",
}
"""Kind of an assumption → its sentence."""


def assumption(one: Assumption) -> str:
    """`The bottleneck's buffer is assumed to be one bandwidth-delay product, …`."""
    return ASSUMPTIONS[one.kind].format(what=one.name if one.kind == "control" else _queue(one))


def _queue(one: Assumption) -> str:
    """`a FIFO of 2 bandwidth-delay products and no random loss`."""
    products = "one bandwidth-delay product" if one.bdps == 1 else f"{one.bdps:g} bandwidth-delay products"
    fifo = f"a FIFO of {products}" if one.bdps else ""
    managed = one.name if one.name.startswith("the ") or not one.name else f"the queue {one.name}"
    return " and ".join(part for part in (managed or fifo, *(f"no {what}" for what in one.lacks)) if part)


def write(diagnosis: Diagnosis, file: Path, kernel: str | None = None) -> Path:
    """Writes the fitted path of the largest flow as a scenario.

    :raises TcpscapeError: one line, where there is no such path, or the file cannot be written.
    """
    first = diagnosis.flows[0] if diagnosis.flows else None
    flow = first.fitted(kernel) if first else None
    if first is None or flow is None:
        why = reasons.text(first.not_identifiable.get("path.rtt_ms"), "its RTT is not identifiable") if first else "there is no flow with data"
        refuse("out", f"there is no path to write: {why.removesuffix('.')}", "leave it out, or choose another flow")
    return writing.named(file, text(flow, first.control.likely))


def text(flow: FittedFlow, cca: str) -> str:
    """The scenario as a YAML file with a comment at each value: its interval, or that it is assumed; the reasons stand at the beginning."""
    from tcpscape.findings.diagnosis.replay.scenario import fields

    scenario = flow.scenario(cca)
    remarks = _remarks(flow)
    plain = {"name": scenario.name, **fields(flow, cca, flow.values)}
    head = ["The path and the ends of an observed flow, fitted (tcpscape diagnose). Intervals are of 95 %."]
    head += [f"Not identifiable: {reason}" for reason in _missing(flow)]
    return "\n".join([*(f"# {t}" for t in (*head, *map(assumption, flow.assumptions))), *_fields(plain, remarks)]) + "\n"


def _fields(fields: Mapping[str, Any], remarks: Mapping[tuple[str, str], str], part: str = "", lead: str = "") -> Iterator[str]:
    """The lines of fields in YAML, each with its comment; `part`: the scenario's field that they are of, `lead`: what the first line begins with."""
    import yaml

    for name, value in fields.items():
        of, indent = part or name, " " * len(lead)
        remark = remarks.get((of, name))
        comment = f"  # {remark}" if remark else ""
        within = [value] if isinstance(value, Mapping) else value if isinstance(value, list) else []
        if within and all(isinstance(one, Mapping) for one in within):
            yield f"{lead}{name}:{comment}"
            for one in within:
                yield from _fields(one, remarks, of, indent + ("  " if one is value else "- "))
        else:
            first, *others = yaml.safe_dump({name: value}, allow_unicode=True, width=140).splitlines()
            yield f"{lead}{first}{comment}"
            yield from (f"{indent}{line}" for line in others)
        lead = indent


NAMES = {
    "rtt_ms": "the RTT",
    "jitter_ms": "the jitter",
    "order_kept": "the order of packets",
    "loss_pct": "random loss",
    "rate_mbps": "the bottleneck's rate",
    "buffer_bytes": "its buffer",
}
"""Field of a fitted path → what a file calls it."""


def _missing(flow: FittedFlow) -> list[str]:
    """What is not identifiable, with the reason."""
    texts = [f"{name}: {reasons.text(flow.path.reasons.get(f), 'nothing shows it')}" for f, name in NAMES.items() if getattr(flow.path, f) is None]
    return [f"{' '.join(text.split()).rstrip('.')}." for text in texts]


def _remarks(flow: FittedFlow) -> dict[tuple[str, str], str]:
    """(part of the file, field) → the comment at it."""
    path, found = flow.path, {}
    half = f"half of the RTT, {_with_interval(path.rtt_ms, 'ms')}" if path.rtt_ms else ""
    for part, jitter in (("forward", path.jitter_forward_ms or path.jitter_ms), ("reverse", path.jitter_reverse_ms or path.jitter_ms)):
        found[part, "delay"] = half
        if jitter:
            found[part, "jitter"] = f"standard deviation {_with_interval(jitter, 'ms')}"
        found[part, "order"] = "the order of packets is kept" if path.order_kept else ""
        found[part, "distribution"] = "" if path.distribution else "assumed"
    for (part, key), estimate, unit in (
        (("forward", "loss"), path.loss_pct, "%"),
        (("bottleneck", "rate"), path.rate_mbps, "Mbit/s"),
        (("bottleneck", "buffer"), path.buffer_bytes, "bytes"),
    ):
        found[part, key] = _with_interval(estimate, unit) if estimate else "assumed"
    found["bottleneck", "queue"] = "assumed"
    found["duration", "duration"] = "as long as the flow was observed"
    owners = {"mtu": "mtu", "ecn": "ecn"}
    found |= {(owners.get(name, "flows"), name): reasons.text(reason) for name, reason in flow.hosts.about.items()}
    return {place: " ".join(said.split()) for place, said in found.items() if said}


def _with_interval(estimate: Estimate, unit: str) -> str:
    if math.isfinite(estimate.low) and math.isfinite(estimate.high):
        return f"{number(estimate.value)} {unit} [{number(estimate.low)}, {number(estimate.high)}]"
    return f"{number(estimate.value)} {unit}"
