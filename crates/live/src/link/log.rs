//! What became of each packet: a log with a limit.

use super::frame::Frame;
use std::sync::Arc;
use tcpscape_base::Time;
use tcpscape_path::discipline::Cause;

/// Most packets of a direction that are kept: about 100 bytes for each.
pub const MOST_PACKETS: usize = 1 << 20;

/// The log of one direction.
#[derive(Debug, Default)]
pub struct Log {
    /// Packets in the order in which they came; the n-th has number n.
    pub packets: Vec<Arrival>,
    /// What became of them, in the order in which it did; a packet with a copy leaves twice, one that is still inside has no entry.
    pub events: Vec<Event>,
    /// Packets that came when the log was full.
    pub beyond: u64,
    /// The frames in which the packets came; then how many bytes of them may still be whole.
    pub(crate) frames: Vec<Arc<Frame>>,
    budget: u64,
}

/// A packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Its flow's number.
    pub flow: u32,
    /// Bytes that a qdisc counts.
    pub size: u32,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The packet's number.
    pub number: u64,
    /// What.
    pub fate: Fate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A queue dropped it.
    Dropped {
        /// When.
        at: Time,
        /// Number of the stage in its path.
        stage: usize,
        /// Why.
        cause: Cause,
    },
    /// It left.
    Left {
        /// When it should.
        due: Time,
        /// When it was handed over.
        sent: Time,
        /// Whether it got a CE mark here.
        marked: bool,
        /// The bit that was flipped, counted from the packet's first, eight to a byte.
        damaged: Option<u32>,
    },
    /// Its damage could not be seen by the receiver, so it was dropped when it was due.
    Unseen {
        /// When it was due.
        due: Time,
    },
}

impl Log {
    /// Empty; of frames `budget` bytes are kept whole.
    pub(crate) fn new(budget: u64) -> Log {
        Log { budget, ..Log::default() }
    }

    /// A frame of so many packets came.
    pub(crate) fn arrives(&mut self, at: Time, flow: u32, frame: &Arc<Frame>) {
        if self.packets.len() < MOST_PACKETS {
            self.keep(frame);
        }
        for n in 0..frame.count() {
            if self.packets.len() < MOST_PACKETS {
                self.packets.push(Arrival { at, flow, size: frame.size(n, 1) });
            } else {
                self.beyond += 1;
            }
        }
    }

    /// Keeps a frame, whole or its headers.
    fn keep(&mut self, frame: &Arc<Frame>) {
        let bytes = frame.bytes.len() as u64;
        self.frames.push(if bytes <= self.budget { Arc::clone(frame) } else { Arc::new(frame.without_payload()) });
        self.budget = self.budget.saturating_sub(bytes);
    }

    /// The same became of `count` packets from `number`.
    pub(crate) fn add(&mut self, number: u64, count: u16, fate: Fate) {
        let kept = self.packets.len() as u64;
        // Copies could be more than packets.
        let room = (2 * MOST_PACKETS).saturating_sub(self.events.len());
        self.events.extend((number..number + u64::from(count)).filter(|n| *n < kept).take(room).map(|number| Event { number, fate }));
    }
}
