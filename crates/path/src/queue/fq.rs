//! fq, fair queue with pacing: each flow has a queue, flows send in turn, and no packet leaves before its time.
//!
//! What it is: deficit round robin over flows, new ones first; a packet that carries its earliest departure time
//! ([`Packet::edt`], which the TCP of the same host sets at its pacing rate) waits for it, and `maxrate` spaces each flow's
//! packets. A TCP whose own host has an fq leaves pacing to it ([`Discipline::paces`]).
//! Source: tc-fq(8).
//! How it differs: idle flows are kept for ever (Linux forgets some after 3 s when there are thousands), and `refill_delay` counts in
//! ns, not in ticks of the kernel's clock. Packets of other hosts have 1024 flows by hash of the flow's number.
//! What it does not model: packets of no flow (control priority), `defrate` (no effect in Linux; refused).

use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Marking, Patch, Policy, Queued};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tcpscape_base::{flow_hash, Duration, Edt, Packet, Rate, Stream, Time};

/// An fq's parameters; what is left out has the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqSpec {
    /// Packets in all, 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Packets of a flow, 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_limit: Option<u32>,
    /// Bytes that a flow may send in its turn, 3028.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<u32>,
    /// The same for its first turn, 15,140.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_quantum: Option<u32>,
    /// Most that a flow may send, bit/s; no bound when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxrate: Option<Rate>,
    /// Size of the table of flows, 1024; no effect here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u32>,
    /// `nopacing`: TCP keeps its own pacing, `maxrate` has no effect.
    #[serde(default)]
    pub nopacing: bool,
    /// A flow that was idle for longer starts with a full quantum, 40 ms. Whole µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill_delay: Option<Duration>,
    /// A flow of at most this rate sends one packet a turn, 550 kbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_rate_threshold: Option<Rate>,
    /// Flows of packets without a socket, less one, 1023.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan_mask: Option<u32>,
    /// How late its timer may come, 10 µs; it does when nothing else wakes the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack: Option<Duration>,
    /// Marks packets that leave so much later than they could have; never when left out. Whole µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ce_threshold: Option<Duration>,
    /// How far ahead a departure time may lie, 10 s. Whole µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Duration>,
    /// `horizon_cap`: a packet from beyond leaves at the horizon instead of being dropped.
    #[serde(default)]
    pub horizon_cap: bool,
}

/// Packets in all and of a flow. docs/models/queues/fq.md
const LIMIT: u32 = 10_000;
const FLOW_LIMIT: u32 = 100;
/// Two and ten full frames, B, and tc's and the kernel's bound.
const QUANTUM: u32 = 2 * 1514;
const INITIAL_QUANTUM: u32 = 10 * 1514;
const QUANTUM_MAX: u32 = 1 << 20;
/// Idle time, rate, lateness and range of departure times. docs/models/queues/fq.md
const REFILL_DELAY: Duration = Duration(40_000_000);
const LOW_RATE: Rate = Rate(550_000);
const TIMER_SLACK: Duration = Duration(10_000);
const HORIZON: Duration = Duration(10_000_000_000);
const ORPHAN_MASK: u32 = 1023;
/// Longest time between two packets of a flow, ns. docs/models/queues/fq.md
const GAP_MAX: u64 = 1_000_000_000;
/// Bounds of the table's size, powers of two.
const BUCKETS_MAX: u32 = 256 * 1024;

