//! What every queue counts about the packets that meet it.

use crate::values::Host;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Histogram, Packet, Time};

/// Packets that a queue dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// Random loss asked for.
    pub loss: u64,
    /// The queue was full.
    pub limit: u64,
    /// Larger than the bucket can ever let through.
    pub oversize: u64,
    /// The queue's own decision before it was full: active queue management.
    #[serde(default)]
    pub aqm: u64,
}

impl Drops {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.loss + self.limit + self.oversize + self.aqm
    }
}

/// The delay that packets really met in a queue, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayStats {
    /// Packets measured.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// Least.
    pub min: u64,
    /// Most.
    pub max: u64,
    /// Median; quantiles are of whole µs, within 0.8 %.
    #[serde(default)]
    pub p50: u64,
    /// 95th percentile.
    #[serde(default)]
    pub p95: u64,
    /// 99th percentile.
    #[serde(default)]
    pub p99: u64,
    /// Of the packet that left last.
    #[serde(default)]
    pub last: u64,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Random loss asked for.
    Loss,
    /// The queue is full.
    Limit,
    /// The packet is larger than the bucket.
    Oversize,
    /// The discipline's own decision before the queue is full.
    Aqm,
}

impl Cause {
    /// A word for it, as the fields of [`Drops`] have it.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Loss => "loss",
            Cause::Limit => "limit",
            Cause::Oversize => "oversize",
            Cause::Aqm => "aqm",
        }
    }
}

/// One queue's account. What came, left and is held includes its children; what was dropped, copied and cut is its own, and theirs is in their
/// accounts. So `packets_in + duplicated + segmented = packets_out + drops.total() + backlog_packets` for a queue without a child, and for
/// one with a child where `duplicated`, `segmented` and `drops` are summed over both ([`super::check_accounts`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageStats {
    /// Number of the stage.
    pub stage: usize,
    /// 0 for the stage's own queue, 1 for its child, and so on.
    pub depth: usize,
    /// Whose egress.
    pub at: Host,
    /// Name of the queue.
    pub name: String,
    /// Packets and bytes that came.
    pub packets_in: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Packets that left.
    pub packets_out: u64,
    /// Bytes that left.
    pub bytes_out: u64,
    /// Packets dropped.
    pub drops: Drops,
    /// Bytes dropped; not in the results of a trial.
    #[serde(skip)]
    pub bytes_dropped: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Bytes of the copies; not in the results of a trial.
    #[serde(skip)]
    pub bytes_duplicated: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// Packets marked CE; one that CoDel's law and its `ce_threshold` both mark counts twice, as in the kernel's counters.
    pub marked: u64,
    /// Packets that left after one that had come later.
    pub reordered: u64,
    /// Packets gained by cutting offloaded packets into segments; their bytes are those of the whole.
    pub segmented: u64,
    /// Delay from arrival to departure; of a netem with a child, until a packet enters that.
    pub delay: DelayStats,
    /// Packets held now.
    pub backlog_packets: u64,
    /// Bytes held now.
    pub backlog_bytes: u64,
    /// Most packets held at a time.
    pub peak_packets: u64,
    /// Most bytes held at a time.
    pub peak_bytes: u64,
}

/// The running account of one queue. `ticket()` numbers arrivals, for the reordering count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    pub s: Counts,
    tickets: u64,
    newest_out: u64,
    sum: u64,
    squares: u128,
    min: u64,
    max: u64,
    last: u64,
    spread: Histogram,
    /// Packets in a row that have had the delay `last`, not yet in `spread`: with a constant delay all of them.
    alike: u32,
}

/// The plain counters of a [`Meter`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub drops: Drops,
    pub bytes_dropped: u64,
    pub duplicated: u64,
    pub bytes_duplicated: u64,
    pub corrupted: u64,
    pub marked: u64,
    pub reordered: u64,
    pub segmented: u64,
    pub peak_packets: u64,
    pub peak_bytes: u64,
}

