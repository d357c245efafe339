//! cake, Common Applications Kept Enhanced: a shaper, fair queueing and queue management in one.
//!
//! What it is: a shaper in time (no bucket, so no burst), eight-way fair queueing with sparse flows first (DRR++), a Cobalt for each flow, an
//! optional filter of ACKs, and exact accounting of framing overhead.
//! Source: Høiland-Jørgensen, Täht, Morton 2018 ("Piece of CAKE"); tc-cake(8).
//! How it differs: every flow has a queue of its own (Linux: one of 1024 by hash, eight ways, so that collisions need hundreds of
//! flows). All packets carry DSCP 0, so one tin has them all: `diffserv3`, `diffserv4` and `precedence` are `besteffort`, and `diffserv8`
//! computes its target and quantum from 49/64 of the rate. Hosts come in pairs (`Packet::hosts`): the host modes are one queue for a
//! pair, the dual modes and `triple-isolate` divide the quantum by the number of bulk flows of the pair. A packet's memory is its payload
//! and 1280 B. A drop from a flow of the same host is not told to its TCP (Linux: NET_XMIT_CN).
//! What it does not model: `autorate-ingress`, `nat`, `fwmark` (refused), filters; `wash` has nothing to do.

mod ack;
mod cobalt;
mod machine;
#[cfg(test)]
mod tests;

use crate::discipline::{AnyQdisc, Body, Description, Discipline, Marking, Queued};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
pub use machine::Cake;
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Rate};

/// A cake's parameters; what is left out has the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CakeSpec {
    /// Rate, bit/s; no shaping when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Rate>,
    /// Round-trip time that the queue management expects, 100 ms; its target is a twentieth. Whole µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Duration>,
    /// Priorities, diffserv3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tins: Option<Tins>,
    /// What is isolated from what, triple-isolate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Isolation>,
    /// Counts what it drops against the rate, as at the far end of a link.
    #[serde(default)]
    pub ingress: bool,
    /// Leaves offloaded packets whole.
    #[serde(default)]
    pub no_split_gso: bool,
    /// Filter of ACKs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_filter: Option<AckFilter>,
    /// Memory for packets, B; 4 · bandwidth · rtt when left out, at least 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memlimit: Option<u32>,
    /// Bytes of framing on top of the IP packet; the Ethernet frame itself when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<i32>,
    /// Least size that is counted, B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpu: Option<u32>,
    /// Cells or codewords of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// Clears DSCP, of which there is none here.
    #[serde(default)]
    pub wash: bool,
}

/// CAKE's priorities ("tins").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tins {
    /// Three.
    Diffserv3,
    /// Four.
    Diffserv4,
    /// Eight.
    Diffserv8,
    /// One.
    Besteffort,
    /// Eight by legacy precedence.
    Precedence,
}

/// What CAKE isolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing.
    Flowblind,
    /// Sources.
    Srchost,
    /// Destinations.
    Dsthost,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Flows, and sources before them.
    DualSrchost,
    /// Flows, and destinations before them.
    DualDsthost,
    /// Flows, and both before them.
    TripleIsolate,
}

/// CAKE's filter of ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckFilter {
    /// Keeps at least two of those that say the same.
    On,
    /// Keeps one.
    Aggressive,
}

/// How a link packs bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// Cells of 53 B for 48.
    Atm,
    /// 65 B for 64.
    Ptm,
}

