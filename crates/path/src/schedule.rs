//! Changes while a path runs: what `tc qdisc change` in a script would do, as data.
//!
//! What it is: steps, ramps, periodic changes (a handover) and recorded rate traces, each for one queue of one stage.
//! Source: `tc qdisc change`: new parameters for packets that come, unchanged due times for those that wait.
//! How it differs: a ramp or a rate trace keeps a bucket's tokens (in bytes), where each `tc qdisc change` would fill it.
//! What it does not model: replacing a queue by one of another kind.

use crate::discipline::Patch;
use crate::queue::QdiscSpec;
use crate::values::SpecError;
use crate::words::print;
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
    /// From one set of values to another of the same fields in equal steps.
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
    /// The changes of the first `own` stages, and those of the rest, as stages of their own.
    pub fn split(all: &[ScheduledChange], own: usize) -> [Vec<ScheduledChange>; 2] {
        let (first, rest): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|change| change.stage < own);
        [first, rest.into_iter().map(|change| ScheduledChange { stage: change.stage - own, ..change }).collect()]
    }

    /// Says what is wrong with it, for a path of these queues. The error names the change by its kind and time, the field and the fix.
    pub(crate) fn validate(&self, stages: &[&QdiscSpec]) -> Result<(), SpecError> {
        let of_change = |e: SpecError| SpecError::new(&format!("{}: {}", self.label(), e.field), &e.fix);
        self.target(stages).and_then(|(q, depth)| self.change.validate(q, depth)).map_err(of_change)
    }

    /// The queue that it changes, and its depth.
    fn target<'a>(&self, stages: &[&'a QdiscSpec]) -> Result<(&'a QdiscSpec, usize), SpecError> {
        let Some(outer) = stages.get(self.stage) else {
            let fix = match stages.len() {
                0 => "the path has no queue to change; give it one".to_owned(),
                n => format!("{} does not exist; choose one from 0 to {}", self.stage, n - 1),
            };
            return Err(SpecError::new("stage", &fix));
        };
        let deepest = outer.levels().count() - 1;
        let fix = || match deepest {
            0 => format!("{} has no child queue; leave the child (depth) out", outer.name()),
            _ => format!("{} has no such child queue; choose a child (depth) from 0 to {deepest}", outer.name()),
        };
        outer.levels().nth(self.depth).map(|q| (q, self.depth)).ok_or_else(|| SpecError::new("child", &fix()))
    }

    /// What it is called in messages: its kind and when it begins.
    pub fn label(&self) -> String {
        let kind = match &self.change {
            Change::Set { .. } => "change at",
            Change::Ramp { .. } => "ramp from",
            Change::Periodic { .. } => "periodic change from",
            Change::RateTrace { .. } => "rate trace from",
        };
        format!("{kind} {}", print::time(Duration(self.begins().0)))
    }

    /// When it acts first.
    pub fn begins(&self) -> Time {
        match &self.change {
            Change::Set { at, .. } => *at,
            Change::Ramp { from, .. } => *from,
            Change::Periodic { first, .. } => *first,
            Change::RateTrace { start, points, .. } => points.first().map_or(Time::MAX, |p| *start + p.0),
        }
    }

    /// The same change, all of it later by so much.
    #[must_use]
    pub fn later(&self, by: Duration) -> ScheduledChange {
        let mut late = self.clone();
        match &mut late.change {
            Change::Set { at, .. } => *at += by,
            Change::Ramp { from, until, .. } => {
                *from += by;
                *until += by;
            }
            Change::Periodic { first, .. } => *first += by,
            Change::RateTrace { start, .. } => *start += by,
        }
        late
    }

    /// How often it acts before `end`, at most. It must have passed [`crate::PathSpec::validate`].
    pub fn steps(&self, end: Time) -> u64 {
        let left = end.since(self.begins()).0;
        match &self.change {
            Change::Set { .. } => 1,
            Change::Ramp { from, until, every, .. } => until.since(*from).0.min(left) / every.0 + 2,
            Change::Periodic { period, .. } => (left / period.0).saturating_add(1).saturating_mul(2),
            Change::RateTrace { points, repeat, .. } => {
                let rounds = repeat.map_or(1, |r| left / r.0 + 1);
                rounds.saturating_mul(points.len() as u64)
            }
        }
    }
}

impl Change {
    /// The highest rate that it sets, where it sets one.
    pub fn highest_rate(&self) -> Option<Rate> {
        match self {
            Change::Set { set, .. } | Change::Periodic { set, .. } => set.rate,
            Change::Ramp { start, end, .. } => start.rate.max(end.rate),
            Change::RateTrace { points, .. } => points.iter().map(|p| p.1).max(),
        }
    }

    /// Says what is wrong with it for a queue at this depth of its stage.
    fn validate(&self, q: &QdiscSpec, depth: usize) -> Result<(), SpecError> {
        let refuse = |field: &str, fix: &str| Err(SpecError::new(field, fix));
        let check = |values: &Patch| values.validate(q.name(), q.changes(), depth);
        match self {
            Change::Set { set, .. } => check(set),
            Change::Ramp { from, until, every, start, end } => {
                if every.0 == 0 || until <= from {
                    return refuse("ramp", "needs from before until, and every above 0; for example from 2 s until 4 s, every 20 ms");
                }
                if start.names() != end.names() {
                    let (start, end) = (start.names().join(", "), end.names().join(", "));
                    return refuse("ramp", &format!("goes from {start} to {end}; name the same fields in start and end"));
                }
                if start.outage.is_some() {
                    return refuse("outage", "is either on or off, so no ramp leads to it; make it a change of its own");
                }
                check(start)?;
                check(end)
            }
            Change::Periodic { period, hold, set, .. } => {
                if hold.0 == 0 || hold >= period {
                    return refuse("hold", "must be above 0 and below the period; for example 300 ms every 15 s");
                }
                check(set)
            }
            Change::RateTrace { points, repeat, .. } => {
                if points.is_empty() {
                    return refuse("trace", "has no points; give at least one time with its rate");
                }
                if let Some(w) = points.windows(2).find(|w| w[0].0 >= w[1].0) {
                    let (before, after) = (print::time(w[0].0), print::time(w[1].0));
                    return refuse("trace", &format!("goes from {before} to {after}; give points in order of time, each time once"));
                }
                if repeat.is_some_and(|r| points.last().is_some_and(|p| p.0 >= r)) {
                    return refuse("repeat", "is not longer than the trace; give more than the time of its last point, or leave it out");
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
        Runner { change: change.clone(), next: change.begins(), step: 0, saved: Patch::default() }
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
