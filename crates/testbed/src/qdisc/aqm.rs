//! The options of red, choke, codel, fq_codel, pie and fq_pie. Source: tc-red(8), tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-fq_pie(8),
//! linux/pkt_sched.h.
//!
//! What is the kernel's default is not sent, as tc does not send what nobody said.
//! How it differs from tc: an adaptive red says its flags inside its parameters, as tc did before 5.7, for only then does the kernel
//! start to adapt.

use super::options::Options;
use tcpscape_base::Duration;
use tcpscape_path::queue::codel::law::Law as CodelLaw;
use tcpscape_path::queue::pie::law::Law as PieLaw;
use tcpscape_path::queue::red::tc::Computed;
use tcpscape_path::queue::{ChokeSpec, CodelSpec, FqCodelSpec, FqPieSpec, PieSpec, RedSpec};

/// `TCA_RED_*`.
const RED_PARMS: u16 = 1;
const RED_STAB: u16 = 2;
const RED_MAX_P: u16 = 3;
const RED_FLAGS: u16 = 4;
/// `TC_RED_ECN`, `TC_RED_HARDDROP`, `TC_RED_ADAPTATIVE`, `TC_RED_NODROP`: values, and the mask of all.
const RED_ALL: u32 = 15;

/// Fills red's `TCA_OPTIONS`.
pub fn red(o: &mut Options, s: &RedSpec) {
    let computed = Computed::of(s).expect("the scenario was checked when it was read");
    let bit = |on: bool, n: u32| u32::from(on) << n;
    let flags = bit(s.ecn, 0) | bit(s.harddrop, 1) | bit(s.adaptive, 2) | bit(s.nodrop, 3);
    o.nest(RED_PARMS, |o| {
        o.words([s.limit, s.min, s.max]);
        o.raw(&[computed.wlog, computed.plog, computed.cell_log, if s.adaptive { flags as u8 } else { 0 }]);
    });
    o.put(RED_STAB, &computed.damping);
    o.put_u32(RED_MAX_P, computed.max_p);
    if !s.adaptive {
        o.nest(RED_FLAGS, |o| o.words([flags, RED_ALL]));
    }
}

/// Fills choke's `TCA_OPTIONS`: `TCA_CHOKE_*` are the first three of red's, and thresholds count packets.
pub fn choke(o: &mut Options, s: &ChokeSpec) {
    let computed = s.computed().expect("the scenario was checked when it was read");
    o.nest(RED_PARMS, |o| {
        o.words([s.limit, s.min, s.max]);
        o.raw(&[computed.wlog, computed.plog, computed.cell_log, u8::from(s.ecn)]);
    });
    o.put(RED_STAB, &computed.damping);
    o.put_u32(RED_MAX_P, computed.max_p);
}

fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}

/// Adds numbers that differ from the default.
fn differing(o: &mut Options, list: &[(u16, u32, u32)]) {
    list.iter().filter(|(_, value, default)| value != default).for_each(|&(kind, value, _)| o.put_u32(kind, value));
}

/// `TCA_CODEL_*` and `TCA_FQ_CODEL_*` are the same up to 4.
const CODEL_TARGET: u16 = 1;
const CODEL_LIMIT: u16 = 2;
const CODEL_INTERVAL: u16 = 3;
const CODEL_ECN: u16 = 4;
const CODEL_CE_THRESHOLD: u16 = 5;
const FQ_CODEL_FLOWS: u16 = 5;
const FQ_CODEL_QUANTUM: u16 = 6;
const FQ_CODEL_CE_THRESHOLD: u16 = 7;
const FQ_CODEL_DROP_BATCH: u16 = 8;
const FQ_CODEL_MEMORY: u16 = 9;

fn codel_law(o: &mut Options, l: &CodelLaw, d: &CodelLaw, ce_threshold: u16) {
    differing(
        o,
        &[
            (CODEL_TARGET, micros(l.target), micros(d.target)),
            (CODEL_INTERVAL, micros(l.interval), micros(d.interval)),
            (CODEL_ECN, l.ecn.into(), d.ecn.into()),
        ],
    );
    if let Some(t) = l.ce_threshold {
        o.put_u32(ce_threshold, micros(t));
    }
}