/// tc's words and what they mean.
const TINS: [(&str, Tins); 5] = [
    ("besteffort", Tins::Besteffort),
    ("precedence", Tins::Precedence),
    ("diffserv8", Tins::Diffserv8),
    ("diffserv4", Tins::Diffserv4),
    ("diffserv3", Tins::Diffserv3),
];
const ISOLATION: [(&str, Isolation); 8] = [
    ("flowblind", Isolation::Flowblind),
    ("srchost", Isolation::Srchost),
    ("dsthost", Isolation::Dsthost),
    ("hosts", Isolation::Hosts),
    ("flows", Isolation::Flows),
    ("dual-srchost", Isolation::DualSrchost),
    ("dual-dsthost", Isolation::DualDsthost),
    ("triple-isolate", Isolation::TripleIsolate),
];
/// Round-trip times by name, µs (tc-cake(8)).
const RTTS: [(&str, u64); 8] = [
    ("datacentre", 100),
    ("lan", 1_000),
    ("metro", 10_000),
    ("regional", 30_000),
    ("internet", 100_000),
    ("oceanic", 300_000),
    ("satellite", 1_000_000),
    ("interplanetary", 1_000_000_000),
];
/// Links by name: framing (`None` leaves what was said), overhead added, B, and the least size, B (tc-cake(8)).
type Link = (&'static str, Option<Option<Framing>>, i32, Option<u32>);
const LINKS: [Link; 13] = [
    ("conservative", Some(Some(Framing::Atm)), 48, None),
    ("ipoa-vcmux", Some(Some(Framing::Atm)), 8, None),
    ("ipoa-llcsnap", Some(Some(Framing::Atm)), 16, None),
    ("bridged-vcmux", Some(Some(Framing::Atm)), 24, None),
    ("bridged-llcsnap", Some(Some(Framing::Atm)), 32, None),
    ("pppoa-vcmux", Some(Some(Framing::Atm)), 10, None),
    ("pppoa-llc", Some(Some(Framing::Atm)), 14, None),
    ("pppoe-vcmux", Some(Some(Framing::Atm)), 32, None),
    ("pppoe-llcsnap", Some(Some(Framing::Atm)), 40, None),
    ("pppoe-ptm", Some(Some(Framing::Ptm)), 30, None),
    ("bridged-ptm", Some(Some(Framing::Ptm)), 22, None),
    ("ethernet", None, 38, Some(84)),
    ("docsis", Some(None), 18, Some(64)),
];
/// Ethernet's VLAN tag, B.
const VLAN: i32 = 4;
/// tc's bounds of an overhead, B.
const OVERHEADS: std::ops::RangeInclusive<i32> = -64..=256;
/// tc's bound of the least size, B.
const MPU_MAX: u32 = 256;

impl Discipline for CakeSpec {
    const NAME: &'static str = "cake";
    const EXAMPLE: &'static str = "cake bandwidth 20mbit besteffort rtt 50ms";
    const CHANGES: &'static [&'static str] = &["rate"];

    fn parse(w: &mut Words<'_>) -> Result<CakeSpec, TcError> {
        let mut s = CakeSpec::default();
        while let Some(word) = w.word() {
            match word {
                "bandwidth" => s.bandwidth = Some(w.rate("bandwidth")?),
                "rtt" => s.rtt = Some(Duration((w.long_time("rtt")?.0 / 1_000).max(1) * 1_000)),
                "overhead" => {
                    let v = w.value("overhead")?;
                    s.overhead = Some(w.as_signed(v, "overhead")?);
                }
                "mpu" => s.mpu = Some(w.count("mpu")?),
                "memlimit" => s.memlimit = Some(u32::try_from(w.size("memlimit")?).unwrap_or(u32::MAX)).filter(|&n| n > 0),
                "autorate-ingress" | "autorate_ingress" | "nat" | "fwmark" => {
                    return Err(w.wrong(word, "it is not modelled: leave it away"));
                }
                _ if s.flag(word) => {}
                _ => {
                    let known =
                        "bandwidth, unlimited, rtt, besteffort, diffserv3, flows, dual-srchost, triple-isolate, ingress, ack-filter, overhead";
                    return Err(w.wrong(word, &format!("it is not understood: expected {known} or another of tc-cake(8)'s words")));
                }
            }
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = "cake".to_owned();
        let mut add = |word: String| t += &format!(" {word}");
        if let Some(r) = self.bandwidth {
            add(format!("bandwidth {}", print::rate(r)));
        }
        if let Some(d) = self.rtt {
            add(format!("rtt {}", print::time(d)));
        }
        TINS.iter().filter(|w| Some(w.1) == self.tins).for_each(|w| add(w.0.into()));
        ISOLATION.iter().filter(|w| Some(w.1) == self.flows).for_each(|w| add(w.0.into()));
        for (on, word) in [
            (self.ingress, "ingress"),
            (self.no_split_gso, "no-split-gso"),
            (self.ack_filter == Some(AckFilter::On), "ack-filter"),
            (self.ack_filter == Some(AckFilter::Aggressive), "ack-filter-aggressive"),
            (self.framing == Some(Framing::Atm), "atm"),
            (self.framing == Some(Framing::Ptm), "ptm"),
            (self.wash, "wash"),
        ] {
            if on {
                add(word.into());
            }
        }
        if let Some(n) = self.overhead {
            add(format!("overhead {n}"));
        }
        for (word, value) in [("mpu", self.mpu), ("memlimit", self.memlimit)] {
            if let Some(n) = value {
                add(format!("{word} {n}"));
            }
        }
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        let bad = |field: &str, fix: &str| Err(SpecError::new(&format!("cake {field}"), fix));
        if self.bandwidth.is_some_and(|r| r.bytes_per_sec() == 0) {
            return bad("bandwidth", "must be at least 8 bit/s; leave it away for no shaping");
        }
        if self.rtt.is_some_and(|d| d.0 % 1_000 != 0 || d.0 == 0 || d.0 / 1_000 > u64::from(u32::MAX)) {
            return bad("rtt", "must be whole microseconds, from 1us to 4294s");
        }
        if self.overhead.is_some_and(|n| !OVERHEADS.contains(&n)) {
            return bad("overhead", "must be from -64 to 256 bytes");
        }
        if self.mpu.is_some_and(|n| n > MPU_MAX) {
            return bad("mpu", "must be at most 256 bytes");
        }
        Ok(())
    }
    fn describe(&self) -> Description {
        Description {
            rate_bps: self.bandwidth.map(|r| r.0),
            burst_bytes: self.overhead.is_none().then_some(0),
            owes_a_packet: true,
            stored_bytes: Some(4_000_000),
            limit_memory_bytes: Some(machine::memory_max(self)),
            ecn: Marking::Always,
            ..Description::of(Self::NAME)
        }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Cake::new(self, seed, name)))
    }
}

