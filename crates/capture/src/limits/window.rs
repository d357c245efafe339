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
    /// Whether the receiver's window had hardly any room after that segment.
    pub(super) is_tight: bool,
    /// Whether an ACK that the segment at its end may answer, or not, would decide.
    pub(super) is_unsure: bool,
    pub(super) frames: Frames,
}

/// What a window shows; times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Its begin and end.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Departures, those of them that were not full segments, their bytes.
    pub(super) segments: u32,
    pub(super) short: u32,
    pub(super) bytes: u64,
    /// Time in which a departure would count as that of an ACK.
    pub(super) covered: u64,
    /// Bytes in flight after departures: least and largest.
    pub(super) flight_min: u64,
    pub(super) flight_max: u64,
    /// Least RTT of the flow.
    pub(super) rtt_min: u64,
    /// Time in gaps that began with hardly any room in the receiver's window.
    pub(super) tight: u64,
    /// Payload of the largest full segment.
    pub(super) full: u32,
    /// Bursts that followed a full segment and no ACK, and their bytes.
    pub(super) timed_bursts: u32,
    pub(super) timed: u64,
}

/// How the sender's departures were triggered lately: counts and times of gaps, halved with each window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    /// Gaps that an ACK ended, after a full segment and after one that was not.
    ack: [f64; 2],
    /// Gaps that nothing seen ended, likewise.
    timer: [f64; 2],
    /// Sum of the logarithms of the latter's times, ns.
    timer_logs: [f64; 2],
    /// Bursts that followed a full segment and no ACK, their bytes, and those that a pacer sends at once.
    bursts: f64,
    burst_bytes: f64,
    quantum: f64,
    /// Segments, and those of them that were not full.
    segments: f64,
    short: f64,
    /// Time in gaps, and in those that began with hardly any room in the receiver's window, ns.
    time: f64,
    tight: f64,
    /// Largest flights of the last windows.
    flights: [u64; WINDOWS],
    /// Least over largest flight of windows, averaged.
    trough: f64,
    /// Bytes that the path holds without a queue: delivery rate × least RTT.
    bdp: f64,
    /// Expected share of coincidences between ACKs and departures.
    chance: f64,
    windows: usize,
}

/// Windows over which a flight must stay the same for a send buffer to be what holds it.
const WINDOWS: usize = 8;
/// What a pacer sends at once is two segments, or what it carries in so long, ns, twice Linux's (`sk_pacing_shift`, and since 5.18 more within the least
/// round trip that follows, `tcp_tso_rtt_log`), with half a segment more.
const QUANTUM: f64 = 2e6;
const PACKETS: f64 = 2.5;
const NEAR: u64 = 8_000_000;
/// More bursts than one in the last windows that had any, of which each before the last counts half as much: their size is a habit.
const OFTEN: f64 = 1.5;
/// Gaps shorter than this are within one burst, ns.
pub(super) const BURST: u64 = 20_000;
/// More gaps than this share are ended by timers: the sender paces, the rest are coincidences.
const PACED: f64 = 0.2;
/// A paced sender's gap of so many times the usual one waited for its ACK.
const WAITED: f64 = 3.0;
/// A gap of so many times the usual one that no ACK ended is no pace: the rate of a pacer does not change so fast.
const STOPPED: f64 = 6.0;
/// More gaps than this share without an ACK at their end: the application writes when it likes.
const UNASKED: f64 = 0.3;
/// More segments than this share that are not full: what was written had all been sent, again and again.
const SHORT: f64 = 0.008;
/// More time than this share with hardly any room in the receiver's window.
const TIGHT: f64 = 0.3;
/// The same where the window's scale was not seen but supposed from what fitted.
const TIGHT_IF_SUPPOSED: f64 = 0.8;
/// The largest flights of windows differ by less than this share: something of a fixed size holds them.
const PLATEAU: f64 = 0.1;
/// A flight that never falls below this share of its largest value is not that of a writer who waits for room.
const TROUGH: f64 = 0.75;
/// More than this many times of what the path holds: the congestion window of a paced sender.
const FILLED: f64 = 1.7;

