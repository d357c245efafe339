//! sfq, stochastic fairness queueing: flows hashed into slots that send in turn.
//!
//! What it is: each packet goes to the slot of its flow's hash; slots send in a ring, each until it has used up its quantum of
//! bytes. A full queue drops the newest packet of its longest slot (the oldest with `headdrop`). `perturb` gives the hash a new key
//! now and then and sorts what waits anew, so that two flows do not share a slot for ever.
//! Source: McKenney 1990; tc-sfq(8). Linux: sfq_enqueue(), sfq_dequeue(), sfq_drop(), sfq_rehash().
//! How it differs: the hash is over the flow's number, where Linux hashes addresses and ports. A drop from a flow of the same host
//! is not told to its TCP (Linux: NET_XMIT_CN).
//! What it does not model: its RED options (`redflowlimit` and what belongs to it; refused), filters.

use super::{hash, with_peeked, Aged, Freed, Qdisc};
use crate::grammar::{TcError, Words};
use crate::schedule::Patch;
use crate::spec::{QdiscSpec, SpecError};
use crate::stats::{Meter, StageStats};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Stream, Time};

/// An sfq's parameters; what is left out has the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SfqSpec {
    /// Packets in all, 127.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Seconds from one key of the hash to the next; 0 for never.
    #[serde(default)]
    pub perturb: u32,
    /// Bytes that a slot may send in its turn, 1514 (a full frame).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<u32>,
    /// Values of the hash, a power of two, 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divisor: Option<u32>,
    /// Slots, 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Packets in a slot, 127.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Drops the oldest packet of a slot instead of the newest.
    #[serde(default)]
    pub headdrop: bool,
}

/// Most packets of a slot, and the default of the whole queue. Linux: SFQ_MAX_DEPTH.
const DEPTH_MAX: u32 = 127;
/// Slots unless told otherwise, and most slots. Linux: SFQ_DEFAULT_FLOWS, SFQ_MAX_FLOWS.
const FLOWS: u32 = 128;
const FLOWS_MAX: u32 = 0x1_0000 - DEPTH_MAX - 1;
/// Values of the hash. Linux: SFQ_DEFAULT_HASH_DIVISOR.
const DIVISOR: u32 = 1024;
/// A full Ethernet frame, B; the least and the largest quantum. Linux: sfq_init(), sfq_change().
const QUANTUM: u32 = 1514;
const QUANTUM_MIN: u32 = 256;
const QUANTUM_MAX: u32 = 1 << 20;
/// Longest perturbation, s, at the fastest clock of kernels (1000 Hz). Linux: INT_MAX / HZ.
const PERTURB_MAX: u32 = i32::MAX as u32 / 1000;

impl SfqSpec {
    pub(crate) fn words(&self) -> String {
        let mut t = "sfq".to_owned();
        let perturb = (self.perturb > 0).then_some(self.perturb);
        for (word, value) in [
            ("limit", self.limit),
            ("perturb", perturb),
            ("quantum", self.quantum),
            ("divisor", self.divisor),
            ("flows", self.flows),
            ("depth", self.depth),
        ] {
            if let Some(n) = value {
                t += &format!(" {word} {n}");
            }
        }
        if self.headdrop {
            t += " headdrop";
        }
        t
    }
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        let bad = |field: &str, fix: &str| Err(SpecError::new(&format!("sfq {field}"), fix));
        let divisor = self.divisor.unwrap_or(DIVISOR);
        if self.limit.is_some_and(|n| n < 2) {
            return bad("limit", "must be above 1 packet");
        }
        if !divisor.is_power_of_two() || divisor > 65_536 {
            return bad("divisor", "must be a power of two, at most 65536");
        }
        if self.quantum.is_some_and(|n| n == 0 || n > QUANTUM_MAX) {
            return bad("quantum", "must be from 1 byte to 1048576 bytes (a full frame is 1514)");
        }
        if self.flows == Some(0) || self.depth == Some(0) {
            return bad("flows and depth", "must be above 0");
        }
        if self.perturb > PERTURB_MAX {
            return bad("perturb", "must be at most 2147483 s");
        }
        Ok(())
    }
}

/// The packets of one hash value.
#[derive(Debug)]
struct Slot<B> {
    queue: VecDeque<(Time, Packet<B>)>,
    bucket: u32,
    allot: i64,
    /// When its length last changed, in steps: of slots of the same length the latest is the first that a full queue looks at.
    changed: u64,
}

