//! The handshake of a listening socket: SYN, SYN-ACK, ACK.
//!
//! Source: RFC 9293 §3.10.7.2 and §3.10.7.4 (LISTEN, SYN-RECEIVED), RFC 6298 (backoff, Karn's algorithm). Does not model: a queue of
//! several half-open connections, SYN cookies.

use super::timestamps::Timestamps;
use crate::Jiffies;
use tcpscape_base::{Flags, Segment, Time};

/// SYN-ACKs that are retransmitted (`net.ipv4.tcp_synack_retries`).
const SYNACK_RETRIES: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Listen,
    SynReceived,
    Open,
}

/// What a segment that comes during the handshake calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Ignore,
    /// The first SYN: the connection begins with a SYN-ACK.
    Begin,
    /// The SYN came again: so does the SYN-ACK, as often as the limiter allows.
    RepeatSynAck,
    /// An unacceptable segment: an ACK, if it has no data as often as the limiter allows.
    Refuse,
    /// The connection is open, and the segment its first.
    Complete,
}

/// Stage and timer of the handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    stage: Stage,
    /// SYN-ACK timeouts so far.
    timeouts: u32,
    /// When the SYN-ACK was sent, if only once.
    sent: Option<Time>,
    /// When the next is due.
    due: Option<Time>,
}

impl Handshake {
    /// A listening socket.
    pub fn listen() -> Handshake {
        Handshake { stage: Stage::Listen, timeouts: 0, sent: None, due: None }
    }
    /// Whether it is over.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }
    /// When the SYN-ACK is to be retransmitted.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.due
    }

    /// What to do with a segment; `window` is what the SYN-ACK offers.
    pub fn step(&self, s: &Segment, timestamps: Timestamps, window: u32) -> Step {
        let is_syn = s.flags.has(Flags::SYN);
        let is_old = timestamps.is_older(s.tsval);
        match self.stage {
            Stage::Listen if is_syn => Step::Begin,
            Stage::SynReceived if is_syn && is_old => Step::Ignore,
            Stage::SynReceived if is_syn => Step::RepeatSynAck,
            Stage::SynReceived if is_old || s.seq > u64::from(window) || s.end() == 0 => Step::Refuse,
            Stage::SynReceived if s.flags.has(Flags::ACK) => Step::Complete,
            _ => Step::Ignore,
        }
    }

    /// A SYN-ACK leaves; the timer is armed for the next one, a second later at first, then twice as late each time.
    pub fn on_syn_ack(&mut self, now: Time, jiffies: &Jiffies) {
        self.sent = if self.stage == Stage::Listen { Some(now) } else { None };
        self.stage = Stage::SynReceived;
        self.due = Some(jiffies.fire(now, u64::from(jiffies.hz()) << self.timeouts));
    }

    /// Whether the timer is due and a SYN-ACK must be sent again.
    pub fn on_timer(&mut self, now: Time) -> bool {
        if !self.due.is_some_and(|due| due <= now) {
            return false;
        }
        self.due = None;
        self.timeouts += 1;
        self.timeouts <= SYNACK_RETRIES
    }

    /// The connection is open. Returns the round-trip time of the SYN-ACK in µs, none if it was sent more than once (Karn's algorithm).
    pub fn complete(&mut self, now: Time) -> Option<u64> {
        self.stage = Stage::Open;
        self.due = None;
        self.sent.map(|sent| now.since(sent).as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Duration;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }
    fn seg(seq: u64, flags: Flags) -> Segment {
        Segment { seq, flags, tsval: 7, ..Segment::default() }
    }

    #[test]
    fn three_segments_open_a_connection_and_measure_a_round_trip() {
        let (j, mut h) = (Jiffies::new(1_000, Duration::ZERO), Handshake::listen());
        let t = Timestamps::default();
        assert_eq!(h.step(&seg(1, Flags::ACK), t, 1_000), Step::Ignore, "nothing was asked");
        assert_eq!(h.step(&seg(0, Flags::SYN), t, 1_000), Step::Begin);
        h.on_syn_ack(at(10), &j);
        assert_eq!(h.step(&seg(0, Flags::SYN), t, 1_000), Step::RepeatSynAck);
        assert_eq!(h.step(&seg(1_001, Flags::ACK), t, 1_000), Step::Refuse);
        assert_eq!(h.step(&seg(1, Flags::default()), t, 1_000), Step::Ignore);
        assert_eq!(h.step(&seg(1, Flags::ACK), t, 1_000), Step::Complete);
        assert_eq!((h.complete(at(35)), h.is_open(), h.next_event()), (Some(25_000), true, None));
    }

    /// Karn's algorithm (RFC 6298 §3): a retransmitted SYN-ACK gives no sample; RFC 6298 §5.5: the timer doubles.
    #[test]
    fn a_repeated_syn_ack_gives_no_round_trip_time() {
        let (j, mut h) = (Jiffies::new(1_000, Duration::ZERO), Handshake::listen());
        h.on_syn_ack(at(0), &j);
        let mut intervals = Vec::new();
        let mut now = at(0);
        while let Some(due) = h.next_event() {
            intervals.push(due.since(now).0 / 1_000_000_000);
            now = due;
            if h.on_timer(now) {
                h.on_syn_ack(now, &j);
            }
        }
        assert_eq!(intervals, [1, 2, 4, 8, 16, 32]);
        assert_eq!(h.complete(now), None);
    }
}