impl Habits {
    /// Takes a window's gaps.
    pub(super) fn learn(&mut self, gaps: &[Gap], window: &Evidence) {
        for k in 0..2 {
            self.ack[k] /= 2.0;
            self.timer[k] /= 2.0;
            self.timer_logs[k] /= 2.0;
        }
        if window.timed_bursts > 0 {
            // A window without bursts says nothing of their size: what is written rarely is as large.
            self.bursts = self.bursts / 2.0 + f64::from(window.timed_bursts);
            self.burst_bytes = self.burst_bytes / 2.0 + window.timed as f64;
        }
        let at_once = window.bytes as f64 / (window.to - window.from).max(1) as f64 * QUANTUM;
        let is_far = window.rtt_min > NEAR;
        self.quantum = if is_far { at_once.max(PACKETS * f64::from(window.full)) } else { f64::INFINITY };
        self.segments = self.segments / 2.0 + f64::from(window.segments);
        self.short = self.short / 2.0 + f64::from(window.short);
        self.time = self.time / 2.0 + (window.to - window.from) as f64;
        self.tight = self.tight / 2.0 + window.tight as f64;
        if window.segments > 1 && window.flight_max > 0 {
            let trough = window.flight_min as f64 / window.flight_max as f64;
            self.trough = if self.windows == 0 { trough } else { 0.75 * self.trough + 0.25 * trough };
        }
        let length = (window.to - window.from).max(1) as f64;
        let bdp = window.bytes as f64 / length * window.rtt_min as f64;
        self.bdp = if self.windows < 2 { bdp } else { 0.75 * self.bdp + 0.25 * bdp };
        self.chance = 0.75 * self.chance + 0.25 * (window.covered as f64 / length);
        self.flights[self.windows % WINDOWS] = window.flight_max;
        self.windows += 1;
        for g in gaps.iter().filter(|g| g.to - g.from > BURST && !g.is_unsure) {
            let k = usize::from(g.is_drained);
            match g.ending {
                Ending::Ack => self.ack[k] += 1.0,
                Ending::Timer => {
                    self.timer[k] += 1.0;
                    self.timer_logs[k] += ((g.to - g.from) as f64).ln();
                }
                Ending::Known(_) => {}
            }
        }
    }

    /// Share of gaps that no ACK ended.
    fn timers(&self, k: usize) -> f64 {
        self.timer[k] / (self.timer[k] + self.ack[k]).max(1e-9)
    }

    /// How much the largest flights of the last windows differ, as a share.
    fn spread(&self) -> f64 {
        let flights = &self.flights[..self.windows.min(WINDOWS)];
        let (least, most) = flights.iter().fold((u64::MAX, 0), |(a, b), &f| (a.min(f), b.max(f)));
        if self.windows < WINDOWS || most == 0 {
            return 1.0;
        }
        (most - least) as f64 / most as f64
    }

    /// Whether what leaves at times that no ACK explains leaves in larger bursts than a pacer sends: the writes of an application, of which the end
    /// waits to become a full segment (Nagle's algorithm).
    fn are_writes(&self) -> bool {
        self.bursts >= OFTEN && self.burst_bytes > self.bursts * self.quantum
    }

    /// The cause of a gap seen at the sender.
    pub(super) fn cause_near(&self, g: &Gap, window: &Evidence) -> Cause {
        let usual = (self.timer_logs[0] / self.timer[0].max(1e-9)).exp();
        let is_paced = self.timers(0) >= PACED;
        match (g.ending, g.is_drained) {
            (Ending::Known(cause), _) => cause,
            (Ending::Ack, true) if self.timers(1) < UNASKED => Cause::SendBuffer,
            (_, true) => Cause::Application,
            (Ending::Ack, false) if !is_paced || self.are_writes() => Cause::CongestionWindow,
            (Ending::Timer, false) if self.are_writes() => Cause::Application,
            (Ending::Ack, false) if (g.to - g.from) as f64 > WAITED * usual => self.waited(window),
            (Ending::Timer, false) if (g.to - g.from) as f64 > STOPPED * usual => Cause::Application,
            (_, false) => Cause::Pacing,
        }
    }

