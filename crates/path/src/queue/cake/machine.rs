//! CAKE at run time.

use super::super::body::{segments, Body};
use super::super::{with_peeked, Aged, Freed, Qdisc};
use super::ack::superfluous;
use super::cobalt::{Cobalt, Params};
use super::{AckFilter, CakeSpec, Framing, Isolation, Tins};
use crate::schedule::Patch;
use crate::stats::{Meter, StageStats};
use std::collections::{BTreeMap, VecDeque};
use tcpscape_base::{Packet, Stream, Time, ETH_HEADER};

/// A full Ethernet frame, B.
const MTU: u64 = 1514;
/// Queues. Linux: CAKE_QUEUES.
const QUEUES: u32 = 1024;
/// Least and largest quantum of a flow, B; between them what the rate carries in 1/4096 s. Linux: cake_set_rate().
const QUANTUM_MIN: u64 = 300;
const QUANTUM_MAX: u64 = 1514;
/// Least memory for packets of a shaped queue, B, and most for any without a memlimit: 10240 frames. Linux: cake_reconfigure().
const MEMORY_MIN: u64 = 4 << 20;
const MEMORY_MAX: u64 = 10_240 * MTU;
/// What the kernel keeps of a packet besides its payload, B (`skb->truesize` of a segment in Linux 6.1).
const SKB_OVERHEAD: u64 = 1280;
/// Least rate of the shaper, B/s.
const RATE_MIN: u64 = 64;

/// A rate as a time for each byte: `(bytes · ns) >> shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PerByte {
    ns: u64,
    shift: u32,
}

impl PerByte {
    fn new(bytes_per_sec: u64) -> PerByte {
        let (mut ns, mut shift) = ((1_000_000_000u64 << 34) / bytes_per_sec.max(RATE_MIN), 34);
        while ns >> 34 != 0 {
            ns >>= 1;
            shift -= 1;
        }
        PerByte { ns, shift }
    }
    #[inline]
    fn of(self, bytes: u64) -> u64 {
        (bytes * self.ns) >> self.shift
    }
}

/// Which turn a flow has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    /// None: nothing queued, nothing remembered.
    #[default]
    None,
    /// Before the others: it has not used its quantum.
    Sparse,
    /// Empty after its quantum: counted as sparse, waiting among the bulk.
    SparseWait,
    /// After the others.
    Bulk,
    /// Empty, until its Cobalt has come to rest.
    Decaying,
}

struct Held<B> {
    arrived: Time,
    /// Bytes on the link, framing included.
    counted: u32,
    packet: Packet<B>,
}

struct Flow<B> {
    queue: VecDeque<Held<B>>,
    bytes: u64,
    deficit: i64,
    set: Set,
    cobalt: Cobalt,
}

/// The queue itself.
pub struct Cake<B> {
    spec: CakeSpec,
    shaper: Option<PerByte>,
    params: Params,
    quantum: u64,
    memory_max: u64,
    memory: u64,
    flows: Vec<Flow<B>>,
    by_number: BTreeMap<u32, u32>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    decaying: VecDeque<u32>,
    sparse: u64,
    bulk: u64,
    next_packet: u64,
    /// The same without what was charged for drops, half as fast again. Linux: failsafe_next_packet
    failsafe: u64,
    /// Taken out for a parent that looked ahead. Linux: qdisc_peek_dequeued()
    peeked: Option<Aged<B>>,
    packets: u64,
    bytes: u64,
    random: Stream,
    meter: Meter,
}

