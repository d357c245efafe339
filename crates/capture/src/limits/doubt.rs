//! Where the rules cannot tell what held a flow, and why.
//!
//! The rules rest on which ACK a departure answers and on which segments are full. Three captures do not show the one or the other.

use super::window::Gap;
use super::{Cause, Data};
use serde::Serialize;

/// Votes for a size below the MSS from which on it is that of full segments.
const REPEATED: u32 = 4;
/// Most votes: a path that takes smaller segments from now on is noticed soon.
const MOST_VOTES: u32 = 16;

/// Why the capture does not show what held a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The data's receiver opened the connection and is nearer to the capture, and the segments have no timestamps: how late the sender's answers
    /// are here is shown by the SYN-ACK alone, which may have waited for the resolution of addresses.
    FarFromSender,
    /// The segments have no timestamps, so that nothing shows which of the last ACKs the sender knew when they left.
    NoTimestamps,
    /// The path takes smaller segments than the SYNs agreed on, so that no segment counts as full.
    SmallSegments,
}

/// What speaks for a doubt, and how long each held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// Whether the data's receiver opened the connection and is nearer to the capture.
    pub(super) is_far: bool,
    /// Whether the segments have no timestamps.
    pub(super) is_untimed: bool,
    full: Full,
    /// Time without a cause for each doubt, ns.
    times: [u64; 3],
}

/// The size of full segments as the packets show it: that of most of those which cannot be the end of a write (Boyer and Moore 1991).
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    size: u32,
    votes: u32,
    mss: u32,
}

impl Doubts {
    /// Takes a segment.
    pub(super) fn data(&mut self, d: &Data) {
        self.is_untimed = d.tsval == 0;
        self.full.data(d);
    }

    /// Whether the path takes smaller segments than the MSS.
    fn is_small(&self) -> bool {
        self.full.size < self.full.mss && self.full.votes >= REPEATED
    }

    /// The cause of a gap, or unknown where it is in doubt.
    pub(super) fn judged(&mut self, cause: Cause, g: &Gap, is_idle: bool) -> Cause {
        let doubt = match cause {
            Cause::Application | Cause::SendBuffer | Cause::CongestionWindow | Cause::Pacing if self.is_far && self.is_untimed => {
                Doubt::FarFromSender
            }
            Cause::Application | Cause::SendBuffer if self.is_small() && !is_idle => Doubt::SmallSegments,
            Cause::Application | Cause::SendBuffer | Cause::Pacing if g.is_unsure => Doubt::NoTimestamps,
            _ => return cause,
        };
        self.times[doubt as usize] += g.to - g.from;
        Cause::Unknown
    }

    /// The doubt that held longest.
    pub(super) fn longest(&self) -> Option<Doubt> {
        let all = [Doubt::FarFromSender, Doubt::NoTimestamps, Doubt::SmallSegments];
        all.into_iter().filter(|&d| self.times[d as usize] > 0).max_by_key(|&d| self.times[d as usize])
    }
}

impl Full {
    /// Takes a segment or a super-packet: one without PSH ends in the middle of a write, and what the kernel cuts into several has full ones.
    fn data(&mut self, d: &Data) {
        self.mss = d.mss;
        let is_cut = |size: u32| size > 0 && d.len > size && d.len % size == 0;
        match d.len {
            len if len == d.mss || is_cut(d.mss) => self.vote(d.mss),
            len if len < d.mss && !d.psh => self.vote(len),
            len if len > d.mss && is_cut(self.size) => self.vote(self.size),
            _ => {}
        }
    }

    fn vote(&mut self, size: u32) {
        if size == self.size {
            self.votes = (self.votes + 1).min(MOST_VOTES);
        } else if self.votes == 0 {
            (self.size, self.votes) = (size, 1);
        } else {
            self.votes -= 1;
        }
    }
}
