//! Values that words, specifications and machines share: probabilities, distributions, hosts, and what is wrong with a field.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A specification that cannot run: the field and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fix}")]
pub struct SpecError {
    /// The field that is wrong.
    pub field: String,
    /// What to do about it.
    pub fix: String,
}

impl SpecError {
    pub(crate) fn new(field: &str, fix: &str) -> SpecError {
        SpecError { field: field.into(), fix: fix.into() }
    }
}

/// Whose egress a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// The data sender's.
    #[default]
    Sender,
    /// A router's.
    Router,
    /// The receiver's.
    Receiver,
}

/// A probability scaled so that 2³²−1 is certainty, as netem keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prob(pub u32);

impl Prob {
    /// Never.
    pub const ZERO: Prob = Prob(0);
    /// Always.
    pub const ONE: Prob = Prob(u32::MAX);

    /// From a percentage, rounded as tc does; `None` outside 0..=100.
    pub fn from_percent(p: f64) -> Option<Prob> {
        (0.0..=100.0).contains(&p).then(|| Prob((p / 100.0 * f64::from(u32::MAX)).round_ties_even() as u32))
    }
    /// As a percentage.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / f64::from(u32::MAX) * 100.0
    }
    /// What is missing to certainty.
    pub fn complement(self) -> Prob {
        Prob(u32::MAX - self.0)
    }
    pub(crate) fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Prob {
    /// The shortest percentage that reads back as the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.percent();
        let text = (0..=12).map(|d| format!("{p:.d$}")).find(|t| t.parse().ok().and_then(Prob::from_percent) == Some(*self));
        write!(f, "{}%", text.unwrap_or_else(|| p.to_string()))
    }
}

/// The distribution of delay variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dist {
    /// Even between −J and +J: netem's own without a table.
    #[default]
    Uniform,
    /// Normal, J is its standard deviation; cut at −4σ.
    Normal,
    /// Pareto with shape 3.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
}

impl Dist {
    /// The word of `distribution NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Dist::Uniform => "uniform",
            Dist::Normal => "normal",
            Dist::Pareto => "pareto",
            Dist::ParetoNormal => "paretonormal",
        }
    }
    /// The inverse of [`Dist::name`].
    pub fn named(name: &str) -> Option<Dist> {
        [Dist::Uniform, Dist::Normal, Dist::Pareto, Dist::ParetoNormal].into_iter().find(|d| d.name() == name)
    }
}
