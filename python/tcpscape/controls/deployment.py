"""What Linux has of a congestion control, and what to type so that a machine uses it: now, after every start, and to go back.

The facts are those of ip-sysctl, tcp(7), sysctl.d(5), modules-load.d(5) and modprobe.d(5), and of the mainline kernels 6.x, which have every
congestion control in :data:`tcpscape.controls.spelling.LINUX` as a module `tcp_NAME`; `reno` is part of TCP, and `cubic` is built in where it is
the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tcpscape.controls import spelling

Host = Literal["sender", "receiver", "client", "router"]
"""A machine that something is typed on: that sends the data, receives them, opens the connections, or has the queue of the bottleneck."""
DEFAULT = "cubic"
"""Linux's default congestion control."""
SYSCTL = "net.ipv4.tcp_congestion_control"
SYSCTL_FILE = "/etc/sysctl.d/90-tcp-congestion-control.conf"
ALWAYS_THERE = ("cubic", "reno")
"""Congestion controls that need no module to be loaded."""
OWN_PARAMETERS: Mapping[str, tuple[str, ...]] = {"cubic": ("hystartpp",)}
"""Parameters of tcpscape's that Linux's module does not have; it has all others."""
DESTINATION = "192.0.2.0/24"
"""A destination, in commands."""
BY_ROUTE = f"ip route replace {DESTINATION} $(ip route get 192.0.2.1 | grep -oE '(via [^ ]+ )?dev [^ ]+') {{}}"
"""What holds for one destination (ip-route(8)): its route as it is, with further words."""
DEFAULT_ROUTE = "ip route change $(ip route show default | head -n 1) {}"
"""The same for all that have no route of their own."""
SENDER = "As root, on the machine that sends the data; the congestion control of the receiver plays no part."
USUAL_WINDOW = 10
"""Linux's initial window, segments (RFC 6928)."""
RUNNING = "Connections that are open keep their {} until they end, both now and when you go back."
NAMESPACE = "A network namespace (a container) has a sysctl of its own."
NOTES: Mapping[str, str] = {
    "bbr": "BBR paces. Since Linux 4.13 TCP paces by itself, so the qdisc fq is not required (net.core.default_qdisc may stay); fq takes less CPU.",
    "dctcp": "DCTCP needs ECN at both ends and queues that mark early: it is meant for data centres (RFC 8257), not for the internet.",
    "lp": "TCP-LP is meant for transfers in the background.",
}
"""What else a congestion control needs."""


