"""What to type on a home's router so that a queue of one's own stands before its modem: on OpenWrt, and on any Linux.

The facts are those of tc-cake(8), tc-htb(8), tc-mirred(8), ifb, systemd.unit(5) and OpenWrt's description of `/etc/config/sqm` (sqm-scripts). A
router shapes a little below the link's rate, both ways, so that the modem's queue stays empty; the way down through an ifb device, since a queue
stands where packets leave.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tcpscape import units
from tcpscape.controls.deployment import DEVICE, Deployment
from tcpscape.errors import instead, refuse

FULL_FRAME = 1514
"""Bytes of a full frame: what a class of htb may send at once."""
ETHERNET = 14
"""Bytes of an Ethernet header."""
INSIDE = "ifb-wan"
"""The device through which a Linux router shapes the way down; the module ifb makes ifb0 and ifb1 itself when it is loaded."""
SHAPED_ITSELF = ("cake",)
"""Queues that have a rate of their own; another one is below HTB."""
SCRIPTS: Mapping[str, str] = {"cake": "piece_of_cake.qos", "fq_codel": "simplest.qos", "codel": "simplest.qos", "pie": "simplest.qos"}
"""Queue → the script of OpenWrt's sqm-scripts that sets it up."""
UNIT = ("[Unit]", "Wants=network-online.target", "After=network-online.target", "[Service]", "Type=oneshot")
"""Begins the unit of systemd that shapes after every start."""
LINUX, OPENWRT = "linux", "openwrt"
SYSTEMS: Mapping[str, str] = {LINUX: DEVICE, OPENWRT: "wan"}
"""System of a router → its usual device towards the modem; with PPPoE OpenWrt's is `pppoe-wan`, Linux's `ppp0`."""


@dataclass(frozen=True, slots=True)
class LinkLayer:
    """What a kind of link adds to each packet."""

    keyword: str
    """cake's word for it."""
    overhead: int
    """Bytes that each IP packet has more on the link, as cake counts them."""
    least: int = 0
    """Smallest size of a packet on the link, bytes; 0 is none."""
    is_atm: bool = False
    """Whether packets travel in cells of 48 of 53 bytes."""

    def of_class(self, header: int) -> str:
        """The words of a class of htb, which counts `header` bytes of the device's own already."""
        least = f" mpu {self.least}" if self.least else ""
        return f" overhead {self.overhead - header}{least}{' linklayer atm' if self.is_atm else ''}"


LINKS: Mapping[str, LinkLayer] = {
    "vdsl": LinkLayer("pppoe-ptm", 30),
    "adsl": LinkLayer("pppoe-llcsnap", 40, is_atm=True),
    "cable": LinkLayer("docsis", 18, 64),
    "fibre": LinkLayer("ethernet", 38, 84),
    "unknown": LinkLayer("overhead 44", 44),
}
"""Kind of link → what it adds (tc-cake(8), "Overhead compensation"); of an unknown one at least as much as any without ATM."""


