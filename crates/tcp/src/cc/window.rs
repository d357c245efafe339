//! What a congestion control writes: [`Window`], and the two ways in which a window grows.
//!
//! Source: RFC 5681 §3.1, RFC 3465, RFC 6928. How it differs: packets for bytes. Not modelled: nothing is left out.

/// The threshold before the first loss: slow start goes on until one (RFC 5681 §3.1, "arbitrarily high"), packets.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// The first window, packets (RFC 6928).
pub const INIT_CWND: u32 = 10;

/// What a controller writes.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Credit towards the next increase, packets acknowledged.
    pub cwnd_cnt: u32,
    /// Largest window, packets.
    pub clamp: u32,
    /// `cwnd` before the last reduction, for undo, packets.
    pub prior_cwnd: u32,
    /// Pacing rate, bytes per second.
    pub pacing_rate: u64,
    /// Whether transmissions are paced.
    pub paced: bool,
    /// Set in `on_ack`: reduce the window as after a congestion signal. The sender enters CWR at once, which calls `ssthresh` and
    /// `on_state`, and clears it.
    pub enter_cwr: bool,
}

impl Default for Window {
    fn default() -> Window {
        Window {
            cwnd: INIT_CWND,
            ssthresh: INFINITE_SSTHRESH,
            cwnd_cnt: 0,
            clamp: u32::MAX,
            prior_cwnd: 0,
            pacing_rate: u64::MAX,
            paced: false,
            enter_cwr: false,
        }
    }
}

impl Window {
    /// Whether slow start governs: `cwnd < ssthresh` (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: grows by `acked` packets up to `ssthresh`; returns what is left for congestion avoidance (RFC 5681 §3.1).
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd.saturating_add(acked)).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.clamp);
        left
    }

    /// Additive increase: one packet for every `w` acknowledged (RFC 5681 §3.1, by counting: RFC 3465). Credit from when `w` was larger is
    /// worth one packet, however much it is.
    #[inline]
    pub fn additive_increase(&mut self, w: u32, acked: u32) {
        let (w, credit) = (w.max(1), self.cwnd_cnt.saturating_add(acked));
        self.cwnd = self.cwnd.min(self.clamp);
        if credit < w {
            self.cwnd_cnt = credit;
        } else {
            self.spend_credit(w, acked);
        }
    }

    /// The credit, with `acked` packets more, is worth a packet or more.
    fn spend_credit(&mut self, w: u32, acked: u32) {
        let is_old_credit = self.cwnd_cnt >= w;
        let credit = if is_old_credit { acked } else { self.cwnd_cnt.saturating_add(acked) };
        let packets = (credit / w).saturating_add(is_old_credit.into());
        self.cwnd_cnt = credit % w;
        self.cwnd = self.cwnd.saturating_add(packets).min(self.clamp);
    }
}