def obstacle(label: str, profile: str) -> str:
    """Why a congestion control cannot be deployed on the kernel `profile`, a mainline Linux 6.x; empty where it can."""
    if spelling.is_class(label):
        return "simulated only: a Python class"
    name, parameters = spelling.split(label)
    if name not in spelling.LINUX:
        return f"not in Linux {profile}"
    missing = [p for p in parameters if p in OWN_PARAMETERS.get(name, ())]
    return f"Linux {profile} has no {name} with {missing[0]}" if missing else ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Shell commands, to be typed as root: for a congestion control on the machine that sends the data, for a buffer on the one that has it."""

    now: tuple[str, ...]
    """Until the next start; connections that exist keep theirs."""
    before: tuple[str, ...]
    """What is to be noted before anything changes, to go back to."""
    permanent: tuple[str, ...]
    """After every start."""
    verify: tuple[str, ...]
    """What shows that it is used."""
    undo: tuple[str, ...]
    """What goes back to the state before."""
    notes: tuple[str, ...]
    """Sentences."""
    destination: tuple[str, ...] = ()
    """Instead of `now`, for one destination alone."""

    @property
    def command(self) -> str:
        """The commands of `now` in one line; empty where nothing has to change."""
        return " && ".join(self.now)

    def lines(self) -> list[str]:
        """The commands, as lines to read and to copy."""
        parts = (
            ("before: note this value, to go back to", self.before),
            ("now", self.now),
            (f"or for {DESTINATION} alone", self.destination),
            ("permanently", self.permanent),
            ("verify", self.verify),
            ("go back", self.undo),
        )
        return [line for title, group in parts if group for line in (f"# {title}", *group)]


def deployment(label: str) -> Deployment:
    """What to type so that Linux uses a congestion control that it has (:func:`obstacle`)."""
    name, parameters = spelling.split(label)
    verify = (f"sysctl {SYSCTL}   # = {name}", f"ss -ti state established   # new connections name {name}")
    if name == DEFAULT and not parameters:
        return Deployment((), (), (), verify[:1], (), (f"Nothing to change: {name} is Linux's default.",))
    module = () if name in ALWAYS_THERE else (f"modprobe tcp_{name}",)
    loaded, options, note = f"/etc/modules-load.d/tcp_{name}.conf", f"/etc/modprobe.d/tcp_{name}.conf", NOTES.get(name)
    switches = tuple(f"echo {value} > /sys/module/tcp_{name}/parameters/{key}" for key, value in parameters.items())
    change = () if name == DEFAULT else (f"sysctl -w {SYSCTL}={name}",)
    permanent = [*([f"echo tcp_{name} > {loaded}"] if module else [])]
    permanent += [f"echo '{SYSCTL} = {name}' > {SYSCTL_FILE}"] if change else []
    if parameters:
        values = " ".join(f"{key}={value}" for key, value in parameters.items())
        built_in = ", ".join(f"tcp_{name}.{key}={value}" for key, value in parameters.items())
        permanent.append(f"echo 'options tcp_{name} {values}' > {options}   # where it is built in: {built_in} on the kernel's command line")
    files = [*([loaded] if module else []), *([SYSCTL_FILE] if change else []), *([options] if parameters else [])]
    undo = [*([f"sysctl -w {SYSCTL}={DEFAULT}   # or the value noted before"] if change else []), f"rm {' '.join(files)}"]
    notes = (SENDER, RUNNING.format("congestion control"), NAMESPACE, *([note] if note else []))
    before = (f"sysctl {SYSCTL}",) if change else ()
    route = (*module, BY_ROUTE.format(f"congctl {name}")) if change and not parameters else ()
    return Deployment((*module, *switches, *change), before, tuple(permanent), verify, tuple(undo), notes, route)


BUFFERS: Mapping[str, tuple[str, str, str]] = {
    "receive": ("net.ipv4.tcp_rmem", "4096 131072", "receives"),
    "send": ("net.ipv4.tcp_wmem", "4096 16384", "sends"),
}
"""Buffer → its sysctl, Linux's own least and first size, and what its machine does with the data."""
GROWS = "Each connection takes of it what its path needs; memory that a busy machine lacks is shared out by net.ipv4.tcp_mem."


def larger_buffer(buffer: str, size: int) -> Deployment:
    """What to type so that a `receive` or `send` buffer of TCP grows up to `size` bytes (tcp(7))."""
    sysctl, first, does = BUFFERS[buffer]
    notes = (f"As root, on the machine that {does} the data.", RUNNING.format("buffers"), NAMESPACE, GROWS)
    return _of_sysctl(sysctl, f'"{first} {size}"', f"90-tcp-{buffer}-buffer", notes, '"…"   # the values noted before')


DEVICE = "eth0"
"""The device of a host or of a router, in commands."""
DEVICE_NOTE = f"{DEVICE} is the device towards the {{}}: ip route get ADDRESS names it."


def fq_at_the_sender() -> Deployment:
    """What to type so that the qdisc fq paces every connection of a machine (tc-fq(8))."""
    sysctl, file = "net.core.default_qdisc", "/etc/sysctl.d/90-default-qdisc.conf"
    notes = (
        "As root, on the machine that sends the data: fq paces every connection, cubic's too.",
        DEVICE_NOTE.format("receiver"),
        "Connections that are open are paced from then on, too.",
        "A device of many queues shares one lock then; after a start, default_qdisc gives each of its queues an fq.",
    )
    return Deployment(
        (f"tc qdisc replace dev {DEVICE} root fq",),
        (f"tc qdisc show dev {DEVICE} && sysctl {sysctl}",),
        (f"echo '{sysctl} = fq' > {file}",),
        (f"tc -s qdisc show dev {DEVICE}   # names fq",),
        (f"tc qdisc del dev {DEVICE} root", f"rm {file}"),
        notes,
    )


