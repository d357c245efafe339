//! Where the rules cannot tell what held a flow, and why.
//!
//! The rules rest on which ACK a departure answers. Two captures do not show it.

use super::window::Gap;
use super::{Cause, Data};
use serde::Serialize;

/// Why the capture does not show what held a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The data's receiver opened the connection and is nearer to the capture, and the segments have no timestamps: how late the sender's answers
    /// are here is shown by the SYN-ACK alone, which may have waited for the resolution of addresses.
    FarFromSender,
    /// The segments have no timestamps, so that nothing shows which of the last ACKs the sender knew when they left.
    NoTimestamps,
}

/// What speaks for a doubt, and how long each held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// Whether the data's receiver opened the connection and is nearer to the capture.
    pub(super) is_far: bool,
    /// Whether the segments have no timestamps.
    pub(super) is_untimed: bool,
    /// Time without a cause for each doubt, ns.
    times: [u64; 2],
}

impl Doubts {
    /// Takes a segment.
    pub(super) fn data(&mut self, d: &Data) {
        self.is_untimed = d.tsval == 0;
    }

    /// The cause of a gap, or unknown where it is in doubt.
    pub(super) fn judged(&mut self, cause: Cause, g: &Gap) -> Cause {
        let doubt = match cause {
            Cause::Application | Cause::SendBuffer | Cause::CongestionWindow | Cause::Pacing if self.is_far && self.is_untimed => {
                Doubt::FarFromSender
            }
            Cause::Application | Cause::SendBuffer | Cause::Pacing if g.is_unsure => Doubt::NoTimestamps,
            _ => return cause,
        };
        self.times[doubt as usize] += g.to - g.from;
        Cause::Unknown
    }

    /// The doubt that held longest.
    pub(super) fn longest(&self) -> Option<Doubt> {
        let all = [Doubt::FarFromSender, Doubt::NoTimestamps];
        all.into_iter().filter(|&d| self.times[d as usize] > 0).max_by_key(|&d| self.times[d as usize])
    }
}
