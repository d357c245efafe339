//! netem, the network emulator, as Linux 6.1 does it.
//!
//! What it is: at the entrance a packet is judged in this order: duplicate, loss (or an ECN mark), corruption, the limit;
//! then it gets a due time from delay, jitter and rate, and leaves by due time, which is why jitter reorders.
//! Source: tc-netem(8), Hemminger 2005.
//! How it differs: times are kept to the nanosecond, where tc 6.1 rounds to microseconds and then to ticks of 64 ns; each
//! impairment draws from its own stream; a copy enters netem again instead of the root of the tree.
//! What it does not model: distribution tables of one's own, `delay` beyond tc's 274 s.

mod machine;
mod parse;
mod replay;
pub mod slot;

use crate::discipline::{AnyQdisc, Body, Child, Description, Discipline, Marking, DELAY_MAX};
use crate::impair::loss::Loss;
use crate::values::{Dist, Prob, SpecError};
use crate::words::{print, TcError, Words};
pub use machine::Netem;
pub use replay::Fate;
use serde::{Deserialize, Serialize};
use slot::Slot;
use tcpscape_base::{Duration, Rate};

/// Packets that netem holds at most when nothing is said (tc's default).
pub const LIMIT: u32 = 1000;
/// netem's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetemSpec<C> {
    /// Packets held at most.
    pub limit: u32,
    /// Delay.
    pub delay: Duration,
    /// Spread of the delay: half-width of the uniform, standard deviation of the others.
    pub jitter: Duration,
    /// How much a delay leans on the last.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub delay_correlation: Prob,
    /// Distribution of the delay.
    pub distribution: Dist,
    /// Loss.
    pub loss: Loss,
    /// Mark ECN-capable packets instead of losing them.
    pub ecn: bool,
    /// Probability of a second copy.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub duplicate: Prob,
    /// Its correlation.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub duplicate_correlation: Prob,
    /// Probability of a flipped bit.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub corrupt: Prob,
    /// Its correlation.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub corrupt_correlation: Prob,
    /// Probability of overtaking, for every `gap`-th packet.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub reorder: Prob,
    /// Its correlation.
    #[serde(skip_serializing_if = "Prob::is_zero")]
    pub reorder_correlation: Prob,
    /// Every which packet may overtake; 0 counts as 1 where there is `reorder`, as in tc.
    pub gap: u32,
    /// Rate, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bytes added to each packet for the rate.
    pub packet_overhead: i32,
    /// Cells that packets are cut into for the rate, B; 0 is none.
    pub cell_size: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
    /// Slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// Queue that packets enter when they are due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<C>>,
    /// What becomes of each segment, by its number among those that arrive, instead of all draws: the record of a kernel's netem. No word of tc's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fates: Option<Vec<Fate>>,
}

impl<C> Default for NetemSpec<C> {
    fn default() -> NetemSpec<C> {
        NetemSpec {
            limit: LIMIT,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: Prob::ZERO,
            distribution: Dist::Uniform,
            loss: Loss::default(),
            ecn: false,
            duplicate: Prob::ZERO,
            duplicate_correlation: Prob::ZERO,
            corrupt: Prob::ZERO,
            corrupt_correlation: Prob::ZERO,
            reorder: Prob::ZERO,
            reorder_correlation: Prob::ZERO,
            gap: 0,
            rate: None,
            packet_overhead: 0,
            cell_size: 0,
            cell_overhead: 0,
            slot: None,
            child: None,
            fates: None,
        }
    }
}

