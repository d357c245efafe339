"""The path of a file: the conditions that a measurement, a result directory or a scenario describes, for advice on it.

A measurement says less than advice needs. :func:`conditions` joins it with a user's options, which come first, and says in sentences what was
taken from where and what is assumed all the same. Read are ping's summary (iputils, BSD, macOS, busybox), iperf3's JSON, Flent's data files with
ping's series, directories that `--out` wrote, and scenarios, of the gallery by name.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpscape import units
from tcpscape.campaign import record
from tcpscape.errors import refuse as refuse_option
from tcpscape.interchange.base import InterchangeError, refuse
from tcpscape.reading import files as reading
from tcpscape.reading.files import MIB, Kind
from tcpscape.scenario import files
from tcpscape.scenario.fields import OPTIONS, validate
from tcpscape.scenario.options import Conditions, expect_owners, given, one_way_jitter, one_way_loss
from tcpscape.scenario.path import Link, Netem
from tcpscape.scenario.scenario import Part, Scenario
from tcpscape.scenario.words import QueueDescription
from tcpscape.store import results

_MS = r"(\d{1,9}(?:\.\d{1,9})?)"
_RTT = re.compile(rf"(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev))? = {_MS}/{_MS}/{_MS}(?:/{_MS})? ?ms", re.ASCII)
_COUNT = re.compile(r"\b(\d{1,12}) packets transmitted, (\d{1,12}) (?:packets )?received", re.ASCII)
_FLENT = (".flent", ".flent.gz", ".flent.bz2")
FEWEST_PINGS = 5
"""Fewest round trips of an idle path from which a spread is taken."""
WATCHED = "60s"
"""How long a video player is watched where nothing says it: 15 segments of 4 s."""
WANTED: Mapping[str, str] = {"jitter": "no jitter (--rtt-jitter)", "rate": "no bottleneck (--rate, --buffer, --queue)"}
"""What is assumed where nothing says it, and the option that does."""
PING = Kind("ping's output", "give the whole output of `ping -i 0.2 -c 300 HOST`", most=64 * MIB, error=InterchangeError)
NAMES: Mapping[str, str] = {"rtt": "RTT", "rtt_jitter": "jitter", "rtt_loss": "loss"}
"""Fields of a measurement → what a sentence calls them."""


_TIME = re.compile(r"\btime=([0-9]{1,7}(?:\.[0-9]{1,6})?) ?ms\b")
"""The time in a line of ping's."""


@dataclass(frozen=True, slots=True)
class MeasuredPath:
    """What a file says of a path."""

    fields: Mapping[str, Any]
    """Fields of `Conditions` as they are written, and `rtt_jitter`, `rtt_loss`: spread and loss of the round trip."""
    notes: tuple[str, ...] = ()
    """What of the file was left out, as clauses."""
    source: str = ""
    """The kind of the file: `ping`."""


def conditions(options: Mapping[str, Any], source: Path | None = None) -> tuple[Conditions, tuple[str, ...]]:
    """The path that the options describe, and for what they leave open the file; and sentences about what was taken and assumed.

    :param options: fields of `Conditions`, `rtt_jitter` and `rtt_loss`; None is not given.
    :raises TcpscapeError: one line, where a file cannot be read, an option makes no sense, or the RTT is not known.
    """
    chosen = given(options)
    for name, of_each in (("jitter", "spread"), ("loss", "loss")):
        if {name, f"rtt_{name}"} <= chosen.keys():
            refuse_option(f"rtt-{name}", f"--{name} says the {of_each} of each direction already", "give one of the two")
    measured = read(source) if source else MeasuredPath({})
    pairs = ({"jitter", "rtt_jitter"}, {"loss", "rtt_loss"})
    replaced = {name for pair in pairs if chosen.keys() & pair for name in pair}
    fields = {k: v for k, v in measured.fields.items() if k not in replaced} | chosen
    expect_owners(chosen, {name.removeprefix("rtt_") for name in fields})
    if "player" in (fields.get("flow") or {}):
        fields = {"duration": WATCHED, **fields}
    if "rtt" not in fields:
        refuse_option("rtt", "missing, and a path needs one", "say for example --rtt 50ms, or --from FILE with a measurement")
    taken = sorted(measured.fields.keys() - chosen.keys() - replaced)
    converted = []
    if "rtt_jitter" in fields:
        converted.append(_convert_jitter(fields))
    if "rtt_loss" in fields:
        converted.append(_convert_loss(fields))
    path: Conditions = validate(Conditions, fields, str(source or OPTIONS))
    return path, tuple(_sentences(path, measured, taken, converted, source))


def _convert_jitter(fields: dict[str, Any]) -> str:
    """Replaces the round trip's spread by that of each direction; returns what it became."""
    spread = units.parse_time(fields.pop("rtt_jitter"), "rtt-jitter")
    jitter_on = fields.get("jitter_on", "both")
    jitter = one_way_jitter(spread, jitter_on, fields.get("distribution", "normal"))
    fields["jitter"] = units.format_time(jitter)
    where = "each way, independently" if jitter_on == "both" else f"of the {'data' if jitter_on == 'forward' else 'ACKs'}"
    return f"a spread of the round trip of {units.brief_time(spread)} is {units.brief_time(jitter)} {where}"


