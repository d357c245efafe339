//! red: drops or marks at random as packets come, by the average length of the queue.
//!
//! What it is: an average over the bytes that arrivals find, with weight 2^-Wlog. Below `min` everything passes; between `min` and
//! `max` packets are struck evenly spaced, the more often the longer the average, up to `probability`; above `max` all of them are.
//! Source: Floyd and Jacobson 1993; tc-red(8); the rule is [`law`], what tc computes from its words is in [`tc`].
//! How it differs: `adaptive` adapts every 510 ms. Since tc says its flags in an attribute of their own (5.7), Linux takes note
//! of the word and never starts that timer; told the old way, it does.
//! What it does not model: a child other than the byte FIFO, qevents, a change of its parameters while it runs.

pub(crate) mod law;
pub mod tc;

use crate::discipline::{Aged, AnyQdisc, Body, Cause, Description, Discipline, Freed, Marking, Meter, Qdisc, StageStats};
use crate::parts::clock::Ticker;
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use law::{Fate, Law};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tc::Computed;
use tcpscape_base::{Packet, Rate, Stream, Time};

/// red's parameters, those that tc derives included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedSpec {
    /// Most that it holds, B.
    pub limit: u32,
    /// Average below which nothing happens, B.
    pub min: u32,
    /// Average from which every packet is struck, B.
    pub max: u32,
    /// Packets whose burst the average forgives.
    pub burst: u32,
    /// Average packet, B.
    pub avpkt: u32,
    /// Rate at which the average is taken to decay in an idle time, bit/s.
    pub bandwidth: Rate,
    /// Probability just below `max`.
    pub probability: f64,
    /// Mark instead of dropping where a packet allows it.
    #[serde(default)]
    pub ecn: bool,
    /// Above `max`, drop even so.
    #[serde(default)]
    pub harddrop: bool,
    /// With `ecn`, never drop early what cannot be marked.
    #[serde(default)]
    pub nodrop: bool,
    /// Move `probability` so that the average stays in the middle.
    #[serde(default)]
    pub adaptive: bool,
}

impl Discipline for RedSpec {
    const NAME: &'static str = "red";
    const EXAMPLE: &'static str = "red limit 100000 min 6000 max 18000 avpkt 1000 probability 0.1 ecn";

    fn parse(w: &mut Words<'_>) -> Result<RedSpec, TcError> {
        let (mut limit, mut min, mut max, mut burst, mut avpkt) = (0u32, 0u32, 0u32, 0u32, 0u32);
        let (mut probability, mut bandwidth) = (PROBABILITY, None);
        let (mut ecn, mut harddrop, mut nodrop, mut adaptive) = (false, false, false, false);
        while let Some(word) = w.word() {
            let key = w.exact(word, &WORDS)?;
            match key {
                "limit" => limit = w.size(key)? as u32,
                "min" => min = w.size(key)? as u32,
                "max" => max = w.size(key)? as u32,
                "burst" => burst = w.count(key)?,
                "avpkt" => avpkt = w.size(key)? as u32,
                "probability" => probability = w.fraction(key)?,
                "bandwidth" => bandwidth = Some(w.rate(key)?),
                "ecn" => ecn = true,
                "harddrop" => harddrop = true,
                "nodrop" => nodrop = true,
                _ => adaptive = true,
            }
        }
        if limit == 0 {
            return Err(w.missing("limit", "limit 257216 (bytes)"));
        }
        if avpkt == 0 {
            return Err(w.missing("avpkt", "avpkt 1500 (bytes)"));
        }
        // tc: as Floyd recommends.
        let max = if max > 0 {
            max
        } else if min > 0 {
            min.saturating_mul(3)
        } else {
            limit / 4
        };
        let min = if min > 0 { min } else { max / 3 };
        let burst = if burst > 0 { burst } else { ((2 * u64::from(min) + u64::from(max)) / (3 * u64::from(avpkt))) as u32 };
        let bandwidth = bandwidth.unwrap_or(BANDWIDTH);
        Ok(RedSpec { limit, min, max, burst, avpkt, bandwidth, probability, ecn, harddrop, nodrop, adaptive })
    }
    fn words(&self) -> String {
        let mut t = format!("red limit {} min {} max {} avpkt {} burst {}", self.limit, self.min, self.max, self.avpkt, self.burst);
        t += &format!(" bandwidth {} probability {}", print::rate(self.bandwidth), self.probability);
        let flags = [(self.ecn, " ecn"), (self.harddrop, " harddrop"), (self.nodrop, " nodrop"), (self.adaptive, " adaptive")];
        flags.iter().filter(|f| f.0).for_each(|f| t += f.1);
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        let no = |field: &str, fix: &str| Err(SpecError::new(&format!("red {field}"), fix));
        if self.limit == 0 || self.avpkt == 0 || self.bandwidth.bytes_per_sec() == 0 {
            return no("limit", "avpkt and bandwidth must be above 0");
        }
        if self.max <= self.min {
            return no("max", "must be above min: min 30000 max 90000");
        }
        if !(self.probability > 0.0 && self.probability <= 1.0) {
            return no("probability", "must be above 0 and at most 1, for example 0.02");
        }
        if self.nodrop && !self.ecn {
            return no("nodrop", "is only meaningful with ecn");
        }
        Computed::of(self).map(|_| ())
    }
    fn describe(&self) -> Description {
        let limit_bytes = Some(u64::from(self.limit));
        Description { limit_bytes, ecn: Marking::when(self.ecn), ..Description::of(Self::NAME) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Red::new(self, seed, name))
    }
}