impl Discipline for FqSpec {
    const NAME: &'static str = "fq";
    const EXAMPLE: &'static str = "fq maxrate 10mbit";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<FqSpec, TcError> {
        let mut s = FqSpec::default();
        while let Some(word) = w.word() {
            let size = |w: &mut Words<'_>| w.size(word).map(|n| Some(u32::try_from(n).unwrap_or(u32::MAX)));
            let micros = |w: &mut Words<'_>| w.time(word).map(|d| Some(Duration(d.0 / 1_000 * 1_000)));
            match word {
                "limit" => s.limit = Some(w.count(word)?),
                "flow_limit" => s.flow_limit = Some(w.count(word)?),
                "buckets" => s.buckets = Some(w.count(word)?),
                "orphan_mask" => s.orphan_mask = Some(w.count(word)?),
                "quantum" => s.quantum = size(w)?,
                "initial_quantum" => s.initial_quantum = size(w)?,
                "maxrate" => s.maxrate = Some(w.rate(word)?),
                "low_rate_threshold" => s.low_rate_threshold = Some(w.rate(word)?),
                "refill_delay" => s.refill_delay = micros(w)?,
                "ce_threshold" => s.ce_threshold = micros(w)?,
                "horizon" => s.horizon = micros(w)?,
                "timer_slack" => s.timer_slack = Some(w.time(word)?),
                "pacing" | "nopacing" => s.nopacing = word == "nopacing",
                "horizon_cap" | "horizon_drop" => s.horizon_cap = word == "horizon_cap",
                "defrate" => return Err(w.wrong(word, "it has had no effect since Linux 4.20: leave it away")),
                _ => {
                    let known = "limit, flow_limit, quantum, initial_quantum, maxrate, nopacing, ce_threshold, horizon, refill_delay";
                    return Err(w.wrong(word, &format!("it is not understood: expected {known} or another of tc-fq(8)'s words")));
                }
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = "fq".to_owned();
        for (word, value) in [
            ("limit", self.limit),
            ("flow_limit", self.flow_limit),
            ("buckets", self.buckets),
            ("orphan_mask", self.orphan_mask),
            ("quantum", self.quantum),
            ("initial_quantum", self.initial_quantum),
        ] {
            if let Some(n) = value {
                t += &format!(" {word} {n}");
            }
        }
        for (word, value) in [("low_rate_threshold", self.low_rate_threshold), ("maxrate", self.maxrate)] {
            if let Some(r) = value {
                t += &format!(" {word} {}", print::rate(r));
            }
        }
        for (word, value) in [
            ("refill_delay", self.refill_delay),
            ("timer_slack", self.timer_slack),
            ("ce_threshold", self.ce_threshold),
            ("horizon", self.horizon),
        ] {
            if let Some(d) = value {
                t += &format!(" {word} {}", print::time(d));
            }
        }
        for (on, word) in [(self.nopacing, " nopacing"), (self.horizon_cap, " horizon_cap")] {
            if on {
                t += word;
            }
        }
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        let bad = |field: &str, fix: &str| Err(SpecError::new(&format!("fq {field}"), fix));
        if self.quantum.is_some_and(|n| n == 0 || n > QUANTUM_MAX) {
            return bad("quantum", "must be from 1 byte to 1048576 bytes (two full frames are 3028)");
        }
        if self.initial_quantum.is_some_and(|n| n > i32::MAX as u32) {
            return bad("initial_quantum", "must be below 2 GiB (ten full frames are 15140)");
        }
        if self.buckets.is_some_and(|n| !(2..=BUCKETS_MAX).contains(&n)) {
            return bad("buckets", "must be from 2 to 262144");
        }
        let wide = |r: Option<Rate>| r.is_some_and(|r| r.bytes_per_sec() == 0 || r.bytes_per_sec() >= u64::from(u32::MAX));
        if wide(self.maxrate) || wide(self.low_rate_threshold) {
            return bad("maxrate and low_rate_threshold", "must be from 8 bit/s to 34.3 Gbit/s");
        }
        let rough = |d: Option<Duration>| d.is_some_and(|d| d.0 % 1_000 != 0 || d.0 / 1_000 > u64::from(u32::MAX));
        if rough(self.refill_delay) || rough(self.ce_threshold) || rough(self.horizon) {
            return bad("refill_delay, ce_threshold and horizon", "must be whole microseconds, at most 4294s");
        }
        if self.timer_slack.is_some_and(|d| d.0 > u64::from(u32::MAX)) {
            return bad("timer_slack", "must be at most 4.29s");
        }
        Ok(())
    }
    /// A TCP on the same host sets departure times instead of waiting itself.
    fn paces(&self) -> bool {
        !self.nopacing
    }
    fn describe(&self) -> Description {
        let limit = self.limit.unwrap_or(LIMIT);
        Description { ecn: Marking::when(self.ce_threshold.is_some()), ..Description::of_packets(Self::NAME, limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Fq::new(self, seed, name)))
    }
}

/// Where a flow waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere, since then: it has no packets.
    Idle(Time),
    /// Among those that send in turn, new or old.
    InTurn,
    /// Beside them, until its next packet's time.
    Resting,
}

/// A packet with the time from which it may leave, and when it came.
struct Held<B> {
    due: Time,
    arrived: Time,
    packet: Packet<B>,
}

