//! Illinois: losses say when to fall, the queueing delay says how far, and how fast to grow.
//!
//! **What it is.** The increase α is 10 packets a round trip while the average queueing delay is near nothing and 0.3 when it is
//! near the largest seen; the decrease β goes from an eighth to a half. Both are set once a round trip. Below 15 packets: Reno.
//! **Source.** Liu, Başar, Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks", Performance Evaluation 65, 2008: the functions f₁ and f₂, the window threshold and the θ round trips.
//! **How it differs.** From the paper, as Linux is seen to do (docs/models/controls/illinois.md): α in 1/128 and β in 1/64, rounded down, the largest
//! RTT is never forgotten, what slow start leaves of an ACK is lost, credit left over after a step is lost.
//! **What it does not model.** Nothing known.

use super::reno::held_by_window;
use super::{AckSample, CongestionController, Options, Param, PktsAcked, View, Window};
use tcpscape_base::CaState;

/// Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    win_thresh: u32,
    theta: u32,
    delays: DelayRange,
    round: RoundAverage,
    gains: Gains,
    /// Round trips of low delay since the delay was high; none while it has not been high.
    low_rounds: Option<u32>,
    /// Packets that the next ACK counts for: those of the latest cumulative acknowledgement, one if they have been counted.
    newly_acked: u32,
}

/// How the window grows and falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gains {
    /// Packets of growth a round trip, 1/128.
    alpha: u32,
    /// What a loss takes of the window, 1/64.
    beta: u32,
}

impl Gains {
    /// Those of Reno, for small windows and after a timeout.
    const RENO: Gains = Gains { alpha: ALPHA_ONE, beta: BETA_MAX };
    /// Those before the first round trip has been judged.
    const FIRST: Gains = Gains { alpha: ALPHA_MAX, beta: BETA_MAX };
}

/// The smallest and the largest RTT ever seen, µs.
#[derive(Clone, Copy, Debug)]
struct DelayRange {
    smallest: u32,
    largest: u32,
}

impl DelayRange {
    const NONE: DelayRange = DelayRange { smallest: i32::MAX as u32, largest: 0 };

    fn widen(&mut self, rtt: u32) {
        self.smallest = self.smallest.min(rtt);
        self.largest = self.largest.max(rtt);
    }

    /// d_a of the paper: the queueing delay in an RTT of the range, µs.
    fn queueing(&self, rtt: u32) -> u32 {
        rtt - self.smallest
    }

    /// d_m of the paper: the largest queueing delay, µs.
    fn largest_queueing(&self) -> u32 {
        self.queueing(self.largest)
    }
}

/// The average RTT of a round trip, from when it begins until data sent after that is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct RoundAverage {
    /// It ends when more than this is acknowledged.
    end: u64,
    /// Sum of the samples, µs.
    sum: u64,
    samples: u32,
}

impl RoundAverage {
    fn begin(v: &View) -> RoundAverage {
        RoundAverage { end: v.snd_nxt, sum: 0, samples: 0 }
    }

    fn add(&mut self, rtt: u32) {
        self.sum += u64::from(rtt);
        self.samples += 1;
    }

    /// The average, µs, rounded down; none without a sample.
    fn mean(&self) -> Option<u32> {
        self.sum.checked_div(self.samples.into()).map(|us| us as u32)
    }
}

impl Illinois {
    /// One with parameters from [`PARAMS`].
    pub fn new(o: &Options<'_>) -> Illinois {
        Illinois {
            win_thresh: o.get(&WIN_THRESH) as u32,
            theta: o.get(&THETA) as u32,
            delays: DelayRange::NONE,
            round: RoundAverage::default(),
            gains: Gains::FIRST,
            low_rounds: None,
            newly_acked: 0,
        }
    }

