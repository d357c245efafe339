//! pcapng: sections of blocks, with the interfaces of each.
//!
//! Source: draft-ietf-opsawg-pcapng. Sections, interfaces and statistics are read by the crate `pcap-parser`. Blocks of packets are read here:
//! there are millions of them, and the crate makes a list of each one's options, which nobody looks at. What is read of options here: names,
//! time resolutions to the base 2 and offsets, and counts of drops in big-endian files, which `pcap-parser` 0.17 does not read as the draft
//! has them.

use super::link::LinkType;
use super::record::{Clock, Interface, Next, Record, Unit, LONGEST};
use pcap_parser::{parse_block_be, parse_block_le, Block, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode, PcapNGOption};

/// Most interfaces of a file.
pub const MOST_INTERFACES: usize = 1 << 16;

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete, and still written by old programs.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Type and both lengths of a block.
const FRAME: usize = 12;
/// Longest block that is no packet: a section, an interface, a statistic.
const LONGEST_DESCRIPTION: usize = 1 << 20;
/// Bytes kept of an interface's name.
const NAME: usize = 64;

/// A pcapng file.
#[derive(Debug, Default)]
pub struct Blocks {
    is_big_endian: bool,
    /// Where the current section's interfaces begin.
    base: usize,
    /// All of the file.
    pub interfaces: Vec<Interface>,
}

/// Whether a file begins like one.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(&SECTION_HEADER)
}

impl Blocks {
    /// What the bytes at the begin of a block are.
    pub fn next(&self, bytes: &[u8]) -> Next {
        if bytes.len() < FRAME {
            return Next::Needs(FRAME);
        }
        let is_section = bytes.starts_with(&SECTION_HEADER);
        let big = if is_section {
            match byte_order(bytes) {
                Some(big) => big,
                None => return Next::Damaged("a section has no byte order".to_owned()),
            }
        } else {
            self.is_big_endian
        };
        let kind = word(bytes, 0, big);
        let length = word(bytes, 4, big) as usize;
        if length < FRAME || length % 4 != 0 {
            return Next::Damaged(format!("a block claims {length} bytes, which no block has"));
        }
        let longest = match kind {
            ENHANCED_PACKET | PACKET | SIMPLE_PACKET => LONGEST,
            INTERFACE_DESCRIPTION | INTERFACE_STATISTICS => LONGEST_DESCRIPTION,
            _ if is_section => LONGEST_DESCRIPTION,
            _ => return Next::Pass(length as u64),
        };
        if length > longest {
            return Next::Damaged(format!("a block claims {length} bytes, more than any packet or interface has"));
        }
        if bytes.len() < length {
            Next::Needs(length)
        } else {
            Next::Whole(length)
        }
    }

