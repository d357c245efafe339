//! PIE's control law, which [`super::Pie`] applies to one queue and fq_pie to each of its flows.
//!
//! What it is: a drop probability that a timer moves with the queueing delay and its trend; arrivals are dropped (or marked) with it,
//! spread out by a sum of probabilities, once a burst of 150 ms has been let through.
//! Source: RFC 8033: random dropping §4.1, the probability and its auto-tuning §4.2, the delay §4.3, bursts §4.4, the rate of departures
//! §5.2, derandomisation §5.4, the capped increase §5.5.
//! How it differs: from RFC 8033 as the sentences under "The law" in docs/models/queues/pie.md say.
//! What it does not model: nothing.

use crate::discipline::Aged;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Stream, Time};

/// What PIE holds to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Law {
    /// Queueing delay to hold.
    pub target: Duration,
    /// Time between updates of the probability, rounded up to ticks.
    pub tupdate: Duration,
    /// Weight of the delay, 1/16.
    pub alpha: u32,
    /// Weight of its trend, 1/16.
    pub beta: u32,
    /// Mark instead of dropping where a packet allows it and the probability is low.
    pub ecn: bool,
    /// Small packets are struck less often.
    pub bytemode: bool,
    /// Estimate the delay from the rate of departures instead of measuring it.
    pub dq_rate_estimator: bool,
}

impl Default for Law {
    /// RFC 8033's target and update interval, and its weights (0.125 and 1.25) in sixteenths; tc-pie(8).
    fn default() -> Law {
        let (target, tupdate) = (Duration::millis(15), Duration::millis(15));
        Law { target, tupdate, alpha: 2, beta: 20, ecn: false, bytemode: false, dq_rate_estimator: false }
    }
}

/// Certainty: probabilities are fractions of 2⁵⁶.
pub const ONE: u64 = (1 << 56) - 1;

/// One queue's state under the law.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    /// Probability; certainty is [`ONE`], which it may exceed.
    pub probability: u64,
    spread: Spread,
    burst: BurstAllowance,
    /// Queueing delay: by timestamps that of the last packet to leave, by the rate of departures that of the last update.
    delay: Ticks,
    /// Queueing delay at the last update.
    previous: Ticks,
    /// When the last packet left, where delays are measured by timestamps.
    departed: Option<Instant>,
    rate: DepartureRate,
}

impl Control {
    /// Whether a packet that comes is to be struck, with `backlog` B in front of it.
    pub fn strikes(&mut self, law: &Law, backlog: u64, size: u32, stream: &mut Stream) -> bool {
        if self.burst.covers() || self.is_harmless(law, backlog) {
            return false;
        }
        let p = if law.bytemode { by_size(self.probability, u64::from(size)) } else { self.probability };
        self.spread.strikes(p, || stream.next_u64() >> 8)
    }

    /// A packet has been dropped: the next waits its turn.
    pub fn struck(&mut self) {
        self.spread = Spread::default();
    }

    /// A packet leaves, with `backlog` B behind it.
    pub fn departs<B>(&mut self, now: Time, law: &Law, p: &Aged<B>, backlog: u64) {
        let now = Instant::of(now);
        let elapsed = if law.dq_rate_estimator {
            self.rate.departs(now, u64::from(p.1.size), backlog)
        } else {
            self.delay = if backlog > 0 { now.since(Instant::of(p.0)) } else { 0 };
            self.departed.replace(now).map(|last| now.since_in_32_bits(last))
        };
        self.burst.spend(elapsed.unwrap_or(0));
    }

    /// The timer: moves the probability, with `backlog` B waiting.
    pub fn update(&mut self, law: &Law, backlog: u64) {
        if law.dq_rate_estimator {
            self.delay = self.rate.time_for(backlog);
        }
        let (delay, previous) = (self.delay, std::mem::replace(&mut self.previous, self.delay));
        self.probability = moved(self.probability, step(law, self.probability, delay, previous));
        if delay == 0 && previous == 0 && backlog == 0 {
            self.probability -= self.probability / DECAY;
        }
        let low = delay.max(previous) < low_delay(law);
        if low && self.probability == 0 && (!law.dq_rate_estimator || self.rate.is_known()) {
            // As new, but for the two delays.
            *self = Control { delay, previous: self.previous, ..Control::default() };
        }
    }

