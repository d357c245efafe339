//! codel: drops at the head by how long packets have waited.
//!
//! What it is: a FIFO limited in packets whose head is dropped or marked by CoDel's [`law`].
//! Source: RFC 8289; tc-codel(8).
//! How it differs: nothing known. A parent that peeks (tbf, once the packet before has left) makes CoDel judge the packet
//! then, not when it leaves: the waiting for tokens is no part of its sojourn time, as in Linux.
//! What it does not model: a change of its parameters while it runs.

pub mod law;

use crate::discipline::{Aged, AnyQdisc, Body, Books, Description, Discipline, Marking, Policy, Queued};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use law::{Control, Draining, Law, Limits};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Time};

/// codel's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodelSpec {
    /// Packets.
    #[serde(default = "limit")]
    pub limit: u32,
    /// CoDel's own.
    #[serde(default)]
    pub law: Law,
}

/// Packets (tc-codel(8)).
fn limit() -> u32 {
    1000
}

impl Default for CodelSpec {
    fn default() -> CodelSpec {
        CodelSpec { limit: limit(), law: Law::default() }
    }
}

impl Discipline for CodelSpec {
    const NAME: &'static str = "codel";
    const EXAMPLE: &'static str = "codel limit 100 ecn";

    fn parse(w: &mut Words<'_>) -> Result<CodelSpec, TcError> {
        let mut s = CodelSpec::default();
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
        format!("codel limit {}{}", self.limit, self.law.words(false))
    }
    fn validate(&self) -> Result<(), SpecError> {
        self.law.validate()
    }
    fn describe(&self) -> Description {
        Description { ecn: self.law.marking(), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, _seed: u64, _name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Codel::new(self)))
    }
}

impl Law {
    /// The law's words, after those of its queue; `ecn` is what holds without a word.
    pub(crate) fn words(&self, ecn: bool) -> String {
        let mut t = format!(" target {} interval {}", print::time(self.target), print::time(self.interval));
        if let Some(c) = self.ce_threshold {
            t += &format!(" ce_threshold {}", print::time(c));
        }
        match (self.ecn, ecn) {
            (true, false) => t + " ecn",
            (false, true) => t + " noecn",
            _ => t,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        if [Some(self.target), Some(self.interval), self.ce_threshold].iter().flatten().any(|d| d.0 >= LONGEST) {
            return Err(SpecError::new("codel target", "interval and ce_threshold must be below 2199 s"));
        }
        Ok(())
    }

    /// `ce_threshold` marks without `ecn` too.
    pub(crate) fn marking(&self) -> Marking {
        Marking::when(self.ecn || self.ce_threshold.is_some())
    }

    /// CoDel's words in tc.
    pub(crate) const WORDS: [&str; 5] = ["target", "interval", "ecn", "noecn", "ce_threshold"];

    /// Reads one of [`Law::WORDS`].
    pub(crate) fn read(&mut self, key: &str, w: &mut Words<'_>) -> Result<(), TcError> {
        match key {
            // tc sends no zero: the default stays.
            "target" => self.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(self.target),
            "interval" => self.interval = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(self.interval),
            "ce_threshold" => self.ce_threshold = Some(w.micros(key)?),
            _ => self.ecn = key == "ecn",
        }
        Ok(())
    }
}

/// Half a turn of CoDel's clock, ns.
const LONGEST: u64 = 1 << 41;

/// The queue itself.
pub struct Codel<B> {
    limit: u64,
    limits: Limits,
    control: Control,
    queue: VecDeque<Aged<B>>,
}

impl<B> Codel<B> {
    /// An empty queue.
    pub fn new(spec: &CodelSpec) -> Codel<B> {
        Codel { limit: u64::from(spec.limit), limits: Limits::from(&spec.law), control: Control::default(), queue: VecDeque::new() }
    }
}

impl<B: Send> Policy<B> for Codel<B> {
    const NAME: &'static str = CodelSpec::NAME;

    fn admit(&mut self, now: Time, p: Packet<B>, books: &mut Books<'_>) -> bool {
        books.append(&mut self.queue, self.limit, now, p)
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        self.control.next(now, &self.limits, &mut Draining { pull: || self.queue.pop_front(), books })
    }
}

#[cfg(test)]
mod tests;