    /// Reads a whole block; None where it is no packet.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Record<'a>>, String> {
        if bytes.starts_with(&SECTION_HEADER) {
            self.is_big_endian = byte_order(bytes).unwrap_or_default();
            self.base = self.interfaces.len();
        }
        let big = self.is_big_endian;
        if word(bytes, bytes.len() - 4, big) as usize != bytes.len() {
            return Err("the two lengths of a block differ".to_owned());
        }
        match word(bytes, 0, big) {
            ENHANCED_PACKET => self.packet(bytes, word(bytes, 8, big), 28).map(Some),
            PACKET => {
                let id = half(bytes, 8, big);
                self.packet(bytes, u32::from(id), 28).map(Some)
            }
            SIMPLE_PACKET => self.simple_packet(bytes).map(Some),
            _ => self.description(bytes).map(|()| None),
        }
    }

    /// An enhanced packet block or its predecessor, whose fields are at the same places.
    fn packet<'a>(&mut self, bytes: &'a [u8], id: u32, data: usize) -> Result<Record<'a>, String> {
        let big = self.is_big_endian;
        if bytes.len() < data + 4 {
            return Err("a block is too short for a packet".to_owned());
        }
        let units = u64::from(word(bytes, 12, big)) << 32 | u64::from(word(bytes, 16, big));
        let captured = word(bytes, 20, big) as usize;
        let original = word(bytes, 24, big);
        let packet = bytes[data..bytes.len() - 4].get(..captured).ok_or("a packet claims more bytes than its block has")?;
        let (number, interface) = self.interface(id)?;
        interface.frames += 1;
        let at = interface.clock.read(units);
        Ok(Record { interface: number, link: interface.link, at: Some(at), stamp: interface.clock.stamp, original, bytes: packet })
    }

    /// A packet of the section's first interface, without a time.
    fn simple_packet<'a>(&mut self, bytes: &'a [u8]) -> Result<Record<'a>, String> {
        let original = if bytes.len() < 16 { 0 } else { word(bytes, 8, self.is_big_endian) };
        let captured = bytes.get(12..bytes.len() - 4).ok_or("a block is too short for a packet")?;
        let captured = &captured[..captured.len().min(original as usize)];
        let (number, interface) = self.interface(0)?;
        interface.frames += 1;
        Ok(Record { interface: number, link: interface.link, at: None, stamp: interface.clock.stamp, original, bytes: captured })
    }

    fn interface(&mut self, id: u32) -> Result<(u32, &mut Interface), String> {
        let number = self.base + id as usize;
        let interface =
            self.interfaces.get_mut(number).ok_or_else(|| format!("a packet names interface {id}, which its section does not describe"))?;
        Ok((number as u32, interface))
    }

    /// A section, an interface or its statistics.
    fn description(&mut self, bytes: &[u8]) -> Result<(), String> {
        let parsed = if self.is_big_endian { parse_block_be(bytes) } else { parse_block_le(bytes) };
        match parsed.map_err(|_| "a block cannot be read".to_owned())?.1 {
            Block::SectionHeader(section) if section.major_version != 1 => {
                Err(format!("a section has version {}, and 1 is read", section.major_version))
            }
            Block::InterfaceDescription(block) => self.add(&block),
            Block::InterfaceStatistics(block) => self.statistics(&block),
            _ => Ok(()),
        }
    }

    fn add(&mut self, block: &InterfaceDescriptionBlock<'_>) -> Result<(), String> {
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(format!("there are more than {MOST_INTERFACES} interfaces"));
        }
        let resolution = option(&block.options, OptionCode::IfTsresol).and_then(|v| v.first().copied()).unwrap_or(6);
        let unit = Unit::of_resolution(resolution)
            .ok_or_else(|| format!("an interface has times of a resolution of {resolution}, which 64 bits do not hold"))?;
        let offset = option(&block.options, OptionCode::IfTsoffset).and_then(|v| self.number(v)).unwrap_or(0);
        let name = option(&block.options, OptionCode::IfName).unwrap_or_default();
        self.interfaces.push(Interface {
            name: String::from_utf8_lossy(&name[..name.len().min(NAME)]).into_owned(),
            link: LinkType((block.linktype.0 & 0xffff) as u16),
            snap_length: block.snaplen,
            clock: Clock::new(unit, offset as i64),
            frames: 0,
            drops: 0,
        });
        Ok(())
    }

    /// Drops by the interface and by the operating system; counts are since the capture's begin, so the last block counts.
    fn statistics(&mut self, block: &InterfaceStatisticsBlock<'_>) -> Result<(), String> {
        let drops = [OptionCode::IsbIfDrop, OptionCode::IsbOsDrop]
            .map(|code| option(&block.options, code).and_then(|v| self.number(v)).unwrap_or(0));
        self.interface(block.if_id)?.1.drops = drops[0].saturating_add(drops[1]);
        Ok(())
    }

    fn number(&self, value: &[u8]) -> Option<u64> {
        let value = <[u8; 8]>::try_from(value.get(..8)?).ok()?;
        Some(if self.is_big_endian { u64::from_be_bytes(value) } else { u64::from_le_bytes(value) })
    }
}

fn option<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options.iter().take_while(|o| o.code != OptionCode::EndOfOpt).find(|o| o.code == code).and_then(|o| o.as_bytes().ok())
}

/// Whether a section is big-endian; None where neither order fits.
fn byte_order(section: &[u8]) -> Option<bool> {
    match section[8..12] {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

#[inline]
fn word(bytes: &[u8], at: usize, big: bool) -> u32 {
    let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big {
        u32::from_be_bytes(field)
    } else {
        u32::from_le_bytes(field)
    }
}

fn half(bytes: &[u8], at: usize, big: bool) -> u16 {
    let field = [bytes[at], bytes[at + 1]];
    if big {
        u16::from_be_bytes(field)
    } else {
        u16::from_le_bytes(field)
    }
}
