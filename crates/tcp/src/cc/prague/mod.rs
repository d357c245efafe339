//! TCP Prague: DCTCP made fit for the internet, the scalable congestion control of L4S.
//!
//! **What it is.** The window shrinks by half the share of packets that met congestion, and grows by the packets that met none. It is
//! kept in fractions of a packet, sent evenly over the round trip, and below 25 ms it behaves as if the RTT were 25 ms.
//! **Source.** draft-briscoe-iccrg-prague-congestion-control-04 §2.3–2.5, RFC 9331 §4; constants that the draft leaves open are those of
//! the published reference (docs/models/controls/prague.md lists them).
//! **How it differs.** From the reference, in what is seen of it: the first mark ends slow start even where its ACK also tells of unmarked
//! packets; a merged ACK may move the window by half of what it acknowledges, not by one packet; at the smallest blocking window, which pacing
//! keeps from filling, data that wait are enough for growth. One variable, the fractional window, serves all sizes.
//! **What it does not model.** Smaller segments at rates below 1 Mbit/s; detection of queues that mark as RFC 3168 has it. Without accurate
//! feedback it is Reno.

use super::reno::{half, held_by_window};
use super::{AckSample, CaEvent, CongestionController, EcnMode, Options, Param, Reno, View, Window};
use tcpscape_base::CaState;

#[cfg(test)]
mod tests;

/// One packet of the fractional window is 2^20.
const PACKET_SHIFT: u32 = 20;
const PACKET: u64 = 1 << PACKET_SHIFT;
/// α = 1 is 2^24 …
const ALPHA_SHIFT: u32 = 24;
const ALPHA_ONE: u64 = 1 << ALPHA_SHIFT;
/// … and it is kept times 16, so that the moving average with gain 1/16 loses nothing (draft §2.3.2).
const GAIN_SHIFT: u32 = 4;
/// Smallest blocking window, packets; pacing goes below it.
const MIN_CWND: u32 = 2;
/// Smallest fractional window: an eighth of a packet. It keeps arithmetic away from 0.
const MIN_WINDOW: u64 = PACKET / 8;
/// Smallest pacing rate, 100 kbit/s in bytes a second.
const MIN_RATE: u64 = 12_500;
/// The window above which packets in flight count for the rate, packets.
const SMALL_WINDOW: u32 = 4;
/// Header bytes of a packet, which the rate counts and the increase too: 20 of IP, 32 of TCP with timestamps.
const HEADERS: u64 = 52;
/// The increase is one packet of this size a round trip, whatever the segment size, bytes.
const MTU: u64 = 1_500;
/// Most packets that one ACK counts for: guards the arithmetic.
const MOST_ACKED: u32 = 1 << 16;

const BURST_SHIFT: Param = Param {
    name: "prague_burst_shift",
    about: "longest burst at the pacing rate, as a power of 1/2 of a second: 12 is 0.24 ms",
    default: 12,
    min: 0,
    max: 20,
};
const MAX_TSO_SEGS: Param =
    Param { name: "prague_max_tso_segs", about: "largest burst in segments, 0 for no such limit", default: 0, min: 0, max: 65_535 };
const RTT_TRANSITION: Param = Param {
    name: "prague_rtt_transition",
    about: "round trips after slow start before the RTT stops to matter",
    default: 4,
    min: 0,
    max: i32::MAX as i64,
};
const RTT_TARGET: Param =
    Param { name: "prague_rtt_target", about: "RTT that shorter ones are made equal to, in us", default: 25_000, min: 1, max: 1_000_000 };
const RTT_SCALING: Param =
    Param { name: "prague_rtt_scaling", about: "whether short RTTs are made equal; 0: none, 1: to the target", default: 1, min: 0, max: 1 };
const ALPHA_MODE: Param =
    Param { name: "prague_alpha_mode", about: "0: the first mark halves the window, 1: alpha begins at 1", default: 0, min: 0, max: 1 };

