//! CAKE at run time.

use super::ack::superfluous;
use super::cobalt::{Cobalt, Params};
use super::{AckFilter, CakeSpec, Framing, Isolation, Tins};
use crate::discipline::{segments, Aged, Body, Books, Cause, Discipline, Patch, Policy};
use std::collections::{BTreeMap, VecDeque};
use tcpscape_base::{Packet, Stream, Time, ETH_HEADER};

/// A full Ethernet frame, B.
const MTU: u64 = 1514;
/// Queues (docs/models/queues/cake.md).
const QUEUES: u32 = 1024;
/// Least and largest quantum of a flow, B; between them what the rate carries in 1/4096 s (docs/models/queues/cake.md).
const QUANTUM_MIN: u64 = 300;
const QUANTUM_MAX: u64 = 1514;
/// Least memory for packets of a shaped queue, B, and most for any without a memlimit: 10240 frames (docs/models/queues/cake.md).
const MEMORY_MIN: u64 = 4 << 20;
const MEMORY_MAX: u64 = 10_240 * MTU;
/// What Linux 6.1 keeps of a packet besides its payload, B (docs/models/queues/cake.md).
const SKB_OVERHEAD: u64 = 1280;
/// Least rate of the shaper, B/s.
const RATE_MIN: u64 = 64;
/// Bits that the time of a byte has (docs/models/queues/cake.md).
const PRECISION: u32 = 34;

/// Most memory for packets, B: four times what the rate carries in the round-trip time where no memlimit is given.
pub(super) fn memory_max(spec: &CakeSpec) -> u64 {
    let rate = spec.bandwidth.map_or(0, |r| r.bytes_per_sec());
    match (spec.memlimit, rate) {
        (Some(bytes), _) => u64::from(bytes),
        (None, 0) => MEMORY_MAX,
        (None, _) => ((u128::from(rate) * u128::from(spec.times().0) / 250_000) as u64).clamp(MEMORY_MIN, MEMORY_MAX),
    }
}

/// A rate as a time for each byte, ns: a number of [`PRECISION`] bits at most, of which so many are behind the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PerByte {
    ns: u64,
    fraction: u32,
}

impl PerByte {
    fn new(bytes_per_sec: u64) -> PerByte {
        let ns = (1_000_000_000u64 << PRECISION) / bytes_per_sec.max(RATE_MIN);
        let cut = (u64::BITS - ns.leading_zeros()).saturating_sub(PRECISION);
        PerByte { ns: ns >> cut, fraction: PRECISION - cut }
    }
    #[inline]
    fn of(self, bytes: u64) -> u64 {
        (bytes * self.ns) >> self.fraction
    }
}

/// What a flow counts as. CAKE paper, §III-B: DRR++ with sparse flows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// Nothing: it has no packets, and nothing is remembered of it.
    #[default]
    Unknown,
    /// A sparse flow: it goes before the others until it has used its quantum, and if it is empty then, is sparse for one more turn, among the others.
    Sparse { has_quantum: bool },
    /// A bulk flow: it waits for its turn.
    Bulk,
    /// A resting flow: empty, until its Cobalt has come to rest.
    Resting,
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
    role: Role,
    cobalt: Cobalt,
    /// The pair of hosts whose packets it has.
    hosts: u32,
}

/// When the shaper lets the next packet go, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    rate: Option<PerByte>,
    /// After everything that was charged.
    next: u64,
    /// Time that drops may still be charged (`ingress`): what was sent makes room for half as much; below 0, they have taken more.
    room: i64,
}

impl Gate {
    fn opens(&self) -> u64 {
        self.rate.map_or(0, |_| self.next.saturating_add_signed(self.room.min(0)))
    }
    /// An idle link gains nothing.
    fn idle_until(&mut self, now: u64) {
        if self.next < now {
            (self.next, self.room) = (now, 0);
        }
    }
    fn sent(&mut self, bytes: u32) {
        self.room += (self.charge(bytes) / 2) as i64;
    }
    fn dropped(&mut self, bytes: u32) {
        self.room -= self.charge(bytes) as i64;
    }
    /// Moves on by the time of these bytes.
    fn charge(&mut self, bytes: u32) -> u64 {
        let time = self.rate.map_or(0, |r| r.of(bytes.into()));
        self.next += time;
        time
    }
}

