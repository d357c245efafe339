//! BIC: a binary search for the window at which the last loss came; Linux's default from 2.6.8 to 2.6.18.
//!
//! **What it is.** Far below the window of the last loss it grows by 16 packets a round trip, nearer by a quarter of the
//! distance, at it hardly at all; past it the same steps in reverse order. Windows of 14 packets and less behave like Reno.
//! **Source.** Xu, Harfoush, Rhee, "Binary increase congestion control (BIC) for fast long-distance networks", INFOCOM 2004: binary search increase, additive increase, fast convergence.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/bic.md): steps of a quarter of the distance instead of half of it,
//! β = 819/1024, growth is scaled by the packets an ACK stands for (in congestion avoidance, where what is acknowledged is counted in
//! packets already: with delayed ACKs the window grows twice as fast as the paper's). From Linux: nothing known.
//! **What it does not model.** Nothing known.

use super::reno::past_slow_start;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, View, Window};
use tcpscape_base::CaState;

/// BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    set: Settings,
    /// Window of the last loss, less for fast convergence; 0 before the first loss.
    w_max: u32,
    rate: Rate,
    per_ack: PacketsPerAck,
}

/// How fast it grows.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Packets to acknowledge for one packet of growth.
    per_packet: u32,
    /// The window for which that was worked out, and the jiffy.
    cwnd: u32,
    jiffies: u32,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
struct Settings {
    fast_convergence: bool,
    max_increment: u32,
    low_window: u32,
    beta: u32,
    initial_ssthresh: u32,
    smooth_part: u32,
}

/// Packets per ACK, a moving average over about 16 ACKs, in sixteenths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacketsPerAck(u32);

impl PacketsPerAck {
    /// Two: delayed acknowledgements, until it is known better.
    const DELAYED: PacketsPerAck = PacketsPerAck(2 * PacketsPerAck::ONE);
    const ONE: u32 = 16;

    fn take(&mut self, packets: u32) {
        self.0 = (self.0 - self.0 / PacketsPerAck::ONE).wrapping_add(packets);
    }
}

/// Growth: so many packets in so many round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Growth {
    packets: u32,
    round_trips: u32,
}

impl Growth {
    /// Packets to acknowledge for one packet, at a window of `cwnd`.
    fn per_packet(self, cwnd: u32) -> u32 {
        cwnd.wrapping_mul(self.round_trips) / self.packets
    }
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

    /// One that has seen nothing.
    fn forgetful(set: Settings) -> Bic {
        Bic { set, w_max: 0, rate: Rate::default(), per_ack: PacketsPerAck::DELAYED }
    }

    /// Works the rate of growth out, unless that was done for this window no more than 1/32 s ago.
    fn update(&mut self, v: &View, cwnd: u32) {
        let age = v.jiffies.wrapping_sub(self.rate.jiffies) as i32;
        if cwnd != self.rate.cwnd || age > (v.hz / UPDATES_PER_SECOND) as i32 {
            self.rate = Rate { per_packet: self.per_packet(cwnd), cwnd, jiffies: v.jiffies };
        }
    }

    /// Packets to acknowledge for one packet of growth at a window of `cwnd`: Reno's below `low_window`; above it what the growth asks for, shared among
    /// the packets that an ACK stands for.
    fn per_packet(&self, cwnd: u32) -> u32 {
        if cwnd <= self.set.low_window {
            return cwnd;
        }
        let of_the_search = self.growth(cwnd).per_packet(cwnd);
        let alone = if self.w_max > 0 { of_the_search } else { of_the_search.min(FIRST_CLIMB) };
        (alone.wrapping_mul(PacketsPerAck::ONE) / self.per_ack.0).max(1)
    }