impl<B: Body> Cake<B> {
    /// An empty queue; its random numbers come from the stream `name/draws`.
    pub fn new(spec: &CakeSpec, seed: u64, name: &str) -> Cake<B> {
        let mut q = Cake {
            spec: spec.clone(),
            shaper: None,
            params: Params::default(),
            quantum: QUANTUM_MAX,
            memory_max: 0,
            memory: 0,
            flows: Vec::new(),
            by_number: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            sparse: 0,
            bulk: 0,
            next_packet: 0,
            failsafe: 0,
            peeked: None,
            packets: 0,
            bytes: 0,
            random: Stream::new(seed, &format!("{name}/draws")),
            meter: Meter::default(),
        };
        q.configure();
        q
    }
    /// What follows from the rate and the round-trip time. Linux: cake_set_rate(), cake_reconfigure()
    fn configure(&mut self) {
        let rate = self.spec.bandwidth.map_or(0, |r| r.bytes_per_sec());
        self.shaper = (rate > 0).then(|| PerByte::new(rate));
        // Packets with DSCP 0 belong to diffserv8's third tin: seven eighths of seven eighths.
        let tin = if self.spec.tins == Some(Tins::Diffserv8) { (rate * 7 / 8) * 7 / 8 } else { rate };
        let mtu_time = if tin > 0 { PerByte::new(tin).of(MTU) } else { 0 };
        self.quantum = if tin > 0 { (tin >> 12).clamp(QUANTUM_MIN, QUANTUM_MAX) } else { QUANTUM_MAX };
        let (rtt, asked) = self.spec.times();
        let (rtt_ns, asked) = (rtt * 1_000, asked * 1_000);
        let target = (mtu_time * 3 / 2).max(asked);
        self.params = Params { target, interval: (rtt_ns + target - asked).max(2 * target), mtu_time };
        self.memory_max = match (self.spec.memlimit, rate) {
            (Some(m), _) => u64::from(m),
            (None, 0) => MEMORY_MAX,
            (None, r) => ((u128::from(r) * u128::from(rtt) / 250_000) as u64).clamp(MEMORY_MIN, MEMORY_MAX),
        };
    }
    /// Bytes on the link. Linux: cake_calc_overhead()
    fn counted(&self, size: u32) -> u32 {
        let s = &self.spec;
        let bare = if s.overhead.is_some() { size.saturating_sub(ETH_HEADER) } else { size };
        let len = (i64::from(bare) + i64::from(s.overhead.unwrap_or(0))).max(i64::from(s.mpu.unwrap_or(0))) as u32;
        match s.framing {
            Some(Framing::Atm) => len.div_ceil(48) * 53,
            Some(Framing::Ptm) => len + len.div_ceil(64),
            None => len,
        }
    }
    fn flow_of(&mut self, p: &Packet<B>) -> usize {
        let number = match self.spec.flows.unwrap_or(Isolation::TripleIsolate) {
            Isolation::Flowblind | Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts => 0,
            _ => p.flow,
        };
        let fresh = self.flows.len() as u32;
        let i = *self.by_number.entry(number).or_insert(fresh % QUEUES);
        if i == fresh {
            self.flows.push(Flow { queue: VecDeque::new(), bytes: 0, deficit: 0, set: Set::None, cobalt: Cobalt::default() });
        }
        i as usize
    }
    /// A flow's share of a turn: divided among the bulk flows of its host where hosts are isolated, rounded at random.
    fn draw_quantum(&mut self) -> i64 {
        let hosts = matches!(
            self.spec.flows.unwrap_or(Isolation::TripleIsolate),
            Isolation::DualSrchost | Isolation::DualDsthost | Isolation::TripleIsolate
        );
        let load = if hosts { self.bulk.clamp(1, u64::from(QUEUES)) } else { 1 };
        let dither = u64::from(self.random.next_u32() >> 16);
        ((self.quantum * (65_535 / load) + dither) >> 16) as i64
    }
    fn memory_of(p: &Packet<B>) -> u64 {
        SKB_OVERHEAD + u64::from(p.body.payload())
    }
    fn put(&mut self, i: usize, now: Time, p: Packet<B>, counted: u32) {
        self.packets += 1;
        self.bytes += u64::from(p.size);
        self.memory += Self::memory_of(&p);
        let f = &mut self.flows[i];
        f.bytes += u64::from(p.size);
        f.queue.push_back(Held { arrived: now, counted, packet: p });
    }
    fn out(&mut self, i: usize, place: usize) -> Option<Held<B>> {
        let f = &mut self.flows[i];
        let h = f.queue.remove(place)?;
        f.bytes -= u64::from(h.packet.size);
        self.packets -= 1;
        self.bytes -= u64::from(h.packet.size);
        self.memory -= Self::memory_of(&h.packet);
        Some(h)
    }
    /// Charges a packet to the shaper. Linux: cake_advance_shaper()
    fn charge(&mut self, counted: u32, dropped: bool) {
        if let Some(rate) = self.shaper {
            let time = rate.of(u64::from(counted));
            self.next_packet += time;
            if !dropped {
                self.failsafe += time + time / 2;
            }
        }
    }
    fn gate(&self) -> u64 {
        if self.shaper.is_some() {
            self.next_packet.min(self.failsafe)
        } else {
            0
        }
    }
    fn filter_acks(&mut self, i: usize, freed: &mut Freed) {
        let Some(filter) = self.spec.ack_filter else { return };
        let Some(newest) = self.flows[i].queue.back().map(|h| h.packet.flow) else { return };
        let same = |h: &Held<B>| h.packet.flow == newest;
        let places: Vec<usize> = (0..self.flows[i].queue.len()).filter(|&k| same(&self.flows[i].queue[k])).collect();
        let list: Vec<_> = places.iter().map(|&k| self.flows[i].queue[k].packet.body.segment()).collect();
        let Some(k) = superfluous(&list, filter == AckFilter::Aggressive) else { return };
        if let Some(h) = self.out(i, places[k]) {
            self.discard(h, freed);
        }
    }
    /// A decision to drop.
    fn discard(&mut self, h: Held<B>, freed: &mut Freed) {
        self.meter.s.drops.aqm += 1;
        freed.note(&h.packet);
        if self.spec.ingress {
            self.charge(h.counted, true);
        }
    }
    /// A packet came for the flow: it may have its turn before the others.
    fn wake(&mut self, i: usize) {
        match self.flows[i].set {
            Set::None | Set::Decaying => {
                self.decaying.retain(|&f| f as usize != i);
                self.new.push_back(i as u32);
                self.flows[i].set = Set::Sparse;
                self.sparse += 1;
                self.flows[i].deficit = self.draw_quantum();
            }
            Set::SparseWait => {
                self.flows[i].set = Set::Bulk;
                self.sparse -= 1;
                self.bulk += 1;
            }
            Set::Sparse | Set::Bulk => {}
        }
    }
    /// No memory left: the longest flow loses its oldest packet. Linux: cake_drop()
    fn overflow(&mut self, now: Time, freed: &mut Freed) {
        while self.memory > self.memory_max {
            let longest = (0..self.flows.len()).max_by_key(|&i| (self.flows[i].bytes, std::cmp::Reverse(i)));
            let Some(i) = longest else { return };
            let Some(h) = self.out(i, 0) else { return };
            self.flows[i].cobalt.overflow(&self.params, now);
            self.meter.s.drops.limit += 1;
            freed.note(&h.packet);
            if self.spec.ingress {
                self.charge(h.counted, true);
            }
        }
    }
    /// The flow whose turn it is; flows that have used up their quantum go to the end of the old ones.
    fn turn(&mut self, first: &mut bool) -> Option<usize> {
        loop {
            let list = match (*first && !self.decaying.is_empty(), self.new.is_empty(), self.old.is_empty()) {
                (true, _, _) => &mut self.decaying,
                (_, false, _) => &mut self.new,
                (_, _, false) => &mut self.old,
                _ => &mut self.decaying,
            };
            *first = false;
            let i = *list.front()? as usize;
            if self.flows[i].deficit > 0 {
                return Some(i);
            }
            list.pop_front();
            self.old.push_back(i as u32);
            if self.flows[i].set == Set::Sparse {
                if self.flows[i].queue.is_empty() {
                    self.flows[i].set = Set::SparseWait;
                } else {
                    self.flows[i].set = Set::Bulk;
                    self.sparse -= 1;
                    self.bulk += 1;
                }
            }
            self.flows[i].deficit += self.draw_quantum();
        }
    }
    /// It was an empty flow's turn: it rests, or is forgotten.
    fn retire(&mut self, i: usize, now: Time) {
        self.flows[i].cobalt.empty(&self.params, now);
        for list in [&mut self.new, &mut self.old, &mut self.decaying] {
            if list.front() == Some(&(i as u32)) {
                list.pop_front();
                break;
            }
        }
        match self.flows[i].set {
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Bulk => self.bulk -= 1,
            Set::None | Set::Decaying => {}
        }
        self.flows[i].set = if self.flows[i].cobalt.remembers(now) {
            self.decaying.push_back(i as u32);
            Set::Decaying
        } else {
            Set::None
        };
    }
    /// The next packet. Linux: cake_dequeue()
    fn next(&mut self, now: Time, freed: &mut Freed) -> Option<(Time, Packet<B>)> {
        let mut first = true;
        'flow: loop {
            if self.packets == 0 || self.gate() > now.0 || self.sparse + self.bulk == 0 {
                return None;
            }
            let i = self.turn(&mut first)?;
            loop {
                let Some(mut h) = self.out(i, 0) else {
                    self.retire(i, now);
                    continue 'flow;
                };
                let bulk = if self.spec.ingress { self.bulk } else { 0 };
                let (waited, ecn) = (now.since(h.arrived).0, &mut h.packet.ecn);
                let f = &mut self.flows[i];
                let verdict = f.cobalt.judge(&self.params, now, waited, bulk, ecn, &mut self.random);
                // The last packet of a flow is never dropped.
                if !verdict.drop || f.queue.is_empty() {
                    f.deficit -= i64::from(h.counted);
                    self.meter.s.marked += u64::from(verdict.marked);
                    self.charge(h.counted, false);
                    return Some((h.arrived, h.packet));
                }
                if self.spec.ingress {
                    f.deficit -= i64::from(h.counted);
                    self.discard(h, freed);
                    continue 'flow;
                }
                self.discard(h, freed);
            }
        }
    }
}

