//! pcap: a header, then packets, each with a header of its own.
//!
//! Source: draft-ietf-opsawg-pcap. Read by the crate `pcap-parser`, whose records are taken once they are whole.

use super::link::LinkType;
use super::record::{Clock, Interface, Next, Record, Unit, LONGEST};
use super::Unreadable;
use pcap_parser::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header, PcapHeader};

const HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Of the records of the modified format (Kuznetzov's).
const MODIFIED_HEADER: usize = 24;
/// Microseconds and nanoseconds, both byte orders, and the modified format.
const MAGICS: [[u8; 4]; 5] =
    [[0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0xc3, 0xd4], [0x4d, 0x3c, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d], [0x34, 0xcd, 0xb2, 0xa1]];

/// A pcap file.
#[derive(Debug)]
pub struct Legacy {
    header: PcapHeader,
    /// Its only interface.
    pub interface: Interface,
}

/// Whether a file begins like one.
pub fn begins(bytes: &[u8]) -> bool {
    MAGICS.iter().any(|m| bytes.starts_with(m))
}

/// What the begin of a file is. One whose packets have a link layer that is not read is refused.
pub fn header(bytes: &[u8]) -> Result<Next, Unreadable> {
    let Some(header) = bytes.get(..HEADER) else {
        return Ok(Next::Needs(HEADER));
    };
    match parse_pcap_header(header).map(|(_, header)| link(&header)) {
        Ok(link) if !link.is_read() => Err(link.refusal()),
        _ => Ok(Next::Whole(HEADER)),
    }
}

/// Bits above the lowest 16 tell of the frame check sequence.
fn link(header: &PcapHeader) -> LinkType {
    LinkType((header.network.0 & 0xffff) as u16)
}

impl Legacy {
    /// A file with this header.
    pub fn new(header: &[u8]) -> Result<Legacy, String> {
        let (_, header) = parse_pcap_header(header).map_err(|_| "its header cannot be read".to_owned())?;
        let link = link(&header);
        let unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
        let clock = Clock::new(Unit::Nanos(unit), 0);
        let interface = Interface { name: String::new(), link, snap_length: header.snaplen, clock, frames: 0, drops: 0 };
        Ok(Legacy { header, interface })
    }

    /// What the bytes after the header are.
    pub fn next(&self, bytes: &[u8]) -> Next {
        let header = if self.header.is_modified_format() { MODIFIED_HEADER } else { RECORD_HEADER };
        let Some(field) = bytes.get(8..12).filter(|_| bytes.len() >= header) else {
            return Next::Needs(header);
        };
        let field = [field[0], field[1], field[2], field[3]];
        let captured = if self.header.is_bigendian() { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) } as usize;
        if captured > LONGEST {
            return Next::Damaged(format!("a record claims {captured} bytes, more than any packet has"));
        }
        let whole = header + captured;
        if bytes.len() < whole {
            Next::Needs(whole)
        } else {
            Next::Whole(whole)
        }
    }

    /// Reads a whole record.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Record<'a>, String> {
        let parsed = if self.header.is_modified_format() {
            parse_pcap_frame_modified(bytes)
        } else if self.header.is_bigendian() {
            parse_pcap_frame_be(bytes)
        } else {
            parse_pcap_frame(bytes)
        };
        let (_, block) = parsed.map_err(|_| "a record cannot be read".to_owned())?;
        self.interface.frames += 1;
        let per_second = if self.header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
        let at = self.interface.clock.read(u64::from(block.ts_sec) * per_second + u64::from(block.ts_usec));
        Ok(Record {
            interface: 0,
            link: self.interface.link,
            at: Some(at),
            stamp: self.interface.clock.stamp,
            original: block.origlen,
            bytes: block.data,
        })
    }
}