@dataclass(frozen=True, slots=True)
class Router:
    """A home's router, as far as what is typed on it depends on it."""

    system: str = LINUX
    """What runs on it: a name of :data:`SYSTEMS`."""
    device: str = DEVICE
    """Its device towards the modem."""
    link: str = "unknown"
    """The kind of link behind the modem: a name of :data:`LINKS`."""

    @classmethod
    def of(cls, system: str | None, device: str | None, link: str | None) -> Router:
        """A router in a user's words; None is the usual. :raises ScenarioError: one line for a name that is none."""
        for name, value, known in (("router", system, SYSTEMS), ("link", link, LINKS)):
            if value is not None and value not in known:
                refuse(name, f"{value!r} is unknown", instead(value, known))
        if device is not None and not device.replace("-", "").replace(".", "").replace("_", "").isalnum():
            refuse("device", f"{device!r} is no name of a device", "write for example wan, pppoe-wan or eth0")
        usual = system or LINUX
        return cls(usual, device or SYSTEMS[usual], link or "unknown")

    def shaped(self, queue: str, up_bps: int, down_bps: int) -> Deployment:
        """What to type so that `queue` stands before both ways of the link, shaped to these rates."""
        return (self._openwrt if self.system == OPENWRT else self._linux)(queue, up_bps, down_bps)

    def _linux(self, queue: str, up_bps: int, down_bps: int) -> Deployment:
        up = self._queue(self.device, queue, up_bps)
        inside = (
            f"ip link add name {INSIDE} type ifb",
            f"ip link set {INSIDE} up",
            f"tc qdisc replace dev {self.device} handle ffff: ingress",
            f"tc filter replace dev {self.device} parent ffff: matchall action mirred egress redirect dev {INSIDE}",
            *self._queue(INSIDE, queue, down_bps, " ingress"),
        )
        script, unit = "/usr/local/sbin/shape-wan", "/etc/systemd/system/shape-wan.service"
        lines = " ".join(shlex.quote(line) for line in ("#!/bin/sh -e", *up, f"ip link del {INSIDE} 2>/dev/null || true", *inside))
        service = " ".join(shlex.quote(line) for line in (*UNIT, f"ExecStart={script}", "[Install]", "WantedBy=multi-user.target"))
        return Deployment(
            (*up, *inside),
            (f"tc qdisc show dev {self.device}",),
            (f"printf '%s\\n' {lines} > {script}", f"chmod +x {script}", f"printf '%s\\n' {service} > {unit}", "systemctl enable shape-wan"),
            (f"tc -s qdisc show dev {self.device} && tc -s qdisc show dev {INSIDE}   # both name {queue}, and count packets",),
            (
                f"tc qdisc del dev {self.device} root && tc qdisc del dev {self.device} ingress && ip link del {INSIDE}",
                f"systemctl disable shape-wan && rm {unit} {script}",
            ),
            (
                f"As root, on the router; {self.device} is its device towards the modem (with PPPoE mostly ppp0).",
                f"{INSIDE} shapes the way down: a queue stands where packets leave. The model ran the way up alone.",
                self._about_link(),
            ),
        )

    def _openwrt(self, queue: str, up_bps: int, down_bps: int) -> Deployment:
        link = LINKS[self.link]
        options = {
            "interface": self.device,
            "download": str(down_bps // 1000),
            "upload": str(up_bps // 1000),
            "qdisc": queue,
            "script": SCRIPTS[queue],
            "linklayer": "atm" if link.is_atm else "ethernet",
            "overhead": str(link.overhead),
            **({"tcMPU": str(link.least)} if link.least else {}),
            "enabled": "1",
        }
        return Deployment(
            ("uci set sqm.calls=queue", *(f"uci set sqm.calls.{name}='{value}'" for name, value in options.items()), "/etc/init.d/sqm restart"),
            (
                "opkg update && opkg install sqm-scripts   # apk add sqm-scripts since OpenWrt 25.12",
                "uci show sqm",
                "ubus call network.interface.wan status",
            ),
            ("uci commit sqm", "/etc/init.d/sqm enable"),
            (f"tc -s qdisc show dev {self.device}   # names {queue}",),
            ("uci delete sqm.calls && uci commit sqm && /etc/init.d/sqm restart",),
            (
                f"On OpenWrt; the lines are those of /etc/config/sqm, and {self.device} is the l3_device that ubus names before: wan, or pppoe-wan.",
                "sqm-scripts shapes the way down through an ifb device of its own. The model ran the way up alone.",
                "Flow offloading in software or hardware passes the queue by: switch it off.",
                self._about_link(),
            ),
        )

    @property
    def _header(self) -> int:
        """Bytes of a link header that htb counts by itself: those of Ethernet, and none of PPP."""
        return 0 if self.device.startswith("ppp") else ETHERNET

    def _queue(self, device: str, queue: str, rate_bps: int, way: str = "") -> tuple[str, ...]:
        """The commands of tc for one direction."""
        rate, root, link = units.format_rate(rate_bps), f"tc qdisc replace dev {device} root", LINKS[self.link]
        if queue in SHAPED_ITSELF:
            return (f"{root} {queue} bandwidth {rate} {link.keyword}{way}",)
        return (
            f"{root} handle 1: htb default 1",
            f"tc class replace dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} quantum {FULL_FRAME}{link.of_class(self._header)}",
            f"tc qdisc replace dev {device} parent 1:1 {queue}",
        )

    def _about_link(self) -> str:
        """What is assumed of the link."""
        link, kinds = LINKS[self.link], "|".join(name for name in LINKS if name != "unknown")
        if self.link == "unknown":
            return f"Each packet counts {link.overhead} bytes more, enough for any link but ADSL with its cells: say which with --link {kinds}."
        cells = ", in cells of ATM" if link.is_atm else ""
        return f"Each packet counts {link.overhead} bytes more, as on {self.link} ({link.keyword} in tc-cake(8)){cells}."


USUAL = Router()
"""A Linux router in front of an unknown link."""
