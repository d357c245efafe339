//! The file: a section header, one interface, one enhanced packet block a packet; little-endian.
//!
//! Source: draft-ietf-opsawg-pcapng §4.1 to §4.3.

use std::io::{self, Write};
use tcpscape_base::Time;

/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
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
    snaplen: u32,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a file; of each packet at most `snaplen` bytes will be kept.
    pub fn new(out: W, program: &str, comment: &str, snaplen: u32) -> io::Result<Writer<W>> {
        let mut w = Writer { out, snaplen, block: Vec::new() };
        w.u32(BYTE_ORDER);
        w.u16(1); // version 1.0
        w.u16(0);
        w.bytes(&u64::MAX.to_le_bytes()); // section length: not given
        if !comment.is_empty() {
            w.option(OPT_COMMENT, comment.as_bytes());
        }
        w.option(SHB_USERAPPL, program.as_bytes());
        w.end(SECTION_HEADER)?;
        w.u16(ETHERNET);
        w.u16(0);
        w.u32(snaplen);
        w.option(IF_NAME, b"sender");
        w.option(IF_DESCRIPTION, b"the sender's device, before its queue");
        w.option(IF_TSRESOL, &[NANOSECONDS]);
        w.end(INTERFACE)?;
        Ok(w)
    }

    /// Adds a packet.
    pub fn packet(&mut self, at: Time, received: bool, frame: &[u8]) -> io::Result<()> {
        let kept = frame.len().min(self.snaplen as usize);
        self.u32(0); // interface
        self.u32((at.0 >> 32) as u32);
        self.u32(at.0 as u32);
        self.u32(kept as u32);
        self.u32(frame.len() as u32);
        self.bytes(&frame[..kept]);
        self.option(EPB_FLAGS, &if received { 1u32 } else { 2 }.to_le_bytes());
        self.end(ENHANCED_PACKET)
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
