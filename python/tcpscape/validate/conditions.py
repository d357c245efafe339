"""The conditions of a validation: scenarios with an id each, from CSV, YAML or TOML, and the family of impairments each belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpscape import writing
from tcpscape.errors import ScenarioError, refuse
from tcpscape.reading import documents
from tcpscape.reading import files as reading
from tcpscape.reading.documents import cell_number as number
from tcpscape.reading.files import MIB, Kind, Origin
from tcpscape.scenario import files, path
from tcpscape.scenario.scenario import PARTS, Part, Scenario
from tcpscape.scenario.words import QueueDescription
from tcpscape.units import counted

COLUMNS = (
    "id",
    "cca",
    "rtt_ms",
    "duration_s",
    "jitter_ms",
    "distribution",
    "jitter_on",
    "loss_pct",
    "rate_mbit",
    "buffer_bytes",
    "rcvbuf",
    "flows",
    "app_MBps",
)
"""Columns of a CSV of conditions: netem at the sender's egress, a router with tbf where `rate_mbit` is given, netem for the ACKs. There may be
two more: `kernel`, a profile with overrides as `--kernel` takes it, and `listener`."""
SHARED_COLUMNS = (
    "id",
    "first",
    "second",
    "n_first",
    "n_second",
    "rtt_ms",
    "rate_mbit",
    "buffer_bytes",
    "queue",
    "ecn",
    "loss_pct",
    "second_at_s",
    "duration_s",
    "bottleneck",
)
"""Columns of a CSV of bottlenecks that two groups of flows share, recognised by `first`: `bottleneck` is in tc's words. There may be two more,
`listener` and `kernel`."""
REQUIRED, SHARED_REQUIRED = ("id", "cca", "rtt_ms"), ("id", "first", "second", "rtt_ms", "rate_mbit", "buffer_bytes", "queue", "bottleneck")
"""Columns that must be there."""
CLEAN, LOSS, JITTER, BOTH, LINK, MIXED = "clean", "loss", "jitter", "loss and jitter", "bottleneck", "bottleneck and impairments"
FAMILIES = (CLEAN, LOSS, JITTER, BOTH, LINK, MIXED)
COMBINATIONS = ("bottleneck, loss", "bottleneck, jitter", "bottleneck, loss and jitter")
"""What the last family is made of."""
DATA: tuple[Part, ...] = ("forward", "bottleneck")
"""Parts of the path that data passes."""
LISTING = Kind("a list of conditions", "give a .csv with the columns id, cca and rtt_ms, or a list of scenarios", most=16 * MIB)
NO_QUEUE = "none"
"""The queue of a path without a bottleneck."""
DEFAULT_S, SHARED_DURATION_S = 10.0, 20
"""Duration of a row that gives none, s: with one group of flows, and with two that share a bottleneck."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True)
class NamedScenario:
    """A scenario with an id, unique in its file and in every table: a path, its flows, a duration."""

    id: str
    scenario: Scenario

    @property
    def cca(self) -> str:
        """Congestion controls in it, `cubic` or `bbr+cubic`."""
        return self.scenario.cca

    @cached_property
    def impairments(self) -> tuple[bool, bool, bool]:
        """Whether the data's path has a bottleneck; loss or corruption on any direction; and jitter, reordering or copies on any."""
        data, acks = ([q for queue in queues for q in queue] for queues in self._queues)
        both = data + acks
        link, loss = any(q.rate_bps for q in data), any(q.loss or q.corrupt for q in both)
        return link, loss, any(q.jitter_ns or q.reorder or q.duplicate for q in both)

    @cached_property
    def _queues(self) -> tuple[list[tuple[QueueDescription, ...]], list[tuple[QueueDescription, ...]]]:
        """The queues along the path and against it; of a topology those of all links, and of all access links."""
        scenario = self.scenario
        if not scenario.is_topology:
            return scenario.queues(*DATA), scenario.queues("reverse")
        accesses = [scenario.access_of(endpoint) for endpoint in scenario.endpoints]
        along = [*(h for link in scenario.chain for h in link.forward), *(h for a in accesses for h in (*a.before, *a.after))]
        against = [*(h for link in scenario.chain for h in link.reverse), *(h for a in accesses for h in (*a.acks_before, *a.acks_after))]
        return _described(along, scenario), _described(against, scenario)

    @property
    def is_topology(self) -> bool:
        """Whether groups of flows have places of their own on a chain of links."""
        return self.scenario.is_topology

    @property
    def links(self) -> str:
        """How many links the chain has: `1 link`, `3 links`."""
        return counted(len(self.scenario.chain), "link")

    @property
    def family(self) -> str:
        """What impairs this path, one of :data:`FAMILIES`."""
        link, loss, jitter = self.impairments
        if link:
            return MIXED if loss or jitter else LINK
        return BOTH if loss and jitter else LOSS if loss else JITTER if jitter else CLEAN

    @property
    def combination(self) -> str:
        """The family, each of its mixtures apart."""
        _, loss, jitter = self.impairments
        return self.family if self.family != MIXED else COMBINATIONS[2 if loss and jitter else 0 if loss else 1]

    @cached_property
    def path(self) -> str:
        """What conditions on the same path share: the scenario's address under one congestion control."""
        return self.scenario.with_cca("cubic").address()

    @property
    def shared(self) -> bool:
        """Whether several groups of flows share the path."""
        return len(self.scenario.flows) > 1

    @cached_property
    def queue(self) -> str:
        """The queue discipline at the bottleneck, with `ecn` where that is turned on; `none` without a bottleneck.

        It is the innermost of the last queue that has a rate; of a chain, those of its links: `bfifo+codel ecn`.
        """
        if self.is_topology:
            return "+".join(_bottleneck(_described(link.forward, self.scenario)) for link in self.scenario.chain)
        return _bottleneck(self._queues[0])

    @property
    def disciplines(self) -> list[str]:
        """Every queue discipline on the data's way, each once."""
        return list(dict.fromkeys(q.kind for queue in self._queues[0] for q in queue))

    def describe(self) -> str:
        """One short line: congestion control, path, application."""
        return self.scenario.about or _describe(self.scenario)


