//! Duplication.
//!
//! What it is: netem's `duplicate P [CORRELATION]`: a second copy of the packet.
//! Source: tc-netem(8).
//! How it differs: the copy enters netem again (with duplication off) rather than the root of the tree above it; only
//! counters can tell. A lost original with a copy leaves one packet, as in Linux.
//! What it does not model: more than one copy.

use super::crandom::Crandom;
use crate::values::Prob;
use tcpscape_base::Stream;

/// Decides on copies.
#[derive(Clone, Debug)]
pub struct Duplicate {
    p: Prob,
    random: Crandom,
}

impl Duplicate {
    /// With its own stream.
    pub fn new(p: Prob, correlation: Prob, stream: Stream) -> Duplicate {
        Duplicate { p, random: Crandom::new(correlation, stream) }
    }
    /// Whether there is a second copy.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        self.random.hits(self.p)
    }
}
