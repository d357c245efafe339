//! netem's options. Source: tc-netem(8), linux/pkt_sched.h (`tc_netem_qopt` and `TCA_NETEM_*`).

use super::options::Options;
use super::{clamp, ticks, Extra, TICK};
use netlink_packet_core::NLA_F_NESTED as NESTED;
use tcpscape_base::Duration;
use tcpscape_path::parts::dist;
use tcpscape_path::queue::{netem::slot::Slot, NetemSpec};
use tcpscape_path::{Dist, Loss, Prob};

/// `TCA_NETEM_*`.
const CORR: u16 = 1;
const DELAY_DIST: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const ECN: u16 = 7;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const SLOT: u16 = 12;
const SLOT_DIST: u16 = 13;
const PRNG_SEED: u16 = 14;
/// `NETEM_LOSS_*`.
const LOSS_GI: u16 = 1;
const LOSS_GE: u16 = 2;

/// Fills `TCA_OPTIONS`. A change (`new` is false) leaves out what a schedule cannot change, so that the kernel keeps its
/// tables, its slots and the state of its correlated draws; what the kernel forgets without being told again is sent.
pub fn options(o: &mut Options, s: &NetemSpec, new: bool, extra: Extra) {
    let (delay, jitter) = (Delay::of(s.delay), Delay::of(s.jitter));
    let (loss, loss_correlation) = match s.loss {
        Loss::Random { p, correlation } => (p, correlation),
        Loss::State { .. } | Loss::Gemodel { .. } => (Prob::ZERO, Prob::ZERO),
    };
    let gap = if s.reorder.0 > 0 { s.gap.max(1) } else { 0 };
    o.words([delay.ticks, s.limit, loss.0, gap, s.duplicate.0, jitter.ticks]);
    if new {
        with_any(o, CORR, [s.delay_correlation, loss_correlation, s.duplicate_correlation]);
    }
    with_any(o, REORDER, [s.reorder, s.reorder_correlation]);
    if new {
        with_any(o, CORRUPT, [s.corrupt, s.corrupt_correlation]);
        if s.ecn {
            o.put_u32(ECN, 1);
        }
    }
    models(o, s.loss);
    rate(o, s);
    for (kind, time) in [(LATENCY64, delay), (JITTER64, jitter)] {
        if let Some(ns) = time.exact {
            o.put_u64(kind, ns);
        }
    }
    if new {
        if let Some(slot) = &s.slot {
            slots(o, slot);
        }
        table(o, DELAY_DIST, s.distribution);
        if let Some(seed) = extra.seed {
            o.put_u64(PRNG_SEED, seed);
        }
    }
}

/// A time as tc sends it, and in ns where that is not the same.
#[derive(Clone, Copy)]
struct Delay {
    ticks: u32,
    exact: Option<u64>,
}

impl Delay {
    fn of(d: Duration) -> Delay {
        let ticks = ticks(d.0 / 1000);
        Delay { ticks, exact: (u64::from(ticks) * TICK != d.0).then_some(d.0) }
    }
}

/// Probabilities, unless all are 0.
fn with_any<const N: usize>(o: &mut Options, kind: u16, list: [Prob; N]) {
    if list.iter().any(|p| p.0 > 0) {
        o.nest(kind, |o| o.words(list.map(|p| p.0)));
    }
}

/// The loss models that are not plain random loss: `tc_netem_gimodel`, `tc_netem_gemodel`.
fn models(o: &mut Options, loss: Loss) {
    let (kind, numbers): (u16, &[Prob]) = match loss {
        Loss::Random { .. } => return,
        Loss::State { p13, p31, p32, p23, p14 } => (LOSS_GI, &[p13, p31, p32, p14, p23]),
        Loss::Gemodel { p, r, h, k1 } => (LOSS_GE, &[p, r, h, k1]),
    };
    o.nest(LOSS | NESTED, |o| o.nest(kind, |o| numbers.iter().for_each(|p| o.raw(&p.0.to_ne_bytes()))));
}

/// `tc_netem_rate`.
fn rate(o: &mut Options, s: &NetemSpec) {
    let Some(rate) = s.rate else { return };
    let rate = rate.bytes_per_sec();
    if rate > u64::from(u32::MAX) {
        o.put_u64(RATE64, rate);
    }
    o.nest(RATE, |o| o.words([clamp(rate), s.packet_overhead as u32, s.cell_size, s.cell_overhead as u32]));
}

/// `tc_netem_slot`.
fn slots(o: &mut Options, s: &Slot) {
    let (between, drawn) = if s.distribution.is_some() { ([0; 2], [s.min.0, s.max.0]) } else { ([s.min.0, s.max.0], [0; 2]) };
    o.nest(SLOT, |o| {
        between.iter().for_each(|ns| o.raw(&ns.to_ne_bytes()));
        o.words([s.packets, s.bytes]);
        drawn.iter().for_each(|ns| o.raw(&ns.to_ne_bytes()));
    });
    table(o, SLOT_DIST, s.distribution.unwrap_or_default());
}

/// A distribution's table; uniform has none.
fn table(o: &mut Options, kind: u16, distribution: Dist) {
    let Some(table) = dist::table(distribution) else { return };
    o.nest(kind, |o| table.iter().for_each(|v| o.raw(&v.to_ne_bytes())));
}