impl<C: Child> Discipline for NetemSpec<C> {
    const NAME: &'static str = "netem";
    const EXAMPLE: &'static str = "netem delay 25ms 8ms distribution normal loss 1%";
    const CHANGES: &'static [&'static str] = &["delay", "jitter", "loss", "rate", "limit"];

    fn parse(w: &mut Words<'_>) -> Result<NetemSpec<C>, TcError> {
        parse::parse(w)
    }
    fn words(&self) -> String {
        let mut t = format!("netem limit {}", self.limit);
        let with = |word: &str, p: Prob, cor: Prob| match (p.0, cor.0) {
            (0, 0) => String::new(),
            (_, 0) => format!(" {word} {p}"),
            _ => format!(" {word} {p} {cor}"),
        };
        if self.delay.0 > 0 || self.jitter.0 > 0 {
            t += &format!(" delay {}", print::time(self.delay));
            if self.jitter.0 > 0 {
                t += &format!(" {}", print::time(self.jitter));
                if self.delay_correlation.0 > 0 {
                    t += &format!(" {}", self.delay_correlation);
                }
                if self.distribution != Dist::Uniform {
                    t += &format!(" distribution {}", self.distribution.name());
                }
            }
        }
        if self.loss != Loss::default() {
            t += &format!(" {}", self.loss.words());
        }
        if self.ecn {
            t += " ecn";
        }
        t += &with("duplicate", self.duplicate, self.duplicate_correlation);
        t += &with("corrupt", self.corrupt, self.corrupt_correlation);
        t += &with("reorder", self.reorder, self.reorder_correlation);
        if self.gap > 1 {
            t += &format!(" gap {}", self.gap);
        }
        if let Some(r) = self.rate {
            t += &format!(" rate {}", print::rate(r));
            if (self.packet_overhead, self.cell_size, self.cell_overhead) != (0, 0, 0) {
                t += &format!(" {} {} {}", self.packet_overhead, self.cell_size, self.cell_overhead);
            }
        }
        if let Some(s) = &self.slot {
            let head = s.distribution.map_or(String::new(), |d| format!(" distribution {}", d.name()));
            t += &format!(" slot{head} {} {}", print::time(s.min), print::time(s.max));
            for (word, n) in [("packets", s.packets), ("bytes", s.bytes)] {
                if n > 0 {
                    t += &format!(" {word} {n}");
                }
            }
        }
        t
    }

    fn validate(&self) -> Result<(), SpecError> {
        let no = |field: &str, fix: &str| Err(SpecError::new(&format!("netem {field}"), fix));
        if self.delay > DELAY_MAX {
            return no("delay", "is over a day; give it in ms, for example 25ms");
        }
        if self.jitter.0 > i32::MAX as u64 {
            return no("jitter", "is over 2.147 s, the most that the kernel keeps");
        }
        if self.jitter.0 == 0 && (self.delay_correlation.0 > 0 || self.distribution != Dist::Uniform) {
            return no("distribution", "and correlation need jitter: delay 25ms 8ms");
        }
        if self.distribution != Dist::Uniform && self.delay.0 == 0 {
            return no("distribution", "needs a delay and jitter: delay 25ms 8ms distribution normal");
        }
        if self.reorder.0 > 0 && self.delay.0 == 0 {
            return no("reorder", "needs a delay to overtake: delay 10ms reorder 25%");
        }
        if self.gap > 0 && self.reorder.0 == 0 {
            return no("gap", "goes with a reorder probability: reorder 25% gap 5");
        }
        if self.ecn && self.loss.is_none() {
            return no("ecn", "needs a loss to mark instead of: loss 1% ecn");
        }
        if self.rate.is_some_and(|r| r.bytes_per_sec() == 0) {
            return no("rate", "must be at least 8 bit/s");
        }
        if self.cell_size > 0 && self.cell_overhead < 0 && self.cell_overhead.unsigned_abs() >= self.cell_size {
            return no("rate", "a cell's overhead must leave something of the cell");
        }
        if self.fates.is_some() && (self.child.is_some() || self.corrupt.0 > 0 || self.ecn) {
            return no("fates", "know no child, no damaged and no marked packets");
        }
        self.slot.as_ref().map_or(Ok(()), Slot::validate)
    }
    fn validate_among_its_kind(&self) -> Result<(), SpecError> {
        if self.duplicate.0 > 0 {
            return Err(SpecError::new("duplicate", "a duplicating netem cannot share a tree with another netem: use two stages"));
        }
        Ok(())
    }
    fn describe(&self) -> Description {
        // A line of its own takes packets one after the other; without it each leaves when its own delay is over.
        let overtaking = self.jitter.0 > 0 && self.rate.is_none() || self.reorder.0 > 0;
        // A packet that comes before its time, or counts as smaller than it is, is not held to the rate.
        let strict = self.jitter.0 == 0 && self.reorder.0 == 0 && self.packet_overhead >= 0 && self.cell_overhead >= 0;
        let jitter = self.jitter.0 as f64;
        let spread = if self.distribution == Dist::Uniform { jitter / 3f64.sqrt() } else { jitter };
        Description {
            delay_ns: self.delay.0,
            jitter_ns: self.jitter.0,
            distribution: (self.jitter.0 > 0).then_some(self.distribution),
            loss: self.loss.average(),
            loss_is_independent: matches!(self.loss, Loss::Random { correlation: Prob::ZERO, .. }),
            spread_ns: (self.jitter.0 == 0 || self.delay_correlation == Prob::ZERO).then_some(spread),
            duplicate: self.duplicate.fraction(),
            corrupt: self.corrupt.fraction(),
            reorder: self.reorder.fraction(),
            slotted: self.slot.is_some(),
            rate_bps: self.rate.map(|r| r.0),
            burst_bytes: strict.then_some(0),
            owes_a_packet: true,
            in_order: !overtaking,
            ecn: Marking::when(self.ecn),
            ..Description::of_packets(Self::NAME, self.limit)
        }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        if let Some(fates) = &self.fates {
            return Box::new(replay::Replay::new(self, fates));
        }
        Box::new(Netem::new(self, self.child.as_ref().map(|c| c.build(seed, name)), seed, name))
    }
}
