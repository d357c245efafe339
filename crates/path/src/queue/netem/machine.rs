//! netem at run time.

use super::slot::SlotMachine;
use super::NetemSpec;
use crate::discipline::{segments, AnyQdisc, Body, Cause, Freed, Meter, Patch, Qdisc, StageStats, DELAY_MAX};
use crate::impair::chance::{Chance, Crandom, Reorder};
use crate::impair::loss::{Loss, LossMachine};
use crate::parts::dist;
use crate::parts::due::{Due, Held};
use std::collections::VecDeque;
use tcpscape_base::{Duration, Packet, Rate, Stream, Time};

/// The queue itself.
pub struct Netem<B> {
    limit: u64,
    delays: Delays,
    ecn: bool,
    loss: LossMachine,
    duplicate: Chance,
    corrupt: Chance,
    reorder: Reorder,
    slot: Option<SlotMachine>,
    /// Set when a slot may have to be drawn again.
    poked: bool,
    /// Packets that overtook, ready now.
    ready: VecDeque<Held<B>>,
    queue: Due<B>,
    /// The packet that a parent has looked at.
    peeked: Option<Held<B>>,
    child: Option<AnyQdisc<B>>,
    backlog: u64,
    orphans: bool,
    base_loss: Loss,
    /// It does nothing to packets but lose and delay them, each by itself.
    plain: bool,
    meter: Meter,
}

/// When packets are due: delay, jitter and rate.
#[derive(Clone, Debug)]
struct Delays {
    delay: i64,
    jitter: i32,
    table: Option<&'static dist::Table>,
    random: Crandom,
    rate: Option<Cells>,
}

impl Delays {
    /// When a packet of this size is due; `last` is when the last one that waits is.
    #[inline(always)]
    fn due(&mut self, now: Time, size: u32, last: impl FnOnce() -> Option<i64>) -> i64 {
        let random = if self.jitter == 0 { 0 } else { self.random.draw() };
        let ready = now.0 as i64 + dist::sample(self.delay, self.jitter, random, self.table);
        match &self.rate {
            // The line takes it up when its delay is over and the last packet has left.
            Some(cells) => ready.max(last().unwrap_or(ready)) + cells.nanos(size),
            None => ready,
        }
    }
}

/// `rate` with its overheads.
#[derive(Clone, Copy, Debug)]
struct Cells {
    rate: Rate,
    packet_overhead: i32,
    cell_size: u32,
    cell_overhead: i32,
}

impl Cells {
    /// The time of a packet of this size, ns: with its overhead, in whole cells where there are any; a day at most.
    #[inline]
    fn nanos(&self, size: u32) -> i64 {
        let mut len = (i64::from(size) + i64::from(self.packet_overhead)).max(0) as u64;
        if self.cell_size > 0 {
            let cell = (i64::from(self.cell_size) + i64::from(self.cell_overhead)).max(0) as u64;
            len = len.div_ceil(u64::from(self.cell_size)).saturating_mul(cell);
        }
        (len.saturating_mul(1_000_000_000) / self.rate.bytes_per_sec()).min(DELAY_MAX.0) as i64
    }
}

impl<B: Body> Netem<B> {
    /// Empty, in front of `child` where there is one; its streams are `name/loss`, `name/delay` and so on.
    pub fn new<C>(s: &NetemSpec<C>, child: Option<AnyQdisc<B>>, seed: u64, name: &str) -> Netem<B> {
        let stream = |purpose: &str| Stream::new(seed, &format!("{name}/{purpose}"));
        let cells = |rate| Cells { rate, packet_overhead: s.packet_overhead, cell_size: s.cell_size, cell_overhead: s.cell_overhead };
        let mut q = Netem {
            limit: u64::from(s.limit),
            delays: Delays {
                delay: s.delay.0 as i64,
                jitter: s.jitter.0 as i32,
                table: dist::table(s.distribution),
                random: Crandom::new(s.delay_correlation, stream("delay")),
                rate: s.rate.map(cells),
            },
            ecn: s.ecn,
            loss: LossMachine::new(s.loss, stream("loss")),
            duplicate: Chance::new(s.duplicate, s.duplicate_correlation, stream("duplicate")),
            corrupt: Chance::new(s.corrupt, s.corrupt_correlation, stream("corrupt")),
            reorder: Reorder::new(s.reorder, s.reorder_correlation, if s.reorder.0 > 0 { s.gap.max(1) } else { 0 }, stream("reorder")),
            slot: s.slot.as_ref().map(|x| SlotMachine::new(x, stream("slot"))),
            poked: false,
            ready: VecDeque::new(),
            queue: Due::default(),
            peeked: None,
            child,
            backlog: 0,
            // A copy has no sender, so that one may be given back too often: with copies everything is orphaned.
            orphans: s.delay.0 > 0 || s.jitter.0 > 0 || s.rate.is_some() || s.duplicate.0 > 0,
            base_loss: s.loss,
            plain: false,
            meter: Meter::default(),
        };
        q.plain = q.is_plain();
        q
    }

