//! The event queue: integer nanoseconds, phases within an instant, ties by insertion.
//!
//! Each node (a pipe, a timer, an application) has at most one valid entry. Asking for a later time than the one queued leaves the entry
//! where it is: its node is called too early, does nothing and asks again. So re-arming a timer on every ACK costs nothing.
//!
//! A calendar in front of a sorted list keeps the cost of an event nearly the same for one flow and for a thousand: entries wait unsorted
//! in buckets of 131 µs and are sorted when their bucket's time comes; what is more than a second ahead waits in a heap of its own. Where little
//! waits, the list holds all that comes before the first bucket that is not empty, and no bucket is turned.

mod near;

use near::Near;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
use tcpscape_base::Time;

/// What happens within one instant: all packets and timers first, then applications, then samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Packets and protocol timers.
    Network = 0,
    /// Reads and writes of applications: a woken process runs when the interrupts are done.
    Application = 1,
    /// Observation.
    Sample = 2,
}

/// What an event calls. Its number stands for it in the calendar: numbers are dense from 0, each has one node and each node one number.
pub trait Node: Copy {
    /// Its number, below [`MAX_NODES`].
    fn index(self) -> u32;
    /// The node with this number.
    fn from_index(index: u32) -> Self;
    /// When it is called within an instant.
    fn phase(self) -> Phase;
}

/// Length of a bucket: 2¹⁷ ns.
const SHIFT: u32 = 17;
/// Number of buckets: the calendar reaches 1.07 s ahead.
const BUCKETS: usize = 1 << 13;
/// By so many buckets the list may reach further at a time, 0.5 s: timers of retransmission may be in it, ends of trials are not, lest a trial of many
/// flows begins with a list that holds all of it.
const REACH: u64 = 1 << 12;
/// No entry.
const NONE: u32 = u32::MAX;

/// Time in the upper half; phase, order of insertion and the node's number in the lower one.
type Key = u128;
/// Bits of a node's number in a key.
const INDEX_BITS: u32 = 22;
/// Nodes that a calendar can tell apart.
pub const MAX_NODES: usize = 1 << INDEX_BITS;
/// Bits of the order of insertion.
const SEQ_BITS: u32 = 40;

/// A place in the order in which entries were asked for, which decides among those of one instant and phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(u64);

fn time_of(k: Key) -> Time {
    Time((k >> 64) as u64)
}
fn index_of(k: Key) -> u32 {
    k as u32 & ((1 << INDEX_BITS) - 1)
}

/// An entry of a bucket's list.
#[derive(Debug)]
struct Entry {
    key: Key,
    next: u32,
}

/// Pending events of nodes.
#[derive(Debug)]
pub struct Events<N> {
    /// Entries of the current bucket and earlier ones.
    near: Near,
    /// First entry of each bucket.
    buckets: Box<[u32]>,
    entries: Vec<Entry>,
    /// First unused entry.
    free: u32,
    /// A bit for each bucket that is not empty.
    occupied: Box<[u64]>,
    /// Entries in buckets.
    paged: usize,
    /// Number of the last bucket that `near` holds.
    current: u64,
    /// Number of the first bucket that has something, in its list or far ahead; `u64::MAX` where none has.
    next_page: u64,
    far: BinaryHeap<Reverse<Key>>,
    /// For each node the time of its valid entry.
    at: Vec<Time>,
    seq: u64,
    called: PhantomData<N>,
}

impl<N: Node> Events<N> {
    /// An empty calendar for nodes whose numbers are below `nodes`.
    pub fn new(nodes: usize) -> Events<N> {
        assert!(nodes <= MAX_NODES, "more than {MAX_NODES} nodes");
        Events {
            near: Near::default(),
            buckets: vec![NONE; BUCKETS].into_boxed_slice(),
            entries: Vec::new(),
            free: NONE,
            occupied: vec![0; BUCKETS / 64].into_boxed_slice(),
            paged: 0,
            current: 0,
            next_page: u64::MAX,
            far: BinaryHeap::new(),
            at: vec![Time::MAX; nodes],
            seq: 0,
            called: PhantomData,
        }
    }

