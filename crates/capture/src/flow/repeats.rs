//! What was sent again: what made the sender do it, and whether it was needed.
//!
//! Source: RFC 6298 §5 (timeout), RFC 8985 §7 (tail loss probe: after two RTTs of silence, the last segment), RFC 5681 §3.2 and RFC 6675
//! (fast retransmission: ACKs cause it), RFC 2883 and 3708 (DSACK), RFC 3522 (Eifel detection).
//! How it differs: a timeout shows as silence of at least 0.85 of the timeout estimated here, since the estimate is not the sender's own.

use std::collections::VecDeque;

/// Most repeated ranges remembered after their acknowledgement.
const MOST: usize = 1024;
/// Silence that a timer's retransmission has before it at least, ns, on a path with a long RTT.
const QUIET: u64 = 10_000_000;

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// ACKs.
    Fast,
    /// The retransmission timer.
    Timeout,
    /// Slow start after it.
    AfterTimeout,
    /// A tail loss probe.
    Probe,
}

/// The phase of a sender, as its retransmissions show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is being repaired.
    #[default]
    Open,
    /// Fast recovery, until this byte is acknowledged.
    Recovery(u64),
    /// After a timeout, until this byte is acknowledged.
    AfterTimeout(u64),
}

/// What is known when something is sent again.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// Whether it is the first unacknowledged byte.
    pub is_head: bool,
    /// Whether it ends with the highest byte sent, and nothing above it was SACKed.
    pub is_tail: bool,
    /// Since the last packet of either direction, ns.
    pub quiet: u64,
    /// Since the acknowledgement number last grew, or the first unacknowledged segment was last sent, ns.
    pub since_progress: u64,
    /// RTT as the sender sees it, ns; 0 unknown.
    pub rtt: u64,
    /// Estimate of its retransmission timeout, ns.
    pub timeout: u64,
    /// The highest byte sent.
    pub high: u64,
}

impl Phase {
    /// What made the sender repeat; moves the phase.
    pub fn repeats(&mut self, s: &Situation) -> Trigger {
        let by_timer = s.quiet >= QUIET.min(s.rtt / 4);
        if s.is_head
            && by_timer
            && s.since_progress >= s.timeout / 20 * 17
            && !(s.is_tail && *self == Phase::Open && s.since_progress < s.timeout)
        {
            *self = Phase::AfterTimeout(s.high);
            return Trigger::Timeout;
        }
        match *self {
            Phase::AfterTimeout(_) => Trigger::AfterTimeout,
            Phase::Open if s.is_tail && s.quiet >= s.rtt.max(1_000_000) => Trigger::Probe,
            Phase::Open => {
                *self = Phase::Recovery(s.high);
                Trigger::Fast
            }
            Phase::Recovery(_) => Trigger::Fast,
        }
    }
    /// The acknowledgement number grew to `una`.
    pub fn acknowledged(&mut self, una: u64) {
        if let Phase::Recovery(until) | Phase::AfterTimeout(until) = *self {
            if una >= until {
                *self = Phase::Open;
            }
        }
    }
}

/// A repeated range whose delivery is known.
#[derive(Clone, Copy, Debug)]
pub struct Repeated {
    /// First byte.
    pub start: u64,
    /// Byte after the last.
    pub end: u64,
    /// Its row.
    pub row: u64,
    /// Its transmissions that count as lost.
    pub lost: u16,
    /// Its transmissions that count as needless and that no DSACK has confirmed yet.
    pub claimed: u16,
    /// When a SACK first covered what was sent later; 0 never.
    pub passed_t: u64,
    /// Number of its event, and the side of the loss.
    pub event: Option<usize>,
}

/// The repeated ranges of late, in the order of their acknowledgement.
#[derive(Debug, Default)]
pub struct Repeats {
    list: VecDeque<Repeated>,
}

impl Repeats {
    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.list.capacity() * size_of::<Repeated>()
    }
    /// Remembers a range.
    pub fn add(&mut self, r: Repeated) {
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back(r);
    }
    /// A DSACK says that `from..to` came twice: of every repeated range in it, it confirms a transmission that counts as needless, or refutes
    /// one that counts as lost, and calls `refuted` for that. Gives how many ranges there were.
    pub fn twice(&mut self, from: u64, to: u64, mut refuted: impl FnMut(&Repeated)) -> usize {
        let mut n = 0;
        for r in self.list.iter_mut().rev().filter(|r| r.start < to && r.end > from && r.claimed + r.lost > 0) {
            n += 1;
            if r.claimed > 0 {
                r.claimed -= 1;
            } else {
                r.lost -= 1;
                refuted(r);
            }
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn situation() -> Situation {
        Situation { is_head: true, is_tail: false, quiet: 0, since_progress: 0, rtt: 50 * MS, timeout: 250 * MS, high: 900 }
    }

    #[test]
    fn silence_tells_a_timeout_from_a_fast_retransmission() {
        let mut phase = Phase::default();
        assert_eq!(phase.repeats(&Situation { since_progress: 60 * MS, ..situation() }), Trigger::Fast);
        assert_eq!(phase, Phase::Recovery(900));
        assert_eq!(phase.repeats(&Situation { since_progress: 255 * MS, quiet: 100 * MS, ..situation() }), Trigger::Timeout);
        assert_eq!(phase.repeats(&Situation { is_head: false, ..situation() }), Trigger::AfterTimeout);
        phase.acknowledged(899);
        assert_eq!(phase, Phase::AfterTimeout(900));
        phase.acknowledged(900);
        assert_eq!(phase, Phase::Open);
    }

    #[test]
    fn the_last_segment_after_two_round_trips_is_a_probe() {
        let tail = Situation { is_head: false, is_tail: true, quiet: 102 * MS, since_progress: 102 * MS, ..situation() };
        assert_eq!(Phase::Open.repeats(&tail), Trigger::Probe);
        assert_eq!(Phase::Recovery(900).repeats(&tail), Trigger::Fast);
        assert_eq!(Phase::Open.repeats(&Situation { is_head: true, since_progress: 230 * MS, ..tail }), Trigger::Probe);
        assert_eq!(Phase::Open.repeats(&Situation { is_head: true, since_progress: 300 * MS, quiet: 300 * MS, ..tail }), Trigger::Timeout);
    }

    #[test]
    fn a_dsack_refutes_one_loss_at_a_time() {
        let mut r = Repeats::default();
        r.add(Repeated { start: 0, end: 10, row: 3, lost: 1, claimed: 1, passed_t: 0, event: None });
        let mut refuted = Vec::new();
        let known = [0; 3].map(|_| (r.twice(0, 10, |r| refuted.push(r.row)), refuted.clone()));
        assert_eq!(known, [(1, vec![]), (1, vec![3]), (0, vec![3])]);
        assert_eq!(r.twice(10, 20, |_| ()), 0);
    }
}