def _convert_loss(fields: dict[str, Any]) -> str:
    """Replaces the round trip's loss by that of each direction; returns what it became."""
    lost = units.parse_percent(fields.pop("rtt_loss"), "rtt-loss")
    loss = one_way_loss(lost, fields.get("loss_on", "both"))
    fields["loss"] = units.format_percent(round(loss, 6))
    return f"{_percent(lost)} of the round trips lost are {_percent(loss)} {'each way' if fields.get('loss_on', 'both') == 'both' else 'one way'}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _sentences(path: Conditions, measured: MeasuredPath, taken: Sequence[str], converted: Sequence[str], source: Path | None) -> list[str]:
    if source is None:
        text = "; ".join(converted)
        return [f"{text[0].upper()}{text[1:]}."] if text else []
    if not taken:
        return [f"From {source.name} ({measured.source}): nothing that the options do not say."]
    names = [NAMES[name] for name in taken] if "flow" not in taken else ["path and flows"]
    assumed = [
        text
        for name, text in WANTED.items()
        if not getattr(path, name) and not {name, f"rtt_{name}"} & measured.fields.keys() and "flow" not in measured.fields
    ]
    whole = "; ".join([f"From {source.name} ({measured.source}): {', '.join(names)}", *converted, *measured.notes])
    return [f"{whole}.", *([f"Assumed all the same: {', '.join(assumed)}."] if assumed else [])]


def read(source: Path) -> MeasuredPath:
    """What a file or a result directory says of its path. :raises TcpscapeError: one line, where it says nothing."""
    if reading.folder(source, PING):
        return _of_results(source)
    if str(source) in files.gallery():
        return _of_scenario(files.load(str(source)), "gallery")
    if not reading.exists(source, PING):
        refuse(source, "is not there", "name a result directory, a scenario, ping's output, or a file of iperf3 or Flent")
    name = source.name.lower()
    if name.endswith((".yaml", ".yml", ".toml")):
        return _of_scenario(files.load(source), "scenario")
    if name.endswith(_FLENT):
        return _of_flent(source)
    if name.endswith((".json", ".jsonl")):
        return _of_iperf3(source)
    return _of_ping(source)


def _of_ping(source: Path) -> MeasuredPath:
    """Mean, deviation and loss of ping's summary: netem's delays have their mean at the RTT."""
    text = reading.content(source, PING).decode("utf-8", "replace")
    summary = _RTT.search(text)
    if not summary:
        refuse(source, "has no summary of ping's ('rtt min/avg/max/mdev = …')", "give the whole output of `ping -i 0.2 -c 300 HOST`")
    if not float(summary[1]) <= float(summary[2]) <= float(summary[3]):
        refuse(source, f"has the mean RTT {summary[2]} ms outside of {summary[1]} to {summary[3]} ms", PING.fix)
    fields: dict[str, Any] = {"rtt": f"{summary[2]}ms"}
    notes = [] if summary[4] else ["it has no deviation"]
    if summary[4]:
        fields["rtt_jitter"] = f"{summary[4]}ms"
    if count := _COUNT.search(text):
        sent, received = int(count[1]), min(int(count[1]), int(count[2]))
        fields["rtt_loss"] = units.format_percent((sent - received) / max(1, sent))
        notes.append(f"{received} round trips")
    return MeasuredPath(fields, tuple(notes), "ping")


def loaded_rtt(source: Path) -> int:
    """How long ping's round trips took at most while a queue was full, ns: the 95th percentile of its lines, so that no single one counts.

    :raises TcpscapeError: one line, where the file has no lines of ping's.
    """
    times = sorted(float(time) for time in _TIME.findall(reading.content(source, PING).decode("utf-8", "replace")))
    if not times:
        refuse(source, "has no lines of ping's ('… time=61.0 ms')", "give the whole output of `ping -c 60 HOST` during an upload")
    return round(times[min(len(times) - 1, int(0.95 * len(times)))] * 1e6)


def _of_iperf3(source: Path) -> MeasuredPath:
    """The smallest RTT that the sender's TCP reported: a loaded path says nothing of the idle one's spread."""
    from tcpscape.interchange import iperf3

    trials = iperf3.read(source).trials
    rtts = [f.rtt_ms.min for t in trials for f in t.flows if f.rtt_ms.min]
    if not rtts:
        refuse(source, "has no RTT: the sender of an iperf3 test reports it, and only of TCP", "give the sender's file, or ping's output")
    notes = [f"the RTT is the smallest one under load; {max(t.goodput_mbps for t in trials):.3g} Mbit/s were carried"]
    return MeasuredPath({"rtt": f"{min(rtts):.6g}ms"}, tuple(notes), "iperf3")


