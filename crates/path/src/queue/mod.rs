//! Queue disciplines: one file each, one trait, one registry.
//!
//! To add one: a file with its specification (`words`, `validate`, `parse`) and its machine (`impl Qdisc`), a variant of
//! [`QdiscSpec`], a line in [`REGISTRY`] and one in [`build`]. The law tests loop over the registry.

pub mod body;
pub mod cake;
pub mod clock;
pub mod codel;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod htb;
pub mod pace;
pub mod pie;
pub mod red;
pub mod sfq;
pub mod tbf;

use crate::grammar::{TcError, Words};
use crate::schedule::Patch;
use crate::spec::QdiscSpec;
use crate::stats::StageStats;
pub use body::{segments, Body};
use tcpscape_base::{Packet, Time};

/// A queue discipline at run time. It asks nobody for the time.
pub trait Qdisc<B>: Send {
    /// Takes a packet, or drops it (and tells `freed`). False when there is no room for it, which a TCP on the same host
    /// learns (`NET_XMIT_DROP`); what an impairment takes away counts as taken.
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool;
    /// Gives the next packet that may leave at `now`.
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>>;
    /// The size of the packet that `dequeue(now)` would give. As in Linux, some queues take it out for that, and it stays the next
    /// one to leave whatever comes after: then whatever they decide on departure is decided here.
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32>;
    /// When `dequeue` is worth trying; [`Time::ZERO`] for at once, [`Time::MAX`] for never without another packet. By default at once while
    /// there are packets.
    fn next_event(&self) -> Time {
        if self.packets() == 0 {
            Time::MAX
        } else {
            Time::ZERO
        }
    }
    /// Packets held, children included.
    fn packets(&self) -> u64;
    /// Bytes held, children included.
    fn bytes(&self) -> u64;
    /// Whether a packet that enters no longer counts against its sender's queue limit (TSQ).
    fn orphans(&self) -> bool {
        false
    }
    /// `tc qdisc change`: what is queued keeps its due time. `depth` 0 is this queue, 1 its child. By default nothing
    /// of it can change.
    fn change(&mut self, _now: Time, _depth: usize, _patch: &Patch) {}
    /// The values that `change` would replace.
    fn current(&self, _depth: usize) -> Patch {
        Patch::default()
    }
    /// Appends this queue's account, then its children's.
    fn report(&self, out: &mut Vec<StageStats>);
}

/// A queue discipline of any kind.
pub type AnyQdisc<B> = Box<dyn Qdisc<B>>;

/// A packet with the time when it came.
pub type Aged<B> = (Time, Packet<B>);

/// Packets and bytes of a queue with the packet that its parent has looked at: that one has left the discipline but not the queue.
/// Linux: qdisc_peek_dequeued()
pub(crate) fn with_peeked<B>(packets: u64, bytes: u64, peeked: &Option<Aged<B>>) -> (u64, u64) {
    peeked.as_ref().map_or((packets, bytes), |(_, p)| (packets + 1, bytes + u64::from(p.size)))
}