    /// Whether an update of an empty queue would change nothing.
    pub fn at_rest(&self) -> bool {
        let idle = self.departed.is_none() && self.rate == DepartureRate::default();
        idle && self.burst == BurstAllowance::default() && (self.probability, self.delay, self.previous) == (0, 0, 0)
    }

    /// What is never struck (RFC 8033 §4.1): two frames, and a delay below half the target at less than 20 %.
    fn is_harmless(&self, law: &Law, backlog: u64) -> bool {
        backlog < 2 * FRAME || (self.delay < low_delay(law) && self.probability < ONE / 5)
    }
}

/// Half the target: a delay below it is low.
fn low_delay(law: &Law) -> Ticks {
    ticks(law.target) / 2
}

/// The probability of a packet of `size` B, where it is that of a full frame.
fn by_size(probability: u64, size: u64) -> u64 {
    if size > FRAME {
        probability
    } else {
        probability / FRAME * size
    }
}

/// By how much an update moves the probability (RFC 8033 §4.2), of [`ONE`]: `alpha` for each second by which the delay misses the target
/// and `beta` for each by which it has grown, both scaled down by the auto-tuning.
fn step(law: &Law, probability: u64, delay: Ticks, previous: Ticks) -> i64 {
    let weight = |sixteenths: u32| (u64::from(sixteenths) * (ONE / TICKS_PER_SECOND) / 16 / tuning(probability)) as i64;
    let beyond = |mark: Ticks| delay as i64 - mark as i64;
    let missed = weight(law.alpha).wrapping_mul(beyond(ticks(law.target)));
    let grown = weight(law.beta).wrapping_mul(beyond(previous));
    let limited = match missed.wrapping_add(grown) {
        // RFC 8033 §5.5: from a tenth on, in steps of at most 2 %.
        steep if steep > STEP_MAX && probability >= ONE / 10 => STEP_MAX,
        step => step,
    };
    if delay > HIGH_DELAY {
        limited.wrapping_add(STEP_MAX)
    } else {
        limited
    }
}

/// The auto-tuning of RFC 8033 §4.2, which that gives as a table: with `k` whole decades between the probability and certainty, six at
/// most, the weights are divided by 2^(2k − 1), and from a tenth on by 1.
fn tuning(probability: u64) -> u64 {
    // In whole numbers p < ONE / 10^k is 10^k ≤ ONE / (p + 1).
    let decades = (ONE / probability.saturating_add(1)).checked_ilog10().unwrap_or(0).min(6);
    (1 << (2 * decades)) / if decades > 0 { 2 } else { 1 }
}

/// A probability moved by a step, not below 0.
fn moved(probability: u64, step: i64) -> u64 {
    match probability.checked_add_signed(step) {
        Some(sum) => sum,
        None if step > 0 => ONE,
        None => 0,
    }
}

/// Derandomisation (RFC 8033 §5.4): no packet is struck before the probabilities since the last add up to 0.85, and one is for certain
/// at 8.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spread {
    sum: u64,
}

impl Spread {
    /// Whether a packet is struck that is to be with probability `p`; `draw` is uniform below 2⁵⁶.
    fn strikes(&mut self, p: u64, draw: impl FnOnce() -> u64) -> bool {
        self.sum = if p == 0 { 0 } else { self.sum.wrapping_add(p) };
        if !(SUM_MIN..SUM_MAX).contains(&self.sum) {
            return self.sum >= SUM_MAX;
        }
        let hit = draw() < p;
        if hit {
            self.sum = 0;
        }
        hit
    }
}

/// The burst that is let through (RFC 8033 §4.4): so much time of departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BurstAllowance {
    left: Ticks,
}

impl Default for BurstAllowance {
    fn default() -> BurstAllowance {
        BurstAllowance { left: BURST }
    }
}

