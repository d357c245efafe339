//! What is lost, by time (RACK): a segment is lost when one sent later was delivered and the time for reordering has passed. When the ACKs stop, a
//! tail loss probe (TLP), one segment more, shows whether the last ones were lost.
//!
//! Source: RFC 8985 §6.2, §7. How it differs: docs/models/tcp/rack.md (the reordering window after DSACKs, the degree of reordering, "Probe"). Not
//! modelled: connections without SACK; probes while a reordering timer runs.

use crate::sender::flight::{Delivery, Flight, Transmission};
use crate::sender::report::Overtaken;

/// What a connection knows of reordering on its path.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Reordering {
    /// Largest degree seen, segments; the duplicate threshold of RFC 6675 before any was seen.
    degree: u32,
    /// Times that it was seen.
    events: u64,
}

impl Reordering {
    fn new() -> Reordering {
        Reordering { degree: DUP_THRESH, events: 0 }
    }

    /// A segment was overtaken, with segments of `mss` bytes.
    pub fn overtaken(&mut self, Overtaken { low, high }: Overtaken, mss: u32) {
        if low >= high {
            return;
        }
        let bytes = high - low;
        if bytes > u64::from(self.degree * mss) {
            self.degree = bytes.div_ceil(u64::from(mss)).min(u64::from(MAX_DEGREE)) as u32;
        }
        self.events += 1;
    }
    /// A timeout came in spite of many SACKs: the degree was over-estimated.
    pub fn overestimated(&mut self) {
        self.degree = self.degree.min(DUP_THRESH);
    }

    /// Largest degree seen, segments.
    #[inline]
    pub fn degree(&self) -> u32 {
        self.degree
    }
    /// Times that it was seen.
    #[inline]
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Whether segments arrive so much out of order that only their number counts for growth, not their order.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.degree > DUP_THRESH
    }
}

/// What the size of the reordering window depends on beside RACK itself (§6.2 step 4).
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Bounds {
    /// The window is being reduced because of losses.
    pub recovering: bool,
    /// Segments SACKed.
    pub sacked: u32,
    /// Smallest RTT, µs.
    pub min_rtt_us: u32,
    /// Smoothed RTT, µs.
    pub srtt_us: u32,
}

/// RACK's state.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Rack {
    /// The most recent transmission known to be delivered.
    newest: Transmission,
    /// RTT of the segment that was delivered last, µs.
    rtt_us: u32,
    /// Something was delivered since losses were last looked for.
    to_look: bool,
    /// What is known of reordering.
    pub reordering: Reordering,
    window: WindowSteps,
}

/// The reordering window in quarters of the smallest RTT, adapted to duplicates (§6.2 step 4).
#[derive(Clone, Copy, Debug, Default)]
struct WindowSteps {
    /// Quarters.
    steps: u32,
    /// Recoveries for which they are kept.
    kept_for: u8,
    /// A duplicate was reported that was not counted yet.
    duplicate: bool,
    /// Count of deliveries at the last step: the next one is a round trip later.
    delivered: u32,
}

impl Rack {
    /// Before anything was delivered.
    pub fn new() -> Rack {
        let window = WindowSteps { steps: 1, ..WindowSteps::default() };
        Rack { newest: Transmission::default(), rtt_us: 0, to_look: false, reordering: Reordering::new(), window }
    }

    /// Takes in what an ACK delivered (§6.2 step 2).
    #[inline]
    pub fn delivered(&mut self, d: &Delivery) {
        if let Some(n) = d.newest {
            self.to_look = true;
            self.rtt_us = n.rtt_us;
            if n.sent > self.newest {
                self.newest = n.sent;
            }
        }
    }

    /// A duplicate was reported for something sent again by recovery, not by a probe: once reordering was seen, the window is too small.
    pub fn on_duplicate(&mut self) {
        self.window.duplicate |= self.reordering.events > 0;
    }

