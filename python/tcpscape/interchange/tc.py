"""A scenario as a shell script that builds its path on a Linux machine: network namespaces in a row, tc's queues at their interfaces.

sender – router 1 … router n – receiver, as the virtual engine wires them: a direction's first queue at the end host's own egress (or at the
first router, where the scenario says so), each further one at the next router's. Source: tc(8), ip-netns(8), veth(4), ethtool(8), iperf3(1).
Everything that tc and iperf3 cannot do is named in the script's first lines, as comments.

A name or a word of the scenario never becomes a command: comments are one line of printable characters, every word of a command is quoted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcpscape import units
from tcpscape.controls import spelling
from tcpscape.engines.model import Model
from tcpscape.errors import printable
from tcpscape.scenario import path
from tcpscape.scenario.flows import Flow
from tcpscape.scenario.scenario import Scenario
from tcpscape.scenario.words import within

NOT_TCS = {"jitter": "is not tc's (order: clamp and correlated, docs/models/queues/jitter.md)", "dualpi2": "is tc's only since Linux 6.17"}
"""Queues that a usual tc refuses, and why."""
NET = "10.77"
"""Private addresses (RFC 1918): the link behind host k is 10.77.k.0/24."""


@dataclass(frozen=True, slots=True)
class _Queue:
    """A queue with its children at an interface: host, device, words from the outside in."""

    host: int
    device: str
    words: tuple[str, ...]


def write(scenario: Scenario) -> bytes:
    """The script; run it as root. It leaves the namespaces `tcpscape0` (sender), `tcpscape1` … (the last is the receiver)."""
    scenario.expect_path()
    built = ("data that travel up", "transfers", "probes", "requests", "pauses of applications", "no flows")
    fix = "write the path of one link, or run it with --engine virtual"
    scenario.expect_plain("and a script of tc's is one link between two hosts", fix, but=built)
    forward, backward = _stages(scenario, ("forward", "bottleneck")), _stages(scenario, ("reverse",))
    at_router = bool(scenario.forward) and isinstance(hop := scenario.forward[0], path.Netem) and hop.at == "router"
    first = 1 if at_router or not scenario.forward else 0
    routers = max(len(forward) - 1 + first, len(backward) - 1, 1)
    queues = [_Queue(first + k, "right", tuple(w)) for k, w in enumerate(forward)]
    queues += [_Queue(routers + 1 - k, "left", tuple(w)) for k, w in enumerate(backward)]
    lines = ["#!/bin/sh", _comment(f"{scenario.name}: the path of tcpscape's scenario {scenario.address()}, on Linux. Run as root.")]
    lines += [_comment(f"Not here: {what}.") for what in _missing(scenario, queues)]
    lines += ["set -eu", "", *_hosts(scenario, routers), "", "# queues"]
    lines += [line for q in queues for line in _tc(q)]
    lines += ["", "# flows", *_flows(scenario, routers)]
    lines += ["", f"# to remove it: for i in $(seq 0 {routers + 1}); do ip netns del tcpscape$i; done", ""]
    return "\n".join(lines).encode()


def _comment(text: str) -> str:
    """A comment, which is one line whatever the text is."""
    return f"# {printable(text)}"


def _quoted(words: str) -> str:
    """Words of tc, each quoted for a shell."""
    return shlex.join(words.split())


def _stages(scenario: Scenario, parts: Sequence[str]) -> list[list[str]]:
    """The queues of a direction in a row, each with its children, in tc's words with every default said."""
    engine = Model()
    stages = []
    for part in parts:
        for hop in getattr(scenario, part):
            for words in path.words(hop, scenario.rtt_ns):
                with within(part):
                    stages.append(engine.full_words(words, words).split("; "))
    return stages


