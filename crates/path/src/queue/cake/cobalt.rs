//! Cobalt, the queue management of each of CAKE's flows: CoDel and BLUE side by side.
//!
//! What it is: CoDel drops (or marks) ever faster while packets wait longer than the target, and slows down again step by step;
//! BLUE drops at random, with a probability that grows when the whole queue overflows and shrinks when the flow is empty.
//! Source: Høiland-Jørgensen, Täht, Morton 2018 ("Piece of CAKE") §4; RFC 8289; Feng et al. 1999 (BLUE). Linux: cobalt_should_drop(),
//! cobalt_queue_full(), cobalt_queue_empty().
//! How it differs: nothing known. As in Linux, a flow's very first decision to drop needs no interval of waiting.
//! What it does not model: nothing known.

use tcpscape_base::{Ecn, Stream, Time};

/// What all flows share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Params {
    /// Time that a queue may stay, and the pace of drops, ns.
    pub interval: u64,
    /// Delay that may stand, ns.
    pub target: u64,
    /// Time of a full frame at the rate, ns.
    pub mtu_time: u64,
}

/// BLUE's steps up and down, of 2³²: 1/256 and 1/4096. Linux: cake_set_rate().
const BLUE_UP: u32 = 1 << 24;
const BLUE_DOWN: u32 = 1 << 20;

/// One flow's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cobalt {
    /// Drops in this episode: they come `interval / √count` apart.
    pub count: u32,
    /// `1/√count` of 2³²; 0 before the first drop.
    inverse: u32,
    /// When the next drop is due; with no drops to come, until when the flow is remembered, ns.
    pub next: i64,
    blue_changed: i64,
    /// BLUE's probability of 2³².
    pub blue: u32,
    dropping: bool,
    /// Whether the last packet was marked.
    pub marked: bool,
}

/// What becomes of a packet that a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// It is to be dropped.
    pub drop: bool,
}

/// `1/√n` of 2³² for small n, four Newton steps each from the one before.
const INVERSES: [u32; 16] = {
    let mut table = [u32::MAX; 16];
    let mut n = 1;
    while n < 16 {
        let mut x = table[n - 1];
        let mut i = 0;
        while i < 4 {
            x = newton(x, n as u32);
            i += 1;
        }
        table[n] = x;
        n += 1;
    }
    table
};

/// A Newton step to `1/√count`: x/2 · (3 − count·x²).
const fn newton(x: u32, count: u32) -> u32 {
    let square = ((x as u64 * x as u64) >> 32) as u32;
    let rest = (3u64 << 32).wrapping_sub(count as u64 * square as u64) >> 2;
    (rest.wrapping_mul(x as u64) >> 31) as u32
}

