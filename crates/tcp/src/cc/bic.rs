//! BIC: a binary search for the window at which the last loss came; Linux's default from 2.6.8 to 2.6.18.
//!
//! **What it is.** Far below the window of the last loss it grows by 16 packets a round trip, nearer by a quarter of the
//! distance, at it hardly at all; past it the same steps in reverse order. Windows of 14 packets and less behave like Reno.
//! **Source.** Xu, Harfoush, Rhee, "Binary increase congestion control (BIC) for fast long-distance networks", INFOCOM
//! 2004; Linux 6.1's `tcp_bic.c`: `bictcp_update()`, `bictcp_recalc_ssthresh()`, `bictcp_acked()`.
//! **How it differs.** From the paper, as Linux does: steps of a quarter of the distance instead of half of it, β = 819/1024,
//! growth is scaled by the packets an ACK stands for (in congestion avoidance, where what is acknowledged is counted in
//! packets already: with delayed ACKs the window grows twice as fast as the paper's). From Linux: nothing known.
//! **What it does not model.** Nothing known.

use super::reno::past_slow_start;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, Snapshot, View, Window};
use tcpscape_base::CaState;

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    set: Settings,
    /// Window of the last loss, less for fast convergence; 0 before the first loss (`last_max_cwnd`).
    w_max: u32,
    /// Packets to acknowledge for one packet of growth (`cnt`).
    per_packet: u32,
    /// Window and jiffy of the last evaluation (`last_cwnd`, `last_time`).
    evaluated: (u32, u32),
    /// Packets per ACK, smoothed, in sixteenths (`delayed_ack`).
    per_ack: u32,
}

/// The module's parameters.
#[derive(Clone, Copy, Debug)]
struct Settings {
    fast_convergence: bool,
    max_increment: u32,
    low_window: u32,
    beta: u32,
    initial_ssthresh: u32,
    smooth_part: u32,
}

impl Bic {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Bic {
        let get = |p: &Param| o.get(p) as u32;
        let set = Settings {
            fast_convergence: o.is_on(&FAST_CONVERGENCE),
            max_increment: get(&MAX_INCREMENT),
            low_window: get(&LOW_WINDOW),
            beta: get(&BETA),
            initial_ssthresh: get(&INITIAL_SSTHRESH),
            smooth_part: get(&SMOOTH_PART),
        };
        Bic::forgetful(set)
    }

    /// One that has seen nothing (`bictcp_reset()`).
    fn forgetful(set: Settings) -> Bic {
        Bic { set, w_max: 0, per_packet: 0, evaluated: (0, 0), per_ack: DELAYED }
    }

    /// Sets `per_packet` for a window of `cwnd` (`bictcp_update()`).
    fn update(&mut self, v: &View, cwnd: u32) {
        let (last_cwnd, last_time) = self.evaluated;
        if last_cwnd == cwnd && v.jiffies.wrapping_sub(last_time) as i32 <= (v.hz / UPDATES_PER_SECOND) as i32 {
            return;
        }
        self.evaluated = (cwnd, v.jiffies);
        if cwnd <= self.set.low_window {
            self.per_packet = cwnd;
            return;
        }
        let mut packets = self.search(cwnd);
        if self.w_max == 0 {
            packets = packets.min(FIRST_CLIMB);
        }
        self.per_packet = ((packets << PER_ACK_SHIFT) / self.per_ack).max(1);
    }

    /// Packets to acknowledge for one packet of growth, were every packet acknowledged by itself.
    fn search(&self, cwnd: u32) -> u32 {
        let Settings { max_increment, smooth_part, .. } = self.set;
        let smooth = cwnd.wrapping_mul(smooth_part) / STEPS;
        if cwnd < self.w_max {
            let step = (self.w_max - cwnd) / STEPS;
            return if step > max_increment {
                cwnd / max_increment
            } else if step <= 1 {
                smooth
            } else {
                cwnd / step
            };
        }
        let past = cwnd - self.w_max;
        if past < STEPS {
            smooth
        } else if past < max_increment * (STEPS - 1) {
            cwnd.wrapping_mul(STEPS - 1) / past
        } else {
            cwnd / max_increment
        }
    }
}