struct Flow<B> {
    /// In order of `due`.
    queue: VecDeque<Held<B>>,
    credit: i64,
    /// Before which its next packet may not leave.
    not_before: Time,
    place: Place,
}

/// The queue itself.
pub struct Fq<B> {
    spec: FqSpec,
    limit: u64,
    quantum: i64,
    flows: Vec<Flow<B>>,
    by_key: BTreeMap<u64, usize>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Flows that rest, by when they have rested enough and the order in which they began.
    resting: BTreeSet<(Time, u64, usize)>,
    rests: u64,
    /// Whether a packet has come since the last look.
    fresh: bool,
    key: u64,
}

impl<B> Fq<B> {
    /// An empty queue; the hash for packets of other hosts has its key from the stream `name/hash`.
    pub fn new(spec: &FqSpec, seed: u64, name: &str) -> Fq<B> {
        Fq {
            limit: u64::from(spec.limit.unwrap_or(LIMIT)),
            quantum: i64::from(spec.quantum.unwrap_or(QUANTUM)),
            spec: spec.clone(),
            flows: Vec::new(),
            by_key: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            resting: BTreeSet::new(),
            rests: 0,
            fresh: false,
            key: Stream::new(seed, &format!("{name}/hash")).next_u64(),
        }
    }
    /// A flow for each socket of this host, whose packets carry departure times; the others' by hash.
    fn flow_of(&mut self, p: &Packet<B>) -> usize {
        let key = if p.edt.is_some() {
            u64::from(p.flow) << 32
        } else {
            ((flow_hash(p.flow, self.key) >> 32) as u32 & self.spec.orphan_mask.unwrap_or(ORPHAN_MASK)) as u64 | 1 << 63
        };
        let credit = i64::from(self.spec.initial_quantum.unwrap_or(INITIAL_QUANTUM));
        let flows = &mut self.flows;
        *self.by_key.entry(key).or_insert_with(|| {
            flows.push(Flow { queue: VecDeque::new(), credit, not_before: Time::ZERO, place: Place::Idle(Time::ZERO) });
            flows.len() - 1
        })
    }
    /// When a packet may leave: at its own time, if that is not too far ahead. `None` if it is, and is not to be moved back.
    fn due(&self, now: Time, p: &mut Packet<B>) -> Option<Time> {
        let horizon = now + self.spec.horizon.unwrap_or(HORIZON);
        if p.edt.is_some_and(|edt| edt.time() > horizon) {
            if !self.spec.horizon_cap {
                return None;
            }
            p.edt = Some(Edt::at(horizon));
        }
        Some(p.edt.map_or(now, Edt::time))
    }
    /// A flow has something to send again; after a long rest with a full quantum at least.
    fn wake(&mut self, i: usize, now: Time) {
        let f = &mut self.flows[i];
        let Place::Idle(since) = f.place else { return };
        if now.since(since) > self.spec.refill_delay.unwrap_or(REFILL_DELAY) {
            f.credit = f.credit.max(self.quantum);
        }
        f.place = Place::InTurn;
        self.new.push_back(i);
    }
    /// Flows that have rested enough go to the end of the old ones.
    fn rested(&mut self, now: Time) {
        while let Some(&first) = self.resting.first().filter(|f| f.0 <= now) {
            self.resting.remove(&first);
            self.flows[first.2].place = Place::InTurn;
            self.old.push_back(first.2);
        }
    }
    /// The flow whose turn it is has no credit, no packet, or none that may leave yet: it makes room for the next.
    fn pass(&mut self, now: Time, i: usize, due: Option<Time>) {
        let new = self.new.pop_front().is_some();
        if !new {
            self.old.pop_front();
        }
        let f = &mut self.flows[i];
        match due {
            _ if f.credit <= 0 => {
                f.credit += self.quantum;
                self.old.push_back(i);
            }
            Some(due) => {
                (f.not_before, f.place) = (due, Place::Resting);
                self.rests += 1;
                self.resting.insert((due, self.rests, i));
            }
            // An empty new flow must pass through the old ones.
            None if new && !self.old.is_empty() => self.old.push_back(i),
            None => f.place = Place::Idle(now),
        }
    }
    fn mark(&self, now: Time, due: Time, p: &mut Packet<B>, books: &mut Books<'_>) {
        if self.spec.ce_threshold.is_some_and(|t| now.since(due).0 > t.0) && p.mark() {
            books.marked();
        }
    }
    /// A packet leaves: its flow pays for it, and with a `maxrate` its next waits (page fq, "maxrate").
    fn charge(&mut self, i: usize, now: Time, p: &Packet<B>) {
        let f = &mut self.flows[i];
        f.credit -= i64::from(p.size);
        let Some(rate) = self.spec.maxrate.filter(|_| !self.spec.nopacing).map(|r| r.bytes_per_sec()) else { return };
        let is_slow = rate <= self.spec.low_rate_threshold.unwrap_or(LOW_RATE).bytes_per_sec();
        let bytes = match (p.edt, is_slow) {
            (Some(_), _) => u64::from(p.size),
            (None, true) => {
                f.credit = 0;
                u64::from(p.size)
            }
            (None, false) if f.credit > 0 => return,
            (None, false) => u64::from(p.size).max(self.quantum as u64),
        };
        f.space(now, (bytes * 1_000_000_000 / rate).min(GAP_MAX));
    }
}