    /// The growth at a window of `cwnd`, by its distance from that of the last loss (the table of page bic).
    fn growth(&self, cwnd: u32) -> Growth {
        let Settings { max_increment, smooth_part, .. } = self.set;
        let (is_below, distance) = (cwnd < self.w_max, cwnd.abs_diff(self.w_max));
        let (packets, round_trips, near) = if is_below { (distance / PARTS, 1, 2 * PARTS) } else { (distance, PARTS - 1, PARTS) };
        if distance < near {
            Growth { packets: PARTS, round_trips: smooth_part }
        } else if packets < max_increment * round_trips {
            Growth { packets, round_trips }
        } else {
            Growth { packets: max_increment, round_trips: 1 }
        }
    }
}

impl CongestionController for Bic {
    fn init(&mut self, _v: &View, w: &mut Window) {
        if self.set.initial_ssthresh > 0 {
            w.ssthresh = self.set.initial_ssthresh;
        }
    }

    // The paper's fast convergence. Products wrap at 32 bits (above 2.3 million packets).
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        let Settings { fast_convergence, low_window, beta, .. } = self.set;
        let converge = fast_convergence && w.cwnd < self.w_max;
        self.w_max = if converge { w.cwnd.wrapping_mul(BETA_ONE + beta) / (2 * BETA_ONE) } else { w.cwnd };
        let left = if w.cwnd <= low_window { w.cwnd / 2 } else { w.cwnd.wrapping_mul(beta) / BETA_ONE };
        left.max(2)
    }

    fn pkts_acked(&mut self, v: &View, _w: &mut Window, a: &PktsAcked) {
        if v.ca_state == CaState::Open {
            self.per_ack.take(a.pkts_acked);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if let Some(left) = past_slow_start(v, w, s) {
            self.update(v, w.cwnd);
            w.additive_increase(self.rate.per_packet, left);
        }
    }

    fn on_state(&mut self, _v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            *self = Bic::forgetful(self.set);
        }
    }
}

/// Its parameters, by the names that Linux gives them.
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
/// The search goes a quarter of the distance in a round trip.
const PARTS: u32 = 4;
/// Slowest growth while no loss has shown a maximum: one packet per 20, 5 % a round trip.
const FIRST_CLIMB: u32 = 20;
/// An unchanged window is evaluated again after 1/32 s.
const UPDATES_PER_SECOND: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn bic(w_max: u32) -> Bic {
        Bic { w_max, per_ack: PacketsPerAck(PacketsPerAck::ONE), ..Bic::new(&Options::default()) }
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
        b.rate.per_packet
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

    /// The distance to the maximum decides, and past the maximum the distance from it.
    #[test]
    fn growth_by_the_distance() {
        let b = bic(1_000);
        let growth = |cwnd| (b.growth(cwnd).packets, b.growth(cwnd).round_trips);
        assert_eq!([growth(100), growth(931), growth(932), growth(992), growth(993)], [(16, 1), (16, 1), (16, 1), (2, 1), (4, 20)]);
        assert_eq!([growth(1_003), growth(1_004), growth(1_047), growth(1_048)], [(4, 20), (4, 3), (47, 3), (16, 1)]);
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
        assert_eq!(b.rate.per_packet, 48);
        // 32 − 2 + 1 = 31 sixteenths, then 31 − 1 + 1 and so on: one packet per ACK never goes below that.
        let v = limited(100);
        for per_ack in [31, 31, 31] {
            b.pkts_acked(&v, &mut Window::default(), &PktsAcked { pkts_acked: 1, rtt_us: -1, in_flight: 0 });
            assert_eq!(b.per_ack.0, per_ack);
        }
        b.pkts_acked(
            &View { ca_state: CaState::Disorder, ..v },
            &mut Window::default(),
            &PktsAcked { pkts_acked: 9, rtt_us: 1, in_flight: 0 },
        );
        assert_eq!(b.per_ack.0, 31);
    }

    #[test]
    fn an_unchanged_window_is_judged_again_after_four_jiffies() {
        let mut b = bic(1_000);
        b.update(&limited(100), 960);
        b.w_max = 2_000;
        b.update(&limited(103), 960);
        assert_eq!(b.rate.per_packet, 96);
        b.update(&limited(104), 960);
        assert_eq!(b.rate.per_packet, 60);
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
        assert_eq!((b.w_max, b.per_ack.0), (0, 32));
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
