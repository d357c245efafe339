//! sfq's and cake's options. Source: tc-sfq(8), tc-cake(8), linux/pkt_sched.h (`tc_sfq_qopt_v1`, `TCA_CAKE_*`).

use super::words;
use crate::netlink::Batch;
use tcpscape_path::queue::cake::{AckFilter, Framing, Isolation, Tins};
use tcpscape_path::spec::{CakeSpec, SfqSpec};

/// `TCA_CAKE_*`.
const BASE_RATE64: u16 = 2;
const DIFFSERV_MODE: u16 = 3;
const ATM: u16 = 4;
const FLOW_MODE: u16 = 5;
const OVERHEAD: u16 = 6;
const RTT: u16 = 7;
const TARGET: u16 = 8;
const AUTORATE: u16 = 9;
const MEMORY: u16 = 10;
const WASH: u16 = 13;
const MPU: u16 = 14;
const INGRESS: u16 = 15;
const ACK_FILTER: u16 = 16;
const SPLIT_GSO: u16 = 17;

/// Fills sfq's `TCA_OPTIONS`; what is 0 keeps the kernel's value. RED inside sfq and its statistics stay 0.
pub fn sfq(b: &mut Batch, s: &SfqSpec) {
    let given = |n: Option<u32>| n.unwrap_or(0);
    words(b, [given(s.quantum), s.perturb, given(s.limit), given(s.divisor), given(s.flows)]);
    words(b, [given(s.depth), u32::from(s.headdrop)]);
    words(b, [0; 11]);
}

/// Fills cake's `TCA_OPTIONS`.
pub fn cake(b: &mut Batch, s: &CakeSpec) {
    if let Some(rate) = s.bandwidth {
        b.put_u64(BASE_RATE64, rate.bytes_per_sec());
        b.put_u32(AUTORATE, 0);
    }
    if s.rtt.is_some() {
        let (rtt, target) = s.times();
        b.put_u32(RTT, u32::try_from(rtt).unwrap_or(u32::MAX));
        b.put_u32(TARGET, u32::try_from(target).unwrap_or(u32::MAX));
    }
    let framing = s.framing.map(|f| match f {
        Framing::Atm => 1,
        Framing::Ptm => 2,
    });
    let filter = s.ack_filter.map(|f| match f {
        AckFilter::On => 1,
        AckFilter::Aggressive => 2,
    });
    for (kind, value) in [
        (DIFFSERV_MODE, s.tins.map(tins)),
        (FLOW_MODE, s.flows.map(isolation)),
        (ATM, framing),
        (OVERHEAD, s.overhead.map(|n| n as u32)),
        (MPU, s.mpu),
        (MEMORY, s.memlimit),
        (ACK_FILTER, filter),
        (INGRESS, s.ingress.then_some(1)),
        (WASH, s.wash.then_some(1)),
        (SPLIT_GSO, s.no_split_gso.then_some(0)),
    ] {
        if let Some(n) = value {
            b.put_u32(kind, n);
        }
    }
}

/// `CAKE_DIFFSERV_*`.
fn tins(t: Tins) -> u32 {
    match t {
        Tins::Diffserv3 => 0,
        Tins::Diffserv4 => 1,
        Tins::Diffserv8 => 2,
        Tins::Besteffort => 3,
        Tins::Precedence => 4,
    }
}

/// `CAKE_FLOW_*`.
fn isolation(i: Isolation) -> u32 {
    match i {
        Isolation::Flowblind => 0,
        Isolation::Srchost => 1,
        Isolation::Dsthost => 2,
        Isolation::Hosts => 3,
        Isolation::Flows => 4,
        Isolation::DualSrchost => 5,
        Isolation::DualDsthost => 6,
        Isolation::TripleIsolate => 7,
    }
}
