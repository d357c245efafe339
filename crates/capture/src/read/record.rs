//! What the two formats have in common: packets as records, and the interfaces that they were captured on.

use super::clock::Clock;
use super::link::LinkType;
use tcpscape_base::Time;

/// What the bytes at hand are.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The begin of something that has at least so many bytes.
    Needs(usize),
    /// A whole record of so many bytes.
    Whole(usize),
    /// The begin of so many bytes that nobody reads.
    Pass(u64),
    /// Nothing that could be a record, and so is all that follows: a sentence without its begin.
    Damaged(String),
}

/// A packet, with its link-layer header.
#[derive(Debug)]
pub struct Record<'a> {
    /// Number of its interface, from 0 over all sections of the file.
    pub interface: u32,
    /// What its bytes begin with.
    pub link: LinkType,
    /// When it was seen, never before the packet before it; None where the file does not say.
    pub at: Option<Time>,
    /// The same as the file has it, where a clock that was set back shows; the last one where it does not say.
    pub stamp: Time,
    /// Its bytes on the link.
    pub original: u32,
    /// Those of them that were captured.
    pub bytes: &'a [u8],
}

/// What packets were captured on.
#[derive(Clone, Debug)]
pub struct Interface {
    /// As the capture has it, cut to 64 bytes; empty where it has none.
    pub name: String,
    /// What its packets begin with.
    pub link: LinkType,
    /// Most bytes captured of a packet; 0 is all.
    pub snap_length: u32,
    /// Reads its times.
    pub clock: Clock,
    /// Packets of it.
    pub frames: u64,
    /// Packets that the capture lost, by its own count.
    pub drops: u64,
}

/// Bytes of the longest record that is read; what is longer is damage. libpcap's own limit of a packet is 256 KiB.
pub const LONGEST: usize = 1 << 24;