/// The queue itself.
pub struct Sfq<B> {
    spec: SfqSpec,
    limit: u64,
    depth: usize,
    quantum: i64,
    /// Slot of each hash value, or [`EMPTY`].
    table: Vec<u32>,
    slots: Vec<Slot<B>>,
    free: Vec<u32>,
    ring: VecDeque<u32>,
    /// Taken out for a parent that looked ahead. Linux: qdisc_peek_dequeued()
    peeked: Option<Aged<B>>,
    packets: u64,
    bytes: u64,
    steps: u64,
    key: u64,
    random: Stream,
    perturb_at: Time,
    meter: Meter,
}

const EMPTY: u32 = u32::MAX;

impl<B> Sfq<B> {
    /// An empty queue; its keys come from the stream `name/hash`.
    pub fn new(spec: &SfqSpec, seed: u64, name: &str) -> Sfq<B> {
        let divisor = spec.divisor.unwrap_or(DIVISOR);
        let most = spec.divisor.map_or(FLOWS_MAX, |d| d.min(FLOWS_MAX));
        let depth = spec.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let mut flows = spec.flows.unwrap_or(FLOWS).min(most);
        let limit = spec.limit.map_or(DEPTH_MAX, |l| l.min(depth * flows));
        if spec.limit.is_some() {
            flows = flows.min(limit);
        }
        let mut random = Stream::new(seed, &format!("{name}/hash"));
        Sfq {
            limit: u64::from(limit),
            depth: depth as usize,
            quantum: i64::from(spec.quantum.unwrap_or(QUANTUM).max(QUANTUM_MIN)),
            table: vec![EMPTY; divisor as usize],
            slots: (0..flows).map(|_| Slot { queue: VecDeque::new(), bucket: 0, allot: 0, changed: 0 }).collect(),
            free: (0..flows).collect(),
            ring: VecDeque::new(),
            peeked: None,
            packets: 0,
            bytes: 0,
            steps: 0,
            key: random.next_u64(),
            random,
            perturb_at: period(spec).map_or(Time::MAX, Time),
            spec: spec.clone(),
            meter: Meter::default(),
        }
    }
    fn bucket(&self, flow: u32) -> u32 {
        (hash(flow, self.key) >> 32) as u32 & (self.table.len() as u32 - 1)
    }
    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }
    /// The slot of a hash value, a fresh one if it has none; `None` if all are taken.
    fn slot_of(&mut self, bucket: u32) -> Option<u32> {
        let at = self.table[bucket as usize];
        if at != EMPTY {
            return Some(at);
        }
        let fresh = self.free.pop()?;
        self.table[bucket as usize] = fresh;
        self.slots[fresh as usize].bucket = bucket;
        Some(fresh)
    }
    /// Adds to a slot; a new one gets its turn after all others.
    fn put(&mut self, x: u32, arrived: Time, p: Packet<B>) {
        let changed = self.step();
        let slot = &mut self.slots[x as usize];
        slot.changed = changed;
        slot.queue.push_back((arrived, p));
        if slot.queue.len() == 1 {
            slot.allot = self.quantum;
            self.ring.push_back(x);
        }
    }
    /// Takes a packet from a slot; an empty slot is free again.
    fn take(&mut self, x: u32, newest: bool) -> Option<(Time, Packet<B>)> {
        let changed = self.step();
        let slot = &mut self.slots[x as usize];
        let p = if newest { slot.queue.pop_back() } else { slot.queue.pop_front() }?;
        slot.changed = changed;
        if slot.queue.is_empty() {
            self.table[slot.bucket as usize] = EMPTY;
            self.free.push(x);
            self.ring.retain(|&r| r != x);
        }
        self.packets -= 1;
        self.bytes -= u64::from(p.1.size);
        Some(p)
    }
    fn drop_one(&mut self, freed: &mut Freed, x: u32, newest: bool) {
        if let Some((_, p)) = self.take(x, newest) {
            self.meter.s.drops.limit += 1;
            freed.note(&p);
        }
    }
    /// The slot that a full queue drops from: the longest; if all hold one packet, the one whose turn it is. Linux: sfq_drop()
    fn victim(&self) -> Option<u32> {
        let key = |x: u32| (self.slots[x as usize].queue.len(), self.slots[x as usize].changed);
        let longest = self.ring.iter().copied().max_by_key(|&x| key(x))?;
        if self.slots[longest as usize].queue.len() > 1 {
            Some(longest)
        } else {
            self.ring.front().copied()
        }
    }
    /// New keys that were due before now: nothing came or went since. Linux: sfq_perturbation()
    fn perturb(&mut self, now: Time, freed: &mut Freed) {
        let Some(period) = period(&self.spec) else { return };
        while self.perturb_at <= now {
            self.perturb_at = Time(self.perturb_at.0 + period);
            self.key = self.random.next_u64();
            self.rehash(freed);
        }
    }
    /// Sorts what waits anew, slot by slot. Linux: sfq_rehash()
    fn rehash(&mut self, freed: &mut Freed) {
        let mut all = VecDeque::new();
        for x in 0..self.slots.len() as u32 {
            while let Some(p) = self.take(x, false) {
                all.push_back(p);
            }
        }
        for (arrived, p) in all {
            self.packets += 1;
            self.bytes += u64::from(p.size);
            let slot = self.slot_of(self.bucket(p.flow)).filter(|&x| self.slots[x as usize].queue.len() < self.depth);
            match slot {
                Some(x) => self.put(x, arrived, p),
                None => {
                    self.packets -= 1;
                    self.bytes -= u64::from(p.size);
                    self.meter.s.drops.limit += 1;
                    freed.note(&p);
                }
            }
        }
    }
    /// The next packet in turn. Linux: sfq_dequeue()
    fn next(&mut self, now: Time, freed: &mut Freed) -> Option<(Time, Packet<B>)> {
        if self.perturb_at <= now {
            self.perturb(now, freed);
        }
        loop {
            let x = *self.ring.front()?;
            let slot = &mut self.slots[x as usize];
            if slot.allot > 0 {
                let p = self.take(x, false)?;
                self.slots[x as usize].allot -= i64::from(p.1.size);
                return Some(p);
            }
            slot.allot += self.quantum;
            self.ring.rotate_left(1);
        }
    }
}