    /// Sets α and β for the round trip to come (f₁, f₂ and the paper's window threshold).
    fn judge_round(&mut self, w: &Window) {
        if w.cwnd < self.win_thresh {
            self.gains = Gains::RENO;
        } else if let Some(rtt) = self.round.mean() {
            let (da, dm) = (self.delays.queueing(rtt), self.delays.largest_queueing());
            self.gains = Gains { alpha: self.next_alpha(da, dm), beta: f2(da, dm) };
        }
    }

    /// f₁, but once the delay was high, α stays where it is until there have been θ round trips of low delay (the paper's guard against bursts).
    fn next_alpha(&mut self, da: u32, dm: u32) -> u32 {
        if da > d1(dm) {
            self.low_rounds.get_or_insert(0);
        } else if let Some(rounds) = &mut self.low_rounds {
            *rounds += 1;
            if *rounds < self.theta {
                return self.gains.alpha;
            }
            self.low_rounds = None;
        }
        f1(da, dm)
    }

    /// Congestion avoidance: the credit in packets times α is what has been earned, in windows.
    fn grow(&mut self, w: &mut Window) {
        w.cwnd_cnt = w.cwnd_cnt.wrapping_add(std::mem::replace(&mut self.newly_acked, 1));
        let earned = w.cwnd_cnt.wrapping_mul(self.gains.alpha) / ALPHA_ONE;
        if earned >= w.cwnd {
            w.cwnd = w.cwnd.saturating_add(earned / w.cwnd).min(w.clamp);
            w.cwnd_cnt = 0;
        }
    }
}

/// d₁: up to here the delay is low.
fn d1(dm: u32) -> u32 {
    dm / 100
}

/// The increase for an average queueing delay of `da`, both in µs; in 1/128 packets.
///
/// The paper's f₁ is αmax up to d₁ and κ₁ / (κ₂ + d_a) above, continuous, with f₁(d_m) = αmin. That is: 1/α is linear in d_a, from 1/αmax
/// at d₁ to 1/αmin at d_m. Hence αmax/α = 1 + (αmax/αmin − 1) (d_a − d₁)/(d_m − d₁). The divisor is taken in whole µs.
fn f1(da: u32, dm: u32) -> u32 {
    let d1 = d1(dm);
    if da <= d1 {
        return ALPHA_MAX;
    }
    let span = dm - d1;
    let slope_times_rise = (da - d1) * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN;
    ALPHA_MAX * span / (span + slope_times_rise)
}

/// The decrease for an average queueing delay of `da`, both in µs; in 1/64 of the window.
///
/// The paper's f₂: βmin up to d₂ = d_m/10, βmax from d₃ = 8 d_m/10, and κ₃ + κ₄ d_a between, continuous: the weighted mean of the two.
fn f2(da: u32, dm: u32) -> u32 {
    let (d2, d3) = (dm / 10, dm * 8 / 10);
    match da {
        _ if da <= d2 => BETA_MIN,
        _ if da >= d3 => BETA_MAX,
        _ => (BETA_MIN * (d3 - da) + BETA_MAX * (da - d2)) / (d3 - d2),
    }
}

impl CongestionController for Illinois {
    fn init(&mut self, v: &View, _w: &mut Window) {
        self.round = RoundAverage::begin(v);
    }

    // A loss takes β of the window.
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        (w.cwnd - w.cwnd.wrapping_mul(self.gains.beta) / BETA_ONE).max(2)
    }

    fn pkts_acked(&mut self, _v: &View, _w: &mut Window, a: &PktsAcked) {
        self.newly_acked = a.pkts_acked;
        if a.rtt_us >= 0 {
            let rtt = (a.rtt_us as u32).min(RTT_MOST);
            self.delays.widen(rtt);
            self.round.add(rtt);
        }
    }

    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        if !s.may_raise {
            return;
        }
        if s.ack > self.round.end {
            self.judge_round(w);
            self.round = RoundAverage::begin(v);
        }
        if !held_by_window(v, w) {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(s.acked);
        } else {
            self.grow(w);
        }
    }

    // A timeout: Reno until the next round trip has been judged.
    fn on_state(&mut self, v: &View, _w: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.gains = Gains::RENO;
            self.low_rounds = None;
            self.round = RoundAverage::begin(v);
        }
    }
}

