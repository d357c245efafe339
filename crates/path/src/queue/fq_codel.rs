//! fq_codel: a queue for each flow, served in turn, each under CoDel.
//!
//! What it is: flows as in [`super::drr`], each with CoDel's law of its own; when the whole holds too many packets, the flow with the
//! most bytes loses half of them, at most `drop_batch`, from its head.
//! Source: RFC 8290; tc-fq_codel(8). Linux: fq_codel_enqueue(), fq_codel_dequeue(), fq_codel_drop().
//! How it differs: memory counts 768 B for each packet besides its size, about what a segment's buffer takes (`truesize`).
//! What it does not model: filters, `ce_threshold_selector`, a change of its parameters while it runs.

use super::codel::law::{Control, Law, Limits, Source};
use super::codel::{self, WORDS};
use super::drr::{Flow, Flows};
use super::{with_peeked, Aged, Freed, Qdisc};
use crate::grammar::{TcError, Words};
use crate::spec::{QdiscSpec, SpecError};
use crate::stats::{Meter, StageStats};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Packet, Time};

/// fq_codel's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelSpec {
    /// Packets in all.
    pub limit: u32,
    /// Buckets.
    pub flows: u32,
    /// Bytes a turn.
    pub quantum: u32,
    /// Bytes of memory in all.
    pub memory_limit: u32,
    /// Most packets dropped at once when it is full.
    pub drop_batch: u32,
    /// CoDel's own.
    #[serde(default = "marking")]
    pub law: Law,
}

fn marking() -> Law {
    Law { ecn: true, ..Law::default() }
}

impl Default for FqCodelSpec {
    /// Linux: fq_codel_init()
    fn default() -> FqCodelSpec {
        FqCodelSpec { limit: 10_240, flows: 1024, quantum: FRAME, memory_limit: 32 << 20, drop_batch: 64, law: marking() }
    }
}

/// A full Ethernet frame, B (`psched_mtu` at MTU 1500).
pub(crate) const FRAME: u32 = 1514;
/// Least quantum, B.
pub(crate) const QUANTUM_MIN: u32 = 256;
/// Memory of a packet besides its frame, B.
const OVERHEAD: u64 = 768;

impl FqCodelSpec {
    pub(crate) fn words(&self) -> String {
        let mut t = format!("fq_codel limit {} flows {} quantum {}", self.limit, self.flows, self.quantum);
        t += &codel::words(&self.law, true);
        t + &format!(" memory_limit {} drop_batch {}", self.memory_limit, self.drop_batch)
    }
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(SpecError::new("fq_codel flows", "must be from 1 to 65536"));
        }
        if self.quantum > 1 << 20 {
            return Err(SpecError::new("fq_codel quantum", "must be at most 1048576"));
        }
        codel::validate(&self.law)
    }
}

/// The queue itself.
pub struct FqCodel<B> {
    spec: FqCodelSpec,
    limits: Limits,
    flows: Flows<B, Control>,
    packets: u64,
    bytes: u64,
    peeked: Option<Aged<B>>,
    /// It has run empty, and nobody has looked since.
    look: bool,
    meter: Meter,
}

/// A flow under its law, and the totals that go down with it.
struct Draining<'a, B> {
    flow: &'a mut Flow<B, Control>,
    packets: &'a mut u64,
    bytes: &'a mut u64,
    meter: &'a mut Meter,
    freed: &'a mut Freed,
}

impl<B> Source<B> for Draining<'_, B> {
    fn pull(&mut self) -> Option<Aged<B>> {
        let p = self.flow.pull()?;
        *self.packets -= 1;
        *self.bytes -= u64::from(p.1.size);
        Some(p)
    }
    fn backlog(&self) -> u64 {
        *self.bytes
    }
    fn discard(&mut self, p: &Aged<B>) {
        self.meter.s.drops.aqm += 1;
        self.freed.note(&p.1);
    }
    fn marked(&mut self) {
        self.meter.s.marked += 1;
    }
}

impl<B> FqCodel<B> {
    /// An empty queue.
    pub fn new(spec: &FqCodelSpec, seed: u64, name: &str) -> FqCodel<B> {
        FqCodel {
            limits: Limits::from(&spec.law),
            flows: Flows::new(spec.flows, spec.quantum.max(QUANTUM_MIN), seed, name),
            spec: spec.clone(),
            packets: 0,
            bytes: 0,
            peeked: None,
            look: false,
            meter: Meter::default(),
        }
    }
    fn next(&mut self, now: Time, freed: &mut Freed) -> Option<Aged<B>> {
        self.look = false;
        loop {
            let (i, new) = self.flows.turn()?;
            let flow = &mut self.flows.all[i];
            let mut control = flow.state;
            let (packets, bytes, meter) = (&mut self.packets, &mut self.bytes, &mut self.meter);
            let p = control.next(now, &self.limits, &mut Draining { flow, packets, bytes, meter, freed });
            self.flows.all[i].state = control;
            let Some(p) = p else {
                self.flows.pass(i, new);
                continue;
            };
            self.flows.charge(i, p.1.size);
            return Some(p);
        }
    }
    /// Half of the fattest flow goes, and CoDel counts it as drops of its own.
    fn shed(&mut self, freed: &mut Freed) {
        let Some(i) = self.flows.fattest() else { return };
        let flow = &mut self.flows.all[i];
        let (half, mut shed, mut n) = (flow.bytes / 2, 0, 0);
        while n < self.spec.drop_batch.max(1) && (n == 0 || shed < half) {
            let Some((_, p)) = flow.pull() else { break };
            (shed, n) = (shed + u64::from(p.size), n + 1);
            freed.note(&p);
        }
        flow.state.dropped_elsewhere(n);
        self.packets -= u64::from(n);
        self.bytes -= shed;
        self.meter.s.drops.limit += u64::from(n);
    }
    fn waiting(&self) -> (u64, u64) {
        with_peeked(self.packets, self.bytes, &self.peeked)
    }
}