    /// Whether it does nothing to packets but lose and delay them, each by itself.
    fn is_plain(&self) -> bool {
        let changes_none = self.duplicate.never_strikes() && self.corrupt.never_strikes();
        changes_none && !self.reorder.is_on() && self.slot.is_none() && self.delays.rate.is_none() && self.child.is_none()
    }

    /// The order of decisions: duplicate, lose or mark, corrupt, limit (docs/models/queues/netem.md).
    #[inline(never)]
    fn admit(&mut self, now: Time, p: Packet<B>, may_copy: bool, freed: &mut Freed) -> bool {
        let copy = may_copy && self.duplicate.strikes();
        let lost = self.loss.strikes();
        if lost || copy {
            return self.lose_or_copy(now, p, lost, copy, freed);
        }
        self.corrupt_and_hold(now, p, freed)
    }

    #[inline(never)]
    fn lose_or_copy(&mut self, now: Time, mut p: Packet<B>, lost: bool, copy: bool, freed: &mut Freed) -> bool {
        if lost && self.ecn && p.mark() {
            self.meter.s.marked += 1;
        } else if lost {
            self.meter.drops(Cause::Loss, &p);
            if !copy {
                freed.dropped(Cause::Loss, &p);
                return true;
            }
            // One of the two is lost: the packet goes on alone.
            self.meter.copies(&p);
            return self.corrupt_and_hold(now, p, freed);
        }
        let copied = copy && self.packets() < self.limit;
        if copied {
            self.meter.copies(&p);
            self.admit(now, p.clone(), false, freed);
        }
        // A packet whose copy took the last place counts as taken: its sender must not send it again.
        self.corrupt_and_hold(now, p, freed) || copied
    }

    #[inline(always)]
    fn corrupt_and_hold(&mut self, now: Time, mut p: Packet<B>, freed: &mut Freed) -> bool {
        if self.corrupt.strikes() {
            self.meter.s.corrupted += 1;
            if p.segs > 1 {
                return self.cut(now, &p, freed);
            }
            p.corrupt = true;
        }
        self.hold(now, p, freed)
    }

    /// An offloaded packet is cut and its first segment damaged; the rest enter anew.
    #[cold]
    fn cut(&mut self, now: Time, p: &Packet<B>, freed: &mut Freed) -> bool {
        self.meter.cut(p.segs);
        let mut taken = false;
        for (i, mut s) in segments(p).enumerate() {
            if i == 0 {
                s.corrupt = true;
                taken = self.hold(now, s, freed);
            } else {
                taken |= self.admit(now, s, true, freed);
            }
        }
        taken
    }

    /// What becomes of a packet that is not lost where nothing but a delay can become of it: what [`Netem::admit`] does then.
    #[inline(always)]
    fn delay(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        if self.own_packets() >= self.limit {
            return self.hold_any(now, p, freed);
        }
        self.backlog += u64::from(p.size);
        let ticket = self.meter.ticket();
        let due = self.delays.due(now, p.size, || None);
        self.queue.push(Held { due, arrived: now, ticket, packet: p });
        self.meter.held(self.own_packets(), self.backlog);
        true
    }

    #[cold]
    fn hold_any(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.hold(now, p, freed)
    }

    /// The limit, then the due time.
    #[inline(always)]
    fn hold(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        if self.packets() >= self.limit {
            self.meter.drops(Cause::Limit, &p);
            freed.dropped(Cause::Limit, &p);
            return false;
        }
        self.backlog += u64::from(p.size);
        let ticket = self.meter.ticket();
        if self.reorder.overtakes() {
            self.ready.push_front(Held { due: now.0 as i64, arrived: now, ticket, packet: p });
        } else {
            // An overtaker's waiting counts too.
            let last = || self.queue.last_due().max(self.ready.back().map(|h| h.due));
            let due = self.delays.due(now, p.size, last);
            self.queue.push(Held { due, arrived: now, ticket, packet: p });
        }
        self.poked = self.slot.is_some();
        let (packets, bytes) = (self.packets(), self.bytes());
        self.meter.held(packets, bytes);
        true
    }

    /// The next packet that is due, still to be counted out.
    #[inline(always)]
    fn due(&mut self, now: Time) -> Option<Held<B>> {
        let t = now.0 as i64;
        let due = self.queue.first_due()?;
        let shut = self.slot.as_mut().is_some_and(|slot| slot.opens(t, due) > t);
        if shut || due > t {
            return None;
        }
        let h = self.queue.pop()?;
        if let Some(slot) = &mut self.slot {
            slot.used(t, h.packet.size);
        }
        Some(h)
    }

    /// A packet has waited out its delay: it leaves, or enters the child.
    #[inline(always)]
    fn ripe(&mut self, now: Time, h: Held<B>) -> Packet<B> {
        self.backlog -= u64::from(h.packet.size);
        self.meter.delay(now, h.arrived, h.ticket);
        h.packet
    }
    /// A packet has waited out its delay and leaves.
    #[inline(always)]
    fn count_out(&mut self, now: Time, h: Held<B>) -> Packet<B> {
        self.meter.leave(&h.packet);
        self.ripe(now, h)
    }

