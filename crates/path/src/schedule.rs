//! Changes while a path runs: what `tc qdisc change` in a script would do, as data.
//!
//! What it is: steps, ramps, periodic changes (a handover) and recorded rate traces, each for one queue of one stage.
//! Source: `tc qdisc change`: new parameters for packets that come, unchanged due times for those that wait.
//! How it differs: a ramp or a rate trace keeps a bucket's tokens (in bytes), where each `tc qdisc change` would fill it.
//! What it does not model: replacing a queue by one of another kind.

use crate::discipline::Patch;
use crate::queue::QdiscSpec;
use crate::values::SpecError;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Rate, Time};

/// A change of one queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledChange {
    /// Number of the stage, from 0.
    pub stage: usize,
    /// 0 is the stage's own queue, 1 its child, and so on.
    #[serde(default)]
    pub depth: usize,
    /// What happens when.
    pub change: Change,
}

/// What happens when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Once, for good.
    Set {
        /// When.
        at: Time,
        /// New values.
        set: Patch,
    },
    /// From one set of values to another in equal steps; the values that both name change.
    Ramp {
        /// Begin.
        from: Time,
        /// End.
        until: Time,
        /// Time between steps.
        every: Duration,
        /// Values at the begin.
        start: Patch,
        /// Values at the end.
        end: Patch,
    },
    /// Again and again: for `hold` from `first`, `first + period`, …; between them what was before.
    Periodic {
        /// First time.
        first: Time,
        /// From one to the next.
        period: Duration,
        /// How long it lasts.
        hold: Duration,
        /// Values while it lasts.
        set: Patch,
    },
    /// A recorded rate: times since `start`, each with the rate from then on; rate 0 is an outage.
    RateTrace {
        /// When the trace begins.
        #[serde(default)]
        start: Time,
        /// Time and rate, in order of time.
        points: Vec<(Duration, Rate)>,
        /// Begin again after this long; otherwise the last rate stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeat: Option<Duration>,
    },
}

impl ScheduledChange {
    /// Says what is wrong with it, for a path of these queues.
    pub(crate) fn validate(&self, stages: &[&QdiscSpec]) -> Result<(), SpecError> {
        let no = |field: &str, fix: &str| Err(SpecError::new(&format!("schedule {field}"), fix));
        let Some(outer) = stages.get(self.stage) else {
            return no("stage", &format!("{} does not exist: this path has stages 0 to {}", self.stage, stages.len() as i64 - 1));
        };
        let Some(q) = outer.levels().nth(self.depth) else {
            let innermost = outer.levels().last().map_or("", QdiscSpec::name);
            return no("depth", &format!("{innermost} has no child queue: lower depth"));
        };
        let check = |values: &Patch| values.validate(q.name(), q.changes(), self.depth);
        match &self.change {
            Change::Set { set, .. } => check(set),
            Change::Ramp { from, until, every, start, end } => {
                if every.0 == 0 || until <= from {
                    return no("ramp", "needs from before until, and every above 0");
                }
                check(&start.between(end, 0, 1))?;
                check(end)
            }
            Change::Periodic { period, hold, set, .. } => {
                if hold.0 == 0 || hold >= period {
                    return no("periodic", "needs hold above 0 and below period");
                }
                check(set)
            }
            Change::RateTrace { points, repeat, .. } => {
                if points.is_empty() || points.windows(2).any(|w| w[0].0 >= w[1].0) {
                    return no("rate_trace", "needs points in order of time");
                }
                if repeat.is_some_and(|r| points.last().is_some_and(|p| p.0 >= r)) {
                    return no("repeat", "must be longer than the trace");
                }
                check(&Patch { rate: Some(Rate(8)), ..Default::default() })
            }
        }
    }
}

/// A change on its way: when it acts next and how often it has.
#[derive(Clone, Debug)]
pub struct Runner {
    /// The change.
    pub change: ScheduledChange,
    /// When it acts next; [`Time::MAX`] is never again.
    pub next: Time,
    step: u64,
    saved: Patch,
}

impl Runner {
    /// The change before its first time.
    pub fn new(change: &ScheduledChange) -> Runner {
        let next = match &change.change {
            Change::Set { at, .. } => *at,
            Change::Ramp { from, .. } => *from,
            Change::Periodic { first, .. } => *first,
            Change::RateTrace { start, points, .. } => points.first().map_or(Time::MAX, |p| *start + p.0),
        };
        Runner { change: change.clone(), next, step: 0, saved: Patch::default() }
    }

    /// What to set now, and moves on to the next time. `current` is what the queue has.
    pub fn act(&mut self, current: &Patch) -> Patch {
        let step = self.step;
        self.step += 1;
        match &self.change.change {
            Change::Set { set, .. } => {
                self.next = Time::MAX;
                *set
            }
            Change::Ramp { from, until, every, start, end } => {
                let whole = until.since(*from).0;
                let part = every.0.saturating_mul(step).min(whole);
                self.next = if part == whole { Time::MAX } else { (*from + *every * (step + 1)).min(*until) };
                start.between(end, part, whole)
            }
            Change::Periodic { first, period, hold, set } => {
                let begin = *first + *period * (step / 2);
                if step % 2 == 0 {
                    self.saved = current.only(set);
                    self.next = begin + *hold;
                    *set
                } else {
                    self.next = begin + *period;
                    self.saved
                }
            }
            Change::RateTrace { start, points, repeat } => {
                let n = points.len() as u64;
                let round = |s: u64| repeat.map_or(Duration::ZERO, |r| r * (s / n));
                let rate = points[(step % n) as usize].1;
                let after = step + 1;
                self.next = if after >= n && repeat.is_none() { Time::MAX } else { *start + round(after) + points[(after % n) as usize].0 };
                let off = rate.bytes_per_sec() == 0;
                Patch { rate: (!off).then_some(rate), outage: Some(off), keep_tokens: true, ..Default::default() }
            }
        }
    }
}