impl<B> Flow<B> {
    /// The next packet leaves `gap` ns from now, or earlier by as much as this one left late, by half of the gap at most.
    fn space(&mut self, now: Time, gap: u64) {
        let late = if self.not_before > Time::ZERO { now.since(self.not_before).0 } else { 0 };
        self.not_before = now + Duration(gap - late.min(gap / 2));
    }
}

impl<B: Send> Policy<B> for Fq<B> {
    const NAME: &'static str = FqSpec::NAME;

    fn admit(&mut self, now: Time, mut p: Packet<B>, books: &mut Books<'_>) -> bool {
        let due = if books.held().packets < self.limit { self.due(now, &mut p) } else { None };
        let flow_limit = self.spec.flow_limit.unwrap_or(FLOW_LIMIT) as usize;
        let place = due.map(|due| (due, self.flow_of(&p))).filter(|&(_, i)| self.flows[i].queue.len() < flow_limit);
        let Some((due, i)) = place else {
            books.drops(Cause::Limit, &p);
            return false;
        };
        books.enters(&p);
        self.wake(i, now);
        let queue = &mut self.flows[i].queue;
        let place = queue.iter().rposition(|h| h.due <= due).map_or(0, |k| k + 1);
        queue.insert(place, Held { due, arrived: now, packet: p });
        self.fresh = true;
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.fresh = false;
        self.rested(now);
        loop {
            let i = *self.new.front().or(self.old.front())?;
            let f = &mut self.flows[i];
            let due = f.queue.front().map(|h| h.due.max(f.not_before));
            match due {
                Some(due) if due <= now && f.credit > 0 => {
                    let mut h = f.queue.pop_front()?;
                    books.leaves(&h.packet);
                    self.mark(now, due, &mut h.packet, books);
                    self.charge(i, now, &h.packet);
                    return Some((h.arrived, h.packet));
                }
                _ => self.pass(now, i, due),
            }
        }
    }
    fn ready(&self) -> Time {
        if self.fresh || !self.new.is_empty() || !self.old.is_empty() {
            return Time::ZERO;
        }
        let slack = self.spec.timer_slack.unwrap_or(TIMER_SLACK);
        self.resting.first().map_or(Time::MAX, |d| d.0 + slack)
    }
    fn change(&mut self, patch: &Patch, _: &mut Books<'_>) {
        self.limit = patch.limit.unwrap_or(self.limit);
    }
    fn current(&self) -> Patch {
        Patch { limit: Some(self.limit), ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{spec, try_spec, Freed, Qdisc};
    use tcpscape_base::Ecn;

    fn fq(words: &str) -> Queued<u32, Fq<u32>> {
        Queued::new(Fq::new(&spec(words), 1, "t"))
    }
    fn packet(flow: u32, edt: u64) -> Packet<u32> {
        Packet { flow, size: 1514, segs: 1, edt: (edt > 0).then(|| Edt::at(Time(edt))), body: 0, ..Default::default() }
    }
    /// Departures (µs, flow) when every wake-up is obeyed.
    fn drain(q: &mut Queued<u32, Fq<u32>>) -> Vec<(u64, u32)> {
        let (mut out, mut now) = (vec![], Time(1));
        while q.packets() > 0 {
            match q.dequeue(now, &mut Freed::default()) {
                Some(p) => out.push((now.0 / 1_000, p.flow)),
                None => now = q.next_event(),
            }
        }
        out
    }
    fn put(q: &mut Queued<u32, Fq<u32>>, list: &[(u32, u64)]) {
        for &(flow, edt) in list {
            q.enqueue(Time(1), packet(flow, edt), &mut Freed::default());
        }
    }

    #[test]
    fn a_packet_waits_for_its_time_and_the_timer_comes_10_us_late() {
        let mut q = fq("fq");
        put(&mut q, &[(1, 1), (1, 2_000_000), (1, 4_000_000), (2, 3_000_000)]);
        assert_eq!(drain(&mut q), [(0, 1), (2_010, 1), (3_010, 2), (4_010, 1)]);
    }

    #[test]
    fn an_earlier_time_overtakes_within_a_flow() {
        let mut q = fq("fq timer_slack 0");
        put(&mut q, &[(1, 5_000_000), (1, 3_000_000), (1, 6_000_000)]);
        assert_eq!(drain(&mut q).iter().map(|d| d.0).collect::<Vec<_>>(), [3_000, 5_000, 6_000]);
    }

    #[test]
    fn ten_frames_first_then_two_each() {
        let mut q = fq("fq");
        put(&mut q, &[[(1, 1); 14], [(2, 1); 14]].concat());
        let order: Vec<u32> = drain(&mut q).iter().map(|d| d.1).collect();
        assert_eq!(order[..20], [[1; 10], [2; 10]].concat());
        assert_eq!(order[20..], [1, 1, 2, 2, 1, 1, 2, 2]);
    }

    #[test]
    fn maxrate_spaces_each_flow() {
        // 1514 B at 1.25 MB/s take 1.2112 ms; each comes 10 µs late, which the next is given back.
        let mut q = fq("fq maxrate 10mbit");
        put(&mut q, &[(1, 1); 4]);
        assert_eq!(drain(&mut q).iter().map(|d| d.0).collect::<Vec<_>>(), [0, 1_221, 2_432, 3_643]);
    }

    #[test]
    fn what_nobody_has_timed_is_spaced_by_whole_quanta_unless_the_rate_is_low() {
        let departures = |words: &str| {
            let mut q = fq(&format!("fq {words} quantum 3028 initial_quantum 3028 timer_slack 0"));
            put(&mut q, &[(1, 0); 6]);
            drain(&mut q).iter().map(|d| d.0).collect::<Vec<_>>()
        };
        // Two frames are a quantum, which takes 2.4224 ms at 10 Mbit/s.
        assert_eq!(departures("maxrate 10mbit"), [0, 0, 2_422, 2_422, 4_844, 4_844]);
        // At 500 kbit/s a frame takes 24.224 ms.
        assert_eq!(departures("maxrate 500kbit"), [0, 24_224, 48_448, 72_672, 96_896, 121_120]);
    }

    #[test]
    fn limits_and_horizon() {
        let mut q = fq("fq limit 12 flow_limit 10");
        put(&mut q, &[[(1, 1); 11], [(2, 1); 11]].concat());
        assert_eq!((q.packets(), q.account.meter.s.drops.limit), (12, 10));
        let mut q = fq("fq horizon 1s");
        put(&mut q, &[(1, 2_000_000_000)]);
        assert_eq!(q.packets(), 0);
        let mut q = fq("fq horizon 1s horizon_cap timer_slack 0");
        put(&mut q, &[(1, 2_000_000_000)]);
        assert_eq!(drain(&mut q), [(1_000_000, 1)]);
    }

    #[test]
    fn what_leaves_late_is_marked() {
        let mut q = fq("fq ce_threshold 1ms");
        let p = Packet { ecn: Ecn::Ect0, ..packet(1, 1) };
        q.enqueue(Time(1), p, &mut Freed::default());
        let p = q.dequeue(Time(1_000_002), &mut Freed::default()).unwrap();
        assert_eq!((p.ecn, q.account.meter.s.marked), (Ecn::Ce, 1));
    }

    #[test]
    fn words_come_back() {
        for words in [
            "fq",
            "fq limit 100 buckets 2048 quantum 3000 maxrate 10mbit horizon 2s nopacing horizon_cap",
            "fq orphan_mask 255 low_rate_threshold 1mbit refill_delay 20ms timer_slack 5us ce_threshold 1500us",
        ] {
            assert_eq!(spec::<FqSpec>(words).words(), words);
        }
        assert!(try_spec::<FqSpec>("fq defrate 10mbit").unwrap_err().to_string().contains("no effect"));
    }
}
