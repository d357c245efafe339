//! A few round trips of gaps whose cause one gap alone does not show, and the rules that decide between the causes.

use super::intervals::Frames;
use super::Cause;

/// What ended a gap between two departures, where that alone does not name the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// An ACK: the next segment left as it came.
    Ack,
    /// Nothing that the capture shows.
    Timer,
    /// The cause is known.
    Known(Cause),
}

/// A gap between two departures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) ending: Ending,
    /// Whether the last segment before it was not full: everything written had been sent.
    pub(super) is_drained: bool,
    pub(super) frames: Frames,
}

/// What a window shows; times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Its begin.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// Time in gaps that an ACK ended, after a full segment and after a segment that was not full.
    pub ack: [u64; 2],
    /// Time in gaps that nothing seen ended, likewise.
    pub timer: [u64; 2],
    /// Time in gaps whose cause is known.
    pub known: u64,
    /// Departures (bursts), segments, bytes, segments that were not full.
    pub bursts: u32,
    /// Segments.
    pub segments: u32,
    /// Bytes.
    pub bytes: u64,
    /// Segments that were not full.
    pub short: u32,
    /// ACKs that the sender got.
    pub acks: u32,
    /// Bytes in flight after departures: least, largest, sum.
    pub flight_min: u64,
    /// Largest.
    pub flight_max: u64,
    /// Sum over segments.
    pub flight_sum: u64,
    /// Smoothed RTT, its least value, response delay.
    pub rtt: u64,
    /// Least RTT.
    pub rtt_min: u64,
    /// Response delay.
    pub response: u64,
    /// Room in the receiver's window after the last segment.
    pub room: u64,
}

impl Evidence {
    /// Adds a gap.
    pub(super) fn gap(&mut self, g: &Gap) {
        let length = g.to - g.from;
        match g.ending {
            Ending::Ack => self.ack[usize::from(g.is_drained)] += length,
            Ending::Timer => self.timer[usize::from(g.is_drained)] += length,
            Ending::Known(_) => self.known += length,
        }
    }

    /// The cause of gaps that ended so.
    pub(super) fn cause(&self, ending: Ending, is_drained: bool) -> Cause {
        match ending {
            Ending::Known(cause) => cause,
            Ending::Ack if is_drained => Cause::SendBuffer,
            Ending::Ack => Cause::CongestionWindow,
            Ending::Timer if is_drained => Cause::Application,
            Ending::Timer => Cause::Pacing,
        }
    }
}
