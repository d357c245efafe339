//! A queue around a discipline that only admits and chooses.
//!
//! What it is: most disciplines decide twice, about a packet that comes and about the packet that leaves next. [`Queued`] adds what is the
//! same for all of them: packets and bytes held, the account, and the packet that a parent (tbf) has looked at. A look takes that packet
//! out of the discipline, so whatever is decided on departure is decided then; until it leaves it still counts as held, and nothing that
//! comes after can overtake it (docs/models/queues/tbf.md). A discipline that decides nothing on departure may leave it in its place instead.

use super::patch::Patch;
use super::qdisc::{Aged, Freed, Qdisc};
use super::stats::{Cause, Meter, StageStats};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Time};

/// A discipline without the accounting around it.
pub trait Policy<B>: Send {
    /// Its name in the account.
    const NAME: &'static str;
    /// Whether it asks to be asked once more when its last packet has left: its flows leave their lists only then.
    const ASKS_ONCE_MORE: bool = false;
    /// Whether a look leaves the packet where it stands ([`Policy::head`]), where nothing is decided on departure: until it leaves it is one of the queue.
    const LOOKS_IN_PLACE: bool = false;

    /// A packet comes: it is kept ([`Books::enters`]), or dropped ([`Books::drops`]). False when there is no room for it, as in [`Qdisc::enqueue`].
    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool;
    /// Takes out ([`Books::leaves`]) the packet that leaves next, if one may leave now.
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>>;
    /// The size of the packet that leaves next, of a discipline that looks in place.
    fn head(&self) -> Option<u32> {
        None
    }
    /// When `choose` is worth trying while packets wait; by default at once.
    fn ready(&self) -> Time {
        Time::ZERO
    }
    /// New values, as in [`Qdisc::change`].
    fn change(&mut self, _patch: &Patch, _books: &mut Books<'_>) {}
    /// The values that `change` would replace.
    fn current(&self) -> Patch {
        Patch::default()
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The counts of one queue.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// What the discipline has.
    inside: Load,
    /// The packet that a parent has looked at.
    ahead: Load,
    pub meter: Meter,
}

impl Account {
    fn held(&self) -> Load {
        Load { packets: self.inside.packets + self.ahead.packets, bytes: self.inside.bytes + self.ahead.bytes }
    }
}

/// Where a discipline writes down what becomes of its packets.
pub struct Books<'a> {
    account: &'a mut Account,
    freed: &'a mut Freed,
}

impl Books<'_> {
    /// The discipline keeps a packet.
    #[inline]
    pub fn enters<B>(&mut self, p: &Packet<B>) {
        self.account.inside.packets += 1;
        self.account.inside.bytes += u64::from(p.size);
    }
    /// A packet that came at `now` goes to the end of `queue`, or is dropped where `limit` packets are held; false then.
    #[inline]
    pub fn append<B>(&mut self, queue: &mut VecDeque<Aged<B>>, limit: u64, now: Time, p: Packet<B>) -> bool {
        if self.held().packets >= limit {
            self.drops(Cause::Limit, &p);
            return false;
        }
        self.enters(&p);
        queue.push_back((now, p));
        true
    }
    /// A packet is taken out of the discipline, to leave or to be dropped.
    #[inline]
    pub fn leaves<B>(&mut self, p: &Packet<B>) {
        self.account.inside.packets -= 1;
        self.account.inside.bytes -= u64::from(p.size);
    }
    /// A packet that is not, or no longer, in the discipline is dropped.
    #[inline]
    pub fn drops<B>(&mut self, cause: Cause, p: &Packet<B>) {
        self.account.meter.drops(cause, p);
        self.freed.dropped(cause, p);
    }
    /// A packet was marked.
    #[inline]
    pub fn marked(&mut self) {
        self.account.meter.s.marked += 1;
    }
    /// An offloaded packet was cut into so many.
    #[inline]
    pub fn cut(&mut self, segments: u16) {
        self.account.meter.cut(segments);
    }
    /// What the discipline has, without the packet that a parent has looked at.
    #[inline]
    pub fn inside(&self) -> Load {
        self.account.inside
    }
    /// What the queue holds, with that packet.
    #[inline]
    pub fn held(&self) -> Load {
        self.account.held()
    }
}

/// A discipline with its accounting: a queue.
pub struct Queued<B, D> {
    pub(crate) policy: D,
    pub(crate) account: Account,
    /// The packet that a parent has looked at.
    peeked: Option<Aged<B>>,
    /// The last packet has left, and nobody has asked since.
    ask: bool,
}

impl<B, D: Policy<B>> Queued<B, D> {
    /// An empty queue.
    pub fn new(policy: D) -> Queued<B, D> {
        Queued { policy, account: Account::default(), peeked: None, ask: false }
    }
    fn choose(&mut self, now: Time, freed: &mut Freed) -> Option<Aged<B>> {
        self.ask = false;
        self.policy.choose(now, &mut Books { account: &mut self.account, freed })
    }
}

