//! The two directions of a path, and what the random streams of their pipes are called.
//!
//! Whoever builds [`crate::Pipe`]s for a path takes these names: the same seed then makes the same decisions, simulated and on real packets.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Streams of the stages at the data sender's own host, where there are any.
pub const HOST_STREAMS: &str = "forward/host";
/// Streams of the other stages on the way of the data.
pub const NETWORK_STREAMS: &str = "forward/network";
/// Streams of the stages on the way back.
pub const REVERSE_STREAMS: &str = "reverse";

/// One of a path's two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the data's sender to its receiver.
    Forward,
    /// Back: the way of the acknowledgements.
    Reverse,
}

impl Direction {
    /// Both, forward first.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    /// `forward` or `reverse`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
    /// Its place in [`Direction::BOTH`].
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The other one.
    #[must_use]
    pub const fn back(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
