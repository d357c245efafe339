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
    /// As a fraction: the shortest percentage that reads back as the same value, over 100. So 1 % is 0.01, not 0.010000000009.
    pub fn fraction(self) -> f64 {
        self.shortest().parse().unwrap_or_else(|_| self.percent()) / 100.0
    }
    /// The shortest decimal percentage that reads back as the same value.
    fn shortest(self) -> String {
        let p = self.percent();
        let text = (0..=12).map(|d| format!("{p:.d$}")).find(|t| t.parse().ok().and_then(Prob::from_percent) == Some(self));
        text.unwrap_or_else(|| p.to_string())
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
        write!(f, "{}%", self.shortest())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_the_one_that_the_percentage_says() {
        for (percent, fraction) in [(0.0, 0.0), (0.1, 0.001), (1.0, 0.01), (12.5, 0.125), (33.3, 33.3 / 100.0), (100.0, 1.0)] {
            assert_eq!(Prob::from_percent(percent).unwrap().fraction(), fraction);
        }
        // It is never further from the value itself than half a step of 1 / (2³² − 1).
        let far = |p: u32| (Prob(p).fraction() * f64::from(u32::MAX) - f64::from(p)).abs();
        assert!([1, 2, 3, 12_345, 0x8000_0000, u32::MAX - 1].into_iter().all(|p| far(p) <= 0.5));
    }
}
