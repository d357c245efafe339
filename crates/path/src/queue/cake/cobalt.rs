//! Cobalt, the queue management of each of CAKE's flows: CoDel and BLUE side by side.
//!
//! What it is: CoDel drops (or marks) ever faster while packets wait longer than the target, and slows down again step by step;
//! BLUE drops at random, with a probability that grows when the whole queue overflows and shrinks when the flow is empty.
//! Source: Høiland-Jørgensen, Täht, Morton 2018 ("Piece of CAKE"); RFC 8289 §5 for CoDel's control law; Feng, Shin, Kandlur, Saha 2002
//! ("The BLUE active queue management algorithms") for BLUE.
//! How it differs: from RFC 8289 and the BLUE paper as the sentences under "Cobalt" in docs/models/queues/cake.md say.
//! What it does not model: nothing known.

use super::super::codel::law::InverseRoot;
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

impl Params {
    /// Whether a wait of so many ns is too long for the head of a flow: four frames' time never is, nor two frames' for each of `bulk` flows.
    fn exceeded_by(&self, sojourn: u64, bulk: u64) -> bool {
        let frames = FRAMES.max(2 * bulk);
        sojourn > self.target.max(frames * self.mtu_time)
    }
}

/// One flow's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cobalt {
    codel: Descending,
    blue: Blue,
}

/// What becomes of a packet that a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// It is to be dropped.
    pub drop: bool,
    /// It has been marked; BLUE may drop it even so.
    pub marked: bool,
}

impl Cobalt {
    /// Judges a packet that has waited `sojourn` ns; may mark it. `bulk` flows share the link, where that counts.
    pub fn judge(&mut self, p: &Params, now: Time, sojourn: u64, bulk: u64, ecn: &mut Ecn, random: &mut Stream) -> Verdict {
        let hit = self.blue.hits(random);
        let signal = if p.exceeded_by(sojourn, bulk) {
            self.codel.too_long(now.0, p.interval, hit)
        } else {
            self.codel.acceptable(now.0, p.interval);
            false
        };
        let marked = signal && *ecn != Ecn::NotEct;
        if marked {
            *ecn = Ecn::Ce;
        }
        let drop = hit || (signal && !marked);
        if !drop {
            self.codel.forgive(now.0);
        }
        Verdict { drop, marked }
    }
    /// The whole queue was full, and this flow the longest.
    pub fn overflow(&mut self, p: &Params, now: Time) {
        self.blue.overflowed(now.0, p.target);
        self.codel.overflowed(now.0);
    }
    /// It was this flow's turn, and it was empty.
    pub fn empty(&mut self, p: &Params, now: Time) {
        self.blue.idled(now.0, p.target);
        self.codel.ran_empty(now.0, p.interval);
    }
    /// Whether an empty flow's state is still worth keeping.
    pub fn remembers(&self, now: Time) -> bool {
        self.blue.probability > 0 || self.codel.cadence.count > 0 || now.0 < self.codel.due
    }
}

/// CoDel with a way down: RFC 8289's control law drives it up while packets wait too long, and the same schedule brings it down, one step
/// each time that one is due, when they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Descending {
    cadence: Cadence,
    /// Whether the last packet had waited too long.
    climbing: bool,
    /// When the next step up or down is due, ns; at rest, until when a packet that has waited too long starts an interval of grace.
    due: u64,
}

impl Descending {
    /// A packet has waited too long: whether it is to be signalled. `lost` says that it is dropped in any case.
    fn too_long(&mut self, now: u64, interval: u64, lost: bool) -> bool {
        if self.cadence.count == 0 {
            // The first one after a rest begins an interval of grace; when nothing has come for an interval, there is none.
            let expired = now > self.due && !lost;
            self.due = if expired { now } else { self.cadence.after(now, interval) };
            self.cadence = Cadence::of(1);
            self.climbing = true;
            return false;
        }
        let signal = now >= self.due;
        if !self.climbing {
            self.climbing = true;
            self.due = self.cadence.after(now, interval);
        }
        if signal {
            self.cadence = self.cadence.up();
            self.due = self.cadence.after(self.due, interval);
        }
        signal
    }

    /// A packet has not waited too long: all the steps that are due are steps down, and after the last of them it rests.
    fn acceptable(&mut self, now: u64, interval: u64) {
        self.climbing = false;
        while self.step_down(now, interval) {}
        if self.cadence.count == 0 {
            self.due = now + interval;
        }
    }

    /// The flow had nothing to send: one step down, if one is due.
    fn ran_empty(&mut self, now: u64, interval: u64) {
        self.climbing = false;
        self.step_down(now, interval);
    }

    /// Memory ran out: a step up is due at once.
    fn overflowed(&mut self, now: u64) {
        self.climbing = true;
        self.due = now;
        if self.cadence.count == 0 {
            self.cadence = Cadence::of(1);
        }
    }

    /// A packet has been let through: the schedule does not stay behind.
    fn forgive(&mut self, now: u64) {
        self.due = self.due.max(now);
    }