def _described(hops: Iterable[path.Hop], scenario: Scenario) -> list[tuple[QueueDescription, ...]]:
    return [queue for hop in hops for queue in path.queues(hop, scenario.rtt_ns)]


def _bottleneck(queues: Sequence[tuple[QueueDescription, ...]]) -> str:
    """The innermost discipline of the last queue that has a rate, with `ecn` where that is turned on."""
    links = [queue for queue in queues if any(q.rate_bps for q in queue)]
    if not links:
        return NO_QUEUE
    innermost = links[-1][-1]
    return innermost.kind + " ecn" * (innermost.ecn == "enabled")


def _words(scenario: Scenario, part: str) -> str:
    """tc's words of one part of the path."""
    return " ; ".join(w for hop in getattr(scenario, part) for w in path.words(hop, scenario.rtt_ns))


def _describe(scenario: Scenario) -> str:
    flows = "+".join(f.cca + (f"×{f.count}" if f.count > 1 else "") for f in scenario.flows)
    parts = [_words(scenario, part) for part in PARTS]
    return ", ".join([flows, " | ".join(filter(None, parts)) or "no impairment", f"{scenario.duration / 1e9:g} s"])


def of_row(row: Mapping[str, str]) -> NamedScenario:
    """A condition from a row with the columns :data:`COLUMNS` or :data:`SHARED_COLUMNS`."""
    if "first" in row:
        return NamedScenario(row["id"], Scenario.of(_shared_fields(row), row["id"]))
    delay, jitter, loss, rate = number(row["rtt_ms"]) / 2, number(row.get("jitter_ms")), number(row.get("loss_pct")), number(row.get("rate_mbit"))
    spread = (f" {jitter:g}ms" + (" distribution normal" if row.get("distribution") == "normal" else "")) if jitter else ""
    lost = f" loss {loss:g}%" if loss else ""
    link = [f"tbf rate {rate:g}mbit burst {path.TBF_BURST} limit {int(number(row.get('buffer_bytes')))}"] if rate else []
    app = number(row.get("app_MBps"))
    flow = {
        "cca": row["cca"],
        "count": int(number(row.get("flows")) or 1),
        "rcvbuf": int(number(row.get("rcvbuf"))),
        "app": f"{app:g}MB/s" if app else 0,
    } | ({"listener": row["listener"]} if row.get("listener") else {})
    scenario = Scenario.of(
        {
            "name": row["id"],
            "about": _about(row),
            "duration": f"{number(row.get('duration_s')) or DEFAULT_S:g}s",
            "bottleneck": link,
            "flows": [flow],
            "forward": f"netem delay {delay:g}ms{spread}{lost} limit 100000",
            "reverse": f"netem delay {delay:g}ms{spread if row.get('jitter_on') == 'both' else ''} limit 100000",
        }
        | ({"kernel": row["kernel"]} if row.get("kernel") else {}),
        row["id"],
    )
    return NamedScenario(row["id"], scenario)


