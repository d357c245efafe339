//! Illinois: losses say when to fall, the queueing delay says how far, and how fast to grow.
//!
//! **What it is.** The increase α is 10 packets a round trip while the average queueing delay is near nothing and 0.3 when it is
//! near the largest seen; the decrease β goes from an eighth to a half. Both are set once a round trip. Below 15 packets: Reno.
//! **Source.** Liu, Başar, Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks", Performance Evaluation 65, 2008; Linux 6.1's `tcp_illinois.c`: `tcp_illinois_acked()`, `update_params()`,
//! `alpha()`, `beta()`, `tcp_illinois_cong_avoid()`.
//! **How it differs.** From the paper, as Linux does: integers (α in 1/128, β in 1/64), the largest RTT is never forgotten, what
//! slow start leaves of an ACK is lost, credit left over after a step is lost. From Linux: the RTT samples of a round trip
//! are counted in 32 bits, where Linux's count wraps at 65,536.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, Snapshot, View, Window};
use tcpscape_base::CaState;

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    win_thresh: u32,
    theta: u32,
    round: Round,
    /// Smallest and largest RTT, µs (`base_rtt`, `max_rtt`).
    rtt_min: u32,
    rtt_max: u32,
    /// Packets of growth a round trip, 1/128.
    alpha: u32,
    /// What a loss takes of the window, 1/64.
    beta: u32,
    /// Packets that the next ACK counts for (`acked`).
    acked: u32,
    /// The delay has not been low all the time (`rtt_above`).
    was_high: bool,
    /// Round trips with a low delay since (`rtt_low`).
    low_rounds: u32,
}

/// RTTs of the present round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// It ends when more than this is acknowledged.
    end: u64,
    /// Sum, µs, and number of samples.
    sum: u64,
    samples: u32,
}

impl Illinois {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Illinois {
        Illinois {
            win_thresh: o.get(&WIN_THRESH) as u32,
            theta: o.get(&THETA) as u32,
            round: Round::default(),
            rtt_min: i32::MAX as u32,
            rtt_max: 0,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            acked: 0,
            was_high: false,
            low_rounds: 0,
        }
    }

    fn new_round(&mut self, v: &View) {
        self.round = Round { end: v.snd_nxt, ..Round::default() };
    }

    // Linux: update_params()
    fn end_round(&mut self, v: &View, w: &Window) {
        if w.cwnd < self.win_thresh {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
        } else if self.round.samples > 0 {
            let average = (self.round.sum / u64::from(self.round.samples)) as u32;
            let (queue, most) = (average - self.rtt_min, self.rtt_max - self.rtt_min);
            self.alpha = self.increase(queue, most);
            self.beta = decrease(queue, most);
        }
        self.new_round(v);
    }

    // The paper's f₁(da): κ₁ / (κ₂ + da) above d₁ = 1 % of dm, with f₁(d₁) = αmax and f₁(dm) = αmin. Linux: alpha()
    fn increase(&mut self, queue: u32, most: u32) -> u32 {
        let low = most / 100;
        if queue <= low {
            if !self.was_high {
                return ALPHA_MAX;
            }
            self.low_rounds += 1;
            if self.low_rounds < self.theta {
                return self.alpha;
            }
            (self.low_rounds, self.was_high) = (0, false);
            return ALPHA_MAX;
        }
        self.was_high = true;
        let (most, queue) = (most - low, queue - low);
        most * ALPHA_MAX / (most + queue * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }
}

// The paper's f₂(da): βmin up to d₂ = 10 % of dm, βmax from d₃ = 80 %, linear between. Linux: beta()
fn decrease(queue: u32, most: u32) -> u32 {
    let (low, high) = (most / 10, most * 8 / 10);
    if queue <= low {
        BETA_MIN
    } else if queue >= high {
        BETA_MAX
    } else {
        // βmin d₃ may be less than βmax d₂: the sum is positive all the same.
        (BETA_MIN * high + (BETA_MAX - BETA_MIN) * queue - BETA_MAX * low) / (high - low)
    }
}

impl CongestionController for Illinois {
    fn name(&self) -> &'static str {
        "illinois"
    }

