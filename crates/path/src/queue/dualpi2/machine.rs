//! dualpi2 at run time.

use super::super::body::{segments, Body};
use super::super::{with_peeked, Aged, Freed, Qdisc};
use super::DualPi2Spec;
use crate::schedule::Patch;
use crate::stats::{Meter, StageStats};
use std::collections::VecDeque;
use tcpscape_base::{Duration, Ecn, Packet, Stream, Time};

/// Defaults of tc-dualpi2(8), as RFC 9332 appendix A has them for round trips up to 100 ms.
const LIMIT: u32 = 10_000;
const COUPLING: u32 = 2;
const STEP: Duration = Duration(1_000_000);
const TARGET: Duration = Duration(15_000_000);
const TUPDATE: Duration = Duration(16_000_000);
const ALPHA: u32 = 41;
const BETA: u32 = 819;
const CLASSIC_PROTECTION: u32 = 10;
/// A full Ethernet frame, B; below two of them in the queue nothing is dropped.
const MTU: u64 = 1514;
/// What the kernel keeps of a packet besides its payload, B (`skb->truesize` of a segment).
const SKB_OVERHEAD: u64 = 1280;
/// Certainty.
const ONE: u64 = u32::MAX as u64;

struct Held<B> {
    arrived: Time,
    /// Whether the step threshold counts for it.
    step: bool,
    packet: Packet<B>,
}

/// The queue itself.
pub struct DualPi2<B> {
    spec: DualPi2Spec,
    /// Low latency, classic.
    l: VecDeque<Held<B>>,
    c: VecDeque<Held<B>>,
    /// p' of 2³².
    base: u64,
    last_delay: i64,
    update_at: Time,
    /// Below or at 0 it is L's turn.
    credit: i64,
    peeked: Option<Aged<B>>,
    memory: u64,
    bytes: u64,
    random: Stream,
    meter: Meter,
}