/// The queue itself.
pub struct Cake<B> {
    spec: CakeSpec,
    gate: Gate,
    params: Params,
    quantum: u64,
    memory_max: u64,
    memory: u64,
    flows: Vec<Flow<B>>,
    by_number: BTreeMap<u32, u32>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    resting: VecDeque<u32>,
    /// Bulk flows.
    bulk: u64,
    /// Bulk flows of each pair of hosts.
    bulk_of: BTreeMap<u32, u64>,
    random: Stream,
}

impl<B: Body> Cake<B> {
    /// An empty queue; its random numbers come from the stream `name/draws`.
    pub fn new(spec: &CakeSpec, seed: u64, name: &str) -> Cake<B> {
        let mut q = Cake {
            spec: spec.clone(),
            gate: Gate::default(),
            params: Params::default(),
            quantum: QUANTUM_MAX,
            memory_max: 0,
            memory: 0,
            flows: Vec::new(),
            by_number: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            resting: VecDeque::new(),
            bulk: 0,
            bulk_of: BTreeMap::new(),
            random: Stream::new(seed, &format!("{name}/draws")),
        };
        q.configure();
        q
    }
    /// What follows from the rate and the round-trip time.
    fn configure(&mut self) {
        let rate = self.spec.bandwidth.map_or(0, |r| r.bytes_per_sec());
        self.gate.rate = (rate > 0).then(|| PerByte::new(rate));
        // Packets with DSCP 0 belong to diffserv8's third tin: seven eighths of seven eighths.
        let tin = if self.spec.tins == Some(Tins::Diffserv8) { (rate * 7 / 8) * 7 / 8 } else { rate };
        let mtu_time = if tin > 0 { PerByte::new(tin).of(MTU) } else { 0 };
        self.quantum = if tin > 0 { (tin >> 12).clamp(QUANTUM_MIN, QUANTUM_MAX) } else { QUANTUM_MAX };
        let (rtt, asked) = self.spec.times();
        let (rtt_ns, asked) = (rtt * 1_000, asked * 1_000);
        let target = (mtu_time * 3 / 2).max(asked);
        self.params = Params { target, interval: (rtt_ns + target - asked).max(2 * target), mtu_time };
        self.memory_max = memory_max(&self.spec);
    }
    /// Bytes on the link.
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
            Isolation::Flowblind => 0,
            Isolation::Srchost | Isolation::Dsthost | Isolation::Hosts => p.hosts,
            _ => p.flow,
        };
        let fresh = self.flows.len() as u32;
        let i = *self.by_number.entry(number).or_insert(fresh % QUEUES);
        if i == fresh {
            self.flows.push(Flow {
                queue: VecDeque::new(),
                bytes: 0,
                deficit: 0,
                role: Role::Unknown,
                cobalt: Cobalt::default(),
                hosts: p.hosts,
            });
        }
        if self.flows[i as usize].role == Role::Unknown {
            self.flows[i as usize].hosts = p.hosts;
        }
        i as usize
    }
    /// A flow's share of a turn: divided among the bulk flows of its hosts where hosts are isolated, rounded at random.
    fn draw_quantum(&mut self, i: usize) -> i64 {
        let hosts = matches!(
            self.spec.flows.unwrap_or(Isolation::TripleIsolate),
            Isolation::DualSrchost | Isolation::DualDsthost | Isolation::TripleIsolate
        );
        let bulk = self.bulk_of.get(&self.flows[i].hosts).copied().unwrap_or(0);
        let load = if hosts { bulk.clamp(1, u64::from(QUEUES)) } else { 1 };
        let dither = u64::from(self.random.next_u32() >> 16);
        ((self.quantum * (65_535 / load) + dither) >> 16) as i64
    }
    fn memory_of(p: &Packet<B>) -> u64 {
        SKB_OVERHEAD + u64::from(p.body.payload())
    }
    fn put(&mut self, i: usize, now: Time, p: Packet<B>, counted: u32, books: &mut Books<'_>) {
        books.enters(&p);
        self.memory += Self::memory_of(&p);
        let f = &mut self.flows[i];
        f.bytes += u64::from(p.size);
        f.queue.push_back(Held { arrived: now, counted, packet: p });
    }
    fn out(&mut self, i: usize, place: usize, books: &mut Books<'_>) -> Option<Held<B>> {
        let f = &mut self.flows[i];
        let h = f.queue.remove(place)?;
        f.bytes -= u64::from(h.packet.size);
        self.memory -= Self::memory_of(&h.packet);
        books.leaves(&h.packet);
        Some(h)
    }
    /// A packet that was taken out is dropped; at the far end of a link it has used the link all the same.
    fn lose(&mut self, cause: Cause, h: &Held<B>, books: &mut Books<'_>) {
        books.drops(cause, &h.packet);
        if self.spec.ingress {
            self.gate.dropped(h.counted);
        }
    }
    fn filter_acks(&mut self, i: usize, books: &mut Books<'_>) {
        let Some(filter) = self.spec.ack_filter else { return };
        let queue = &self.flows[i].queue;
        let Some(newest) = queue.back().map(|h| h.packet.flow) else { return };
        let places: Vec<usize> = (0..queue.len()).filter(|&k| queue[k].packet.flow == newest).collect();
        let list: Vec<_> = places.iter().map(|&k| queue[k].packet.body.segment()).collect();
        let Some(k) = superfluous(&list, filter == AckFilter::Aggressive) else { return };
        if let Some(h) = self.out(i, places[k], books) {
            self.lose(Cause::Aqm, &h, books);
        }
    }
    /// A packet came for the flow: one that was idle goes before the others, one that ran empty in its quantum is bulk now.
    fn wake(&mut self, i: usize) {
        match self.flows[i].role {
            Role::Unknown | Role::Resting => {
                self.resting.retain(|&f| f as usize != i);
                self.new.push_back(i as u32);
                self.flows[i].role = Role::Sparse { has_quantum: true };
                self.flows[i].deficit = self.draw_quantum(i);
            }
            Role::Sparse { has_quantum: false } => self.becomes_bulk(i),
            Role::Sparse { has_quantum: true } | Role::Bulk => {}
        }
    }
    fn becomes_bulk(&mut self, i: usize) {
        self.flows[i].role = Role::Bulk;
        self.bulk += 1;
        *self.bulk_of.entry(self.flows[i].hosts).or_default() += 1;
    }
    /// No memory left: the longest flow loses its oldest packet.
    fn overflow(&mut self, now: Time, books: &mut Books<'_>) {
        while self.memory > self.memory_max {
            let longest = (0..self.flows.len()).max_by_key(|&i| (self.flows[i].bytes, std::cmp::Reverse(i)));
            let Some(i) = longest else { return };
            let Some(h) = self.out(i, 0, books) else { return };
            self.flows[i].cobalt.overflow(&self.params, now);
            self.lose(Cause::Limit, &h, books);
        }
    }
    /// A flow without deficit goes to the end of the old ones with a new quantum; it was sparse for one quantum only.
    fn end_turn(&mut self, i: usize) {
        self.old.push_back(i as u32);
        if self.flows[i].role == (Role::Sparse { has_quantum: true }) {
            if self.flows[i].queue.is_empty() {
                self.flows[i].role = Role::Sparse { has_quantum: false };
            } else {
                self.becomes_bulk(i);
            }
        }
        self.flows[i].deficit += self.draw_quantum(i);
    }
    /// The flow whose turn it is: sparse ones first.
    fn turn(&mut self) -> Option<usize> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let i = *list.front()? as usize;
            if self.flows[i].deficit > 0 {
                return Some(i);
            }
            list.pop_front();
            self.end_turn(i);
        }
    }
    /// It was an empty flow's turn: it rests while its Cobalt remembers something, and is forgotten then.
    fn retire(&mut self, i: usize, now: Time) {
        let flow = &mut self.flows[i];
        flow.cobalt.empty(&self.params, now);
        if flow.role == Role::Bulk {
            self.bulk -= 1;
            *self.bulk_of.entry(flow.hosts).or_default() -= 1;
        }
        let remembers = flow.cobalt.remembers(now);
        flow.role = if remembers { Role::Resting } else { Role::Unknown };
        self.resting.extend(remembers.then_some(i as u32));
    }
    /// One resting flow is looked at before each packet.
    fn visit_resting(&mut self, now: Time) {
        let Some(i) = self.resting.pop_front().map(|i| i as usize) else { return };
        if self.flows[i].deficit > 0 {
            self.retire(i, now);
        } else {
            self.end_turn(i);
        }
    }
    /// The flow's next packet that its Cobalt lets go; `None` when its turn is over.
    fn serve(&mut self, i: usize, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        while let Some(mut h) = self.out(i, 0, books) {
            let bulk = if self.spec.ingress { self.bulk } else { 0 };
            let (waited, ecn) = (now.since(h.arrived).0, &mut h.packet.ecn);
            let f = &mut self.flows[i];
            let verdict = f.cobalt.judge(&self.params, now, waited, bulk, ecn, &mut self.random);
            // The last packet of a flow is never dropped.
            let leaves = !verdict.drop || f.queue.is_empty();
            if leaves || self.spec.ingress {
                f.deficit -= i64::from(h.counted);
            }
            if leaves {
                if verdict.marked {
                    books.marked();
                }
                self.gate.sent(h.counted);
                return Some((h.arrived, h.packet));
            }
            self.lose(Cause::Aqm, &h, books);
            if self.spec.ingress {
                return None;
            }
        }
        self.new.pop_front().or_else(|| self.old.pop_front());
        self.retire(i, now);
        None
    }
    fn may_send(&self, now: Time, books: &Books<'_>) -> bool {
        books.inside().packets > 0 && self.gate.opens() <= now.0
    }
}