impl BurstAllowance {
    fn covers(self) -> bool {
        self.left > 0
    }
    fn spend(&mut self, time: u32) {
        self.left = self.left.saturating_sub(u64::from(time));
    }
}

/// The rate of departures (RFC 8033 §5.2), measured over 16 KiB at a time while at least as much is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DepartureRate {
    /// Bytes a tick, 2⁻⁸; 0 while it is not known.
    average: u32,
    running: Option<Measurement>,
}

/// A measurement under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measurement {
    began: Instant,
    bytes: u64,
}

impl DepartureRate {
    /// `size` B leave, with `backlog` B behind them: the time that a measurement took, if one ends with them.
    fn departs(&mut self, now: Instant, size: u64, backlog: u64) -> Option<u32> {
        let restarted = (backlog >= MEASURED).then_some(Measurement { began: now, bytes: 0 });
        let mut measurement = self.running.or(restarted)?;
        measurement.bytes += size;
        let took = now.since_in_32_bits(measurement.began);
        let complete = measurement.bytes >= MEASURED && took > 0;
        self.running = if complete { restarted } else { Some(measurement) };
        complete.then(|| {
            self.take(((measurement.bytes << RATE_SHIFT) as u32) / took);
            took
        })
    }
    /// The first sample is the rate, each further one an eighth of it.
    fn take(&mut self, sample: u32) {
        self.average = if self.is_known() { self.average - self.average / 8 + sample / 8 } else { sample };
    }
    fn is_known(self) -> bool {
        self.average > 0
    }
    /// How long so many bytes take to leave; 0 while that is not known.
    fn time_for(self, bytes: u64) -> Ticks {
        u64::from(((bytes as u32) << RATE_SHIFT).checked_div(self.average).unwrap_or(0))
    }
}

/// Time in ticks of the law's clock, 64 ns each.
type Ticks = u64;

/// A time on that clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instant(Ticks);

impl Instant {
    fn of(now: Time) -> Instant {
        Instant(now.0 / TICK)
    }
    fn since(self, earlier: Instant) -> Ticks {
        self.0 - earlier.0
    }
    /// The same in 32 bits: longer than 275 s turns over.
    fn since_in_32_bits(self, earlier: Instant) -> u32 {
        self.since(earlier) as u32
    }
}

const fn ticks(d: Duration) -> Ticks {
    d.0 / TICK
}

