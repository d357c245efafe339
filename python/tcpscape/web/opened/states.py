"""The state of the page that a scenario stands for: its fields where they can say the path, tc's words where not, and what neither can say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tcpscape import units
from tcpscape.errors import TcpscapeError
from tcpscape.scenario import path
from tcpscape.scenario.changes import Change
from tcpscape.scenario.differences import differences
from tcpscape.scenario.path import Link, Netem
from tcpscape.scenario.scenario import PARTS, Scenario
from tcpscape.web.state import State


def of_scenario(scenario: Scenario, labels: Sequence[str] = ()) -> tuple[State, tuple[str, ...]]:
    """The state of a scenario, and what it leaves out, each with the scenario's value and the state's; nothing where both are the same path.

    :param labels: congestion controls that are compared; none are those of the scenario's flows.
    """
    controls = tuple(labels or dict.fromkeys(flow.cca for flow in scenario.flows))
    best: tuple[State, tuple[str, ...]] | None = None
    for fields in _attempts(scenario):
        with suppress(TcpscapeError, ValueError):
            state = State.model_validate({**fields, "cca": controls})
            left_out = tuple(differences(scenario, state.scenario(controls[0])))
            if not left_out:
                return state, ()
            if best is None or len(left_out) < len(best[1]):
                best = state, left_out
    if best is None:
        return State(cca=controls), ("the path: the page has no words for it",)
    return best


def _attempts(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """What the state might be, the most readable first."""
    ends = _ends(scenario)
    if fields := _path_fields(scenario):
        yield {**ends, **fields}
    rtt_ns = scenario.rtt_ns
    words = {part: "; ".join(text for hop in hops for text in path.words(hop, rtt_ns)) for part in PARTS if (hops := getattr(scenario, part))}
    yield {**ends, "rtt": units.format_time(max(rtt_ns, 1000)), "rate": "", "words": words}


def _path_fields(scenario: Scenario) -> dict[str, str]:
    """The path as fields, where it has one hop each way with the same kind of jitter; otherwise nothing."""
    hops = (scenario.forward, scenario.reverse, scenario.bottleneck)
    if [len(part) for part in hops] not in ([1, 1, 0], [1, 1, 1]):
        return {}
    forward, reverse, link = scenario.forward[0], scenario.reverse[0], next(iter(scenario.bottleneck), None)
    if not isinstance(forward, Netem) or not isinstance(reverse, Netem) or not isinstance(link, Link | None):
        return {}
    fields = {"rtt": units.format_time(forward.delay + reverse.delay), "rate": ""}
    if jittered := next((hop for hop in (forward, reverse) if hop.jitter), None):
        fields |= {"jitter": units.format_time(jittered.jitter), "jitter_on": _on(forward.jitter, reverse.jitter)}
        fields |= {"distribution": jittered.distribution if jittered.distribution != "normal" else ""}
        fields |= {"order": jittered.order if jittered.order != "reorder" else ""}
    if forward.loss or reverse.loss:
        fields |= {"loss": f"{100 * max(forward.loss, reverse.loss):.10g}%", "loss_on": _on(forward.loss, reverse.loss)}
    if link is not None:
        plain = link.model_dump(mode="json", exclude_none=True)
        fields |= {"rate": units.format_rate(link.rate), "buffer": _size(str(plain.get("buffer", ""))), "queue": link.queue or ""}
    return fields


def _on(forward: float, reverse: float) -> str:
    """Which directions have something."""
    return "" if forward and reverse else "forward" if forward else "reverse"


def _size(text: str) -> str:
    return f"{text}B" if text.isdecimal() else text


def _ends(scenario: Scenario) -> dict[str, Any]:
    """What the state says beside the path."""
    plain, flow = scenario.to_dict(), scenario.flows[0].model_dump(mode="json", exclude_defaults=True)
    fields: dict[str, Any] = {"duration": units.format_time(scenario.duration), "ecn": scenario.ecn}
    fields |= {name: _size(str(flow[name])) for name in ("rcvbuf", "app", "read") if isinstance(flow.get(name), str | int)}
    if isinstance(app := flow.get("app"), dict) and set(app) == {"rate"}:
        fields["app"] = str(app["rate"])
    kernel = plain.get("kernel", "")
    fields["kernel"] = ",".join([kernel.pop("profile", "6.1"), *(f"{k}={v}" for k, v in kernel.items())]) if isinstance(kernel, dict) else str(kernel)
    if scenario.changes:
        fields["changes"] = [_change(one) for one in scenario.changes]
    return fields


def _change(change: Change) -> str:
    """A step as the page writes it, `bottleneck@8s: rate 20mbit`."""
    plain = change.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    values = ", ".join(f"{name} {'on' if value is True else 'off' if value is False else value}" for name, value in plain.get("set", {}).items())
    return f"{change.where}@{plain.get('at', '')}: {values}"
