//! What the testbed tells the kernel is what tc(8) tells it for the same words.
//!
//! `data/tc.jsonl` holds messages that tc of iproute2 6.1 sent: the command, the message's type, flags, handle and parent,
//! and the attributes as hexadecimal (a device's number and the sequence number are left out). They were recorded below
//! sendmsg(2), on a kernel whose /proc/net/psched says `000003e8 00000040 000f4240 3b9aca00`.

use serde::Deserialize;
use tcpscape_path::{parse_tc, QdiscSpec};
use tcpscape_testbed::netlink::{attribute, attributes, u32_at, u64_at, Batch};
use tcpscape_testbed::qdisc::{encode, Extra, Place, ROOT};

#[derive(Deserialize)]
struct Recorded {
    tc: String,
    r#type: u16,
    flags: u16,
    handle: u32,
    parent: u32,
    attributes: String,
}

const KINDS: [&str; 15] =
    ["netem", "tbf", "htb", "pfifo", "bfifo", "pfifo_head_drop", "red", "choke", "codel", "fq_codel", "pie", "fq_pie", "sfq", "cake", "fq"];
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const RTM_NEWTCLASS: u16 = 40;

const ACK: u16 = 4;
/// Bytes of `struct nlmsghdr` and `struct tcmsg`.
const HEADERS: usize = 16 + 20;

impl Recorded {
    fn bytes(&self) -> Vec<u8> {
        (0..self.attributes.len()).step_by(2).map(|i| u8::from_str_radix(&self.attributes[i..i + 2], 16).unwrap()).collect()
    }
    /// The queue that the command describes: what follows its handle.
    fn spec(&self) -> QdiscSpec {
        let words: Vec<&str> = self.tc.split(' ').collect();
        let from = words.iter().position(|w| KINDS.contains(w)).unwrap();
        match &words[from..] {
            // tc's `htb default 1` has its class in a command of its own
            ["htb", "default", _] => parse_tc("htb rate 60mbit").unwrap(),
            words => parse_tc(&words.join(" ")).unwrap(),
        }
    }
    fn place(&self) -> Place {
        let class = self.r#type == RTM_NEWTCLASS;
        let (parent, handle) = if class { (ROOT, self.parent) } else { (self.parent, self.handle) };
        Place { device: 7, parent, handle, new: !self.tc.contains(" change ") }
    }
}

/// 16 bits at `at`.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn recorded() -> Vec<Recorded> {
    include_str!("data/tc.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The message for the same words: htb has two of them.
fn ours(r: &Recorded) -> Vec<u8> {
    let mut batch = Batch::new();
    encode(&mut batch, &r.spec(), r.place(), Extra::default());
    let found = (0..batch.len()).map(|i| batch.bytes_of(i)).find(|m| u16_at(m, 4) == r.r#type);
    found.unwrap_or_else(|| panic!("{}: no message of type {}", r.tc, r.r#type)).to_vec()
}

/// Attributes of the options in order of type; netem's fixed structure comes first, as type 0.
fn options(kind: &[u8], bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let fixed = match kind {
        b"netem\0" => 24,
        b"pfifo\0" | b"bfifo\0" | b"pfifo_head_drop\0" => 4,
        b"sfq\0" => 72,
        _ => 0,
    };
    let mut list: Vec<_> = attributes(&bytes[fixed..]).map(|(k, v)| (k, v.to_vec())).collect();
    list.sort();
    list.insert(0, (0, bytes[..fixed].to_vec()));
    list
}

#[test]
fn the_same_attributes_as_tc() {
    for r in recorded() {
        let (theirs, mine) = (r.bytes(), ours(&r));
        assert_eq!(u16_at(&mine, 6), r.flags & !ACK, "{}: flags", r.tc);
        let header = (u32_at(&mine, 20), u32_at(&mine, 24), u32_at(&mine, 28));
        assert_eq!(header, (7, r.handle, r.parent), "{}: device, handle, parent", r.tc);
        let mine = &mine[HEADERS..];
        let kind = attribute(&theirs, TCA_KIND).unwrap();
        assert_eq!(attribute(mine, TCA_KIND), Some(kind), "{}", r.tc);
        let get = |bytes| options(kind, attribute(bytes, TCA_OPTIONS).unwrap());
        let (mut theirs, mut mine) = (get(&theirs), get(mine));
        if r.tc.ends_with("delay 8100us 33us") {
            // Not whole ticks: tc's 126562 are 8099.968 µs. The nanoseconds follow.
            let extra: Vec<_> = mine.iter().filter(|a| a.0 == 10 || a.0 == 11).map(|a| u64_at(&a.1, 0)).collect();
            mine.retain(|a| a.0 != 10 && a.0 != 11);
            assert_eq!(extra, [8_100_000, 33_000]);
        }
        if r.tc.ends_with("adaptive") {
            // tc's flags (attribute 4) are in the parameters here, behind limit, min, max, Wlog, Plog and Scell_log.
            theirs.retain(|a| a.0 != 4);
            theirs.iter_mut().filter(|a| a.0 == 1).for_each(|a| a.1[15] = 5);
        }
        for (a, b) in theirs.iter().zip(&mine) {
            assert!(a == b, "{}: attribute {}: {:.60?} is not {:.60?}", r.tc, a.0, b.1, a.1);
        }
        assert_eq!(theirs.len(), mine.len(), "{}: number of attributes", r.tc);
    }
}

#[test]
fn every_kind_and_word_is_among_the_recorded() {
    let all: Vec<String> = recorded().into_iter().map(|r| r.tc).collect();
    for words in [
        "netem",
        "limit",
        "delay",
        "normal",
        "pareto",
        "paretonormal",
        "loss 1% 30%",
        "gemodel",
        "state",
        "ecn",
        "reorder",
        "gap",
        "duplicate",
        "corrupt",
        "rate 10mbit 20 48 5",
        "rate 40gbit",
        "slot 5ms",
        "slot distribution",
        "tbf",
        "peakrate",
        "htb rate",
        "class add",
        "ceil",
        "cburst",
        "pfifo",
        "bfifo",
        "pfifo_head_drop",
        "fq limit",
        "maxrate",
        "nopacing",
        "ce_threshold",
        "horizon_cap",
        "sfq",
        "headdrop",
        "choke",
        "cake",
        "besteffort",
        "diffserv4",
        "dual-srchost",
        "ack-filter-aggressive",
        "overhead",
        "memlimit",
        "no-split-gso",
        "parent 1:1",
        "red limit",
        "harddrop",
        "nodrop",
        "adaptive",
        "codel limit",
        "ce_threshold",
        "fq_codel limit",
        "drop_batch",
        "pie limit",
        "dq_rate_estimator",
        "fq_pie limit",
        "ecn_prob",
        "change",
    ] {
        assert!(all.iter().any(|c| c.contains(words)), "{words}");
    }
}
