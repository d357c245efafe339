"""Captures with known truth: conditions drawn at random, run on the virtual engine, recorded at the sender, a router and the receiver.

    .venv/bin/python benches/corpus.py OUT --cases 210 --draw dev        # a development set
    .venv/bin/python benches/corpus.py OUT --cases 210 --draw test       # drawn apart from it: nobody tunes on it
    .venv/bin/python benches/corpus.py OUT --cases 168 --draw dev --domains    # three views of each trial, from one domain after the other
    .venv/bin/python benches/corpus.py OUT --cases 20 --draw dev --domains reordering usual    # … from these

Each case is a directory `OUT/NNN` with `sender.pcap`, `router.pcap` and `receiver.pcap` of one trial (nanoseconds, first 160 bytes of each packet),
`info.parquet` (TCP_INFO of the sender every 10 ms) and `truth.json`: the scenario, its path in numbers, the kernel's counters, and `shown`, the
capture that is to be scored, which may be cut (its beginning, its end, its packets). What is drawn is said in :func:`draw`; the case's number and
the set's name are the seed, so that the same command makes the same captures.

With `--domains` a case is drawn into a domain (:data:`DOMAINS`): what the kernels, the hosts or the path do otherwise than in the sets above. Each
trial then has three directories `OUT/NNN-PLACE`, one for each place of capture, with either end as the one that opened the connection. Captures
that begin late, lack packets or options, or have a coarse clock are changed copies of recorded ones. Kernels are named, so that `tcpscape kernel
build` must have built 6.1, and `--source 6.12` for the domain `kernels`.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import random
import shutil
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tcpscape import engines
from tcpscape.controls.spelling import LINUX
from tcpscape.engines.guest import Place
from tcpscape.engines.virtual import Virtual
from tcpscape.scenario.path import deviation
from tcpscape.scenario.scenario import Scenario
from tcpscape.trial import Capture

CONTROLS = tuple(sorted(LINUX))
"""The congestion controls of Linux 6.1."""
PLACES: tuple[Place, ...] = ("sender", "router", "receiver")
MOST_PACKETS = 80_000
"""Packets of a trial, about; a faster path is watched for less long, never below 10 s."""
SAMPLES = 10_000_000
"""Interval of the samples of TCP_INFO, ns."""


@dataclass
class Case:
    """A condition that was drawn."""

    scenario: dict[str, Any]
    """As a scenario file has it."""
    path: dict[str, Any]
    """Its path in numbers; None is not in it, or not comparable."""
    kind: str
    """What loads the path: bulk, rate, reader, rcvbuf, sndbuf, crowd, change, programs."""
    shown: dict[str, Any]
    """Which capture is scored: place, what is cut off."""
    timestamps: bool = True
    sysctls: dict[str, str] = field(default_factory=dict)
    domain: str = ""
    """One of :data:`DOMAINS`; empty where none was asked for."""
    kernel: str = "6.1"
    """The kernel of both ends and of the path."""


def draw(case: int, name: str, only: str | None = None, rates: tuple[float, float] = (1, 60), least_s: int = 10) -> Case:
    """The condition of a case.

    :param rates: least and largest rate of the bottleneck, Mbit/s.
    :param least_s: how long a path is watched at least, s.

    RTT 5 to 300 ms, 1 to 60 Mbit/s, buffer of 0.25 to 4 times the bandwidth-delay product (all evenly in their logarithms), half with jitter,
    half with loss, all congestion controls, bulk and limited applications, other flows, and changes of the path.
    """
    r = random.Random(f"{name} {case}")
    rtt = math.exp(r.uniform(math.log(5), math.log(300)))
    share = r.uniform(0.2, 0.8)
    rate = math.exp(r.uniform(*map(math.log, rates)))
    bdp = rate * 1e6 / 8 * rtt / 1e3
    buffer = max(15_140, round(bdp * math.exp(r.uniform(math.log(0.25), math.log(4)))))
    kind = r.choices(("bulk", "rate", "reader", "rcvbuf", "sndbuf", "crowd", "change"), (58, 10, 6, 7, 6, 7, 6))[0]
    has_rate = kind in ("bulk", "crowd", "change") or r.random() < 0.6
    queue = "tbf" if r.random() < 0.9 or not has_rate else r.choice(("fq_codel", "codel", "pie"))
    jitter_on = r.choices(("none", "forward", "reverse", "both"), (45, 25, 10, 20))[0]
    jitter = rtt * math.exp(r.uniform(math.log(0.005), math.log(0.25))) if jitter_on != "none" else 0.0
    forward_ms, reverse_ms = rtt * share, rtt * (1 - share)
    distribution = r.choices(("normal", "pareto", "uniform"), (75, 10, 15))[0] if jitter else "normal"
    # A tail that reaches below 0 is cut off by netem, and the mean and the spread are no more those that it was told.
    jitter = min(jitter, *(d / 3 for d, on in ((forward_ms, "forward"), (reverse_ms, "reverse")) if jitter_on in (on, "both")), rtt)
    loss = math.exp(r.uniform(math.log(0.01), math.log(3))) if r.random() < 0.5 else 0.0
    ack_loss = math.exp(r.uniform(math.log(0.05), math.log(3))) if r.random() < 0.1 else 0.0
    cca = only or r.choices(CONTROLS, [20 if c == "bbr" else 30 if c == "cubic" else 10 if c == "reno" else 40 / 14 for c in CONTROLS])[0]

    def netem(delay: float, jittery: bool, lost: float, at_router: bool) -> dict[str, Any]:
        hop: dict[str, Any] = {"delay": f"{delay:.6f}ms"}
        if at_router:
            hop["at"] = "router"
        if jittery and jitter:
            hop |= {"jitter": f"{jitter:.6f}ms", "distribution": distribution}
        if lost:
            hop["loss"] = f"{lost:.5f}%"
        return hop

    # The receiver's own egress has a queue that does nothing, so that the capture there sees the ACKs before their path.
    before = r.uniform(0.1, 0.9)
    jitter_first = r.random() < 0.5
    # The data pass two routers, so that a capture on the way has a part of the delay before it and a part behind it.
    ahead, behind = forward_ms * before, forward_ms * (1 - before)
    if jitter_on in ("forward", "both"):
        least = 3 * jitter
        ahead, behind = (max(ahead, least), forward_ms - max(ahead, least)) if jitter_first else (forward_ms - max(behind, least), max(behind, least))
    first = netem(ahead, jitter_on in ("forward", "both") and jitter_first, loss, True)
    second = netem(behind, jitter_on in ("forward", "both") and not jitter_first, 0.0, False)
    flow: dict[str, Any] = {"cca": cca}
    speed = rate if has_rate else math.exp(r.uniform(math.log(1), math.log(40)))
    if kind == "rate":
        flow["app"] = {"rate": f"{speed * r.uniform(0.1, 0.7):.4f}mbit", "chunk": r.choice((1_024, 1_448, 4_096, 8_192, 28_960, 65_536, 262_144))}
        flow["nodelay"] = r.random() < 0.5
    elif kind == "reader":
        size = r.choice((4, 8, 16, 32, 64))
        flow["read"] = f"{size}KiB/{max(1, round(size * 8.192 / (speed * r.uniform(0.2, 0.7)))):d}ms"
    elif kind == "rcvbuf":
        flow["rcvbuf"] = f"{max(4_608, round(speed * 125 * rtt * r.uniform(0.2, 0.8)))}B"
    elif kind == "sndbuf":
        flow["sndbuf"] = f"{max(4_608, round(speed * 125 * rtt * r.uniform(0.2, 0.8)))}B"
    seconds = max(least_s, min(40, round(MOST_PACKETS * 12_000 / (speed * 1e6)))) if has_rate else 30
    scenario: dict[str, Any] = {
        "name": f"{name}-{case:03d}",
        "duration": f"{seconds}s",
        "forward": [first, second],
        "reverse": ["pfifo limit 10000", netem(reverse_ms, jitter_on in ("reverse", "both"), ack_loss, False)],
        "flows": [flow],
        "offload": r.random() < 0.2,
    }
    if kind == "crowd":
        scenario["flows"].append({"cca": r.choice(("cubic", "bbr", "reno")), "count": r.choice((1, 1, 2, 4))})
    if has_rate:
        burst = max(3_028, round(rate * 1e6 / 8 / 250))
        tbf = f"tbf rate {rate:.4f}mbit burst {burst} limit {buffer}"
        scenario["bottleneck"] = [tbf if queue == "tbf" else f"tbf rate {rate:.4f}mbit burst {burst} limit 10mb ; {queue}"]
    path: dict[str, Any] = {
        "rtt_ms": forward_ms + reverse_ms,
        "jitter_ms": jitter * deviation(distribution),
        "jitter_on": jitter_on,
        "distribution": distribution if jitter else None,
        "order_kept": False if jitter else None,
        "loss_pct": loss,
        "ack_loss_pct": ack_loss,
        "rate_mbps": rate if has_rate else None,
        "buffer_bytes": buffer if has_rate and queue == "tbf" else None,
        "queue": queue if has_rate else None,
        "changes": [],
    }
    if kind == "change":
        at, what = round(seconds * r.uniform(0.35, 0.65), 3), r.choice(("rate", "rtt", "outage"))
        if what == "rate" and queue == "tbf":
            after = rate * r.choice((0.33, 0.5, 2.0))
            scenario["changes"] = [{"where": "bottleneck", "at": f"{at}s", "set": {"rate": f"{after:.4f}mbit"}}]
            path["changes"] = [{"at_s": at, "kind": "rate", "before": rate, "after": after}]
        elif what == "outage":
            length = round(r.uniform(0.3, 2.0), 3)
            steps = ((at, True), (at + length, False))
            scenario["changes"] = [{"where": "bottleneck", "at": f"{t:.3f}s", "set": {"outage": on}} for t, on in steps]
            path["changes"] = [{"at_s": at, "kind": "outage", "before": None, "after": length}]
        else:
            more = rtt * r.choice((0.3, 0.5, 1.0))
            scenario["changes"] = [{"where": "forward", "hop": 1, "at": f"{at}s", "set": {"delay": f"{behind + more:.6f}ms"}}]
            path["changes"] = [{"at_s": at, "kind": "rtt", "before": rtt, "after": rtt + more}]
    timestamps = r.random() < 0.75
    place = r.choices(PLACES, (45, 25, 30))[0]
    cut = r.choices(("no", "begin", "end", "snap"), (75, 12, 5, 8))[0]
    begin, end = r.uniform(0.1, 0.3) * seconds, r.uniform(0.6, 0.9) * seconds
    shown = {"place": place, "cut": cut, "from_s": begin if cut == "begin" else 0.0, "to_s": end if cut == "end" else None}
    return Case(scenario, path, kind, shown, timestamps, {} if timestamps else {"net.ipv4.tcp_timestamps": "0"})


DOMAINS = {
    "usual": "Linux 6.1, an Ethernet path without jitter",
    "no timestamps": "both ends without timestamps",
    "no SACK": "both ends without SACK",
    "offload": "super-packets at both ends",
    "MTU": "an MTU of 576, 1280, 4000 or 9000 bytes",
    "path MTU": "segments of 524 to 1200 bytes at first, below the MSS of the SYNs, larger ones as the sender's probes succeed",
    "thin ACKs": "the path loses 40 to 80 % of the ACKs",
    "policer": "a token bucket of 20 to 100 ms without a queue",
    "token bucket": "a queue behind a token bucket of 20 to 200 ms",
    "order kept": "jitter that keeps the order",
    "reordering": "jitter that does not",
    "others": "other flows on the path",
    "programs": "programs that write and pause in turn, or answer requests",
    "slow": "50 to 500 kbit/s",
    "fast": "100 Mbit/s to 1 Gbit/s, super-packets",
    "mid-connection": "captures that begin when 10 to 40 % of the trial are over",
    "cut options": "captures that keep 40 or 54 bytes of each IP packet: no option of TCP, or no block of a SACK beside timestamps",
    "coarse clock": "captures whose times are rounded down to 10 µs or 1 ms",
    "missing frames": "captures that lack 0.3 to 2 % of the packets, one by one or in bursts, because the capturing program dropped them",
    "both ways": "a flow against it, whose queue the ACKs share",
    "kernels": "Linux 6.12",
}
"""Domain → what is other in it than in `usual`; it is half of the sets drawn without jitter, changes and other flows."""
SNAPS = (160, 160, 96, 68)
"""Bytes kept of each packet."""
CUT_SNAPS = (40, 54)
"""The same where options are cut: `tcpdump -s 54` and `-s 68` on Ethernet."""
STEPS = (10_000, 1_000_000)
"""Steps of a coarse clock, ns."""
BURSTS = (1.0, 20.0)
"""Packets in a row, in the mean, that are missing where some are."""


def draw_into(domain: str, case: int, name: str) -> Case:
    """A condition of a domain: drawn again until it has nothing that belongs to another one, then changed to be of this one."""
    r = random.Random(f"{name} {case} {domain}")
    rates, least_s = {"slow": ((0.05, 0.5), 10), "fast": ((100.0, 1000.0), 4)}.get(domain, ((1.0, 60.0), 10))
    jitter, others = domain in ("order kept", "reordering"), domain == "others"
    for attempt in range(10_000):
        drawn = draw(case, f"{name} {attempt}", None, rates, least_s)
        is_odd = not drawn.timestamps or drawn.scenario["offload"] or drawn.kind == "change" or drawn.path["queue"] not in (None, "tbf")
        needs_rate = domain in ("policer", "token bucket", "slow", "fast", "programs") and not drawn.path["rate_mbps"]
        is_held = domain == "programs" and drawn.kind != "bulk"
        if not is_odd and not needs_rate and not is_held and (drawn.kind == "crowd") == others and (drawn.path["jitter_on"] != "none") == jitter:
            break
    scenario, path, sysctls = drawn.scenario, drawn.path, {}
    scenario["flows"][0]["start"] = "400ms"  # a SYN of the other end would be earlier
    bits = (path["rate_mbps"] or 0.0) * 1e6
    if domain == "no timestamps":
        sysctls["net.ipv4.tcp_timestamps"] = "0"
    elif domain == "no SACK":
        sysctls["net.ipv4.tcp_sack"] = "0"
    elif domain in ("offload", "fast"):
        scenario["offload"] = True
    elif domain == "MTU":
        scenario["mtu"] = mtu = r.choice((576, 1280, 4000, 9000))
        if path["rate_mbps"]:
            path["buffer_bytes"] = max(path["buffer_bytes"], 10 * (mtu + 14))
            burst = max(2 * (mtu + 14), round(bits / 8 / 250))
            scenario["bottleneck"] = [f"tbf rate {path['rate_mbps']:.4f}mbit burst {burst} limit {path['buffer_bytes']}"]
    elif domain == "path MTU":
        sysctls |= {"net.ipv4.tcp_mtu_probing": "2", "net.ipv4.tcp_base_mss": r.choice(("536", "1000", "1212"))}
    elif domain == "thin ACKs":
        path["ack_loss_pct"] = r.uniform(40, 80)
        scenario["reverse"][1]["loss"] = f"{path['ack_loss_pct']:.5f}%"
    elif domain == "policer":
        burst = max(6_056, round(bits / 8 * r.uniform(0.02, 0.1)))
        scenario["bottleneck"] = [f"tbf rate {path['rate_mbps']:.4f}mbit burst {burst} limit 3028"]
        path["buffer_bytes"] = None
    elif domain == "token bucket":
        burst = max(6_056, round(bits / 8 * r.uniform(0.02, 0.2)))
        scenario["bottleneck"] = [f"tbf rate {path['rate_mbps']:.4f}mbit burst {burst} limit {path['buffer_bytes']}"]
    elif domain == "order kept":
        for hop in (hop for way in ("forward", "reverse") for hop in scenario[way] if "jitter" in hop):
            hop["rate"] = "1gbit"  # netem keeps the order of what it also paces
        path["order_kept"] = True
    elif domain == "programs":
        pauses = {"on": f"{r.uniform(0.3, 4):.3f}s", "off": f"{r.uniform(0.2, 3):.3f}s"}
        pace = {"rate": f"{path['rate_mbps'] * r.uniform(0.2, 0.8):.4f}mbit", "chunk": r.choice((1_000, 4_096, 16_384, 65_536))}
        answers = {"response": f"{max(3_000, round(bits / 8 * r.uniform(0.05, 1.5)))}B", "think": f"{r.uniform(20, 1_500):.0f}ms"}
        scenario["flows"][0]["app"] = r.choice((pauses, pauses | pace, answers))
        drawn = replace(drawn, kind="programs")
    elif domain == "both ways":
        back = path["rate_mbps"] or math.exp(r.uniform(math.log(1), math.log(60)))
        limit = max(15_140, round(back * 125 * path["rtt_ms"] * math.exp(r.uniform(math.log(0.25), math.log(4)))))
        scenario["reverse"].append(f"tbf rate {back:.4f}mbit burst {max(3_028, round(back * 500))} limit {limit}")
        scenario["flows"].append({"cca": r.choice(("cubic", "bbr", "reno")), "direction": "up"})
    kernel = "6.12" if domain == "kernels" else "6.1"
    return replace(drawn, timestamps=domain != "no timestamps", sysctls=sysctls, domain=domain, kernel=kernel)


def views(case: Case, name: str) -> Iterator[dict[str, Any]]:
    """How each place shows a case of a domain: who opened the connection, how much of each packet was kept, what the capture lacks."""
    r = random.Random(f"views of {name} {case.scenario['name']}")
    for place in PLACES:
        shown = {"place": place, "cut": "no", "from_s": 0.0, "to_s": None, "opened": r.choice(("sender", "receiver")), "snap": r.choice(SNAPS)}
        if case.domain == "mid-connection":
            shown |= {"cut": "begin", "from_s": r.uniform(0.1, 0.4) * float(case.scenario["duration"].removesuffix("s"))}
        elif case.domain == "cut options":
            shown |= {"cut": "snap", "snap": r.choice(CUT_SNAPS)}
        elif case.domain == "coarse clock":
            shown["step_ns"] = r.choice(STEPS)
        elif case.domain == "missing frames":
            shown |= {"missing_pct": math.exp(r.uniform(math.log(0.3), math.log(2))), "burst": r.choice(BURSTS), "seed": r.getrandbits(32)}
        yield shown


Packet = tuple[int, bytes, int]
"""Time, ns; an IPv4 packet as far as it was kept; its length."""


def packets(raw: bytes) -> Iterator[Packet]:
    """The packets of a capture with nanoseconds."""
    at = 24
    while at + 16 <= len(raw):
        s, ns, kept, length = struct.unpack_from("<IIII", raw, at)
        yield s * 1_000_000_000 + ns, raw[at + 16 : at + 16 + kept], length
        at += 16 + kept


def cut(source: Path, target: Path, shown: dict[str, Any]) -> None:
    """Copies a capture as the case shows it: opened by the other end, parts of it missing, of each packet the first bytes, by a coarse clock."""
    raw = source.read_bytes()
    parts, most = [raw[:24]], shown.get("snap", 66 if shown["cut"] == "snap" else 65_536)
    kept = list(packets(raw))
    if shown.get("opened") == "receiver":
        swapped = opened_by_receiver(kept)
        shown["opened"], kept = ("sender", kept) if swapped is None else ("receiver", swapped)
    step = shown.get("step_ns", 1)
    for t, packet, length in without_missing(kept, shown):
        if t / 1e9 >= shown["from_s"] and (shown["to_s"] is None or t / 1e9 <= shown["to_s"]):
            least = min(len(packet), most)
            parts += [struct.pack("<IIII", *divmod(t - t % step, 1_000_000_000), least, length), packet[:least]]
    target.write_bytes(b"".join(parts))


def without_missing(kept: list[Packet], shown: dict[str, Any]) -> Iterator[Packet]:
    """The packets that the capturing program did not drop: two states, of which it leaves each at random (Gilbert 1960)."""
    if not (share := shown.get("missing_pct", 0.0) / 100):
        yield from kept
        return
    r, is_dropping = random.Random(shown["seed"]), False
    begins, ends = share / (1 - share) / shown["burst"], 1 / shown["burst"]
    for packet in kept:
        is_dropping = r.random() >= ends if is_dropping else r.random() < begins
        if not is_dropping:
            yield packet


SYN, ACK = 2, 16
FLAGS, TO_TIMESTAMPS = 13, 8
"""Place of the flags in a TCP header; bytes of a TSval and TSecr."""


def opened_by_receiver(kept: list[Packet]) -> list[Packet] | None:
    """The same flow as if its receiver had opened the connection; None where a packet of the handshake was repeated.

    The sender's SYN becomes the SYN-ACK, before which a SYN came, and the receiver's SYN-ACK the ACK that completes the handshake.
    """
    at_syn = next(i for i, (_, p, _) in enumerate(kept) if _flags(p) & (SYN | ACK) == SYN and int.from_bytes(p[22:24], "big") == 9_000)
    t, syn, length = kept[at_syn]
    port = syn[20:22]
    of_flow = [i for i in range(at_syn + 1, len(kept)) if port in (kept[i][1][20:22], kept[i][1][22:24])]
    if sum(bool(_flags(kept[i][1]) & SYN) for i in of_flow) > 1:
        return None
    at_answer = next(i for i in of_flow if _flags(kept[i][1]) & SYN)
    at_ack = next(i for i in of_flow if i > at_answer and kept[i][1][20:22] == port)
    later = next(i for i in of_flow if i > at_ack and kept[i][1][22:24] == port)
    t_answer, answer, answer_length = kept[at_answer]
    first = _changed(answer, flags=SYN, ack=b"\0\0\0\0", echo=b"\0\0\0\0")
    second = _changed(syn, flags=SYN | ACK, ack=(int.from_bytes(answer[24:28], "big") + 1).to_bytes(4, "big"), echo=_stamps(answer)[:4])
    number = (int.from_bytes(answer[24:28], "big") + 1).to_bytes(4, "big")
    third = _changed(kept[later][1], flags=ACK, ack=(int.from_bytes(syn[24:28], "big") + 1).to_bytes(4, "big"), echo=_stamps(syn)[:4])
    third = third[:4] + answer[4:6] + third[6:24] + number + third[28:]
    begun = (t - (kept[at_ack][0] - t_answer), first, answer_length)
    changed = {at_syn: (t, second, length), at_answer: (t_answer, third, kept[later][2]), at_ack: None}
    rest = [changed.get(i, p) for i, p in enumerate(kept)]
    if kept[at_ack][2] > 20 + 4 * (kept[at_ack][1][32] >> 4):  # it has data too
        rest[at_ack] = kept[at_ack]
    return sorted([begun, *(p for p in rest if p is not None)], key=lambda p: p[0])


def _flags(packet: bytes) -> int:
    return packet[20 + FLAGS] if packet[9] == 6 else 0


def _stamps(packet: bytes) -> bytes:
    """TSval and TSecr, or nothing."""
    at = _stamps_at(packet)
    return packet[at : at + TO_TIMESTAMPS] if at else b""


def _stamps_at(packet: bytes) -> int:
    """Where a packet's TSval is; 0 without timestamps."""
    at, end = 40, 20 + 4 * (packet[32] >> 4)
    while at < end:
        kind = packet[at]
        if kind == 8:
            return at + 2
        at += 1 if kind == 1 else end if kind == 0 else max(2, packet[at + 1])
    return 0


