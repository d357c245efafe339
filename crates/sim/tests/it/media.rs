//! SCReAM (RFC 8298) in the test cases of RFC 8867 that a network of this kind can express.
//!
//! The cases give paths and what is to be seen, no thresholds. A media flow of 150 kbit/s to 1.5 Mbit/s (§4.3), one-way delay 50 ms, a tail-drop
//! queue of 300 ms (§4.1).

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

/// A trial over `kbit` of media flows that begin at these times, beside `flows`; `forward` changes at these times, s, to these rates, kbit/s.
fn run(secs: u64, kbit: u64, starts: &[u64], flows: &str, changes: &[(u64, u64)]) -> TrialOutput {
    let probes: Vec<String> = starts.iter().map(|s| media(*s)).collect();
    let (ns, probes) = (secs * 1_000_000_000, probes.join(","));
    let json = format!(r#"{{"duration_ns":{ns},"arp":false,"sample_interval_ns":1000000000,"flows":[{flows}],"probes":[{probes}]}}"#);
    let mut plan = Plan::from_json(&json).unwrap();
    plan.forward.stages = link(kbit);
    let change = |(at, kbit): &(u64, u64)| {
        let set = format!(r#"{{"at":{},"kind":"set","set":{{"rate":{}}}}}"#, at * 1_000_000_000, kbit * 1_000);
        serde_json::from_str(&format!(r#"{{"stage":1,"change":{set}}}"#)).unwrap()
    };
    plan.forward.schedule = changes.iter().map(change).collect();
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

/// RFC 8867 §5.4: three flows, each 20 s later than the one before, share 3.5 Mbit/s: nobody starves.
#[test]
fn competing_media_flows_share() {
    let t = run(120, 3_500, &[0, 20, 40], "", &[]);
    let rates = [kbps(&t, 0, 120.0), kbps(&t, 1, 100.0), kbps(&t, 2, 80.0)];
    assert!(rates.iter().all(|r| *r > 3_500.0 / 3.0 * 0.4), "{rates:?}");
    assert!(rates.iter().sum::<f64>() > 0.6 * 3_500.0, "{rates:?}");
}

/// RFC 8867 §5.6: a long TCP flow beside it on 2 Mbit/s: the flow keeps more than the least bitrate, TCP has more than nothing.
#[test]
fn beside_a_long_tcp_flow() {
    let t = run(120, 2_000, &[0], r#"{"cca":"cubic","start_ns":20000000000}"#, &[]);
    let rate = kbps(&t, 0, 120.0);
    assert!(rate > 2.0 * 150.0, "{rate} kbit/s");
    assert!(t.flows[0].goodput_mbps > 0.4, "{}", t.flows[0].goodput_mbps);
}

/// RFC 8298 §4.1.1.8: where no report comes back, a packet leaves every 200 ms and no more.
#[test]
fn without_reports_little_leaves() {
    let json = format!(r#"{{"duration_ns":30000000000,"arp":false,"flows":[],"probes":[{}]}}"#, media(0));
    let mut plan = Plan::from_json(&json).unwrap();
    plan.forward.stages = link(1_000);
    plan.reverse.stages = stages(&["netem delay 50ms loss 100%".into()]);
    let t = CheckedPlan::new(plan).unwrap().run(1);
    assert!(t.probes[0].sent < 5 * 30 + 10, "{:?}", t.probes[0]);
}
