//! Paths made of choices: queues from [`crate::words`] and what changes while they run.

use crate::choices::Choices;
use crate::{grammar, words};
use tcpscape_base::{Duration, Rate, Time};
use tcpscape_path::schedule::Change;
use tcpscape_path::{Host, Patch, PathSpec, Prob, ScheduledChange, StageSpec};

/// Latest time at which a change begins, ns.
const LATEST: u32 = 1_000_000_000;
/// Least time between two steps of a schedule, ns.
const LEAST_STEP: u64 = 100_000;

/// Up to `most` queues, the first of them perhaps at the host called `first`, and up to two changes; `None` where it is refused.
pub fn path(c: &mut Choices<'_>, first: Host, most: u32) -> Option<PathSpec> {
    let stages = 1 + c.below(most);
    let mut spec = PathSpec::default();
    let at_first = !c.one_in(3);
    for i in 0..stages {
        let text = if c.one_in(3) { words::delay(c) } else { words::queue(c) };
        let at = if i == 0 && at_first { first } else { Host::Router };
        spec.stages.push(StageSpec { qdisc: grammar::read(&text)?, at });
    }
    for _ in 0..c.pick(&[0, 0, 1, 2]) {
        let stage = c.below(stages) as usize;
        let depth = c.below(spec.stages[stage].qdisc.levels().count() as u32) as usize;
        spec.schedule.push(ScheduledChange { stage, depth, change: change(c) });
    }
    spec.validate().ok()?;
    Some(spec)
}

fn patch(c: &mut Choices<'_>) -> Patch {
    let mut patch = Patch::default();
    match c.below(7) {
        0 => patch.limit = Some(u64::from(c.size(u32::MAX))),
        1 => patch.rate = Some(Rate(u64::from(c.size(u32::MAX)))),
        2 => patch.delay = Some(time(c)),
        3 => patch.outage = Some(!c.one_in(4)),
        4 => patch.loss = Some(Prob(c.any())),
        5 => (patch.delay, patch.jitter) = (Some(time(c)), Some(time(c))),
        _ => (patch.burst, patch.limit) = (Some(u64::from(c.size(u32::MAX))), Some(u64::from(c.size(u32::MAX)))),
    }
    patch
}

fn time(c: &mut Choices<'_>) -> Duration {
    Duration(u64::from(c.size(LATEST)))
}

/// A time between two steps, long enough that a path is not at work on its changes alone.
fn step(c: &mut Choices<'_>) -> Duration {
    Duration(LEAST_STEP + u64::from(c.size(LATEST)))
}

fn change(c: &mut Choices<'_>) -> Change {
    let at = Time(u64::from(c.size(LATEST)));
    match c.below(4) {
        0 => Change::Set { at, set: patch(c) },
        1 => Change::Periodic { first: at, period: step(c), hold: time(c), set: patch(c) },
        2 => {
            let (start, until, every) = (patch(c), at + time(c), step(c));
            let end = if c.one_in(2) { patch(c) } else { start };
            Change::Ramp { from: at, until, every, start, end }
        }
        _ => {
            let mut elapsed = Duration::ZERO;
            let points = (0..1 + c.below(8)).map(|_| {
                elapsed = elapsed + time(c);
                (elapsed, Rate(u64::from(c.size(100_000_000))))
            });
            let points: Vec<_> = points.collect();
            let repeat = c.one_in(2).then(|| elapsed + step(c));
            Change::RateTrace { start: at, points, repeat }
        }
    }
}
