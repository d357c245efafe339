//! The emulator's account of a path against what the scenario asked for.
//!
//! Shares are judged by counts: what chance brings about once in millions of trials is a fault (Chernoff's bound of the binomial tail; Hoeffding,
//! "Probability inequalities for sums of bounded random variables", JASA 58, 1963, theorem 1). Delays are the emulator's own decisions, which
//! are exact, so a stage that was built without its delay or jitter is seen at once; how late they were carried out, the emulator says itself.
//! How it differs from [`tcpscape_testbed::proof`]: the emulator counts drops by cause, and the delay of every packet.
//! What it does not see: a stage while it changes (those with a schedule are left out), and correlated losses, whose spread is no binomial one.

use serde::Serialize;
use tcpscape_path::queue::NetemSpec;
use tcpscape_path::{Direction, Loss, PathSpec, QdiscSpec, StageStats};
use tcpscape_testbed::proof;

/// Chance of a count that is reported: that of five standard deviations of a normal distribution, to one side.
const CHANCE: f64 = 2.9e-7;
/// Relative error of a median of the emulator's delays, and its grain, ns: they come from a histogram of whole µs.
const DELAY_ERROR: f64 = 0.01;
const DELAY_GRAIN: f64 = 2_000.0;
/// Packets from which a spread is judged, and by which factor it may be off: a distribution that is cut at 0 has a smaller one.
const SPREAD_PACKETS: u64 = 200;
const SPREAD: (f64, f64) = (0.4, 2.5);
/// Relative excess of a rate that is put down to rounding.
const RATE_SLACK: f64 = 0.002;

/// One stage of the path: asked, and done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StageCheck {
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Number of the stage in its direction.
    pub stage: usize,
    /// Name of its queue.
    pub name: String,
    /// Packets that came.
    pub packets: u64,
    /// Share of them that chance was to lose; none where no single number tells.
    pub loss_asked: Option<f64>,
    /// Share that was lost by chance.
    pub loss: f64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Delay asked for, without jitter, ms.
    pub delay_asked_ms: Option<f64>,
    /// Median, 99th percentile and most that packets were to wait there, ms.
    pub delay_ms: [f64; 3],
    /// Share of packets that left after one that had come later.
    pub reordered: f64,
    /// Mbit/s that may pass.
    pub rate_asked_mbps: Option<f64>,
    /// Mean over the trial.
    pub rate_mbps: f64,
}

/// Judges each stage of a direction; what is wrong goes to `flags`. `stats` are the direction's queues in order, each followed by its children.
pub fn judge(direction: Direction, path: &PathSpec, stats: &[StageStats], duration_ns: u64, flags: &mut Vec<String>) -> Vec<StageCheck> {
    let mut checks = Vec::with_capacity(path.stages.len());
    let mut outer = stats.iter().filter(|s| s.depth == 0);
    for (number, stage) in path.stages.iter().enumerate() {
        let place = format!("{} stage {number} ({})", direction.name(), stage.qdisc.name());
        let Some(own) = outer.next().filter(|s| s.name == stage.qdisc.name()) else {
            flags.push(format!("{place}: it is missing from the path"));
            continue;
        };
        let check = StageCheck { stage: number, ..one(direction, &stage.qdisc, own, duration_ns) };
        if !path.schedule.iter().any(|c| c.stage == number) {
            flags.extend(stage_flags(&stage.qdisc, own, &check, duration_ns).into_iter().map(|f| format!("{place}: {f}")));
        }
        checks.push(check);
    }
    checks
}

fn one(direction: Direction, spec: &QdiscSpec, s: &StageStats, duration_ns: u64) -> StageCheck {
    let share = |n: u64, of: u64| if of > 0 { n as f64 / of as f64 } else { 0.0 };
    let ms = |ns: u64| ns as f64 / 1e6;
    StageCheck {
        direction: direction.name(),
        stage: 0,
        name: s.name.clone(),
        packets: s.packets_in,
        loss_asked: loss(spec),
        loss: share(s.drops.loss, s.packets_in),
        overflowed: s.drops.limit,
        delay_asked_ms: delay(spec).map(|d| ms(d.0)),
        delay_ms: [ms(s.delay.p50), ms(s.delay.p99), ms(s.delay.max)],
        reordered: share(s.reordered, s.packets_out),
        rate_asked_mbps: proof::asked_rate(spec),
        rate_mbps: s.bytes_out as f64 * 8e3 / duration_ns as f64,
    }
}