impl<B: Body> Qdisc<B> for Cake<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let i = self.flow_of(&p);
        if self.packets() == 0 && self.next_packet < now.0 {
            (self.next_packet, self.failsafe) = (now.0, now.0);
        }
        if p.segs > 1 && !self.spec.no_split_gso {
            self.meter.s.segmented += u64::from(p.segs) - 1;
            let parts: Vec<_> = segments(&p).collect();
            for s in parts {
                let counted = self.counted(s.size);
                self.put(i, now, s, counted);
            }
        } else {
            let counted = if p.segs > 1 { segments(&p).map(|s| self.counted(s.size)).sum() } else { self.counted(p.size) };
            self.put(i, now, p, counted);
            self.filter_acks(i, freed);
        }
        self.wake(i);
        self.overflow(now, freed);
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
    fn next_event(&self) -> Time {
        if self.peeked.is_some() {
            Time::ZERO
        } else if self.packets == 0 {
            Time::MAX
        } else {
            Time(self.gate())
        }
    }
    fn packets(&self) -> u64 {
        with_peeked(self.packets, self.bytes, &self.peeked).0
    }
    fn bytes(&self) -> u64 {
        with_peeked(self.packets, self.bytes, &self.peeked).1
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if let (0, Some(rate)) = (depth, patch.rate) {
            self.spec.bandwidth = Some(rate);
            self.configure();
        }
    }
    fn current(&self, depth: usize) -> Patch {
        Patch { rate: if depth == 0 { self.spec.bandwidth } else { None }, ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("cake", self.packets(), self.bytes()));
    }
}

#[cfg(test)]
impl<B> Cake<B> {
    pub(super) fn view(&self) -> (Params, u64, u64) {
        (self.params, self.quantum, self.memory_max)
    }
    pub(super) fn drops(&self) -> crate::stats::Drops {
        self.meter.s.drops
    }
}
