//! A TCP packet as a capture shows it: what the readers of files hand to the analysis of flows.
//!
//! Source: RFC 9293 (header), RFC 7323 (window scale, timestamps), RFC 2018 and 2883 (SACK, DSACK), RFC 3168 and 9331 (ECN).
//! How it differs from [`tcpscape_base::Segment`]: sequence numbers are the 32 bits on the wire, and what the capture cut off is unknown.

use std::net::IpAddr;
use tcpscape_base::{Ecn, Flags, Time};

/// Most blocks of a SACK option (RFC 2018 §3: four without other options).
pub const MOST_BLOCKS: usize = 4;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
}

/// The options of a TCP header that the analysis reads; what is absent or cut off is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size; of a SYN alone.
    pub mss: Option<u16>,
    /// Window scale shift; of a SYN alone.
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted; of a SYN alone.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of SACK: left and right edge.
    pub blocks: [(u32, u32); MOST_BLOCKS],
    /// How many of them there are.
    pub block_count: u8,
    /// Whether the header's options are cut off by the capture's snap length.
    pub is_cut: bool,
}

/// A TCP packet, or a super-packet of several segments (GSO, GRO).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Its number in the capture, from 1 as in Wireshark.
    pub frame: u64,
    /// When the capture saw it, ns since the epoch of its clock.
    pub at: Time,
    /// Who sent it.
    pub from: Endpoint,
    /// To whom.
    pub to: Endpoint,
    /// Its network interface in the capture; a packet forwarded by the capturing machine appears on two.
    pub interface: u32,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number; 0 without the ACK flag.
    pub ack: u32,
    /// Bytes of payload, whether captured or not; a super-packet has more than an MSS.
    pub len: u32,
    /// Flags.
    pub flags: Flags,
    /// Window field, not scaled.
    pub window: u16,
    /// Code point of the IP header.
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// IP identification; 0 for IPv6.
    pub id: u16,
    /// Bytes of the IP packet.
    pub size: u32,
    /// Options.
    pub options: Options,
}
