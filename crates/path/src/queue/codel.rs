//! codel: drops at the head by how long packets have waited.
//!
//! What it is: a FIFO limited in packets whose head is dropped or marked by CoDel's [`law`].
//! Source: RFC 8289; tc-codel(8). Linux: codel_qdisc_enqueue(), codel_qdisc_dequeue(), codel_peek().
//! How it differs: nothing known. A parent that peeks (tbf, once the packet before has left) makes CoDel judge the packet
//! then, not when it leaves: the waiting for tokens is no part of its sojourn time, as in Linux.
//! What it does not model: a change of its parameters while it runs.

pub mod law;

use super::{with_peeked, Aged, Freed, Qdisc};
use crate::grammar::{print, TcError, Words};
use crate::spec::{QdiscSpec, SpecError};
use crate::stats::{Meter, StageStats};
use law::{Control, Law, Limits, Source};
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

/// Packets. Linux: DEFAULT_CODEL_LIMIT
fn limit() -> u32 {
    1000
}

impl Default for CodelSpec {
    fn default() -> CodelSpec {
        CodelSpec { limit: limit(), law: Law::default() }
    }
}

impl CodelSpec {
    pub(crate) fn words(&self) -> String {
        format!("codel limit {}{}", self.limit, words(&self.law, false))
    }
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        validate(&self.law)
    }
}

/// The law's words, after those of its queue; `ecn` is what holds without a word.
pub(crate) fn words(l: &Law, ecn: bool) -> String {
    let mut t = format!(" target {} interval {}", print::time(l.target), print::time(l.interval));
    if let Some(c) = l.ce_threshold {
        t += &format!(" ce_threshold {}", print::time(c));
    }
    match (l.ecn, ecn) {
        (true, false) => t + " ecn",
        (false, true) => t + " noecn",
        _ => t,
    }
}

pub(crate) fn validate(l: &Law) -> Result<(), SpecError> {
    if [Some(l.target), Some(l.interval), l.ce_threshold].iter().flatten().any(|d| d.0 >= LONGEST) {
        return Err(SpecError::new("codel target", "interval and ce_threshold must be below 2199 s"));
    }
    Ok(())
}

/// Half a turn of CoDel's clock, ns.
const LONGEST: u64 = 1 << 41;

/// The queue itself.
pub struct Codel<B> {
    limit: u64,
    limits: Limits,
    control: Control,
    line: Line<B>,
    /// The packet that a parent has looked at: it has left CoDel but not the queue.
    peeked: Option<Aged<B>>,
}

struct Line<B> {
    queue: VecDeque<Aged<B>>,
    bytes: u64,
    meter: Meter,
}

/// A line, and whom its drops are told.
struct Draining<'a, B> {
    line: &'a mut Line<B>,
    freed: &'a mut Freed,
}

impl<B> Source<B> for Draining<'_, B> {
    fn pull(&mut self) -> Option<Aged<B>> {
        let head = self.line.queue.pop_front()?;
        self.line.bytes -= u64::from(head.1.size);
        Some(head)
    }
    fn backlog(&self) -> u64 {
        self.line.bytes
    }
    fn discard(&mut self, p: &Aged<B>) {
        self.line.meter.s.drops.aqm += 1;
        self.freed.note(&p.1);
    }
    fn marked(&mut self) {
        self.line.meter.s.marked += 1;
    }
}

impl<B> Codel<B> {
    /// An empty queue.
    pub fn new(spec: &CodelSpec) -> Codel<B> {
        Codel {
            limit: u64::from(spec.limit),
            limits: Limits::from(&spec.law),
            control: Control::default(),
            line: Line { queue: VecDeque::new(), bytes: 0, meter: Meter::default() },
            peeked: None,
        }
    }
    fn next(&mut self, now: Time, freed: &mut Freed) -> Option<Aged<B>> {
        self.control.next(now, &self.limits, &mut Draining { line: &mut self.line, freed })
    }
    fn held(&self) -> (u64, u64) {
        with_peeked(self.line.queue.len() as u64, self.line.bytes, &self.peeked)
    }
}

impl<B: Send> Qdisc<B> for Codel<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.line.meter.arrive(&p);
        if self.held().0 >= self.limit {
            self.line.meter.s.drops.limit += 1;
            freed.note(&p);
            return false;
        }
        self.line.bytes += u64::from(p.size);
        self.line.queue.push_back((now, p));
        let (packets, bytes) = self.held();
        self.line.meter.held(packets, bytes);
        true
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.peeked.take().or_else(|| self.next(now, freed))?;
        self.line.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() {
            self.peeked = self.next(now, freed);
        }
        self.peeked.as_ref().map(|p| p.1.size)
    }
    fn packets(&self) -> u64 {
        self.held().0
    }
    fn bytes(&self) -> u64 {
        self.held().1
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.line.meter.report("codel", self.packets(), self.bytes()));
    }
}

/// CoDel's words in tc.
pub(crate) const WORDS: [&str; 5] = ["target", "interval", "ecn", "noecn", "ce_threshold"];

/// Reads one of [`WORDS`].
pub(crate) fn word(w: &mut Words<'_>, key: &str, l: &mut Law) -> Result<(), TcError> {
    match key {
        // tc sends no zero: the default stays.
        "target" => l.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.target),
        "interval" => l.interval = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.interval),
        "ce_threshold" => l.ce_threshold = Some(w.micros(key)?),
        _ => l.ecn = key == "ecn",
    }
    Ok(())
}

pub(crate) fn parse(w: &mut Words<'_>) -> Result<QdiscSpec, TcError> {
    let mut s = CodelSpec::default();
    while let Some(given) = w.word() {
        match w.exact(given, &["limit", WORDS[0], WORDS[1], WORDS[2], WORDS[3], WORDS[4]])? {
            "limit" => s.limit = Some(w.count("limit")?).filter(|&n| n > 0).unwrap_or(s.limit),
            key => word(w, key, &mut s.law)?,
        }
    }
    s.validate().map_err(|e| w.wrong_spec(&e))?;
    Ok(QdiscSpec::Codel(s))
}

#[cfg(test)]
mod tests;
