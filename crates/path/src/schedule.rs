//! Changes while a path runs: what `tc qdisc change` in a script would do, as data.
//!
//! What it is: steps, ramps, periodic changes (a handover) and recorded rate traces, each for one queue of one stage.
//! Source: `tc qdisc change`: new parameters for packets that come, unchanged due times for those that wait.
//! How it differs: a ramp or a rate trace keeps a bucket's tokens (in bytes), where each `tc qdisc change` would fill it.
//! What it does not model: replacing a queue by one of another kind.

use crate::spec::{PathSpec, Prob, QdiscSpec, SpecError};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Rate, Time};

/// New values for some parameters of a queue; what is left out stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Delay (netem, jitter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Jitter (netem, jitter).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// Random loss (netem).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Prob>,
    /// Rate (netem, tbf, htb).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bucket, B (tbf, htb).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Limit in the queue's own unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Nothing leaves the stage while this is set; packets wait (and overflow) in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<bool>,
    /// Puts back a loss model that is not plain random loss.
    #[serde(skip)]
    pub restore_loss: bool,
    /// Keeps a bucket's tokens instead of filling it.
    #[serde(skip)]
    pub keep_tokens: bool,
}

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

/// A rate trace from a list of delivery opportunities in ms (Mahimahi's format: a line is the chance to send `bytes`),
/// averaged over bins.
pub fn rates_from_opportunities(ms: &[u64], bytes: u64, bin: Duration) -> Vec<(Duration, Rate)> {
    let width = bin.0.max(1);
    let last = ms.iter().max().map_or(0, |m| m * 1_000_000 / width);
    let mut count = vec![0u64; last as usize + 1];
    for m in ms {
        count[(m * 1_000_000 / width) as usize] += 1;
    }
    let rate = |n: u64| Rate((u128::from(n) * u128::from(bytes) * 8 * 1_000_000_000 / u128::from(width)) as u64);
    count.iter().enumerate().map(|(i, &n)| (Duration(i as u64 * width), rate(n))).collect()
}