def _bdp(buffer: float, rate: float, rtt: float) -> str:
    """A buffer in bandwidth-delay products of a rate, Mbit/s, and an RTT, ms."""
    return f"{buffer / (rate * rtt * 125):.2f} BDP" if rate and rtt else f"{buffer:g} bytes"


def _about(row: Mapping[str, str]) -> str:
    rtt, jitter, loss, rate = (number(row.get(k)) for k in ("rtt_ms", "jitter_ms", "loss_pct", "rate_mbit"))
    flows, rcvbuf, app = int(number(row.get("flows")) or 1), int(number(row.get("rcvbuf"))), number(row.get("app_MBps"))
    parts = [row["cca"] + (f"×{flows}" if flows > 1 else ""), f"{rtt:g} ms"]
    if jitter:
        parts.append(f"± {jitter:g} {row.get('distribution', '')[:4]} {'both' if row.get('jitter_on') == 'both' else 'fwd'}")
    if loss:
        parts.append(f"loss {loss:g} %")
    if rate:
        parts.append(f"{rate:g} Mbit/s, {_bdp(number(row.get('buffer_bytes')), rate, rtt)}")
    parts.append(f"rcvbuf {rcvbuf // 1024}k" if rcvbuf else "rcvbuf auto")
    return ", ".join(parts + ([f"app {app:g} MB/s"] if app else []))


