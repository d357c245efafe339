//! What the peer has told: its window, its timestamps, and whether its segments are acceptable.
//!
//! Source: RFC 9293 §3.10.7.4 (window, acceptable ACKs), RFC 7323 §5.3 (PAWS), RFC 5961 §7 (answers to unacceptable segments are limited).
//! How it differs: docs/models/tcp/sender.md, "PAWS at the sender". Not modelled: challenge ACKs, resets.

use super::flight::Flight;
use crate::jiffies::Jiffies;
use tcpscape_base::Kernel;
use tcpscape_base::Segment;

/// The peer as this side knows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peer {
    /// Its window, bytes (SND.WND).
    window: u32,
    /// Its largest window, bytes.
    max_window: u32,
    /// Next sequence number expected from it (RCV.NXT).
    pub rcv_nxt: u64,
    /// Newest timestamp that it sent (TS.Recent).
    ts_recent: u32,
    /// Timestamp of its last acceptable segment.
    tsval: u32,
    /// Timestamp that this segment echoed, 0 for none.
    echo: u32,
    /// Tick of the last answer to an unacceptable segment.
    answered: Option<u64>,
}

impl Peer {
    /// A SYN-ACK has come.
    pub fn on_syn_ack(&mut self, s: &Segment) {
        *self = Peer { window: s.wnd, max_window: s.wnd, rcv_nxt: s.end(), ts_recent: s.tsval, tsval: s.tsval, echo: s.tsecr, ..*self };
    }

    /// Whether the segment brings the data that come next; if so, those behind them are expected from now on.
    pub fn receives(&mut self, s: &Segment) -> bool {
        let is_next = s.len > 0 && s.seq == self.rcv_nxt;
        if is_next {
            self.rcv_nxt = s.end();
        }
        is_next
    }

    /// Its window, bytes.
    #[inline]
    pub fn window(&self) -> u32 {
        self.window
    }
    /// Its largest window so far, bytes.
    #[inline]
    pub fn max_window(&self) -> u32 {
        self.max_window
    }
    /// Newest timestamp of the peer, which is echoed to it.
    #[inline]
    pub fn ts_recent(&self) -> u32 {
        self.ts_recent
    }
    /// Timestamp of its last acceptable segment.
    #[inline]
    pub fn tsval(&self) -> u32 {
        self.tsval
    }
    /// Timestamp that its last acceptable segment echoed, 0 for none.
    #[inline]
    pub fn echo(&self) -> u32 {
        self.echo
    }
    /// The sequence number behind its window, whose left edge is `una`.
    #[inline]
    pub fn window_end(&self, una: u64) -> u64 {
        una + u64::from(self.window)
    }

    /// Whether the segment passes PAWS; if it does, its timestamps are taken over. `rto_ticks` is the present timeout.
    ///
    /// A timestamp may be one unit older than the newest. One that is older still passes in an ACK that says nothing new (it repeats the
    /// ACK number and does not open the window), up to the time that a timeout takes by the peer's fastest clock.
    pub fn accepts(&mut self, s: &Segment, una: u64, rto_ticks: u64, clock: &Jiffies, kernel: &Kernel) -> bool {
        let age = self.ts_recent.wrapping_sub(s.tsval) as i32;
        if age <= 0 {
            self.ts_recent = s.tsval;
        } else if age > PAWS_TOLERANCE {
            let says_nothing_new = s.len == 0 && s.ack == una && (1..=self.window).contains(&s.wnd);
            let oldest = rto_ticks * kernel.rules().peer_ticks / u64::from(clock.hz());
            if !says_nothing_new || age as u64 > oldest {
                return false;
            }
        }
        self.tsval = s.tsval;
        self.echo = s.tsecr;
        true
    }

    /// Whether an unacceptable segment is answered at `tick`: twice a second at most.
    pub fn take_answer(&mut self, tick: u64, clock: &Jiffies) -> bool {
        let free = self.answered.map_or(true, |last| tick - last >= clock.hz_over(ANSWERS_A_SECOND));
        if free {
            self.answered = Some(tick);
        }
        free
    }

    /// Whether the header of an ACK is as expected: the window, no options but the newest timestamp, no echo of congestion.
    #[inline]
    pub fn predicts(&self, s: &Segment) -> bool {
        s.wnd == self.window && s.nsack == 0 && !s.flags.has(tcpscape_base::Flags::ECE) && s.tsval == self.ts_recent
    }

    /// Whether the ACK speaks about the window: a newer one, a larger window, or a closed one (RFC 9293 §3.10.7.4).
    #[inline]
    pub fn updates_window(&self, s: &Segment, una: u64) -> bool {
        s.ack > una || s.wnd > self.window || s.wnd == 0
    }
    /// Takes the window over; returns whether it changed.
    #[inline]
    pub fn set_window(&mut self, window: u32) -> bool {
        let changed = self.window != window;
        self.window = window;
        self.max_window = self.max_window.max(window);
        changed
    }
    /// Whether an ACK below the left edge is still young enough for its SACK blocks: not older than the largest window.
    pub fn is_recent(&self, ack: u64, flight: &Flight) -> bool {
        let acknowledged = flight.una() - 1;
        ack + u64::from(self.max_window).min(acknowledged) >= flight.una()
    }
}

/// How much older than the newest a timestamp may be, in units of the timestamp clock.
const PAWS_TOLERANCE: i32 = 1;
/// Answers in a second at most: `net.ipv4.tcp_invalid_ratelimit` is 500 ms.
const ANSWERS_A_SECOND: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    fn ack(tsval: u32, ack: u64, wnd: u32) -> Segment {
        Segment { tsval, ack, wnd, ..Segment::default() }
    }

    /// RFC 7323 §5.3 R1: a segment with an older timestamp is not acceptable; one unit is tolerated, and an ACK that says nothing new.
    #[test]
    fn old_timestamps_are_refused() {
        let clock = Jiffies::new(1_000, Duration::ZERO);
        let mut p = Peer::default();
        p.on_syn_ack(&ack(100, 1, 5_000));
        let mut accepts = |s: &Segment| p.accepts(s, 1_001, 300, &clock, &Kernel::V6_1);
        assert!(accepts(&ack(103, 1_001, 5_000)) && accepts(&ack(102, 2_001, 5_000)));
        assert!(!accepts(&ack(101, 2_001, 5_000)), "new and two units old");
        assert!(accepts(&ack(101, 1_001, 5_000)) && !accepts(&ack(101, 1_001, 5_001)), "repeated, and opening the window");
        // 300 ticks of 1 ms at 1,024 units a second: 307 units.
        assert!(accepts(&ack(500, 1_001, 5_000)) && accepts(&ack(193, 1_001, 5_000)) && !accepts(&ack(192, 1_001, 5_000)));
    }

    #[test]
    fn answers_are_half_a_second_apart() {
        let clock = Jiffies::new(1_000, Duration::ZERO);
        let mut p = Peer::default();
        assert_eq!([0, 499, 500, 999, 1_000].map(|t| p.take_answer(t, &clock)), [true, false, true, false, true]);
    }
}