    /// What a paced sender waited for when it waited for an ACK. A window that paces is there for more than the path holds
    /// (draft-ietf-ccwg-bbr §5.6.4: twice as much), except while it probes for the least RTT; a send buffer may be smaller.
    fn waited(&self, window: &Evidence) -> Cause {
        let is_small = window.flight_max <= 5 * 1_500;
        if is_small || window.flight_max as f64 > FILLED * self.bdp || self.trough > TROUGH {
            Cause::CongestionWindow
        } else {
            Cause::SendBuffer
        }
    }

    /// The cause of a gap seen elsewhere: the path has changed the spacing of the segments, so that the window decides as a whole.
    pub(super) fn cause_far(&self, g: &Gap, is_supposed: bool) -> Cause {
        match g.ending {
            Ending::Known(cause) => cause,
            _ if self.tight > self.time * if is_supposed { TIGHT_IF_SUPPOSED } else { TIGHT } => Cause::ReceiveWindow,
            _ if self.short > SHORT * self.segments => self.drained(),
            _ => Cause::CongestionWindow,
        }
    }

    /// What a sender waits for that has sent all it had: its application, or room in its buffer for what the application writes. A blocked
    /// writer goes on when a third of the buffer is free (the default of Linux's sockets), so that its flight falls by so much.
    fn drained(&self) -> Cause {
        if self.trough > TROUGH {
            return Cause::Application;
        }
        let is_asked = self.timers(1) < UNASKED;
        if self.chance < 0.5 && is_asked || self.chance >= 0.5 && self.spread() < PLATEAU {
            Cause::SendBuffer
        } else {
            Cause::Application
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn gap(ns: u64, ending: Ending) -> Gap {
        Gap { from: 0, to: ns, ending, is_drained: false, is_tight: false, is_unsure: false, frames: Frames::default() }
    }

    /// What a gap far from the sender means after a window in which so many of 10,000 segments were not full and so much of the time was tight.
    fn far(short: u32, tight: f64, is_supposed: bool) -> Cause {
        let to = 1_000 * MS;
        let mut habits = Habits::default();
        habits.learn(&[], &Evidence { to, segments: 10_000, short, tight: (tight * to as f64) as u64, ..Evidence::default() });
        habits.cause_far(&gap(MS, Ending::Ack), is_supposed)
    }

    /// Why a paced sender waited for an ACK, `flight` bytes being in flight at most, on a path that holds 100,000.
    fn near(flight: u64) -> Cause {
        let window =
            Evidence { to: 100 * MS, rtt_min: 10 * MS, bytes: 1_000_000, segments: 690, flight_max: flight, ..Evidence::default() };
        let mut habits = Habits::default();
        habits.learn(&[gap(MS, Ending::Timer); 9], &window);
        habits.cause_near(&gap(9 * MS, Ending::Ack), &window)
    }

    /// Each share that decides is told within a tenth of where it lies: no rule moves further without a test that fails.
    #[test]
    fn causes_change_where_the_shares_lie() {
        assert_eq!(
            [far(73, 0.0, false), far(87, 0.0, false)],
            [Cause::CongestionWindow, Cause::SendBuffer],
            "0.8 % of the segments are not full"
        );
        assert_eq!(
            [far(0, 0.275, false), far(0, 0.325, false)],
            [Cause::CongestionWindow, Cause::ReceiveWindow],
            "30 % of the time is tight"
        );
        assert_eq!(
            [far(0, 0.73, true), far(0, 0.87, true)],
            [Cause::CongestionWindow, Cause::ReceiveWindow],
            "80 % of it, if the scale is supposed"
        );
        assert_eq!([near(155_000), near(185_000)], [Cause::SendBuffer, Cause::CongestionWindow], "1.7 times of what the path holds");
    }
}
