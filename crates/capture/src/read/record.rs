//! What the two formats have in common: packets as records, and the interfaces that they were captured on, with their times.
//!
//! A clock that is set back would make a negative RTT of every segment in flight. Times that step back by more than [`DISORDER_NS`] are
//! therefore moved on from there, so that the packets keep their order and their distances; smaller steps are packets that several queues of
//! a card handed over in another order, and get the time of the packet before them. A step forward cannot be told from silence.

use super::link::LinkType;
use tcpscape_base::Time;

/// What the bytes at hand are.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The begin of something that has at least so many bytes.
    Needs(usize),
    /// A whole record of so many bytes.
    Whole(usize),
    /// The begin of so many bytes that nobody reads.
    Pass(u64),
    /// Nothing that could be a record, and so is all that follows: a sentence without its begin.
    Damaged(String),
}

/// A packet, with its link-layer header.
#[derive(Debug)]
pub struct Record<'a> {
    /// Number of its interface, from 0 over all sections of the file.
    pub interface: u32,
    /// What its bytes begin with.
    pub link: LinkType,
    /// When it was seen, never before the packet before it; None where the file does not say.
    pub at: Option<Time>,
    /// The same as the file has it, where a clock that was set back shows; the last one where it does not say.
    pub stamp: Time,
    /// Its bytes on the link.
    pub original: u32,
    /// Those of them that were captured.
    pub bytes: &'a [u8],
}

/// What packets were captured on.
#[derive(Clone, Debug)]
pub struct Interface {
    /// As the capture has it, cut to 64 bytes; empty where it has none.
    pub name: String,
    /// What its packets begin with.
    pub link: LinkType,
    /// Most bytes captured of a packet; 0 is all.
    pub snap_length: u32,
    /// Reads its times.
    pub clock: Clock,
    /// Packets of it.
    pub frames: u64,
    /// Packets that the capture lost, by its own count.
    pub drops: u64,
}

/// Bytes of the longest record that is read; what is longer is damage. libpcap's own limit of a packet is 256 KiB.
pub const LONGEST: usize = 1 << 24;

/// Steps back up to this are disorder of packets, not of the clock: 10 ms.
pub const DISORDER_NS: u64 = 10_000_000;

/// Reads the times of one interface.
#[derive(Clone, Debug)]
pub struct Clock {
    unit: Unit,
    /// Seconds to add to every time.
    offset_s: i64,
    /// Added so far so that time does not run backwards.
    shift: u64,
    last: u64,
    /// The last time as the file has it.
    pub stamp: Time,
    /// Steps back, and the longest of them, ns.
    pub steps: u64,
    /// The longest step back, ns.
    pub longest: u64,
    /// Packets that came with a time slightly before that of the packet before.
    pub disordered: u64,
}

/// How long a unit of the file's times is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many nanoseconds.
    Nanos(u64),
    /// So many units are a second; not a whole number of nanoseconds.
    PerSecond(u64),
}

impl Unit {
    /// From `if_tsresol`: a power of ten, or with the highest bit a power of two; None where 64 bits do not hold it.
    pub fn of_resolution(resolution: u8) -> Option<Unit> {
        let exponent = u32::from(resolution & 0x7f);
        if resolution & 0x80 != 0 {
            return 1u64.checked_shl(exponent).map(Unit::PerSecond);
        }
        if exponent <= 9 {
            return Some(Unit::Nanos(10u64.pow(9 - exponent)));
        }
        10u64.checked_pow(exponent).map(Unit::PerSecond)
    }
}

impl Clock {
    /// A clock of this unit.
    pub fn new(unit: Unit, offset_s: i64) -> Clock {
        Clock { unit, offset_s, shift: 0, last: 0, stamp: Time::ZERO, steps: 0, longest: 0, disordered: 0 }
    }

    /// The time of the next packet, given in units; never before that of the last one.
    pub fn read(&mut self, units: u64) -> Time {
        let raw = match self.unit {
            Unit::Nanos(n) => units.saturating_mul(n),
            Unit::PerSecond(n) => (u128::from(units) * NS_PER_S / u128::from(n)).min(u128::from(u64::MAX)) as u64,
        };
        let offset = self.offset_s.unsigned_abs().saturating_mul(NS_PER_S as u64);
        let raw = if self.offset_s < 0 { raw.saturating_sub(offset) } else { raw.saturating_add(offset) };
        self.stamp = Time(raw.min(LATEST));
        let at = self.stamp.0.saturating_add(self.shift).min(LATEST);
        if at < self.last {
            let back = self.last - at;
            if back > DISORDER_NS {
                self.steps += 1;
                self.longest = self.longest.max(back);
                self.shift = self.shift.saturating_add(back);
            } else {
                self.disordered += 1;
            }
        }
        self.last = self.last.max(at);
        Time(self.last)
    }
}

const NS_PER_S: u128 = 1_000_000_000;
/// The year 2116: what is later is damage, and differences stay far from the end of 64 bits.
const LATEST: u64 = u64::MAX / 4;