    /// What leaves the queue of due times (and of overtakers) next.
    #[inline(always)]
    fn next_out(&mut self, now: Time) -> Option<Held<B>> {
        self.peeked.take().or_else(|| self.ready.pop_front()).or_else(|| self.due(now))
    }
    #[inline]
    fn own_packets(&self) -> u64 {
        (self.queue.len() + self.ready.len() + usize::from(self.peeked.is_some())) as u64
    }

    /// Moves everything that is due into the child.
    fn feed_child(&mut self, now: Time, freed: &mut Freed) {
        while let Some(h) = self.due(now) {
            let p = self.ripe(now, h);
            if let Some(c) = &mut self.child {
                c.enqueue(now, p, freed);
            }
            // The child may have cut it into several.
            let (packets, bytes) = (self.packets(), self.bytes());
            self.meter.held(packets, bytes);
        }
    }
}

impl<B: Body> Qdisc<B> for Netem<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        if !self.plain {
            return self.admit(now, p, true, freed);
        }
        if self.loss.strikes() {
            return self.lose_or_copy(now, p, true, false, freed);
        }
        self.delay(now, p, freed)
    }

    #[inline]
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        if self.plain && self.peeked.is_none() {
            let h = self.queue.pop_due(now.0 as i64)?;
            return Some(self.count_out(now, h));
        }
        self.poked = false;
        if self.child.is_none() {
            let is_only_queue = self.peeked.is_none() && self.ready.is_empty();
            let h = if is_only_queue { self.due(now)? } else { self.next_out(now)? };
            return Some(self.count_out(now, h));
        }
        if let Some(h) = self.ready.pop_front() {
            return Some(self.count_out(now, h));
        }
        self.feed_child(now, freed);
        let p = self.child.as_mut().and_then(|c| c.dequeue(now, freed))?;
        self.meter.leave(&p);
        Some(p)
    }

    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        self.poked = false;
        if self.child.is_some() {
            if let Some(h) = self.ready.front() {
                return Some(h.packet.size);
            }
            self.feed_child(now, freed);
            return self.child.as_mut().and_then(|c| c.peek(now, freed));
        }
        self.peeked = self.next_out(now);
        self.peeked.as_ref().map(|h| h.packet.size)
    }

    #[inline]
    fn next_event(&self) -> Time {
        if self.plain && self.peeked.is_none() {
            return self.queue.first_due().map_or(Time::MAX, |due| Time(due.max(0) as u64));
        }
        if self.peeked.is_some() || !self.ready.is_empty() || self.poked {
            return Time::ZERO;
        }
        let child = self.child.as_ref().map_or(Time::MAX, |c| c.next_event());
        let Some(mut due) = self.queue.first_due() else { return child };
        if let Some(s) = &self.slot {
            due = due.max(s.at());
        }
        child.min(Time(due.max(0) as u64))
    }

    #[inline]
    fn packets(&self) -> u64 {
        self.own_packets() + self.child.as_ref().map_or(0, |c| c.packets())
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.backlog + self.child.as_ref().map_or(0, |c| c.bytes())
    }
    fn orphans(&self) -> bool {
        self.orphans || self.child.as_ref().is_some_and(|c| c.orphans())
    }

    fn change(&mut self, now: Time, depth: usize, patch: &Patch) {
        if depth > 0 {
            if let Some(c) = &mut self.child {
                c.change(now, depth - 1, patch);
            }
            return;
        }
        let delays = &mut self.delays;
        delays.delay = patch.delay.map_or(delays.delay, |d| d.0 as i64);
        delays.jitter = patch.jitter.map_or(delays.jitter, |j| i32::try_from(j.0).unwrap_or(i32::MAX));
        self.limit = patch.limit.unwrap_or(self.limit);
        if let Some(p) = patch.loss {
            self.loss.set(p);
        }
        if patch.restore_loss {
            self.loss.restore(self.base_loss);
        }
        if let Some(rate) = patch.rate {
            let cells = delays.rate.unwrap_or(Cells { rate, packet_overhead: 0, cell_size: 0, cell_overhead: 0 });
            delays.rate = (rate.bytes_per_sec() > 0).then_some(Cells { rate, ..cells });
        }
        self.reorder.restart();
        self.plain = self.is_plain();
    }
    fn current(&self, depth: usize) -> Patch {
        if depth > 0 {
            return self.child.as_ref().map_or(Patch::default(), |c| c.current(depth - 1));
        }
        let loss = match self.loss.model() {
            Loss::Random { p, .. } => Some(p),
            _ => None,
        };
        Patch {
            delay: Some(Duration(self.delays.delay as u64)),
            jitter: Some(Duration(self.delays.jitter as u64)),
            limit: Some(self.limit),
            rate: Some(self.delays.rate.map_or(Rate(0), |c| c.rate)),
            loss,
            restore_loss: loss.is_none(),
            ..Default::default()
        }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("netem", self.packets(), self.bytes()));
        let from = out.len();
        if let Some(c) = &self.child {
            c.report(out);
            out[from..].iter_mut().for_each(|s| s.depth += 1);
        }
    }
}

#[cfg(test)]
mod tests;
