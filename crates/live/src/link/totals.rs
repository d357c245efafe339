//! What went through a direction, in packets of MTU size.

use super::emit;
use super::frame::Cargo;
use serde::Serialize;
use tcpscape_base::{Histogram, Packet, Time};
use tcpscape_path::{DelayStats, Direction, Drops, StageStats};

/// The account of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Packets that came.
    pub packets_in: u64,
    /// Bytes that came, with Ethernet headers, as a qdisc counts them.
    pub bytes_in: u64,
    /// Packets that left, copies included.
    pub packets_out: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Packets inside.
    pub packets_held: u64,
    /// Bytes in queues.
    pub bytes_held: u64,
    /// Packets dropped by the path's queues and impairments, by cause. Where a queue takes super-packets whole, one counts once.
    pub drops: Drops,
    /// Packets lost when the path was replaced.
    pub drops_replaced: u64,
    /// Damaged packets whose damage nobody would have seen, dropped instead.
    pub drops_damaged: u64,
    /// Packets that left with a CE mark which they did not bring.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets that left damaged.
    pub corrupted: u64,
    /// Packets that left after one that had come later.
    pub reordered: u64,
    /// Super-packets of a kind that is not understood, each decided on as one packet.
    pub uncut: u64,
    /// Packets whose time of arrival was before an event that had already happened here; they count as arrived at that event.
    pub belated: u64,
    /// From arrival to due time, ns.
    pub delay: DelayStats,
    /// When the first and the last packet came, ns since the link's zero.
    pub arrivals: Option<(Time, Time)>,
    /// When the first and the last packet were due.
    pub departures: Option<(Time, Time)>,
}

impl Totals {
    /// What happened to packets that nobody asked for, in sentences.
    pub fn unasked(&self, direction: Direction) -> Vec<String> {
        let told = [
            (self.uncut, "super-packets of a kind that the emulator does not cut were decided on as one packet each"),
            (self.drops_damaged, "packets to be damaged were dropped, as no checksum would have told the receiver"),
            (self.drops_replaced, "packets were lost because the path was replaced again and again while they waited"),
        ];
        told.into_iter().filter(|t| t.0 > 0).map(|(n, what)| format!("{direction}: {n} {what}")).collect()
    }

    /// Adds what queues have dropped and copied.
    fn add<'a>(&mut self, queues: impl Iterator<Item = &'a StageStats>) {
        for q in queues {
            self.drops.loss += q.drops.loss;
            self.drops.limit += q.drops.limit;
            self.drops.oversize += q.drops.oversize;
            self.drops.aqm += q.drops.aqm;
            self.duplicated += q.duplicated;
        }
    }
}

/// The account while it is kept.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub totals: Totals,
    newest: Option<u64>,
    delays: Histogram,
    sum: u64,
    squares: f64,
}

impl Meter {
    /// A frame of so many packets has come.
    #[inline]
    pub fn arrives(&mut self, at: Time, packets: u16, bytes: u32) {
        self.totals.packets_in += u64::from(packets);
        self.totals.bytes_in += u64::from(bytes);
        self.totals.arrivals = Some((self.totals.arrivals.map_or(at, |a| a.0), at));
    }

    /// Packets leave together.
    #[inline]
    pub fn departs(&mut self, due: Time, p: &Packet<Cargo>) {
        let (t, packets) = (&mut self.totals, u64::from(p.body.count));
        t.packets_out += packets;
        t.bytes_out += u64::from(p.body.size());
        t.departures = Some((t.departures.map_or(due, |d| d.0), due));
        t.marked += packets * u64::from(emit::newly_marked(p));
        t.corrupted += u64::from(p.corrupt);
        let last = p.body.number() + packets - 1;
        if self.newest.is_some_and(|newest| last < newest) {
            t.reordered += packets;
        } else {
            self.newest = Some(last);
        }
        self.delayed(due.since(p.body.arrived).0, packets);
    }

    /// Queues that are no more had counted this.
    pub fn forget<'a>(&mut self, queues: impl Iterator<Item = &'a StageStats>) {
        self.totals.add(queues);
    }

    #[inline]
    fn delayed(&mut self, delay: u64, packets: u64) {
        let d = &mut self.totals.delay;
        d.min = if d.count == 0 { delay } else { d.min.min(delay) };
        d.max = d.max.max(delay);
        d.count += packets;
        d.last = delay;
        self.sum += delay * packets;
        self.squares += (delay as f64).powi(2) * packets as f64;
        self.delays.add_many(u32::try_from(delay / 1_000).unwrap_or(u32::MAX), packets as u32);
    }

    /// The account, with the packets and bytes inside and what the queues of these stages have counted.
    pub fn report<'a>(&self, packets: u64, bytes: u64, queues: impl Iterator<Item = &'a StageStats>) -> Totals {
        let mut t = self.totals.clone();
        (t.packets_held, t.bytes_held) = (packets, bytes);
        t.add(queues);
        if t.delay.count > 0 {
            let (n, d) = (t.delay.count as f64, &mut t.delay);
            d.mean = self.sum as f64 / n;
            d.sd = (self.squares / n - d.mean * d.mean).max(0.0).sqrt();
            let quantile = |q: f64| ((self.delays.quantile(q) * 1e3) as u64).clamp(d.min, d.max);
            (d.p50, d.p95, d.p99) = (quantile(0.5), quantile(0.95), quantile(0.99));
        }
        t
    }
}