/// A tick, ns (docs/models/queues/pie.md).
const TICK: u64 = 64;
const TICKS_PER_SECOND: Ticks = 1_000_000_000 / TICK;
/// A burst of so long goes through untouched (RFC 8033 §4.4).
const BURST: Ticks = ticks(Duration::millis(150));
/// Above such a delay the probability grows by 2 % more each time (docs/models/queues/pie.md).
const HIGH_DELAY: Ticks = ticks(Duration::millis(250));
/// A full frame, B.
const FRAME: u64 = 1514;
/// Largest step of a probability of a tenth or more, 2 % (RFC 8033 §5.5).
const STEP_MAX: i64 = (ONE / 50) as i64;
/// An idle queue's probability loses one part in so many at each update, about 2 % (RFC 8033 §4.2).
const DECAY: u64 = 64;
/// Sums of probabilities, 0.85 and 8.5, between which chance decides (RFC 8033 §5.4).
const SUM_MIN: u64 = ONE / 100 * 85;
const SUM_MAX: u64 = ONE / 2 * 17;
/// Bytes queued from which the rate of departures is measured, and over how many (RFC 8033 §5.2).
const MEASURED: u64 = 16_384;
/// Fixed point of that rate.
const RATE_SHIFT: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Packet;

    const MS: u64 = 1_000_000;

    fn ms(n: u64) -> Ticks {
        ticks(Duration::millis(n))
    }
    fn share(p: u64) -> f64 {
        p as f64 / ONE as f64
    }
    /// A share of certainty, millionths.
    fn millionths(n: u64) -> u64 {
        ONE / 1_000_000 * n
    }
    fn spent() -> BurstAllowance {
        BurstAllowance { left: 0 }
    }

    #[test]
    fn the_tuning_is_rfc_8033s_table() {
        // RFC 8033 §4.2: below 0.000001 by 2048, 0.00001 by 512, 0.0001 by 128, 0.001 by 32, 0.01 by 8, 0.1 by 2; else as it is.
        let table = [(1, 2048), (10, 512), (100, 128), (1_000, 32), (10_000, 8), (100_000, 2)];
        for (i, (millionth, divisor)) in table.into_iter().enumerate() {
            let bound = ONE / (1_000_000 / millionth);
            let above = table.get(i + 1).map_or(1, |next| next.1);
            assert_eq!((tuning(bound - 1), tuning(bound)), (divisor, above), "{millionth}");
        }
        assert_eq!((tuning(0), tuning(ONE), tuning(3 * ONE)), (2048, 1, 1));
    }

    #[test]
    fn a_first_step_is_scaled_down_by_two_thousand() {
        // At probability 0 the weights are divided by 2048: 2/16 / 2048 per second.
        // 100 ms of delay, no trend but from 0: (0.085 · 2 + 0.1 · 20) / 16 / 2048 = 6.62e-5
        let mut c = Control { delay: ms(100), ..Control::default() };
        c.update(&Law::default(), 100_000);
        assert!((share(c.probability) / 6.622e-5 - 1.0).abs() < 1e-3, "{}", c.probability);
    }

    #[test]
    fn between_a_hundredth_and_a_tenth_half_the_weights_hold() {
        // 5 ms above the target and 3 ms less than before: (0.125 · 0.005 − 1.25 · 0.003) / 2 = −0.0015625; from a tenth on the double.
        let law = Law::default();
        for (p, change) in [(50_000, -0.001_562_5), (200_000, -0.003_125)] {
            let step = step(&law, millionths(p), ms(20), ms(23)) as f64 / ONE as f64;
            assert!((step / change - 1.0).abs() < 1e-6, "{p} {step}");
        }
    }

    #[test]
    fn from_a_tenth_on_a_step_is_two_percent_at_most() {
        // 200 ms more than before, 185 above the target: 0.273; half of it below a tenth.
        let law = Law::default();
        let of = |p| step(&law, p, ms(200), 0) as f64 / ONE as f64;
        assert!((of(ONE / 10) - 0.02).abs() < 1e-9 && (of(ONE / 10 - 1) - 0.273_125 / 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_high_delay_adds_two_percent_each_time() {
        let mut c = Control { delay: ms(300), previous: ms(300), ..Control::default() };
        c.update(&Law::default(), 100_000);
        assert!(c.probability > ONE / 50 && c.probability < ONE / 45);
        // Certainty is no bound: the step beyond the target adds its 2 %, the high delay another.
        let mut c = Control { probability: ONE, delay: ms(300), previous: ms(300), ..Control::default() };
        c.update(&Law::default(), 100_000);
        assert!((share(c.probability) - 1.04).abs() < 1e-6);
    }

    #[test]
    fn an_empty_queues_probability_shrinks_by_a_64th() {
        // On top of the step itself: −0.125 · 0.015 = −0.001875.
        let mut c = Control { probability: ONE / 2, ..Control::default() };
        c.update(&Law::default(), 0);
        assert!((share(c.probability) - (0.5 - 0.001_875) * 63.0 / 64.0).abs() < 1e-6);
        let mut c = Control { probability: ONE / 2, ..Control::default() };
        c.update(&Law::default(), 1514);
        assert!((share(c.probability) - (0.5 - 0.001_875)).abs() < 1e-6, "a queue with a packet is not empty");
    }

    #[test]
    fn an_empty_queue_comes_to_rest() {
        let mut c = Control { probability: ONE / 3, burst: spent(), previous: 5, ..Control::default() };
        for _ in 0..2_000 {
            c.update(&Law::default(), 0);
        }
        assert!(c.at_rest());
    }

    #[test]
    fn at_a_tenth_strikes_are_nine_to_85_packets_apart() {
        let mut c = Control { probability: ONE / 10, burst: spent(), delay: ms(15), ..Control::default() };
        let mut s = Stream::new(1, "t");
        let mut hits = vec![];
        for i in 0..100_000 {
            if c.strikes(&Law::default(), 50_000, 1514, &mut s) {
                c.struck();
                hits.push(i);
            }
        }
        // Each waits for 0.85 / 0.1 packets first, and then ten on average.
        assert!((5_200..5_800).contains(&hits.len()), "{}", hits.len());
        let gaps: Vec<usize> = hits.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|g| (9..=86).contains(g)), "{:?} {:?}", gaps.iter().min(), gaps.iter().max());
    }

    #[test]
    fn chance_decides_between_0_85_and_8_5() {
        // At a half: the first sum is 0.5, the second 1.0; with no luck the seventeenth reaches 8.5 but for the rounding.
        let mut spread = Spread::default();
        assert!(!spread.strikes(ONE / 2, || unreachable!()));
        assert!(spread.strikes(ONE / 2, || ONE / 2 - 1));
        assert_eq!(spread, Spread::default());
        let unlucky = (1..).find(|_| spread.strikes(ONE / 2, || ONE)).unwrap();
        assert_eq!(unlucky, 17);
        assert!(spread.strikes(ONE / 2, || unreachable!()), "only a drop sets the sum back then, a mark does not");
        assert!(!spread.strikes(0, || unreachable!()) && spread == Spread::default());
    }

    #[test]
    fn what_is_harmless_passes() {
        let (law, mut s) = (Law::default(), Stream::new(1, "t"));
        let certain = Control { probability: 9 * ONE, burst: spent(), ..Control::default() };
        let low = Control { probability: ONE / 5 - 1, spread: Spread { sum: SUM_MAX }, ..certain };
        for (control, delay, backlog, struck) in
            [(certain, 0, 3_028, true), (certain, 0, 3_027, false), (low, ms(15) / 2 - 1, 9_999, false), (low, ms(15) / 2, 9_999, true)]
        {
            assert_eq!(Control { delay, ..control }.strikes(&law, backlog, 1514, &mut s), struck, "{delay} {backlog}");
        }
    }

    #[test]
    fn the_first_150_ms_of_departures_are_free() {
        let mut c = Control { probability: ONE, delay: ms(50), ..Control::default() };
        let (law, mut s) = (Law::default(), Stream::new(1, "t"));
        for ms in 0..=150u64 {
            assert!(!c.strikes(&law, 50_000, 1514, &mut s));
            c.departs(Time(ms * MS), &law, &(Time(0), Packet::<()>::default()), 50_000);
        }
        assert!(c.strikes(&law, 50_000, 1514, &mut s));
    }

    #[test]
    fn eleven_frames_measure_the_rate_and_an_eighth_of_it_counts() {
        // RFC 8033 §5.2: 16384 B are eleven frames of 1514 B (16654). The one that starts a measurement counts: with a frame each 156 ticks the
        // first takes 1560 ticks, those behind it 1716: 16654 · 256 / 1560 = 2732 and 2484.
        let mut rate = DepartureRate::default();
        let averages: Vec<(u64, u32)> =
            (1..=40).filter_map(|i| rate.departs(Instant(156 * i), 1514, 100_000).map(|_| (i, rate.average))).collect();
        // 2732 − 341 + 310 = 2701; 2701 − 337 + 310 = 2674
        assert_eq!(averages, [(11, 2732), (22, 2701), (33, 2674)]);
        // 100000 · 256 / 2674 = 9573 ticks
        assert_eq!(rate.time_for(100_000), 9_573);
        // Nothing is measured while less than 16 KiB is queued.
        assert_eq!(DepartureRate::default().departs(Instant(ms(1)), 1514, 16_383), None);
    }

    #[test]
    fn small_packets_are_struck_by_their_share_of_a_frame() {
        assert_eq!(by_size(1514 * 1000, 757), 757 * 1000);
        assert_eq!((by_size(1514 * 1000, 1514), by_size(1514 * 1000, 9_000)), (1514 * 1000, 1514 * 1000));
    }
}
