//! RED's law: the average length of a queue, and what it means for a packet that comes. red and choke are under it.

use super::tc::Computed;
use super::RedSpec;
use tcpscape_base::{Stream, Time};

/// The average and the spacing of drops.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    tc: Computed,
    /// Thresholds, B << wlog.
    pub(super) min: u64,
    max: u64,
    /// Bytes << wlog.
    pub(super) avg: u64,
    /// Packets since the last strike; -1 when the next draws a new spacing.
    count: i32,
    /// The random number of this spacing: bytes above `min` that must have been counted.
    spacing: u32,
    /// Probability at `max`, Q0.32, and per byte above `min`.
    pub(super) top: u32,
    per_byte: u32,
    pub(super) idle: Option<Time>,
    stream: Stream,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Early,
    Forced,
}

/// Most that an idle time counts, in cells of the table of tc's.
const CELLS: u64 = 255;

impl Law {
    /// A queue that has always been empty.
    pub fn new(s: &RedSpec, stream: Stream) -> Law {
        let tc = Computed::of(s).expect("a validated red");
        let scaled = |bytes: u32| u64::from(bytes) << tc.wlog;
        let (min, max) = (scaled(s.min), scaled(s.max));
        let mut a = Law { min, max, avg: 0, count: -1, spacing: 0, top: tc.max_p, per_byte: 1, idle: Some(Time::ZERO), stream, tc };
        if a.top == 0 {
            a.top = (u32::MAX >> a.tc.plog).wrapping_mul(a.width());
        }
        a.per_byte = (a.top / a.width()).max(1);
        a
    }
    fn width(&self) -> u32 {
        ((self.max - self.min) >> self.tc.wlog) as u32
    }

    /// An idle time counts as small packets would have. Linux: red_calc_qavg_from_idle_time()
    fn after_idling(&self, now: Time, since: Time) -> u64 {
        let micros = (now.since(since).0 / 1_000).min(CELLS << self.tc.cell_log);
        match self.tc.damping[(micros >> self.tc.cell_log) as usize & 0xff] {
            // The table is coarse at its start: there (1−W)^m is 1−mW.
            0 => match (self.avg * micros) >> self.tc.cell_log {
                decay if decay < self.avg >> 1 => self.avg - decay,
                _ => self.avg >> 1,
            },
            shift => self.avg >> shift,
        }
    }

    /// A packet comes and finds `backlog`. Linux: red_calc_qavg()
    pub fn arrival(&mut self, now: Time, backlog: u64) -> Fate {
        self.observe(now, backlog);
        self.fate()
    }

    /// The first half of an arrival: moves the average, and says whether it has reached `min`.
    pub fn observe(&mut self, now: Time, backlog: u64) -> bool {
        self.avg = match self.idle.take() {
            Some(since) => self.after_idling(now, since),
            None => self.avg + backlog - (self.avg >> self.tc.wlog),
        };
        self.avg >= self.min
    }

    /// Somebody has asked for a packet in vain: from here on the queue is idle.
    pub fn idles(&mut self, now: Time) {
        self.idle.get_or_insert(now);
    }

    /// The second half: what happens to the packet.
    pub fn fate(&mut self) -> Fate {
        if self.avg < self.min || self.avg >= self.max {
            self.count = -1;
            return if self.avg < self.min { Fate::Pass } else { Fate::Forced };
        }
        self.count += 1;
        if self.count == 0 {
            self.spacing = self.draw();
            return Fate::Pass;
        }
        let above = (self.avg - self.min) >> self.tc.wlog;
        if above * (self.count as u64) < u64::from(self.spacing) {
            return Fate::Pass;
        }
        self.count = 0;
        self.spacing = self.draw();
        Fate::Early
    }
    fn draw(&mut self) -> u32 {
        self.stream.next_u32() / self.per_byte
    }

    /// Keeps the average between 0.4 and 0.6 of the way from min to max. Floyd, Gummadi, Shenker 2001; Linux: red_adaptative_algo()
    pub fn adapt(&mut self, now: Time) {
        let avg = self.idle.map_or(self.avg, |since| self.after_idling(now, since)) >> self.tc.wlog;
        let (min, fifth) = (self.min >> self.tc.wlog, u64::from(self.width() / 5));
        if avg > min + 3 * fifth && self.top <= TOP_MAX {
            self.top += (self.top / 4).min(TOP_STEP);
        } else if avg < min + 2 * fifth && self.top >= TOP_MIN {
            self.top = self.top / 10 * 9;
        }
        let width = self.width();
        self.per_byte = ((self.top + width / 2) / width).max(1);
    }
}

/// Bounds and step of the adapted probability, Q0.32: 1 %, 50 %, 1 %. Linux: MAX_P_MIN, MAX_P_MAX, MAX_P_ALPHA
const TOP_MIN: u32 = 42_949_673;
const TOP_MAX: u32 = 50 * TOP_MIN;
pub(super) const TOP_STEP: u32 = TOP_MIN;
