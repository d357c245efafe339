//! The laws that the accounts of a pipe's queues keep at every moment: no packet and no byte comes from nowhere or is lost uncounted.
//!
//! Tests and fuzz targets call [`check_accounts`], after each step or at the end.

use super::stats::StageStats;

/// Checks the accounts of one pipe, in the order in which [`crate::Pipe::stats`] gives them: each queue alone, each with its children, and each
/// stage with the next one. The error names the queue and the law.
pub fn check_accounts(queues: &[StageStats]) -> Result<(), String> {
    let stages: Vec<&[StageStats]> = queues.chunk_by(|_, next| next.depth > 0).collect();
    for levels in &stages {
        for (depth, queue) in levels.iter().enumerate() {
            conserves(queue, &levels[depth..])?;
            is_plausible(queue, levels.len() == depth + 1)?;
        }
        levels.windows(2).try_for_each(|pair| holds_its_child(&pair[0], &pair[1]))?;
    }
    stages.windows(2).try_for_each(|pair| hands_on(&pair[0][0], &pair[1][0]))
}

/// What came or was gained is out, dropped or held; `family` is the queue and what is below it.
fn conserves(queue: &StageStats, family: &[StageStats]) -> Result<(), String> {
    let sum = |count: fn(&StageStats) -> u64| family.iter().map(count).sum::<u64>();
    let came = queue.packets_in + sum(|q| q.duplicated + q.segmented);
    let gone = queue.packets_out + sum(|q| q.drops.total()) + queue.backlog_packets;
    law(queue, came == gone, || format!("packets in, duplicated and cut are {came}; out, dropped and held are {gone}"))?;
    let came = queue.bytes_in + sum(|q| q.bytes_duplicated);
    let gone = queue.bytes_out + sum(|q| q.bytes_dropped) + queue.backlog_bytes;
    law(queue, came == gone, || format!("bytes in and duplicated are {came}; out, dropped and held are {gone}"))
}

/// The counts of one queue fit each other; `leaf`: it has no child, so that it has measured the delay of whatever left.
fn is_plausible(q: &StageStats, leaf: bool) -> Result<(), String> {
    let (own, delay) = (q.packets_in + q.duplicated + q.segmented, &q.delay);
    law(q, (q.backlog_packets == 0) == (q.backlog_bytes == 0), || "it holds packets without bytes, or bytes without packets".to_owned())?;
    let peak = (q.backlog_packets <= q.peak_packets, q.backlog_bytes <= q.peak_bytes);
    law(q, peak == (true, true), || "it holds more than its peak".to_owned())?;
    // CoDel's law and its ce_threshold may both mark a packet, and each counts, as in the kernel.
    law(q, (q.marked / 2).max(q.corrupted) <= own, || format!("of {own} packets {} are marked and {} damaged", q.marked, q.corrupted))?;
    law(q, !leaf || delay.count == q.packets_out, || format!("{} left, the delay of {} is measured", q.packets_out, delay.count))?;
    law(q, q.reordered <= delay.count, || format!("{} of {} packets left late", q.reordered, delay.count))?;
    let order = [delay.min, delay.p50, delay.p95, delay.p99, delay.max];
    let mean = (delay.min as f64 * (1.0 - ROUNDING)..=delay.max as f64 * (1.0 + ROUNDING)).contains(&delay.mean);
    law(q, order.windows(2).all(|w| w[0] <= w[1]) && mean, || format!("its delays are out of order: {delay:?}"))
}

/// A parent holds what its child holds, and nothing leaves the child but through the parent.
fn holds_its_child(parent: &StageStats, child: &StageStats) -> Result<(), String> {
    let holds = parent.backlog_packets >= child.backlog_packets && parent.backlog_bytes >= child.backlog_bytes;
    law(parent, holds, || format!("it holds less than its child {}", child.name))?;
    let passes = parent.packets_out >= child.packets_out && parent.bytes_out >= child.bytes_out;
    law(parent, passes, || format!("less leaves it than its child {}", child.name))
}

/// What leaves a stage enters the next one at once.
fn hands_on(stage: &StageStats, next: &StageStats) -> Result<(), String> {
    let (out, came) = ((stage.packets_out, stage.bytes_out), (next.packets_in, next.bytes_in));
    law(stage, out == came, || format!("(packets, bytes) out are {out:?}, into stage {} {came:?}", next.stage))
}

/// Share by which a mean of equal delays may differ from them.
const ROUNDING: f64 = 1e-9;

fn law(queue: &StageStats, holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds {
        return Ok(());
    }
    Err(format!("stage {} depth {} ({}): {}; {queue:?}", queue.stage, queue.depth, queue.name, problem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, depth: usize, packets: [u64; 3]) -> StageStats {
        let [came, left, held] = packets;
        StageStats {
            depth,
            name: name.to_owned(),
            packets_in: came,
            bytes_in: came * 100,
            packets_out: left,
            bytes_out: left * 100,
            backlog_packets: held,
            backlog_bytes: held * 100,
            peak_packets: came,
            peak_bytes: came * 100,
            delay: super::super::DelayStats { count: left, ..Default::default() },
            ..Default::default()
        }
    }

    #[test]
    fn a_balanced_account_passes_and_each_missing_packet_is_named() {
        let stages = [queue("tbf", 0, [9, 5, 4]), queue("bfifo", 1, [9, 5, 4]), queue("pfifo", 0, [5, 5, 0])];
        assert_eq!(check_accounts(&stages), Ok(()));
        let breaks = |change: fn(&mut [StageStats; 3]), problem: &str| {
            let mut stages = stages.clone();
            change(&mut stages);
            let text = check_accounts(&stages).unwrap_err();
            assert!(text.contains(problem), "{problem}: {text}");
        };
        breaks(|s| s[0].packets_in = 8, "depth 0 (tbf): packets in, duplicated and cut are 8; out, dropped and held are 9");
        breaks(|s| s[1].bytes_dropped = 7, "bytes in and duplicated are 900; out, dropped and held are 907");
        breaks(|s| s[2].duplicated = 1, "(pfifo): packets in, duplicated and cut are 6");
        breaks(|s| s[1].delay.count = 6, "5 left, the delay of 6 is measured");
        breaks(|s| (s[0].peak_packets, s[1].peak_packets) = (3, 3), "more than its peak");
        breaks(|s| s[2] = queue("pfifo", 0, [4, 4, 0]), "(tbf): (packets, bytes) out are (5, 500), into stage 0 (4, 400)");
        breaks(|s| s[1].delay = super::super::DelayStats { count: 5, min: 3, mean: 2.0, ..Default::default() }, "out of order");
    }
}
