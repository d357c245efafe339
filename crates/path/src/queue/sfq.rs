//! sfq, stochastic fairness queueing: flows hashed into slots that send in turn.
//!
//! What it is: each packet goes to the slot of its flow's hash; slots send in a ring, each until it has used up its quantum of
//! bytes. A full queue drops the newest packet of its longest slot (the oldest with `headdrop`). `perturb` gives the hash a new key
//! now and then and sorts what waits anew, so that two flows do not share a slot for ever.
//! Source: McKenney 1990; tc-sfq(8).
//! How it differs: the hash is over the flow's number, where Linux hashes addresses and ports. A drop from a flow of the same host
//! is not told to its TCP (Linux: NET_XMIT_CN).
//! What it does not model: its RED options (`redflowlimit` and what belongs to it; refused), filters.

use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Patch, Policy, Queued};
use crate::values::SpecError;
use crate::words::{TcError, Words};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{flow_hash, Packet, Stream, Time};

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

/// Most packets of a slot, and the default of the whole queue. tc-sfq(8).
const DEPTH_MAX: u32 = 127;
/// Slots unless told otherwise, and most slots. tc-sfq(8).
const FLOWS: u32 = 128;
const FLOWS_MAX: u32 = 0x1_0000 - DEPTH_MAX - 1;
/// Values of the hash. tc-sfq(8).
const DIVISOR: u32 = 1024;
/// A full Ethernet frame, B; the least and the largest quantum. docs/models/queues/sfq.md
const QUANTUM: u32 = 1514;
const QUANTUM_MIN: u32 = 256;
const QUANTUM_MAX: u32 = 1 << 20;
/// Longest perturbation, s, that 31 bits of ticks hold at the fastest clock of kernels (1000 Hz).
const PERTURB_MAX: u32 = i32::MAX as u32 / 1000;