    fn init(&mut self, v: &View, _w: &mut Window) {
        self.new_round(v);
    }

    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd.wrapping_mul(self.beta) >> BETA_SHIFT)).max(2)
    }

    // Linux: tcp_illinois_acked()
    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.acked = a.pkts_acked;
        if a.rtt_us < 0 {
            return;
        }
        let rtt = (a.rtt_us as u32).min(RTT_MOST);
        self.rtt_min = self.rtt_min.min(rtt);
        self.rtt_max = self.rtt_max.max(rtt);
        self.round.samples += 1;
        self.round.sum += u64::from(rtt);
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if s.ack > self.round.end {
            self.end_round(v, w);
        }
        if !held_by_window(v, w) {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(s.acked);
            return;
        }
        w.cwnd_cnt = w.cwnd_cnt.wrapping_add(self.acked);
        self.acked = 1;
        let growth = w.cwnd_cnt.wrapping_mul(self.alpha) >> ALPHA_SHIFT;
        if growth >= w.cwnd {
            w.cwnd = w.cwnd.saturating_add(growth / w.cwnd).min(w.clamp);
            w.cwnd_cnt = 0;
        }
    }

    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
            (self.low_rounds, self.was_high) = (0, false);
            self.new_round(v);
        }
    }

    fn snapshot(&self) -> Snapshot {
        vec![
            ("alpha", f64::from(self.alpha) / 128.0),
            ("beta", f64::from(self.beta) / 64.0),
            ("rtt_min_us", self.rtt_min.into()),
            ("rtt_max_us", self.rtt_max.into()),
        ]
    }
}

/// The parameters of Linux's module `tcp_illinois`.
pub const PARAMS: &[Param] = &[THETA, WIN_THRESH];

const WIN_THRESH: Param =
    Param { name: "win_thresh", about: "smallest window that is not Reno's, packets", default: 15, min: 0, max: 1 << 30 };
const THETA: Param =
    Param { name: "theta", about: "round trips of low delay before the fastest growth returns", default: 5, min: 0, max: 255 };