/// From one key to the next, ns.
fn period(spec: &SfqSpec) -> Option<u64> {
    (spec.perturb > 0).then_some(u64::from(spec.perturb) * 1_000_000_000)
}

impl<B: Send> Qdisc<B> for Sfq<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        if self.perturb_at <= now {
            self.perturb(now, freed);
        }
        let Some(x) = self.slot_of(self.bucket(p.flow)) else {
            self.meter.s.drops.limit += 1;
            freed.note(&p);
            return false;
        };
        if self.slots[x as usize].queue.len() >= self.depth {
            if !self.spec.headdrop {
                self.meter.s.drops.limit += 1;
                freed.note(&p);
                return false;
            }
            // The newest takes the place of the oldest; the slot is not moved among those of its length.
            self.bytes += u64::from(p.size);
            let queue = &mut self.slots[x as usize].queue;
            queue.push_back((now, p));
            if let Some((_, oldest)) = queue.pop_front() {
                self.bytes -= u64::from(oldest.size);
                self.meter.s.drops.limit += 1;
                freed.note(&oldest);
            }
            return true;
        }
        self.packets += 1;
        self.bytes += u64::from(p.size);
        self.put(x, now, p);
        if self.packets + u64::from(self.peeked.is_some()) > self.limit {
            if let Some(x) = self.victim() {
                self.drop_one(freed, x, !self.spec.headdrop);
            }
        }
        self.meter.held(self.packets(), self.bytes());
        true
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
        with_peeked(self.packets, self.bytes, &self.peeked).0
    }
    fn bytes(&self) -> u64 {
        with_peeked(self.packets, self.bytes, &self.peeked).1
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if let (0, Some(limit)) = (depth, patch.limit) {
            self.limit = limit.min(self.depth as u64 * self.slots.len() as u64);
            while self.packets() > self.limit {
                let Some(x) = self.victim() else { break };
                self.drop_one(&mut Freed::default(), x, !self.spec.headdrop);
            }
        }
    }
    fn current(&self, depth: usize) -> Patch {
        Patch { limit: (depth == 0).then_some(self.limit), ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("sfq", self.packets(), self.bytes()));
    }
}

