"""Congestion controls with a planted flaw each, and one whose code fails."""


class Reno:
    """One packet a round trip; half of the window after a loss or a mark."""

    def on_ack(self, sample, window):
        if sample.may_raise:
            acked = window.slow_start(sample.acked) if window.in_slow_start else sample.acked
            window.additive_increase(window.cwnd, acked)


class NoBackoff:
    """A window of 300 packets, whatever is lost."""

    owns_window = True

    def on_ack(self, sample, window):
        window.cwnd = 300

    def ssthresh(self, sample, window):
        return 300


class IgnoresMarks(Reno):
    """Reno that halves its window after losses alone."""

    def __init__(self):
        self.has_lost = False

    def on_lost(self, sample, window):
        self.has_lost = True

    def ssthresh(self, sample, window):
        had_lost, self.has_lost = self.has_lost, False
        return max(window.cwnd // 2, 2) if had_lost else max(window.cwnd, 2)


class ShortPathsOnly(Reno):
    """Reno whose window grows on short paths, and falls to two packets on long ones."""

    def on_ack(self, sample, window):
        if sample.min_rtt_us and sample.min_rtt_us > 50_000:
            window.cwnd = 2
            window.ssthresh = 2
        elif sample.may_raise:
            super().on_ack(sample, window)

    def ssthresh(self, sample, window):
        return max(window.cwnd * 9 // 10, 2)


class Raises(Reno):
    """Reno with an error where the window is large."""

    def on_ack(self, sample, window):
        if window.cwnd > 40:
            raise ValueError("too large")
        super().on_ack(sample, window)
