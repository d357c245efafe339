//! fq_codel: a queue for each flow, served in turn, each under CoDel.
//!
//! What it is: flows as in [`crate::parts::drr`], each with CoDel's law of its own; when the whole holds too many packets, the flow with the
//! most bytes loses half of them, at most `drop_batch`, from its head.
//! Source: RFC 8290; tc-fq_codel(8).
//! How it differs: memory counts 768 B for each packet besides its size, about what a segment's buffer takes (`truesize`).
//! What it does not model: filters, `ce_threshold_selector`, a change of its parameters while it runs.

use super::codel::law::{Control, Draining, Law, Limits};
use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Policy, Queued};
use crate::parts::drr::{Flows, FRAME, QUANTUM_MIN};
use crate::values::SpecError;
use crate::words::{TcError, Words};
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
    #[serde(default = "marking_law")]
    pub law: Law,
}

fn marking_law() -> Law {
    Law { ecn: true, ..Law::default() }
}

impl Default for FqCodelSpec {
    /// tc-fq_codel(8).
    fn default() -> FqCodelSpec {
        FqCodelSpec { limit: 10_240, flows: 1024, quantum: FRAME, memory_limit: 32 << 20, drop_batch: 64, law: marking_law() }
    }
}

/// Memory of a packet besides its frame, B.
const OVERHEAD: u64 = 768;

impl Discipline for FqCodelSpec {
    const NAME: &'static str = "fq_codel";
    const EXAMPLE: &'static str = "fq_codel limit 100";

    fn parse(w: &mut Words<'_>) -> Result<FqCodelSpec, TcError> {
        let mut s = FqCodelSpec::default();
        let own = ["limit", "flows", "quantum", "memory_limit", "drop_batch"];
        let known = [&own[..], &Law::WORDS].concat();
        while let Some(given) = w.word() {
            match w.exact(given, &known)? {
                "limit" => s.limit = w.count_or("limit", s.limit)?,
                "flows" => s.flows = w.count_or("flows", s.flows)?,
                "quantum" => s.quantum = w.count_or("quantum", s.quantum)?,
                "memory_limit" => s.memory_limit = w.size("memory_limit")? as u32,
                "drop_batch" => s.drop_batch = w.count_or("drop_batch", s.drop_batch)?,
                key => s.law.read(key, w)?,
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = format!("fq_codel limit {} flows {} quantum {}", self.limit, self.flows, self.quantum);
        t += &self.law.words(true);
        t + &format!(" memory_limit {} drop_batch {}", self.memory_limit, self.drop_batch)
    }
    fn validate(&self) -> Result<(), SpecError> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(SpecError::new("fq_codel flows", "must be from 1 to 65536"));
        }
        if self.quantum > 1 << 20 {
            return Err(SpecError::new("fq_codel quantum", "must be at most 1048576"));
        }
        self.law.validate()
    }
    fn describe(&self) -> Description {
        let limit_memory_bytes = Some(u64::from(self.memory_limit));
        Description { limit_memory_bytes, ecn: self.law.marking(), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(FqCodel::new(self, seed, name)))
    }
}

/// The queue itself.
pub struct FqCodel<B> {
    spec: FqCodelSpec,
    limits: Limits,
    flows: Flows<B, Control>,
}

impl<B> FqCodel<B> {
    /// An empty queue.
    pub fn new(spec: &FqCodelSpec, seed: u64, name: &str) -> FqCodel<B> {
        FqCodel {
            limits: Limits::from(&spec.law),
            flows: Flows::new(spec.flows, spec.quantum.max(QUANTUM_MIN), seed, name),
            spec: spec.clone(),
        }
    }
    /// Half of the fattest flow goes, and CoDel counts it as drops of its own.
    fn shed(&mut self, books: &mut Books<'_>) {
        let Some(i) = self.flows.fattest() else { return };
        let flow = &mut self.flows.all[i];
        let (half, mut shed, mut n) = (flow.bytes / 2, 0, 0);
        while n < self.spec.drop_batch.max(1) && (n == 0 || shed < half) {
            let Some((_, p)) = flow.pull() else { break };
            (shed, n) = (shed + u64::from(p.size), n + 1);
            books.leaves(&p);
            books.drops(Cause::Limit, &p);
        }
        flow.state.dropped_elsewhere(n);
    }
}

impl<B: Send> Policy<B> for FqCodel<B> {
    const NAME: &'static str = FqCodelSpec::NAME;
    const ASKS_ONCE_MORE: bool = true;

    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool {
        let i = self.flows.classify(&p);
        books.enters(&p);
        self.flows.push(i, now, p);
        let memory = books.inside().bytes + books.inside().packets * OVERHEAD;
        if books.held().packets > u64::from(self.spec.limit) || memory > u64::from(self.spec.memory_limit) {
            self.shed(books);
        }
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        loop {
            let (i, new) = self.flows.turn()?;
            let flow = &mut self.flows.all[i];
            let mut control = flow.state;
            let next = control.next(now, &self.limits, &mut Draining { pull: || flow.pull(), books });
            self.flows.all[i].state = control;
            match next {
                Some(p) => {
                    self.flows.charge(i, p.1.size);
                    return Some(p);
                }
                None => self.flows.pass(i, new),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{spec, Freed, Qdisc};

    fn queue(words: &str) -> Queued<u32, FqCodel<u32>> {
        Queued::new(FqCodel::new(&spec(words), 1, "t"))
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
        assert_eq!((q.packets(), q.account.meter.s.drops.limit), (7, 6));
        let order: Vec<(u32, u32)> = std::iter::from_fn(|| q.dequeue(Time(1), &mut f)).map(|p| (p.flow, p.body)).collect();
        assert_eq!(order[..3], [(1, 0), (2, 6), (2, 7)]);
        assert_eq!(q.policy.flows.all[1].state.signals(), 6);
    }

    #[test]
    fn two_flows_share_and_a_standing_queue_is_dropped_from_only_where_it_stands() {
        let (mut q, mut f) = (queue("fq_codel"), Freed::default());
        let mut out = [0; 2];
        for ms in 0..2_000u64 {
            let now = Time(ms * 1_000_000);
            while q.policy.flows.all.first().map_or(0, |f| f.bytes) < 30 * 1514 {
                q.enqueue(now, full(0, 0), &mut f);
            }
            if ms % 4 == 0 {
                q.enqueue(now, full(1, 0), &mut f);
            }
            if let Some(p) = q.dequeue(now, &mut f) {
                out[p.flow as usize] += 1;
            }
        }
        assert!(q.account.meter.s.drops.aqm > 10);
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
        assert!(q.policy.flows.turn().is_none());
    }
}