/// Parameters.
pub(super) const PARAMS: &[Param] = &[BURST_SHIFT, MAX_TSO_SEGS, RTT_TRANSITION, RTT_TARGET, RTT_SCALING, ALPHA_MODE];

/// TCP Prague.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    burst_shift: u32,
    max_tso_segs: u32,
    transition: u32,
    /// µs.
    target_us: u64,
    scales: bool,
    halves_at_first_mark: bool,
    /// Accurate feedback was agreed on; otherwise this is Reno.
    accurate: bool,
    /// The window, in 2⁻²⁰ packets.
    window: u64,
    alpha: Alpha,
    /// What a window's worth of unmarked packets adds, in 2⁻²⁰ packets.
    increase: u64,
    round: Round,
    /// Rounds since the end of slow start.
    rounds: u32,
    /// When α, and when the window, was last brought up to date with marks, µs.
    averaged_us: u64,
    reduced_us: u64,
    /// Marks known so far.
    marks: u32,
    seen_mark: bool,
    /// The window was halved for a loss; it does not grow until that is over.
    in_loss: bool,
    /// The fractional window before that.
    before_loss: u64,
    /// Longest burst, packets.
    burst: u32,
}

/// A round of counting: ends when `snd_una` reaches `end`.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    delivered: u32,
    delivered_ce: u32,
}

impl Round {
    fn begin(v: &View) -> Round {
        Round { end: v.snd_nxt, delivered: v.counts.delivered, delivered_ce: v.counts.delivered_ce }
    }

    /// F of the draft's §2.3.2: the share of the packets delivered since it began that were marked, times 2^24.
    fn marked_share(&self, v: &View) -> u64 {
        let marked = u64::from(v.counts.delivered_ce.wrapping_sub(self.delivered_ce));
        let delivered = u64::from(v.counts.delivered.wrapping_sub(self.delivered)).max(1);
        ((marked << ALPHA_SHIFT) / delivered).min(ALPHA_ONE)
    }
}

/// Moving average of the marked share, times 2^28: sixteen times what [`Alpha::get`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alpha(u64);

impl Alpha {
    /// α ← α + (F − α)/16 (draft §2.3.2).
    fn average(&mut self, share: u64) {
        self.0 = self.0 - (self.0 >> GAIN_SHIFT) + share;
    }

    /// Times 2^24.
    fn get(self) -> u64 {
        self.0 >> GAIN_SHIFT
    }
}

/// What a window's worth of unmarked packets adds, in 2⁻²⁰ packets of `mss` and headers: a packet of 1,500 bytes, times (RTT/target)² where
/// the RTT is made equal to a longer target (draft §2.4.3, §2.4.4); both are given in the same unit.
fn increase_of(mss: u32, scaled: Option<(u64, u64)>) -> u64 {
    let one = scaled.map_or(PACKET, |(rtt, target)| ((u128::from(rtt * rtt) << PACKET_SHIFT) / u128::from(target * target)) as u64);
    one * MTU / (u64::from(mss) + HEADERS)
}

impl Prague {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Prague {
        let halves_at_first_mark = !o.is_on(&ALPHA_MODE);
        Prague {
            burst_shift: o.get(&BURST_SHIFT) as u32,
            max_tso_segs: if o.is_on(&MAX_TSO_SEGS) { o.get(&MAX_TSO_SEGS) as u32 } else { u32::MAX },
            transition: o.get(&RTT_TRANSITION) as u32,
            target_us: o.get(&RTT_TARGET) as u64,
            scales: o.is_on(&RTT_SCALING),
            halves_at_first_mark,
            accurate: false,
            window: 0,
            alpha: if halves_at_first_mark { Alpha(0) } else { Alpha(ALPHA_ONE << GAIN_SHIFT) },
            increase: PACKET,
            round: Round::default(),
            rounds: 0,
            averaged_us: 0,
            reduced_us: 0,
            marks: 0,
            seen_mark: false,
            in_loss: false,
            before_loss: 0,
            burst: 1,
        }
    }

    /// Whether it acts as if the RTT were the target (draft §2.4.4).
    fn is_independent(&self, w: &Window) -> bool {
        self.scales && !w.in_slow_start() && self.rounds >= self.transition
    }