impl Patch {
    fn is_empty(&self) -> bool {
        *self == Patch::default()
    }
    /// Of `self`, only what `which` names.
    fn only(&self, which: &Patch) -> Patch {
        Patch {
            delay: which.delay.and(self.delay),
            jitter: which.jitter.and(self.jitter),
            loss: which.loss.and(self.loss),
            rate: which.rate.and(self.rate),
            burst: which.burst.and(self.burst),
            limit: which.limit.and(self.limit),
            outage: which.outage.map(|o| !o),
            restore_loss: which.loss.is_some() && self.restore_loss,
            keep_tokens: self.keep_tokens,
        }
    }
    /// The point `part / whole` of the way to `end`.
    fn between(&self, end: &Patch, part: u64, whole: u64) -> Patch {
        let mix =
            |a: u64, b: u64| ((u128::from(a) * u128::from(whole - part) + u128::from(b) * u128::from(part)) / u128::from(whole)) as u64;
        let some = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| mix(a, b));
        Patch {
            delay: some(self.delay.map(|d| d.0), end.delay.map(|d| d.0)).map(Duration),
            jitter: some(self.jitter.map(|d| d.0), end.jitter.map(|d| d.0)).map(Duration),
            loss: some(self.loss.map(|p| p.0.into()), end.loss.map(|p| p.0.into())).map(|p| Prob(p as u32)),
            rate: some(self.rate.map(|r| r.0), end.rate.map(|r| r.0)).map(Rate),
            burst: some(self.burst, end.burst),
            limit: some(self.limit, end.limit),
            keep_tokens: true,
            ..Default::default()
        }
    }
    /// Refuses values that the queue does not have or cannot take.
    fn validate(&self, q: &QdiscSpec, depth: usize) -> Result<(), SpecError> {
        let has = |words: &[&str], field: &str| words.contains(&field);
        let known: &[&str] = match q {
            QdiscSpec::Netem(_) => &["delay", "jitter", "loss", "rate", "limit"],
            QdiscSpec::Tbf(_) | QdiscSpec::Htb(_) => &["rate", "burst", "limit"],
            QdiscSpec::Pfifo(_) | QdiscSpec::Bfifo(_) | QdiscSpec::PfifoHeadDrop(_) => &["limit"],
            QdiscSpec::Sfq(_) | QdiscSpec::Fq(_) | QdiscSpec::Dualpi2(_) => &["limit"],
            QdiscSpec::Cake(_) => &["rate"],
            QdiscSpec::Jitter(_) => &["delay", "jitter", "limit"],
            _ => &[],
        };
        let given = [
            ("delay", self.delay.is_some()),
            ("jitter", self.jitter.is_some()),
            ("loss", self.loss.is_some()),
            ("rate", self.rate.is_some()),
            ("burst", self.burst.is_some()),
            ("limit", self.limit.is_some()),
        ];
        if let Some((field, _)) = given.iter().find(|(f, on)| *on && !has(known, f)) {
            let has = if known.is_empty() { "nothing that a schedule could change".to_owned() } else { known.join(", ") };
            return Err(SpecError::new(&format!("schedule {field}"), &format!("{} has no {field}; it has {has}", q.name())));
        }
        if self.outage.is_some() && depth > 0 {
            return Err(SpecError::new("schedule outage", "belongs to a stage: set depth to 0"));
        }
        if self.rate.is_some_and(|r| r.bytes_per_sec() == 0) {
            return Err(SpecError::new("schedule rate", "must be at least 8 bit/s; for nothing at all use outage"));
        }
        if self.burst == Some(0) {
            return Err(SpecError::new("schedule burst", "must be at least a full frame, 1514"));
        }
        if self.delay.is_some_and(|d| d > crate::netem::DELAY_MAX) || self.jitter.is_some_and(|j| j.0 > i32::MAX as u64) {
            return Err(SpecError::new("schedule delay", "must stay below a day, jitter below 2.147 s"));
        }
        if self.is_empty() {
            return Err(SpecError::new("schedule set", "names no value to change"));
        }
        Ok(())
    }
}

impl ScheduledChange {
    pub(crate) fn validate(&self, path: &PathSpec) -> Result<(), SpecError> {
        let no = |field: &str, fix: &str| Err(SpecError::new(&format!("schedule {field}"), fix));
        let Some(stage) = path.stages.get(self.stage) else {
            return no("stage", &format!("{} does not exist: this path has stages 0 to {}", self.stage, path.stages.len() as i64 - 1));
        };
        let mut q = &stage.qdisc;
        for _ in 0..self.depth {
            let Some(c) = q.child() else { return no("depth", &format!("{} has no child queue: lower depth", q.name())) };
            q = c;
        }
        match &self.change {
            Change::Set { set, .. } => set.validate(q, self.depth),
            Change::Ramp { from, until, every, start, end } => {
                if every.0 == 0 || until <= from {
                    return no("ramp", "needs from before until, and every above 0");
                }
                start.between(end, 0, 1).validate(q, self.depth)?;
                end.validate(q, self.depth)
            }
            Change::Periodic { period, hold, set, .. } => {
                if hold.0 == 0 || hold >= period {
                    return no("periodic", "needs hold above 0 and below period");
                }
                set.validate(q, self.depth)
            }
            Change::RateTrace { points, repeat, .. } => {
                if points.is_empty() || points.windows(2).any(|w| w[0].0 >= w[1].0) {
                    return no("rate_trace", "needs points in order of time");
                }
                if repeat.is_some_and(|r| points.last().is_some_and(|p| p.0 >= r)) {
                    return no("repeat", "must be longer than the trace");
                }
                Patch { rate: Some(Rate(8)), ..Default::default() }.validate(q, self.depth)
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