    fn step_down(&mut self, now: u64, interval: u64) -> bool {
        let due = self.cadence.count > 0 && now >= self.due;
        if due {
            self.cadence = self.cadence.down();
            self.due = self.cadence.after(self.due, interval);
        }
        due
    }
}

/// How many steps up, and the reciprocal of their square root, which sets the time to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cadence {
    count: u32,
    /// 0 in a new flow: its first interval of grace has no length.
    root: InverseRoot<32>,
}

impl Cadence {
    /// So few steps that the root is in the table.
    const fn of(count: u32) -> Cadence {
        Cadence { count, root: ROOTS[count as usize] }
    }
    fn up(self) -> Cadence {
        self.moved_to(self.count.saturating_add(1))
    }
    fn down(self) -> Cadence {
        self.moved_to(self.count - 1)
    }
    /// From a count of sixteen on, a step moves the root by one step of Newton's.
    fn moved_to(self, count: u32) -> Cadence {
        match ROOTS.get(count as usize) {
            Some(&root) => Cadence { count, root },
            None => Cadence { count, root: self.root.refined(count) },
        }
    }
    /// The next step after one at `t` ns: RFC 8289's `interval / √count`, of which 32 bits count.
    fn after(self, t: u64, interval: u64) -> u64 {
        t + u64::from(self.root.share_of(interval as u32))
    }
}

/// `1/√n` for n from 1 to 15 (1 for 0): four of Newton's steps, each from the root before.
const ROOTS: [InverseRoot<32>; 16] = {
    let mut roots = [InverseRoot::ONE; 16];
    let mut n = 2;
    while n < roots.len() {
        let of = n as u32;
        roots[n] = roots[n - 1].refined(of).refined(of).refined(of).refined(of);
        n += 1;
    }
    roots
};

/// BLUE: a probability of dropping that overflow raises and idleness lowers, at most once in a freeze time (CAKE's is its target).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Blue {
    /// Of 2³².
    probability: u32,
    /// When it last moved, ns.
    moved: u64,
}

impl Blue {
    /// Whether a packet is dropped; nothing is drawn while the probability is 0.
    fn hits(&self, random: &mut Stream) -> bool {
        self.probability > 0 && random.next_u32() < self.probability
    }
    /// A packet was lost to a full queue.
    fn overflowed(&mut self, now: u64, freeze: u64) {
        self.change(now, freeze, self.probability.saturating_add(BLUE_UP));
    }
    /// The queue was idle. An idle time at probability 0 is no change and freezes nothing.
    fn idled(&mut self, now: u64, freeze: u64) {
        if self.probability > 0 {
            self.change(now, freeze, self.probability.saturating_sub(BLUE_DOWN));
        }
    }
    fn change(&mut self, now: u64, freeze: u64, probability: u32) {
        if now - self.moved > freeze {
            *self = Blue { probability, moved: now };
        }
    }
}