    /// The fractional window in whole packets, rounded up.
    fn packets(&self, w: &Window) -> u32 {
        let up = (self.window + PACKET - 1) >> PACKET_SHIFT;
        (up.min(u64::from(u32::MAX)) as u32).max(MIN_CWND).min(w.clamp)
    }

    fn set_window(&mut self, window: u64) {
        self.window = window.max(MIN_WINDOW);
    }

    fn begin_round(&mut self, v: &View, w: &Window) {
        self.round = Round::begin(v);
        if !w.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.update_increase(v);
    }

    // Draft §2.4.4: from the fourth round on RTTs below the target count as the target.
    fn update_increase(&mut self, v: &View) {
        let (rtt, target) = (u64::from(v.srtt_us), self.target_us << 3);
        let is_scaled = self.scales && self.rounds >= self.transition && (1..target).contains(&rtt);
        self.increase = increase_of(v.mss, is_scaled.then_some((rtt, target)));
    }

    /// Whether less than the target has passed since `since`, µs, where that counts as the RTT (draft §2.4.4).
    fn is_too_early(&self, v: &View, w: &Window, since: u64) -> bool {
        self.is_independent(w) && v.now.micros().saturating_sub(since) < self.target_us
    }

    // Draft §2.3.2: once a round trip, and not more often than once per target.
    fn end_round_if_due(&mut self, v: &View, w: &Window) {
        if v.snd_una < self.round.end || self.is_too_early(v, w, self.averaged_us) {
            return;
        }
        // Before the first mark there is nothing to average: no queue on the path has spoken.
        if self.seen_mark {
            self.alpha.average(self.round.marked_share(v));
            self.averaged_us = v.now.micros();
        }
        self.begin_round(v, w);
    }

    // Draft §2.4.3: the window grows for what was not marked, whether or not it shrank in this round trip.
    fn grow(&mut self, v: &View, w: &mut Window, acked: u32) {
        let mut acked = acked.min(MOST_ACKED);
        // At the smallest blocking window it is pacing that holds the sender back: the window is never full.
        let held = held_by_window(v, w) || (w.cwnd <= MIN_CWND && v.has_unsent);
        if acked == 0 || self.in_loss || !held {
            return;
        }
        if w.in_slow_start() {
            acked = w.slow_start(acked);
            self.set_window(u64::from(w.cwnd) << PACKET_SHIFT);
        }
        let divisor = self.window.max(PACKET);
        let add = ((u64::from(acked) * self.increase) << PACKET_SHIFT).saturating_add(divisor / 2) / divisor;
        self.set_window((self.window + add).min(u64::from(w.clamp) << PACKET_SHIFT));
    }

    /// Takes `part` (1: all) of 2^`shift` off the window.
    fn reduce(&mut self, part: u64, shift: u32) {
        let off = (u128::from(self.window) * u128::from(part) + (1 << (shift - 1))) >> shift;
        self.set_window(self.window - (off as u64).min(self.window));
    }

    // Draft §2.4.2: an echo of congestion takes α/2 off, once per round trip of at least the target.
    fn answer_marks(&mut self, v: &View, w: &Window) {
        if self.reduced_us != 0 && self.is_too_early(v, w, self.reduced_us) {
            return;
        }
        self.reduced_us = v.now.micros();
        self.reduce(self.alpha.get(), ALPHA_SHIFT + 1);
    }

    // Draft §2.4.1, RFC 9331 §4.3: a loss is answered as Reno does.
    fn answer_loss(&mut self, w: &mut Window) {
        self.before_loss = self.window;
        self.reduce(1, 1);
        w.ssthresh = self.packets(w);
        self.in_loss = true;
    }

