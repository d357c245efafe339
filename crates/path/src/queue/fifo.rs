//! First in, first out, with a limit.
//!
//! What it is: `pfifo` (limit in packets) and `bfifo` (limit in bytes); what does not fit is dropped at the tail.
//! `pfifo_head_drop` drops its oldest packet instead.
//! Source: tc-pfifo(8), tc-bfifo(8).
//! How it differs: a head drop is not told to a TCP on the same host (Linux: NET_XMIT_CN).
//! What it does not model: `pfifo_fast`'s bands.

use crate::discipline::{AnyQdisc, Body, Cause, Description, Discipline, Freed, Meter, Patch, Qdisc, StageStats};
use crate::words::{TcError, Words};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Time};

/// Parameters of `pfifo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfifoSpec {
    /// Packets.
    pub limit: u64,
}

/// Parameters of `bfifo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BfifoSpec {
    /// Bytes.
    pub limit: u64,
}

/// Parameters of `pfifo_head_drop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfifoHeadDropSpec {
    /// Packets.
    pub limit: u64,
}

impl Discipline for PfifoSpec {
    const NAME: &'static str = "pfifo";
    const EXAMPLE: &'static str = "pfifo limit 100";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<PfifoSpec, TcError> {
        Ok(PfifoSpec { limit: limit(w, TX_QUEUE_LEN, packets)? })
    }
    fn words(&self) -> String {
        format!("pfifo limit {}", self.limit)
    }
    fn describe(&self) -> Description {
        Description::of_packets(Self::NAME, self.limit)
    }
    fn machine<B: Body>(&self, _seed: u64, _name: &str) -> AnyQdisc<B> {
        Box::new(Fifo::packets(self.limit))
    }
}

impl Discipline for BfifoSpec {
    const NAME: &'static str = "bfifo";
    const EXAMPLE: &'static str = "bfifo limit 15000";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<BfifoSpec, TcError> {
        Ok(BfifoSpec { limit: limit(w, TX_QUEUE_LEN * FULL_FRAME, Words::size)? })
    }
    fn words(&self) -> String {
        format!("bfifo limit {}", self.limit)
    }
    fn describe(&self) -> Description {
        Description { limit_bytes: Some(self.limit), ..Description::of(Self::NAME) }
    }
    fn machine<B: Body>(&self, _seed: u64, _name: &str) -> AnyQdisc<B> {
        Box::new(Fifo::bytes(self.limit))
    }
}

impl Discipline for PfifoHeadDropSpec {
    const NAME: &'static str = "pfifo_head_drop";
    const EXAMPLE: &'static str = "pfifo_head_drop limit 100";
    const CHANGES: &'static [&'static str] = &["limit"];

    fn parse(w: &mut Words<'_>) -> Result<PfifoHeadDropSpec, TcError> {
        Ok(PfifoHeadDropSpec { limit: limit(w, TX_QUEUE_LEN, packets)? })
    }
    fn words(&self) -> String {
        format!("pfifo_head_drop limit {}", self.limit)
    }
    fn describe(&self) -> Description {
        Description::of_packets(Self::NAME, self.limit)
    }
    fn machine<B: Body>(&self, _seed: u64, _name: &str) -> AnyQdisc<B> {
        Box::new(Fifo::head_drop(self.limit))
    }
}

/// The queue itself.
pub struct Fifo<B> {
    queue: VecDeque<(Time, Packet<B>)>,
    backlog: u64,
    max_packets: u64,
    max_bytes: u64,
    drops_head: bool,
    meter: Meter,
}

impl<B> Fifo<B> {
    /// A `pfifo`.
    pub fn packets(limit: u64) -> Fifo<B> {
        Fifo { queue: VecDeque::new(), backlog: 0, max_packets: limit, max_bytes: u64::MAX, drops_head: false, meter: Meter::default() }
    }
    /// A `pfifo_head_drop`.
    pub fn head_drop(limit: u64) -> Fifo<B> {
        Fifo { drops_head: true, ..Fifo::packets(limit) }
    }
    /// A `bfifo`.
    pub fn bytes(limit: u64) -> Fifo<B> {
        Fifo { max_packets: u64::MAX, max_bytes: limit, ..Fifo::packets(0) }
    }
    fn counts_bytes(&self) -> bool {
        self.max_packets == u64::MAX
    }
}