def _of_flent(source: Path) -> MeasuredPath:
    """Mean and deviation of the pings before the flows begin."""
    from tcpscape.interchange import flent

    idle = flent.idle_pings(source)
    if len(idle) < FEWEST_PINGS:
        refuse(source, f"has {len(idle)} pings of the idle path before its flows", "give a test with ping (tcp_1up, rrul), or ping's own output")
    fields = {"rtt": f"{statistics.fmean(idle):.6g}ms", "rtt_jitter": f"{statistics.pstdev(idle):.6g}ms"}
    return MeasuredPath(fields, (f"{len(idle)} pings of the idle path",), "Flent")


def _of_results(source: Path) -> MeasuredPath:
    """The path of a result directory, if all of it is of one."""
    if not (results.holds(source) and record.exists(source)):
        refuse(source, "is no result directory", "name one that run, sweep or advise wrote with --out")
    cells = [cell for outcome in record.load(source).outcomes for cell in outcome.cells]
    scenarios = [scenario for cell in cells for scenario in cell.scenarios]
    if not scenarios:
        refuse(source, "has no cell", "name a directory with results")
    paths = {scenario.with_cca("cubic").address(): scenario for scenario in scenarios}
    if len(paths) > 1:
        refuse(source, f"holds {len(paths)} paths", "name a directory with one, or describe the path with options")
    return _of_scenario(scenarios[0], "results")


def _of_scenario(scenario: Scenario, kind: str) -> MeasuredPath:
    """The conditions that a scenario's hops amount to; what they cannot say is in the notes.

    :raises ScenarioError: the scenario is a network, not one path.
    """
    scenario.expect_plain("and the conditions of a path say none of it", "compare with `tcpscape run SCENARIO --cca …`, or name one link")
    data, acks = _flat(scenario, "forward", "bottleneck"), _flat(scenario, "reverse")
    jitter, loss = (_jitter(data), _jitter(acks)), (_loss(data), _loss(acks))
    notes, flow = [], scenario.flows[0]
    fields: dict[str, Any] = {"rtt": units.format_time(scenario.rtt_ns), "duration": units.format_time(scenario.duration)}
    fields |= {"kernel": scenario.kernel.model_dump(mode="json", exclude_defaults=True), "flows": scenario.flow_count}
    fields |= {"flow": flow.model_dump(mode="json", exclude={"cca", "count"}, exclude_defaults=True)}
    for name, (there, back) in (("jitter", jitter), ("loss", loss)):
        if there or back:
            value = (there + back) / 2 if there and back else there or back
            fields[name] = units.format_time(round(value)) if name == "jitter" else units.format_percent(value)
            fields[f"{name}_on"] = "both" if there and back else "forward" if there else "reverse"
            notes += [f"{name} differs between the directions, and their mean is taken"] if there and back and there != back else []
    jittery = [q for q in (*data, *acks) if q.jitter_ns]
    if jittery:
        fields |= {"distribution": jittery[0].distribution, "order": _order(scenario)}
    fields |= _bottleneck(scenario, data)
    notes += ["its changes over time are left out"] if scenario.changes else []
    notes += ["its groups of flows differ, and the first one's fields are taken"] if len(scenario.flows) > 1 else []
    notes += ["ECN is left out"] if scenario.ecn else []
    return MeasuredPath(fields, tuple(notes), kind)


def _flat(scenario: Scenario, *parts: Part) -> list[QueueDescription]:
    return [q for queue in scenario.queues(*parts) for q in queue]


def _jitter(queues: Sequence[QueueDescription]) -> int:
    """Of stages in a row, whose variances add up, ns."""
    return round(math.sqrt(sum(q.jitter_ns**2 for q in queues)))


def _loss(queues: Sequence[QueueDescription]) -> float:
    return 1 - math.prod(1 - q.loss for q in queues)


def _order(scenario: Scenario) -> str:
    """What the first hop with jitter does to the order."""
    hops = [hop for hop in (*scenario.forward, *scenario.reverse) if isinstance(hop, Netem) and hop.jitter]
    if hops:
        return hops[0].order
    kept = any(q.jitter_ns and q.in_order for q in _flat(scenario, "forward", "reverse"))
    return "correlated" if kept else "reorder"


def _bottleneck(scenario: Scenario, queues: Sequence[QueueDescription]) -> dict[str, Any]:
    """Rate, buffer and queue of the narrowest link."""
    rated = [q for q in queues if q.rate_bps]
    if not rated:
        return {}
    fields: dict[str, Any] = {"rate": units.format_rate(min(q.rate_bps or 0 for q in rated))}
    links = [hop for hop in scenario.bottleneck if isinstance(hop, Link)]
    if links:
        return fields | {k: v for k, v in (("buffer", links[0].buffer), ("queue", links[0].queue)) if v}
    holder = queues[-1]
    if holder.limit_bytes and holder.kind in ("bfifo", "tbf"):
        return fields | {"buffer": units.format_size(holder.limit_bytes)}
    return fields | ({"queue": holder.kind} if holder.kind not in ("tbf", "htb", "netem", "jitter") else {})
