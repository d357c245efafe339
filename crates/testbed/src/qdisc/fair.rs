//! fq's, sfq's and cake's options. Source: tc-fq(8), tc-sfq(8), tc-cake(8), linux/pkt_sched.h (`TCA_FQ_*`, `tc_sfq_qopt_v1`,
//! `TCA_CAKE_*`).

use super::clamp;
use super::options::Options;
use tcpscape_base::{Duration, Rate};
use tcpscape_path::queue::cake::{AckFilter, Framing, Isolation, Tins};
use tcpscape_path::queue::{CakeSpec, FqSpec, SfqSpec};

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

/// `TCA_FQ_*`.
const FQ_LIMIT: u16 = 1;
const FQ_FLOW_LIMIT: u16 = 2;
const FQ_QUANTUM: u16 = 3;
const FQ_INITIAL_QUANTUM: u16 = 4;
const FQ_RATE_ENABLE: u16 = 5;
const FQ_MAX_RATE: u16 = 7;
const FQ_BUCKETS_LOG: u16 = 8;
const FQ_REFILL_DELAY: u16 = 9;
const FQ_ORPHAN_MASK: u16 = 10;
const FQ_LOW_RATE: u16 = 11;
const FQ_CE_THRESHOLD: u16 = 12;
const FQ_TIMER_SLACK: u16 = 13;
const FQ_HORIZON: u16 = 14;
const FQ_HORIZON_DROP: u16 = 15;

/// Fills fq's `TCA_OPTIONS`.
pub fn fq(o: &mut Options, s: &FqSpec) {
    let rate = |r: Option<Rate>| r.map(|r| clamp(r.bytes_per_sec()));
    let micros = |d: Option<Duration>| d.map(|d| clamp(d.0 / 1_000));
    for (kind, value) in [
        (FQ_LIMIT, s.limit),
        (FQ_FLOW_LIMIT, s.flow_limit),
        (FQ_QUANTUM, s.quantum),
        (FQ_INITIAL_QUANTUM, s.initial_quantum),
        (FQ_RATE_ENABLE, s.nopacing.then_some(0)),
        (FQ_MAX_RATE, rate(s.maxrate)),
        // The least power of two that is enough.
        (FQ_BUCKETS_LOG, s.buckets.map(|n| n.next_power_of_two().trailing_zeros())),
        (FQ_REFILL_DELAY, micros(s.refill_delay)),
        (FQ_ORPHAN_MASK, s.orphan_mask),
        (FQ_LOW_RATE, rate(s.low_rate_threshold)),
        (FQ_CE_THRESHOLD, micros(s.ce_threshold)),
        (FQ_TIMER_SLACK, s.timer_slack.map(|d| clamp(d.0))),
        (FQ_HORIZON, micros(s.horizon)),
    ] {
        if let Some(n) = value {
            o.put_u32(kind, n);
        }
    }
    if s.horizon_cap {
        o.put(FQ_HORIZON_DROP, &[0]);
    }
}

/// Fills sfq's `TCA_OPTIONS`; what is 0 keeps the kernel's value. RED inside sfq and its statistics stay 0.
pub fn sfq(o: &mut Options, s: &SfqSpec) {
    let given = |n: Option<u32>| n.unwrap_or(0);
    o.words([given(s.quantum), s.perturb, given(s.limit), given(s.divisor), given(s.flows)]);
    o.words([given(s.depth), u32::from(s.headdrop)]);
    o.words([0; 11]);
}

/// Fills cake's `TCA_OPTIONS`.
pub fn cake(o: &mut Options, s: &CakeSpec) {
    if let Some(rate) = s.bandwidth {
        o.put_u64(BASE_RATE64, rate.bytes_per_sec());
        o.put_u32(AUTORATE, 0);
    }
    if s.rtt.is_some() {
        let (rtt, target) = s.times();
        o.put_u32(RTT, u32::try_from(rtt).unwrap_or(u32::MAX));
        o.put_u32(TARGET, u32::try_from(target).unwrap_or(u32::MAX));
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
            o.put_u32(kind, n);
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
