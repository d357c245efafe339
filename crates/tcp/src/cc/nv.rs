//! NV, "new Vegas": compares the window with what the best rate of the last rounds needs without a queue.
//!
//! **What it is.** Once a round the window for the highest rate seen and the smallest RTT is computed. Above it by more than ten
//! packets is congestion: the window comes down by 30 % of the excess. Eight below that it grows as Reno's. Decisions wait until
//! enough RTTs were measured. A loss costs 20 %.
//! **Source.** Brakmo: "TCP-NV: congestion avoidance for data centers" (Linux Plumbers Conference 2010).
//! **How it differs.** The slides leave open how much must be measured before a decision; that, and what a timeout and a lone ACK do, is as
//! Linux is seen to do (docs/models/controls/nv.md). From Linux: nothing known.
//! **What it does not model.** A base RTT given by a BPF program; the constants that are no module parameters are fixed.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, View, Window};
use tcpscape_base::{CaState, Stream};

/// NV.
#[derive(Clone, Debug)]
pub struct Nv {
    /// Packets in the queue that are allowed.
    pad: u32,
    /// Smallest window that congestion without loss leaves, packets.
    floor: u32,
    rtt: RttFilter,
    evidence: Evidence,
    growth: Growth,
    /// What was measured is to be forgotten when the state is Open again.
    forget_at_open: bool,
    /// Packets that one ACK must cover to be the only one of its round.
    batch: u32,
    /// Sequence number whose acknowledgement ends the round.
    round_end: u64,
    /// Sequence number acknowledged at the last call.
    last_una: u64,
}

/// What was measured since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// RTTs, at most 255.
    rtts: u32,
    /// Rounds, at most 255.
    rounds: u32,
    /// Highest rate, 100 bit/s.
    max_rate: u32,
}

impl Evidence {
    fn add(&mut self, rate: u32) {
        self.rtts = (self.rtts + 1).min(MOST_COUNTED);
        self.max_rate = self.max_rate.max(rate);
    }

    fn end_round(&mut self) {
        self.rounds = (self.rounds + 1).min(MOST_COUNTED);
    }
}

/// Whether, and how fast, the window grows.
#[derive(Clone, Copy, Debug)]
struct Growth {
    allowed: bool,
    /// Windows to acknowledge for one packet, as a power of two.
    slowness: u32,
    /// Decisions in a row that found no congestion.
    uncongested: u32,
}

impl Growth {
    /// Each timeout halves the speed.
    fn slow_down(&mut self) {
        self.slowness = (self.slowness + 1).min(SLOWEST);
    }

    /// There is no congestion. After nine such decisions what a timeout has cost is given back.
    fn allow(&mut self) {
        self.allowed = true;
        self.uncongested += 1;
        if self.slowness > 0 && self.uncongested > QUICKEN_AFTER {
            self.slowness -= 1;
            self.uncongested = 0;
        }
    }

    fn forbid(&mut self) {
        self.allowed = false;
        self.uncongested = 0;
    }

    /// Packets to acknowledge for one of growth.
    fn per_packet(&self, cwnd: u32) -> u32 {
        match self.slowness {
            0 => cwnd.max(4),
            slowness => cwnd << slowness,
        }
    }
}

/// Averaged RTT and its minimum over the last one to two periods.
#[derive(Clone, Debug)]
struct RttFilter {
    /// The average of this sample and the last average, µs; 0 before the first.
    average: u32,
    /// The smallest average in use, and the one that follows it, µs.
    min: u32,
    min_next: u32,
    /// When it follows, jiffies.
    switch_at: u32,
    /// The period, s, and what varies it.
    period: u32,
    random: Stream,
}

impl RttFilter {
    /// Half of the old average, half of the new sample. The first after a loss begins the minimum anew, at twice its value.
    fn take(&mut self, rtt: u32) -> u32 {
        if self.average == 0 {
            (self.average, self.min) = (rtt, rtt << 1);
        } else {
            self.average = ((u64::from(rtt) + u64::from(self.average)) / 2) as u32;
        }
        self.average
    }

    fn lower(&mut self, rtt: u32) {
        self.min = self.min.min(rtt);
        self.min_next = self.min_next.min(rtt);
    }

