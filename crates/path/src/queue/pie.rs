//! pie: drops on arrival with a probability that holds the queueing delay at a target.
//!
//! What it is: a FIFO limited in packets under PIE's [`law`].
//! Source: RFC 8033; tc-pie(8). Linux: pie_qdisc_enqueue(), pie_qdisc_dequeue(), pie_timer().
//! How it differs: its timer ticks at 100 Hz ([`super::clock`]). A parent that peeks (tbf) takes the packet out of PIE then, as in Linux.
//! What it does not model: a change of its parameters while it runs.

pub mod law;

use super::clock::{jiffies, Ticker};
use super::{with_peeked, Aged, Freed, Qdisc};
use crate::grammar::{print, TcError, Words};
use crate::spec::{QdiscSpec, SpecError};
use crate::stats::{Meter, StageStats};
use law::{Control, Law, ONE};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Stream, Time};

/// pie's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieSpec {
    /// Packets.
    #[serde(default = "limit")]
    pub limit: u32,
    /// PIE's own.
    #[serde(default)]
    pub law: Law,
}

/// Packets. Linux: pie_params_init()
fn limit() -> u32 {
    1000
}

impl Default for PieSpec {
    fn default() -> PieSpec {
        PieSpec { limit: limit(), law: Law::default() }
    }
}

impl PieSpec {
    pub(crate) fn words(&self) -> String {
        format!("pie limit {}{}", self.limit, words(&self.law))
    }
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        validate(&self.law)
    }
}

/// The law's words, after those of its queue.
pub(crate) fn words(l: &Law) -> String {
    let mut t = format!(" target {} tupdate {} alpha {} beta {}", print::time(l.target), print::time(l.tupdate), l.alpha, l.beta);
    let flags = [(l.ecn, " ecn"), (l.bytemode, " bytemode"), (l.dq_rate_estimator, " dq_rate_estimator")];
    flags.iter().filter(|f| f.0).for_each(|f| t += f.1);
    t
}

pub(crate) fn validate(l: &Law) -> Result<(), SpecError> {
    if l.alpha > WEIGHT_MAX || l.beta > WEIGHT_MAX {
        return Err(SpecError::new("pie alpha", "and beta must be from 0 to 32 (sixteenths)"));
    }
    Ok(())
}

/// Largest alpha and beta, sixteenths.
const WEIGHT_MAX: u32 = 32;
/// With ECN, packets are marked up to this probability and dropped above.
const MARK_MAX: u64 = ONE / 10;

/// The queue itself.
pub struct Pie<B> {
    spec: PieSpec,
    control: Control,
    timer: Ticker,
    queue: VecDeque<Aged<B>>,
    bytes: u64,
    peeked: Option<Aged<B>>,
    stream: Stream,
    meter: Meter,
}

impl<B> Pie<B> {
    /// An empty queue; its draws are the stream `name/drop`.
    pub fn new(spec: &PieSpec, seed: u64, name: &str) -> Pie<B> {
        Pie {
            control: Control::default(),
            timer: Ticker::new(seed, jiffies(spec.law.tupdate.as_micros())),
            spec: spec.clone(),
            queue: VecDeque::new(),
            bytes: 0,
            peeked: None,
            stream: Stream::new(seed, &format!("{name}/drop")),
            meter: Meter::default(),
        }
    }
    /// Updates that were due since the last packet: they depend on nothing that has changed in between.
    fn catch_up(&mut self, now: Time) {
        while self.timer.due(now).is_some() {
            let backlog = self.waiting().1;
            self.control.update(&self.spec.law, backlog);
        }
    }
    fn waiting(&self) -> (u64, u64) {
        with_peeked(self.queue.len() as u64, self.bytes, &self.peeked)
    }
    fn next(&mut self, now: Time) -> Option<Aged<B>> {
        self.catch_up(now);
        let p = self.queue.pop_front()?;
        self.bytes -= u64::from(p.1.size);
        self.control.departs(now, &self.spec.law, &p, self.bytes);
        Some(p)
    }
    fn lose(&mut self, p: &Packet<B>, freed: &mut Freed) -> bool {
        self.control.struck();
        freed.note(p);
        false
    }
}

