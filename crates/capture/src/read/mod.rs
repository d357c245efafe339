//! Bytes of a capture file → TCP packets, pushed in chunks of any size.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, <https://www.tcpdump.org/linktypes.html>; RFC 791, 8200, 9293.
//! How it differs from libpcap: nothing is opened here, who has the bytes feeds them; a file that is damaged or ends early gives what came
//! before; the time of an interface never runs backwards ([`clock`]).
//! What it does not do: put IP fragments together (the first one has the TCP header), look into tunnels, decrypt.
//!
//! [`Reader`] is the door. [`container`] cuts the file into [`record`]s ([`legacy`]: pcap, [`blocks`]: pcapng), [`link`], [`ip`] and [`tcp`]
//! take a record's layers off, [`report`] counts. Memory: one record, at most [`LONGEST`], and [`blocks::MOST_INTERFACES`] interfaces.

mod blocks;
mod clock;
mod container;
mod ip;
mod legacy;
mod link;
mod record;
mod report;
mod skipped;
mod tcp;
mod unreadable;

pub use report::{ClockSteps, InterfaceReport, ReadReport};
pub use unreadable::Unreadable;

use crate::packet::Packet;
use container::Container;
use record::Next;
use report::Tally;

/// Bytes of the longest record that is read; what is longer is damage. libpcap's own limit of a packet is 256 KiB.
pub const LONGEST: usize = 1 << 24;

/// Reads a capture.
#[derive(Debug, Default)]
pub struct Reader {
    container: Container,
    /// The begin of a record whose end has not come yet.
    part: Vec<u8>,
    /// Bytes of an unknown block that are still to be passed over.
    pass: u64,
    /// Bytes of records that were read.
    bytes: u64,
    /// Why nothing more is read.
    end: Option<String>,
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
    pub fn feed(&mut self, mut chunk: &[u8], sink: &mut impl FnMut(&Packet)) -> Result<(), Unreadable> {
        while !chunk.is_empty() && self.end.is_none() {
            if self.pass > 0 {
                let n = self.pass.min(chunk.len() as u64);
                self.pass -= n;
                self.bytes += n;
                chunk = &chunk[n as usize..];
            } else if self.part.is_empty() {
                let taken = self.step(chunk, sink)?;
                if taken == 0 && self.end.is_none() {
                    self.part.extend_from_slice(chunk);
                    return Ok(());
                }
                chunk = &chunk[taken..];
            } else {
                chunk = self.complete(chunk, sink)?;
            }
        }
        Ok(())
    }

    /// Whether the rest of the file is of no use.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// What was read, once there are no more bytes.
    pub fn finish(mut self) -> Result<ReadReport, Unreadable> {
        if let Container::Start = self.container {
            return Err(container::refusal(&self.part));
        }
        if self.end.is_none() && (!self.part.is_empty() || self.pass > 0) {
            self.end = Some(format!(
                "the file ends in the middle of a record, after frame {}: it was cut or is still being written",
                self.tally.frames()
            ));
        }
        self.container.expect_readable()?;
        Ok(self.tally.finish(self.container.format(), self.container.interfaces(), self.bytes, self.end))
    }

    /// Adds what is missing to the part of a record, and reads it once it is whole; returns the bytes after it.
    fn complete<'a>(&mut self, chunk: &'a [u8], sink: &mut impl FnMut(&Packet)) -> Result<&'a [u8], Unreadable> {
        let mut part = std::mem::take(&mut self.part);
        let missing = match self.container.next(&part)? {
            Next::Needs(total) => total.saturating_sub(part.len()).max(1),
            _ => 0,
        };
        let (more, rest) = chunk.split_at(missing.min(chunk.len()));
        part.extend_from_slice(more);
        let taken = self.step(&part, sink)?;
        if taken == 0 {
            self.part = part;
        } else {
            // A passed-over block may be longer than its part.
            part.clear();
            part.shrink_to(1 << 20);
            debug_assert!(taken > 0);
        }
        Ok(rest)
    }

    /// Reads all whole records at the begin of `bytes`; returns how many bytes they have.
    fn step(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Packet)) -> Result<usize, Unreadable> {
        let mut at = 0;
        loop {
            match self.container.next(&bytes[at..])? {
                Next::Needs(_) => break,
                Next::Pass(length) => {
                    let here = length.min((bytes.len() - at) as u64);
                    self.pass = length - here;
                    at += here as usize;
                }
                Next::Damaged(problem) => {
                    self.end = Some(format!("after frame {} (byte {}) {problem}", self.tally.frames(), self.bytes + at as u64));
                    at = bytes.len();
                }
                Next::Whole(length) => {
                    match self.container.read(&bytes[at..at + length]) {
                        Ok(Some(record)) => self.tally.record(&record, sink),
                        Ok(None) => {}
                        Err(problem) => {
                            self.end = Some(format!("after frame {} (byte {}) {problem}", self.tally.frames(), self.bytes + at as u64));
                        }
                    }
                    at += length;
                }
            }
            if self.end.is_some() || at >= bytes.len() {
                break;
            }
        }
        self.bytes += at as u64;
        Ok(at)
    }
}
