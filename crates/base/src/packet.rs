//! What travels: a TCP segment, and the packet that carries a body through a path.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Most SACK blocks that fit beside a timestamp option (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 3;
/// Bytes of Ethernet header that a qdisc counts on top of the IP packet (`qdisc_pkt_len`).
pub const ETH_HEADER: u32 = 14;

/// One SACK block: the bytes `start..end` of the stream, absolute 64-bit offsets.
pub type SackBlock = (u64, u64);

/// TCP header flags that the machines use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// FIN (RFC 9293).
    pub const FIN: Flags = Flags(0x01);
    /// SYN.
    pub const SYN: Flags = Flags(0x02);
    /// RST.
    pub const RST: Flags = Flags(0x04);
    /// PSH.
    pub const PSH: Flags = Flags(0x08);
    /// ACK.
    pub const ACK: Flags = Flags(0x10);
    /// AE (RFC 9768), the ninth bit of the header's flags; kept where URG would be, which the machines do not use.
    pub const AE: Flags = Flags(0x20);
    /// ECE (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// CWR (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Whether all of `other`'s flags are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Both sets of flags.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// These flags, `other`'s taken away.
    #[inline]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
    /// The three bits AE, CWR and ECE as one number: the ACE field of accurate ECN (RFC 9768 §3.2.2).
    #[inline]
    pub const fn ace(self) -> u8 {
        (self.0 >> 5 & 1) << 2 | (self.0 >> 7) << 1 | (self.0 >> 6 & 1)
    }
    /// The flags that hold the low three bits of `ace`.
    #[inline]
    pub const fn of_ace(ace: u8) -> Flags {
        Flags((ace >> 2 & 1) << 5 | (ace >> 1 & 1) << 7 | (ace & 1) << 6)
    }
}

/// A TCP segment. Sequence numbers are 64-bit offsets of the stream (0 is the SYN, data starts at 1): they never wrap;
/// their low 32 bits plus an initial sequence number are what a capture shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First sequence number.
    pub seq: u64,
    /// Next sequence number that the segment's sender expects from its peer; valid with [`Flags::ACK`].
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Receive window in bytes, already scaled back by `wscale` (so a multiple of `1 << wscale`, except in a SYN).
    pub wnd: u32,
    /// Timestamp value, ms (RFC 7323).
    pub tsval: u32,
    /// Timestamp echo reply, ms; 0 when there is none.
    pub tsecr: u32,
    /// Header flags.
    pub flags: Flags,
    /// ECN field of the IP header: as it was sent, or as it arrived.
    pub ecn: Ecn,
    /// Number of SACK blocks used; see [`Segment::sacks`].
    pub nsack: u8,
    /// Accurate ECN's option (RFC 9768 §3.2.3): 1 + the peer's count of marked payload bytes, of which 24 bits travel; 0 without the option.
    pub ceb: u32,
    /// SACK blocks as (offset from `ack`, length): a DSACK below `ack` has a negative offset.
    pub sacks: [(i32, u32); MAX_SACK_BLOCKS],
}

impl Segment {
    /// The sequence number after the segment's last: SYN and FIN count one.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64 + (self.flags.0 & 1) as u64 + ((self.flags.0 >> 1) & 1) as u64
    }
    /// Part `index` of a super-packet that segmentation offload cuts into pieces of `mss` bytes: its sequence number and length, PSH and
    /// FIN with the last part alone, CWR with the first (RFC 3168 §6.1.2: one packet tells of the reduction).
    #[inline]
    #[must_use]
    pub fn part(&self, index: u32, mss: u32) -> Segment {
        let start = (index * mss).min(self.len);
        let len = mss.min(self.len - start);
        let mut flags = self.flags;
        if start + len < self.len {
            flags = flags.without(Flags::PSH.with(Flags::FIN));
        }
        if index > 0 {
            flags = flags.without(Flags::CWR);
        }
        Segment { seq: self.seq + u64::from(start), len, flags, ..*self }
    }
    /// Adds a SACK block (set `ack` first); further ones than fit are left out, as are blocks too far away to encode.
    #[inline]
    pub fn push_sack(&mut self, b: SackBlock) {
        let off = b.0 as i64 - self.ack as i64;
        let (Ok(off), Ok(len)) = (i32::try_from(off), u32::try_from(b.1 - b.0)) else { return };
        if (self.nsack as usize) < MAX_SACK_BLOCKS {
            self.sacks[self.nsack as usize] = (off, len);
            self.nsack += 1;
        }
    }
    /// The SACK blocks in the order of the option: a DSACK is the first one (RFC 2883).
    #[inline]
    pub fn sacks(&self) -> impl ExactSizeIterator<Item = SackBlock> + '_ {
        self.sacks[..self.nsack as usize].iter().map(|&(o, n)| {
            let s = (self.ack as i64 + i64::from(o)) as u64;
            (s, s + u64::from(n))
        })
    }
    /// Bytes of TCP header with the options that Linux sends: timestamps always, MSS, window scale and SACK-permitted
    /// on a SYN, SACK blocks and accurate ECN's option (8 bytes: ECT(1) and CE) where there are any.
    #[inline]
    pub const fn header_len(&self) -> u32 {
        let accurate = if self.ceb > 0 { 8 } else { 0 };
        if self.flags.0 & Flags::SYN.0 != 0 {
            40
        } else if self.nsack > 0 {
            32 + 4 + 8 * self.nsack as u32 + accurate
        } else {
            32 + accurate
        }
    }
    /// Size of the Ethernet frame without its checksum for an IPv4 packet: what a qdisc counts.
    #[inline]
    pub const fn frame_len(&self) -> u32 {
        ETH_HEADER + 20 + self.header_len() + self.len
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(1), also the L4S identifier (RFC 9331).
    Ect1,
    /// ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// That of the lowest two bits of IPv4's TOS or IPv6's traffic class (RFC 3168 §5).
    #[inline]
    pub const fn of_bits(byte: u8) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(byte & 3) as usize]
    }
    /// How accurate ECN's handshake says that a SYN or SYN-ACK arrived with this (RFC 9768 §3.1.1, table 2, and §3.2.2.1, table 3).
    pub const fn handshake_code(self) -> u8 {
        match self {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        }
    }
}

