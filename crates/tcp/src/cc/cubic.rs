//! CUBIC: the window is a cubic function of the time since the last loss; Linux's default.
//!
//! **What it is.** Growth towards, and past, the window of the last loss, never slower than an estimate of Reno; HyStart
//! ends slow start before it overruns the queue.
//! **Source.** RFC 9438; Ha, Rhee: HyStart (2011). All arithmetic is of whole numbers: 1/1024 s for the curve, jiffies for the epoch, µs for
//! delays.
//! **How it differs.** From RFC 9438, as Linux is seen to do (docs/models/controls/cubic.md): β = 717/1024, the Reno estimate grows by one packet per
//! 15/8 windows, at most one packet is added for two acknowledged, a timeout forgets everything. From Linux: K is the
//! cube root rounded down; Linux's is up to about half a per cent above or below it.
//! **What it does not model.** Parameters changed while a connection lives.

use super::reno::past_slow_start;
use super::{AckSample, CaEvent, CongestionController, Options, PktsAcked, View, Window};
use tcpscape_base::CaState;

mod hystart;
mod hystartpp;
mod params;
use hystart::HyStart;
use hystartpp::HyStartPp;
use params::Rules;
pub(super) use params::PARAMS;

/// CUBIC with HyStart.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// The growth period since the last reduction; none before its first ACK in congestion avoidance.
    epoch: Option<Epoch>,
    /// Window of the last loss, less for fast convergence; 0 before the first loss.
    w_max: u32,
    /// Packets to acknowledge for one packet of growth, and for which moment the curve gave them.
    per_packet: u32,
    evaluated: Evaluated,
    /// Smallest RTT since the start or the last timeout, µs; 0 before the first.
    rtt_min: u32,
    hystart: HyStart,
    /// In place of HyStart, when it is wanted.
    hystartpp: Option<HyStartPp>,
    rules: Rules,
}

/// One period of growth.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Jiffy in which it began; moved on over idle times.
    start: u32,
    /// The window at the curve's inflection: W_max of the RFC, or the window at the beginning where that is larger.
    origin: u32,
    /// Time from the beginning to the inflection, 1/1024 s.
    k: u32,
    reno: RenoEstimate,
}

/// W_est of RFC 9438 §4.3: what Reno would have.
#[derive(Clone, Copy, Debug)]
struct RenoEstimate {
    cwnd: u32,
    /// Packets acknowledged that it has not used yet.
    acked: u32,
}

/// When the curve was evaluated last.
#[derive(Clone, Copy, Debug, Default)]
struct Evaluated {
    window: u32,
    jiffies: u32,
}

impl Cubic {
    /// A new one with these parameters.
    pub fn new(o: &Options<'_>) -> Cubic {
        Cubic { rules: Rules::new(o), ..Cubic::default() }
    }

    /// Forgets everything.
    fn reset(&mut self, v: &View) {
        *self = Cubic { rules: self.rules, hystartpp: self.hystartpp, ..Cubic::default() };
        self.hystart.new_round(v);
    }

    /// Sets `per_packet` for a window of `cwnd` after `acked` more packets.
    fn update(&mut self, v: &View, cwnd: u32, acked: u32) {
        if let Some(e) = &mut self.epoch {
            e.reno.acked = e.reno.acked.wrapping_add(acked);
        }
        let Evaluated { window, jiffies } = self.evaluated;
        if cwnd == window && v.jiffies.wrapping_sub(jiffies) as i32 <= (v.hz / UPDATES_PER_SECOND) as i32 {
            return;
        }
        // The curve moves with the jiffies: within one there is only the Reno estimate to bring up to date.
        if self.epoch.is_none() || v.jiffies != jiffies {
            self.evaluated = Evaluated { window: cwnd, jiffies: v.jiffies };
            self.per_packet = self.by_the_curve(v, cwnd, acked);
        }
        if let (Some(e), true) = (&mut self.epoch, self.rules.friendly) {
            if let Some(per_packet) = e.reno.per_packet(cwnd) {
                self.per_packet = self.per_packet.min(per_packet);
            }
        }
        self.per_packet = self.per_packet.max(FASTEST);
    }

    /// Packets to acknowledge for one packet of growth, so that the window meets the curve in a round trip (RFC 9438 §4.4, §4.5).
    fn by_the_curve(&mut self, v: &View, cwnd: u32, acked: u32) -> u32 {
        let (w_max, rules) = (self.w_max, &self.rules);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(rules, v.jiffies, cwnd, w_max, acked));
        let target = epoch.target(rules, v, self.rtt_min);
        let slowest = if w_max == 0 { FIRST_CLIMB } else { u32::MAX };
        let per_packet = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.wrapping_mul(FLAT) };
        per_packet.min(slowest)
    }
}

impl Epoch {
    /// Begins at `cwnd` with the last maximum at `w_max`.
    fn new(rules: &Rules, jiffies: u32, cwnd: u32, w_max: u32, acked: u32) -> Epoch {
        let drop = w_max.saturating_sub(cwnd);
        Epoch { start: jiffies, origin: w_max.max(cwnd), k: rules.k(drop), reno: RenoEstimate { cwnd, acked } }
    }

    /// Moves the beginning by idle time, to `now` at most (RFC 9438 §5.8).
    fn skip(&mut self, idle: u32, now: u32) {
        let age = now.wrapping_sub(self.start);
        self.start = self.start.wrapping_add(idle.min(age));
    }