impl<B: Send, D: Policy<B>> Qdisc<B> for Queued<B, D> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.account.meter.arrive(&p);
        let taken = self.policy.admit(now, p, &mut Books { account: &mut self.account, freed });
        let held = self.account.held();
        self.account.meter.held(held.packets, held.bytes);
        taken
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.choose(now, freed))?;
        self.account.ahead = Load::default();
        self.ask = D::ASKS_ONCE_MORE && self.account.inside.packets == 0;
        self.account.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        if D::LOOKS_IN_PLACE {
            self.ask = false;
            return self.policy.head();
        }
        if self.peeked.is_none() {
            self.peeked = self.choose(now, freed);
        }
        let size = self.peeked.as_ref()?.1.size;
        self.account.ahead = Load { packets: 1, bytes: u64::from(size) };
        Some(size)
    }
    fn next_event(&self) -> Time {
        if self.peeked.is_some() || self.ask {
            Time::ZERO
        } else if self.account.inside.packets == 0 {
            Time::MAX
        } else {
            self.policy.ready()
        }
    }
    fn packets(&self) -> u64 {
        self.account.held().packets
    }
    fn bytes(&self) -> u64 {
        self.account.held().bytes
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if depth == 0 {
            // Nobody waits here for what a change lets go of.
            let (account, freed) = (&mut self.account, &mut Freed::default());
            self.policy.change(patch, &mut Books { account, freed });
        }
    }
    fn current(&self, depth: usize) -> Patch {
        if depth == 0 {
            self.policy.current()
        } else {
            Patch::default()
        }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.account.meter.report(D::NAME, self.packets(), self.bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A FIFO of three packets whose even packets are dropped as they leave.
    struct Odd(VecDeque<Aged<u32>>);

    impl Policy<u32> for Odd {
        const NAME: &'static str = "odd";
        const ASKS_ONCE_MORE: bool = true;
        fn admit(&mut self, now: Time, p: Packet<u32>, books: &mut Books<'_>) -> bool {
            if books.held().packets == 3 {
                books.drops(Cause::Limit, &p);
                return false;
            }
            books.enters(&p);
            self.0.push_back((now, p));
            true
        }
        fn choose(&mut self, _: Time, books: &mut Books<'_>) -> Option<Aged<u32>> {
            loop {
                let p = self.0.pop_front()?;
                books.leaves(&p.1);
                if p.1.body % 2 == 1 {
                    return Some(p);
                }
                books.drops(Cause::Aqm, &p.1);
            }
        }
    }

    fn queue(bodies: std::ops::Range<u32>) -> Queued<u32, Odd> {
        let mut q = Queued::new(Odd(VecDeque::new()));
        for body in bodies {
            q.enqueue(Time(0), Packet { size: 100 + body, body, segs: 1, ..Default::default() }, &mut Freed::default());
        }
        q
    }

    #[test]
    fn a_look_decides_once_and_the_packet_still_counts() {
        let (mut q, mut f) = (queue(0..3), Freed { on: true, ..Default::default() });
        assert_eq!((q.peek(Time(1), &mut f), q.peek(Time(2), &mut f)), (Some(101), Some(101)));
        assert_eq!((q.packets(), q.bytes(), q.account.meter.s.drops.aqm, f.list.len()), (2, 203, 1, 1));
        assert!(q.enqueue(Time(3), Packet { body: 5, segs: 1, ..Default::default() }, &mut f));
        assert!(!q.enqueue(Time(3), Packet { body: 7, segs: 1, ..Default::default() }, &mut f), "the peeked packet takes up room");
        let order: Vec<u32> = std::iter::from_fn(|| q.dequeue(Time(4), &mut f)).map(|p| p.body).collect();
        assert_eq!((order, q.packets(), q.bytes()), (vec![1, 5], 0, 0));
    }

    #[test]
    fn the_account_balances() {
        let (mut q, mut f) = (queue(0..4), Freed::default());
        q.peek(Time(1), &mut f);
        let mut s = Vec::new();
        q.report(&mut s);
        let s = &s[0];
        assert_eq!((s.packets_in, s.packets_out, s.drops.total(), s.backlog_packets, s.peak_packets), (4, 0, 2, 2, 3));
    }

    #[test]
    fn once_empty_it_asks_to_be_asked() {
        let (mut q, mut f) = (queue(1..2), Freed::default());
        assert!(q.dequeue(Time(0), &mut f).is_some());
        assert_eq!(q.next_event(), Time::ZERO);
        assert!(q.peek(Time(0), &mut f).is_none());
        assert_eq!(q.next_event(), Time::MAX);
    }
}