    /// Adapts the window once a round trip (§6.2 step 4): `sampled` is the count of deliveries when the packet left that this ACK sampled,
    /// 0 for none, and `delivered` the present one.
    #[inline]
    pub fn adapt(&mut self, sampled: u32, delivered: u32) {
        let w = &mut self.window;
        if sampled == 0 {
            return;
        }
        let same_round_trip = (sampled.wrapping_sub(w.delivered) as i32) < 0;
        if std::mem::take(&mut w.duplicate) && !same_round_trip {
            *w = WindowSteps { steps: (w.steps + 1).min(MAX_STEPS), kept_for: KEPT_FOR, duplicate: false, delivered };
        } else if w.kept_for == 0 {
            w.steps = 1;
        }
    }
    /// A recovery has ended that was not proven needless: the window is kept for one recovery less.
    pub fn recovery_ended(&mut self) {
        self.window.kept_for = self.window.kept_for.saturating_sub(1);
    }
    /// Duplicates proved a recovery needless: the window is kept for one recovery more.
    pub fn recovery_was_needless(&mut self) {
        self.window.kept_for = (self.window.kept_for + 1).min(KEPT_FOR);
    }
    /// Losses are to be looked for with the next ACK: what was believed lost no longer is.
    pub fn look_again(&mut self) {
        self.to_look = true;
    }
    /// Whether something was delivered since this was last asked.
    #[inline]
    pub fn take_to_look(&mut self) -> bool {
        std::mem::take(&mut self.to_look)
    }

    /// Quarters of the smallest RTT in the window.
    pub fn steps(&self) -> u32 {
        self.window.steps
    }
    /// RTT of the segment that was delivered last, µs.
    pub fn rtt_us(&self) -> u32 {
        self.rtt_us
    }

    /// Recoveries for which the window stays as it is; for tests.
    #[cfg(test)]
    pub fn kept_for(&self) -> u8 {
        self.window.kept_for
    }
    /// Gives the window so many steps, for sixteen recoveries; for tests.
    #[cfg(test)]
    pub fn widen(&mut self, steps: u32) {
        (self.window.steps, self.window.kept_for) = (steps, KEPT_FOR);
    }

    /// The reordering window, µs (§6.2 step 4).
    fn window_us(&self, b: &Bounds) -> u32 {
        let orderly = self.reordering.events == 0;
        if orderly && (b.recovering || b.sacked >= self.reordering.degree) {
            return 0;
        }
        let quarters = u64::from(b.min_rtt_us / 4) * u64::from(self.window.steps);
        quarters.min(u64::from(b.srtt_us)) as u32
    }

    /// After how many µs from its transmission a segment is lost.
    #[inline]
    pub fn patience_us(&self, b: &Bounds) -> u64 {
        u64::from(self.rtt_us) + u64::from(self.window_us(b))
    }

    /// Time until the last segment sent before the newest one delivered must be judged, µs; none without such a segment or if it is due.
    pub fn wait_us(&self, flight: &mut Flight, patience_us: u64, now_us: u64) -> Option<u64> {
        let last = flight.last_before(self.newest)?;
        Some((flight.get(last).sent_us() + patience_us).saturating_sub(now_us)).filter(|&us| us > 0)
    }

    /// The earliest transmission that is lost (§6.2 step 5): sent before the newest one delivered, and out of time.
    #[inline]
    pub fn overdue(&self, flight: &Flight, patience_us: u64, now_us: u64) -> Option<u32> {
        let id = flight.oldest_transmission()?;
        let s = flight.get(id);
        (self.newest > s.transmission() && s.sent_us() + patience_us <= now_us).then_some(id)
    }
}

/// Duplicate threshold before any reordering was seen: 3 segments (RFC 6675; `net.ipv4.tcp_reordering`).
pub(in crate::sender) const DUP_THRESH: u32 = 3;
/// Largest degree of reordering: `net.ipv4.tcp_max_reordering`.
const MAX_DEGREE: u32 = 300;
/// Recoveries for which a wider window is kept (§6.2 step 4: 16).
const KEPT_FOR: u8 = 16;
/// Most quarters of the smallest RTT in the window.
const MAX_STEPS: u32 = 255;