/// Its parameters, by the names that Linux gives them.
pub const PARAMS: &[Param] = &[THETA, WIN_THRESH];

const WIN_THRESH: Param =
    Param { name: "win_thresh", about: "smallest window that is not Reno's, packets", default: 15, min: 0, max: 1 << 30 };
const THETA: Param =
    Param { name: "theta", about: "round trips of low delay before the fastest growth returns", default: 5, min: 0, max: 255 };

/// α = 1, in 1/128.
const ALPHA_ONE: u32 = 128;
/// αmin = 0.3 and αmax = 10 (the paper's choice).
const ALPHA_MIN: u32 = ALPHA_ONE * 3 / 10;
const ALPHA_MAX: u32 = ALPHA_ONE * 10;
/// β = 1, in 1/64.
const BETA_ONE: u32 = 64;
/// βmin = 1/8 and βmax = 1/2 (the paper's choice).
const BETA_MIN: u32 = BETA_ONE / 8;
const BETA_MAX: u32 = BETA_ONE / 2;
/// Longer RTTs count as this, µs, 3.4 s: f₁'s products must fit 32 bits.
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

    /// With κ₁ and κ₂ as the paper derives them from continuity: κ₁ = (dm − d1) αmin αmax / (αmax − αmin), κ₂ = (dm − d1) αmin / (αmax − αmin) − d1.
    #[test]
    fn f1_is_the_papers_hyperbola_within_its_rounding() {
        let (lo, hi) = (f64::from(ALPHA_MIN), f64::from(ALPHA_MAX));
        for dm in [1_000u32, 10_000, 333_333, 3_000_000] {
            let (m, d1) = (f64::from(dm), f64::from(dm / 100));
            let k1 = (m - d1) * lo * hi / (hi - lo);
            let k2 = (m - d1) * lo / (hi - lo) - d1;
            for da in (0..=dm).step_by(dm as usize / 97) {
                let exact = if f64::from(da) <= d1 { hi } else { k1 / (k2 + f64::from(da)) };
                let off = f64::from(f1(da, dm)) - exact;
                // Rounded down, with a divisor that was rounded down by less than 1 µs of at least 990.
                assert!(off > -1.0 && off < 1.0 + hi / 990.0, "{da} of {dm}: off by {off}");
            }
            assert_eq!((f1(dm / 100, dm), f1(0, 0)), (ALPHA_MAX, ALPHA_MAX));
        }
    }

    /// With κ₃ = (βmin d3 − βmax d2) / (d3 − d2) and κ₄ = (βmax − βmin) / (d3 − d2).
    #[test]
    fn f2_is_the_papers_straight_line_rounded_down() {
        for dm in [100u32, 10_000, 777_777] {
            let (d2, d3) = (f64::from(dm / 10), f64::from(dm * 8 / 10));
            let (k3, k4) = ((8.0 * d3 - 32.0 * d2) / (d3 - d2), 24.0 / (d3 - d2));
            for da in (dm / 10 + 1..dm * 8 / 10).step_by(dm as usize / 53) {
                let off = k3 + k4 * f64::from(da) - f64::from(f2(da, dm));
                assert!((-1e-9..1.0).contains(&off), "{da} of {dm}: off by {off}");
            }
        }
    }

    #[test]
    fn increase_falls_from_ten_to_three_tenths_with_the_delay() {
        // dm 10 ms, d1 0.1 ms. α = 9,900 · 1,280 / (9,900 + (da − 100) · 1,242 / 38).
        assert_eq!([100, 1_000, 5_000, 10_000].map(|da| f1(da, 10_000)), [1_280, 322, 74, 38]);
    }

    #[test]
    fn full_growth_returns_after_five_round_trips_of_low_delay() {
        let mut i = illinois();
        i.gains.alpha = i.next_alpha(5_000, 10_000);
        assert_eq!([0; 6].map(|_| i.next_alpha(0, 10_000)), [74, 74, 74, 74, 1_280, 1_280]);
        let set: BTreeMap<String, i64> = [("theta".into(), 1)].into();
        let mut i = Illinois { low_rounds: Some(0), ..Illinois::new(&Options { seed: 0, set: Some(&set) }) };
        assert_eq!(i.next_alpha(0, 10_000), 1_280);
    }

    #[test]
    fn decrease_rises_from_an_eighth_to_a_half() {
        // dm 10 ms: d2 1 ms, d3 8 ms. At 4.5 ms: (8 · 3,500 + 32 · 3,500) / 7,000 = 20.
        assert_eq!([1_000, 1_001, 4_500, 7_999, 8_000].map(|q| f2(q, 10_000)), [8, 8, 20, 31, 32]);
        // A delay range of nothing:
        assert_eq!([f2(0, 0), f2(1, 1)], [8, 32]);
    }

    #[test]
    fn parameters_are_set_once_a_round_trip() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 100, ssthresh: 2, ..Window::default() });
        i.init(&limited(), &mut w);
        i.pkts_acked(&limited(), &mut w, &acked(1, 20_000));
        i.pkts_acked(&limited(), &mut w, &acked(1, 30_000));
        i.on_ack(&limited(), &mut w, &ack(1_000));
        assert_eq!((i.gains.alpha, i.gains.beta, i.round.samples), (1_280, 32, 2));
        // The average, 25 ms, is in the middle: 5 of 10 ms.
        i.on_ack(&View { is_cwnd_limited: false, ..limited() }, &mut w, &ack(1_001));
        assert_eq!((i.gains.alpha, i.gains.beta, i.round.samples), (74, (8 * 3_000 + 32 * 4_000) / 7_000, 0));
        // A loss takes 21/64 of 100.
        assert_eq!((i.gains.beta, i.ssthresh(&limited(), &w)), (21, 68));
    }

    #[test]
    fn small_windows_are_renos_and_so_is_the_time_after_a_timeout() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 14, ssthresh: 2, ..Window::default() });
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((i.gains.alpha, i.gains.beta, i.ssthresh(&limited(), &w)), (128, 32, 7));
        (i.gains.alpha, i.gains.beta, i.low_rounds) = (1, 1, Some(1));
        i.on_state(&limited(), &mut w, CaState::Loss);
        assert_eq!((i.gains.alpha, i.gains.beta, i.low_rounds), (128, 32, None));
    }

    #[test]
    fn growth_by_what_the_ack_before_left() {
        let (mut i, mut w) = (illinois(), Window { cwnd: 25, ssthresh: 2, ..Window::default() });
        i.round.end = 2_000;
        // 10 packets a round trip: 3 packets acknowledged are 30, one packet of growth; the 5 left over are lost.
        i.pkts_acked(&limited(), &mut w, &acked(3, 20_000));
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((w.cwnd, w.cwnd_cnt, i.newly_acked), (26, 0, 1));
        i.on_ack(&limited(), &mut w, &ack(1));
        assert_eq!((w.cwnd, w.cwnd_cnt), (26, 1));
    }

    #[test]
    fn long_rtts_are_cut() {
        let (mut i, mut w) = (illinois(), Window::default());
        i.pkts_acked(&limited(), &mut w, &acked(1, 60_000_000));
        assert_eq!((i.delays.largest, i.delays.largest.checked_mul(ALPHA_MAX).is_some()), (3_355_443, true));
        i.pkts_acked(&limited(), &mut w, &acked(2, -1));
        assert_eq!((i.round.samples, i.newly_acked), (1, 2));
    }
}
