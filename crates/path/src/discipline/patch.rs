//! New values for a discipline that runs: what `tc qdisc change` would say.

use crate::values::{Prob, SpecError};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Rate};

/// Longest delay that is taken for meant: a day.
pub(crate) const DELAY_MAX: Duration = Duration(86_400_000_000_000);

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

impl Patch {
    /// Of `self`, only what `which` names.
    pub(crate) fn only(&self, which: &Patch) -> Patch {
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
    pub(crate) fn between(&self, end: &Patch, part: u64, whole: u64) -> Patch {
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
    /// The fields that have a value.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let given = [
            ("delay", self.delay.is_some()),
            ("jitter", self.jitter.is_some()),
            ("loss", self.loss.is_some()),
            ("rate", self.rate.is_some()),
            ("burst", self.burst.is_some()),
            ("limit", self.limit.is_some()),
            ("outage", self.outage.is_some()),
        ];
        given.into_iter().filter(|g| g.1).map(|g| g.0).collect()
    }
    /// Refuses values that the queue called `name` does not have (it has those that `known` names) or cannot take: the field and the fix.
    pub(crate) fn validate(&self, name: &str, known: &[&str], depth: usize) -> Result<(), SpecError> {
        let refuse = |field: &str, fix: &str| Err(SpecError::new(field, fix));
        let names = self.names();
        if let Some(field) = names.iter().find(|f| **f != "outage" && !known.contains(f)) {
            let has = if known.is_empty() { "nothing that a change could set".to_owned() } else { known.join(", ") };
            return refuse(field, &format!("{name} has no {field}, it has {has}; set one of those, or change another queue of the path"));
        }
        if self.outage.is_some() && depth > 0 {
            return refuse("outage", "belongs to a whole stage; leave the child (depth) out");
        }
        if self.rate.is_some_and(|r| r.bytes_per_sec() == 0) {
            return refuse("rate", "must be at least 8 bit/s; for nothing at all use outage");
        }
        if self.burst == Some(0) {
            return refuse("burst", "must be at least a full frame; give 1514 bytes or more");
        }
        if self.delay.is_some_and(|d| d > DELAY_MAX) {
            return refuse("delay", "is over a day; give it in ms, for example 25ms");
        }
        if self.jitter.is_some_and(|j| j.0 > i32::MAX as u64) {
            return refuse("jitter", "is over 2.147 s, the most that the kernel keeps; give less");
        }
        if names.is_empty() {
            return refuse("set", "names no value to change; give one, for example a rate");
        }
        Ok(())
    }
}
