//! TCP Prague against what its draft claims, in closed forms; no released kernel has it to compare with.

use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::results::FlowSummary;
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::TrialOutput;

/// A queue that marks what waited longer than 1 ms, and does nothing else.
const STEP: &str = "codel limit 1000 target 1s interval 2s ecn ce_threshold 1ms";

fn path(words: &[String], host: Host) -> PathSpec {
    let mut p = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    p.stages.iter_mut().for_each(|s| s.at = host);
    p.validate().unwrap();
    p
}

/// Flows behind `mbit` with a queue of `words`, `ms` of RTT.
fn plan(ccas: &[&str], secs: u64, mbit: u32, ms: f64, words: &str) -> Plan {
    let flows: Vec<String> = ccas.iter().map(|c| format!(r#"{{"cca":"{c}"}}"#)).collect();
    let json = format!(r#"{{"duration_ns":{},"arp":false,"flows":[{}]}}"#, secs * 1_000_000_000, flows.join(","));
    let mut p = Plan::from_json(&json).unwrap();
    let delay = format!("netem delay {}ms limit 100000", ms / 2.0);
    p.forward = path(&[delay.clone(), format!("tbf rate {mbit}mbit burst 3028 limit 3028000; {words}")], Host::Router);
    p.reverse = path(&[delay], Host::Receiver);
    p
}

/// Runs one trial.
fn run(p: &Plan, seed: u64) -> TrialOutput {
    CheckedPlan::new(p.clone()).unwrap().run(seed)
}

/// Goodput of the second half of the trial, Mbit/s.
fn goodput(f: &FlowSummary, secs: u64) -> f64 {
    (f.bytes_received - f.bytes_received_first_half) as f64 * 8.0 / (secs as f64 / 2.0) / 1e6
}

/// The same as a share of what the link carries.
fn share(f: &FlowSummary, secs: u64, mbit: u32) -> f64 {
    goodput(f, secs) / (f64::from(mbit) * 1_448.0 / 1_514.0)
}

/// Packets marked at random with probability p: a window W a (virtual) round trip of at least 25 ms grows by 1 − p and loses p·W/2
/// of itself each time that it reacts. It reacts at most once a round trip and then waits for the next mark: after 1 + 1/x round trips,
/// where x = p·W are the marks of one. So x = 2·(1 − p)·(1 + 1/x): x = 2.7 for small p. The draft's "2 marks a round trip" has no such wait:
/// marks at equal distances.
#[test]
fn the_rate_at_random_marks_is_the_same_for_all_short_rtts() {
    for p in [0.01, 0.05] {
        let b: f64 = 2.0 * (1.0 - p);
        let x = (b + (b * b + 4.0 * b).sqrt()) / 2.0;
        for (ms, slack) in [(5.0, 0.12), (10.0, 0.12), (25.0, 0.12), (50.0, 0.15)] {
            let mut plan = plan(&["prague"], 40, 1_000, ms, "bfifo limit 3028000");
            plan.forward.stages[0] =
                path(&[format!("netem delay {}ms loss {}% ecn limit 100000", ms / 2.0, 100.0 * p)], Host::Router).stages[0].clone();
            let t = run(&plan, 1);
            let want = x / p * 1_448.0 * 8.0 / (ms.max(25.0) * 1e3);
            let got = goodput(&t.flows[0], 40);
            assert!((got / want - 1.0).abs() < slack, "p {p}, {ms} ms: {got:.1} Mbit/s, expected {want:.1}");
            assert_eq!(t.flows[0].retransmits, 0);
        }
    }
}

/// A step at 1 ms: the link is full, the queue about as long as the step, nothing is lost, and every mark is known.
#[test]
fn a_step_at_a_millisecond_keeps_the_queue_there() {
    for (mbit, ms) in [(40, 10.0), (40, 40.0), (100, 20.0)] {
        let t = run(&plan(&["prague"], 20, mbit, ms, STEP), 1);
        let f = &t.flows[0];
        let queue = f.rtt_ms.p95 - ms;
        assert!(share(f, 20, mbit) > 0.99, "{mbit} Mbit/s, {ms} ms: {}", share(f, 20, mbit));
        assert!((0.7..2.0).contains(&queue), "{mbit} Mbit/s, {ms} ms: {queue} ms");
        assert_eq!((f.ecn, f.retransmits), (true, 0));
        let known = f.delivered_ce as f64 / f.receiver.unwrap().ce_segments as f64;
        assert!((0.97..=1.0).contains(&known), "{known}");
    }
}

#[test]
fn flows_share_evenly() {
    for n in [2, 4] {
        let t = run(&plan(&vec!["prague"; n], 40, 40, 20.0, STEP), 1);
        for f in &t.flows {
            let fair = share(f, 40, 40) * n as f64;
            assert!((0.85..1.15).contains(&fair), "{n}: {fair}");
        }
    }
}

/// Lost ACKs and super-packets hide wraps of the three bits; the option's bytes find them.
#[test]
fn marks_are_counted_through_lost_acks_and_offload() {
    let mut lossy = plan(&["prague"], 20, 40, 20.0, STEP);
    lossy.reverse = path(&["netem delay 10ms loss 60% limit 100000".into()], Host::Receiver);
    let mut offload = plan(&["prague"], 10, 1_000, 5.0, STEP);
    offload.forward.stages[1] = path(&[format!("tbf rate 1gbit burst 100000 limit 30280000; {STEP}")], Host::Router).stages[0].clone();
    offload.offload = true;
    for p in [lossy, offload] {
        let t = run(&p, 1);
        let f = &t.flows[0];
        assert!(f.receiver.unwrap().ce_segments > 1_000);
        assert!(
            f.delivered_ce.abs_diff(f.receiver.unwrap().ce_segments) * 50 < f.receiver.unwrap().ce_segments,
            "{} {}",
            f.delivered_ce,
            f.receiver.unwrap().ce_segments
        );
    }
}

/// Without marks it is a Reno: full link, a share beside CUBIC, the same goodput at random loss.
#[test]
fn a_queue_that_does_not_mark_meets_a_reno() {
    let fifo = "bfifo limit 100000";
    let t = run(&plan(&["prague"], 20, 40, 20.0, fifo), 1);
    assert!(share(&t.flows[0], 20, 40) > 0.97 && t.flows[0].rtos == Some(0));
    let t = run(&plan(&["prague", "cubic"], 40, 40, 20.0, fifo), 1);
    assert!((0.25..0.75).contains(&share(&t.flows[0], 40, 40)), "{}", share(&t.flows[0], 40, 40));
    let at_loss = |cca: &str| {
        let mut p = plan(&[cca], 60, 20, 40.0, fifo);
        p.forward.stages[0] = path(&["netem delay 20ms loss 1% limit 100000".into()], Host::Router).stages[0].clone();
        goodput(&run(&p, 1).flows[0], 60)
    };
    let ratio = at_loss("prague") / at_loss("reno");
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
}

/// A listener without prague takes the SYN for a classic request: Reno with classic ECN, halving at the step.
#[test]
fn a_listener_without_accurate_feedback_gets_a_classic_reno() {
    let mut p = plan(&["prague"], 20, 40, 20.0, STEP);
    p.flows[0].listener = Some("cubic".into());
    let (t, mut q) = (run(&p, 1), p.clone());
    q.flows[0].cca = "reno".into();
    q.ecn = true;
    let reno = run(&q, 1);
    assert!(t.flows[0].ecn && t.flows[0].ecn_reductions > Some(10));
    assert_eq!(t.flows[0].bytes_received, reno.flows[0].bytes_received, "the same packets");
}

/// Through DualPI2 (RFC 9332), beside CUBIC: each has at least half of its fair share in the mean of four trials (whose shares of CUBIC spread by 0.02), and
/// prague's packets wait about a millisecond where CUBIC's wait 15.
#[test]
fn dualpi2_shares_a_link_between_prague_and_cubic() {
    for (mbit, ms) in [(40, 10.0), (40, 20.0), (40, 40.0), (100, 20.0)] {
        let t = run(&plan(&["prague"], 30, mbit, ms, "dualpi2"), 1);
        let (full, wait) = (share(&t.flows[0], 30, mbit), t.flows[0].rtt_ms.p50 - ms);
        assert!(full > 0.98 && wait < 1.6 && t.flows[0].retransmits == 0, "{mbit} Mbit/s, {ms} ms: {full}, {wait} ms");
        let trials = [1, 2, 3, 4].map(|seed| run(&plan(&["prague", "cubic"], 60, mbit, ms, "dualpi2"), seed));
        let mean = |flow: usize| trials.iter().map(|t| share(&t.flows[flow], 60, mbit)).sum::<f64>() / trials.len() as f64;
        let (a, b, t) = (mean(0), mean(1), &trials[0]);
        let (l, c) = (t.flows[0].rtt_ms.p50 - ms, t.flows[1].rtt_ms.p50 - ms);
        assert!(a + b > 0.97 && a.min(b) > 0.25, "{mbit} Mbit/s, {ms} ms: {a} {b}");
        assert!(l < 2.0 && c > 5.0, "{mbit} Mbit/s, {ms} ms: {l} ms, {c} ms");
        // 2.7 marks a virtual round trip, more or less.
        let marks = t.flows[0].delivered_ce as f64 / (60e3 / f64::max(ms, 25.0));
        assert!((1.8..3.8).contains(&marks), "{mbit} Mbit/s, {ms} ms: {marks} marks a round trip");
    }
}

/// At 10 Mbit/s a packet takes 1.2 ms: one that comes just as another leaves waits longer than the step of 1 ms without any queue of its own. With
/// Linux's default, where the step counts for a lone packet too, such marks come every few packets and PRAGUE is left with a few packets a round trip.
/// Where the step counts only behind two more packets of the low-latency queue, the coupled marks alone hold it, and it has half of the link or more.
#[test]
fn a_step_for_lone_packets_starves_prague_on_a_slow_link() {
    let shares = |words: &str| {
        let t = run(&plan(&["prague", "cubic"], 60, 10, 80.0, words), 1);
        [0, 1].map(|i| share(&t.flows[i], 60, 10))
    };
    let [starved, other] = shares("dualpi2");
    assert!(starved < 0.15 && starved + other > 0.9, "{starved} {other}");
    let [free, other] = shares("dualpi2 min_qlen_step 2");
    assert!(free > 0.5 && free + other > 0.95, "{free} {other}");
}

/// RFC 6937 §3: what leaves while losses are repaired is bounded by what is delivered. Where nine packets of ten are lost from the second second on, the
/// sender dries up and is left with its retransmission timer, as a Reno is; half of a window a round trip would be a link's whole rate.
#[test]
fn extreme_loss_silences_it_as_it_does_a_reno() {
    let offered = |cca: &str| {
        let mut p = plan(&[cca], 20, 3, 250.0, "bfifo limit 200000");
        p.forward.stages[0] = path(&["netem delay 125ms loss 0.0001% limit 100000".into()], Host::Router).stages[0].clone();
        let lossy = r#"{"stage":0,"change":{"kind":"set","at":2000000000,"set":{"loss":3865470566}}}"#; // 90 % of 2³²
        p.forward.schedule = vec![serde_json::from_str(lossy).unwrap()];
        run(&p, 1).flows[0].retransmits
    };
    let (prague, reno) = (offered("prague"), offered("reno"));
    assert!(reno < 200 && prague < 2 * reno, "{prague}, {reno}");
}