/// α is in 1/128: 1 to begin with after a timeout …
const ALPHA_SHIFT: u32 = 7;
const ALPHA_ONE: u32 = 1 << ALPHA_SHIFT;
/// … 0.3 at least …
const ALPHA_MIN: u32 = 3 * ALPHA_ONE / 10;
/// … and 10 at most.
const ALPHA_MAX: u32 = 10 * ALPHA_ONE;
/// β is in 1/64: between 1/8 …
const BETA_SHIFT: u32 = 6;
const BETA_MIN: u32 = (1 << BETA_SHIFT) / 8;
/// … and 1/2.
const BETA_MAX: u32 = (1 << BETA_SHIFT) / 2;
/// Longer RTTs count as this, µs, 3.4 s: α's arithmetic must fit 32 bits.
const RTT_MOST: u32 = u32::MAX / ALPHA_MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn illinois() -> Illinois {
        Illinois::new(&Options::default())
    }

    fn limited() -> View {
        View { is_cwnd_limited: true, hz: 100, snd_nxt: 1_000, ..View::default() }
    }

    fn ack(ack: u64) -> AckSample {
        AckSample { acked: 2, ack, may_raise: true, ..Default::default() }
    }

    fn acked(n: u32, rtt_us: i64) -> PktsAcked {
        PktsAcked { pkts_acked: n, rtt_us, in_flight: 0 }
    }

    #[test]
    fn increase_falls_from_ten_to_a_third_with_the_delay() {
        let mut i = illinois();
        // dm 10 ms, d1 0.1 ms. α = 9,900 · 1,280 / (9,900 + (da − 100) · 1,242 / 38).
        assert_eq!(
            [i.increase(100, 10_000), i.increase(1_000, 10_000), i.increase(5_000, 10_000), i.increase(10_000, 10_000)],
            [1_280, 322, 74, 38]
        );
    }

    #[test]
    fn full_growth_returns_after_five_round_trips_of_low_delay() {
        let mut i = illinois();
        i.alpha = i.increase(5_000, 10_000);
        assert_eq!([0; 6].map(|_| i.increase(0, 10_000)), [74, 74, 74, 74, 1_280, 1_280]);
        let set: BTreeMap<String, i64> = [("theta".into(), 1)].into();
        let mut i = Illinois { was_high: true, ..Illinois::new(&Options { seed: 0, set: Some(&set) }) };
        assert_eq!(i.increase(0, 10_000), 1_280);
    }

    #[test]
    fn decrease_rises_from_an_eighth_to_a_half() {
        // dm 10 ms: d2 1 ms, d3 8 ms. At 4.5 ms: (64,000 − 32,000 + 24 · 4,500) / 7,000 = 20.
        assert_eq!([1_000, 1_001, 4_500, 7_999, 8_000].map(|q| decrease(q, 10_000)), [8, 8, 20, 31, 32]);
        // βmin d₃ < βmax d₂ cannot be: 6.4 against 3.2. A delay range of nothing:
        assert_eq!([decrease(0, 0), decrease(1, 1)], [8, 32]);
    }

    #[test]
    fn parameters_are_set_once_a_round_trip() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 100, ssthresh: 2, ..Window::default() });
        i.init(&limited(), &mut w);
        i.pkts_acked(&limited(), &mut w, &acked(1, 20_000));
        i.pkts_acked(&limited(), &mut w, &acked(1, 30_000));
        i.on_ack(&limited(), &mut w, &ack(1_000));
        assert_eq!((i.alpha, i.beta, i.round.samples), (1_280, 32, 2));
        // The average, 25 ms, is in the middle: 5 of 10 ms.
        i.on_ack(&View { is_cwnd_limited: false, ..limited() }, &mut w, &ack(1_001));
        assert_eq!((i.alpha, i.beta, i.round.samples), (74, (64_000 - 32_000 + 24 * 5_000) / 7_000, 0));
        // A loss takes 21/64 of 100.
        assert_eq!((i.beta, i.ssthresh(&limited(), &w)), (21, 68));
    }

    #[test]
    fn small_windows_are_renos_and_so_is_the_time_after_a_timeout() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 14, ssthresh: 2, ..Window::default() });
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((i.alpha, i.beta, i.ssthresh(&limited(), &w)), (128, 32, 7));
        (i.alpha, i.beta, i.was_high) = (1, 1, true);
        i.on_state(&limited(), &mut w, CaState::Loss);
        assert_eq!((i.alpha, i.beta, i.was_high), (128, 32, false));
    }

    #[test]
    fn growth_by_what_the_ack_before_left() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 25, ssthresh: 2, ..Window::default() });
        i.round.end = 2_000;
        // 10 packets a round trip: 3 packets acknowledged are 30, one packet of growth; the 5 left over are lost.
        i.pkts_acked(&limited(), &mut w, &acked(3, 20_000));
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((w.cwnd, w.cwnd_cnt, i.acked), (26, 0, 1));
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((w.cwnd, w.cwnd_cnt), (26, 1));
    }

    #[test]
    fn long_rtts_are_cut() {
        let (mut i, mut w) = (illinois(), Window::default());
        i.pkts_acked(&limited(), &mut w, &acked(1, 60_000_000));
        assert_eq!((i.rtt_max, i.rtt_max.checked_mul(ALPHA_MAX).is_some()), (3_355_443, true));
        i.pkts_acked(&limited(), &mut w, &acked(2, -1));
        assert_eq!((i.round.samples, i.acked), (1, 2));
    }
}
