//! Bytes of a capture file → TCP packets, pushed in chunks of any size.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, <https://www.tcpdump.org/linktypes.html>; RFC 791, 8200, 9293.
//! How it differs from libpcap: nothing is opened here, who has the bytes feeds them; a file that is damaged or ends early gives what came
//! before; the time of an interface never runs backwards ([`record::Clock`]).
//! What it does not do: put IP fragments together (the first one has the TCP header), look into tunnels, decrypt.
//!
//! [`Reader`] is the door. [`cutter`] cuts the file into [`record`]s ([`legacy`]: pcap, [`blocks`]: pcapng), [`decode`] makes a packet of a record,
//! behind the header of its [`link`], [`report`] counts. Memory: one record, at most [`record::LONGEST`], and [`blocks::MOST_INTERFACES`] interfaces.

mod blocks;
pub(crate) mod cutter;
pub(crate) mod decode;
mod legacy;
mod link;
pub(crate) mod record;
mod report;

pub use report::{ClockSteps, InterfaceReport, ReadReport};

use crate::packet::Packet;
use cutter::Cutter;
use report::Tally;

/// Why a file is not read at all: one line, for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct Unreadable {
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub fix: String,
}

/// Why a record gives no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// Not an IP packet.
    NotIp,
    /// Not TCP.
    NotTcp,
    /// A later fragment of an IP packet, without the TCP header.
    Fragment,
    /// The snap length cut the headers before the TCP window field.
    Cut,
    /// Lengths that contradict each other.
    Damaged,
    /// The file has no time for it.
    NoTime,
    /// Its link type is not read.
    LinkType,
}

impl Skipped {
    /// Every reason, with its name in a report.
    pub const ALL: [(Skipped, &'static str); 7] = [
        (Skipped::NotIp, "not_ip"),
        (Skipped::NotTcp, "not_tcp"),
        (Skipped::Fragment, "fragment"),
        (Skipped::Cut, "cut"),
        (Skipped::Damaged, "damaged"),
        (Skipped::NoTime, "no_time"),
        (Skipped::LinkType, "link_type"),
    ];
}

/// Reads a capture.
#[derive(Debug, Default)]
pub struct Reader {
    records: Cutter,
    tally: Tally,
}

impl Reader {
    /// A reader at the begin of a file.
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Takes the next bytes of the file and hands every TCP packet in them to `sink`.
    ///
    /// After damage in the middle of a file nothing more is read; [`Reader::is_over`] says so, and the report why.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut impl FnMut(&Packet)) -> Result<(), Unreadable> {
        let tally = &mut self.tally;
        self.records.feed(chunk, &mut |record, _| tally.record(record, sink))
    }

    /// Whether the rest of the file is of no use.
    pub fn is_over(&self) -> bool {
        self.records.end.is_some()
    }

    /// What was read, once there are no more bytes.
    pub fn finish(mut self) -> Result<ReadReport, Unreadable> {
        self.records.finish()?;
        Ok(self.tally.finish(self.records))
    }
}
