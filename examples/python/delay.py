"""A control that listens to delay: it keeps a few packets of its own in the queue, as Vegas does (Brakmo and Peterson 1995).

The same algorithm as a program for the kernel, in BPF: examples/bpf/delay.bpf.c.

tcpscape run --rtt 40ms --rate 20mbit --buffer 4bdp --cca examples/python/delay.py:Delay,reno,vegas
"""

from __future__ import annotations

from tcpscape import Control, Sample, Window

FEW, MANY = 4, 8
"""Packets in the queue below which the window grows, and above which it shrinks."""


class Delay(Control):
    """Grows like Reno while its queue is short, gives back a packet a round trip while it is long, stays between; halves after a loss."""

    def on_ack(self, sample: Sample, window: Window) -> None:
        if not sample.may_raise or not sample.srtt_us or not sample.min_rtt_us:
            return
        waiting = window.cwnd * (sample.srtt_us - sample.min_rtt_us)  # packets in the queue × srtt
        if window.in_slow_start and waiting > FEW * sample.srtt_us:
            window.ssthresh = window.cwnd
        if waiting > MANY * sample.srtt_us:
            self.give_back(sample, window)
        elif waiting < FEW * sample.srtt_us:
            self.grow(sample, window)

    def grow(self, sample: Sample, window: Window) -> None:
        is_used = sample.is_cwnd_limited or (window.in_slow_start and window.cwnd < 2 * sample.max_packets_out)
        if is_used and (left := window.slow_start(sample.acked) if window.in_slow_start else sample.acked):
            window.additive_increase(window.cwnd, left)

    def give_back(self, sample: Sample, window: Window) -> None:
        window.cwnd_cnt += sample.acked
        if window.cwnd_cnt >= window.cwnd:
            window.cwnd_cnt = 0
            window.cwnd = max(2, window.cwnd - 1)