pub(crate) fn parse(w: &mut Words<'_>) -> Result<QdiscSpec, TcError> {
    let known = [
        "quantum",
        "perturb",
        "limit",
        "divisor",
        "flows",
        "depth",
        "headdrop",
        "redflowlimit",
        "min",
        "max",
        "burst",
        "avpkt",
        "probability",
        "ecn",
        "harddrop",
    ];
    let mut spec = SfqSpec::default();
    while let Some(word) = w.word() {
        if !known.contains(&word) {
            return Err(w.wrong(word, &format!("it is not understood: expected {}", known[..7].join(", "))));
        }
        match word {
            "quantum" => spec.quantum = Some(u32::try_from(w.size("quantum")?).unwrap_or(u32::MAX)),
            "perturb" => spec.perturb = w.count("perturb")?,
            "limit" => spec.limit = Some(w.count("limit")?),
            "divisor" => spec.divisor = Some(w.count("divisor")?),
            "flows" => spec.flows = Some(w.count("flows")?),
            "depth" => spec.depth = Some(w.count("depth")?),
            "headdrop" => spec.headdrop = true,
            _ => return Err(w.wrong(word, "RED inside sfq is not modelled: leave it away, or use a red queue")),
        }
    }
    // What the kernel takes for "not given".
    for value in [&mut spec.limit, &mut spec.quantum, &mut spec.divisor, &mut spec.flows, &mut spec.depth] {
        *value = value.filter(|&n| n > 0);
    }
    spec.validate().map_err(|e| w.wrong_spec(&e))?;
    Ok(QdiscSpec::Sfq(spec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_tc;

    fn sfq(words: &str) -> Sfq<u32> {
        match parse_tc(words).unwrap() {
            QdiscSpec::Sfq(s) => Sfq::new(&s, 1, "t"),
            _ => unreachable!(),
        }
    }
    fn packet(flow: u32, body: u32) -> Packet<u32> {
        Packet { flow, size: 1514, segs: 1, body, ..Default::default() }
    }
    fn put(q: &mut Sfq<u32>, flow: u32, n: u32) {
        (0..n).for_each(|i| {
            q.enqueue(Time(0), packet(flow, i), &mut Freed::default());
        });
    }
    fn all(q: &mut Sfq<u32>) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| q.dequeue(Time(0), &mut Freed::default())).map(|p| (p.flow, p.body)).collect()
    }

    #[test]
    fn flows_take_turns() {
        let mut q = sfq("sfq");
        put(&mut q, 1, 3);
        put(&mut q, 2, 2);
        assert_eq!(all(&mut q), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)]);
        assert_eq!((q.packets(), q.bytes(), q.free.len()), (0, 0, 128));
    }

    #[test]
    fn a_quantum_of_two_frames_and_a_byte_lets_three_go() {
        // 3029 − 1514 = 1515, then 1, then −1513: a slot sends until its credit is used up; it gets 3029 more, 1516: two more.
        let mut q = sfq("sfq quantum 3029");
        put(&mut q, 1, 6);
        put(&mut q, 2, 6);
        let order: Vec<u32> = all(&mut q).iter().map(|p| p.0).collect();
        assert_eq!(order, [1, 1, 1, 2, 2, 2, 1, 1, 2, 2, 1, 2]);
    }

    #[test]
    fn a_full_queue_drops_the_newest_of_the_longest() {
        let mut q = sfq("sfq limit 8");
        put(&mut q, 1, 6);
        put(&mut q, 2, 4);
        // 6 + 2 fill it; the third and fourth of flow 2 cost flow 1 its fifth and sixth.
        assert_eq!(q.meter.s.drops.limit, 2);
        let got = all(&mut q);
        assert_eq!(got.iter().filter(|p| p.0 == 1).map(|p| p.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(got.iter().filter(|p| p.0 == 2).count(), 4);
    }

    #[test]
    fn with_headdrop_the_oldest() {
        let mut q = sfq("sfq limit 4 headdrop");
        put(&mut q, 1, 6);
        assert_eq!(all(&mut q), [(1, 2), (1, 3), (1, 4), (1, 5)]);
        let mut q = sfq("sfq depth 3 headdrop");
        put(&mut q, 1, 6);
        assert_eq!(all(&mut q), [(1, 3), (1, 4), (1, 5)]);
        let mut q = sfq("sfq depth 1 headdrop");
        put(&mut q, 1, 3);
        assert_eq!((all(&mut q), q.bytes()), (vec![(1, 2)], 0));
    }

    #[test]
    fn a_slot_holds_127_packets() {
        let mut q = sfq("sfq limit 1000");
        put(&mut q, 1, 200);
        assert_eq!((q.packets(), q.meter.s.drops.limit), (127, 73));
    }

    #[test]
    fn a_new_key_keeps_what_waits_in_order() {
        let mut q = sfq("sfq perturb 1");
        for flow in 0..20 {
            put(&mut q, flow, 3);
        }
        let key = q.key;
        let got = std::iter::from_fn(|| q.dequeue(Time(1_000_000_000), &mut Freed::default())).map(|p| (p.flow, p.body));
        let mut last = [None; 20];
        for (flow, body) in got.collect::<Vec<_>>() {
            assert!(last[flow as usize] < Some(body), "flow {flow}");
            last[flow as usize] = Some(body);
        }
        assert_eq!(last, [Some(2); 20]);
        assert_ne!(q.key, key);
    }

    #[test]
    fn a_parent_that_looks_ahead_takes_the_packet_out() {
        let mut q = sfq("sfq limit 2");
        put(&mut q, 1, 1);
        assert_eq!(q.peek(Time(0), &mut Freed::default()), Some(1514));
        put(&mut q, 1, 2);
        assert_eq!((q.packets(), q.meter.s.drops.limit), (2, 1), "it still counts");
        assert_eq!(all(&mut q), [(1, 0), (1, 0)]);
    }
}
