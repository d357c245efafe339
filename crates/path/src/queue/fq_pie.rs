//! fq_pie: a queue for each flow, served in turn, each under PIE.
//!
//! What it is: flows as in [`super::drr`], each with PIE's law of its own.
//! Source: tc-fq_pie(8), RFC 8033, RFC 8290. Linux: fq_pie_qdisc_enqueue(), fq_pie_qdisc_dequeue(), fq_pie_timer().
//! How it differs: its timer ticks at 100 Hz ([`super::clock`]) and updates all flows at once, also where there are more than 2048.
//! `memory_limit` is taken and has no effect, as in Linux, which only counts how often it was exceeded.
//! What it does not model: filters, a change of its parameters while it runs.

use super::clock::{jiffies, Ticker};
use super::drr::Flows;
use super::fq_codel::{FRAME, QUANTUM_MIN};
use super::pie::law::{Control, Law, ONE};
use super::pie::{self, WORDS};
use super::{with_peeked, Aged, Freed, Qdisc};
use crate::grammar::{TcError, Words};
use crate::spec::{QdiscSpec, SpecError};
use crate::stats::{Meter, StageStats};
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
    /// Linux: fq_pie_init()
    fn default() -> FqPieSpec {
        FqPieSpec { limit: 10_240, flows: 1024, quantum: FRAME, memory_limit: 32 << 20, ecn_prob: 10, law: Law::default() }
    }
}

impl FqPieSpec {
    pub(crate) fn words(&self) -> String {
        let mut t = format!("fq_pie limit {} flows {} quantum {}", self.limit, self.flows, self.quantum);
        t += &format!(" memory_limit {} ecn_prob {}", self.memory_limit, self.ecn_prob);
        t + &pie::words(&self.law)
    }
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
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
        pie::validate(&self.law)
    }
}

/// The queue itself.
pub struct FqPie<B> {
    spec: FqPieSpec,
    flows: Flows<B, Control>,
    timer: Ticker,
    packets: u64,
    bytes: u64,
    peeked: Option<Aged<B>>,
    /// It has run empty, and nobody has looked since.
    look: bool,
    stream: Stream,
    meter: Meter,
}

impl<B> FqPie<B> {
    /// An empty queue; its draws are the stream `name/drop`.
    pub fn new(spec: &FqPieSpec, seed: u64, name: &str) -> FqPie<B> {
        FqPie {
            flows: Flows::new(spec.flows, spec.quantum.max(QUANTUM_MIN), seed, name),
            timer: Ticker::new(seed, jiffies(spec.law.tupdate.as_micros())),
            spec: spec.clone(),
            packets: 0,
            bytes: 0,
            peeked: None,
            look: false,
            stream: Stream::new(seed, &format!("{name}/drop")),
            meter: Meter::default(),
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
    fn next(&mut self, now: Time) -> Option<Aged<B>> {
        self.look = false;
        self.catch_up(now);
        loop {
            let (i, new) = self.flows.turn()?;
            let Some(p) = self.flows.all[i].pull() else {
                self.flows.pass(i, new);
                continue;
            };
            self.packets -= 1;
            self.bytes -= u64::from(p.1.size);
            self.flows.charge(i, p.1.size);
            let f = &mut self.flows.all[i];
            f.state.departs(now, &self.spec.law, &p, f.bytes);
            return Some(p);
        }
    }
    fn waiting(&self) -> (u64, u64) {
        with_peeked(self.packets, self.bytes, &self.peeked)
    }
    /// Whether flow `i` lets a packet in; marks it if that is what it takes.
    fn admits(&mut self, i: usize, p: &mut Packet<B>) -> bool {
        if self.waiting().0 >= u64::from(self.spec.limit) {
            self.meter.s.drops.limit += 1;
            return false;
        }
        let f = &mut self.flows.all[i];
        if !f.state.strikes(&self.spec.law, f.bytes, p.size, &mut self.stream) {
            return true;
        }
        if self.spec.law.ecn && f.state.probability <= ONE / 100 * u64::from(self.spec.ecn_prob) && p.mark() {
            self.meter.s.marked += 1;
            return true;
        }
        self.meter.s.drops.aqm += 1;
        false
    }
}

impl<B: Send> Qdisc<B> for FqPie<B> {
    fn enqueue(&mut self, now: Time, mut p: Packet<B>, freed: &mut Freed) -> bool {
        self.catch_up(now);
        self.meter.arrive(&p);
        let i = self.flows.classify(&p);
        if !self.admits(i, &mut p) {
            self.flows.all[i].state.struck();
            freed.note(&p);
            return true;
        }
        self.packets += 1;
        self.bytes += u64::from(p.size);
        self.flows.push(i, now, p);
        let (packets, bytes) = self.waiting();
        self.meter.held(packets, bytes);
        true
    }
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.next(now))?;
        self.look = self.packets == 0;
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, _: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() {
            self.peeked = self.next(now);
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
        out.push(self.meter.report("fq_pie", self.packets(), self.bytes()));
    }
}

pub(crate) fn parse(w: &mut Words<'_>) -> Result<QdiscSpec, TcError> {
    let mut s = FqPieSpec::default();
    let mut known = vec!["limit", "flows", "quantum", "memory_limit", "ecn_prob"];
    known.extend(WORDS);
    // tc sends no zero: the default stays.
    let or = |n: u32, default: u32| if n > 0 { n } else { default };
    while let Some(given) = w.word() {
        match w.exact(given, &known)? {
            "limit" => s.limit = or(w.count("limit")?, s.limit),
            "flows" => s.flows = or(w.count("flows")?, s.flows),
            "quantum" => s.quantum = or(w.count("quantum")?, s.quantum),
            "memory_limit" => s.memory_limit = w.size("memory_limit")? as u32,
            "ecn_prob" => s.ecn_prob = w.count("ecn_prob")?,
            key => pie::word(w, key, &mut s.law)?,
        }
    }
    s.validate().map_err(|e| w.wrong_spec(&e))?;
    Ok(QdiscSpec::FqPie(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_flow_that_stands_is_struck() {
        let mut q: FqPie<u32> = FqPie::new(&FqPieSpec::default(), 1, "t");
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
        assert!(q.meter.s.drops.aqm > 1_000 && q.packets() < 100, "{:?} {}", q.meter.s, q.packets());
    }
}