impl CongestionController for Bic {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn init(&mut self, _v: &View, w: &mut Window) {
        if self.set.initial_ssthresh > 0 {
            w.ssthresh = self.set.initial_ssthresh;
        }
    }

    // Linux: bictcp_recalc_ssthresh(); products wrap at 32 bits, as there (above 2.3 million packets).
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        let Settings { fast_convergence, low_window, beta, .. } = self.set;
        let converge = fast_convergence && w.cwnd < self.w_max;
        self.w_max = if converge { w.cwnd.wrapping_mul(BETA_ONE + beta) / (2 * BETA_ONE) } else { w.cwnd };
        let left = if w.cwnd <= low_window { w.cwnd / 2 } else { w.cwnd.wrapping_mul(beta) / BETA_ONE };
        left.max(2)
    }

    // Linux: bictcp_acked()
    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if v.ca_state == CaState::Open {
            self.per_ack = (self.per_ack - (self.per_ack >> PER_ACK_SHIFT)).wrapping_add(a.pkts_acked);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if let Some(left) = past_slow_start(v, w, s) {
            self.update(v, w.cwnd);
            w.additive_increase(self.per_packet, left);
        }
    }

    fn on_state(&mut self, _v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            *self = Bic::forgetful(self.set);
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![("w_max", self.w_max.into()), ("per_packet", self.per_packet.into()), ("per_ack", f64::from(self.per_ack) / 16.0)]
    }
}

/// The parameters of Linux's module `tcp_bic`.
pub const PARAMS: &[Param] = &[BETA, FAST_CONVERGENCE, INITIAL_SSTHRESH, LOW_WINDOW, MAX_INCREMENT, SMOOTH_PART];

const FAST_CONVERGENCE: Param =
    Param { name: "fast_convergence", about: "a loss below the last maximum lowers the maximum further", default: 1, min: 0, max: 1 };
const MAX_INCREMENT: Param =
    Param { name: "max_increment", about: "largest growth in a round trip, packets", default: 16, min: 1, max: 1 << 20 };
const LOW_WINDOW: Param =
    Param { name: "low_window", about: "largest window that behaves like Reno's, packets", default: 14, min: 0, max: 1 << 30 };
const BETA: Param = Param { name: "beta", about: "what a loss leaves of the window, 1/1024", default: 819, min: 0, max: 1_024 };
const INITIAL_SSTHRESH: Param =
    Param { name: "initial_ssthresh", about: "slow-start threshold at the start, packets; 0 for none", default: 0, min: 0, max: 1 << 30 };
const SMOOTH_PART: Param =
    Param { name: "smooth_part", about: "round trips for the last packets before the maximum", default: 20, min: 1, max: 1 << 20 };

