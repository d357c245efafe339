//! The emulator's account of a path against what the scenario asked for.
//!
//! Shares and rates are judged as those of a kernel's queues ([`judge`]). Delays are the emulator's own decisions, which are exact, so a stage that was
//! built without its delay or jitter is seen at once; how late they were carried out, the emulator says itself.
//! How it differs from [`tcpscape_testbed::proof`]: the emulator counts drops by cause, and the delay of every packet.

use serde::Serialize;
use tcpscape_path::{Description, Direction, PathSpec, StageStats};
use tcpscape_plan::judge;

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
        let levels = stage.qdisc.describe();
        let check = StageCheck { stage: number, ..one(direction, &levels[0], own, duration_ns) };
        if !path.schedule.iter().any(|c| c.stage == number) {
            flags.extend(stage_flags(&levels, own, &check, duration_ns).into_iter().map(|f| format!("{place}: {f}")));
        }
        checks.push(check);
    }
    checks
}

fn one(direction: Direction, asked: &Description, s: &StageStats, duration_ns: u64) -> StageCheck {
    let share = |n: u64, of: u64| if of > 0 { n as f64 / of as f64 } else { 0.0 };
    let ms = |ns: u64| ns as f64 / 1e6;
    StageCheck {
        direction: direction.name(),
        stage: 0,
        name: s.name.clone(),
        packets: s.packets_in,
        loss_asked: judge::asked_loss(asked),
        loss: share(s.drops.loss, s.packets_in),
        overflowed: s.drops.limit,
        delay_asked_ms: judge::asked_delay(asked).map(ms),
        delay_ms: [ms(s.delay.p50), ms(s.delay.p99), ms(s.delay.max)],
        reordered: share(s.reordered, s.packets_out),
        rate_asked_mbps: judge::asked_rate(asked),
        rate_mbps: s.bytes_out as f64 * 8e3 / duration_ns as f64,
    }
}

fn stage_flags(levels: &[Description], s: &StageStats, check: &StageCheck, duration_ns: u64) -> Vec<String> {
    let asked = &levels[0];
    let mut flags = Vec::from_iter(check.loss_asked.and_then(|p| judge::loss(p, s.drops.loss, s.packets_in)));
    flags.extend(judge::full(levels, s.drops.limit, s.packets_in, Some(s.peak_packets)));
    if s.drops.oversize > 0 {
        flags.push(format!("dropped {} packets that are larger than its bucket", s.drops.oversize));
    }
    flags.extend(judge::delay(asked, &s.delay));
    flags.extend(judge::rate(asked, check.rate_mbps, 0.0, duration_ns));
    flags
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
