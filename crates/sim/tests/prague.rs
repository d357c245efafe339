//! TCP Prague against what its draft claims, in closed forms; no released kernel has it to compare with.

use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_sim::{run, FlowSummary, Plan, TrialOutput};

fn path(words: &[String], host: Host) -> PathSpec {
    let mut p = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    p.stages.iter_mut().for_each(|s| s.at = host);
    p.validate().unwrap();
    p
}

/// Flows behind `mbit` with a queue of `words`, `ms` of RTT.
fn plan(flows: &[&str], secs: u64, mbit: u32, ms: f64, words: &str) -> Plan {
    let flows: Vec<String> =
        flows.iter().map(|f| if f.starts_with('{') { (*f).to_owned() } else { format!(r#"{{"cca":"{f}"}}"#) }).collect();
    let json = format!(r#"{{"duration_ns":{},"arp":false,"flows":[{}]}}"#, secs * 1_000_000_000, flows.join(","));
    let mut p = Plan::from_json(&json).unwrap();
    p.forward = path(
        &[format!("netem delay {}ms limit 100000", ms / 2.0), format!("tbf rate {mbit}mbit burst 3028 limit 3028000; {words}")],
        Host::Router,
    );
    p.reverse = path(&[format!("netem delay {}ms limit 100000", ms / 2.0)], Host::Receiver);
    p
}

/// Goodput of the second half of the trial, as a share of the link's.
fn share(f: &FlowSummary, secs: u64, mbit: u32) -> f64 {
    (f.bytes_received - f.bytes_received_first_half) as f64 * 8.0 / (secs as f64 / 2.0) / 1e6 / (f64::from(mbit) * 1_448.0 / 1_514.0)
}

fn show(what: &str, t: &TrialOutput, secs: u64, mbit: u32) {
    for f in &t.flows {
        println!("{what}: {} ecn {} share {:.3} marks {}/{} of {} reductions {} retrans {} rtos {} rtt min {:.2} p50 {:.2} p95 {:.2} p99 {:.2} cwnd {:.1} limited {:?}",
            f.cca, f.ecn, share(f, secs, mbit), f.delivered_ce, f.receiver.ce_segments, f.data_segs_out, f.ecn_reductions, f.retransmits, f.rtos, f.rtt_ms.min, f.rtt_ms.p50, f.rtt_ms.p95, f.rtt_ms.p99, f.cwnd.mean, f.limited_by);
    }
    for (n, q) in t.queues.iter().filter(|q| q.1.name != "netem") {
        println!(
            "   {n} {} marked {} dropped {:?} delay p50 {} p95 {} p99 {} us",
            q.name,
            q.marked,
            q.drops,
            q.delay.p50 / 1000,
            q.delay.p95 / 1000,
            q.delay.p99 / 1000
        );
    }
}

#[test]
fn explore() {
    let step = "codel limit 1000 target 1s interval 2s ecn ce_threshold 1ms";
    for (mbit, ms) in [(40, 10.0), (40, 40.0), (100, 20.0), (10, 20.0), (2, 20.0), (40, 100.0)] {
        show(&format!("step {mbit} {ms}"), &run(&plan(&["prague"], 20, mbit, ms, step), 1), 20, mbit);
    }
    show("dctcp", &run(&plan(&["dctcp"], 20, 40, 10.0, step), 1), 20, 40);
    for n in [2, 4] {
        show("several", &run(&plan(&vec!["prague"; n], 40, 40, 20.0, step), 1), 40, 40);
    }
    for q in ["bfifo limit 100000", "codel limit 1000", "fq_codel limit 1000"] {
        show(q, &run(&plan(&["prague"], 20, 40, 20.0, q), 1), 20, 40);
        show(q, &run(&plan(&["prague", "cubic"], 40, 40, 20.0, q), 1), 40, 40);
    }
    show("fallback", &run(&plan(&[r#"{"cca":"prague","listener":"cubic"}"#], 20, 40, 20.0, step), 1), 20, 40);
    let mut p = plan(&[r#"{"cca":"prague","listener":"cubic"}"#], 20, 40, 20.0, step);
    p.ecn = true;
    show("classic", &run(&p, 1), 20, 40);
}

#[test]
fn explore_marks() {
    for loss in [1.0, 2.0, 5.0, 20.0] {
        for ms in [5.0, 10.0, 25.0, 50.0] {
            let mut p = plan(&["prague"], 60, 1000, ms, "bfifo limit 1000000");
            p.forward = path(
                &[format!("netem delay {}ms loss {loss}% ecn limit 100000", ms / 2.0), "tbf rate 1gbit burst 60000 limit 3028000".into()],
                Host::Router,
            );
            let t = run(&p, 1);
            let f = &t.flows[0];
            let mbps = (f.bytes_received - f.bytes_received_first_half) as f64 * 8.0 / 30e6;
            let pr = loss / 100.0;
            let want = 2.0 * (1.0 - pr) / pr * 1448.0 * 8.0 / (ms.max(25.0) * 1e3);
            println!(
                "p {loss} rtt {ms}: {mbps:.2} want {want:.2} ratio {:.3} marks {} of {} retr {}",
                mbps / want,
                f.delivered_ce,
                f.data_segs_out,
                f.retransmits
            );
        }
    }
}

#[test]
fn explore_cost() {
    let step = "codel limit 1000 target 1s interval 2s ecn ce_threshold 1ms";
    for _ in 0..3 {
        for (c, q) in [
            ("cubic", "bfifo limit 200000"),
            ("reno", "bfifo limit 200000"),
            ("bbr", "bfifo limit 200000"),
            ("bbr3", "bfifo limit 200000"),
            ("dctcp", step),
            ("prague", step),
            ("prague", "bfifo limit 200000"),
        ] {
            let p = plan(&[c], 60, 40, 40.0, q);
            let at = std::time::Instant::now();
            let t = run(&p, 1);
            let us = at.elapsed().as_micros() as f64;
            println!("cost {c}: {:.0} ns a packet, {:.2} M events", us * 1e3 / t.flows[0].data_segs_out as f64, t.arrivals as f64 / 1e6);
        }
    }
}