def _changed(packet: bytes, flags: int, ack: bytes, echo: bytes) -> bytes:
    """A packet with other flags, acknowledgement and TSecr."""
    found = bytearray(packet)
    found[20 + FLAGS], found[28:32] = flags, ack
    if (at := _stamps_at(packet)) and echo:
        found[at + 4 : at + TO_TIMESTAMPS] = echo
    return bytes(found)


def record(case: Case, seed: int, engine: Virtual, out: Path) -> None:
    """Runs a case and keeps its captures and its truth; what is there already is left alone."""
    if (out / "truth.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    scenario = Scenario.model_validate(case.scenario)
    trial = engine.record(scenario, seed, {p: out / f"{p}.pcap" for p in PLACES}, capture=Capture(samples_ns=SAMPLES), sysctls=case.sysctls)
    assert trial.samples is not None
    trial.samples.write_parquet(out / "info.parquet")
    truth = {
        "scenario": case.scenario,
        "seed": seed,
        "kind": case.kind,
        "domain": case.domain,
        "path": case.path,
        "shown": case.shown,
        "timestamps": case.timestamps,
        "cca": [f.cca for f in trial.flows],
        "flows": [asdict(f) for f in trial.flows],
        "queues": list(trial.queues),
        "counters": dict(trial.counters),
        "version": trial.version,
        "caveats": list(trial.caveats),
    }
    if not case.domain:
        cut(out / f"{case.shown['place']}.pcap", out / "shown.pcap", case.shown)
        (out / "truth.json").write_text(json.dumps(truth, indent=1, default=str), "utf-8")
        return
    for shown in views(case, out.parent.name):
        view = out.with_name(f"{out.name}-{shown['place']}")
        view.mkdir(exist_ok=True)
        cut(out / f"{shown['place']}.pcap", view / "shown.pcap", shown)
        for name in ("sender.pcap", "info.parquet"):
            (view / name).unlink(missing_ok=True)
            (view / name).hardlink_to(out / name)
        (view / "truth.json").write_text(json.dumps({**truth, "shown": shown}, indent=1, default=str), "utf-8")
    shutil.rmtree(out)


def main() -> None:
    """Draws and records."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--cases", type=int, default=210)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--draw", default="dev", help="name of the set, which is its seed")
    parser.add_argument("--domains", nargs="*", choices=DOMAINS, metavar="DOMAIN", help="cases of these domains in turn (all), three views of each")
    arguments = parser.parse_args()
    engine_of = functools.cache(lambda kernel: engines.make(f"virtual:{kernel}"))
    for i in range(arguments.first, arguments.first + arguments.cases):
        chosen = arguments.domains or [*DOMAINS]
        case = draw(i, arguments.draw) if arguments.domains is None else draw_into(chosen[i % len(chosen)], i, arguments.draw)
        if case.domain and (arguments.out / f"{i:03d}-receiver").exists():
            continue
        try:
            engine = engine_of(case.kernel)
            assert isinstance(engine, Virtual)
            record(case, i, engine, arguments.out / f"{i:03d}")
        except Exception as e:
            print(f"{i:03d}: {e}", flush=True)
        else:
            print(f"{i:03d} {case.domain} {case.kind} {case.scenario['flows'][0]['cca']}", flush=True)


if __name__ == "__main__":
    main()