/// Fills codel's `TCA_OPTIONS`.
pub fn codel(o: &mut Options, s: &CodelSpec) {
    let d = CodelSpec::default();
    differing(o, &[(CODEL_LIMIT, s.limit, d.limit)]);
    codel_law(o, &s.law, &d.law, CODEL_CE_THRESHOLD);
}

/// Fills fq_codel's `TCA_OPTIONS`.
pub fn fq_codel(o: &mut Options, s: &FqCodelSpec) {
    let d = FqCodelSpec::default();
    differing(
        o,
        &[
            (CODEL_LIMIT, s.limit, d.limit),
            (FQ_CODEL_FLOWS, s.flows, d.flows),
            (FQ_CODEL_QUANTUM, s.quantum, d.quantum),
            (FQ_CODEL_MEMORY, s.memory_limit, d.memory_limit),
            (FQ_CODEL_DROP_BATCH, s.drop_batch, d.drop_batch),
        ],
    );
    codel_law(o, &s.law, &d.law, FQ_CODEL_CE_THRESHOLD);
}

/// The first of `TCA_PIE_*` for PIE's own numbers, in this order.
const PIE: PieKinds = PieKinds { target: 1, tupdate: 3, alpha: 4, beta: 5, ecn: 6, bytemode: 7, estimator: 8 };
const PIE_LIMIT: u16 = 2;
/// `TCA_FQ_PIE_*`.
const FQ_PIE: PieKinds = PieKinds { target: 3, tupdate: 4, alpha: 5, beta: 6, ecn: 10, bytemode: 11, estimator: 12 };
const FQ_PIE_LIMIT: u16 = 1;
const FQ_PIE_FLOWS: u16 = 2;
const FQ_PIE_QUANTUM: u16 = 7;
const FQ_PIE_MEMORY: u16 = 8;
const FQ_PIE_ECN_PROB: u16 = 9;

/// Where PIE's own numbers go.
struct PieKinds {
    target: u16,
    tupdate: u16,
    alpha: u16,
    beta: u16,
    ecn: u16,
    bytemode: u16,
    estimator: u16,
}

fn pie_law(o: &mut Options, l: &PieLaw, d: &PieLaw, k: &PieKinds) {
    differing(
        o,
        &[
            (k.target, micros(l.target), micros(d.target)),
            (k.tupdate, micros(l.tupdate), micros(d.tupdate)),
            (k.alpha, l.alpha, d.alpha),
            (k.beta, l.beta, d.beta),
            (k.ecn, l.ecn.into(), d.ecn.into()),
            (k.bytemode, l.bytemode.into(), d.bytemode.into()),
            (k.estimator, l.dq_rate_estimator.into(), d.dq_rate_estimator.into()),
        ],
    );
}

/// Fills pie's `TCA_OPTIONS`.
pub fn pie(o: &mut Options, s: &PieSpec) {
    let d = PieSpec::default();
    differing(o, &[(PIE_LIMIT, s.limit, d.limit)]);
    pie_law(o, &s.law, &d.law, &PIE);
}

/// Fills fq_pie's `TCA_OPTIONS`.
pub fn fq_pie(o: &mut Options, s: &FqPieSpec) {
    let d = FqPieSpec::default();
    differing(
        o,
        &[
            (FQ_PIE_LIMIT, s.limit, d.limit),
            (FQ_PIE_FLOWS, s.flows, d.flows),
            (FQ_PIE_QUANTUM, s.quantum, d.quantum),
            (FQ_PIE_MEMORY, s.memory_limit, d.memory_limit),
            (FQ_PIE_ECN_PROB, s.ecn_prob, d.ecn_prob),
        ],
    );
    pie_law(o, &s.law, &d.law, &FQ_PIE);
}
