//! dualpi2 at run time.

use super::DualPi2Spec;
use crate::discipline::{segments, Aged, Body, Books, Cause, Discipline, Patch, Policy};
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
/// What Linux keeps of a packet besides its payload, B (docs/models/queues/dualpi2.md).
const SKB_OVERHEAD: u64 = 1280;
/// Certainty.
const ONE: u64 = u32::MAX as u64;

/// Most packets and most memory, B, in both queues.
pub(super) fn limits(spec: &DualPi2Spec) -> (u64, u64) {
    let packets = u64::from(spec.limit.unwrap_or(LIMIT));
    (packets, spec.memlimit.map_or(packets * 2 * MTU, u64::from))
}

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
    memory: u64,
    random: Stream,
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
            memory: 0,
            random: Stream::new(seed, &format!("{name}/draws")),
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
    fn mark(p: &mut Packet<B>, books: &mut Books<'_>) {
        if p.ecn != Ecn::Ce {
            books.marked();
        }
        p.ecn = Ecn::Ce;
    }
    fn is_low(&self, p: &Packet<B>) -> bool {
        matches!(p.ecn, Ecn::Ect1 | Ecn::Ce) || self.spec.any_ect && p.ecn == Ecn::Ect0
    }
    /// Whether a packet is to be dropped; may mark it instead. RFC 9332 figures 5 and 8
    fn judge(&mut self, p: &mut Packet<B>, low: bool, books: &mut Books<'_>) -> bool {
        if books.inside().bytes < 2 * MTU {
            return false;
        }
        let marking = self.base * self.coupling();
        let overload = marking > ONE;
        if low && !overload {
            if self.roll(marking) {
                Self::mark(p, books);
            }
            return false;
        }
        let squared = self.roll(self.base) && self.roll(self.base);
        let marks = if low { !squared || self.spec.overflow } else { squared && !overload && p.ecn != Ecn::NotEct };
        if marks {
            Self::mark(p, books);
        }
        squared && !marks
    }
    fn memory_of(p: &Packet<B>) -> u64 {
        SKB_OVERHEAD + u64::from(p.body.payload())
    }
    /// Takes one packet in; false if there is no room for it, or it was dropped at once.
    fn put(&mut self, now: Time, mut p: Packet<B>, books: &mut Books<'_>) -> bool {
        let (limit, memory) = limits(&self.spec);
        if books.held().packets >= limit || self.memory + Self::memory_of(&p) > memory {
            books.drops(Cause::Limit, &p);
            return false;
        }
        let low = self.is_low(&p);
        if self.spec.drop_enqueue && self.judge(&mut p, low, books) {
            books.drops(Cause::Aqm, &p);
            return false;
        }
        books.enters(&p);
        self.memory += Self::memory_of(&p);
        let step = low && self.l.len() as u64 >= u64::from(self.spec.min_qlen_step.unwrap_or(0));
        let queue = if low { &mut self.l } else { &mut self.c };
        queue.push_back(Held { arrived: now, step, packet: p });
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
}

impl<B: Body> Policy<B> for DualPi2<B> {
    const NAME: &'static str = DualPi2Spec::NAME;

    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool {
        self.update(now);
        if p.segs <= 1 || self.spec.no_split_gso {
            return self.put(now, p, books);
        }
        books.cut(p.segs);
        segments(&p).fold(false, |taken, s| self.put(now, s, books) | taken)
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.update(now);
        loop {
            let (mut h, low, credit) = self.pick()?;
            let dropped = !self.spec.drop_enqueue && self.judge(&mut h.packet, low, books);
            books.leaves(&h.packet);
            if dropped {
                books.drops(Cause::Aqm, &h.packet);
                continue;
            }
            if low && self.stepped(now, &h) {
                Self::mark(&mut h.packet, books);
            }
            self.credit += credit;
            return Some((h.arrived, h.packet));
        }
    }
    fn change(&mut self, patch: &Patch, _: &mut Books<'_>) {
        if let Some(limit) = patch.limit {
            self.spec.limit = Some(u32::try_from(limit).unwrap_or(u32::MAX));
        }
    }
    fn current(&self) -> Patch {
        Patch { limit: Some(u64::from(self.spec.limit.unwrap_or(LIMIT))), ..Default::default() }
    }
}

#[cfg(test)]
impl<B> DualPi2<B> {
    /// p' and its place for tests.
    pub(super) fn base(&mut self) -> &mut u64 {
        &mut self.base
    }
}
