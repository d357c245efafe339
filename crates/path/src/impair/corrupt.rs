//! Corruption.
//!
//! What it is: netem's `corrupt P [CORRELATION]`, a flipped bit, here a flag: the receiver's checksum refuses the packet.
//! Source: tc-netem(8).
//! How it differs: Linux flips a bit of the first (linear) part; whichever it is, a checksum of the IP or TCP header fails.
//! What it does not model: damage to the Ethernet header, which would lose the packet earlier with the same result.

use super::crandom::Crandom;
use crate::values::Prob;
use tcpscape_base::Stream;

/// Decides on damage.
#[derive(Clone, Debug)]
pub struct Corrupt {
    p: Prob,
    random: Crandom,
}

impl Corrupt {
    /// With its own stream.
    pub fn new(p: Prob, correlation: Prob, stream: Stream) -> Corrupt {
        Corrupt { p, random: Crandom::new(correlation, stream) }
    }
    /// Whether a bit flips.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        self.random.hits(self.p)
    }
}
