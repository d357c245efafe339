"""Linux's Reno, written out in Python: to the last bit what `--cca reno` does (tests/controls/test_own.py holds it to that).

The place to start from when a rule of Reno should change. Sources: RFC 5681, section 3.1; Linux: `tcp_reno_cong_avoid()`, `tcp_slow_start()`,
`tcp_cong_avoid_ai()`, `tcp_is_cwnd_limited()`.
"""

from __future__ import annotations

from tcpscape import Sample, Window


class Reno:
    """Slow start, then one packet a round trip; half the window after a loss."""

    def on_ack(self, sample: Sample, window: Window) -> None:
        if not sample.may_raise or not self.window_is_used(sample, window):
            return
        acked = sample.acked
        if window.cwnd < window.ssthresh:
            grown = min(window.cwnd + acked, window.ssthresh)
            acked -= grown - window.cwnd
            window.cwnd = grown
            if acked == 0:
                return
        self.add_one_for_each(window.cwnd, acked, window)

    def ssthresh(self, sample: Sample, window: Window) -> int:
        return max(window.cwnd // 2, 2)

    def undo(self, sample: Sample, window: Window) -> int:
        return max(window.cwnd, window.prior_cwnd)

    @staticmethod
    def window_is_used(sample: Sample, window: Window) -> bool:
        """In slow start, half of the window is enough."""
        return sample.is_cwnd_limited or (window.cwnd < window.ssthresh and window.cwnd < 2 * sample.max_packets_out)

    @staticmethod
    def add_one_for_each(w: int, acked: int, window: Window) -> None:
        """A packet for every `w` acknowledged; credit left from a larger `w` first."""
        if window.cwnd_cnt >= w:
            window.cwnd_cnt = 0
            window.cwnd += 1
        window.cwnd_cnt += acked
        if window.cwnd_cnt >= w:
            window.cwnd += window.cwnd_cnt // w
            window.cwnd_cnt %= w
