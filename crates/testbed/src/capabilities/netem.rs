//! Whether a kernel's netem does what it is told: delay, jitter, losses, duplicates, order, rate, seed, and trees with other queues.
//!
//! Each check asks for one thing, sends some hundred datagrams and compares what arrived with what was asked, within five
//! standard deviations where chance is part of it. It takes about a second.
//!
//! Source: tc-netem(8) for what the words mean; kernels differ in the seed (6.6 and later have it) and in which trees they
//! accept (6.16 refuses a netem that duplicates beside another one), so that both are tried.
//! What it does not see: correlated draws, slots, corruption, a distribution beyond its mean and spread.

use super::range::{Hit, Range, RangeError, HEADERS};
use serde::Serialize;
use std::collections::BTreeSet;
use tcpscape_path::parse_tc;

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What it is about, in a word or two.
    pub what: &'static str,
    /// tc's words.
    pub words: String,
    /// What was asked, in words with units.
    pub asked: String,
    /// What came, in the same form; for a refusal the kernel's answer.
    pub achieved: String,
    /// Whether it is what was asked.
    pub ok: bool,
}

/// What a kernel's netem does.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NetemReport {
    /// Whether the kernel has netem.
    pub present: bool,
    /// Why it is not used, and the fix; None where it behaves.
    pub problem: Option<String>,
    /// Whether the same seed gives the same losses.
    pub seeded: bool,
    /// Every check; the ones about trees say which trees can be used.
    pub checks: Vec<Check>,
}

/// Datagrams of a check of losses, and of one of delays.
const MANY: usize = 2000;
const SOME: usize = 1000;
const FEW: usize = 100;
/// Bytes of a datagram where its size does not matter, and where it does.
const SMALL: usize = 20;
const LARGE: usize = 1000;
/// Standard deviations that chance may take.
const CHANCE: f64 = 5.0;
/// What a kernel may add to a delay, ms: it depends on the machine's load, and is far below every delay that is asked for here.
const LATE_MS: f64 = 2.0;
/// What a clock's granularity may take off, ms.
const EARLY_MS: f64 = 0.1;
/// How far the spread of jitter may be off, and a rate.
const SPREAD: f64 = 0.15;
const RATE: f64 = 0.03;
/// The checks that decide whether netem is used at all; the others decide about single trees.
const TREES: &str = "tree";
/// Of a kernel without it.
const MISSING: &str =
    "this kernel has no netem: modprobe sch_netem, or install the kernel's further modules (linux-modules-extra on Ubuntu, \
kernel-modules-extra on Fedora)";

/// Measures it, in new network namespaces.
pub fn probe() -> Result<NetemReport, RangeError> {
    let mut range = Range::build()?;
    let mut report = NetemReport { present: true, ..NetemReport::default() };
    if let Err(e) = range.install(&spec("netem"), None) {
        let problem = if e.is_missing() { MISSING.to_owned() } else { format!("the kernel refuses netem: {e}") };
        return Ok(NetemReport { problem: Some(problem), ..NetemReport::default() });
    }
    for check in CHECKS {
        report.checks.push(run(&mut range, check)?);
    }
    report.seeded = seeded(&mut range)?;
    let wrong: Vec<&Check> = report.checks.iter().filter(|c| !c.ok && c.what != TREES).collect();
    report.problem =
        wrong.first().map(|c| format!("netem does not do what it is told: {} asked, {} came ({})", c.asked, c.achieved, c.words));
    Ok(report)
}

/// One check: what, tc's words, datagrams, their size, and the judge, who gives what was asked, what came, and whether that is it.
struct Trial {
    what: &'static str,
    words: &'static str,
    count: usize,
    bytes: usize,
    judge: fn(&[Hit], usize) -> (String, String, bool),
}

