//! fq_pie: a queue for each flow, served in turn, each under PIE.
//!
//! What it is: flows as in [`crate::parts::drr`], each with PIE's law of its own.
//! Source: tc-fq_pie(8), RFC 8033, RFC 8290.
//! How it differs: its timer ticks at 100 Hz ([`crate::parts::clock`]) and updates all flows at once, also where there are more than 2048.
//! `memory_limit` is taken and has no effect, as in Linux, which only counts how often it was exceeded.
//! What it does not model: filters, a change of its parameters while it runs.

use super::pie::law::{Control, Law, ONE};
use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Marking, Policy, Queued};
use crate::parts::clock::{jiffies, Ticker};
use crate::parts::drr::{Flows, FRAME, QUANTUM_MIN};
use crate::values::SpecError;
use crate::words::{TcError, Words};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Packet, Stream, Time};

/// fq_pie's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FqPieSpec {
    /// Packets in all.
    pub limit: u32,
    /// Buckets.
    pub flows: u32,
    /// Bytes a turn.
    pub quantum: u32,
    /// Bytes of memory in all.
    pub memory_limit: u32,
    /// With ECN, packets are marked up to this probability and dropped above, %.
    pub ecn_prob: u32,
    /// PIE's own.
    pub law: Law,
}

impl Default for FqPieSpec {
    /// tc-fq_pie(8).
    fn default() -> FqPieSpec {
        FqPieSpec { limit: 10_240, flows: 1024, quantum: FRAME, memory_limit: 32 << 20, ecn_prob: 10, law: Law::default() }
    }
}

impl Discipline for FqPieSpec {
    const NAME: &'static str = "fq_pie";
    const EXAMPLE: &'static str = "fq_pie limit 100";

    fn parse(w: &mut Words<'_>) -> Result<FqPieSpec, TcError> {
        let mut s = FqPieSpec::default();
        let own = ["limit", "flows", "quantum", "memory_limit", "ecn_prob"];
        let known = [&own[..], &Law::WORDS].concat();
        while let Some(given) = w.word() {
            match w.exact(given, &known)? {
                "limit" => s.limit = w.count_or("limit", s.limit)?,
                "flows" => s.flows = w.count_or("flows", s.flows)?,
                "quantum" => s.quantum = w.count_or("quantum", s.quantum)?,
                "memory_limit" => s.memory_limit = w.size("memory_limit")? as u32,
                "ecn_prob" => s.ecn_prob = w.count("ecn_prob")?,
                key => s.law.read(key, w)?,
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = format!("fq_pie limit {} flows {} quantum {}", self.limit, self.flows, self.quantum);
        t += &format!(" memory_limit {} ecn_prob {}", self.memory_limit, self.ecn_prob);
        t + &self.law.words()
    }
    fn validate(&self) -> Result<(), SpecError> {
        let no = |field: &str, fix: &str| Err(SpecError::new(&format!("fq_pie {field}"), fix));
        if !(1..=65_536).contains(&self.flows) {
            return no("flows", "must be from 1 to 65536");
        }
        if !(1..=1 << 20).contains(&self.quantum) {
            return no("quantum", "must be from 1 to 1048576");
        }
        if self.ecn_prob > 99 {
            return no("ecn_prob", "is a percentage from 0 to 99");
        }
        self.law.validate()
    }
    fn describe(&self) -> Description {
        Description { ecn: Marking::when(self.law.ecn), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(FqPie::new(self, seed, name)))
    }
}

/// The queue itself.
pub struct FqPie<B> {
    spec: FqPieSpec,
    flows: Flows<B, Control>,
    timer: Ticker,
    stream: Stream,
}

impl<B> FqPie<B> {
    /// An empty queue; its draws are the stream `name/drop`.
    pub fn new(spec: &FqPieSpec, seed: u64, name: &str) -> FqPie<B> {
        FqPie {
            flows: Flows::new(spec.flows, spec.quantum.max(QUANTUM_MIN), seed, name),
            timer: Ticker::new(seed, jiffies(spec.law.tupdate.as_micros())),
            spec: spec.clone(),
            stream: Stream::new(seed, &format!("{name}/drop")),
        }
    }
    /// Updates that were due since the last packet.
    fn catch_up(&mut self, now: Time) {
        while self.timer.due(now).is_some() {
            for f in self.flows.all.iter_mut().filter(|f| f.bytes > 0 || !f.state.at_rest()) {
                f.state.update(&self.spec.law, f.bytes);
            }
        }
    }
    /// Why flow `i` does not let a packet in; marks it instead where that is allowed.
    fn refuses(&mut self, i: usize, p: &mut Packet<B>, books: &mut Books<'_>) -> Option<Cause> {
        if books.held().packets >= u64::from(self.spec.limit) {
            return Some(Cause::Limit);
        }
        let f = &mut self.flows.all[i];
        if !f.state.strikes(&self.spec.law, f.bytes, p.size, &mut self.stream) {
            return None;
        }
        if self.spec.law.ecn && f.state.probability <= ONE / 100 * u64::from(self.spec.ecn_prob) && p.mark() {
            books.marked();
            return None;
        }
        Some(Cause::Aqm)
    }
}

impl<B: Send> Policy<B> for FqPie<B> {
    const NAME: &'static str = FqPieSpec::NAME;
    const ASKS_ONCE_MORE: bool = true;

    fn admit(&mut self, now: Time, mut p: Packet<B>, books: &mut Books<'_>) -> bool {
        self.catch_up(now);
        let i = self.flows.classify(&p);
        if let Some(cause) = self.refuses(i, &mut p, books) {
            self.flows.all[i].state.struck();
            books.drops(cause, &p);
            return true;
        }
        books.enters(&p);
        self.flows.push(i, now, p);
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.catch_up(now);
        loop {
            let (i, new) = self.flows.turn()?;
            let Some(p) = self.flows.all[i].pull() else {
                self.flows.pass(i, new);
                continue;
            };
            books.leaves(&p.1);
            self.flows.charge(i, p.1.size);
            let f = &mut self.flows.all[i];
            f.state.departs(now, &self.spec.law, &p, f.bytes);
            return Some(p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Freed, Qdisc};

    #[test]
    fn only_the_flow_that_stands_is_struck() {
        let mut q: Queued<u32, FqPie<u32>> = Queued::new(FqPie::new(&FqPieSpec::default(), 1, "t"));
        let (mut f, mut out) = (Freed::default(), [0; 2]);
        for ms in 0..10_000u64 {
            let now = Time(ms * 1_000_000);
            q.enqueue(now, Packet { size: 1514, segs: 1, flow: 0, ..Default::default() }, &mut f);
            if ms % 5 == 0 {
                q.enqueue(now, Packet { size: 1514, segs: 1, flow: 1, ..Default::default() }, &mut f);
            }
            if let Some(p) = q.dequeue(now, &mut f) {
                out[p.flow as usize] += 1;
            }
        }
        assert_eq!(out[1], 2_000);
        assert!(q.account.meter.s.drops.aqm > 1_000 && q.packets() < 100, "{:?} {}", q.account.meter.s, q.packets());
    }
}
