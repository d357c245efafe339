//! PIE's control law, which [`super::Pie`] applies to one queue and fq_pie to each of its flows.
//!
//! What it is: a drop probability that a timer moves with the queueing delay and its trend; arrivals are dropped (or marked) with it,
//! spread out by an accumulator, once a burst of 150 ms has been let through.
//! Source: RFC 8033; in Linux's arithmetic: ticks of 64 ns, probabilities of 56 bits, a timer in jiffies.
//! Linux: pie_drop_early(), pie_process_dequeue(), pie_calculate_probability().
//! How it differs: nothing known. Linux, unlike RFC 8033, updates every 30 ms at 100 Hz (2 jiffies, and the one that is running).
//! What it does not model: nothing.

use crate::discipline::Aged;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Packet, Stream, Time};

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
    /// Linux: pie_params_init()
    fn default() -> Law {
        let (target, tupdate) = (Duration::millis(15), Duration::millis(15));
        Law { target, tupdate, alpha: 2, beta: 20, ecn: false, bytemode: false, dq_rate_estimator: false }
    }
}

/// Certainty. Linux: MAX_PROB
pub const ONE: u64 = u64::MAX >> 8;
/// A full frame, B (`psched_mtu` at MTU 1500).
const FRAME: u64 = 1514;
/// A tick of the scheduler's clock is 2^6 ns.
const TICK_SHIFT: u32 = 6;
/// Ticks in a second.
const TICKS: u64 = 1_000_000_000 >> TICK_SHIFT;
/// A burst of so long goes through untouched, ticks: 150 ms.
const BURST: u64 = 150_000_000 >> TICK_SHIFT;
/// Above such a delay the probability grows by 2 % more each time, ticks: 250 ms.
const HIGH_DELAY: u64 = 250_000_000 >> TICK_SHIFT;
/// Bytes queued from which a rate of departures is measured, and over how many.
const MEASURED: u64 = 16_384;
/// Fixed point of that rate.
const RATE_SHIFT: u32 = 8;

/// Time in ticks of the scheduler's clock.
pub fn ticks(ns: u64) -> u64 {
    ns >> TICK_SHIFT
}

/// Where the law has got to.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    delay: u64,
    old_delay: u64,
    /// What is left of the burst.
    burst: u64,
    /// When the last packet left, or the measurement of the rate began.
    since: Option<u64>,
    /// Probability; certainty is [`ONE`].
    pub probability: u64,
    accumulated: u64,
    counted: Option<u64>,
    rate: u32,
}

impl Default for Control {
    fn default() -> Control {
        Control { delay: 0, old_delay: 0, burst: BURST, since: None, probability: 0, accumulated: 0, counted: None, rate: 0 }
    }
}

impl Control {
    /// Whether a packet that comes is to be struck, with `backlog` B in front of it. Linux: pie_drop_early()
    pub fn strikes(&mut self, law: &Law, backlog: u64, size: u32, stream: &mut Stream) -> bool {
        let calm = self.delay < ticks(law.target.0) / 2 && self.probability < ONE / 5;
        if self.burst > 0 || calm || backlog < 2 * FRAME {
            return false;
        }
        let size = u64::from(size);
        let p = if law.bytemode && size <= FRAME { size * (self.probability / FRAME) } else { self.probability };
        self.accumulated = if p == 0 { 0 } else { self.accumulated.wrapping_add(p) };
        // Not before 0.85 packets should have been struck, certainly after 8.5 (RFC 8033 §5.1).
        if self.accumulated < ONE / 100 * 85 {
            return false;
        }
        if self.accumulated >= ONE / 2 * 17 {
            return true;
        }
        let hit = stream.next_u64() >> 8 < p;
        if hit {
            self.accumulated = 0;
        }
        hit
    }

    /// A packet has been dropped: the next waits its turn.
    pub fn struck(&mut self) {
        self.accumulated = 0;
    }

    /// A packet leaves, with `backlog` B behind it. Linux: pie_process_dequeue()
    pub fn departs<B>(&mut self, now: Time, law: &Law, p: &Aged<B>, backlog: u64) {
        let t = ticks(now.0);
        if law.dq_rate_estimator {
            return self.measure(t, &p.1, backlog);
        }
        self.delay = if backlog > 0 { t - ticks(p.0 .0) } else { 0 };
        let passed = self.since.map_or(0, |s| u64::from((t - s) as u32));
        self.since = Some(t);
        self.burst = self.burst.saturating_sub(passed);
    }

    /// The rate of departures, over 16 KiB at a time (RFC 8033 §5.2 has it as an option).
    fn measure<B>(&mut self, t: u64, p: &Packet<B>, backlog: u64) {
        if backlog >= MEASURED && self.counted.is_none() {
            (self.since, self.counted) = (Some(t), Some(0));
        }
        let Some(n) = self.counted.as_mut() else { return };
        *n += u64::from(p.size);
        if *n < MEASURED {
            return;
        }
        let passed = (t - self.since.unwrap_or(t)) as u32;
        if passed == 0 {
            return;
        }
        let rate = ((*n << RATE_SHIFT) as u32) / passed;
        self.rate = if self.rate == 0 { rate } else { self.rate - (self.rate >> 3) + (rate >> 3) };
        (self.since, self.counted) = if backlog < MEASURED { (self.since, None) } else { (Some(t), Some(0)) };
        self.burst = self.burst.saturating_sub(u64::from(passed));
    }