    /// The smallest RTT of the last period becomes the one in use when its time has come; the next change is ¾ to 5/4 of a period away.
    fn switch_if_due(&mut self, v: &View) -> bool {
        let is_due = v.jiffies.wrapping_sub(self.switch_at) as i32 >= 0;
        if is_due {
            self.min = std::mem::replace(&mut self.min_next, u32::MAX);
            let in_512ths = 384 + self.random.below(256);
            self.switch_at = v.jiffies.wrapping_add(self.period.wrapping_mul(in_512ths).wrapping_mul(v.hz) >> 9);
        }
        is_due
    }
}

impl Nv {
    /// A new one.
    pub fn new(o: &Options<'_>) -> Nv {
        let get = |i: usize| o.get(&PARAMS[i]) as u32;
        let random = Stream::new(o.seed, "nv");
        Nv {
            pad: get(0),
            floor: get(2),
            rtt: RttFilter { average: 0, min: u32::MAX, min_next: u32::MAX, switch_at: 0, period: get(1), random },
            evidence: Evidence::default(),
            growth: Growth { allowed: true, slowness: 0, uncongested: 0 },
            forget_at_open: false,
            batch: BATCH,
            round_end: 0,
            last_una: 0,
        }
    }

    /// Forgets what was measured; the smallest RTT begins anew with the next sample.
    fn forget(&mut self, v: &View) {
        self.evidence = Evidence::default();
        self.rtt.average = 0;
        self.growth.uncongested = 0;
        self.forget_at_open = false;
        (self.round_end, self.last_una) = (v.snd_una, v.snd_una);
    }

    /// A round has ended. One with a single ACK for all of it, because of large segments, does not count: the next is made longer.
    fn end_round(&mut self, v: &View, w: &mut Window, bytes_acked: u64) {
        self.evidence.end_round();
        let covers_batch = bytes_acked >= u64::from((self.batch - 1) * v.mss);
        if self.evidence.rtts == 1 && covers_batch && self.batch < MOST_BATCH {
            self.batch = (self.batch + BATCH_STEP).min(MOST_BATCH);
            self.round_end = v.snd_nxt + u64::from(self.batch * v.mss);
            self.evidence.rtts = 0;
            self.growth.allowed = true;
        } else {
            self.round_end = v.snd_nxt;
            self.judge(v, w);
        }
    }

    /// Is there congestion, or room to grow? When something was decided, the next decision needs evidence of its own.
    fn judge(&mut self, v: &View, w: &mut Window) {
        let most = needed(self.evidence.max_rate, self.rtt.min, v.mss).wrapping_add(self.pad);
        let is_decided =
            if w.cwnd > most { self.decide_to_shrink(w, most) } else { w.cwnd <= most.wrapping_sub(PAD_BUFFER) && self.decide_to_grow() };
        if is_decided {
            self.evidence = Evidence::default();
            w.cwnd = w.cwnd.max(self.floor).min(w.clamp);
        }
    }

    /// The window is above `most`; false when it is too early to shrink it.
    fn decide_to_shrink(&mut self, w: &mut Window, most: u32) -> bool {
        let is_first_slow_start = w.ssthresh == super::INFINITE_SSTHRESH;
        let enough = if is_first_slow_start { RTTS_TO_LEAVE_SLOW_START } else { RTTS_TO_SHRINK };
        let Evidence { rtts, rounds, .. } = self.evidence;
        if rounds >= LEAST_ROUNDS && rtts >= enough {
            self.growth.forbid();
            w.ssthresh = most;
            w.cwnd -= cut(w.cwnd - most);
            return true;
        }
        if !is_first_slow_start && rounds > STOP_AFTER {
            self.growth.allowed = false;
        }
        false
    }

    /// The window is well below the most; false when it is too early to say so.
    fn decide_to_grow(&mut self) -> bool {
        let is_decided = self.evidence.rtts >= RTTS_TO_GROW;
        if is_decided {
            self.growth.allow();
        }
        is_decided
    }
}

/// The window, in packets, that `rate` (100 bit/s) needs over an RTT of `min_rtt` µs without a queue.
fn needed(rate: u32, min_rtt: u32, mss: u32) -> u32 {
    (u64::from(rate) * u64::from(min_rtt) / (RATE_UNIT * u64::from(mss))) as u32
}

