//! The gaps of a few round trips, until what is seen of them suffices to name their causes; and where the rules cannot tell what held a flow, why.
//!
//! The rules rest on which ACK a departure answers. Two captures do not show it ([`Doubt`]).

use super::intervals::{Interval, Intervals};
use super::view::{Moment, View};
use super::window::{Ending, Evidence, Gap, Habits, BURST};
use super::{Cause, Data};
use serde::Serialize;
use std::ops::Range;

/// Most gaps that wait for their window's end.
const MOST_GAPS: usize = 512;

/// Collects gaps, and decides on them at the end of a window.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    window: Evidence,
    gaps: Vec<Gap>,
    most_gaps: usize,
    habits: Habits,
    /// Whether the burst that leaves now followed a full segment, and no ACK.
    is_timed_burst: bool,
    /// Where the capture does not show the cause.
    pub(super) doubts: Doubts,
    out: Intervals,
}

impl Judge {
    pub(super) fn new(most_intervals: usize) -> Judge {
        let out = Intervals::new(most_intervals);
        let (window, habits, doubts) = Default::default();
        Judge { window, gaps: Vec::new(), most_gaps: MOST_GAPS, habits, is_timed_burst: false, doubts, out }
    }
    /// Bytes of memory beside its own.
    pub(super) fn heap(&self) -> usize {
        self.gaps.capacity() * size_of::<Gap>() + self.out.heap()
    }
    /// Keeps at most so many intervals from now on, and decides after so many gaps at the latest.
    pub(super) fn bound(&mut self, most_intervals: usize, most_gaps: usize) {
        self.out.bound(most_intervals);
        self.most_gaps = most_gaps.min(MOST_GAPS);
    }
    /// The handshake is over: the first window begins.
    pub(super) fn begin(&mut self, handshake: Range<Moment>) {
        let Range { start, end } = handshake;
        self.out.push(start.t, end.t, Cause::Handshake, [start.frame, end.frame, 0, 0]);
        self.window.from = end.t;
    }
    /// In so much more time a departure would count as that of an ACK.
    pub(super) fn covered(&mut self, ns: u64) {
        self.window.covered += ns;
    }
    /// A segment left; so many bytes were in flight before it and are after it.
    pub(super) fn departed(&mut self, d: &Data, before: u64, after: u64) {
        let w = &mut self.window;
        w.full = w.full.max(d.mss.unwrap_or(0));
        if self.is_timed_burst {
            w.timed += u64::from(d.len);
        }
        w.flight_min = if w.segments == 0 { before } else { w.flight_min.min(before) };
        w.flight_max = w.flight_max.max(after);
        w.segments += 1;
        w.bytes += u64::from(d.len);
    }
    /// More follows a segment that was not full, without a request: what was written had all been sent.
    pub(super) fn ran_out(&mut self) {
        self.window.short += 1;
    }
    /// A gap has ended.
    pub(super) fn add(&mut self, gap: Gap) {
        if gap.to > gap.from {
            self.window.tight += if gap.is_tight { gap.to - gap.from } else { 0 };
            if gap.to - gap.from > BURST {
                self.is_timed_burst = gap.ending == Ending::Timer && !gap.is_drained;
                self.window.timed_bursts += u32::from(self.is_timed_burst);
            }
            self.gaps.push(gap);
        }
    }
    /// Whether the window, of this length, is over.
    pub(super) fn is_due(&self, t: u64, length: u64) -> bool {
        t >= self.window.from + length || self.gaps.len() >= self.most_gaps
    }
    /// Decides on the gaps of the window and begins the next one.
    pub(super) fn close(&mut self, t: u64, rtt_min: u64, view: &View) {
        self.window.to = t;
        self.window.rtt_min = rtt_min;
        self.habits.learn(&self.gaps, &self.window);
        let is_near = view.is_near();
        for g in self.gaps.drain(..) {
            let cause = if is_near { self.habits.cause_near(&g, &self.window) } else { self.habits.cause_far(&g, view.supposes()) };
            self.out.push(g.from, g.to, self.doubts.judged(cause, &g), g.frames);
        }
        self.window = Evidence { from: t, ..Evidence::default() };
    }
    /// The causes, and why they are not known for a part of the time.
    pub(super) fn finish(self) -> (Vec<Interval>, Option<Doubt>) {
        (self.out.finish(), self.doubts.longest())
    }
}

/// Why the capture does not show what held a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The data's receiver opened the connection and is nearer to the capture, and the segments have no timestamps: how late the sender's answers
    /// are here is shown by the SYN-ACK alone, which may have waited for the resolution of addresses.
    FarFromSender,
    /// The segments have no timestamps, so that nothing shows which of the last ACKs the sender knew when they left.
    NoTimestamps,
    /// The capture lacks packets, so that a pause in it need be none of the sender's.
    PacketsMissing,
}

/// What speaks for a doubt, and how long each held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubts {
    /// Whether the data's receiver opened the connection and is nearer to the capture.
    pub(super) is_far: bool,
    /// Whether the segments have no timestamps.
    pub(super) is_untimed: bool,
    /// Time without a cause for each doubt, ns.
    times: [u64; 3],
}

impl Doubts {
    /// Takes a segment.
    pub(super) fn data(&mut self, d: &Data) {
        self.is_untimed = d.tsval.is_none();
    }

    /// The cause of a gap, or unknown where it is in doubt.
    pub(super) fn judged(&mut self, cause: Cause, g: &Gap) -> Cause {
        let doubt = match cause {
            Cause::Application | Cause::SendBuffer | Cause::CongestionWindow | Cause::Pacing if self.is_far && self.is_untimed => {
                Doubt::FarFromSender
            }
            Cause::Application | Cause::SendBuffer | Cause::Pacing if g.is_unsure => Doubt::NoTimestamps,
            Cause::Unknown => Doubt::PacketsMissing,
            _ => return cause,
        };
        self.times[doubt as usize] += g.to - g.from;
        Cause::Unknown
    }

    /// The doubt that held longest.
    pub(super) fn longest(&self) -> Option<Doubt> {
        let all = [Doubt::FarFromSender, Doubt::NoTimestamps, Doubt::PacketsMissing];
        all.into_iter().filter(|&d| self.times[d as usize] > 0).max_by_key(|&d| self.times[d as usize])
    }
}
