//! pie: drops on arrival with a probability that holds the queueing delay at a target.
//!
//! What it is: a FIFO limited in packets under PIE's [`law`].
//! Source: RFC 8033; tc-pie(8).
//! How it differs: its timer ticks at 100 Hz ([`crate::parts::clock`]). A parent that peeks (tbf) takes the packet out of PIE then, as in Linux.
//! What it does not model: a change of its parameters while it runs.

pub mod law;

use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Marking, Policy, Queued};
use crate::parts::clock::{jiffies, Ticker};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
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

/// Packets (tc-pie(8)).
fn limit() -> u32 {
    1000
}

impl Default for PieSpec {
    fn default() -> PieSpec {
        PieSpec { limit: limit(), law: Law::default() }
    }
}

impl Discipline for PieSpec {
    const NAME: &'static str = "pie";
    const EXAMPLE: &'static str = "pie limit 100 ecn";

    fn parse(w: &mut Words<'_>) -> Result<PieSpec, TcError> {
        let mut s = PieSpec::default();
        let known = [&["limit"][..], &Law::WORDS].concat();
        while let Some(given) = w.word() {
            match w.exact(given, &known)? {
                "limit" => s.limit = w.count_or("limit", s.limit)?,
                key => s.law.read(key, w)?,
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        format!("pie limit {}{}", self.limit, self.law.words())
    }
    fn validate(&self) -> Result<(), SpecError> {
        self.law.validate()
    }
    fn describe(&self) -> Description {
        Description { ecn: Marking::when(self.law.ecn), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Pie::new(self, seed, name)))
    }
}

impl Law {
    /// The law's words, after those of its queue.
    pub(crate) fn words(&self) -> String {
        let mut t =
            format!(" target {} tupdate {} alpha {} beta {}", print::time(self.target), print::time(self.tupdate), self.alpha, self.beta);
        let flags = [(self.ecn, " ecn"), (self.bytemode, " bytemode"), (self.dq_rate_estimator, " dq_rate_estimator")];
        flags.iter().filter(|f| f.0).for_each(|f| t += f.1);
        t
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        if self.alpha > WEIGHT_MAX || self.beta > WEIGHT_MAX {
            return Err(SpecError::new("pie alpha", "and beta must be from 0 to 32 (sixteenths)"));
        }
        Ok(())
    }

    /// PIE's words in tc.
    pub(crate) const WORDS: [&str; 10] =
        ["target", "tupdate", "alpha", "beta", "ecn", "noecn", "bytemode", "nobytemode", "dq_rate_estimator", "no_dq_rate_estimator"];

    /// Reads one of [`Law::WORDS`].
    pub(crate) fn read(&mut self, key: &str, w: &mut Words<'_>) -> Result<(), TcError> {
        match key {
            // tc sends no zero time: the default stays.
            "target" => self.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(self.target),
            "tupdate" => self.tupdate = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(self.tupdate),
            "alpha" => self.alpha = w.count(key)?,
            "beta" => self.beta = w.count(key)?,
            "ecn" | "noecn" => self.ecn = key == "ecn",
            "bytemode" | "nobytemode" => self.bytemode = key == "bytemode",
            _ => self.dq_rate_estimator = key == "dq_rate_estimator",
        }
        Ok(())
    }
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
    stream: Stream,
}

impl<B> Pie<B> {
    /// An empty queue; its draws are the stream `name/drop`.
    pub fn new(spec: &PieSpec, seed: u64, name: &str) -> Pie<B> {
        Pie {
            control: Control::default(),
            timer: Ticker::new(seed, jiffies(spec.law.tupdate.as_micros())),
            spec: spec.clone(),
            queue: VecDeque::new(),
            stream: Stream::new(seed, &format!("{name}/drop")),
        }
    }
    /// Updates that were due since the last packet: they depend on nothing that has changed in between.
    fn catch_up(&mut self, now: Time, books: &Books<'_>) {
        while self.timer.due(now).is_some() {
            self.control.update(&self.spec.law, books.held().bytes);
        }
    }
    fn lose(&mut self, cause: Cause, p: &Packet<B>, books: &mut Books<'_>) -> bool {
        self.control.struck();
        books.drops(cause, p);
        false
    }
}

impl<B: Send> Policy<B> for Pie<B> {
    const NAME: &'static str = PieSpec::NAME;

    fn admit(&mut self, now: Time, mut p: Packet<B>, books: &mut Books<'_>) -> bool {
        self.catch_up(now, books);
        if books.held().packets >= u64::from(self.spec.limit) {
            return self.lose(Cause::Limit, &p, books);
        }
        if self.control.strikes(&self.spec.law, books.held().bytes, p.size, &mut self.stream) {
            if !(self.spec.law.ecn && self.control.probability <= MARK_MAX && p.mark()) {
                return self.lose(Cause::Aqm, &p, books);
            }
            books.marked();
        }
        books.enters(&p);
        self.queue.push_back((now, p));
        true
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.catch_up(now, books);
        let p = self.queue.pop_front()?;
        books.leaves(&p.1);
        self.control.departs(now, &self.spec.law, &p, books.inside().bytes);
        Some(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{Freed, Qdisc};
    use tcpscape_base::Ecn;

    fn full() -> Packet<u32> {
        Packet { size: 1514, segs: 1, ecn: Ecn::Ect0, ..Default::default() }
    }
    /// Arrivals every ms, departures every `every` ms, for 20 s: the queue's mean delay over the last half, ms.
    fn steady(ecn: bool, every: u64) -> (f64, Queued<u32, Pie<u32>>) {
        let mut q = Queued::new(Pie::new(&PieSpec { law: Law { ecn, ..Law::default() }, ..PieSpec::default() }, 1, "t"));
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
        assert!(q.account.meter.s.drops.aqm > 500 && q.account.meter.s.drops.limit == 0);
    }

    #[test]
    fn marks_up_to_a_tenth_and_then_drops() {
        // Marks take no load off: the probability climbs over 10 %, where dropping begins.
        let (_, q) = steady(true, 10);
        assert!(q.account.meter.s.marked > 0 && q.account.meter.s.drops.aqm > 1_500, "{:?}", q.account.meter.s);
    }
}