impl<B: Body> Policy<B> for Cake<B> {
    const NAME: &'static str = CakeSpec::NAME;

    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool {
        let i = self.flow_of(&p);
        if books.held().packets == 0 {
            self.gate.idle_until(now.0);
        }
        if p.segs > 1 && !self.spec.no_split_gso {
            books.cut(p.segs);
            for s in segments(&p) {
                let counted = self.counted(s.size);
                self.put(i, now, s, counted, books);
            }
        } else {
            let counted = if p.segs > 1 { segments(&p).map(|s| self.counted(s.size)).sum() } else { self.counted(p.size) };
            self.put(i, now, p, counted, books);
            self.filter_acks(i, books);
        }
        self.wake(i);
        self.overflow(now, books);
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        if self.may_send(now, books) {
            self.visit_resting(now);
        }
        while self.may_send(now, books) {
            let i = self.turn()?;
            let served = self.serve(i, now, books);
            if served.is_some() {
                return served;
            }
        }
        None
    }
    fn ready(&self) -> Time {
        Time(self.gate.opens())
    }
    fn change(&mut self, patch: &Patch, _: &mut Books<'_>) {
        if patch.rate.is_some() {
            self.spec.bandwidth = patch.rate;
            self.configure();
        }
    }
    fn current(&self) -> Patch {
        Patch { rate: self.spec.bandwidth, ..Default::default() }
    }
}

