//! netem against worked arithmetic.

use super::*;
use crate::discipline::{spec, Child};
use crate::QdiscSpec;
use tcpscape_base::Ecn;

fn netem(words: &str) -> Netem<u32> {
    Netem::new(&spec::<NetemSpec<QdiscSpec>>(words), None, 11, "test/0/netem")
}
fn packet(n: u32) -> Packet<u32> {
    Packet { id: n.into(), size: 1514, segs: 1, body: n, ..Default::default() }
}
/// Sends `n` packets `gap` ns apart and obeys every wake-up: (arrival, departure, packet) in order of departure.
fn drive(q: &mut Netem<u32>, n: u32, gap: u64) -> Vec<(u64, u64, Packet<u32>)> {
    let (mut f, mut out, mut sent) = (Freed::default(), vec![], 0);
    loop {
        let arrival = if sent < n { Time(u64::from(sent) * gap) } else { Time::MAX };
        let wake = q.next_event();
        let now = arrival.min(wake);
        if now == Time::MAX {
            return out;
        }
        if arrival <= wake {
            q.enqueue(now, packet(sent), &mut f);
            sent += 1;
        }
        let now = if now == Time::ZERO && sent > 0 { Time(u64::from(sent - 1) * gap) } else { now };
        while let Some(p) = q.dequeue(now, &mut f) {
            out.push((u64::from(p.body) * gap, now.0, p));
        }
    }
}

/// Otherwise TCP would send it again as if it had never left, and the copy's ACK would measure an RTT of nothing.
#[test]
fn a_packet_whose_copy_took_the_last_place_counts_as_taken() {
    let (mut q, mut f) = (netem("netem delay 20ms duplicate 100% limit 3"), Freed::default());
    let taken: Vec<bool> = (0..3).map(|i| q.enqueue(Time(0), packet(i), &mut f)).collect();
    assert_eq!((taken, q.packets(), q.meter.s.duplicated, q.meter.s.drops.limit), (vec![true, true, false], 3, 2, 2));
}

#[test]
fn a_constant_delay_keeps_order_and_needs_no_heap() {
    let mut q = netem("netem delay 25ms limit 100000");
    let out = drive(&mut q, 2000, 100_000);
    assert!(out.iter().all(|(a, d, _)| d - a == 25_000_000));
    assert_eq!(q.meter.s.reordered, 0);
    let r = q.meter.report("netem", 0, 0);
    assert_eq!((r.delay.count, r.delay.mean, r.delay.min, r.delay.max), (2000, 25e6, 25_000_000, 25_000_000));
    // 250 packets are under way at a time, and the 251st comes as the first leaves
    assert_eq!(r.peak_packets, 251);
}

#[test]
fn the_limit_is_a_thousand_packets() {
    let mut q = netem("netem delay 1s");
    drive(&mut q, 1500, 1000);
    assert_eq!((q.meter.s.packets_out, q.meter.s.drops.limit), (1000, 500));
}

#[test]
fn a_rate_chains_due_times_and_takes_the_backlog_off_the_delay() {
    // 1514 B at 10 Mbit/s = 1.2112 ms. Packet 0: 5 + 1.2112 ms. Packet 1 comes at the same time; the last one is due in
    // 6.2112 ms, which is more than its own delay of 5 ms: it follows 1.2112 ms after.
    let mut q = netem("netem delay 5ms rate 10mbit");
    let d: Vec<u64> = drive(&mut q, 3, 0).iter().map(|x| x.1).collect();
    assert_eq!(d, [6_211_200, 7_422_400, 8_633_600]);
    // Sent 3 ms apart: packet 1 at 3 ms, last due 6.2112: 5 − 3.2112 + 1.2112 ms after 6.2112 = 9.2112 = 3 + 6.2112.
    let mut q = netem("netem delay 5ms rate 10mbit");
    assert!(drive(&mut q, 5, 3_000_000).iter().all(|(a, d, _)| d - a == 6_211_200));
}