/// A flow's number scrambled under a key, SplitMix64's finaliser without its last step: use the upper half.
pub(crate) fn hash(flow: u32, key: u64) -> u64 {
    let mut z = (u64::from(flow) ^ key).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// What the sender's first queue has let go of (sent or dropped), for TSQ; silent elsewhere.
#[derive(Debug, Default)]
pub struct Freed {
    pub(crate) on: bool,
    pub(crate) list: Vec<(u32, u32, u64)>,
}

impl Freed {
    /// A packet left memory.
    #[inline]
    pub fn note<B>(&mut self, p: &Packet<B>) {
        if self.on {
            self.list.push((p.flow, p.size, p.id));
        }
    }
}

/// A line of the registry.
pub struct Entry {
    /// The word in tc's grammar.
    pub name: &'static str,
    /// A short example, also used by the tests.
    pub example: &'static str,
    pub(crate) parse: fn(&mut Words<'_>) -> Result<QdiscSpec, TcError>,
}

/// Every queue discipline by name.
pub const REGISTRY: &[Entry] = &[
    Entry { name: "netem", example: "netem delay 25ms 8ms distribution normal loss 1%", parse: crate::netem::parse },
    Entry { name: "tbf", example: "tbf rate 10mbit burst 6056 limit 62500", parse: tbf::parse },
    Entry { name: "htb", example: "htb rate 10mbit", parse: htb::parse },
    Entry { name: "pfifo", example: "pfifo limit 100", parse: fifo::parse_pfifo },
    Entry { name: "bfifo", example: "bfifo limit 15000", parse: fifo::parse_bfifo },
    Entry { name: "red", example: "red limit 100000 min 6000 max 18000 avpkt 1000 probability 0.1 ecn", parse: red::parse },
    Entry { name: "codel", example: "codel limit 100 ecn", parse: codel::parse },
    Entry { name: "fq_codel", example: "fq_codel limit 100", parse: fq_codel::parse },
    Entry { name: "pie", example: "pie limit 100 ecn", parse: pie::parse },
    Entry { name: "fq_pie", example: "fq_pie limit 100", parse: fq_pie::parse },
    Entry { name: "cake", example: "cake bandwidth 20mbit besteffort rtt 50ms", parse: cake::parse },
    Entry { name: "dualpi2", example: "dualpi2 limit 100", parse: dualpi2::parse },
    Entry { name: "fq", example: "fq maxrate 10mbit", parse: fq::parse },
    Entry { name: "pfifo_head_drop", example: "pfifo_head_drop limit 100", parse: fifo::parse_pfifo_head_drop },
    Entry { name: "sfq", example: "sfq perturb 10", parse: sfq::parse },
    Entry { name: "jitter", example: "jitter delay 25ms 8ms distribution normal order clamp", parse: crate::impair::jitter::parse },
];

/// Builds a queue and its children. `name` begins the names of their random streams: `forward/0`.
pub fn build<B: Body>(spec: &QdiscSpec, seed: u64, name: &str) -> AnyQdisc<B> {
    let name = format!("{name}/{}", spec.name());
    match spec {
        QdiscSpec::Netem(s) => Box::new(crate::netem::Netem::new(s, seed, &name)),
        QdiscSpec::Tbf(s) => Box::new(tbf::Tbf::new(s, seed, &name)),
        QdiscSpec::Htb(s) => Box::new(htb::Htb::new(s, seed, &name)),
        QdiscSpec::Pfifo(s) => Box::new(fifo::Fifo::packets(s.limit)),
        QdiscSpec::Bfifo(s) => Box::new(fifo::Fifo::bytes(s.limit)),
        QdiscSpec::Red(s) => Box::new(red::Red::new(s, seed, &name)),
        QdiscSpec::Codel(s) => Box::new(codel::Codel::new(s)),
        QdiscSpec::FqCodel(s) => Box::new(fq_codel::FqCodel::new(s, seed, &name)),
        QdiscSpec::Pie(s) => Box::new(pie::Pie::new(s, seed, &name)),
        QdiscSpec::FqPie(s) => Box::new(fq_pie::FqPie::new(s, seed, &name)),
        QdiscSpec::Cake(s) => Box::new(cake::Cake::new(s, seed, &name)),
        QdiscSpec::Fq(s) => Box::new(fq::Fq::new(s, seed, &name)),
        QdiscSpec::Dualpi2(s) => Box::new(dualpi2::DualPi2::new(s, seed, &name)),
        QdiscSpec::PfifoHeadDrop(s) => Box::new(fifo::Fifo::head_drop(s.limit)),
        QdiscSpec::Sfq(s) => Box::new(sfq::Sfq::new(s, seed, &name)),
        QdiscSpec::Jitter(s) => Box::new(crate::impair::jitter::Jitter::new(s, seed, &name)),
    }
}

/// The account of a queue whose packets lie in its child: they come and go together, so the delay is the child's.
pub(crate) fn report_parent<B>(meter: &crate::stats::Meter, name: &str, child: &dyn Qdisc<B>, out: &mut Vec<StageStats>) {
    let mine = out.len();
    out.push(meter.report(name, child.packets(), child.bytes()));
    child.report(out);
    out[mine].delay = out[mine + 1].delay;
    out[mine].reordered = out[mine + 1].reordered;
    out[mine + 1..].iter_mut().for_each(|s| s.depth += 1);
}