def _missing(scenario: Scenario, queues: Sequence[_Queue]) -> Iterator[str]:
    """The parts of the scenario that the script does not build."""
    for q in queues:
        for words in q.words:
            if (name := words.split()[0]) in NOT_TCS:
                yield f"the queue {words!r}: {name} {NOT_TCS[name]}"
    if scenario.changes:
        yield f"{len(scenario.changes)} changes during the trial (tc has no schedule; `tc qdisc change` at their times)"
    hops = (*scenario.forward, *scenario.bottleneck, *scenario.reverse)
    for hop in hops:
        if isinstance(hop, path.TracedLink):
            yield f"the rates of {hop.trace.file} (tc has no trace; the queue has its mean rate), for which there is mm-link"
    for kind in scenario.extras:
        if kind in ("transfers", "probes", "requests", "pauses of applications"):
            yield f"its {kind} (tc has queues, not traffic)"
    yield f"kernel profile {scenario.kernel.profile}: its buffers and rules are those of the kernel that runs"
    for flow in scenario.flows:
        if flow.read.delay:
            yield f"a receiver that reads every {units.format_time(flow.read.delay)} (iperf3 reads at once)"
        if len(spelling.split(flow.cca)[1]):
            yield f"parameters of {flow.cca} (they are the module's, /sys/module/tcp_{spelling.name_of(flow.cca)}/parameters)"


def _hosts(scenario: Scenario, routers: int) -> Iterator[str]:
    """Namespaces, cables, addresses, routes."""
    last = routers + 1
    for k in range(last + 1):
        yield f"ip netns add tcpscape{k}; ip -n tcpscape{k} link set lo up"
        yield f"ip netns exec tcpscape{k} sysctl -qw net.ipv4.ip_forward={int(0 < k < last)} net.ipv4.tcp_ecn={1 if scenario.ecn else 2}"
    for k in range(last):
        yield f"ip link add right netns tcpscape{k} type veth peer name left netns tcpscape{k + 1}"
        for host, device, number in ((k, "right", 1), (k + 1, "left", 2)):
            yield f"ip -n tcpscape{host} addr add {NET}.{k}.{number}/24 dev {device}"
            yield f"ip -n tcpscape{host} link set {device} mtu {scenario.mtu} up"
            switch = "on" if scenario.offload else "off"
            yield f"ip netns exec tcpscape{host} ethtool -K {device} tso {switch} gso {switch} gro {switch}"
    for k in range(last):
        if k < last - 1:
            yield f"ip -n tcpscape{k} route add {NET}.{last - 1}.0/24 via {NET}.{k}.2"
            yield f"ip -n tcpscape{last - k} route add {NET}.0.0/24 via {NET}.{last - k - 1}.1"


def _tc(queue: _Queue) -> Iterator[str]:
    """The commands of a queue and its children."""
    where = f"tc -n tcpscape{queue.host} {{}} add dev {queue.device}"
    parent = "root"
    for i, words in enumerate(queue.words, 1):
        name, _, rest = words.partition(" ")
        if name in NOT_TCS:
            yield _comment(f"{where.format('qdisc')} {parent} handle {i}: {words}")
        elif name == "htb":
            yield f"{where.format('qdisc')} {parent} handle {i}: htb default 1"
            yield f"{where.format('class')} parent {i}: classid {i}:1 htb {_quoted(rest)}"
        else:
            yield f"{where.format('qdisc')} {parent} handle {i}: {_quoted(words)}"
        parent = f"parent {i}:1"


def _flows(scenario: Scenario, routers: int) -> Iterator[str]:
    """The flows as iperf3 commands, in comments."""
    receiver = f"{NET}.{routers}.2"
    yield f"# ip netns exec tcpscape{routers + 1} iperf3 -s -D   # one server, with its own --port, for each line below"
    for flow in scenario.flows:
        command = _iperf3(scenario, flow, receiver)
        yield _comment(f"(sleep {flow.start / 1e9:g}; {command}) &" if flow.start else f"{command} &")


def _iperf3(scenario: Scenario, flow: Flow, receiver: str) -> str:
    seconds = ((flow.stop or scenario.duration) - flow.start) / 1e9
    name = flow.cca if spelling.is_class(flow.cca) else spelling.name_of(flow.cca)
    command = f"ip netns exec tcpscape0 iperf3 -c {receiver} -J -C {shlex.quote(name)} -P {flow.count} -l {flow.app.chunk}"
    command += " -R" if flow.direction == "up" else ""
    command += f" -n {flow.app.size}" if flow.app.size else f" -t {seconds:g}"
    command += f" -b {flow.app.rate * 8}" if flow.app.rate else ""
    command += f" -w {flow.rcvbuf or flow.sndbuf}" if flow.rcvbuf or flow.sndbuf else ""
    return command + (" -N" if flow.nodelay else "")
