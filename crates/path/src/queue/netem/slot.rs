//! netem's slots: packets are handed out only when a slot opens, so many at a time.
//!
//! What it is: `slot MIN [MAX]` or `slot distribution NAME DELAY JITTER`, with `packets N` and `bytes N` a slot.
//! Source: tc-netem(8).
//! How it differs: nothing known.
//! What it does not model: user-made distribution tables.

use crate::parts::dist::{self, Table};
use crate::values::{Dist, SpecError};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Stream};

/// Slots: when they open and what passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Least time to the next slot; the mean with a distribution.
    #[serde(default)]
    pub min: Duration,
    /// Most time to the next slot; the spread with a distribution.
    #[serde(default)]
    pub max: Duration,
    /// Draw the time from this distribution instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Dist>,
    /// Packets a slot; 0 is no limit.
    #[serde(default)]
    pub packets: u32,
    /// Bytes a slot; 0 is no limit.
    #[serde(default)]
    pub bytes: u32,
}

impl Slot {
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        if self.distribution == Some(Dist::Uniform) {
            return Err(SpecError::new("slot distribution", "takes normal, pareto or paretonormal; without it slots are uniform"));
        }
        if self.distribution.is_none() && self.min > self.max {
            return Err(SpecError::new("slot", "the least time must not exceed the most"));
        }
        Ok(())
    }
}

/// Slots at run time.
#[derive(Clone, Debug)]
pub struct SlotMachine {
    spec: Slot,
    table: Option<&'static Table>,
    opens_at: i64,
    gone: Gone,
    stream: Stream,
}

/// What has gone through the current slot.
#[derive(Clone, Copy, Debug, Default)]
struct Gone {
    packets: u64,
    bytes: u64,
}

impl SlotMachine {
    /// The first slot is open.
    pub fn new(spec: &Slot, stream: Stream) -> SlotMachine {
        let table = spec.distribution.and_then(dist::table);
        SlotMachine { spec: spec.clone(), table, opens_at: 0, gone: Gone::default(), stream }
    }
    /// The next slot opens a drawn time from now.
    fn move_on(&mut self, now: i64) {
        let (min, max) = (self.spec.min.0, self.spec.max.0);
        let wait = match self.table {
            Some(t) => dist::sample(min as i64, i32::try_from(max).unwrap_or(i32::MAX), self.stream.next_u32(), Some(t)),
            None => (min + ((u128::from(max - min) * u128::from(self.stream.next_u32())) >> 32) as u64) as i64,
        };
        (self.opens_at, self.gone) = (now + wait, Gone::default());
    }
    /// When the current slot opens, for a packet due at `due`: a slot that opens before it is moved on.
    #[inline]
    pub fn opens(&mut self, now: i64, due: i64) -> i64 {
        if self.opens_at < due {
            self.move_on(now);
        }
        self.opens_at
    }
    /// When the current slot opens.
    #[inline]
    pub fn at(&self) -> i64 {
        self.opens_at
    }
    /// A packet of this size went through the slot, which may be full now.
    #[inline]
    pub fn used(&mut self, now: i64, size: u32) {
        let most = |n: u32| if n == 0 { UNLIMITED } else { u64::from(n) };
        self.gone.packets += 1;
        self.gone.bytes += u64::from(size);
        if self.gone.packets >= most(self.spec.packets) || self.gone.bytes >= most(self.spec.bytes) {
            self.move_on(now);
        }
    }
}

/// Packets or bytes of a slot without a limit (docs/models/queues/netem.md).
const UNLIMITED: u64 = i32::MAX as u64;