fn stage_flags(spec: &QdiscSpec, s: &StageStats, check: &StageCheck, duration_ns: u64) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(p) = check.loss_asked {
        if is_beyond_chance(s.drops.loss, s.packets_in, p) {
            flags.push(format!("lost {:.3} % of {} packets where {:.3} % was asked", 100.0 * check.loss, s.packets_in, 100.0 * p));
        }
    }
    if let Some(limit) = limit(spec).filter(|_| s.drops.limit > 0) {
        let why = if s.peak_packets < u64::from(limit) {
            format!("it was full at {} packets where a limit of {limit} was asked", s.peak_packets)
        } else {
            format!("its limit of {limit} packets was full; nobody asked for loss there: raise the limit")
        };
        flags.push(format!("dropped {} of {} packets because {why}", s.drops.limit, s.packets_in));
    }
    if s.drops.oversize > 0 {
        flags.push(format!("dropped {} packets that are larger than its bucket", s.drops.oversize));
    }
    flags.extend(delay_flag(spec, s));
    if let Some(asked) = check.rate_asked_mbps {
        if check.rate_mbps > asked * (1.0 + RATE_SLACK) + proof::stored(spec) * 8e3 / duration_ns as f64 {
            flags.push(format!("passed {:.3} Mbit/s where {asked:.3} was asked", check.rate_mbps));
        }
    }
    flags
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

/// The delay against the one asked for: its median where it is constant, otherwise its spread.
fn delay_flag(spec: &QdiscSpec, s: &StageStats) -> Option<String> {
    let asked = delay(spec)?;
    if s.delay.count == 0 {
        return None;
    }
    let spread = spread(spec)?;
    if spread == 0.0 {
        let off = s.delay.p50.abs_diff(asked.0) as f64;
        return (off > DELAY_ERROR * asked.0 as f64 + DELAY_GRAIN).then(|| {
            format!("delayed packets by {:.3} ms (median) where {:.3} was asked", s.delay.p50 as f64 / 1e6, asked.0 as f64 / 1e6)
        });
    }
    let ratio = s.delay.sd / spread;
    (s.delay.count >= SPREAD_PACKETS && !(SPREAD.0..=SPREAD.1).contains(&ratio))
        .then(|| format!("spread delays by {:.3} ms (standard deviation) where {:.3} was asked", s.delay.sd / 1e6, spread / 1e6))
}

/// The share that chance is to lose, where each packet is judged by itself.
fn loss(spec: &QdiscSpec) -> Option<f64> {
    match spec {
        QdiscSpec::Netem(NetemSpec { loss: Loss::Random { p, correlation }, .. }) if correlation.percent() == 0.0 => {
            Some(p.percent() / 100.0)
        }
        _ => None,
    }
}

/// The limit of a stage that delays packets on purpose: it is no buffer that a scenario means to overflow.
fn limit(spec: &QdiscSpec) -> Option<u32> {
    match spec {
        QdiscSpec::Netem(n) if n.rate.is_none() && n.child.is_none() => Some(n.limit),
        QdiscSpec::Jitter(j) => Some(j.limit),
        _ => None,
    }
}

/// The delay that a stage is asked for, without jitter; none where slots, a rate or overtaking change it.
fn delay(spec: &QdiscSpec) -> Option<tcpscape_base::Duration> {
    match spec {
        QdiscSpec::Netem(n) if n.rate.is_none() && n.slot.is_none() && n.reorder.percent() == 0.0 => Some(n.delay),
        QdiscSpec::Jitter(j) => Some(j.delay),
        _ => None,
    }
}