    /// There are nodes with numbers below `nodes` now.
    pub fn grow(&mut self, nodes: usize) {
        assert!(nodes <= MAX_NODES, "more than {MAX_NODES} nodes");
        self.at.resize(nodes.max(self.at.len()), Time::MAX);
    }

    /// `node` is not called any more, unless it asks for it again.
    pub fn cancel(&mut self, node: N) {
        self.at[node.index() as usize] = Time::MAX;
    }

    /// `node` wants to be called at `t` or, if something earlier is queued for it, then.
    #[inline(always)] // where the node is known, its number and phase are constants
    pub fn want(&mut self, node: N, t: Time) {
        let index = node.index();
        let queued = &mut self.at[index as usize];
        if t < *queued {
            *queued = t;
            let Turn(seq) = self.reserve();
            self.enter(t, (node.phase() as u64) << 62 | u64::from(index), seq);
        }
    }

    /// Whether an entry of `node` is queued.
    #[inline]
    pub fn is_queued(&self, node: N) -> bool {
        self.at[node.index() as usize] != Time::MAX
    }

    /// Whether it is quickly seen that nothing is queued for `t` or earlier.
    #[inline]
    pub fn has_nothing_until(&self, t: Time) -> bool {
        self.near.is_after(t) && self.next_page > t.0 >> SHIFT
    }

    /// The place that an entry has which is queued now.
    #[inline]
    pub fn reserve(&mut self) -> Turn {
        self.seq += 1;
        Turn(self.seq)
    }

    /// `node`, of which nothing is queued, wants to be called at `t`, as if it had asked when it got its place.
    pub fn want_in_turn(&mut self, node: N, t: Time, Turn(seq): Turn) {
        let index = node.index();
        debug_assert!(!self.is_queued(node));
        self.at[index as usize] = t;
        self.enter(t, (node.phase() as u64) << 62 | u64::from(index), seq);
    }

    /// Queues an entry of time `t`; `node` is the phase and number of its node, where they stand in a key.
    #[inline]
    fn enter(&mut self, t: Time, node: u64, seq: u64) {
        debug_assert!(seq < 1 << SEQ_BITS);
        let order = node | seq << INDEX_BITS;
        self.file(Key::from(t.0) << 64 | Key::from(order));
    }

    /// Entries queued, those included that an earlier one has replaced.
    #[cfg(test)]
    pub fn queued(&self) -> usize {
        self.near.len() + self.paged + self.far.len()
    }

    /// Puts an entry where its time belongs.
    #[inline]
    fn file(&mut self, key: Key) {
        let b = time_of(key).0 >> SHIFT;
        if b <= self.current {
            self.near.insert(key);
        } else if self.holds_little() && b < self.next_page && b - self.current < REACH {
            self.current = b;
            self.near.insert(key);
        } else {
            self.defer(b, key);
        }
    }

    /// Whether so few entries wait that the list needs no buckets behind it.
    #[inline]
    fn holds_little(&self) -> bool {
        self.paged < near::FEW && self.near.is_short()
    }

    /// Puts an entry into a bucket that follows, or far ahead.
    fn defer(&mut self, b: u64, key: Key) {
        self.next_page = self.next_page.min(b);
        if b - self.current >= BUCKETS as u64 {
            return self.far.push(Reverse(key));
        }
        let i = b as usize % BUCKETS;
        let entry = Entry { key, next: self.buckets[i] };
        let n = self.free;
        if n == NONE {
            self.buckets[i] = self.entries.len() as u32;
            self.entries.push(entry);
        } else {
            self.free = self.entries[n as usize].next;
            self.entries[n as usize] = entry;
            self.buckets[i] = n;
        }
        self.occupied[i / 64] |= 1 << (i % 64);
        self.paged += 1;
    }