def explicit_notification() -> Deployment:
    """What to type so that connections which a machine opens ask for ECN (`tcp_ecn` in ip-sysctl; RFC 3168)."""
    notes = (
        "As root, on the machine that opens the connections; the other end answers where its tcp_ecn is 1 or 2 (2 is Linux's default).",
        "It does nothing where the queue of the bottleneck does not mark.",
        NAMESPACE,
    )
    return _of_sysctl("net.ipv4.tcp_ecn", "1", "90-tcp-ecn", notes, "2   # or the value noted before")


def window_after_pause() -> Deployment:
    """What to type so that a connection keeps its window while its application pauses (`tcp_slow_start_after_idle` in ip-sysctl)."""
    notes = (SENDER.partition(";")[0] + ".", "It holds for connections that are open, too.", NAMESPACE)
    return _of_sysctl("net.ipv4.tcp_slow_start_after_idle", "0", "90-tcp-after-idle", notes, "1   # or the value noted before")


def initial_window(segments: int) -> Deployment:
    """What to type so that a machine's connections begin with a window of so many segments (ip-route(8), RFC 6928)."""
    words, usual = f"initcwnd {segments}", f"initcwnd {USUAL_WINDOW}"
    notes = (
        SENDER.partition(";")[0] + ".",
        RUNNING.format("window"),
        "It changes the first default route of IPv4 alone: repeat it for further ones, with `ip -6` for IPv6, or name one destination.",
        "A burst of so many segments goes out at once: where the bottleneck's queue is shorter, it is dropped there.",
        "A start, or the next lease of DHCP, forgets it: write it where routes are set up (systemd.network(5): InitialCongestionWindow=).",
    )
    return Deployment(
        (DEFAULT_ROUTE.format(words),),
        ("ip route show default",),
        (),
        (f"ip route show default   # names {words}",),
        (f"{DEFAULT_ROUTE.format(usual)}   # or the route noted before",),
        notes,
        (BY_ROUTE.format(words),),
    )


def queue_of_a_device(queue: str) -> Deployment:
    """What to type so that a router's device towards the bottleneck has another queue (tc(8))."""
    notes = (
        "As root, on the router whose queue it is.",
        DEVICE_NOTE.format("bottleneck"),
        "It holds where this device is the slowest place. Where a modem or a contract is slower, shape below its rate: "
        "tcpscape advise --goal calls names the share.",
        "A start forgets it: write it where the router sets up its devices, or as net.core.default_qdisc.",
    )
    return Deployment(
        (f"tc qdisc replace dev {DEVICE} root {queue}",),
        (f"tc qdisc show dev {DEVICE}",),
        (f"echo 'net.core.default_qdisc = {queue}' > /etc/sysctl.d/90-default-qdisc.conf",),
        (f"tc -s qdisc show dev {DEVICE}   # names {queue}",),
        (f"tc qdisc del dev {DEVICE} root", "rm /etc/sysctl.d/90-default-qdisc.conf"),
        notes,
    )


def _of_sysctl(name: str, value: str, file: str, notes: tuple[str, ...], before: str) -> Deployment:
    """A value of one sysctl, now, after every start, and back; `before`: what is written to go back."""
    path, plain = f"/etc/sysctl.d/{file}.conf", value.strip('"')
    return Deployment(
        (f"sysctl -w {name}={value}",),
        (f"sysctl {name}",),
        (f"echo '{name} = {plain}' > {path}",),
        (f"sysctl {name}   # = {plain}",),
        (f"sysctl -w {name}={before}", f"rm {path}"),
        notes,
    )
