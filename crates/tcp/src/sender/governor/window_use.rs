//! Whether the congestion window was used: one that was not is not grown, and shrinks after a pause.
//!
//! Source: RFC 7661 §4 and RFC 2861 §2 and §3 in spirit; docs/models/tcp/sender.md, "Window", has the rules. Not modelled: RFC 7661's pipeACK.

/// How the window was used.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct WindowUse {
    /// Sending was held back by the window in the flight that was judged last.
    limited: bool,
    /// Most segments outstanding in that flight.
    most_out: u32,
    /// End of that flight.
    flight_end: u64,
    /// Most segments outstanding since the window was last full.
    used: u32,
    /// Tick at which the window was last changed or full.
    touched: u64,
    /// Tick of the last transmission of data.
    last_sent: u64,
}

/// What is outstanding when the use of a window is judged.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Outstanding {
    /// The window holds data back.
    pub limited: bool,
    /// Segments outstanding.
    pub out: u32,
    /// The left edge.
    pub una: u64,
    /// The next new sequence number.
    pub nxt: u64,
    /// Window and threshold, segments.
    pub cwnd: u32,
    /// See `cwnd`.
    pub ssthresh: u32,
}

impl WindowUse {
    /// The connection is established: its first data are no restart after a pause.
    pub fn established(&mut self, tick: u64) {
        self.touched = tick;
        self.last_sent = tick;
    }
    /// The window was changed, or has been found full.
    #[inline]
    pub fn touch(&mut self, tick: u64) {
        self.touched = tick;
    }
    /// Data were sent.
    #[inline]
    pub fn sent(&mut self, tick: u64) {
        self.last_sent = tick;
    }
    /// Whether the window held data back when its use was last judged.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limited
    }
    /// Most segments outstanding in the flight that was judged last.
    #[inline]
    pub fn most_out(&self) -> u32 {
        self.most_out
    }
    /// Tick of the last transmission of data.
    #[inline]
    pub fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Judges the window after a transmission: what was outstanding in a flight counts until the next one, unless more is or the window is
    /// full. Returns whether it has not been used for `rto` ticks.
    pub fn judge(&mut self, o: &Outstanding, tick: u64, rto: u64) -> bool {
        let more = !self.limited && o.out > self.most_out;
        if o.una >= self.flight_end || o.limited || more {
            self.limited = o.limited;
            self.most_out = o.out;
            self.flight_end = o.nxt;
        }
        // In slow start, which doubles it, half a window is full.
        let full = self.limited || (o.cwnd < o.ssthresh && o.cwnd < 2 * self.most_out);
        if full {
            self.used = 0;
            self.touched = tick;
            return false;
        }
        self.used = self.used.max(o.out);
        tick.saturating_sub(self.touched) >= rto
    }

    /// The window halfway back to what was used of it (RFC 2861 §3.2), if that was less; begins a new account.
    pub fn halfway_to_use(&mut self, cwnd: u32, initial: u32) -> Option<u32> {
        let used = std::mem::take(&mut self.used).max(initial);
        (used < cwnd).then_some((cwnd + used) / 2)
    }

    /// The window after a pause (RFC 2861 §3.1): halved for each RTO without data, down to the initial one; `None` if the pause is
    /// shorter than that.
    pub fn after_pause(&self, cwnd: u32, initial: u32, tick: u64, rto: u64) -> Option<u32> {
        let pause = tick.saturating_sub(self.last_sent);
        if pause <= rto {
            return None;
        }
        // A pause of exactly n timeouts halves n − 1 times.
        let halvings = (pause - 1).checked_div(rto).unwrap_or(u64::MAX).min(31);
        let restart = initial.min(cwnd);
        Some((cwnd >> halvings).max(restart))
    }
    /// The window was reduced after a pause.
    pub fn restarted(&mut self, tick: u64) {
        self.touched = tick;
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(limited: bool, out: u32) -> Outstanding {
        Outstanding { limited, out, una: 1, nxt: 1_000, cwnd: 40, ssthresh: 20 }
    }

    /// RFC 2861 §3.1: halved once for every RTO of the pause, not below the initial window.
    #[test]
    fn a_pause_halves_the_window() {
        let mut w = WindowUse::default();
        w.established(100);
        assert_eq!(
            [300, 301, 500, 501, 900, 9_000].map(|t| w.after_pause(100, 10, t, 200)),
            [None, Some(50), Some(50), Some(25), Some(12), Some(10)]
        );
        assert_eq!((w.after_pause(4, 10, 1_000, 200), w.after_pause(100, 32, 9_000, 200)), (Some(4), Some(32)));
    }

    /// RFC 2861 §3.2: halfway between the window and what was used.
    #[test]
    fn an_unused_window_shrinks_halfway() {
        let mut w = WindowUse::default();
        assert!(!w.judge(&out(true, 40), 10, 200));
        assert!(w.is_limited());
        let later = Outstanding { una: 2_000, nxt: 3_000, ..out(false, 16) };
        assert!(!w.judge(&later, 209, 200));
        assert!(w.judge(&Outstanding { una: 3_000, ..later }, 210, 200));
        assert_eq!((w.halfway_to_use(40, 10), w.halfway_to_use(8, 10)), (Some(28), None));
    }

    #[test]
    fn in_slow_start_half_a_window_is_full() {
        let mut w = WindowUse::default();
        let slow_start = Outstanding { ssthresh: 100, ..out(false, 21) };
        assert!(!w.judge(&slow_start, 1_000, 200));
        assert!(w.judge(&Outstanding { out: 19, una: 5_000, ..slow_start }, 9_000, 200));
    }
}