    // The marks that an ACK tells of; the first of all ends slow start at half of the window (docs/models/controls/prague.md).
    fn take_marks(&mut self, v: &View, w: &mut Window) -> u32 {
        let marks = v.counts.delivered_ce.wrapping_sub(std::mem::replace(&mut self.marks, v.counts.delivered_ce));
        if marks > 0 && !std::mem::replace(&mut self.seen_mark, true) && self.halves_at_first_mark {
            self.reduce(1, 1);
            w.ssthresh = self.packets(w);
        }
        marks
    }

    // Draft §2.5: a window per round trip, twice that at the start.
    fn pace(&mut self, v: &View, w: &mut Window) {
        let mtu = u64::from(v.mss) + HEADERS;
        let per_packet = (mtu * (1_000_000 << 3)) / u64::from(v.srtt_us.max(1));
        let least = if w.cwnd > SMALL_WINDOW { u64::from(v.in_flight) << PACKET_SHIFT } else { 0 };
        let rate = (per_packet.saturating_mul(self.window.max(least) >> 10) >> (PACKET_SHIFT - 10)).max(MIN_RATE);
        w.pacing_rate = if w.cwnd < w.ssthresh / 2 { rate.saturating_mul(2) } else { rate };
        let burst = ((w.pacing_rate >> self.burst_shift) / mtu).min(u64::from(self.max_tso_segs));
        self.burst = (burst as u32).max(1);
    }

    /// Moves the blocking window towards the fractional one, by no more than half of what was acknowledged. While losses are repaired it is PRR's.
    fn follow(&self, v: &View, w: &mut Window, acked: u32) {
        if v.ca_state == CaState::Recovery {
            return;
        }
        let (target, step) = (self.packets(w), acked.div_ceil(2).max(1));
        if w.cwnd > target {
            w.cwnd = target.max(w.cwnd.saturating_sub(step));
            w.ssthresh = w.cwnd.max(1);
        } else {
            w.cwnd = target.min(w.cwnd.saturating_add(step));
        }
    }
}

impl CongestionController for Prague {
    fn needs_ecn(&self) -> bool {
        true
    }
    fn wants_accurate_ecn(&self) -> bool {
        true
    }
    fn owns_window(&self) -> bool {
        self.accurate
    }
    fn repairs_by_prr(&self) -> bool {
        true
    }
    fn max_tso_segs(&self, _w: &Window) -> u32 {
        self.burst
    }
    fn min_tso_segs(&self, _w: &Window) -> u32 {
        if self.accurate {
            1
        } else {
            2
        }
    }

    fn init(&mut self, v: &View, w: &mut Window) {
        self.accurate = v.ecn == EcnMode::Accurate;
        if !self.accurate {
            return;
        }
        w.paced = true;
        self.set_window(u64::from(w.cwnd) << PACKET_SHIFT);
        self.marks = v.counts.delivered_ce;
        self.averaged_us = v.now.micros();
        self.begin_round(v, w);
        self.pace(v, w);
    }

    // What marks take off is decided in `on_state`; a loss sets the threshold there as well.
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        if self.accurate {
            w.ssthresh
        } else {
            half(w)
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !self.accurate {
            return Reno.on_ack(v, w, s);
        }
        let marks = self.take_marks(v, w);
        self.grow(v, w, s.acked.saturating_sub(marks));
        self.follow(v, w, s.acked);
        self.end_round_if_due(v, w);
        self.pace(v, w);
    }

    fn on_state(&mut self, v: &View, w: &mut Window, new: CaState) {
        if !self.accurate || new == v.ca_state {
            return;
        }
        match new {
            CaState::Recovery => self.answer_loss(w),
            CaState::Cwr => self.answer_marks(v, w),
            CaState::Open => self.in_loss = false,
            _ => {}
        }
    }

    fn on_event(&mut self, _v: &View, w: &mut Window, e: CaEvent) {
        if self.accurate && e == CaEvent::Loss {
            self.answer_loss(w);
        }
    }

    fn undo(&mut self, _v: &View, w: &Window) -> u32 {
        if !self.accurate {
            return w.cwnd.max(w.prior_cwnd);
        }
        self.in_loss = false;
        self.set_window(self.window.max(self.before_loss));
        w.cwnd.max(self.packets(w))
    }
}
