//! Connections that arrive at random: when each begins, how many bytes it has, and what became of them all. Every engine draws and counts here, so
//! that the same scenario and seed have the same connections on each.
//!
//! What it is: arrivals of a Poisson process, sizes of a bounded Pareto distribution (Crovella and Bestavros, IEEE/ACM Transactions on Networking
//! 5(6), 1997: sizes of web transfers have heavy tails with shapes of 1.1 to 1.2). Source: inversion of both distribution functions.
//! Does not model: several transfers over one connection, pages whose objects depend on each other, users who give up.

use crate::plan::TransfersPlan;
use crate::results::{RttSummary, SizeClass, TransfersSummary};
use tcpscape_base::{Duration, Histogram, Stream};

/// Largest sizes of the classes of results, bytes; the last class has everything above.
pub const CLASSES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// A connection that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When its application calls connect(), since the start of the trial.
    pub start_ns: u64,
    /// Bytes that it sends.
    pub bytes: u64,
}

/// The connections of entry `index` of a plan's transfers in a trial with this seed, in order of their starts. The plan passed its check.
pub fn draw(plan: &TransfersPlan, index: usize, seed: u64, duration_ns: u64) -> Vec<Transfer> {
    let (start, stop) = plan.flow.span(duration_ns);
    let mut arrivals = Stream::new(seed, &format!("transfers/{index}/arrivals"));
    let mut sizes = Stream::new(seed, &format!("transfers/{index}/sizes"));
    let mean_gap_ns = 1e9 / plan.per_second;
    let mut at_ns = start.0 as f64;
    let mut drawn = Vec::new();
    loop {
        at_ns -= (1.0 - arrivals.unit_f64()).ln() * mean_gap_ns;
        if at_ns >= stop.0 as f64 {
            return drawn;
        }
        drawn.push(Transfer { start_ns: at_ns as u64, bytes: size(plan, sizes.unit_f64()) });
    }
}

/// The size below which a share `quantile` of all transfers lies: the inverse of the bounded Pareto distribution, in whole bytes.
fn size(plan: &TransfersPlan, quantile: f64) -> u64 {
    let (least, most) = (plan.least as f64, plan.most as f64);
    let cut = 1.0 - (least / most).powf(plan.shape);
    let bytes = least * (1.0 - quantile * cut).powf(-1.0 / plan.shape);
    (bytes.round() as u64).clamp(plan.least, plan.most)
}

/// What became of the connections of one entry.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Largest size of the last class, bytes.
    most: u64,
    classes: [Class; CLASSES.len() + 1],
    bytes_received: u64,
    retransmits: u64,
}

#[derive(Clone, Debug, Default)]
struct Class {
    started: u64,
    completion: Histogram,
}

impl Tally {
    /// Nothing so far.
    pub fn new(plan: &TransfersPlan) -> Tally {
        Tally { most: plan.most.max(CLASSES[CLASSES.len() - 1]), classes: Default::default(), bytes_received: 0, retransmits: 0 }
    }

    fn class(&mut self, bytes: u64) -> &mut Class {
        &mut self.classes[CLASSES.iter().filter(|&&largest| bytes > largest).count()]
    }

    /// A connection for so many bytes begins.
    pub fn started(&mut self, bytes: u64) {
        self.class(bytes).started += 1;
    }

    /// The last of its bytes was acknowledged, so long after its connect().
    pub fn completed(&mut self, bytes: u64, took: Duration) {
        self.class(bytes).completion.add(rounded_us(took));
    }

    /// What its receiver got, complete or not, and how many segments its sender sent again.
    pub fn carried(&mut self, bytes_received: u64, retransmits: u64) {
        self.bytes_received += bytes_received;
        self.retransmits += retransmits;
    }

    /// The results.
    pub fn summary(&self) -> TransfersSummary {
        let largest = CLASSES.into_iter().chain([self.most]);
        let classes = largest.zip(&self.classes).map(|(most, class)| SizeClass {
            most,
            started: class.started,
            completed: class.completion.count(),
            completion_ms: RttSummary::of(&class.completion),
        });
        TransfersSummary { classes: classes.collect(), bytes_received: self.bytes_received, retransmits: self.retransmits }
    }
}