/// The words; those after the seventh belong to its RED options.
const WORDS: [&str; 15] = [
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

impl Discipline for SfqSpec {
    const NAME: &'static str = "sfq";
    const EXAMPLE: &'static str = "sfq perturb 10";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<SfqSpec, TcError> {
        let mut spec = SfqSpec::default();
        while let Some(word) = w.word() {
            if !WORDS.contains(&word) {
                return Err(w.wrong(word, &format!("it is not understood: expected {}", WORDS[..7].join(", "))));
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
        Ok(spec)
    }
    fn words(&self) -> String {
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
    fn validate(&self) -> Result<(), SpecError> {
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
    fn describe(&self) -> Description {
        Description::of_packets(Self::NAME, self.sizes().limit)
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Sfq::new(self, seed, name)))
    }
}

/// How much it holds: packets in all and in a slot, and slots.
struct Sizes {
    limit: u32,
    depth: u32,
    flows: u32,
}

impl SfqSpec {
    fn sizes(&self) -> Sizes {
        let most = self.divisor.map_or(FLOWS_MAX, |d| d.min(FLOWS_MAX));
        let depth = self.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        let flows = self.flows.unwrap_or(FLOWS).min(most);
        match self.limit.map(|l| l.min(depth * flows)) {
            Some(limit) => Sizes { limit, depth, flows: flows.min(limit) },
            None => Sizes { limit: DEPTH_MAX, depth, flows },
        }
    }
}

/// The packets of one hash value.
#[derive(Debug)]
struct Slot<B> {
    queue: VecDeque<Aged<B>>,
    bucket: u32,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// When its length last changed, in steps: of slots of the same length the latest is the first that a full queue looks at.
    changed: u64,
}

/// Which end of a slot a packet is taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Oldest,
    Newest,
}

/// The queue itself.
pub struct Sfq<B> {
    limit: u64,
    depth: usize,
    quantum: i64,
    /// Which packet of a slot is dropped.
    victim: End,
    /// Slot of each hash value.
    table: Vec<Option<u32>>,
    slots: Vec<Slot<B>>,
    free: Vec<u32>,
    ring: VecDeque<u32>,
    steps: u64,
    key: u64,
    random: Stream,
    /// From one key to the next, ns.
    period: u64,
    rekey_at: Time,
}

impl<B> Sfq<B> {
    /// An empty queue; its keys come from the stream `name/hash`.
    pub fn new(spec: &SfqSpec, seed: u64, name: &str) -> Sfq<B> {
        let divisor = spec.divisor.unwrap_or(DIVISOR);
        let Sizes { limit, depth, flows } = spec.sizes();
        let mut random = Stream::new(seed, &format!("{name}/hash"));
        let period = u64::from(spec.perturb) * 1_000_000_000;
        Sfq {
            limit: u64::from(limit),
            depth: depth as usize,
            quantum: i64::from(spec.quantum.unwrap_or(QUANTUM).max(QUANTUM_MIN)),
            victim: if spec.headdrop { End::Oldest } else { End::Newest },
            table: vec![None; divisor as usize],
            slots: (0..flows).map(|_| Slot { queue: VecDeque::new(), bucket: 0, credit: 0, changed: 0 }).collect(),
            free: (0..flows).collect(),
            ring: VecDeque::new(),
            steps: 0,
            key: random.next_u64(),
            random,
            period,
            rekey_at: if period > 0 { Time(period) } else { Time::MAX },
        }
    }
    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }
    fn len(&self, x: u32) -> usize {
        self.slots[x as usize].queue.len()
    }
    /// The slot of a flow's hash value, a fresh one if it has none; `None` if all are taken.
    fn slot_of(&mut self, flow: u32) -> Option<u32> {
        let bucket = (flow_hash(flow, self.key) >> 32) as u32 & (self.table.len() as u32 - 1);
        let place = &mut self.table[bucket as usize];
        if place.is_none() {
            let x = self.free.pop()?;
            self.slots[x as usize].bucket = bucket;
            *place = Some(x);
        }
        *place
    }
    /// Adds to a slot; a new one gets its turn after all others.
    fn put(&mut self, x: u32, p: Aged<B>, books: &mut Books<'_>) {
        books.enters(&p.1);
        let changed = self.step();
        let slot = &mut self.slots[x as usize];
        slot.changed = changed;
        slot.queue.push_back(p);
        if slot.queue.len() == 1 {
            slot.credit = self.quantum;
            self.ring.push_back(x);
        }
    }
    /// Takes a packet from a slot; an empty slot is free again.
    fn take(&mut self, x: u32, end: End, books: &mut Books<'_>) -> Option<Aged<B>> {
        let changed = self.step();
        let slot = &mut self.slots[x as usize];
        let p = match end {
            End::Oldest => slot.queue.pop_front(),
            End::Newest => slot.queue.pop_back(),
        }?;
        slot.changed = changed;
        if slot.queue.is_empty() {
            self.table[slot.bucket as usize] = None;
            self.free.push(x);
            self.ring.retain(|&r| r != x);
        }
        books.leaves(&p.1);
        Some(p)
    }
    /// The slot whose turn it is: those before it in the ring have used up their quantum, get another and go behind all others.
    fn turn(&mut self) -> Option<u32> {
        while !self.ring.is_empty() {
            let spent = self.ring.iter().take_while(|&&x| self.slots[x as usize].credit <= 0).count();
            self.ring.iter().take(spent).for_each(|&x| self.slots[x as usize].credit += self.quantum);
            self.ring.rotate_left(spent);
            if spent < self.ring.len() {
                break;
            }
        }
        self.ring.front().copied()
    }
    /// Drops a packet of the longest slot; if all hold one packet, that of the slot whose turn it is.
    fn shorten(&mut self, books: &mut Books<'_>) {
        let longest = self.ring.iter().copied().max_by_key(|&x| (self.len(x), self.slots[x as usize].changed));
        let x = longest.filter(|&x| self.len(x) > 1).or_else(|| self.ring.front().copied());
        if let Some((_, p)) = x.and_then(|x| self.take(x, self.victim, books)) {
            books.drops(Cause::Limit, &p);
        }
    }
    /// New keys that were due before now: nothing came or went since.
    fn perturb(&mut self, now: Time, books: &mut Books<'_>) {
        while self.rekey_at <= now {
            self.rekey_at = Time(self.rekey_at.0 + self.period);
            self.key = self.random.next_u64();
            self.sort_anew(books);
        }
    }
    /// Sorts what waits under the key, slot by slot; what has no room in its new slot is dropped.
    fn sort_anew(&mut self, books: &mut Books<'_>) {
        let mut all = Vec::new();
        for x in 0..self.slots.len() as u32 {
            all.extend(std::iter::from_fn(|| self.take(x, End::Oldest, books)));
        }
        for p in all {
            match self.slot_of(p.1.flow).filter(|&x| self.len(x) < self.depth) {
                Some(x) => self.put(x, p, books),
                None => books.drops(Cause::Limit, &p.1),
            }
        }
    }
    /// A packet comes to a slot that is full: it is dropped, or takes the place of the oldest, which does not move the slot among those
    /// of its length.
    fn overfill(&mut self, x: u32, p: Aged<B>, books: &mut Books<'_>) -> bool {
        if self.victim == End::Newest {
            books.drops(Cause::Limit, &p.1);
            return false;
        }
        books.enters(&p.1);
        let queue = &mut self.slots[x as usize].queue;
        queue.push_back(p);
        if let Some((_, oldest)) = queue.pop_front() {
            books.leaves(&oldest);
            books.drops(Cause::Limit, &oldest);
        }
        true
    }
}

