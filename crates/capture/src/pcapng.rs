//! The file: a section header, its interfaces, one enhanced packet block a packet; little-endian.
//!
//! Source: draft-ietf-opsawg-pcapng §4.1 to §4.3.

use std::io::{self, Write};
use tcpscape_base::Time;

/// What packets begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header (LINKTYPE_ETHERNET).
    Ethernet,
    /// Another one, by its number.
    Other(u16),
}

/// Which way a packet went through its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// In.
    Inbound,
    /// Out.
    Outbound,
    /// Not known.
    Unknown,
}

/// A packet at an interface.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The interface's number, from 0 in the order in which they were added.
    pub interface: u32,
    /// When.
    pub at: Time,
    /// In or out.
    pub direction: PacketDirection,
    /// Its length.
    pub length: u32,
    /// Its first bytes, or all.
    pub bytes: &'a [u8],
    /// A comment; empty for none.
    pub comment: &'a str,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// Resolution of times: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes blocks.
pub struct Writer<W: Write> {
    out: W,
    /// Most bytes kept of a packet, by interface.
    snaplens: Vec<u32>,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file.
    pub fn new(out: W, program: &str, comment: &str) -> io::Result<Writer<W>> {
        let mut w = Writer { out, snaplens: Vec::new(), block: Vec::new() };
        w.u32(BYTE_ORDER);
        w.u16(1); // version 1.0
        w.u16(0);
        w.bytes(&u64::MAX.to_le_bytes()); // section length: not given
        w.comment(comment);
        w.option(SHB_USERAPPL, program.as_bytes());
        w.end(SECTION_HEADER)?;
        Ok(w)
    }

    /// Adds an interface; of each packet at most `snaplen` bytes will be kept.
    pub fn interface(&mut self, link: LinkType, name: &str, description: &str, snaplen: u32) -> io::Result<()> {
        self.snaplens.push(snaplen);
        self.u16(match link {
            LinkType::Ethernet => 1,
            LinkType::Other(number) => number,
        });
        self.u16(0);
        self.u32(snaplen);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_DESCRIPTION, description.as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end(INTERFACE)
    }

    /// Adds a packet at an interface that was added before.
    pub fn packet(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        let kept = seen.bytes.len().min(self.snaplens[seen.interface as usize] as usize);
        self.u32(seen.interface);
        self.u32((seen.at.0 >> 32) as u32);
        self.u32(seen.at.0 as u32);
        self.u32(kept as u32);
        self.u32(seen.length);
        self.bytes(&seen.bytes[..kept]);
        let flags: u32 = match seen.direction {
            PacketDirection::Unknown => 0,
            PacketDirection::Inbound => 1,
            PacketDirection::Outbound => 2,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.comment(seen.comment);
        self.end(ENHANCED_PACKET)
    }

    /// What has been written, for whoever takes it away in pieces.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes what is buffered.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn u16(&mut self, v: u16) {
        self.block.extend_from_slice(&v.to_le_bytes());
    }

    fn u32(&mut self, v: u32) {
        self.block.extend_from_slice(&v.to_le_bytes());
    }

    /// Bytes, padded to a multiple of four.
    fn bytes(&mut self, v: &[u8]) {
        self.block.extend_from_slice(v);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn comment(&mut self, comment: &str) {
        if !comment.is_empty() {
            self.option(OPT_COMMENT, comment.as_bytes());
        }
    }

    /// An option; left out if its length does not fit the field.
    fn option(&mut self, code: u16, v: &[u8]) {
        if let Ok(len) = u16::try_from(v.len()) {
            self.u16(code);
            self.u16(len);
            self.bytes(v);
        }
    }

    /// Ends the options (every block here has some) and writes the block with its length on both sides.
    fn end(&mut self, kind: u32) -> io::Result<()> {
        self.u32(0); // opt_endofopt
        let len = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&len)?;
        self.block.clear();
        Ok(())
    }
}
