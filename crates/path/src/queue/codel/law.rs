//! CoDel's control law, which [`super::Codel`] applies to one queue and fq_codel to each of its flows.
//!
//! What it is: once the time that packets spend in the queue has stayed above `target` for an `interval`, a packet is dropped
//! (or marked) as it leaves, the next one `interval / √n` later, and so on until one has waited less than `target`.
//! Source: RFC 8289 §5; in Linux's arithmetic: a clock of 1024 ns in 32 bits, an inverse square root of 16 bits that takes one
//! Newton step for each drop. Linux: codel_dequeue(), codel_should_drop(), codel_Newton_step(), codel_control_law().
//! How it differs: nothing known.
//! What it does not model: `ce_threshold_selector`.

use crate::discipline::Aged;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Time};

/// What CoDel holds to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Law {
    /// Sojourn time that is acceptable.
    pub target: Duration,
    /// How long it may be exceeded.
    pub interval: Duration,
    /// Mark instead of dropping where a packet allows it.
    pub ecn: bool,
    /// Mark every packet that waited longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
}

impl Default for Law {
    /// Linux: codel_params_init()
    fn default() -> Law {
        Law { target: Duration::millis(5), interval: Duration::millis(100), ecn: false, ce_threshold: None }
    }
}

/// CoDel's clock ticks every 1024 ns. Linux: CODEL_SHIFT
const SHIFT: u32 = 10;
/// A queue of no more bytes than a full frame is never too long, B (`psched_mtu` at MTU 1500).
const ENOUGH: u64 = 1514;
/// A new cycle within so many intervals of the last begins where that ended.
const MEMORY: u32 = 16;

fn clock(now: Time) -> u32 {
    (now.0 >> SHIFT) as u32
}

/// Whether `a` comes after `b` on a clock that wraps (RFC 1982).
fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// The same numbers in units of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    target: u32,
    interval: u32,
    ce_threshold: Option<u32>,
    ecn: bool,
}

impl From<&Law> for Limits {
    fn from(l: &Law) -> Limits {
        let units = |d: Duration| (d.0 >> SHIFT) as u32;
        Limits { target: units(l.target), interval: units(l.interval), ce_threshold: l.ce_threshold.map(units), ecn: l.ecn }
    }
}

/// The queue that a law is applied to.
pub trait Source<B> {
    /// Takes the head out.
    fn pull(&mut self) -> Option<Aged<B>>;
    /// Bytes in the whole queue discipline.
    fn backlog(&self) -> u64;
    /// Drops a packet.
    fn discard(&mut self, p: &Aged<B>);
    /// Counts a packet that was marked.
    fn marked(&mut self);
}

/// Where the law has got to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    /// Drops of this cycle; the rate of the next follows from it.
    pub count: u32,
    last_count: u32,
    /// 1/√count, Q0.16.
    inv_sqrt: u16,
    dropping: bool,
    /// When the sojourn time will have been above target for an interval.
    pub(super) above_since: Option<u32>,
    next_drop: u32,
    sojourn: u32,
}

impl Control {
    /// The next packet that may leave.
    pub fn next<B>(&mut self, now: Time, limits: &Limits, from: &mut impl Source<B>) -> Option<Aged<B>> {
        let t = clock(now);
        let mut head = from.pull();
        let standing = self.standing(t, limits, head.as_ref(), from.backlog());
        if head.is_none() {
            self.dropping = false;
            return None;
        }
        head = match (self.dropping, standing) {
            (_, false) => {
                self.dropping = false;
                head
            }
            (true, true) => self.go_on(t, limits, head, from),
            (false, true) => self.begin(t, limits, head, from),
        };
        if let (Some((_, p)), Some(threshold)) = (&mut head, limits.ce_threshold) {
            if after(self.sojourn, threshold) && p.mark() {
                from.marked();
            }
        }
        head
    }

