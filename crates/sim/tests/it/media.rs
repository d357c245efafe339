//! SCReAM (RFC 8298) in the test cases of RFC 8867 that a network of this kind can express.
//!
//! The cases give paths and what is to be seen, no thresholds. A media flow of 150 kbit/s to 1.5 Mbit/s (§4.3), one-way delay 50 ms, a tail-drop
//! queue of 300 ms (§4.1). Capacities and times of §5.2 to §5.6 are those of draft-ietf-rmcat-eval-test, of which the RFC is the last revision.

use tcpscape_path::{parse_tc, Host, PathSpec, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::{CheckedPlan, TrialOutput};

fn stages(words: &[String]) -> Vec<StageSpec> {
    let mut path = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    path.stages.iter_mut().for_each(|s| s.at = Host::Router);
    path.stages
}

/// A link of `kbit` with 50 ms and 300 ms of queue.
fn link(kbit: u64) -> Vec<StageSpec> {
    stages(&["netem delay 50ms limit 100000".into(), format!("tbf rate {kbit}kbit burst 1600 limit {}", kbit * 300 / 8)])
}

fn media(start_s: u64) -> String {
    let media = r#""media":{"least_bps":150000,"most_bps":1500000}"#;
    format!(r#"{{"kind":"scream","size":1200,"interval_ns":40000000,"start_ns":{},{media}}}"#, start_s * 1_000_000_000)
}

/// The entry of a schedule by which the link carries `kbit` from `at_s` on.
fn change((at_s, kbit): (u64, u64)) -> serde_json::Value {
    serde_json::json!({"stage": 1, "change": {"at": at_s * 1_000_000_000, "kind": "set", "set": {"rate": kbit * 1_000}}})
}

/// A trial over `kbit` of media flows that begin at these times, beside `flows`; `forward` changes at these times, s, to these rates, kbit/s.
fn run(secs: u64, kbit: u64, starts: &[u64], flows: &str, changes: &[(u64, u64)]) -> TrialOutput {
    let probes: Vec<String> = starts.iter().map(|s| media(*s)).collect();
    let (ns, probes) = (secs * 1_000_000_000, probes.join(","));
    let json = format!(r#"{{"duration_ns":{ns},"arp":false,"sample_interval_ns":1000000000,"flows":[{flows}],"probes":[{probes}]}}"#);
    let mut plan = Plan::from_json(&json).unwrap();
    plan.forward.stages = link(kbit);
    plan.forward.schedule = changes.iter().map(|c| serde_json::from_value(change(*c)).unwrap()).collect();
    plan.reverse.stages = stages(&["netem delay 50ms limit 100000".into()]);
    CheckedPlan::new(plan).unwrap().run(1)
}

/// Mean bitrate of media flow `i`, which ran for `secs`, kbit/s.
fn kbps(t: &TrialOutput, i: usize, secs: f64) -> f64 {
    t.probes[i].media_bytes.unwrap() as f64 * 8.0 / 1e3 / secs
}

/// Delays of the packets that were encoded between these times, ms, in order; lost ones left out.
fn delays(t: &TrialOutput, i: u32, from_s: u64, to_s: u64) -> Vec<f64> {
    let range = from_s * 1_000_000_000..to_s * 1_000_000_000;
    let s = &t.probe_samples;
    let of = (0..s.t_ns.len()).filter(|&k| s.probe[k] == i && range.contains(&s.t_ns[k]) && s.delay_ns[k] != u64::MAX);
    let mut ms: Vec<f64> = of.map(|k| s.delay_ns[k] as f64 / 1e6).collect();
    ms.sort_by(f64::total_cmp);
    ms
}

/// RFC 8867 §5.1: one flow while the capacity changes: 1, 2.5, 0.6 and 1 Mbit/s. In the second half of each it has converged: it uses most of what there is
/// (its largest bitrate is 1.5 Mbit/s); what arrives has waited for at most a second in the sender, behind a frame, and behind the 37,500 bytes of the queue (300 ms at 1 Mbit/s).
#[test]
fn variable_capacity_of_one_flow() {
    let changes = [(40, 2_500), (60, 600), (80, 1_000)];
    let bytes = |secs: u64| {
        run(secs, 1_000, &[0], "", &changes[..changes.iter().filter(|(at, _)| *at < secs).count()]).probes[0].media_bytes.unwrap()
    };
    let t = run(100, 1_000, &[0], "", &changes);
    for (from, to, kbit) in [(20, 40, 1_000), (50, 60, 1_500), (70, 80, 600), (90, 100, 1_000)] {
        let used = (bytes(to) - bytes(from)) as f64 * 8.0 / 1e3 / (to - from) as f64 / f64::from(kbit);
        let d = delays(&t, 0, from, to);
        assert!((0.8..=1.01).contains(&used), "{from} to {to} s: {used} of {kbit} kbit/s");
        assert!(d[d.len() - 1] < 50.0 + 300_000.0 / f64::from(kbit) + 1_000.0 + 2.0 * 40.0, "{from} to {to} s: {} ms", d[d.len() - 1]);
    }
    assert!(t.probes[0].lost * 50 < t.probes[0].sent, "{:?}", t.probes[0]);
}

/// RFC 8298 §4.1.3: outside fast increase the target rises by at most 0.2 s × 200 kbit/s each time and falls by 5 % while packets wait for 20 ms, so it rests
/// where 0.95 (T + 40) = T, at 760 kbit/s. A link below carries less than the target, until almost a second of packets in the sender makes the
/// rise small; a link above does not.
#[test]
fn a_thin_link_leaves_its_queue_in_the_sender() {
    let network_ms = 50.0 + 300.0;
    for (kbit, is_thin) in [(600, true), (700, true), (740, true), (900, false), (1_000, false), (1_200, false)] {
        let d = delays(&run(120, kbit, &[0], "", &[]), 0, 60, 120);
        assert_eq!(d[d.len() / 2] > network_ms, is_thin, "{kbit} kbit/s: {} ms", d[d.len() / 2]);
    }
}

/// RFC 8867 §5.2: two flows while the capacity changes: 4, 2, 3.5, 1 and 2 Mbit/s. They share it: none has less than half of a fair part.
#[test]
fn variable_capacity_of_two_flows() {
    let t = run(125, 4_000, &[0, 0], "", &[(25, 2_000), (50, 3_500), (75, 1_000), (100, 2_000)]);
    let (rates, fair) = ([kbps(&t, 0, 125.0), kbps(&t, 1, 125.0)], [1_500.0, 1_000.0, 1_500.0, 500.0, 1_000.0].iter().sum::<f64>() / 5.0);
    assert!(rates.iter().all(|r| *r > fair / 2.0), "{rates:?} of {fair}");
    assert!(t.probes.iter().all(|p| p.lost * 50 < p.sent), "{:?}", t.probes);
}

/// RFC 8867 §5.3: a media flow each way for 100 s. The way there has 2, 1, 0.5 and 2 Mbit/s; the way back falls from 2 to 0.8 Mbit/s for 35 s, where reports
/// of the forward flow wait behind the other's packets. The forward flow copes: it keeps at least 80 % of what it has while the way back stays as it is,
/// which is the case's own reference.
#[test]
fn a_congested_way_back_costs_the_forward_flow_little() {
    let kbps_of_both = |back: &[(u64, u64)]| {
        let up = media(0).replace(r#""kind""#, r#""up":true,"kind""#);
        let json = format!(r#"{{"duration_ns":100000000000,"arp":false,"flows":[],"probes":[{},{up}]}}"#, media(0));
        let mut plan = Plan::from_json(&json).unwrap();
        (plan.forward.stages, plan.reverse.stages) = (link(2_000), link(2_000));
        let schedule = |changes: &[(u64, u64)]| changes.iter().map(|c| serde_json::from_value(change(*c)).unwrap()).collect();
        (plan.forward.schedule, plan.reverse.schedule) = (schedule(&[(20, 1_000), (40, 500), (60, 2_000)]), schedule(back));
        let t = CheckedPlan::new(plan).unwrap().run(1);
        [kbps(&t, 0, 100.0), kbps(&t, 1, 100.0)]
    };
    let ([reference, free], [forward, back]) = (kbps_of_both(&[]), kbps_of_both(&[(35, 800), (70, 2_000)]));
    assert!(reference > 0.5 * (20.0 * 1_500.0 + 20.0 * 1_000.0 + 20.0 * 500.0 + 40.0 * 1_500.0) / 100.0, "{reference} kbit/s");
    assert!(forward > 0.8 * reference, "{forward} of {reference} kbit/s");
    assert!(back < free, "{back} of {free} kbit/s");
}

/// RFC 8867 §5.4: three flows, each 20 s later than the one before, share 3.5 Mbit/s: nobody starves.
#[test]
fn competing_media_flows_share() {
    let t = run(120, 3_500, &[0, 20, 40], "", &[]);
    let rates = [kbps(&t, 0, 120.0), kbps(&t, 1, 100.0), kbps(&t, 2, 80.0)];
    assert!(rates.iter().all(|r| *r > 3_500.0 / 3.0 * 0.4), "{rates:?}");
    assert!(rates.iter().sum::<f64>() > 0.6 * 3_500.0, "{rates:?}");
}

/// RFC 8867 §5.6: 2 Mbit/s with a long TCP flow, which it joins after 5 s: the flow keeps more than the least bitrate, TCP has more than nothing.
#[test]
fn beside_a_long_tcp_flow() {
    let t = run(120, 2_000, &[5], r#"{"cca":"cubic"}"#, &[]);
    let rate = kbps(&t, 0, 115.0);
    assert!(rate > 2.0 * 150.0, "{rate} kbit/s");
    assert!(t.flows[0].goodput_mbps > 0.4, "{}", t.flows[0].goodput_mbps);
}

/// Where no report comes back, a packet leaves every 200 ms and no more: the least rate that RFC 8298 §3 asks for without giving it.
#[test]
fn without_reports_little_leaves() {
    let json = format!(r#"{{"duration_ns":30000000000,"arp":false,"flows":[],"probes":[{}]}}"#, media(0));
    let mut plan = Plan::from_json(&json).unwrap();
    plan.forward.stages = link(1_000);
    plan.reverse.stages = stages(&["netem delay 50ms loss 100%".into()]);
    let t = CheckedPlan::new(plan).unwrap().run(1);
    assert!(t.probes[0].sent < 5 * 30 + 10, "{:?}", t.probes[0]);
}