impl<B: Send> Qdisc<B> for Fifo<B> {
    #[inline]
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let size = u64::from(p.size);
        if self.queue.len() as u64 >= self.max_packets || self.backlog + size > self.max_bytes {
            let oldest = if self.drops_head { self.queue.pop_front() } else { None };
            let Some((_, oldest)) = oldest else {
                self.meter.drops(Cause::Limit, &p);
                freed.dropped(Cause::Limit, &p);
                return false;
            };
            self.meter.drops(Cause::Limit, &oldest);
            self.backlog -= u64::from(oldest.size);
            freed.dropped(Cause::Limit, &oldest);
        }
        self.backlog += size;
        self.queue.push_back((now, p));
        self.meter.held(self.queue.len() as u64, self.backlog);
        true
    }
    #[inline]
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let (arrived, p) = self.queue.pop_front()?;
        self.backlog -= u64::from(p.size);
        self.meter.depart(now, arrived, &p);
        Some(p)
    }
    #[inline]
    fn peek(&mut self, _: Time, _: &mut Freed) -> Option<u32> {
        self.queue.front().map(|(_, p)| p.size)
    }
    #[inline]
    fn head(&self) -> Option<u32> {
        self.queue.front().filter(|_| !self.drops_head).map(|(_, p)| p.size)
    }
    #[inline]
    fn next_event(&self) -> Time {
        if self.queue.is_empty() {
            Time::MAX
        } else {
            Time::ZERO
        }
    }
    #[inline]
    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.backlog
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if let (0, Some(limit)) = (depth, patch.limit) {
            if self.counts_bytes() {
                self.max_bytes = limit;
            } else {
                self.max_packets = limit;
            }
        }
    }
    fn current(&self, depth: usize) -> Patch {
        let limit = if self.counts_bytes() { self.max_bytes } else { self.max_packets };
        Patch { limit: (depth == 0).then_some(limit), ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        let name = match (self.counts_bytes(), self.drops_head) {
            (true, _) => BfifoSpec::NAME,
            (false, false) => PfifoSpec::NAME,
            (false, true) => PfifoHeadDropSpec::NAME,
        };
        out.push(self.meter.report(name, self.packets(), self.backlog));
    }
}

/// Device queue length: `pfifo` without a limit takes as many packets, `bfifo` as many full frames (`txqueuelen` of veth and Ethernet).
pub const TX_QUEUE_LEN: u64 = 1000;
/// A full Ethernet frame at MTU 1500, B.
const FULL_FRAME: u64 = 1514;

fn limit<'a>(w: &mut Words<'a>, default: u64, read: fn(&mut Words<'a>, &str) -> Result<u64, TcError>) -> Result<u64, TcError> {
    let mut limit = default;
    while let Some(word) = w.word() {
        limit = read(w, w.keyword(word, &["limit"])?)?;
    }
    Ok(limit)
}

fn packets(w: &mut Words<'_>, key: &str) -> Result<u64, TcError> {
    w.packets(key).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(size: u32) -> Packet<()> {
        Packet { size, segs: 1, ..Default::default() }
    }

    #[test]
    fn fifteen_kilobytes_hold_nine_full_frames() {
        // 9 · 1514 = 13626 ≤ 15000 < 15140
        let (mut q, mut f) = (Fifo::bytes(15_000), Freed::default());
        for _ in 0..12 {
            q.enqueue(Time(0), packet(1514), &mut f);
        }
        assert_eq!((q.packets(), q.bytes(), q.meter.s.drops.limit), (9, 13_626, 3));
        assert!(q.enqueue(Time(0), packet(1374), &mut f));
        assert_eq!(q.packets(), 10, "exactly the limit fits");
        assert!(!q.enqueue(Time(0), packet(60), &mut f), "a packet without room is refused");
    }

    #[test]
    fn head_drop_keeps_the_newest() {
        let (mut q, mut f) = (Fifo::head_drop(3), Freed::default());
        for i in 0..5 {
            assert!(q.enqueue(Time(0), packet(i), &mut f));
        }
        let left: Vec<u32> = std::iter::from_fn(|| q.dequeue(Time(0), &mut f)).map(|p| p.size).collect();
        assert_eq!((left, q.meter.s.drops.limit, q.bytes()), (vec![2, 3, 4], 2, 0));
        assert!(!Fifo::head_drop(0).enqueue(Time(0), packet(1), &mut f));
    }

    #[test]
    fn a_hundred_packets_whatever_their_size() {
        let (mut q, mut f) = (Fifo::packets(100), Freed::default());
        for i in 0..120 {
            q.enqueue(Time(0), packet(i), &mut f);
        }
        assert_eq!((q.packets(), q.meter.s.drops.limit), (100, 20));
        assert_eq!(q.dequeue(Time(7), &mut f).map(|p| p.size), Some(0));
    }
}