    /// When the next event is, None where there is none at or before `until`.
    pub fn next(&mut self, until: Time) -> Option<Time> {
        loop {
            while let Some(key) = self.near.take(until) {
                if self.at[index_of(key) as usize] == time_of(key) {
                    self.near.insert(key);
                    return Some(time_of(key));
                }
            }
            if !self.turn_page(until) {
                return None;
            }
        }
    }

    /// The next event at or before `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, N)> {
        loop {
            // No bucket that follows has anything before an entry of the list that is too late.
            while let Some(k) = self.near.take(until) {
                let (t, index) = (time_of(k), index_of(k));
                let valid = &mut self.at[index as usize];
                if *valid == t {
                    *valid = Time::MAX;
                    return Some((t, N::from_index(index)));
                }
            }
            if !self.turn_page(until) {
                return None;
            }
        }
    }

    /// Moves the next bucket that has something into the list, and those that follow where little waits; false if there is none up to `until`.
    fn turn_page(&mut self, until: Time) -> bool {
        if self.next_page > until.0 >> SHIFT {
            return false;
        }
        let reach = self.next_page.saturating_add(REACH);
        loop {
            self.take_page(self.next_page);
            if self.next_page >= reach || !self.holds_little() {
                self.near.sort();
                return true;
            }
        }
    }

    /// Moves that bucket's entries into the list; they are still to be sorted.
    fn take_page(&mut self, page: u64) {
        self.current = page;
        let i = page as usize % BUCKETS;
        self.occupied[i / 64] &= !(1 << (i % 64));
        // A bucket's slot is its own until the calendar has gone round: everything in it is of this time.
        let mut n = std::mem::replace(&mut self.buckets[i], NONE);
        while n != NONE {
            let Entry { key, next } = self.entries[n as usize];
            if self.at[index_of(key) as usize] == time_of(key) {
                self.near.add(key);
            }
            self.entries[n as usize].next = self.free;
            self.free = n;
            self.paged -= 1;
            n = next;
        }
        while self.far.peek().is_some_and(|e| time_of(e.0).0 >> SHIFT <= page) {
            if let Some(Reverse(key)) = self.far.pop() {
                self.near.add(key);
            }
        }
        let far = self.far.peek().map_or(u64::MAX, |e| time_of(e.0).0 >> SHIFT);
        self.next_page = self.next_occupied().map_or(far, |bucket| bucket.min(far));
    }

    /// Number of the first bucket after the current one that is not empty.
    fn next_occupied(&self) -> Option<u64> {
        if self.paged == 0 {
            return None;
        }
        let start = (self.current as usize + 1) % BUCKETS;
        let (words, first) = (self.occupied.len(), start / 64);
        let ahead = |i: usize| Some(self.current + 1 + ((i + BUCKETS - start) % BUCKETS) as u64);
        let (later, earlier) = (!0 << (start % 64), !(!0 << (start % 64)));
        let bits = self.occupied[first] & later;
        if bits != 0 {
            return ahead(first * 64 + bits.trailing_zeros() as usize);
        }
        let others = (1..words).map(|k| (first + k) % words).map(|w| (w, self.occupied[w]));
        let next = others.chain([(first, self.occupied[first] & earlier)]).find(|(_, bits)| *bits != 0)?;
        ahead(next.0 * 64 + next.1.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Stream;

    /// Number 0 is an application, the others belong to the network.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Numbered(u32);

    impl Node for Numbered {
        fn index(self) -> u32 {
            self.0
        }
        fn from_index(index: u32) -> Numbered {
            Numbered(index)
        }
        fn phase(self) -> Phase {
            [Phase::Application, Phase::Network][usize::from(self.0 > 0)]
        }
    }

    #[test]
    fn instants_run_network_first_then_in_order_of_insertion() {
        let mut e = Events::new(3);
        for i in [0, 2, 1] {
            e.want(Numbered(i), Time(5));
        }
        let order: Vec<u32> = std::iter::from_fn(|| e.pop(Time::MAX)).map(|(_, n)| n.0).collect();
        assert_eq!(order, [2, 1, 0]);
    }

    #[test]
    fn an_earlier_wish_replaces_a_later_one() {
        let mut e = Events::new(2);
        let c = Numbered(1);
        e.want(c, Time(9));
        e.want(c, Time(3));
        e.want(c, Time(7));
        assert_eq!(e.pop(Time::MAX), Some((Time(3), c)));
        e.want(c, Time(20));
        assert_eq!(e.pop(Time::MAX), Some((Time(20), c)));
        assert_eq!(e.pop(Time::MAX), None);
    }

    /// Node 2 comes later and takes the place of one that was cancelled: it is called at its own time only.
    #[test]
    fn a_cancelled_node_is_not_called() {
        let mut e = Events::new(2);
        e.want(Numbered(1), Time(5));
        e.want(Numbered(1), Time(3));
        e.cancel(Numbered(1));
        e.want(Numbered(1), Time(7));
        e.grow(3);
        e.want(Numbered(2), Time(6));
        let order: Vec<(u64, u32)> = std::iter::from_fn(|| e.pop(Time::MAX)).map(|(t, n)| (t.0, n.0)).collect();
        assert_eq!(order, [(6, 2), (7, 1)]);
    }

    /// Node 1 has its place before node 2 asks, and is queued after it.
    #[test]
    fn a_place_that_was_reserved_is_kept() {
        let mut e = Events::new(3);
        let place = e.reserve();
        e.want(Numbered(2), Time(5));
        assert!(!e.is_queued(Numbered(1)));
        e.want_in_turn(Numbered(1), Time(5), place);
        let order: Vec<u32> = std::iter::from_fn(|| e.pop(Time::MAX)).map(|(_, n)| n.0).collect();
        assert_eq!(order, [1, 2]);
    }

    #[test]
    fn events_near_and_far_come_in_order() {
        let mut e = Events::new(300);
        let mut s = Stream::new(1, "events");
        let mut now = Time::ZERO;
        let mut due = vec![Time::MAX; 300];
        for _ in 0..200_000 {
            let c = s.below(300);
            // Reaches from nanoseconds to many turns of the calendar.
            let ahead = s.next_u64() >> (30 + s.below(30));
            let t = Time(now.0 + ahead % 20_000_000_000);
            e.want(Numbered(c), t);
            due[c as usize] = due[c as usize].min(t);
            if s.below(2) == 0 {
                let (t, Numbered(c)) = e.pop(Time::MAX).expect("one was just queued");
                assert!(t >= now);
                assert_eq!(due[c as usize], t);
                assert_eq!(due.iter().min(), Some(&t));
                due[c as usize] = Time::MAX;
                now = t;
            }
        }
    }

    #[test]
    fn nothing_is_popped_before_its_time() {
        let mut e = Events::new(2);
        let c = Numbered(1);
        e.want(c, Time(5_000_000_000));
        assert_eq!(e.pop(Time(4_999_999_999)), None);
        e.want(c, Time(1_000));
        assert_eq!(e.pop(Time(4_999_999_999)), Some((Time(1_000), c)));
    }

    /// A timer that is moved on every event leaves at most one stale entry a bucket behind: what is queued does not grow with time.
    #[test]
    fn moving_a_timer_leaves_no_trail() {
        let mut e = Events::new(2);
        let (ticker, timer) = (Numbered(0), Numbered(1));
        e.want(ticker, Time(0));
        let mut most = 0;
        for _ in 0..100_000 {
            let (now, node) = e.pop(Time::MAX).expect("the ticker goes on");
            if node == ticker {
                e.want(ticker, Time(now.0 + 50_000));
            }
            e.want(timer, Time(now.0 + 200_000_000));
            most = most.max(e.queued());
        }
        assert!(most <= 4, "{most}");
    }
}
