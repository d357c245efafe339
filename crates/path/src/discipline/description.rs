//! What a discipline's words mean for the packets, in plain units: for whoever reads a path without running it.
//!
//! A [`Description`] holds what is the same question for every discipline (how much delay, which rate, is order kept, …). What only one
//! discipline knows (a target, a quantum, a bucket) stays in its specification. tests/it/description.rs holds the machines to it.

use crate::values::Dist;
use serde::Serialize;

/// What one queue does to packets. Its child is a description of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// tc's name of the discipline.
    pub kind: &'static str,
    /// Constant part of the delay, ns. Waiting in the queue is no part of it.
    pub delay_ns: u64,
    /// Spread of the delay as the words name it, ns: half-width of the uniform distribution, the σ by which the tables of the others are
    /// multiplied.
    pub jitter_ns: u64,
    /// Distribution of the delay; `None` without jitter.
    pub distribution: Option<Dist>,
    /// Share of the packets that is lost at random: the probability that the words name, the long-run average of a Markov chain.
    /// A correlation makes losses rarer than that (docs/models/queues/netem.md).
    pub loss: f64,
    /// Whether that is one number for each packet by itself: no correlation, no chain.
    #[serde(skip)]
    pub loss_is_independent: bool,
    /// Standard deviation of the delay, ns, before it is cut at 0; `None` where order or correlation changes it.
    #[serde(skip)]
    pub spread_ns: Option<f64>,
    /// Probability of a second copy.
    pub duplicate: f64,
    /// Probability of a flipped bit.
    pub corrupt: f64,
    /// Probability with which a packet that may overtake does.
    pub reorder: f64,
    /// Whether packets leave only when a slot opens, which makes their delay vary without jitter.
    pub slotted: bool,
    /// Rate that all packets share, bit/s, frames counted as the discipline counts them; `None` without one. A flow's own rate
    /// (fq's `maxrate`) and the rate by which an average decays (red's and choke's `bandwidth`) are none. netem's packets that overtake
    /// pass its rate by.
    pub rate_bps: Option<u64>,
    /// Most bytes beyond the rate that its bucket lets leave in any time, however long; `None` where nothing bounds them (and without a rate).
    #[serde(skip)]
    pub burst_bytes: Option<u64>,
    /// Whether it goes into debt: beyond the bucket, one packet more may have left.
    #[serde(skip)]
    pub owes_a_packet: bool,
    /// Bytes that may pass beyond the rate in a trial: a full bucket at the begin, and a full queue that drains after the end. `None` where nobody
    /// knows (and without a rate).
    #[serde(skip)]
    pub stored_bytes: Option<u64>,
    /// Most packets held.
    pub limit_packets: Option<u64>,
    /// Most bytes held, frames with their Ethernet header.
    pub limit_bytes: Option<u64>,
    /// Most memory for packets, bytes: what the kernel keeps of a packet besides its bytes included.
    pub limit_memory_bytes: Option<u64>,
    /// Whether packets of one flow that carry the same ECN field leave in the order in which they came.
    pub in_order: bool,
    /// Whether packets that allow it get an ECN mark where others are dropped.
    pub ecn: Marking,
}

/// Whether a discipline marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Marking {
    /// It cannot, or its words do not turn it on.
    #[default]
    Never,
    /// Its words or their defaults turn it on.
    Enabled,
    /// It does without any word for it.
    Always,
}

impl Marking {
    /// That of a discipline which has a word to turn it on.
    pub(crate) fn when(on: bool) -> Marking {
        if on {
            Marking::Enabled
        } else {
            Marking::Never
        }
    }
}

impl Description {
    /// A queue that keeps order, without a limit, and does nothing else.
    pub fn of(kind: &'static str) -> Description {
        Description {
            kind,
            delay_ns: 0,
            jitter_ns: 0,
            distribution: None,
            loss: 0.0,
            loss_is_independent: false,
            spread_ns: Some(0.0),
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            slotted: false,
            rate_bps: None,
            burst_bytes: None,
            owes_a_packet: false,
            stored_bytes: None,
            limit_packets: None,
            limit_bytes: None,
            limit_memory_bytes: None,
            in_order: true,
            ecn: Marking::Never,
        }
    }
    /// Whether it delays packets on purpose: what it holds is no buffer, and its limit is not there to be reached.
    pub fn is_delay(&self) -> bool {
        matches!(self.kind, "netem" | "jitter")
    }
    /// The one delay that packets get which do not wait, ns; `None` where jitter, overtaking, slots or a rate of its own make it uncertain.
    pub fn fixed_delay_ns(&self) -> Option<u64> {
        let is_uncertain = self.jitter_ns > 0 || self.reorder > 0.0 || self.slotted || self.is_delay() && self.rate_bps.is_some();
        (!is_uncertain).then_some(self.delay_ns)
    }

    /// Smallest IP packets that a plan may have, bytes.
    pub const LEAST_MTU: u32 = 128;
    /// Largest packet of a connection whose packets have `mtu` bytes, bytes: a superpacket of 64 KiB counts with the headers of all its segments.
    pub const fn largest_packet(mtu: u32) -> u64 {
        const IP_TCP: u64 = 20 + 32;
        const HEADERS: u64 = 14 + IP_TCP;
        65_536 + HEADERS * 65_536_u64.div_ceil(mtu as u64 - IP_TCP)
    }

    /// Such a queue of so many packets.
    pub(crate) fn of_packets(kind: &'static str, limit: impl Into<u64>) -> Description {
        Description { limit_packets: Some(limit.into()), ..Description::of(kind) }
    }
}