impl<B: Send> Policy<B> for Sfq<B> {
    const NAME: &'static str = SfqSpec::NAME;

    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool {
        self.perturb(now, books);
        let Some(x) = self.slot_of(p.flow) else {
            books.drops(Cause::Limit, &p);
            return false;
        };
        if self.len(x) >= self.depth {
            return self.overfill(x, (now, p), books);
        }
        self.put(x, (now, p), books);
        if books.held().packets > self.limit {
            self.shorten(books);
        }
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.perturb(now, books);
        let x = self.turn()?;
        let slot = &mut self.slots[x as usize];
        slot.credit -= i64::from(slot.queue.front()?.1.size);
        self.take(x, End::Oldest, books)
    }
    fn change(&mut self, patch: &Patch, books: &mut Books<'_>) {
        let Some(limit) = patch.limit else { return };
        self.limit = limit.min(self.depth as u64 * self.slots.len() as u64);
        while books.held().packets > self.limit && !self.ring.is_empty() {
            self.shorten(books);
        }
    }
    fn current(&self) -> Patch {
        Patch { limit: Some(self.limit), ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{spec, Freed, Qdisc};

    fn sfq(words: &str) -> Queued<u32, Sfq<u32>> {
        Queued::new(Sfq::new(&spec(words), 1, "t"))
    }
    fn packet(flow: u32, body: u32) -> Packet<u32> {
        Packet { flow, size: 1514, segs: 1, body, ..Default::default() }
    }
    fn put(q: &mut Queued<u32, Sfq<u32>>, flow: u32, n: u32) {
        (0..n).for_each(|i| {
            q.enqueue(Time(0), packet(flow, i), &mut Freed::default());
        });
    }
    fn all(q: &mut Queued<u32, Sfq<u32>>) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| q.dequeue(Time(0), &mut Freed::default())).map(|p| (p.flow, p.body)).collect()
    }

    #[test]
    fn flows_take_turns() {
        let mut q = sfq("sfq");
        put(&mut q, 1, 3);
        put(&mut q, 2, 2);
        assert_eq!(all(&mut q), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)]);
        assert_eq!((q.packets(), q.bytes(), q.policy.free.len()), (0, 0, 128));
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
        assert_eq!(q.account.meter.s.drops.limit, 2);
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
        assert_eq!((q.packets(), q.account.meter.s.drops.limit), (127, 73));
    }

    #[test]
    fn a_new_key_keeps_what_waits_in_order() {
        let mut q = sfq("sfq perturb 1");
        for flow in 0..20 {
            put(&mut q, flow, 3);
        }
        let key = q.policy.key;
        let got = std::iter::from_fn(|| q.dequeue(Time(1_000_000_000), &mut Freed::default())).map(|p| (p.flow, p.body));
        let mut last = [None; 20];
        for (flow, body) in got.collect::<Vec<_>>() {
            assert!(last[flow as usize] < Some(body), "flow {flow}");
            last[flow as usize] = Some(body);
        }
        assert_eq!(last, [Some(2); 20]);
        assert_ne!(q.policy.key, key);
    }

    #[test]
    fn a_parent_that_looks_ahead_takes_the_packet_out() {
        let mut q = sfq("sfq limit 2");
        put(&mut q, 1, 1);
        assert_eq!(q.peek(Time(0), &mut Freed::default()), Some(1514));
        put(&mut q, 1, 2);
        assert_eq!((q.packets(), q.account.meter.s.drops.limit), (2, 1), "it still counts");
        assert_eq!(all(&mut q), [(1, 0), (1, 0)]);
    }
}