#[cfg(test)]
impl<B> Cake<B> {
    pub(super) fn view(&self) -> (Params, u64, u64) {
        (self.params, self.quantum, self.memory_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_byte_has_34_bits() {
        assert_eq!(PerByte::new(2_500_000).of(1_514), 605_600);
        // 142.857142857… ns, of which 8 bits are before the point and 26 behind it: of 700 MB, which take 100 s, 4.5 ns are lost.
        let byte = PerByte::new(7_000_000);
        assert!(((1 << 33)..(1 << 34)).contains(&byte.ns) && byte.fraction == 26, "{byte:?}");
        assert_eq!([7, 700, 700_000_000].map(|bytes| byte.of(bytes)), [999, 99_999, 99_999_999_995]);
        // A byte at 64 B/s, the least rate: 15.6 ms, which take 24 bits.
        assert_eq!((PerByte::new(0), PerByte::new(1).of(64)), (PerByte::new(64), 1_000_000_000));
    }

    /// At 8 ns a byte 1,000 bytes take 8 µs, which make room for 4 µs of drops.
    #[test]
    fn drops_delay_the_next_packet_by_half_of_what_was_sent_at_most() {
        let mut gate = Gate { rate: Some(PerByte::new(125_000_000)), ..Gate::default() };
        gate.idle_until(1_000);
        gate.sent(1_000);
        assert_eq!(gate.opens(), 9_000);
        gate.dropped(250);
        assert_eq!(gate.opens(), 11_000);
        gate.dropped(1_000);
        assert_eq!(gate.opens(), 13_000);
        gate.idle_until(100_000);
        assert_eq!(gate.opens(), 100_000, "an idle link owes nothing and gains nothing");
    }
}
