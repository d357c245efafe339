//! Adaptive bit rate: the algorithms by their names. One is a file with a type that implements [`Algorithm`], and a variant here.

use super::algorithm::Algorithm;
use super::{bola, throughput, PlayerPlan};
use serde::{Deserialize, Serialize};

/// The algorithms by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abr {
    /// Buffer-based: BOLA-BASIC.
    Bola,
    /// Rate-based: the harmonic mean of the last throughputs.
    Throughput,
}

/// The algorithm of a plan.
pub(super) fn new(plan: &PlayerPlan) -> Box<dyn Algorithm> {
    match plan.abr {
        Abr::Bola => Box::new(bola::Bola::new(plan)),
        Abr::Throughput => Box::new(throughput::Throughput::new(plan)),
    }
}