/// β's unit.
const BETA_ONE: u32 = 1_024;
/// The search goes a quarter of the distance in a round trip (`BICTCP_B`).
const STEPS: u32 = 4;
/// Packets per ACK are kept in 1/16, and averaged over about 16 ACKs.
const PER_ACK_SHIFT: u32 = 4;
/// Two packets per ACK: delayed acknowledgements, until it is known better.
const DELAYED: u32 = 2 << PER_ACK_SHIFT;
/// Slowest growth while no loss has shown a maximum: one packet per 20, 5 % a round trip.
const FIRST_CLIMB: u32 = 20;
/// An unchanged window is evaluated again after 1/32 s.
const UPDATES_PER_SECOND: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn bic(w_max: u32) -> Bic {
        Bic { w_max, per_ack: 1 << PER_ACK_SHIFT, ..Bic::new(&Options::default()) }
    }

    fn limited(jiffies: u32) -> View {
        View { is_cwnd_limited: true, hz: 100, jiffies, ..View::default() }
    }

    fn ack(n: u32) -> AckSample {
        AckSample { acked: n, may_raise: true, ..Default::default() }
    }

    /// `per_packet` at a window of `cwnd`.
    fn at(w_max: u32, cwnd: u32) -> u32 {
        let mut b = bic(w_max);
        b.update(&limited(100), cwnd);
        b.per_packet
    }

    #[test]
    fn steps_towards_the_maximum_and_beyond() {
        // 400 below: 100 a round trip asked, 16 given: one packet per 600/16 = 37.
        assert_eq!(at(1_000, 600), 37);
        // 40 below: 10 a round trip. 4 below: one packet per 5 round trips. At it: the same, until 4 past it.
        assert_eq!([at(1_000, 960), at(1_000, 996), at(1_000, 1_000), at(1_000, 1_003)], [96, 4_980, 5_000, 5_015]);
        // 12 past: 4 a round trip; from 48 past: 16.
        assert_eq!([at(1_000, 1_012), at(1_000, 1_047), at(1_000, 1_048)], [253, 66, 65]);
    }

    #[test]
    fn small_windows_are_renos_and_a_first_climb_is_five_per_cent() {
        assert_eq!([at(1_000, 14), at(0, 14), at(0, 100), at(0, 1_000)], [14, 14, 6, 20]);
        // A jump straight to max_increment: 160/16 = 10 packets.
        assert_eq!(at(0, 160), 10);
    }

    #[test]
    fn delayed_acks_double_the_growth() {
        let mut b = Bic { w_max: 1_000, ..Bic::new(&Options::default()) };
        b.update(&limited(100), 960);
        assert_eq!(b.per_packet, 48);
        // 32 − 2 + 1 = 31 sixteenths, then 31 − 1 + 1 and so on: one packet per ACK never goes below that.
        let v = limited(100);
        for per_ack in [31, 31, 31] {
            b.pkts_acked(&v, &mut Window::default(), &PktsAcked { pkts_acked: 1, rtt_us: -1, in_flight: 0 });
            assert_eq!(b.per_ack, per_ack);
        }
        b.pkts_acked(
            &View { ca_state: CaState::Disorder, ..v },
            &mut Window::default(),
            &PktsAcked { pkts_acked: 9, rtt_us: 1, in_flight: 0 },
        );
        assert_eq!(b.per_ack, 31);
    }

    #[test]
    fn an_unchanged_window_is_judged_again_after_four_jiffies() {
        let mut b = bic(1_000);
        b.update(&limited(100), 960);
        b.w_max = 2_000;
        b.update(&limited(103), 960);
        assert_eq!(b.per_packet, 96);
        b.update(&limited(104), 960);
        assert_eq!(b.per_packet, 60);
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_fast_convergence_lowers_the_maximum() {
        let (mut b, v) = (bic(0), limited(0));
        let with = |cwnd| Window { cwnd, ..Window::default() };
        // 819/1024 of 1,000; then 799 is below the maximum: 799 · 1843/2048 = 719.
        assert_eq!((b.ssthresh(&v, &with(1_000)), b.w_max), (799, 1_000));
        assert_eq!((b.ssthresh(&v, &with(799)), b.w_max), (639, 719));
        assert_eq!((b.ssthresh(&v, &with(14)), b.ssthresh(&v, &with(15)), b.ssthresh(&v, &with(3))), (7, 11, 2));
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut b = bic(1_000);
        b.on_state(&limited(0), &mut Window::default(), CaState::Recovery);
        assert_eq!(b.w_max, 1_000);
        b.on_state(&limited(0), &mut Window::default(), CaState::Loss);
        assert_eq!((b.w_max, b.per_ack), (0, 32));
    }

    #[test]
    fn what_slow_start_leaves_counts() {
        let (mut b, mut w) = (bic(0), Window { ssthresh: 30, cwnd: 28, ..Window::default() });
        // 2 of 15 reach 30; there 3 · 30/30 packets are needed for one: 13 are four, and one over.
        b.on_ack(&limited(9), &mut w, &ack(15));
        assert_eq!((w.cwnd, w.cwnd_cnt), (34, 1));
    }

    #[test]
    fn parameters() {
        let set: BTreeMap<String, i64> = [("fast_convergence".into(), 0), ("beta".into(), 512), ("initial_ssthresh".into(), 50)].into();
        let mut b = Bic { w_max: 2_000, ..Bic::new(&Options { seed: 0, set: Some(&set) }) };
        let mut w = Window { cwnd: 1_000, ..Window::default() };
        b.init(&limited(0), &mut w);
        assert_eq!((w.ssthresh, b.ssthresh(&limited(0), &w), b.w_max), (50, 500, 1_000));
    }
}
