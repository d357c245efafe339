//! Numbers of flows, as queues for many flows need them.

use super::parse::Ends;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use tcpscape_path::Direction;

/// Flow number of what is no IP packet; the simulator's neighbour discovery has it too.
pub const NO_FLOW: u32 = u32::MAX;
/// Most flows that have a number of their own.
const MOST: usize = 1 << 16;

/// Flows with ports are numbered as they appear, both directions of a connection alike, so that the first connection is the simulator's
/// flow 0. Without ports, and past [`MOST`] flows, the number is a hash.
#[derive(Debug, Default)]
pub struct Flows {
    known: HashMap<Ends, u32>,
}

impl Flows {
    /// The number of the flow between these ends.
    pub fn number(&mut self, direction: Direction, ends: &Ends) -> u32 {
        let ends = match direction {
            Direction::Forward => *ends,
            Direction::Reverse => {
                Ends { addresses: [ends.addresses[1], ends.addresses[0]], ports: [ends.ports[1], ends.ports[0]], ..*ends }
            }
        };
        if ends.ports == [0; 2] {
            return hashed(&ends);
        }
        let next = self.known.len();
        match self.known.entry(ends) {
            Entry::Occupied(number) => *number.get(),
            Entry::Vacant(place) if next < MOST => *place.insert(next as u32),
            Entry::Vacant(_) => hashed(&ends),
        }
    }
}

/// A number above those of [`Flows`], the same in every run, and not [`NO_FLOW`].
fn hashed(ends: &Ends) -> u32 {
    let mut hasher = DefaultHasher::new();
    ends.hash(&mut hasher);
    (hasher.finish() as u32 | 1 << 31) & !1
}