impl<B: Send> Qdisc<B> for Pie<B> {
    fn enqueue(&mut self, now: Time, mut p: Packet<B>, freed: &mut Freed) -> bool {
        self.catch_up(now);
        self.meter.arrive(&p);
        if self.packets() >= u64::from(self.spec.limit) {
            self.meter.s.drops.limit += 1;
            return self.lose(&p, freed);
        }
        if self.control.strikes(&self.spec.law, self.bytes(), p.size, &mut self.stream) {
            if !(self.spec.law.ecn && self.control.probability <= MARK_MAX && p.mark()) {
                self.meter.s.drops.aqm += 1;
                return self.lose(&p, freed);
            }
            self.meter.s.marked += 1;
        }
        self.bytes += u64::from(p.size);
        self.queue.push_back((now, p));
        self.meter.held(self.packets(), self.bytes());
        true
    }
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.next(now))?;
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, _: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() {
            self.peeked = self.next(now);
        }
        self.peeked.as_ref().map(|p| p.1.size)
    }
    fn packets(&self) -> u64 {
        self.waiting().0
    }
    fn bytes(&self) -> u64 {
        self.waiting().1
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("pie", self.packets(), self.bytes()));
    }
}

/// PIE's words in tc.
pub(crate) const WORDS: [&str; 10] =
    ["target", "tupdate", "alpha", "beta", "ecn", "noecn", "bytemode", "nobytemode", "dq_rate_estimator", "no_dq_rate_estimator"];

/// Reads one of [`WORDS`].
pub(crate) fn word(w: &mut Words<'_>, key: &str, l: &mut Law) -> Result<(), TcError> {
    match key {
        // tc sends no zero time: the default stays.
        "target" => l.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.target),
        "tupdate" => l.tupdate = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.tupdate),
        "alpha" => l.alpha = w.count(key)?,
        "beta" => l.beta = w.count(key)?,
        "ecn" | "noecn" => l.ecn = key == "ecn",
        "bytemode" | "nobytemode" => l.bytemode = key == "bytemode",
        _ => l.dq_rate_estimator = key == "dq_rate_estimator",
    }
    Ok(())
}

pub(crate) fn parse(w: &mut Words<'_>) -> Result<QdiscSpec, TcError> {
    let mut s = PieSpec::default();
    let mut known = vec!["limit"];
    known.extend(WORDS);
    while let Some(given) = w.word() {
        match w.exact(given, &known)? {
            "limit" => s.limit = Some(w.count("limit")?).filter(|&n| n > 0).unwrap_or(s.limit),
            key => word(w, key, &mut s.law)?,
        }
    }
    s.validate().map_err(|e| w.wrong_spec(&e))?;
    Ok(QdiscSpec::Pie(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Ecn;

    fn full() -> Packet<u32> {
        Packet { size: 1514, segs: 1, ecn: Ecn::Ect0, ..Default::default() }
    }
    /// Arrivals every ms, departures every `every` ms, for 20 s: the queue's mean delay over the last half, ms.
    fn steady(ecn: bool, every: u64) -> (f64, Pie<u32>) {
        let mut q = Pie::new(&PieSpec { law: Law { ecn, ..Law::default() }, ..PieSpec::default() }, 1, "t");
        let (mut f, mut sum, mut n) = (Freed::default(), 0.0, 0);
        for ms in 0..20_000u64 {
            let now = Time(ms * 1_000_000);
            q.enqueue(now, full(), &mut f);
            if ms % every > 0 && q.dequeue(now, &mut f).is_some() && ms > 10_000 {
                (sum, n) = (sum + q.packets() as f64, n + 1);
            }
        }
        (sum / f64::from(n), q)
    }

    #[test]
    fn a_load_of_ten_ninths_is_held_at_the_target() {
        let (delay, q) = steady(false, 10);
        assert!((13.0..20.0).contains(&delay), "{delay}");
        assert!(q.meter.s.drops.aqm > 500 && q.meter.s.drops.limit == 0);
    }

    #[test]
    fn marks_up_to_a_tenth_and_then_drops() {
        // Marks take no load off: the probability climbs over 10 %, where dropping begins.
        let (_, q) = steady(true, 10);
        assert!(q.meter.s.marked > 0 && q.meter.s.drops.aqm > 1_500, "{:?}", q.meter.s);
    }
}