    /// The timer: moves the probability. Linux: pie_calculate_probability()
    pub fn update(&mut self, law: &Law, backlog: u64) {
        let (delay, old) = self.delays(law, backlog);
        let known = delay > 0 || backlog == 0;
        let (alpha, beta) = self.weights(law);
        let target = ticks(law.target.0) as i64;
        let mut step = alpha.wrapping_mul(delay as i64 - target).wrapping_add(beta.wrapping_mul(delay as i64 - old as i64));
        if step > (ONE / 50) as i64 && self.probability >= ONE / 10 {
            step = (ONE / 100 * 2) as i64;
        }
        if delay > HIGH_DELAY {
            step = step.wrapping_add((ONE / 50) as i64);
        }
        let mut full = false;
        self.probability = match (self.probability.checked_add_signed(step), step > 0) {
            (Some(p), _) => p,
            (None, true) => {
                full = true;
                ONE
            }
            (None, false) => 0,
        };
        if delay == 0 && old == 0 && known && !full {
            self.probability -= self.probability / 64;
        }
        self.delay = delay;
        let (calm, measured) = (ticks(law.target.0) / 2, !law.dq_rate_estimator || self.rate > 0);
        if delay < calm && self.old_delay < calm && self.probability == 0 && measured {
            (self.burst, self.since, self.accumulated, self.counted, self.rate) = (BURST, None, 0, None, 0);
        }
        if !law.dq_rate_estimator {
            self.old_delay = delay;
        }
    }

    /// The delay now and at the last update.
    fn delays(&mut self, law: &Law, backlog: u64) -> (u64, u64) {
        if !law.dq_rate_estimator {
            return (self.delay, self.old_delay);
        }
        self.old_delay = self.delay;
        let now = ((backlog as u32) << RATE_SHIFT).checked_div(self.rate).unwrap_or(0);
        (u64::from(now), self.old_delay)
    }

    /// Probability per tick of delay; smaller where the probability is (RFC 8033 §4.2).
    fn weights(&self, law: &Law) -> (i64, i64) {
        let scale = |n: u32| (u64::from(n) * (ONE / TICKS)) >> 4;
        let (mut alpha, mut beta) = (scale(law.alpha), scale(law.beta));
        if self.probability < ONE / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while self.probability < ONE / power && power <= 1_000_000 {
                (alpha, beta) = (alpha >> 2, beta >> 2);
                power *= 10;
            }
        }
        (alpha as i64, beta as i64)
    }

    /// Whether an update of an empty queue would change nothing.
    pub fn at_rest(&self) -> bool {
        (self.delay, self.old_delay, self.probability, self.burst, self.since) == (0, 0, 0, BURST, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_step_is_scaled_down_by_two_thousand() {
        // At probability 0 the weights are halved once and quartered five times: 2/16 / 2048 per second.
        // 100 ms of delay, no trend but from 0: (0.085 · 2 + 0.1 · 20) / 16 / 2048 = 6.62e-5
        let mut c = Control { delay: ticks(100_000_000), ..Control::default() };
        c.update(&Law::default(), 100_000);
        let p = c.probability as f64 / ONE as f64;
        assert!((p / 6.622e-5 - 1.0).abs() < 1e-3, "{p}");
    }

    #[test]
    fn a_high_delay_adds_two_percent_each_time() {
        let mut c = Control { delay: ticks(300_000_000), old_delay: ticks(300_000_000), ..Control::default() };
        c.update(&Law::default(), 100_000);
        assert!(c.probability > ONE / 50 && c.probability < ONE / 45);
    }

    #[test]
    fn an_empty_queue_comes_to_rest() {
        let mut c = Control { probability: ONE / 3, burst: 0, old_delay: 5, ..Control::default() };
        for _ in 0..2_000 {
            c.update(&Law::default(), 0);
        }
        assert!(c.at_rest());
    }

    #[test]
    fn at_a_tenth_strikes_are_nine_to_85_packets_apart() {
        let mut c = Control { probability: ONE / 10, burst: 0, delay: ticks(15_000_000), ..Control::default() };
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
    fn the_first_150_ms_of_departures_are_free() {
        let mut c = Control { probability: ONE, delay: ticks(50_000_000), ..Control::default() };
        let (law, mut s) = (Law::default(), Stream::new(1, "t"));
        for ms in 0..=150u64 {
            assert!(!c.strikes(&law, 50_000, 1514, &mut s));
            c.departs(Time(ms * 1_000_000), &law, &(Time(0), Packet::<()>::default()), 50_000);
        }
        assert!(c.strikes(&law, 50_000, 1514, &mut s));
    }
}