/// The earliest departure of a packet: one at the begin of time is 1 ns later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edt(NonZeroU64);

impl Edt {
    /// At this time.
    #[inline]
    pub fn at(t: Time) -> Edt {
        Edt(NonZeroU64::new(t.0).unwrap_or(NonZeroU64::MIN))
    }
    /// When it is.
    #[inline]
    pub fn time(self) -> Time {
        Time(self.0.get())
    }
}

/// A packet on its way: what a path needs to know, around a body that it does not look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet<B> {
    /// Unique in its trial, given by whoever sends it; a duplicate keeps its original's.
    pub id: u64,
    /// The flow it belongs to.
    pub flow: u32,
    /// The pair of hosts that it travels between.
    pub hosts: u32,
    /// Bytes that a qdisc counts for it (`qdisc_pkt_len`: Ethernet header included; with segmentation offload, one header a segment).
    pub size: u32,
    /// MTU-sized packets inside (more than 1 only with segmentation offload).
    pub segs: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// Earliest departure from its own host, set by that host's TCP; nowhere else has it one.
    pub edt: Option<Edt>,
    /// Set when an impairment damaged it: the receiver's checksum will refuse it.
    pub corrupt: bool,
    /// What is carried.
    pub body: B,
}

impl<B> Packet<B> {
    /// Sets CE, as a queue does instead of dropping (RFC 3168 §5); false if the packet is not ECN-capable. One that has CE already counts
    /// as marked.
    #[inline]
    pub fn mark(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
}

/// The five congestion-avoidance states of Linux's TCP (`enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open = 0,
    /// SACKs or duplicate ACKs have been seen; nothing is marked lost yet.
    Disorder = 1,
    /// The window was reduced after ECN or local congestion.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission timeout.
    Loss = 4,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_segment_is_a_1514_byte_frame() {
        let s = Segment { len: 1448, flags: Flags::ACK, ..Default::default() };
        assert_eq!(s.frame_len(), 1514);
    }

    /// 4000 bytes with an MSS of 1448: 1448, 1448 and 1104, in order and without a gap.
    #[test]
    fn the_parts_of_a_super_packet_are_whole_segments_and_the_rest() {
        let flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN).with(Flags::CWR);
        let s = Segment { seq: 100, ack: 7, len: 4_000, flags, tsval: 9, ..Default::default() };
        let parts: Vec<Segment> = (0..3).map(|i| s.part(i, 1_448)).collect();
        assert_eq!(parts.iter().map(|p| (p.seq, p.len)).collect::<Vec<_>>(), [(100, 1_448), (1_548, 1_448), (2_996, 1_104)]);
        let has = |f| parts.iter().map(|p| p.flags.has(f)).collect::<Vec<_>>();
        assert_eq!(has(Flags::CWR), [true, false, false]);
        assert_eq!((has(Flags::PSH), has(Flags::FIN)), (vec![false, false, true], vec![false, false, true]));
        assert!(parts.iter().all(|p| p.flags.has(Flags::ACK) && (p.ack, p.tsval) == (7, 9)));
        assert_eq!(parts[2].end(), s.end());
    }

    #[test]
    fn a_single_segment_is_its_own_only_part() {
        let s = Segment { seq: 5, len: 1_448, flags: Flags::ACK.with(Flags::PSH).with(Flags::CWR), ..Default::default() };
        assert_eq!(s.part(0, 1_448), s);
        let ack = Segment { seq: 5, flags: Flags::ACK.with(Flags::PSH), ..Default::default() };
        assert_eq!(ack.part(0, 1_448), ack);
    }

    #[test]
    fn sack_blocks_come_back_as_put_and_a_fourth_is_left_out() {
        let mut s = Segment { ack: 10_000, flags: Flags::ACK, ..Default::default() };
        for b in [(9_000, 9_500), (20_000, 21_448), (30_000, 31_448), (40_000, 41_448)] {
            s.push_sack(b);
        }
        assert_eq!(s.sacks().collect::<Vec<_>>(), [(9_000, 9_500), (20_000, 21_448), (30_000, 31_448)]);
        assert_eq!(s.header_len(), 32 + 4 + 24);
    }

    /// AE 1, CWR 0, ECE 1 is 5, where accurate ECN's counters begin; its option adds 8 bytes.
    #[test]
    fn accurate_ecn_reads_three_flags_as_a_number() {
        assert_eq!(Flags::ACK.with(Flags::AE).with(Flags::ECE).ace(), 5);
        assert!((0..8).all(|n| Flags::of_ace(n).ace() == n && Flags::of_ace(n).0 & 0x1f == 0));
        assert_eq!(Segment { ceb: 1, flags: Flags::ACK, ..Default::default() }.header_len(), 40);
    }

    #[test]
    fn a_segment_fits_a_cache_line() {
        assert!(std::mem::size_of::<Segment>() <= 64, "{}", std::mem::size_of::<Segment>());
    }
}
