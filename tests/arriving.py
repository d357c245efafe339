"""Captures of receivers, packet by packet, for tests of the diagnosis."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tcpscape import capture
from tcpscape.findings.diagnosis.observed import ObservedFlow
from tcpscape.findings.diagnosis.path.bottleneck import waits
from tcpscape.findings.diagnosis.path.columns import Ints
from tcpscape.stats.estimate import Floats


def arriving(
    file: Path, sent: Floats, sizes: Ints, ways: tuple[float, float], each_ms: float, mss: int = 1_460, *, is_stamped: bool = True
) -> ObservedFlow:
    """A receiver's capture of bare IPv4 packets with timestamps of milliseconds, which acknowledges every second segment and each that is not full.

    :param sent: when the segments leave, ms. :param ways: of the data and of the ACKs, ms. :param each_ms: what a segment takes at the bottleneck, ms.

    :param is_stamped: whether it has timestamps.
    """
    kept, packets = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 101)), []
    forward, reverse = ways

    def packet(ms: float, is_back: bool, numbers: tuple[int, int], flags: int, stamps: tuple[float, float], payload: int = 0) -> None:
        ends = (b"\x0a\0\0\1", 40_000), (b"\x0a\0\0\2", 9_000)
        (source, port), (destination, other) = ends[::-1] if is_back else ends
        options = struct.pack(">BBH", 2, 4, mss) if flags & 2 else b""
        options += struct.pack(">BBBBII", 1, 1, 8, 10, *map(int, stamps)) if is_stamped else b""
        tcp = struct.pack(">HHIIBBHHH", port, other, *numbers, (20 + len(options)) << 2, flags, 65_535, 0, 0) + options
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + payload, len(packets), 0x4000, 64, 6, 0, source, destination)
        packets.append((ms, struct.pack("<IIII", int(ms // 1e3), round(ms % 1e3 * 1e6), len(ip + tcp), len(ip + tcp) + payload) + ip + tcp))

    came = waits(sent, np.full(sent.size, each_ms), 0.0) + sent + forward
    first = sent[0] - 2 * forward - reverse - 1.0 + forward
    packet(first, False, (0, 0), 0x02, (first, 0))
    packet(first + 0.01, True, (0, 1), 0x12, (first, first))
    packet(first + forward + reverse + 0.02, False, (1, 1), 0x10, (first + reverse, first))
    number, waiting, acks = 1, 0, [first]
    for at, ms, size in zip(sent, came, sizes, strict=True):
        heard = [a for a in acks[-2_000:] if a + reverse <= at]
        packet(ms, False, (number, 1), 0x18 if size < mss - 12 else 0x10, (at, heard[-1]), int(size))
        number, waiting = number + int(size), waiting + 1
        if waiting == 2 or size < mss - 12:
            packet(ms + 0.001, True, (1, number), 0x10, (ms, at))
            acks.append(ms)
            waiting = 0
    for _, content in sorted(packets, key=lambda one: one[0]):
        kept.extend(content)
    file.write_bytes(bytes(kept))
    return capture.read(file).flows[0]