impl CakeSpec {
    /// Microseconds of the expected round trip and of the target.
    pub fn times(&self) -> (u64, u64) {
        let rtt = self.rtt.map_or(100_000, |d| d.0 / 1_000);
        (rtt, (rtt / 20).max(1))
    }
    /// A word that stands alone; false if it is none.
    fn flag(&mut self, word: &str) -> bool {
        if let Some((_, t)) = TINS.iter().find(|t| t.0 == word) {
            self.tins = Some(*t);
        } else if let Some((_, f)) = ISOLATION.iter().find(|f| f.0 == word) {
            self.flows = Some(*f);
        } else if let Some((_, us)) = RTTS.iter().find(|r| r.0 == word) {
            self.rtt = Some(Duration(us * 1_000));
        } else if let Some((_, framing, bytes, least)) = LINKS.iter().find(|l| l.0 == word) {
            self.framing = framing.unwrap_or(self.framing);
            self.overhead = Some(self.overhead.unwrap_or(0) + bytes);
            self.mpu = least.or(self.mpu);
        } else {
            return self.switch(word);
        }
        true
    }
    fn switch(&mut self, word: &str) -> bool {
        match word {
            "unlimited" => self.bandwidth = None,
            "raw" => (self.overhead, self.framing) = (None, None),
            "ether-vlan" => self.overhead = Some(self.overhead.unwrap_or(0) + VLAN),
            "atm" => self.framing = Some(Framing::Atm),
            "ptm" => self.framing = Some(Framing::Ptm),
            "noatm" => self.framing = None,
            "ingress" | "egress" => self.ingress = word == "ingress",
            "split-gso" | "no-split-gso" => self.no_split_gso = word == "no-split-gso",
            "wash" | "nowash" => self.wash = word == "wash",
            "ack-filter" => self.ack_filter = Some(AckFilter::On),
            "ack-filter-aggressive" => self.ack_filter = Some(AckFilter::Aggressive),
            "no-ack-filter" => self.ack_filter = None,
            "nonat" | "via-ethernet" => {}
            _ => return false,
        }
        true
    }
}