    /// Whether the queue has been too long for an interval, seen at its head.
    fn standing<B>(&mut self, t: u32, limits: &Limits, head: Option<&Aged<B>>, backlog: u64) -> bool {
        let Some((arrived, _)) = head else {
            self.above_since = None;
            return false;
        };
        self.sojourn = t.wrapping_sub(clock(*arrived));
        if after(limits.target, self.sojourn) || backlog <= ENOUGH {
            self.above_since = None;
            return false;
        }
        match self.above_since {
            Some(due) => after(t, due),
            None => {
                self.above_since = Some(t.wrapping_add(limits.interval));
                false
            }
        }
    }

    /// Marks or drops the head; then the next one and whether the queue still stands. None when it was marked.
    fn strike<B>(&mut self, t: u32, limits: &Limits, head: &mut Option<Aged<B>>, from: &mut impl Source<B>) -> Option<bool> {
        let p = head.as_mut()?;
        if limits.ecn && p.1.mark() {
            from.marked();
            return None;
        }
        from.discard(p);
        *head = from.pull();
        Some(self.standing(t, limits, head.as_ref(), from.backlog()))
    }

    /// First drop of a cycle. One that follows closely begins at the rate that the last had reached.
    fn begin<B>(&mut self, t: u32, limits: &Limits, mut head: Option<Aged<B>>, from: &mut impl Source<B>) -> Option<Aged<B>> {
        self.strike(t, limits, &mut head, from);
        self.dropping = true;
        let reached = self.count.wrapping_sub(self.last_count);
        let recent = after(MEMORY.wrapping_mul(limits.interval), t.wrapping_sub(self.next_drop));
        if reached > 1 && recent {
            self.count = reached;
            self.newton();
        } else {
            self.count = 1;
            self.inv_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.next_drop = self.pace(t, limits);
        head
    }

    /// Further drops, as many as are due; a mark is one at a time.
    fn go_on<B>(&mut self, t: u32, limits: &Limits, mut head: Option<Aged<B>>, from: &mut impl Source<B>) -> Option<Aged<B>> {
        while self.dropping && !after(self.next_drop, t) {
            self.count = self.count.wrapping_add(1);
            self.newton();
            match self.strike(t, limits, &mut head, from) {
                None => {
                    self.next_drop = self.pace(self.next_drop, limits);
                    break;
                }
                Some(true) => self.next_drop = self.pace(self.next_drop, limits),
                Some(false) => self.dropping = false,
            }
        }
        head
    }

    /// `interval / √count` after `t`.
    fn pace(&self, t: u32, limits: &Limits) -> u32 {
        t.wrapping_add(((u64::from(limits.interval) * (u64::from(self.inv_sqrt) << 16)) >> 32) as u32)
    }

    /// y ← y · (3 − count · y²) / 2, which converges to 1/√count (RFC 8289, appendix).
    fn newton(&mut self) {
        let y = u64::from(self.inv_sqrt) << 16;
        let y2 = (y * y) >> 32;
        let factor = (3u64 << 32).wrapping_sub(u64::from(self.count) * y2);
        self.inv_sqrt = ((factor >> 2).wrapping_mul(y) >> 31 >> 16) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newton_follows_the_inverse_square_root() {
        let mut c = Control { inv_sqrt: u16::MAX, ..Control::default() };
        for n in 1..200 {
            c.count = n;
            c.newton();
            c.newton();
        }
        // 1/√199 = 0.070888, times 65536: 4646
        assert!((4630..=4650).contains(&c.inv_sqrt), "{}", c.inv_sqrt);
    }

    #[test]
    fn the_second_drop_comes_an_interval_over_root_two_later() {
        let limits = Limits::from(&Law::default());
        assert_eq!((limits.target, limits.interval), (4_882, 97_656));
        let mut c = Control { count: 1, inv_sqrt: u16::MAX, ..Control::default() };
        // 65535/65536 of 97656
        assert_eq!(c.pace(0, &limits), 97_654);
        c.count = 2;
        c.newton();
        // one step from y = 1: 1 · (3 − 2) / 2 = 0.5, less than 1/√2
        assert_eq!(c.pace(0, &limits), 97_656 * u32::from(c.inv_sqrt) / 65_536);
        assert!((32_765..=32_770).contains(&c.inv_sqrt), "{}", c.inv_sqrt);
    }
}