#[test]
fn overheads_and_cells_of_a_rate() {
    // 1514 + 20 = 1534 B in cells of 100: 16 cells of 105 B = 1680 B = 1.344 ms at 10 Mbit/s
    let mut q = netem("netem rate 10mbit 20 100 5");
    assert_eq!(drive(&mut q, 1, 0)[0].1, 1_344_000);
}

#[test]
fn jitter_without_a_table_is_uniform_and_reorders() {
    let mut q = netem("netem delay 25ms 8ms limit 100000");
    let out = drive(&mut q, 100_000, 200_000);
    let delays: Vec<f64> = out.iter().map(|(a, d, _)| (d - a) as f64).collect();
    let mean = delays.iter().sum::<f64>() / 1e5;
    let sd = (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
    // uniform ± 8 ms: sd = 8 / √3 = 4.619 ms
    assert!((mean / 25e6 - 1.0).abs() < 0.002 && (sd / 4.6188e6 - 1.0).abs() < 0.01, "{mean} {sd}");
    assert!(delays.iter().all(|&d| (17e6..33e6).contains(&d)));
    assert!(out.windows(2).all(|w| w[0].1 <= w[1].1), "released by due time");
    assert!(q.meter.s.reordered > 50_000);
}

#[test]
fn a_negative_delay_is_due_at_once() {
    let mut q = netem("netem delay 1ms 1s distribution normal limit 1000000");
    let out = drive(&mut q, 10_000, 1_000_000);
    let zero = out.iter().filter(|(a, d, _)| a == d).count();
    assert!((4800..5200).contains(&zero), "half of the draws are below zero: {zero}");
}

#[test]
fn correlation_of_the_delay_is_lost_in_the_remainder() {
    // The draw is taken modulo 2σ (or modulo the table's 4096 entries): only its low bits count, and those do not
    // remember. So spread and independence are as without correlation, in Linux too.
    let mut q = netem("netem delay 25ms 8ms 50% limit 100000");
    let mut out = drive(&mut q, 100_000, 50_000_000);
    out.sort_by_key(|x| x.0);
    let d: Vec<f64> = out.iter().map(|(a, d, _)| (d - a) as f64 - 25e6).collect();
    let var = d.iter().map(|x| x * x).sum::<f64>() / 1e5;
    let cov = d.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / 1e5;
    assert!((var.sqrt() / 4.6188e6 - 1.0).abs() < 0.01 && (cov / var).abs() < 0.02, "{} {}", var.sqrt(), cov / var);
}

#[test]
fn correlation_of_losses_makes_rare_ones_rarer() {
    // x' = (1−ρ)u + ρx concentrates around one half: at ρ = ½, P(x' ≤ 1 %) is far below 1 %.
    let mut q = netem("netem loss 1% 50% limit 1000000");
    drive(&mut q, 200_000, 1_000);
    assert!(q.meter.s.drops.loss < 200, "{}", q.meter.s.drops.loss);
}

#[test]
fn ecn_marks_what_can_be_marked_and_loses_the_rest() {
    let mut q = netem("netem loss 100% ecn");
    let mut f = Freed::default();
    q.enqueue(Time(0), Packet { ecn: Ecn::Ect0, ..packet(0) }, &mut f);
    q.enqueue(Time(0), packet(1), &mut f);
    let p = q.dequeue(Time(0), &mut f).unwrap();
    assert_eq!((p.body, p.ecn), (0, Ecn::Ce));
    assert_eq!((q.packets(), q.meter.s.marked, q.meter.s.drops.loss), (0, 1, 1));
}

#[test]
fn duplicates_are_copies_that_are_not_copied_again() {
    let mut q = netem("netem delay 5ms duplicate 100%");
    let out = drive(&mut q, 100, 1_000_000);
    assert_eq!((out.len(), q.meter.s.duplicated, q.meter.s.reordered), (200, 100, 0));
    // with loss: a lost original leaves its copy alone, and the copy meets the loss too
    let mut q = netem("netem duplicate 100% loss 50% limit 100000");
    let n = drive(&mut q, 20_000, 1_000).len() as f64;
    // P(original passes) = ½ gives 1 + ½ copies; otherwise one packet: mean ½·1.5 + ½·1 = 1.25
    assert!((n / 25_000.0 - 1.0).abs() < 0.02, "{n}");
}

#[test]
fn corruption_flags_a_packet_and_cuts_an_offloaded_one() {
    let mut q = netem("netem corrupt 100%");
    assert!(drive(&mut q, 10, 1000).iter().all(|x| x.2.corrupt));
    let mut f = Freed::default();
    q.enqueue(Time(0), Packet { size: 4542, segs: 3, ..packet(1) }, &mut f);
    assert_eq!((q.packets(), q.meter.s.segmented), (3, 2));
}

#[test]
fn reorder_sends_every_fifth_at_once() {
    let mut q = netem("netem delay 10ms reorder 100% gap 5");
    let out = drive(&mut q, 20, 1_000_000);
    for (a, d, p) in &out {
        assert_eq!(d - a, if p.body % 5 == 4 { 0 } else { 10_000_000 }, "{}", p.body);
    }
    // each of the 4 overtakers passes packets that came before and leave after it: 4, then 2 · 4 …
    assert_eq!(q.meter.s.packets_out, 20);
    assert!(q.meter.s.reordered > 0);
}

#[test]
fn slots_hand_out_two_packets_each_ten_ms() {
    let mut q = netem("netem slot 10ms packets 2");
    let d: Vec<u64> = drive(&mut q, 6, 0).iter().map(|x| x.1).collect();
    // The slot open at the start lets two pass; then two every 10 ms.
    assert_eq!(d, [0, 0, 10_000_000, 10_000_000, 20_000_000, 20_000_000]);
}

#[test]
fn a_child_gets_what_is_due() {
    // After 5 ms of delay, a tbf spaces packets by 1.2112 ms, the first from its full bucket.
    let child = crate::parse_tc("tbf rate 10mbit burst 1514 limit 62500").unwrap().build(11, "test/0/netem");
    let mut q: Netem<u32> = Netem::new(&spec::<NetemSpec<QdiscSpec>>("netem delay 5ms"), Some(child), 11, "test/0/netem");
    let d: Vec<u64> = drive(&mut q, 3, 0).iter().map(|x| x.1).collect();
    assert_eq!(d, [5_000_000, 6_211_200, 7_422_400]);
    assert_eq!(q.packets(), 0);
}

#[test]
fn what_waits_keeps_its_due_time_over_a_change() {
    let (mut q, mut f) = (netem("netem delay 25ms"), Freed::default());
    q.enqueue(Time(0), packet(0), &mut f);
    q.change(Time(1), 0, &Patch { delay: Some(Duration::millis(5)), ..Default::default() });
    q.enqueue(Time(1), packet(1), &mut f);
    assert_eq!(q.next_event(), Time(5_000_001));
    assert_eq!(q.dequeue(Time(5_000_001), &mut f).unwrap().body, 1);
    assert_eq!(q.next_event(), Time(25_000_000));
}

#[test]
fn adding_an_impairment_moves_no_other_draws() {
    let fate = |words: &str| {
        let out = drive(&mut netem(words), 3_000, 1_000_000);
        out.iter().map(|(a, d, p)| (p.body, d - a)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let plain = fate("netem delay 25ms 8ms limit 100000");
    let lossy = fate("netem delay 25ms 8ms loss 0% corrupt 3% limit 100000");
    assert_eq!(plain, lossy, "corruption does not touch the delays");
    let a = fate("netem delay 1ms loss 10% limit 100000");
    let b = fate("netem delay 1ms 1ms loss 10% limit 100000");
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "jitter does not touch the losses");
}

/// A packet's time is bounded, whatever the words say about its overhead.
#[test]
fn an_enormous_cell_takes_a_day() {
    let mut q = netem("netem rate 8bit 2000000000 1 2000000000");
    assert!(q.enqueue(Time(0), packet(1), &mut Freed::default()));
    assert_eq!(q.next_event(), Time(86_400_000_000_000));
}