const CHECKS: &[Trial] = &[
    Trial { what: "delay", words: "netem delay 20ms", count: FEW, bytes: SMALL, judge: |hits, n| constant(hits, n, 20.0) },
    Trial { what: "jitter", words: "netem delay 20ms 4ms distribution normal", count: SOME, bytes: SMALL, judge: normal },
    Trial { what: "loss", words: "netem loss 10%", count: MANY, bytes: SMALL, judge: |hits, n| losses(hits, n, 0.1, 1.0) },
    // The share of lost packets is p / (p + r), and its variance that of independent losses times (2 - p - r) / (p + r).
    Trial {
        what: "loss in bursts",
        words: "netem loss gemodel 5% 20%",
        count: MANY,
        bytes: SMALL,
        judge: |hits, n| losses(hits, n, 0.2, 7.0),
    },
    Trial { what: "duplicates", words: "netem delay 5ms duplicate 10%", count: SOME, bytes: SMALL, judge: duplicates },
    Trial { what: "reordering", words: "netem delay 10ms reorder 25%", count: SOME, bytes: SMALL, judge: overtaking },
    Trial { what: "rate", words: "netem rate 8mbit", count: FEW, bytes: LARGE, judge: |hits, n| rate(hits, n, 0.0) },
    Trial {
        what: TREES,
        words: "tbf rate 8mbit burst 2000 limit 300000; netem delay 10ms",
        count: FEW,
        bytes: LARGE,
        judge: |h, n| rate(h, n, 10.0),
    },
    Trial {
        what: TREES,
        words: "htb rate 8mbit burst 2000 cburst 2000; netem delay 10ms",
        count: FEW,
        bytes: LARGE,
        judge: |h, n| rate(h, n, 10.0),
    },
    Trial {
        what: TREES,
        words: "netem delay 10ms; tbf rate 8mbit burst 2000 limit 300000",
        count: FEW,
        bytes: LARGE,
        judge: |h, n| rate(h, n, 10.0),
    },
    Trial { what: TREES, words: "netem delay 10ms; fq_codel", count: FEW, bytes: SMALL, judge: |h, n| constant(h, n, 10.0) },
];

fn run(range: &mut Range, trial: &Trial) -> Result<Check, RangeError> {
    let check = |asked, achieved, ok| Check { what: trial.what, words: trial.words.into(), asked, achieved, ok };
    match range.install(&spec(trial.words), None) {
        Ok(()) => {}
        Err(RangeError::Refused(e)) => return Ok(check("accepted".into(), format!("refused: {e}"), false)),
        Err(e) => return Err(e),
    }
    let hits = range.fire(trial.count, trial.bytes)?;
    let (asked, achieved, ok) = (trial.judge)(&hits, trial.count);
    Ok(check(asked, achieved, ok))
}

/// Whether two runs with one seed lose the same packets, and a run with another seed others.
fn seeded(range: &mut Range) -> Result<bool, RangeError> {
    let mut lost = |seed| -> Result<BTreeSet<usize>, RangeError> {
        range.install(&spec("netem loss 50%"), Some(seed))?;
        Ok(range.fire(FEW, SMALL)?.iter().map(|h| h.number).collect())
    };
    Ok(lost(7)? == lost(7)? && lost(7)? != lost(8)?)
}