/// Standard deviation of the delay asked for, ns, before it is cut at 0; none where the order or the correlation changes it.
fn spread(spec: &QdiscSpec) -> Option<f64> {
    use tcpscape_path::Dist;
    let of = |jitter: u64, dist: Dist| if dist == Dist::Uniform { jitter as f64 / 3f64.sqrt() } else { jitter as f64 };
    match spec {
        QdiscSpec::Netem(n) if n.jitter.0 == 0 || n.delay_correlation.percent() == 0.0 => Some(of(n.jitter.0, n.distribution)),
        QdiscSpec::Jitter(j) if j.jitter.0 == 0 => Some(0.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_path::{parse_tc, Host};

    fn flags(words: &str, change: impl FnOnce(&mut StageStats)) -> Vec<String> {
        let path = PathSpec::of([parse_tc(words).expect("words")]);
        let mut s = StageStats {
            stage: 0,
            depth: 0,
            at: Host::Sender,
            name: path.stages[0].qdisc.name().into(),
            packets_in: 10_000,
            bytes_in: 15_140_000,
            packets_out: 10_000,
            bytes_out: 15_140_000,
            ..StageStats::default()
        };
        s.delay.count = 10_000;
        change(&mut s);
        let mut flags = Vec::new();
        judge(Direction::Forward, &path, &[s], 10_000_000_000, &mut flags);
        flags
    }

    #[test]
    fn what_chance_allows_passes() {
        let at_20_ms = |s: &mut StageStats| s.delay.p50 = 20_000_000;
        assert_eq!(flags("netem delay 20ms", at_20_ms), [""; 0]);
        let lossy = |lost| move |s: &mut StageStats| (s.drops.loss, s.delay.p50) = (lost, 20_000_000);
        assert_eq!(flags("netem delay 20ms loss 1%", lossy(100)), [""; 0]);
        assert_eq!(flags("netem delay 20ms loss 1%", lossy(149)), [""; 0]); // 4.9 standard deviations
        assert_eq!(flags("netem delay 20ms loss 1%", lossy(166)).len(), 1);
        assert_eq!(flags("netem delay 20ms 5ms distribution normal", |s| s.delay.sd = 4.9e6), [""; 0]);
        assert_eq!(flags("netem delay 20ms 5ms", |s| s.delay.sd = 2.9e6), [""; 0]); // even: half width / √3
        assert_eq!(flags("tbf rate 100mbit burst 6056 limit 60000", |s| s.drops.limit = 50), [""; 0]);
        // a buffer is there to overflow
    }

    #[test]
    fn few_packets_prove_little() {
        assert!(!is_beyond_chance(0, 1490, 0.01)); // e⁻¹⁵
        assert!(is_beyond_chance(0, 1600, 0.01)); // e⁻¹⁶
        assert!(!is_beyond_chance(1, 1, 0.01) && is_beyond_chance(1, 1, 1e-9) && !is_beyond_chance(0, 0, 0.5));
        assert!(is_beyond_chance(1, 10, 0.0) && is_beyond_chance(9, 10, 1.0));
    }

    #[test]
    fn a_missing_impairment_and_a_full_limit_are_named() {
        let has = |flags: Vec<String>, text: &str| assert!(flags.iter().any(|f| f.contains(text)), "{flags:?} without {text}");
        has(flags("netem delay 20ms loss 1%", |s| s.delay.p50 = 20_000_000), "lost 0.000 % of 10000 packets where 1.000 % was asked");
        has(flags("netem delay 20ms", |s| s.delay.p50 = 0), "delayed packets by 0.000 ms (median) where 20.000 was asked");
        has(flags("netem delay 20ms 5ms distribution normal", |s| s.delay.sd = 0.0), "spread delays by 0.000 ms");
        let full = |s: &mut StageStats| (s.delay.p50, s.drops.limit, s.peak_packets) = (20_000_000, 3, 1000);
        has(flags("netem delay 20ms limit 1000", full), "dropped 3 of 10000 packets because its limit of 1000 packets was full");
        has(flags("netem delay 20ms limit 100000", full), "because it was full at 1000 packets where a limit of 100000 was asked");
        has(flags("tbf rate 10mbit burst 6056 limit 60000", |_| {}), "passed 12.112 Mbit/s where 10.000 was asked");
        has(flags("netem delay 20ms", |s| s.name = "tbf".into()), "it is missing from the path");
    }
}