/// Time between adaptations, ticks: HZ / 2.
const ADAPT: u64 = 50;

/// The queue itself.
pub struct Red<B> {
    spec: RedSpec,
    law: Law,
    adapting: Option<Ticker>,
    queue: VecDeque<Aged<B>>,
    bytes: u64,
    /// It has run empty, and nobody has looked since.
    look: bool,
    meter: Meter,
}

impl<B> Red<B> {
    /// An empty queue; its draws are the stream `name/drop`.
    pub fn new(spec: &RedSpec, seed: u64, name: &str) -> Red<B> {
        Red {
            law: Law::new(spec, Stream::new(seed, &format!("{name}/drop"))),
            adapting: spec.adaptive.then(|| Ticker::new(seed, ADAPT)),
            spec: spec.clone(),
            queue: VecDeque::new(),
            bytes: 0,
            look: false,
            meter: Meter::default(),
        }
    }
    /// Adaptations that were due since the last packet: they depend on nothing that has changed in between.
    fn catch_up(&mut self, now: Time) {
        while let Some(t) = self.adapting.as_mut().and_then(|a| a.due(now)) {
            self.law.adapt(t);
        }
    }
    /// Whether RED lets it in; marks it if that is what it takes.
    fn admits(&mut self, now: Time, p: &mut Packet<B>) -> bool {
        let fate = self.law.arrival(now, self.bytes);
        if fate == Fate::Pass {
            return true;
        }
        let may_mark = self.spec.ecn && !(fate == Fate::Forced && self.spec.harddrop);
        if may_mark && p.mark() {
            self.meter.s.marked += 1;
            return true;
        }
        may_mark && self.spec.nodrop
    }
}

impl<B: Send> Qdisc<B> for Red<B> {
    fn enqueue(&mut self, now: Time, mut p: Packet<B>, freed: &mut Freed) -> bool {
        self.catch_up(now);
        self.meter.arrive(&p);
        if !self.admits(now, &mut p) {
            self.meter.drops(Cause::Aqm, &p);
            freed.dropped(Cause::Aqm, &p);
            return true;
        }
        let size = u64::from(p.size);
        if self.bytes + size > u64::from(self.spec.limit) {
            self.meter.drops(Cause::Limit, &p);
            freed.dropped(Cause::Limit, &p);
            return false;
        }
        self.bytes += size;
        self.queue.push_back((now, p));
        self.meter.held(self.queue.len() as u64, self.bytes);
        true
    }
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let Some((arrived, p)) = self.queue.pop_front() else {
            // Asked in vain, it is idle. tbf and htb never ask in vain.
            self.look = false;
            self.catch_up(now);
            self.law.idles(now);
            return None;
        };
        self.bytes -= u64::from(p.size);
        self.look = self.queue.is_empty();
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    fn peek(&mut self, _: Time, _: &mut Freed) -> Option<u32> {
        self.look = false;
        self.queue.front().map(|(_, p)| p.size)
    }
    fn next_event(&self) -> Time {
        if self.queue.is_empty() && !self.look {
            Time::MAX
        } else {
            Time::ZERO
        }
    }
    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("red", self.packets(), self.bytes));
    }
}

const WORDS: [&str; 12] =
    ["limit", "min", "max", "burst", "avpkt", "probability", "bandwidth", "ecn", "harddrop", "nodrop", "adaptative", "adaptive"];

/// tc's defaults.
const PROBABILITY: f64 = 0.02;
const BANDWIDTH: Rate = Rate(10_000_000);

#[cfg(test)]
mod tests;
