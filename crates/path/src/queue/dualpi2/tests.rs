use super::*;
use crate::discipline::{spec, try_spec, Freed, Qdisc};
use tcpscape_base::{Ecn, Packet, Time};

const MS: u64 = 1_000_000;

fn queue(words: &str) -> Queued<u32, DualPi2<u32>> {
    Queued::new(DualPi2::new(&spec(words), 1, "t"))
}
fn packet(ecn: Ecn) -> Packet<u32> {
    Packet { size: 1514, segs: 1, ecn, ..Default::default() }
}
fn share(p: u64) -> f64 {
    p as f64 / 2f64.powi(32)
}

#[test]
fn the_controller_moves_by_alpha_and_beta() {
    // At 16 ms the first packet is 16 ms old: 0.16 · (16 − 15) ms + 3.2 · 16 ms = 0.05135; then 32 ms: + 0.16 · 17 ms + 3.2 · 16 ms.
    let mut q = queue("dualpi2");
    (0..3).for_each(|_| assert!(q.enqueue(Time(0), packet(Ecn::NotEct), &mut Freed::default())));
    q.dequeue(Time(16 * MS - 1), &mut Freed::default());
    q.enqueue(Time(16 * MS), packet(Ecn::NotEct), &mut Freed::default());
    let first = share(*q.policy.base());
    assert!((first - (41.0 * 0.001 + 819.0 * 0.016) / 256.0).abs() < 1e-8, "{first}");
    q.enqueue(Time(32 * MS), packet(Ecn::NotEct), &mut Freed::default());
    let second = share(*q.policy.base());
    assert!((second - first - (41.0 * 0.017 + 819.0 * 0.016) / 256.0).abs() < 1e-8, "{second}");
}

/// Drops and marks among 100,000 packets of a kind at a p' of 10 %, with the controller at rest.
fn signals(words: &str, ecn: Ecn, base: f64) -> (f64, f64) {
    let mut q = queue(&format!("{words} tupdate 200s step_thresh 200s"));
    let (mut f, n) = (Freed::default(), 100_000);
    (0..3).for_each(|_| assert!(q.enqueue(Time(0), packet(ecn), &mut f)));
    *q.policy.base() = (base * 2f64.powi(32)) as u64;
    for _ in 0..n {
        q.enqueue(Time(0), packet(ecn), &mut f);
        q.dequeue(Time(0), &mut f);
        while q.packets() < 3 {
            q.enqueue(Time(0), packet(ecn), &mut f);
        }
    }
    let (drops, marks) = (q.account.meter.s.drops.aqm, q.account.meter.s.marked);
    (drops as f64 / f64::from(n), marks as f64 / f64::from(n))
}

#[test]
fn classic_is_squared_and_low_latency_doubled() {
    // p' = 0.1: C drops 1 %, marks ECT(0) 1 % instead; L is marked 20 %.
    let (drops, marks) = signals("dualpi2", Ecn::NotEct, 0.1);
    assert!((drops - 0.01).abs() < 0.0015 && marks == 0.0, "{drops}");
    let (drops, marks) = signals("dualpi2", Ecn::Ect0, 0.1);
    assert!(drops == 0.0 && (marks - 0.01).abs() < 0.0015, "{marks}");
    let (drops, marks) = signals("dualpi2", Ecn::Ect1, 0.1);
    assert!(drops == 0.0 && (marks - 0.2).abs() < 0.005, "{marks}");
    let (_, marks) = signals("dualpi2 coupling_factor 4", Ecn::Ect1, 0.1);
    assert!((marks - 0.4).abs() < 0.006, "{marks}");
}

#[test]
fn overload_drops_low_latency_too() {
    // p' = 0.6, 2p' > 1: each that is not dropped with 0.36 is marked.
    let (drops, marks) = signals("dualpi2", Ecn::Ect1, 0.6);
    assert!((drops / (drops + marks) - 0.36).abs() < 0.01, "{drops} {marks}");
    let (drops, _) = signals("dualpi2 overflow", Ecn::Ect1, 0.6);
    assert_eq!(drops, 0.0);
}

#[test]
fn a_packet_of_l_that_waited_a_millisecond_is_marked() {
    let mut q = queue("dualpi2");
    let mut f = Freed::default();
    (0..3).for_each(|_| assert!(q.enqueue(Time(0), packet(Ecn::Ect1), &mut f)));
    assert_eq!(q.dequeue(Time(MS), &mut f).unwrap().ecn, Ecn::Ect1);
    assert_eq!(q.dequeue(Time(MS + 1), &mut f).unwrap().ecn, Ecn::Ce);
    let mut q = queue("dualpi2 step_thresh 1pkt");
    (0..3).for_each(|_| assert!(q.enqueue(Time(0), packet(Ecn::Ect1), &mut f)));
    let got: Vec<Ecn> = std::iter::from_fn(|| q.dequeue(Time(0), &mut f)).map(|p| p.ecn).collect();
    assert_eq!(got, [Ecn::Ce, Ecn::Ect1, Ecn::Ect1]);
}

#[test]
fn classic_keeps_a_tenth_of_the_turns() {
    let mut q = queue("dualpi2 tupdate 200s");
    let mut f = Freed::default();
    for _ in 0..400 {
        q.enqueue(Time(0), packet(Ecn::Ect1), &mut f);
        q.enqueue(Time(0), packet(Ecn::NotEct), &mut f);
    }
    let got: Vec<bool> = (0..300).filter_map(|_| q.dequeue(Time(0), &mut f)).map(|p| p.ecn == Ecn::NotEct).collect();
    let classic = got[100..].iter().filter(|&&c| c).count();
    assert!(classic.abs_diff(20) <= 1, "{classic} of 200");
    assert!(!got[0], "L first");
}

#[test]
fn words_come_back_and_round_trips_tune() {
    for words in [
        "dualpi2",
        "dualpi2 limit 500 coupling_factor 4 classic_protection 20 step_thresh 2ms target 20ms tupdate 10ms alpha 0.5 beta 2 overflow",
        "dualpi2 memlimit 100000 min_qlen_step 2 step_thresh 5pkts drop_enqueue any_ect no_split_gso",
    ] {
        assert_eq!(spec::<DualPi2Spec>(words).words(), words);
    }
    // RFC 9332 appendix A.1 for 100 ms: 0.1 · 0.015/0.01 = 0.15 Hz, 0.3/0.1 = 3 Hz.
    let s: DualPi2Spec = spec("dualpi2 max_rtt 100ms typical_rtt 15ms");
    assert_eq!((s.target, s.tupdate, s.alpha, s.beta), (Some(Duration::millis(15)), Some(Duration::millis(15)), Some(38), Some(768)));
    for (words, why) in [("dualpi2 typical_rtt 5ms", "max_rtt"), ("dualpi2 alpha x", "in Hz"), ("dualpi2 targt 5ms", "not understood")] {
        let e = try_spec::<DualPi2Spec>(words).unwrap_err().to_string();
        assert!(e.contains(why) && !e.contains('\n'), "{e}");
    }
}