impl<B: Body> DualPi2<B> {
    /// An empty queue; its random numbers come from the stream `name/draws`.
    pub fn new(spec: &DualPi2Spec, seed: u64, name: &str) -> DualPi2<B> {
        let mut q = DualPi2 {
            spec: spec.clone(),
            l: VecDeque::new(),
            c: VecDeque::new(),
            base: 0,
            last_delay: 0,
            update_at: Time(spec.tupdate.unwrap_or(TUPDATE).0),
            credit: 0,
            peeked: None,
            memory: 0,
            bytes: 0,
            random: Stream::new(seed, &format!("{name}/draws")),
            meter: Meter::default(),
        };
        q.protect_anew();
        q
    }
    fn protection(&self) -> i64 {
        i64::from(self.spec.classic_protection.unwrap_or(CLASSIC_PROTECTION))
    }
    fn protect_anew(&mut self) {
        self.credit = MTU as i64 * (self.protection() - (100 - self.protection()));
    }
    fn coupling(&self) -> u64 {
        u64::from(self.spec.coupling_factor.unwrap_or(COUPLING))
    }
    /// The controller's steps that were due before now: nothing came or went since. RFC 9332 figure 6
    fn update(&mut self, now: Time) {
        let period = self.spec.tupdate.unwrap_or(TUPDATE);
        while self.update_at <= now {
            let t = self.update_at;
            let age = |q: &VecDeque<Held<B>>| q.front().map_or(0, |h| t.since(h.arrived).0);
            let delay = age(&self.l).max(age(&self.c)) as i64;
            let gain = |n: Option<u32>, default: u32, d: i64| i128::from(n.unwrap_or(default)) * i128::from(d);
            let target = self.spec.target.unwrap_or(TARGET).0 as i64;
            let pull = gain(self.spec.alpha, ALPHA, delay - target) + gain(self.spec.beta, BETA, delay - self.last_delay);
            // 1/256 Hz · ns → of 2³²
            let move_by = (pull << 32) / (256 * 1_000_000_000);
            // Where nothing of L may be dropped, L is marked always at most.
            let most = if self.spec.overflow { ONE / self.coupling() } else { ONE };
            self.base = (i128::from(self.base) + move_by).clamp(0, i128::from(most)) as u64;
            self.last_delay = delay;
            self.update_at = t + period;
            if delay == 0 && self.base == 0 {
                // Nothing happens until a packet comes: the next step that is still ahead.
                let rest = now.since(self.update_at).0 / period.0;
                self.update_at += Duration(rest * period.0);
            }
        }
    }
    fn roll(&mut self, p: u64) -> bool {
        u64::from(self.random.next_u32()) < p
    }
    fn mark(&mut self, p: &mut Packet<B>) {
        if p.ecn != Ecn::Ce {
            self.meter.s.marked += 1;
        }
        p.ecn = Ecn::Ce;
    }
    fn is_low(&self, p: &Packet<B>) -> bool {
        matches!(p.ecn, Ecn::Ect1 | Ecn::Ce) || self.spec.any_ect && p.ecn == Ecn::Ect0
    }
    /// Whether a packet is to be dropped; may mark it instead. RFC 9332 figures 5 and 8
    fn judge(&mut self, p: &mut Packet<B>, low: bool) -> bool {
        if self.bytes < 2 * MTU {
            return false;
        }
        let marking = self.base * self.coupling();
        let overload = marking > ONE;
        if low && !overload {
            if self.roll(marking) {
                self.mark(p);
            }
            return false;
        }
        let squared = self.roll(self.base) && self.roll(self.base);
        if low {
            if squared && !self.spec.overflow {
                return true;
            }
            self.mark(p);
            return false;
        }
        if squared && !overload && p.ecn != Ecn::NotEct {
            self.mark(p);
            return false;
        }
        squared
    }
    fn memory_of(p: &Packet<B>) -> u64 {
        SKB_OVERHEAD + u64::from(p.body.payload())
    }
    /// Takes one packet in; false if there is no room for it, or it was dropped at once.
    fn put(&mut self, now: Time, mut p: Packet<B>, freed: &mut Freed) -> bool {
        let limit = u64::from(self.spec.limit.unwrap_or(LIMIT));
        let memory = self.spec.memlimit.map_or(limit * 2 * MTU, u64::from);
        if self.packets() >= limit || self.memory + Self::memory_of(&p) > memory {
            self.meter.s.drops.limit += 1;
            freed.note(&p);
            return false;
        }
        let low = self.is_low(&p);
        if self.spec.drop_enqueue && self.judge(&mut p, low) {
            self.meter.s.drops.aqm += 1;
            freed.note(&p);
            return false;
        }
        self.bytes += u64::from(p.size);
        self.memory += Self::memory_of(&p);
        let step = low && self.l.len() as u64 >= u64::from(self.spec.min_qlen_step.unwrap_or(0));
        let held = Held { arrived: now, step, packet: p };
        if low {
            self.l.push_back(held);
        } else {
            self.c.push_back(held);
        }
        true
    }
    /// The head of the queue whose turn it is, and what the turn does to the credit. RFC 9332 §4.2.2
    fn pick(&mut self) -> Option<(Held<B>, bool, i64)> {
        let (l, c) = (!self.l.is_empty(), !self.c.is_empty());
        let low = l && (self.credit <= 0 || !c);
        let weight = match (low, l && c) {
            (_, false) => 0,
            (true, _) => self.protection(),
            (false, _) => self.protection() - 100,
        };
        let h = if low { self.l.pop_front() } else { self.c.pop_front() };
        let Some(h) = h else {
            self.protect_anew();
            return None;
        };
        self.memory -= Self::memory_of(&h.packet);
        let size = i64::from(h.packet.size);
        Some((h, low, weight * size))
    }
    fn stepped(&self, now: Time, h: &Held<B>) -> bool {
        h.step
            && match self.spec.step_packets {
                Some(n) => self.l.len() as u64 > u64::from(n),
                None => now.since(h.arrived) > self.spec.step_thresh.unwrap_or(STEP),
            }
    }
    fn next(&mut self, now: Time, freed: &mut Freed) -> Option<(Time, Packet<B>)> {
        self.update(now);
        loop {
            let (mut h, low, credit) = self.pick()?;
            let dropped = !self.spec.drop_enqueue && self.judge(&mut h.packet, low);
            self.bytes -= u64::from(h.packet.size);
            if dropped {
                self.meter.s.drops.aqm += 1;
                freed.note(&h.packet);
                continue;
            }
            if low && self.stepped(now, &h) {
                self.mark(&mut h.packet);
            }
            self.credit += credit;
            return Some((h.arrived, h.packet));
        }
    }
}

impl<B: Body> Qdisc<B> for DualPi2<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        self.update(now);
        let taken = if p.segs > 1 && !self.spec.no_split_gso {
            self.meter.s.segmented += u64::from(p.segs) - 1;
            let parts: Vec<_> = segments(&p).collect();
            let mut taken = false;
            for s in parts {
                taken |= self.put(now, s, freed);
            }
            taken
        } else {
            self.put(now, p, freed)
        };
        self.meter.held(self.packets(), self.bytes());
        taken
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.next(now, freed))?;
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() {
            self.peeked = self.next(now, freed);
        }
        self.peeked.as_ref().map(|(_, p)| p.size)
    }
    fn packets(&self) -> u64 {
        with_peeked((self.l.len() + self.c.len()) as u64, self.bytes, &self.peeked).0
    }
    fn bytes(&self) -> u64 {
        with_peeked((self.l.len() + self.c.len()) as u64, self.bytes, &self.peeked).1
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if let (0, Some(limit)) = (depth, patch.limit) {
            self.spec.limit = Some(u32::try_from(limit).unwrap_or(u32::MAX));
        }
    }
    fn current(&self, depth: usize) -> Patch {
        let limit = u64::from(self.spec.limit.unwrap_or(LIMIT));
        Patch { limit: (depth == 0).then_some(limit), ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("dualpi2", self.packets(), self.bytes()));
    }
}

#[cfg(test)]
impl<B> DualPi2<B> {
    /// p' and its place for tests.
    pub(super) fn base(&mut self) -> &mut u64 {
        &mut self.base
    }
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.meter.s.drops.aqm, self.meter.s.marked)
    }
}
