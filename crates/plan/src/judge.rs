//! What a queue was asked to do and what it did, for every engine that measures its path: the numbers, and a sentence where they do not fit.
//!
//! Shares are judged by counts: what chance brings about once in millions of trials is a fault (Chernoff's bound of the binomial tail; Hoeffding,
//! "Probability inequalities for sums of bounded random variables", JASA 58, 1963, theorem 1).
//! What it does not see: correlated losses, whose spread is no binomial one, and a queue while it changes.

use tcpscape_path::{DelayStats, Description};

/// Chance of a count that is reported: that of five standard deviations of a normal distribution, to one side.
const CHANCE: f64 = 2.9e-7;
/// Relative excess of a rate that is put down to rounding.
const RATE_SLACK: f64 = 0.002;
/// Relative error of a median of delays, and its grain, ns: they come from a histogram of whole µs.
const DELAY_ERROR: f64 = 0.01;
const DELAY_GRAIN: f64 = 2_000.0;
/// Packets from which a spread is judged, and by which factor it may be off: a distribution that is cut at 0 has a smaller one.
const SPREAD_PACKETS: u64 = 200;
const SPREAD: std::ops::RangeInclusive<f64> = 0.4..=2.5;

/// The share of packets that chance is to lose; none where no single number tells.
pub fn asked_loss(queue: &Description) -> Option<f64> {
    queue.loss_is_independent.then_some(queue.loss)
}

/// The rate, Mbit/s, that a queue holds all packets to; none of netem's, which is a delay.
pub fn asked_rate(queue: &Description) -> Option<f64> {
    queue.rate_bps.filter(|_| queue.stored_bytes.is_some()).map(|rate| (rate / 8) as f64 * 8e-6)
}

/// The delay that a queue is asked for, without jitter, ns; none where slots, a rate or overtaking change it.
pub fn asked_delay(queue: &Description) -> Option<u64> {
    let is_one = queue.is_delay() && queue.rate_bps.is_none() && !queue.slotted && queue.reorder == 0.0;
    is_one.then_some(queue.delay_ns)
}

/// Whether so many of the packets were lost where this share was asked.
pub fn loss(asked: f64, lost: u64, packets: u64) -> Option<String> {
    let share = lost as f64 / packets as f64;
    is_beyond_chance(lost, packets, asked)
        .then(|| format!("lost {:.3} % of {packets} packets where {:.3} % was asked", 100.0 * share, 100.0 * asked))
}

/// Whether the mean rate is above the one asked for; `elsewhere`: bytes that may still come to the queue after the end.
pub fn rate(queue: &Description, mbps: f64, elsewhere: f64, duration_ns: u64) -> Option<String> {
    let asked = asked_rate(queue)?;
    let beyond = (queue.stored_bytes.unwrap_or(0) as f64 + elsewhere) * 8e3 / duration_ns as f64;
    (mbps > asked * (1.0 + RATE_SLACK) + beyond).then(|| format!("passed {mbps:.3} Mbit/s where {asked:.3} was asked"))
}

/// Whether packets were dropped by the limit of a queue (the outermost of `levels`) that only delays; `peak`: most packets that it held, where that is known.
pub fn full(levels: &[Description], dropped: u64, packets: u64, peak: Option<u64>) -> Option<String> {
    let asked = &levels[0];
    let is_buffer = !asked.is_delay() || asked.rate_bps.is_some() || levels.len() > 1;
    let limit = asked.limit_packets.filter(|_| !is_buffer && dropped > 0)?;
    let why = match peak {
        None => "its limit was full; nobody asked for loss there".to_owned(),
        Some(peak) if peak < limit => format!("it was full at {peak} packets where a limit of {limit} was asked"),
        Some(_) => format!("its limit of {limit} packets was full; nobody asked for loss there: raise the limit"),
    };
    Some(format!("dropped {dropped} of {packets} packets because {why}"))
}

/// Whether delays are not those asked for: their median where one is asked, otherwise their spread.
pub fn delay(queue: &Description, delays: &DelayStats) -> Option<String> {
    let (asked, spread) = (asked_delay(queue)?, queue.spread_ns.filter(|_| delays.count > 0)?);
    if spread == 0.0 {
        let is_off = delays.p50.abs_diff(asked) as f64 > DELAY_ERROR * asked as f64 + DELAY_GRAIN;
        let ms = |ns: u64| ns as f64 / 1e6;
        return is_off.then(|| format!("delayed packets by {:.3} ms (median) where {:.3} was asked", ms(delays.p50), ms(asked)));
    }
    (delays.count >= SPREAD_PACKETS && !SPREAD.contains(&(delays.sd / spread)))
        .then(|| format!("spread delays by {:.3} ms (standard deviation) where {:.3} was asked", delays.sd / 1e6, spread / 1e6))
}

/// Whether chance explains `k` of `n` with probability `p` less than once in [`CHANCE`].
fn is_beyond_chance(k: u64, n: u64, p: f64) -> bool {
    if n == 0 {
        return false;
    }
    let share = k as f64 / n as f64;
    let term = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
    let divergence = term(share, p) + term(1.0 - share, 1.0 - p);
    n as f64 * divergence > -CHANCE.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::parse_tc;

    fn asked(words: &str) -> (Option<f64>, Option<f64>) {
        let queue = &parse_tc(words).unwrap().describe()[0];
        (asked_loss(queue), asked_rate(queue))
    }

    #[test]
    fn few_packets_prove_little() {
        assert!(!is_beyond_chance(0, 1490, 0.01)); // e⁻¹⁵
        assert!(is_beyond_chance(0, 1600, 0.01)); // e⁻¹⁶
        assert!(!is_beyond_chance(1, 1, 0.01) && is_beyond_chance(1, 1, 1e-9) && !is_beyond_chance(0, 0, 0.5));
        assert!(is_beyond_chance(1, 10, 0.0) && is_beyond_chance(9, 10, 1.0));
    }

    #[test]
    fn what_one_number_does_not_tell_is_not_judged() {
        assert_eq!(asked("netem delay 5ms loss 1%"), (Some(0.01), None));
        assert_eq!(asked("netem loss 1% 25%"), (None, None));
        assert_eq!(asked("netem loss gemodel 1% 10%"), (None, None));
        assert_eq!(asked("netem rate 10mbit"), (Some(0.0), None));
        assert_eq!(asked("tbf rate 10mbit burst 6056 limit 60000"), (None, Some(10.0)));
        assert_eq!(asked("cake bandwidth 12mbit"), (None, Some(12.0)));
        assert_eq!(asked("cake"), (None, None));
        // A class without a parent has nobody to borrow from.
        assert_eq!(asked("htb rate 5mbit ceil 9mbit"), (None, Some(5.0)));
        assert_eq!(asked("htb rate 9mbit ceil 5mbit"), (None, Some(5.0)));
    }

    /// 12.5 MB in 10 s are 10 Mbit/s; 66,056 bytes more may have been stored, and 25,000 are rounding.
    #[test]
    fn what_is_stored_may_pass_beyond_the_rate() {
        let queue = &parse_tc("tbf rate 10mbit burst 6056 limit 60000").unwrap().describe()[0];
        let sentence = |bytes: u64, elsewhere| rate(queue, bytes as f64 * 8e3 / 1e10, elsewhere, 10_000_000_000);
        assert_eq!(sentence(12_591_000, 0.0), None);
        assert_eq!(sentence(12_592_000, 0.0), Some("passed 10.074 Mbit/s where 10.000 was asked".to_owned()));
        assert_eq!(sentence(12_592_000, 1_000.0), None);
    }
}