    /// The curve one smallest RTT from now: W = C (t − K)³ + origin (RFC 9438 §4.2).
    fn target(&self, rules: &Rules, v: &View, rtt_min: u32) -> u32 {
        let hz = u64::from(v.hz.max(1));
        let since = i64::from(v.jiffies.wrapping_sub(self.start) as i32) as u64;
        let rtt = u64::from(rtt_min).div_ceil(1_000_000 / hz.min(1_000_000));
        let t = (since.wrapping_add(rtt) << TIME_SHIFT) / hz;
        let k = u64::from(self.k);
        let distance = rules.cube(t.abs_diff(k));
        if t < k {
            self.origin.wrapping_sub(distance)
        } else {
            self.origin.wrapping_add(distance)
        }
    }
}

impl RenoEstimate {
    /// Packets to acknowledge for one packet of growth, so that a window of `cwnd` meets the estimate in a round trip; none if it is not below it.
    fn per_packet(&mut self, cwnd: u32) -> Option<u32> {
        self.advance(cwnd);
        let ahead = self.cwnd.saturating_sub(cwnd);
        (ahead > 0).then(|| cwnd / ahead)
    }

    /// Moves by the packets acknowledged: one per 15/8 windows, which gives Reno's average at CUBIC's β (RFC 9438 §4.3).
    fn advance(&mut self, cwnd: u32) {
        let per_packet = (cwnd.wrapping_mul(RENO_STEP) / 8).max(1);
        if self.acked > per_packet {
            let packets = (self.acked - 1) / per_packet;
            self.acked -= packets * per_packet;
            self.cwnd = self.cwnd.wrapping_add(packets);
        }
    }
}

impl Rules {
    /// K = ∛(drop / C), in 1/1024 s (RFC 9438 §4.2).
    fn k(&self, drop: u32) -> u32 {
        match drop {
            0 => 0,
            _ => cube_root(self.inverse_c.wrapping_mul(u64::from(drop))),
        }
    }

    /// C · t³ in packets, of a time in 1/1024 s.
    fn cube(&self, t: u64) -> u32 {
        (self.c.wrapping_mul(t).wrapping_mul(t).wrapping_mul(t) >> (10 + 3 * TIME_SHIFT)) as u32
    }
}

impl CongestionController for Cubic {
    fn init(&mut self, v: &View, w: &mut Window) {
        self.hystartpp = self.rules.hystartpp.then(|| HyStartPp::new(v));
        self.reset(v);
        if !self.rules.hystart && self.rules.initial_ssthresh > 0 {
            w.ssthresh = self.rules.initial_ssthresh;
        }
    }

    // RFC 9438 §4.6, §4.7.
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        self.epoch = None;
        let (beta, converge) = (self.rules.beta, self.rules.fast_convergence);
        let part = |num: u32, den: u32| (u64::from(w.cwnd) * u64::from(num) / u64::from(den)) as u32;
        self.w_max = if converge && w.cwnd < self.w_max { part(BETA_ONE + beta, 2 * BETA_ONE) } else { w.cwnd };
        part(beta, BETA_ONE).max(2)
    }

    // No sample counts in the first second of a growth period: the queue of the loss has to drain.
    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        let just_reduced = self.epoch.is_some_and(|e| (v.jiffies.wrapping_sub(e.start) as i32) < v.hz as i32);
        if a.rtt_us < 0 || just_reduced {
            return;
        }
        let rtt = (a.rtt_us as u32).max(1);
        if self.rtt_min == 0 || rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        if let Some(h) = &mut self.hystartpp {
            return h.sample(v, w, rtt);
        }
        if !self.hystart.found && w.in_slow_start() && self.rules.hystart {
            self.hystart.sample(v, w, rtt, self.rtt_min, &self.rules);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        let left = match &mut self.hystartpp {
            None => past_slow_start(v, w, s),
            Some(h) => h.grow(v, w, s),
        };
        if let Some(left) = left {
            self.update(v, w.cwnd, left);
            w.additive_increase(self.per_packet, left);
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.reset(v);
        }
    }

    // RFC 9438 §5.8: idle time is no time for the curve.
    fn on_event(&mut self, v: &View, _w: &mut Window, e: CaEvent) {
        let idle = v.jiffies.wrapping_sub(v.last_sent);
        if let (CaEvent::TxStart, Some(epoch), 1..=0x7fff_ffff) = (e, &mut self.epoch, idle) {
            epoch.skip(idle, v.jiffies);
        }
    }
}

/// ⌊∛a⌋ of a below 2⁶³, bit by bit.
fn cube_root(a: u64) -> u32 {
    (0..21).rev().map(|b| 1u64 << b).fold(0, |r, bit| if (r + bit).pow(3) <= a { r + bit } else { r }) as u32
}

/// Multiplicative decrease β = 717/1024 ≈ 0.7 (RFC 9438 §4.6), unless a parameter says otherwise.
const BETA: u32 = 717;
const BETA_ONE: u32 = 1024;
/// The curve's unit of time is 2^-10 s.
const TIME_SHIFT: u32 = 10;
/// The Reno estimate's window per packet of growth, in eighths: 8 (1 + β) / 3 (1 − β), of the default β (see `params.rs`).
const RENO_STEP: u32 = 8 * (BETA_ONE + BETA) / 3 / (BETA_ONE - BETA);
/// The curve is evaluated again at an unchanged window after 1/32 s.
const UPDATES_PER_SECOND: u32 = 32;
/// Windows to acknowledge for one packet at or above the target.
const FLAT: u32 = 100;
/// Slowest growth while no loss has shown a maximum: one packet per 20, 5 % a round trip.
const FIRST_CLIMB: u32 = 20;
/// Fastest growth: one packet for two acknowledged, 1.5 × a round trip.
const FASTEST: u32 = 2;

#[cfg(test)]
mod tests;
