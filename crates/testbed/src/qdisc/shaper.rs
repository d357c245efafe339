//! tbf's and htb's options with their rate tables. Source: tc-tbf(8), tc-htb(8), linux/pkt_sched.h.
//!
//! A rate travels as bytes per second and as a table of 256 packet sizes with the time that each takes, in ticks. The
//! kernel computes with the rate; the table is sent because tc sends it.

use super::options::Options;
use super::{clamp, ticks};
use tcpscape_base::Rate;
use tcpscape_path::queue::{HtbSpec, TbfSpec};

/// `TCA_TBF_*`.
const TBF_PARMS: u16 = 1;
const TBF_RTAB: u16 = 2;
const TBF_PTAB: u16 = 3;
const TBF_RATE64: u16 = 4;
const TBF_PRATE64: u16 = 5;
const TBF_BURST: u16 = 6;
const TBF_PBURST: u16 = 7;
/// `TCA_HTB_*`.
const HTB_PARMS: u16 = 1;
const HTB_INIT: u16 = 2;
const HTB_CTAB: u16 = 3;
const HTB_RTAB: u16 = 4;
const HTB_RATE64: u16 = 6;
const HTB_CEIL64: u16 = 7;

/// Packet size for the table's cells where no `mtu` is given, B: tc's for tbf and for htb.
const TBF_MTU: u64 = 2047;
const HTB_MTU: u64 = 1600;
/// tc's clock on a kernel with high-resolution timers, Hz: htb's default bucket holds one tick at the rate and a packet.
const HTB_HZ: u64 = 1_000_000_000;
/// Entries of a table.
const CELLS: u64 = 256;
/// Ethernet, which adds nothing. Linux: TC_LINKLAYER_ETHERNET.
const ETHERNET: u8 = 1;
/// The version of htb's interface, its default ratio of rate to quantum, and the class for packets that no filter claims.
const HTB_VERSION: u32 = 3;
const HTB_R2Q: u32 = 10;
const HTB_DEFAULT: u32 = 1;

/// A rate with what belongs to it.
#[derive(Clone, Copy)]
struct Paced {
    bytes_per_sec: u64,
    cell_log: u8,
}

impl Paced {
    /// `mtu`: the largest size that the table must cover, B.
    fn new(rate: Rate, mtu: u64) -> Paced {
        let cell_log = (0..63).find(|log| mtu >> log < CELLS).unwrap_or(63);
        Paced { bytes_per_sec: rate.bytes_per_sec().max(1), cell_log }
    }
    /// Time of `bytes` in ticks, from whole microseconds. tc computes them in floating point, in this order, and so are a few
    /// entries of its tables one microsecond short.
    fn ticks(self, bytes: u64) -> u32 {
        ticks((bytes as f64 / self.bytes_per_sec as f64 * 1e6) as u64)
    }
    /// The rate as far as 32 bits go.
    fn narrow(self) -> Paced {
        Paced { bytes_per_sec: self.bytes_per_sec.min(u64::from(u32::MAX)), ..self }
    }
    /// `struct tc_ratespec`, 12 bytes.
    fn spec(self) -> [u8; 12] {
        let mut s = [0; 12];
        (s[0], s[1]) = (self.cell_log, ETHERNET);
        s[4..6].copy_from_slice(&(-1i16).to_ne_bytes());
        s[8..12].copy_from_slice(&clamp(self.bytes_per_sec).to_ne_bytes());
        s
    }
    fn table(self, o: &mut Options, kind: u16) {
        o.nest(kind, |o| (1..=CELLS).for_each(|i| o.raw(&self.ticks(i << self.cell_log).to_ne_bytes())));
    }
    /// The rate in full where 32 bits are too few.
    fn wide(self, o: &mut Options, kind: u16) {
        if self.bytes_per_sec > u64::from(u32::MAX) {
            o.put_u64(kind, self.bytes_per_sec);
        }
    }
}

/// Fills tbf's `TCA_OPTIONS`.
pub fn tbf(o: &mut Options, s: &TbfSpec) {
    let mtu = s.mtu.unwrap_or(0);
    let cells = if mtu > 0 { mtu } else { TBF_MTU };
    let rate = Paced::new(s.rate, cells);
    let peak = s.peakrate.map(|p| Paced::new(p, cells));
    o.nest(TBF_PARMS, |o| {
        o.raw(&rate.spec());
        o.raw(&peak.map_or([0; 12], Paced::spec));
        // tc computes tbf's buckets and tables with 32 bits of the rate; the kernel takes bytes and rates from the others.
        o.words([clamp(s.limit), rate.narrow().ticks(s.burst), peak.map_or(0, |p| p.narrow().ticks(mtu))]);
    });
    o.put_u32(TBF_BURST, clamp(s.burst));
    rate.wide(o, TBF_RATE64);
    rate.narrow().table(o, TBF_RTAB);
    if let Some(peak) = peak {
        peak.wide(o, TBF_PRATE64);
        o.put_u32(TBF_PBURST, clamp(mtu));
        peak.narrow().table(o, TBF_PTAB);
    }
}

/// Fills `TCA_OPTIONS` of htb's queue: everything goes into class 1.
pub fn htb_queue(o: &mut Options) {
    o.nest(HTB_INIT, |o| o.words([HTB_VERSION, HTB_R2Q, HTB_DEFAULT, 0, 0]));
}

/// Fills `TCA_OPTIONS` of htb's class.
pub fn htb_class(o: &mut Options, s: &HtbSpec) {
    let rate = Paced::new(s.rate, HTB_MTU);
    let ceil = Paced::new(s.ceil.unwrap_or(s.rate), HTB_MTU);
    rate.wide(o, HTB_RATE64);
    ceil.wide(o, HTB_CEIL64);
    let bucket = |paced: Paced, bytes: Option<u64>| paced.ticks(bytes.filter(|&n| n > 0).unwrap_or(paced.bytes_per_sec / HTB_HZ + HTB_MTU));
    o.nest(HTB_PARMS, |o| {
        o.raw(&rate.spec());
        o.raw(&ceil.spec());
        o.words([bucket(rate, s.burst), bucket(ceil, s.cburst), 0, 0, 0]);
    });
    rate.table(o, HTB_RTAB);
    ceil.table(o, HTB_CTAB);
}