def _shared_fields(row: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a scenario in which two groups of flows share a bottleneck."""
    delay, loss, late = number(row["rtt_ms"]) / 2, number(row.get("loss_pct")), number(row.get("second_at_s"))
    lost = f" loss {loss:g}%" if loss else ""
    listener = {"listener": row["listener"]} if row.get("listener") else {}
    first = {"cca": row["first"], "count": int(row.get("n_first") or 1), **listener}
    second = {"cca": row["second"], "count": int(row.get("n_second") or 1), **({"start": f"{late:g}s"} if late else {}), **listener}
    return {
        "name": row["id"],
        "about": _shared_about(row),
        "duration": f"{number(row.get('duration_s')) or SHARED_DURATION_S:g}s",
        "forward": f"netem delay {delay:g}ms{lost} limit 100000",
        "bottleneck": row["bottleneck"],
        "reverse": f"netem delay {delay:g}ms limit 100000",
        "flows": [first, second],
        "ecn": row.get("ecn") == "1",
    } | ({"kernel": row["kernel"]} if row.get("kernel") else {})


def _shared_about(row: Mapping[str, str]) -> str:
    """One short line: both groups, and the path they share."""
    rtt, rate, buffer = number(row["rtt_ms"]), number(row["rate_mbit"]), int(row["buffer_bytes"])
    groups = [row[side] + ("" if (n := row.get(f"n_{side}") or "1") == "1" else f"×{n}") for side in ("first", "second")]
    late = f" from {row['second_at_s']} s" if number(row.get("second_at_s")) else ""
    parts = [f"{groups[0]} and {groups[1]}{late}", f"{rtt:g} ms", f"{rate:g} Mbit/s, {_bdp(buffer, rate, rtt)}"]
    parts.append(row["queue"] + " ecn" * (row.get("ecn") == "1"))
    return ", ".join(parts + ([f"loss {loss:g} %"] if (loss := number(row.get("loss_pct"))) else []))


def read(source: str | Path) -> list[NamedScenario]:
    """The conditions of a `.csv` file, of a `.yaml` or `.toml` file (a list of scenarios, under `conditions` in TOML), or a gallery scenario."""
    file = Path(source)
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return _distinct([_row(row, file, i) for i, row in enumerate(_rows(file), 2)], file)
    if suffix not in (".yaml", ".yml", ".toml"):
        return [NamedScenario(str(source), files.load(source))]
    content = files.read(file, "conditions", LISTING)
    if isinstance(content, dict) and "conditions" in content:
        content = content["conditions"]
    elif not isinstance(content, list):
        return [NamedScenario(file.stem, files.load(file))]
    if not isinstance(content, list) or not content:
        refuse("conditions", f"{file} lists no scenario", "write a list of scenarios, each with an id")
    return _distinct([_entry(entry, i, file) for i, entry in enumerate(content)], file)


def _rows(file: Path) -> list[dict[str, str]]:
    rows = documents.from_csv(reading.text(file, LISTING, "conditions"), Origin(str(file), LISTING, "conditions"))
    is_shared = bool(rows) and "first" in rows[0]
    columns, required = (SHARED_COLUMNS, SHARED_REQUIRED) if is_shared else (COLUMNS, REQUIRED)
    missing = [c for c in required if not rows or c not in rows[0]]
    if missing:
        refuse("conditions", f"{file} has no column {missing[0]} or no row", f"write the columns {','.join(columns)}")
    return rows


def _row(row: dict[str, str], file: Path, line: int) -> NamedScenario:
    try:
        return of_row(row)
    except ValueError as e:
        raise ScenarioError(f"conditions: {file} line {line}: {e}; correct the number") from None


def _entry(entry: object, place: int, file: Path) -> NamedScenario:
    """One scenario of a list: its fields and an `id`, or a file's or gallery scenario's name."""
    if isinstance(entry, str):
        return NamedScenario(Path(entry).stem, files.load(entry))
    if not isinstance(entry, dict):
        refuse("conditions", f"entry {place + 1} of {file} is {entry!r}", "write a scenario's fields or a gallery name")
    fields = dict(entry)
    name = str(fields.pop("id", fields.get("name", f"s{place:03d}")))
    return NamedScenario(name, Scenario.of({"name": name, **fields}, f"{file} entry {place + 1}"))


def _distinct(conditions: list[NamedScenario], file: Path) -> list[NamedScenario]:
    """The same conditions; an id that is malformed or not unique is refused."""
    seen: set[str] = set()
    for c in conditions:
        if not _ID.fullmatch(c.id):
            refuse("conditions", f"{c.id!r} in {file} is no id", "write letters, digits and . _ + - only")
        if c.id in seen:
            refuse("conditions", f"{file} has {c.id} twice", "give each condition its own id")
        seen.add(c.id)
    return conditions


def write(conditions: Iterable[NamedScenario], file: Path) -> None:
    """Writes conditions as YAML that :func:`read` reads back."""
    import yaml

    entries = [{"id": c.id, **c.scenario.to_dict()} for c in conditions]
    writing.whole(file, yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=140))


def chosen(conditions: Sequence[NamedScenario], ccas: Sequence[str], *, paired: bool = False) -> list[NamedScenario]:
    """Only the conditions under these congestion controls (none: all); `paired`: every path under every one of them."""
    if paired:
        return pairs(conditions, ccas)
    matching = [c for c in conditions if not ccas or c.cca in ccas]
    if not matching:
        refuse("cca", f"no condition runs under {', '.join(ccas)}", "add --paired to run every path under each, or name others")
    return matching


def pairs(conditions: Sequence[NamedScenario], ccas: Sequence[str]) -> list[NamedScenario]:
    """Every path, once, under each congestion control; ids become `ID-CCA`."""
    if len(ccas) < 2:
        refuse("paired", "ranks need at least two congestion controls", "write for example --cca cubic,bbr")
    paths: dict[str, NamedScenario] = {}
    for c in conditions:
        paths.setdefault(c.path, c)
    return [_under(c, cca) for c in paths.values() for cca in ccas]


def _under(c: NamedScenario, cca: str) -> NamedScenario:
    scenario, name = c.scenario.with_cca(cca), f"{c.id}-{re.sub('[:=]', '.', cca)}"
    about = re.sub(rf"^{re.escape(c.cca)}(?=[×,])", cca, scenario.about)
    return replace(c, id=name, scenario=scenario.model_copy(update={"name": name, "about": about}))
