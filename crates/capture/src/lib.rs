//! Packet events → a capture that Wireshark, tshark and tcptrace read.
//!
//! Source: draft-ietf-opsawg-pcapng (blocks), RFC 791, RFC 9293, RFC 7323, RFC 2018 (headers); options in the order in which Linux
//! writes them.
//! How it differs from tcpdump at a Linux sender: super-packets appear cut to MTU size, as on the wire behind the device, all with the
//! instant at which TCP handed them down, before the sender's own queue. Time counts from the trial's start (1970-01-01). Payload is
//! zeros. Arriving packets have IP identification 0, since it is not recorded (RFC 6864 §4.1 allows any value).
//! What it does not model: ARP, and packets that arrived damaged.
//!
//! [`write`] is the door, [`frame`] makes headers, [`pcapng`] the file's blocks. The other way: [`read`] makes packets of files, [`flow`] flows of
//! packets with what held them ([`limits`]), of delays what a queue leaves of them ([`residual`]); [`annotate`] writes a capture again with comments.

pub mod annotate;
pub mod flow;
pub mod frame;
pub mod limits;
pub mod packet;
pub mod pcapng;
pub mod read;
pub mod residual;

use frame::Connection;
use pcapng::{LinkType, PacketDirection, Seen};
use std::io::{self, Write};
use tcpscape_base::{Flags, Segment, Time};

/// Captures up to this size hold whole packets; in larger ones of each packet only [`HEADERS`] bytes, as with `tcpdump -s`.
pub const WHOLE: u64 = 1 << 28;
/// Room for every header there can be: 14 + 20 + 60 bytes.
pub const HEADERS: u32 = 96;

/// A packet seen at the sender.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// Flow number.
    pub flow: u32,
    /// Whether it came from the receiver.
    pub received: bool,
    /// The segment; longer than an MTU if it is a super-packet.
    pub seg: Segment,
}

/// What a capture needs to know besides its packets.
#[derive(Clone, Debug)]
pub struct Meta<'a> {
    /// Initial sequence numbers follow from it.
    pub seed: u64,
    /// IP packet size.
    pub mtu: u32,
    /// The receivers' window scale shifts, by flow.
    pub wscale: &'a [u8],
    /// Which program made it.
    pub program: &'a str,
    /// A comment on the whole file; left out if it does not fit (64 KiB).
    pub comment: &'a str,
    /// See [`WHOLE`].
    pub whole: u64,
}

/// Writes a capture.
pub fn write<W: Write>(out: W, meta: &Meta<'_>, events: impl Iterator<Item = Event> + Clone) -> io::Result<()> {
    let mss = meta.mtu.saturating_sub(frame::FULL_HEADERS).max(1);
    let mut flows: Vec<Connection> = (0u32..).zip(meta.wscale).map(|(i, &w)| Connection::new(meta.seed, i, w, meta.mtu)).collect();
    let bytes: u64 = events.clone().map(|e| u64::from(e.seg.frame_len())).sum();
    let snaplen = if bytes <= meta.whole { frame::MOST } else { HEADERS };
    let mut file = pcapng::Writer::new(out, meta.program, meta.comment)?;
    file.interface(LinkType::Ethernet, "sender", "the sender's device, before its queue", snaplen)?;
    let mut bytes = Vec::with_capacity(frame::MOST as usize);
    for e in events {
        let mut rest = e.seg;
        loop {
            let mut seg = rest;
            seg.len = rest.len.min(mss);
            if seg.len < rest.len {
                seg.flags.0 &= !Flags::PSH.0;
            }
            flows[e.flow as usize].frame(&seg, e.received, &mut bytes);
            let direction = if e.received { PacketDirection::Inbound } else { PacketDirection::Outbound };
            file.packet(&Seen { interface: 0, at: e.at, direction, length: bytes.len() as u32, bytes: &bytes, comment: "" })?;
            rest.seq += u64::from(seg.len);
            rest.len -= seg.len;
            if rest.len == 0 {
                break;
            }
        }
    }
    file.finish()
}

#[cfg(test)]
mod tests;
