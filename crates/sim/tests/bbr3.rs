//! BBR version 3 against what its draft claims, in closed forms; no kernel has it to compare with.

use std::sync::{Arc, Mutex};
use tcpscape_base::CaState;
use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_sim::{run, run_with, Controls, FlowSummary, Plan, TrialOutput};
use tcpscape_tcp::cc::InAck;
use tcpscape_tcp::cc::{self, AckSample, CaEvent, CongestionController, LostPacket, PktsAcked, Snapshot, View, Window};

/// 20 Mbit/s and 40 ms: 66 packets of 1,514 bytes.
const RATE: f64 = 20.0;
const BDP: f64 = 66.0;

fn path(words: &[String], host: Host) -> PathSpec {
    let mut p = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    p.stages.iter_mut().for_each(|s| s.at = host);
    p.validate().unwrap();
    p
}

/// Flows behind 20 Mbit/s with a buffer of `bdp`, 20 ms each way.
fn plan(ccas: &[&str], secs: u64, netem: &str, bdp: f64) -> Plan {
    let flows: Vec<String> = ccas.iter().map(|c| format!(r#"{{"cca":"{c}"}}"#)).collect();
    let json = format!(r#"{{"duration_ns":{},"arp":false,"flows":[{}]}}"#, secs * 1_000_000_000, flows.join(","));
    let mut p = Plan::from_json(&json).unwrap();
    let limit = 1_514.0 * BDP * bdp;
    p.forward =
        path(&[format!("netem delay 20ms {netem} limit 100000"), format!("tbf rate 20mbit burst 6056 limit {limit:.0}")], Host::Router);
    p.reverse = path(&["netem delay 20ms limit 100000".into()], Host::Receiver);
    p
}

fn share(f: &FlowSummary, secs: u64) -> f64 {
    (f.bytes_received - f.bytes_received_first_half) as f64 * 8.0 / (secs as f64 / 2.0) / 1e6 / (RATE * 1_448.0 / 1_514.0)
}

#[test]
fn explore() {
    for (loss, b, secs) in [("", 4.0, 12), ("", 1.0, 12), ("", 0.5, 12), ("", 0.2, 12), ("loss 1%", 1.0, 12), ("loss 3%", 1.0, 12)] {
        for cca in ["bbr", "bbr3"] {
            let mut p = plan(&[cca], secs, loss, b);
            p.sample_interval_ns = 20_000_000;
            let t = run(&p, 1);
            let f = &t.flows[0];
            println!(
                "{cca} {loss} {b}: share {:.3} retrans {} of {} rtt p50 {:?}",
                share(f, secs),
                f.retransmits,
                f.data_segs_out,
                f.rtt_ms
            );
        }
    }
    for b in [0.5, 1.0, 2.0, 4.0, 8.0] {
        for cca in ["bbr", "bbr3"] {
            let t = run(&plan(&[cca, "cubic"], 60, "", b), 1);
            println!("{cca}+cubic {b}: {:.2} {:.2}", t.flows[0].goodput_mbps, t.flows[1].goodput_mbps);
            let t = run(&plan(&[cca, cca], 60, "", b), 1);
            println!("{cca}+itself {b}: {:.2} {:.2}", share(&t.flows[0], 60), share(&t.flows[1], 60));
        }
    }
}