/// A time in µs, rounded to the nearest.
pub(crate) fn rounded_us(time: Duration) -> u32 {
    u32::try_from((time.0 + 500) / 1_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(per_second: f64, least: u64, most: u64, shape: f64) -> TransfersPlan {
        let text =
            format!(r#"{{"flow": {{"cca": "cubic"}}, "per_second": {per_second}, "least": {least}, "most": {most}, "shape": {shape}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// 100 a second for 1000 s: 100,000, with a standard deviation of √100,000 = 316; five of them are 1.6 %. The number in a second has a variance
    /// equal to its mean (index of dispersion 1); over 1000 s the estimate's standard deviation is √(2 / 1000) = 0.045, five are 0.22.
    #[test]
    fn arrivals_are_a_poisson_process() {
        let drawn = draw(&plan(100.0, 1, 1, 1.0), 0, 7, 1_000_000_000_000);
        assert!(drawn.len().abs_diff(100_000) < 1_581, "{}", drawn.len());
        assert!(drawn.windows(2).all(|w| w[0].start_ns <= w[1].start_ns) && drawn.iter().all(|t| t.bytes == 1));
        let mut in_second = vec![0.0; 1_000];
        drawn.iter().for_each(|t| in_second[(t.start_ns / 1_000_000_000) as usize] += 1.0);
        let mean = drawn.len() as f64 / 1e3;
        let variance = in_second.iter().map(|n: &f64| (n - mean).powi(2)).sum::<f64>() / 999.0;
        assert!((variance / mean - 1.0).abs() < 0.22, "{}", variance / mean);
    }

    /// Quantiles of a bounded Pareto distribution of shape 1 from 1,000 to 100,000: the inverse is 1000 / (1 − 0.99 q), so the median is
    /// 1000 / 0.505 = 1980, and 100,000 at q = 1.
    #[test]
    fn sizes_are_the_inverse_of_the_distribution() {
        let p = plan(1.0, 1_000, 100_000, 1.0);
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(|q| size(&p, q)), [1_000, 1_980, 9_174, 100_000]);
        assert_eq!(size(&plan(1.0, 5_000, 5_000, 1.2), 0.7), 5_000);
    }

    /// Shape 2 from 1,000 to 1,000,000: mean 2 · 1000 · (1 − 10⁻³) / (1 − 10⁻⁶) = 1998 bytes; second moment 2 · 1000² · ln 1000 = 13.8 · 10⁶, so
    /// the standard deviation is 3134 bytes and that of a mean of 100,000 is 9.9: five are 50.
    #[test]
    fn the_mean_is_that_of_the_distribution() {
        let drawn = draw(&plan(100.0, 1_000, 1_000_000, 2.0), 0, 1, 1_000_000_000_000);
        let mean = drawn.iter().map(|t| t.bytes as f64).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 1_998.0).abs() < 50.0, "{mean}");
    }

    #[test]
    fn entries_and_seeds_draw_apart_and_only_while_connections_arrive() {
        let p = plan(50.0, 1_000, 1_000_000, 1.2);
        let draw_at = |index, seed| draw(&p, index, seed, 10_000_000_000);
        assert_eq!(draw_at(0, 1), draw_at(0, 1));
        assert!(draw_at(0, 1) != draw_at(1, 1) && draw_at(0, 1) != draw_at(0, 2));
        let mut late = p.clone();
        (late.flow.start_ns, late.flow.stop_ns) = (4_000_000_000, 5_000_000_000);
        let drawn = draw(&late, 0, 1, 10_000_000_000);
        assert!(!drawn.is_empty() && drawn.iter().all(|t| (4_000_000_000..5_000_000_000).contains(&t.start_ns)));
    }

    #[test]
    fn a_connection_counts_in_the_class_of_its_size() {
        let mut tally = Tally::new(&plan(1.0, 1, 5_000_000, 1.2));
        for bytes in [1, 10_000, 10_001, 1_000_000, 1_000_001, 5_000_000] {
            tally.started(bytes);
        }
        tally.completed(10_000, Duration::millis(30));
        tally.carried(10_000, 2);
        let s = tally.summary();
        let rows: Vec<_> = s.classes.iter().map(|c| (c.most, c.started, c.completed)).collect();
        assert_eq!(rows, [(10_000, 2, 1), (100_000, 1, 0), (1_000_000, 1, 0), (5_000_000, 2, 0)]);
        assert_eq!((s.classes[0].completion_ms.mean, s.bytes_received, s.retransmits), (30.0, 10_000, 2));
        assert!(s.classes[1].completion_ms.p50.is_nan());
    }
}