/// Frames of which a flow's queue may always consist.
const FRAMES: u64 = 4;
/// BLUE's steps up and down (d1 and d2), of 2³²: 1/256 and 1/4096 (docs/models/queues/cake.md).
const BLUE_UP: u32 = 1 << 24;
const BLUE_DOWN: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const P: Params = Params { interval: 100 * MS, target: 5 * MS, mtu_time: 605_600 };

    #[test]
    fn tabulated_roots() {
        // Four steps from 1 leave 1/√2 at 0.7067; from 16 on one step is enough.
        for (n, root) in ROOTS.iter().enumerate().skip(1) {
            let exact = 1.0 / (n as f64).sqrt();
            assert!((f64::from(root.bits()) / 2f64.powi(32) - exact).abs() < 1e-3, "{n} {root:?}");
        }
        let sixteen = Cadence::of(15).up();
        assert!((f64::from(sixteen.root.bits()) / 2f64.powi(32) - 0.25).abs() < 1e-3);
        assert_eq!(sixteen.down(), Cadence::of(15));
    }

    /// Times in ms of the drops when a packet that has waited 20 ms leaves each ms.
    fn drops(c: &mut Cobalt, from: u64, until: u64) -> Vec<u64> {
        let mut random = Stream::new(1, "blue");
        (from..until).filter(|&ms| c.judge(&P, Time(ms * MS), 20 * MS, 0, &mut Ecn::NotEct, &mut random).drop).collect()
    }
    /// Packets that have waited 1 ms, one each ms.
    fn rest(c: &mut Cobalt, from: u64, until: u64) {
        let mut random = Stream::new(1, "blue");
        assert!((from..until).all(|ms| !c.judge(&P, Time(ms * MS), MS, 0, &mut Ecn::NotEct, &mut random).drop));
    }
    /// Waiting to climb: one step up is due at `due` ms.
    fn armed(due: u64) -> Cobalt {
        Cobalt { codel: Descending { cadence: Cadence::of(1), climbing: true, due: due * MS }, ..Cobalt::default() }
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
        rest(&mut c, 1002, 2000);
        assert_eq!(c.codel.cadence.count, 0);
        assert_eq!(drops(&mut c, 2000, 2150), [2100]);
    }

    #[test]
    fn after_an_interval_without_packets_it_does_not_wait() {
        let mut c = Cobalt::default();
        drops(&mut c, 1000, 1002);
        rest(&mut c, 1002, 2001);
        // 99 ms later the rest still holds, 101 ms later it has expired.
        assert!(drops(&mut c.clone(), 2099, 2150).is_empty());
        assert_eq!(drops(&mut c, 2101, 2150), [2102]);
    }

    #[test]
    fn a_flow_that_has_never_dropped_does_not_wait_either() {
        let mut c = Cobalt::default();
        rest(&mut c, 1000, 1500);
        assert_eq!(drops(&mut c, 1500, 1550), [1501]);
    }

    #[test]
    fn it_slows_down_at_the_times_when_it_would_have_dropped() {
        // Five steps up; the next would come at 1500 ms. Down to 4 there, to 3 after 100/√4 = 50 ms, to 2 after 57.7, to 1 after 70.7.
        let mut c = Cobalt { codel: Descending { cadence: Cadence::of(5), climbing: true, due: 1500 * MS }, ..Cobalt::default() };
        let mut counts = vec![];
        for ms in [1499, 1500, 1549, 1551, 1607, 1608, 1678, 1679, 1778, 1779] {
            rest(&mut c, ms, ms + 1);
            counts.push(c.codel.cadence.count);
        }
        assert_eq!(counts, [5, 4, 4, 3, 3, 2, 2, 1, 1, 0]);
        // An empty flow takes one step at a time, however many are due.
        let mut c = Cobalt { codel: Descending { cadence: Cadence::of(5), climbing: true, due: 1500 * MS }, ..Cobalt::default() };
        c.empty(&P, Time(9_000 * MS));
        assert_eq!(c.codel.cadence.count, 4);
    }

    #[test]
    fn a_capable_packet_is_marked_and_a_short_queue_let_be() {
        let (mut c, mut random) = (armed(0), Stream::new(1, "blue"));
        let mut ecn = Ecn::Ect0;
        let v = c.judge(&P, Time(MS), 20 * MS, 0, &mut ecn, &mut random);
        assert_eq!((v, ecn), (Verdict { drop: false, marked: true }, Ecn::Ce));
        // At 2 Mbit/s a frame takes 6 ms: a queue of four frames is none, whatever the target.
        let slow = Params { mtu_time: 6_056_000, ..P };
        assert!(!armed(0).judge(&slow, Time(MS), 24 * MS, 0, &mut Ecn::NotEct, &mut random).drop);
        assert!(armed(0).judge(&slow, Time(MS), 25 * MS, 2, &mut Ecn::NotEct, &mut random).drop);
        assert!(!armed(0).judge(&slow, Time(MS), 25 * MS, 3, &mut Ecn::NotEct, &mut random).drop, "with three flows six frames");
    }

    #[test]
    fn a_missed_schedule_is_forgiven_by_a_packet_that_passes_only() {
        // A second late: a drop leaves the schedule behind, so that the next packet is dropped too; a mark does not.
        let dropped_then_dropped = drops(&mut armed(1_000), 2_000, 2_003);
        assert_eq!(dropped_then_dropped, [2_000, 2_001, 2_002]);
        let (mut c, mut random) = (armed(1_000), Stream::new(1, "blue"));
        let marks = (2_000..2_030).filter(|&ms| c.judge(&P, Time(ms * MS), 20 * MS, 0, &mut Ecn::Ect0, &mut random).marked);
        assert_eq!(marks.collect::<Vec<_>>(), [2_000, 2_001], "the second is due at once, then one after 100/√3 ms");
    }

    #[test]
    fn blue_rises_by_a_256th_each_target_at_most() {
        let mut c = Cobalt::default();
        for ms in [100, 103, 106, 112] {
            c.overflow(&P, Time(ms * MS));
        }
        assert_eq!(c.blue.probability, 3 * BLUE_UP);
        c.empty(&P, Time(118 * MS));
        assert_eq!(c.blue.probability, 3 * BLUE_UP - BLUE_DOWN);
    }

    #[test]
    fn blue_comes_down_sixteen_times_as_slowly_and_drops_as_often_as_it_says() {
        let mut blue = Blue::default();
        for ms in 1..=64 {
            blue.overflowed(6 * ms * MS, 5 * MS);
        }
        // 64 steps of 1/256: a quarter.
        let mut random = Stream::new(3, "blue");
        let hits = (0..100_000).filter(|_| blue.hits(&mut random)).count();
        assert!((24_500..25_500).contains(&hits), "{hits}");
        let idle = (65..).take_while(|ms| {
            blue.idled(6 * ms * MS, 5 * MS);
            blue.probability > 0
        });
        assert_eq!(idle.count(), 64 * 16 - 1);
    }
}