impl<B: Send> Qdisc<B> for FqCodel<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let i = self.flows.classify(&p);
        self.packets += 1;
        self.bytes += u64::from(p.size);
        self.flows.push(i, now, p);
        let memory = self.bytes + self.packets * OVERHEAD;
        if self.waiting().0 > u64::from(self.spec.limit) || memory > u64::from(self.spec.memory_limit) {
            self.shed(freed);
        }
        let (packets, bytes) = self.waiting();
        self.meter.held(packets, bytes);
        true
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.next(now, freed))?;
        self.look = self.packets == 0;
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() {
            self.peeked = self.next(now, freed);
        }
        self.peeked.as_ref().map(|p| p.1.size)
    }
    fn next_event(&self) -> Time {
        if self.waiting().0 > 0 || self.look {
            Time::ZERO
        } else {
            Time::MAX
        }
    }
    fn packets(&self) -> u64 {
        self.waiting().0
    }
    fn bytes(&self) -> u64 {
        self.waiting().1
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("fq_codel", self.packets(), self.bytes()));
    }
}

pub(crate) fn parse(w: &mut Words<'_>) -> Result<QdiscSpec, TcError> {
    let mut s = FqCodelSpec::default();
    let known = ["limit", "flows", "quantum", "memory_limit", "drop_batch", WORDS[0], WORDS[1], WORDS[2], WORDS[3], WORDS[4]];
    // tc sends no zero: the default stays.
    let or = |n: u32, default: u32| if n > 0 { n } else { default };
    while let Some(given) = w.word() {
        match w.exact(given, &known)? {
            "limit" => s.limit = or(w.count("limit")?, s.limit),
            "flows" => s.flows = or(w.count("flows")?, s.flows),
            "quantum" => s.quantum = or(w.count("quantum")?, s.quantum),
            "memory_limit" => s.memory_limit = w.size("memory_limit")? as u32,
            "drop_batch" => s.drop_batch = or(w.count("drop_batch")?, s.drop_batch),
            key => codel::word(w, key, &mut s.law)?,
        }
    }
    s.validate().map_err(|e| w.wrong_spec(&e))?;
    Ok(QdiscSpec::FqCodel(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_tc;

    fn queue(words: &str) -> FqCodel<u32> {
        match parse_tc(words).unwrap() {
            QdiscSpec::FqCodel(s) => FqCodel::new(&s, 1, "t"),
            _ => unreachable!(),
        }
    }
    fn full(flow: u32, n: u32) -> Packet<u32> {
        Packet { size: 1514, segs: 1, flow, body: n, ..Default::default() }
    }

    #[test]
    fn a_full_queue_sheds_half_of_its_fattest_flow_from_the_head() {
        let (mut q, mut f) = (queue("fq_codel limit 12"), Freed::default());
        q.enqueue(Time(0), full(1, 0), &mut f);
        for n in 0..12 {
            q.enqueue(Time(0), full(2, n), &mut f);
        }
        // 12 packets of flow 2: six go, which is half of its bytes
        assert_eq!((q.packets(), q.meter.s.drops.limit), (7, 6));
        let order: Vec<(u32, u32)> = std::iter::from_fn(|| q.dequeue(Time(1), &mut f)).map(|p| (p.flow, p.body)).collect();
        assert_eq!(order[..3], [(1, 0), (2, 6), (2, 7)]);
        assert_eq!(q.flows.all[1].state.signals(), 6);
    }

    #[test]
    fn two_flows_share_and_a_standing_queue_is_dropped_from_only_where_it_stands() {
        let (mut q, mut f) = (queue("fq_codel"), Freed::default());
        let mut out = [0; 2];
        for ms in 0..2_000u64 {
            let now = Time(ms * 1_000_000);
            while q.flows.all.first().map_or(0, |f| f.bytes) < 30 * 1514 {
                q.enqueue(now, full(0, 0), &mut f);
            }
            if ms % 4 == 0 {
                q.enqueue(now, full(1, 0), &mut f);
            }
            if let Some(p) = q.dequeue(now, &mut f) {
                out[p.flow as usize] += 1;
            }
        }
        assert!(q.meter.s.drops.aqm > 10);
        assert_eq!(out[1], 500, "the sparse flow loses nothing");
    }

    #[test]
    fn once_empty_it_asks_to_be_looked_at() {
        let (mut q, mut f) = (queue("fq_codel"), Freed::default());
        q.enqueue(Time(0), full(1, 0), &mut f);
        assert!(q.dequeue(Time(0), &mut f).is_some());
        assert_eq!(q.next_event(), Time::ZERO);
        assert!(q.peek(Time(0), &mut f).is_none());
        assert_eq!(q.next_event(), Time::MAX, "its flow has left the lists");
        assert!(q.flows.turn().is_none());
    }
}
