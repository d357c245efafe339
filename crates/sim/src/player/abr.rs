//! Adaptive bit rate: which rung the next segment has. An algorithm is a file with a type that implements [`Algorithm`], and a variant here.

use super::{bola, throughput, PlayerPlan};
use serde::{Deserialize, Serialize};
use tcpscape_base::Duration;

/// The algorithms by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abr {
    /// Buffer-based: BOLA-BASIC.
    Bola,
    /// Rate-based: the harmonic mean of the last throughputs.
    Throughput,
}

/// A segment that was downloaded.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// Its size.
    pub bytes: u64,
    /// From its request to its last byte.
    pub took: Duration,
}

/// Chooses rungs.
pub(super) trait Algorithm: std::fmt::Debug + Send {
    /// A segment was downloaded.
    fn downloaded(&mut self, download: Download);
    /// The rung of the next segment where `level` of media is buffered: 0 is the lowest.
    fn choose(&self, level: Duration) -> usize;
}

/// The algorithm of a plan.
pub(super) fn new(plan: &PlayerPlan) -> Box<dyn Algorithm> {
    match plan.abr {
        Abr::Bola => Box::new(bola::Bola::new(plan)),
        Abr::Throughput => Box::new(throughput::Throughput::new(plan)),
    }
}
