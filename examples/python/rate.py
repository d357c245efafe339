"""A control that sets a rate: it sends as fast as packets are delivered, and a little faster in one round trip of eight, to see whether more fits.

The same algorithm as a program for the kernel, in BPF: examples/bpf/rate.bpf.c. It takes no loss for congestion and measures no RTT anew: an example,
not a control for a shared network.

tcpscape run --rtt 40ms --rate 20mbit --loss 1% --cca examples/python/rate.py:Rate,reno,bbr
"""

from __future__ import annotations

from tcpscape import Control, Sample, Window

START = 8
"""Pace over the estimate while every round trip delivers more than the last, in quarters."""
ROUNDS = (5, 3, 4, 4, 4, 4, 4, 4)
"""Pace over the estimate in each of eight round trips, in quarters."""
PATIENCE = 3
"""Round trips without a quarter more after which the start is over."""


class Rate(Control):
    """The estimate is the largest delivery rate of this round trip and the last; the window is twice what it carries in the least RTT."""

    owns_window = True
    paced = True

    def __init__(self) -> None:
        self.now, self.last, self.best = 0, 0, 0
        """Largest rates of this round trip, of the last, and of the start, bytes/s."""
        self.round_end, self.rounds, self.without = 0, 0, 0
        """`delivered` at which the round trip ends; round trips since the start; those of the start without a quarter more."""

    def on_ack(self, sample: Sample, window: Window) -> None:
        if not sample.rate_interval_us or not sample.rate_delivered or not sample.min_rtt_us:
            return
        if sample.prior_delivered >= self.round_end:
            self.end_round(sample)
        rate = sample.rate_delivered * sample.mss * 1_000_000 // sample.rate_interval_us
        if not sample.app_limited or rate > self.estimate:
            self.now = max(self.now, rate)
        quarters = START if self.without < PATIENCE else ROUNDS[self.rounds % len(ROUNDS)]
        window.pacing_rate = self.estimate * quarters // 4
        window.cwnd = 2 * self.estimate * sample.min_rtt_us // 1_000_000 // sample.mss + 4

    @property
    def estimate(self) -> int:
        return max(self.now, self.last)

    def end_round(self, sample: Sample) -> None:
        self.round_end = sample.delivered
        if self.without < PATIENCE:
            if self.now * 4 > self.best * 5:
                self.best, self.without = self.now, 0
            else:
                self.without += 1
        else:
            self.rounds += 1
        self.last, self.now = self.now, 0
