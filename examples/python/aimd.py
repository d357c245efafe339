"""AIMD(1, 0.8) with an eye on delay: a congestion control of one's own in 20 lines.

The same algorithm as a program for the kernel, in BPF: examples/bpf/aimd.bpf.c.

tcpscape run --forward "netem delay 20ms loss 0.1%" --bottleneck "tbf rate 20mbit burst 6056 limit 100000" --reverse "netem delay 20ms" \
    --cca examples/python/aimd.py:Aimd,reno,cubic
"""

from __future__ import annotations

from tcpscape import Control, Sample, Window

BETA = 0.8
"""What is left of the window after a loss, fraction."""
LEAVE = 1.25
"""Slow start ends when the RTT is this many times its minimum."""


class Aimd(Control):
    """Slow start until the first loss or a standing queue, then one packet a round trip; a gentle cut after a loss."""

    def pkts_acked(self, sample: Sample, window: Window) -> None:
        if window.in_slow_start and sample.rtt_us and sample.min_rtt_us and sample.rtt_us > LEAVE * sample.min_rtt_us:
            window.ssthresh = window.cwnd

    def on_ack(self, sample: Sample, window: Window) -> None:
        is_used = sample.is_cwnd_limited or (window.in_slow_start and window.cwnd < 2 * sample.max_packets_out)
        if not sample.may_raise or not is_used:
            return
        if left := window.slow_start(sample.acked) if window.in_slow_start else sample.acked:
            window.additive_increase(window.cwnd, left)

    def ssthresh(self, sample: Sample, window: Window) -> int:
        return max(2, int(window.cwnd * BETA))