/// The probe of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Tlp {
    /// SND.NXT when the probe left: it is out until that is acknowledged (`TLP.end_seq`).
    end: Option<u64>,
    /// It was a segment sent again, not new data (`TLP.is_retrans`).
    resent: bool,
}

/// What an ACK says to the probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct ProbeAck {
    /// Its number.
    pub ack: u64,
    /// It reports the probe as a duplicate.
    pub duplicate: bool,
    /// It says nothing but its number: no progress, no window, no SACK.
    pub empty: bool,
}

/// What became of the probe (§7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Outcome {
    /// It is still out.
    Pending,
    /// It has arrived, and nothing was lost, or loss detection sees to it.
    Ended,
    /// It repaired a loss: the window must be reduced.
    Repaired,
}

impl Tlp {
    /// Whether a probe is out.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.end.is_some()
    }
    /// Whether a copy is out as a probe.
    pub fn copy_is_out(&self) -> bool {
        self.is_out() && self.resent
    }
    /// Where the probe ends that is out.
    #[inline]
    pub fn end_of_probe(&self) -> Option<u64> {
        self.end
    }
    /// A probe has left.
    pub fn sent(&mut self, nxt: u64, resent: bool) {
        *self = Tlp { end: Some(nxt), resent };
    }
    /// No probe is out any more.
    pub fn end(&mut self) {
        self.end = None;
    }

    /// What the ACK makes of the probe; one that has ended is forgotten.
    pub fn on_ack(&mut self, a: &ProbeAck) -> Outcome {
        let Some(end) = self.end.filter(|&end| a.ack >= end) else { return Outcome::Pending };
        let outcome = if !self.resent || a.duplicate {
            Outcome::Ended // new data, or the original arrived as well
        } else if a.ack > end {
            Outcome::Repaired // beyond the probe without a DSACK: there was only the copy
        } else if a.empty {
            Outcome::Ended // the duplicate ACK that original and copy cause
        } else {
            Outcome::Pending
        };
        if outcome != Outcome::Pending {
            self.end = None;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::flight::{Context, Departure, Reading};

    const MSS: u32 = 1000;
    const BOUNDS: Bounds = Bounds { recovering: false, sacked: 0, min_rtt_us: 40_000, srtt_us: 50_000 };

    fn seq(n: u64) -> u64 {
        1 + n * u64::from(MSS)
    }

    /// Three segments sent 1 ms apart; the last one is SACKed after an RTT of 50 ms.
    fn tail_sacked() -> (Flight, Rack) {
        let mut f = Flight::new();
        for i in 1..=3u64 {
            let d = Departure { sent_ns: i * 1_000_000, delivered: 1, lost: 0, delivered_us: 1, first_sent_us: 1, app_limited: false };
            f.send(MSS, MSS, false, &d);
        }
        let context = Context {
            now_us: 53_000,
            jiffies: crate::Jiffies::new(250, tcpscape_base::Duration::ZERO),
            min_rtt_us: 40_000,
            echo: 0,
            recovery_point: 1,
            undo_from: None,
        };
        let mut delivery = Delivery::default();
        Reading::of(&mut f, &mut delivery, context, 1).sack(&[(seq(2), seq(3))]);
        let mut rack = Rack::new();
        rack.delivered(&delivery);
        (f, rack)
    }

    /// §6.2 step 5: patience is the RTT of 50 ms and a quarter of the smallest RTT, 10 ms: segment 0 of 1 ms is lost at 61 ms, segment 1 a
    /// millisecond later; the timer waits for the later one.
    #[test]
    fn segments_are_lost_when_their_time_is_over() {
        let (mut f, rack) = tail_sacked();
        let patience = rack.patience_us(&BOUNDS);
        assert_eq!(patience, 60_000);
        assert_eq!((rack.overdue(&f, patience, 60_999), rack.overdue(&f, patience, 61_000)), (None, Some(0)));
        assert_eq!(rack.wait_us(&mut f, patience, 53_000), Some(9_000));
        assert_eq!(rack.wait_us(&mut f, patience, 62_000), None);
    }

    /// §6.2 step 4: without any reordering seen there is no window in recovery, nor once DupThresh segments were SACKed; never above SRTT.
    #[test]
    fn the_size_of_the_window() {
        let mut rack = Rack::new();
        assert_eq!(rack.window_us(&BOUNDS), 10_000);
        assert_eq!(rack.window_us(&Bounds { recovering: true, ..BOUNDS }), 0);
        assert_eq!(rack.window_us(&Bounds { sacked: 3, ..BOUNDS }), 0);
        rack.reordering.overtaken(Overtaken { low: 1, high: 2001 }, MSS);
        assert_eq!(rack.window_us(&Bounds { recovering: true, sacked: 9, ..BOUNDS }), 10_000);
        rack.window.steps = 9;
        assert_eq!(rack.window_us(&BOUNDS), 50_000);
    }

    /// One step for the duplicates of a round trip; sixteen recoveries later one quarter again.
    #[test]
    fn duplicates_widen_the_window_for_sixteen_recoveries() {
        let mut rack = Rack::new();
        rack.on_duplicate();
        rack.adapt(5, 10);
        assert_eq!(rack.steps(), 1, "no reordering was seen");
        rack.reordering.overtaken(Overtaken { low: 1, high: 2001 }, MSS);
        rack.on_duplicate();
        rack.adapt(10, 20);
        rack.on_duplicate();
        rack.adapt(15, 22);
        assert_eq!(rack.steps(), 2, "15 left before the step at 20: the same round trip");
        rack.on_duplicate();
        rack.adapt(21, 30);
        assert_eq!(rack.steps(), 3);
        (0..16).for_each(|_| rack.recovery_ended());
        rack.adapt(31, 40);
        assert_eq!(rack.steps(), 1);
    }

    #[test]
    fn the_degree_of_reordering_is_the_longest_distance() {
        let mut r = Reordering::new();
        r.overtaken(Overtaken { low: 1, high: 2_001 }, MSS);
        assert_eq!((r.degree(), r.events(), r.is_large()), (3, 1, false));
        r.overtaken(Overtaken { low: 1, high: 7_501 }, MSS);
        assert_eq!((r.degree(), r.is_large()), (8, true));
        r.overtaken(Overtaken { low: 1, high: 5_001 }, MSS);
        r.overtaken(Overtaken { low: 5, high: 5 }, MSS);
        assert_eq!((r.degree(), r.events()), (8, 3));
        r.overestimated();
        assert_eq!(r.degree(), 3);
    }

    fn ack(ack: u64) -> ProbeAck {
        ProbeAck { ack, duplicate: false, empty: false }
    }

    /// §7.4.2: an ACK beyond the probe without a DSACK means that the probe filled a hole.
    #[test]
    fn the_cases_of_the_rfc() {
        let mut t = Tlp::default();
        assert_eq!(t.on_ack(&ack(10)), Outcome::Pending);
        t.sent(10, true);
        assert_eq!((t.on_ack(&ack(9)), t.on_ack(&ack(10))), (Outcome::Pending, Outcome::Pending));
        assert_eq!(t.on_ack(&ack(11)), Outcome::Repaired);
        t.sent(10, true);
        assert_eq!(t.on_ack(&ProbeAck { duplicate: true, ..ack(11) }), Outcome::Ended);
        t.sent(10, true);
        assert_eq!(t.on_ack(&ProbeAck { empty: true, ..ack(10) }), Outcome::Ended);
        t.sent(10, false);
        assert_eq!(t.on_ack(&ack(10)), Outcome::Ended);
        assert!(!t.is_out());
    }
}