impl Meter {
    /// A packet has come.
    #[inline]
    pub fn arrive<B>(&mut self, p: &Packet<B>) {
        self.s.packets_in += 1;
        self.s.bytes_in += u64::from(p.size);
    }
    /// The number of an accepted packet.
    #[inline]
    pub fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
    /// The backlog has grown to this.
    #[inline]
    pub fn held(&mut self, packets: u64, bytes: u64) {
        self.s.peak_packets = self.s.peak_packets.max(packets);
        self.s.peak_bytes = self.s.peak_bytes.max(bytes);
    }
    /// A packet is dropped.
    #[inline]
    pub fn drops<B>(&mut self, cause: Cause, p: &Packet<B>) {
        let drops = &mut self.s.drops;
        *match cause {
            Cause::Loss => &mut drops.loss,
            Cause::Limit => &mut drops.limit,
            Cause::Oversize => &mut drops.oversize,
            Cause::Aqm => &mut drops.aqm,
        } += 1;
        self.s.bytes_dropped += u64::from(p.size);
    }
    /// A packet has a copy.
    #[inline]
    pub fn copies<B>(&mut self, p: &Packet<B>) {
        self.s.duplicated += 1;
        self.s.bytes_duplicated += u64::from(p.size);
    }
    /// An offloaded packet is cut into so many.
    #[inline]
    pub fn cut(&mut self, segments: u16) {
        self.s.segmented += u64::from(segments) - 1;
    }
    /// A packet leaves without its delay being measured here.
    #[inline]
    pub fn leave<B>(&mut self, p: &Packet<B>) {
        self.s.packets_out += 1;
        self.s.bytes_out += u64::from(p.size);
    }
    /// A packet leaves that arrived then, in the order of the arrivals.
    #[inline]
    pub fn depart<B>(&mut self, now: Time, arrived: Time, p: &Packet<B>) {
        self.leave(p);
        let ticket = self.ticket();
        self.delay(now, arrived, ticket);
    }
    /// Measures the delay and the order of a packet that leaves.
    #[inline]
    pub fn delay(&mut self, now: Time, arrived: Time, ticket: u64) {
        let d = now.since(arrived).0;
        if self.newest_out == 0 {
            self.min = d;
        }
        self.min = self.min.min(d);
        self.max = self.max.max(d);
        if d != self.last {
            let (us, n) = self.run();
            self.spread.add_many(us, n);
            (self.last, self.alike) = (d, 0);
        }
        self.alike += 1;
        self.sum += d;
        self.squares += u128::from(d) * u128::from(d);
        if ticket < self.newest_out {
            self.s.reordered += 1;
        } else {
            self.newest_out = ticket;
        }
    }
    /// The last delay in µs, and how many packets have had it in a row.
    #[inline]
    fn run(&self) -> (u32, u32) {
        (u32::try_from(self.last / 1_000).unwrap_or(u32::MAX), self.alike)
    }
    fn delays(&self) -> DelayStats {
        let n = self.spread.count() + u64::from(self.alike);
        if n == 0 {
            return DelayStats::default();
        }
        let mean = self.sum as f64 / n as f64;
        let var = (self.squares as f64 / n as f64 - mean * mean).max(0.0);
        let (us, alike) = self.run();
        let mut spread = self.spread.clone();
        spread.add_many(us, alike);
        let quantile = |q: f64| ((spread.quantile(q) * 1e3) as u64).clamp(self.min, self.max);
        DelayStats {
            count: n,
            mean,
            sd: var.sqrt(),
            min: self.min,
            max: self.max,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            last: self.last,
        }
    }
    /// The account in full; stage, depth and host are filled in by the pipe.
    pub fn report(&self, name: &str, packets: u64, bytes: u64) -> StageStats {
        let s = &self.s;
        StageStats {
            name: name.to_owned(),
            packets_in: s.packets_in,
            bytes_in: s.bytes_in,
            packets_out: s.packets_out,
            bytes_out: s.bytes_out,
            drops: s.drops,
            bytes_dropped: s.bytes_dropped,
            duplicated: s.duplicated,
            bytes_duplicated: s.bytes_duplicated,
            corrupted: s.corrupted,
            marked: s.marked,
            reordered: s.reordered,
            segmented: s.segmented,
            delay: self.delays(),
            backlog_packets: packets,
            backlog_bytes: bytes,
            peak_packets: s.peak_packets,
            peak_bytes: s.peak_bytes,
            ..Default::default()
        }
    }
}