fn spec(words: &str) -> tcpscape_path::QdiscSpec {
    parse_tc(words).expect("words of this file")
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Half of the packets waited for `asked` ms and little more, none for less, and all came.
fn constant(hits: &[Hit], count: usize, asked: f64) -> (String, String, bool) {
    let mut delays: Vec<u64> = hits.iter().map(|h| h.delay).collect();
    delays.sort_unstable();
    let (least, median) = (delays.first().map_or(0.0, |&d| ms(d)), delays.get(delays.len() / 2).map_or(0.0, |&d| ms(d)));
    let ok = hits.len() == count && least >= asked - EARLY_MS && median <= asked + LATE_MS;
    (format!("{asked} ms for {count} packets"), format!("{median:.2} ms (least {least:.2}) for {}", hits.len()), ok)
}

/// Mean and spread of a normal delay of 20 ± 4 ms.
fn normal(hits: &[Hit], count: usize) -> (String, String, bool) {
    let n = hits.len().max(1) as f64;
    let mean = hits.iter().map(|h| ms(h.delay)).sum::<f64>() / n;
    let spread = (hits.iter().map(|h| (ms(h.delay) - mean).powi(2)).sum::<f64>() / n).sqrt();
    let chance = CHANCE * 4.0 / n.sqrt();
    let ok =
        hits.len() == count && mean > 20.0 - chance - EARLY_MS && mean < 20.0 + chance + LATE_MS && (spread / 4.0 - 1.0).abs() <= SPREAD;
    (format!("20 ± 4 ms for {count} packets"), format!("{mean:.2} ± {spread:.2} ms for {}", hits.len()), ok)
}

/// The number of `count` independent events of probability `p`, whose variance is `inflated` by dependence, is possible.
fn is_possible(number: usize, count: usize, p: f64, inflated: f64) -> bool {
    let expected = count as f64 * p;
    (number as f64 - expected).abs() <= CHANCE * (expected * (1.0 - p) * inflated).sqrt()
}

fn losses(hits: &[Hit], count: usize, p: f64, inflated: f64) -> (String, String, bool) {
    let lost = count.saturating_sub(hits.len());
    let share = 100.0 * lost as f64 / count as f64;
    (format!("{} % of {count} lost", 100.0 * p), format!("{share:.1} %"), is_possible(lost, count, p, inflated))
}

fn duplicates(hits: &[Hit], count: usize) -> (String, String, bool) {
    let single: BTreeSet<usize> = hits.iter().map(|h| h.number).collect();
    let extra = hits.len() - single.len();
    let ok = single.len() == count && is_possible(extra, count, 0.1, 1.0);
    (format!("10 % of {count} twice"), format!("{:.1} %, {} of {count} arrived", 100.0 * extra as f64 / count as f64, single.len()), ok)
}

/// A quarter does not wait; the others do. The first packet of a burst may do either.
fn overtaking(hits: &[Hit], count: usize) -> (String, String, bool) {
    let early = hits.iter().filter(|h| ms(h.delay) < 5.0).count();
    let ok = hits.len() == count && is_possible(early, count, 0.25, 1.0);
    (format!("25 % of {count} at once"), format!("{:.1} % of {}", 100.0 * early as f64 / hits.len().max(1) as f64, hits.len()), ok)
}

/// Packets of [`LARGE`] bytes take 1 µs for each byte on the link, and the first of them waits for `delay` ms.
fn rate(hits: &[Hit], count: usize, delay: f64) -> (String, String, bool) {
    let (first, last) = (hits.iter().map(|h| h.at).min().unwrap_or(0), hits.iter().map(|h| h.at).max().unwrap_or(0));
    // The first packets leave with what the bucket holds.
    let (skipped, least) = (if delay > 0.0 { 2 } else { 1 }, hits.iter().map(|h| ms(h.delay)).fold(f64::INFINITY, f64::min));
    let bytes = count.saturating_sub(skipped) * (LARGE + HEADERS);
    let achieved = bytes as f64 * 8e3 / (last.saturating_sub(first)).max(1) as f64;
    let is_rate = (achieved / 8.0 - 1.0).abs() <= RATE;
    let ok = hits.len() == count && is_rate && least >= delay - EARLY_MS && least <= delay + LATE_MS + 1.1;
    let asked = if delay > 0.0 { format!("8 Mbit/s and {delay} ms") } else { "8 Mbit/s".into() };
    (asked, format!("{achieved:.2} Mbit/s and {least:.2} ms, {} of {count} arrived", hits.len()), ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(delays: impl IntoIterator<Item = f64>) -> Vec<Hit> {
        let hit = |(number, ms): (usize, f64)| Hit { number, delay: (ms * 1e6) as u64, at: (ms * 1e6) as u64 };
        delays.into_iter().enumerate().map(hit).collect()
    }

    #[test]
    fn every_check_has_words_that_tc_reads() {
        for check in CHECKS {
            assert!(parse_tc(check.words).is_ok(), "{}", check.words);
        }
    }

    #[test]
    fn a_delay_is_judged_by_its_median_and_its_least() {
        assert!(constant(&hits(vec![20.1; 100]), 100, 20.0).2);
        assert!(!constant(&hits(vec![20.1; 99]), 100, 20.0).2, "one lost");
        assert!(!constant(&hits(vec![24.0; 100]), 100, 20.0).2, "a tick of 4 ms late");
        assert!(!constant(&hits((0..100).map(|i| if i == 50 { 3.0 } else { 20.0 })), 100, 20.0).2, "one early");
    }

    #[test]
    fn jitter_without_its_spread_is_found() {
        let wide = |spread: f64| hits((0..1000).map(|i| 20.0 + if i % 2 == 0 { spread } else { -spread }));
        assert!(normal(&wide(4.0), 1000).2);
        assert!(!normal(&wide(2.0), 1000).2 && !normal(&wide(0.0), 1000).2);
    }

    #[test]
    fn losses_are_judged_by_what_chance_allows() {
        assert!(losses(&hits(vec![0.0; 1800]), 2000, 0.1, 1.0).2);
        assert!(!losses(&hits(vec![0.0; 2000]), 2000, 0.1, 1.0).2, "none lost");
        // five standard deviations of 2000 · 0.1 · 0.9 are 67
        assert!(losses(&hits(vec![0.0; 1734]), 2000, 0.1, 1.0).2 && !losses(&hits(vec![0.0; 1732]), 2000, 0.1, 1.0).2);
    }

    #[test]
    fn a_rate_is_judged_by_first_and_last() {
        let paced = |factor: f64| hits((0..100).map(|i| f64::from(i) * 1.042 * factor));
        assert!(rate(&paced(1.0), 100, 0.0).2);
        assert!(!rate(&paced(0.5), 100, 0.0).2 && !rate(&paced(1.1), 100, 0.0).2);
    }
}
