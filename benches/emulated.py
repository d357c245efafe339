"""Packets of a capture that `tcpscape emulate --pcap` wrote, with what the path did to each: for quic.py and programs.py."""

from __future__ import annotations

import pathlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

FATE = re.compile(rb"(forward|reverse) packet (\d+): (?:due \+[\d.]+ ms, sent \+([\d.]+) ms)?")


@dataclass(frozen=True)
class Packet:
    """A packet that came to the path."""

    direction: str
    """`forward`, from the command to the far end, or `reverse`."""
    number: int
    """How many came before it in its direction: so many draws of the path were used up."""
    came: float
    """When, s."""
    way_ms: float | None
    """How long it was on the way, ms; None where it did not leave."""
    size: int
    """Bytes from the IP header on."""
    frame: bytes
    """As much of the frame as is kept."""

    @property
    def ports(self) -> tuple[int, int]:
        """Of the source and of the destination, where it is UDP or TCP."""
        source, destination = struct.unpack_from("!HH", self.frame, self._transport)
        return source, destination

    @property
    def payload(self) -> int:
        """Bytes of data, of TCP; 0 of others."""
        is_tcp = self.frame[14 + 9] == 6
        return self.size - (self._transport - 14) - 4 * (self.frame[self._transport + 12] >> 4) if is_tcp else 0

    @property
    def sequence(self) -> tuple[int, int]:
        """The sequence number and the acknowledgement of a TCP segment."""
        number, acknowledged = struct.unpack_from("!II", self.frame, self._transport + 4)
        return number, acknowledged

    @property
    def _transport(self) -> int:
        return 14 + 4 * (self.frame[14] & 15)


def packets(pcap: pathlib.Path) -> Iterator[Packet]:
    """The packets that came to the path, in the order of the file."""
    content, at = pcap.read_bytes(), 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            high, low, captured, whole = struct.unpack_from("<IIII", content, at + 12)
            if fate := FATE.search(content, at + 28 + captured, at + length):
                way = None if fate[3] is None else float(fate[3])
                came = ((high << 32) + low) * 1e-9
                yield Packet(fate[1].decode(), int(fate[2]), came, way, whole - 14, content[at + 28 : at + 28 + captured])
        at += length
