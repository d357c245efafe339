//! codel: drops at the head by how long packets have waited.
//!
//! What it is: a FIFO limited in packets whose head is dropped or marked by CoDel's [`law`].
//! Source: RFC 8289; tc-codel(8).
//! How it differs: nothing known. A parent that peeks (tbf, once the packet before has left) makes CoDel judge the packet
//! then, not when it leaves: the waiting for tokens is no part of its sojourn time, as in Linux.
//! What it does not model: a change of its parameters while it runs.

pub mod law;
pub(crate) mod options;

use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Policy, Queued};
use crate::values::SpecError;
use crate::words::{TcError, Words};
use law::{Control, Law, Limits, Source};
use options::WORDS;
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
        while let Some(given) = w.word() {
            match w.exact(given, &["limit", WORDS[0], WORDS[1], WORDS[2], WORDS[3], WORDS[4]])? {
                "limit" => s.limit = Some(w.count("limit")?).filter(|&n| n > 0).unwrap_or(s.limit),
                key => options::word(w, key, &mut s.law)?,
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        format!("codel limit {}{}", self.limit, options::words(&self.law, false))
    }
    fn validate(&self) -> Result<(), SpecError> {
        options::validate(&self.law)
    }
    fn describe(&self) -> Description {
        Description { ecn: options::marking(&self.law), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, _seed: u64, _name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Codel::new(self)))
    }
}

/// The queue itself.
pub struct Codel<B> {
    limit: u64,
    limits: Limits,
    control: Control,
    queue: VecDeque<Aged<B>>,
}

/// The line that the law draws from, and the books of its drops.
struct Draining<'a, 'b, B> {
    queue: &'a mut VecDeque<Aged<B>>,
    books: &'a mut Books<'b>,
}

impl<B> Source<B> for Draining<'_, '_, B> {
    fn pull(&mut self) -> Option<Aged<B>> {
        let head = self.queue.pop_front()?;
        self.books.leaves(&head.1);
        Some(head)
    }
    fn backlog(&self) -> u64 {
        self.books.inside().bytes
    }
    fn discard(&mut self, p: &Aged<B>) {
        self.books.drops(Cause::Aqm, &p.1);
    }
    fn marked(&mut self) {
        self.books.marked();
    }
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
        self.control.next(now, &self.limits, &mut Draining { queue: &mut self.queue, books })
    }
}

#[cfg(test)]
mod tests;