/// What congestion takes of an excess: 30 %, two packets at least, all of an excess of one or two.
fn cut(excess: u32) -> u32 {
    match excess {
        0..=2 => excess,
        _ => (excess.wrapping_mul(CUT) / CUT_ONE).max(2),
    }
}

impl CongestionController for Nv {
    fn init(&mut self, v: &View, _w: &mut Window) {
        self.forget(v);
        self.rtt.switch_at = v.jiffies.wrapping_add(FIRST_SWITCH_SECONDS * v.hz);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd.wrapping_mul(LOSS_KEEPS) / LOSS_ONE).max(2)
    }

    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        if a.rtt_us < 0 || v.ca_state > CaState::Disorder {
            return;
        }
        let bytes_acked = v.snd_una - std::mem::replace(&mut self.last_una, v.snd_una);
        if a.in_flight == 0 {
            return;
        }
        let rtt = self.rtt.take(a.rtt_us as u32);
        self.evidence.add((u64::from(a.in_flight) * RATE_UNIT / u64::from(rtt.max(1))) as u32);
        self.rtt.lower(rtt);
        if self.rtt.switch_if_due(v) {
            self.batch = (self.batch / 2).max(BATCH);
        }
        if self.round_end < v.snd_una {
            self.end_round(v, w, bytes_acked);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !self.growth.allowed || !s.may_raise || !held_by_window(v, w) {
            return;
        }
        let left = if w.in_slow_start() { w.slow_start(s.acked) } else { s.acked };
        if left > 0 {
            w.additive_increase(self.growth.per_packet(w.cwnd), left);
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        match new {
            CaState::Disorder => return,
            CaState::Open => {
                if self.forget_at_open {
                    self.forget(v);
                }
                return;
            }
            CaState::Loss => self.growth.slow_down(),
            CaState::Cwr | CaState::Recovery => {}
        }
        self.forget_at_open = true;
        self.growth.allowed = false;
    }
}

/// Its parameters, by the names that Linux gives them.
pub(super) const PARAMS: &[Param] = &[
    Param { name: "nv_pad", about: "packets allowed in the queue", default: 10, min: 1, max: 1_000_000 },
    Param { name: "nv_reset_period", about: "seconds after which the smallest RTT is taken anew", default: 5, min: 0, max: 3_000 },
    Param {
        name: "nv_min_cwnd",
        about: "smallest window, in packets, that congestion without loss leaves",
        default: 2,
        min: 1,
        max: 1_000_000,
    },
];
/// Bytes over µs to units of 100 bit/s.
const RATE_UNIT: u64 = 80_000;
/// The window does not grow when it is closer than so many packets to congestion.
const PAD_BUFFER: u32 = 2;
/// Part of the excess that congestion takes away: 38/128 = 30 %.
const CUT: u32 = 38;
const CUT_ONE: u32 = 128;
/// Part of the window that a loss leaves: 819/1024 = 80 %.
const LOSS_KEEPS: u32 = 819;
const LOSS_ONE: u32 = 1_024;
/// RTTs to measure before the window shrinks, before it grows, and before slow start ends.
const RTTS_TO_SHRINK: u32 = 60;
const RTTS_TO_GROW: u32 = 20;
const RTTS_TO_LEAVE_SLOW_START: u32 = 30;
/// Evidence is counted up to here.
const MOST_COUNTED: u32 = 255;
/// Growth ends after so many congested rounds with too few RTTs to decide.
const STOP_AFTER: u32 = 10;
/// Rounds before the window may shrink.
const LEAST_ROUNDS: u32 = 2;
/// Uncongested decisions after which slowed growth is twice as fast.
const QUICKEN_AFTER: u32 = 8;
/// Largest power of two by which growth is slowed.
const SLOWEST: u32 = 8;
/// The smallest RTT is taken anew for the first time after so many seconds.
const FIRST_SWITCH_SECONDS: u32 = 2;
/// Packets that a lone ACK of a round must cover: at first, more each time, at most.
const BATCH: u32 = 4;
const BATCH_STEP: u32 = 2;
const MOST_BATCH: u32 = 81;

#[cfg(test)]
mod tests;
