//! Packets that a capture shows more than once: on the way through the capturing machine, in at one interface and out at another.
//!
//! How it works: a direction belongs to the interface that showed it first. A packet that comes from another interface, or with a lower time
//! to live, and is the same as one just seen, is left out; after a few of them so is everything from that interface. A bridge, and a file into which
//! captures of two places were merged, show copies without such a mark: an acknowledgement with the same identification is left out too, and of data
//! that were seen twice the analysis knows by itself.

use super::answers::mix;
use crate::packet::Packet;

/// Packets among which a second copy is looked for: sets by digest, of the newest each.
const SETS: usize = 256;
const IN_SET: usize = 4;
/// Second copies after which an interface is left out.
const ENOUGH: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    interface: u32,
    ttl: u8,
    /// An interface that shows the same packets again, and how often it has.
    again: Option<(u32, u32)>,
}

/// What is known of the ways on which the packets of both ends were seen.
#[derive(Debug, Default)]
pub struct Forwarded {
    sightings: [Option<Sighting>; 2],
    last: u64,
    recent: Option<Box<[[u64; IN_SET]; SETS]>>,
    /// Copies left out.
    pub count: u64,
}

impl Forwarded {
    /// Whether this packet was seen before on its way.
    pub fn is_again(&mut self, side: usize, p: &Packet) -> bool {
        let first = *self.sightings[side].get_or_insert(Sighting { interface: p.interface, ttl: p.ttl, again: None });
        let digest = digest(p, side);
        let is_other = p.interface != first.interface || p.ttl < first.ttl;
        let is_left_out = p.interface != first.interface && first.again.is_some_and(|(i, n)| i == p.interface && n >= ENOUGH);
        let may_be_copy = is_other || (p.len == 0 && p.id != 0);
        let is_again = is_left_out || (may_be_copy && self.has(digest));
        if is_again && !is_other {
            self.count += 1;
            return true;
        }
        if is_again {
            self.count += 1;
            let n = first.again.filter(|a| a.0 == p.interface).map_or(0, |a| a.1);
            self.sightings[side] = Some(Sighting { again: Some((p.interface, n.saturating_add(1))), ..first });
            return true;
        }
        if is_other {
            self.remembers();
        }
        self.last = digest;
        if let Some(recent) = &mut self.recent {
            let set = &mut recent[set_of(digest)];
            set.rotate_right(1);
            set[0] = digest;
        }
        false
    }

    /// Copies were seen: packets are remembered from now on.
    pub fn remembers(&mut self) {
        self.recent.get_or_insert_with(|| Box::new([[0; IN_SET]; SETS]));
    }

    /// Bytes of memory beside its own.
    pub fn heap(&self) -> usize {
        self.recent.as_ref().map_or(0, |r| size_of_val(&**r))
    }

    fn has(&self, digest: u64) -> bool {
        self.last == digest || self.recent.as_ref().is_some_and(|r| r[set_of(digest)].contains(&digest))
    }
}

/// The set of a digest, whose lowest bit is always set.
fn set_of(digest: u64) -> usize {
    (digest >> 1) as usize % SETS
}

/// What two copies of a packet have in common.
fn digest(p: &Packet, side: usize) -> u64 {
    let stamps = p.options.timestamps.map_or(0, |(a, b)| u64::from(a) << 32 | u64::from(b));
    let words = [
        u64::from(p.seq) << 32 | u64::from(p.ack),
        u64::from(p.len) << 32 | u64::from(p.id) << 16 | u64::from(p.window),
        stamps,
        u64::from(p.flags.0) << 8 | side as u64,
        u64::from(p.options.blocks[0].0) << 32 | u64::from(p.options.blocks[0].1),
    ];
    words.into_iter().fold(0x9e37_79b9_7f4a_7c15, mix) | 1
}