impl Cobalt {
    /// The next drop after one at `t`. The kernel keeps 32 bits of the interval.
    fn after(&self, t: i64, interval: u64) -> i64 {
        t + ((u64::from(interval as u32) * u64::from(self.inverse)) >> 32) as i64
    }
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.inverse = match INVERSES.get(count as usize) {
            Some(&exact) => exact,
            None => newton(self.inverse, count),
        };
    }
    /// The whole queue was full, and this flow the longest.
    pub fn overflow(&mut self, p: &Params, now: Time) {
        let now = now.0 as i64;
        if now - self.blue_changed > p.target as i64 {
            self.blue = self.blue.saturating_add(BLUE_UP);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }
    /// It was this flow's turn, and it was empty.
    pub fn empty(&mut self, p: &Params, now: Time) {
        let now = now.0 as i64;
        if self.blue > 0 && now - self.blue_changed > p.target as i64 {
            self.blue = self.blue.saturating_sub(BLUE_DOWN);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next {
            self.set_count(self.count - 1);
            self.next = self.after(self.next, p.interval);
        }
    }
    /// Judges a packet that has waited `sojourn` ns; may mark it. `bulk` flows share the link, where that counts.
    pub fn judge(&mut self, p: &Params, now: Time, sojourn: u64, bulk: u64, ecn: &mut Ecn, random: &mut Stream) -> Verdict {
        let now = now.0 as i64;
        let over = sojourn > p.target && sojourn > p.mtu_time * bulk * 2 && sojourn > p.mtu_time * 4;
        let mut late = now - self.next;
        let mut due = self.count > 0 && late >= 0;
        let mut drop = false;
        self.marked = false;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.next = self.after(now, p.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            self.marked = *ecn != Ecn::NotEct;
            if self.marked {
                *ecn = Ecn::Ce;
            }
            drop = !self.marked;
            self.set_count(self.count.saturating_add(1));
            self.next = self.after(self.next, p.interval);
            late = now - self.next;
        } else {
            while due {
                self.set_count(self.count - 1);
                self.next = self.after(self.next, p.interval);
                late = now - self.next;
                due = self.count > 0 && late >= 0;
            }
        }
        // BLUE drops what could be marked, too.
        drop |= self.blue > 0 && random.next_u32() < self.blue;
        if self.count == 0 {
            self.next = now + p.interval as i64;
        } else if late > 0 && !drop {
            self.next = now;
        }
        Verdict { drop }
    }
    /// Whether an empty flow's state is still worth keeping.
    pub fn remembers(&self, now: Time) -> bool {
        self.blue > 0 || self.count > 0 || (now.0 as i64) < self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const P: Params = Params { interval: 100 * MS, target: 5 * MS, mtu_time: 605_600 };

    #[test]
    fn inverse_roots() {
        // Four steps from 1 leave 1/√2 at 0.7067; from 16 on one step is enough.
        for (n, &x) in INVERSES.iter().enumerate().skip(1) {
            let want = 1.0 / (n as f64).sqrt();
            assert!((x as f64 / 2f64.powi(32) - want).abs() < 1e-3, "{n} {x}");
        }
        assert!((f64::from(newton(INVERSES[15], 16)) / 2f64.powi(32) - 0.25).abs() < 1e-3);
    }

    /// Times in ms of the drops when a packet that has waited 20 ms leaves each ms.
    fn drops(c: &mut Cobalt, from: u64, until: u64) -> Vec<u64> {
        let mut random = Stream::new(1, "blue");
        (from..until).filter(|&ms| c.judge(&P, Time(ms * MS), 20 * MS, 0, &mut Ecn::NotEct, &mut random).drop).collect()
    }

    #[test]
    fn drops_come_closer() {
        // The first at once (the state is fresh), then 100/√2 = 70.7, 100/√3 = 57.7, 50 ms, … apart.
        let mut c = Cobalt::default();
        assert_eq!(drops(&mut c, 1000, 1230), [1001, 1071, 1129, 1179, 1224]);
    }

    #[test]
    fn after_a_rest_the_first_drop_waits_an_interval() {
        let mut c = Cobalt::default();
        drops(&mut c, 1000, 1002);
        let mut random = Stream::new(1, "blue");
        for ms in 1002..2000 {
            assert!(!c.judge(&P, Time(ms * MS), MS, 0, &mut Ecn::NotEct, &mut random).drop);
        }
        assert_eq!(c.count, 0);
        assert_eq!(drops(&mut c, 2000, 2150), [2100]);
    }

    #[test]
    fn a_capable_packet_is_marked_and_a_short_queue_let_be() {
        let (mut c, mut random) = (Cobalt { count: 1, ..Default::default() }, Stream::new(1, "blue"));
        let mut ecn = Ecn::Ect0;
        let v = c.judge(&P, Time(MS), 20 * MS, 0, &mut ecn, &mut random);
        assert!(!v.drop && c.marked && ecn == Ecn::Ce);
        // At 2 Mbit/s a frame takes 6 ms: a queue of four frames is none, whatever the target.
        let slow = Params { mtu_time: 6_056_000, ..P };
        let mut c = Cobalt { count: 1, ..Default::default() };
        assert!(!c.judge(&slow, Time(MS), 24 * MS, 0, &mut Ecn::NotEct, &mut random).drop);
    }

    #[test]
    fn blue_rises_by_a_256th_each_target_at_most() {
        let mut c = Cobalt::default();
        for ms in [100, 103, 106, 112] {
            c.overflow(&P, Time(ms * MS));
        }
        assert_eq!(c.blue, 3 * BLUE_UP);
        c.empty(&P, Time(118 * MS));
        assert_eq!(c.blue, 3 * BLUE_UP - BLUE_DOWN);
    }
}
