//! What a netem did to each packet of a recording, done again.
//!
//! What it is: the packets of a direction have fates by their order of arrival, segment by segment: lost, or so many copies, each with its delay and
//! its place among all packets that left. A packet leaves when its delay is over, and not before those that wait with it and left earlier.
//! Source: docs/models/exact.md, "Replayed impairments".
//! How it differs: nothing is drawn. Behind the last recorded fate every packet has the delay of the specification.
//! What it does not model: damaged and marked packets, a child.

use super::NetemSpec;
use crate::discipline::{segments, Body, Cause, Freed, Meter, Qdisc, StageStats};
use crate::parts::due::Held;
use std::collections::BTreeMap;
use tcpscape_base::{Packet, Time};

/// The copies of a segment that left, none of one that was lost: the place of each among all packets that left, and its delay, ns.
pub type Fate = Vec<(u64, u64)>;

/// The queue.
pub(super) struct Replay<B> {
    fates: Vec<Fate>,
    /// Of the next segment.
    next: usize,
    delay: u64,
    /// By place, then by arrival.
    waiting: BTreeMap<(u64, u64), Held<B>>,
    arrivals: u64,
    backlog: u64,
    meter: Meter,
}

impl<B: Body> Replay<B> {
    /// One with the fates of a recording.
    pub fn new<C>(s: &NetemSpec<C>, fates: &[Fate]) -> Replay<B> {
        let (fates, delay) = (fates.to_vec(), s.delay.0);
        Replay { fates, next: 0, delay, waiting: BTreeMap::new(), arrivals: 0, backlog: 0, meter: Meter::default() }
    }

    /// The fate of segment `index`.
    fn fate(&self, index: usize) -> Fate {
        self.fates.get(index).cloned().unwrap_or_else(|| vec![(u64::MAX, self.delay)])
    }

    /// Loses a packet, or holds each of its copies.
    fn meet(&mut self, now: Time, p: &Packet<B>, fate: &Fate, freed: &mut Freed) {
        if fate.is_empty() {
            self.meter.drops(Cause::Loss, p);
            freed.dropped(Cause::Loss, p);
        }
        for (copy, &(place, delay)) in fate.iter().enumerate() {
            if copy > 0 {
                self.meter.copies(p);
            }
            let due = now.0.saturating_add(delay).min(i64::MAX as u64) as i64;
            self.backlog += u64::from(p.size);
            self.arrivals += 1;
            let held = Held { due, arrived: now, ticket: self.meter.ticket(), packet: p.clone() };
            self.waiting.insert((place, self.arrivals), held);
            self.meter.held(self.waiting.len() as u64, self.backlog);
        }
    }
}

impl<B: Body> Qdisc<B> for Replay<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let (first, count) = (self.next, usize::from(p.segs.max(1)));
        self.next += count;
        let fate = self.fate(first);
        if (first + 1..self.next).all(|i| self.fate(i) == fate) {
            self.meet(now, &p, &fate, freed);
            return true;
        }
        self.meter.cut(p.segs);
        for (i, part) in segments(&p).enumerate() {
            let fate = self.fate(first + i);
            self.meet(now, &part, &fate, freed);
        }
        true
    }
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let first = self.waiting.first_entry().filter(|first| first.get().due <= now.0 as i64)?;
        let h = first.remove();
        self.backlog -= u64::from(h.packet.size);
        self.meter.leave(&h.packet);
        self.meter.delay(now, h.arrived, h.ticket);
        Some(h.packet)
    }
    fn peek(&mut self, now: Time, _: &mut Freed) -> Option<u32> {
        self.waiting.values().next().filter(|h| h.due <= now.0 as i64).map(|h| h.packet.size)
    }
    fn next_event(&self) -> Time {
        self.waiting.values().next().map_or(Time::MAX, |h| Time(h.due as u64))
    }
    fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn bytes(&self) -> u64 {
        self.backlog
    }
    fn orphans(&self) -> bool {
        true
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("netem", self.packets(), self.backlog));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{check_accounts, spec};
    use crate::QdiscSpec;
    use tcpscape_base::Segment;

    /// Lets packets of so many segments come at 0, 100, 200 ns: (first segment, bytes of data, when it left), and the account.
    fn left(fates: &[Fate], sizes: &[u16]) -> (Vec<(u64, u32, u64)>, StageStats) {
        let mut q = Replay::new(&spec::<NetemSpec<QdiscSpec>>("netem delay 20us"), fates);
        let (mut freed, mut seq, mut out) = (Freed::default(), 0, vec![]);
        for (i, &segs) in sizes.iter().enumerate() {
            let body = Segment { seq, len: 100 * u32::from(segs), ..Segment::default() };
            seq += 100 * u64::from(segs);
            q.enqueue(Time(100 * i as u64), Packet { size: 166 * u32::from(segs), segs, body, ..Default::default() }, &mut freed);
        }
        let mut now = Time::ZERO;
        while q.packets() > 0 {
            now = q.next_event().max(now);
            let p = q.dequeue(now, &mut freed).unwrap();
            out.push((p.body.seq / 100, p.body.len, now.0));
        }
        let mut report = Vec::new();
        q.report(&mut report);
        check_accounts(&report).unwrap();
        (out, report.remove(0))
    }

    #[test]
    fn each_is_lost_copied_or_late_as_recorded_and_the_others_have_the_delay() {
        let fates = [vec![(1, 5_000)], vec![], vec![(0, 1_000), (2, 9_000)]];
        let (out, account) = left(&fates, &[1, 1, 1, 1]);
        assert_eq!(out, [(2, 100, 1_200), (0, 100, 5_000), (2, 100, 9_200), (3, 100, 20_300)]);
        assert_eq!((account.drops.loss, account.duplicated, account.packets_in, account.packets_out), (1, 1, 4, 4));
    }

    /// Another order would be another decision, whatever some nanoseconds make of the due times.
    #[test]
    fn the_order_is_the_recorded_one() {
        let (out, _) = left(&[vec![(1, 5_000)], vec![(0, 4_950)]], &[1, 1]);
        assert_eq!(out, [(1, 100, 5_050), (0, 100, 5_050)]);
    }

    #[test]
    fn a_super_packet_stays_whole_where_its_segments_have_one_fate() {
        let one = vec![(0, 1_000)];
        let (out, _) = left(&[one.clone(), one.clone(), vec![], one.clone(), vec![(1, 3_000)]], &[2, 3]);
        assert_eq!(out, [(0, 200, 1_000), (3, 100, 1_100), (4, 100, 3_100)]);
    }
}
