//! Golden tables: what every congestion control of the registry carries on the same few paths, reviewed as text.
//!
//! `golden/NAME.txt` has goodput over loss and buffer, over jitter, and the shares of two flows. A change that moves one needs a
//! sentence in CHANGELOG.md that says why. `UPDATE_GOLDEN=1 cargo test -p tcpscape-sim --test it golden` writes them anew.

use std::fmt::Write as _;
use std::path::PathBuf;
use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::TrialOutput;
use tcpscape_tcp::cc;

/// 20 Mbit/s and 40 ms hold 100,000 bytes.
const BDP: f64 = 100_000.0;
const BUFFERS: [f64; 3] = [0.5, 1.0, 4.0];

fn path(words: &[String], host: Host) -> PathSpec {
    let mut p = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    p.stages.iter_mut().for_each(|s| s.at = host);
    p
}

/// Flows of these controls behind one bottleneck of 20 Mbit/s with a buffer of `bdp`.
fn trials(ccas: &[&str], secs: u64, netem: &str, bdp: f64, seeds: &[u64]) -> Vec<TrialOutput> {
    let flows: Vec<String> = ccas.iter().map(|c| format!(r#"{{"cca":"{c}"}}"#)).collect();
    let json = format!(r#"{{"duration_ns":{},"arp":false,"flows":[{}]}}"#, secs * 1_000_000_000, flows.join(","));
    let mut p = Plan::from_json(&json).unwrap();
    let mut forward = vec![format!("netem {netem} limit 100000")];
    forward.push(format!("tbf rate 20mbit burst 6056 limit {:.0}", bdp * BDP));
    p.forward = path(&forward, Host::Router);
    p.reverse = path(&[format!("netem {} limit 100000", netem.split(" loss").next().unwrap())], Host::Receiver);
    let p = CheckedPlan::new(p).unwrap();
    seeds.iter().map(|&s| p.run(s)).collect()
}

fn mean(t: &[TrialOutput], flow: usize) -> f64 {
    t.iter().map(|t| t.flows[flow].goodput_mbps).sum::<f64>() / t.len() as f64
}

fn table(cca: &str) -> String {
    let mut s = format!("{cca}: 20 Mbit/s, 40 ms, buffers in BDP\n\ngoodput, Mbit/s\n{:>10}", "loss");
    BUFFERS.iter().for_each(|b| write!(s, "{b:>9}").unwrap());
    for loss in ["0%", "0.1%", "1%"] {
        write!(s, "\n{loss:>10}").unwrap();
        for b in BUFFERS {
            let seeds: &[u64] = if loss == "0%" { &[1] } else { &[1, 2] };
            let t = trials(&[cca], 10, &format!("delay 20ms loss {loss}"), b, seeds);
            write!(s, "{:>9.2}", mean(&t, 0)).unwrap();
        }
    }
    write!(s, "\n\njitter (normal, each way), a buffer of 4\n").unwrap();
    for jitter in ["1ms", "3ms", "6ms", "10ms"] {
        let t = trials(&[cca], 10, &format!("delay 20ms {jitter} distribution normal"), 4.0, &[1, 2]);
        writeln!(s, "{jitter:>10}{:>9.2}", mean(&t, 0)).unwrap();
    }
    write!(s, "\nshares of two flows, 30 s: its own goodput | the other's, Mbit/s\n{:>10}", "against").unwrap();
    BUFFERS.iter().for_each(|b| write!(s, "{b:>15}").unwrap());
    for other in ["cubic", cca] {
        write!(s, "\n{:>10}", if other == cca && cca != "cubic" { "itself" } else { other }).unwrap();
        for b in BUFFERS {
            let t = trials(&[cca, other], 30, "delay 20ms", b, &[1]);
            write!(s, "{:>15}", format!("{:.2} | {:.2}", mean(&t, 0), mean(&t, 1))).unwrap();
        }
        if cca == "cubic" {
            break;
        }
    }
    s + "\n"
}

#[test]
fn every_control_carries_what_it_did() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut moved = String::new();
    for e in cc::REGISTRY {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{}.txt", e.name));
        let now = table(e.name);
        if update {
            std::fs::write(&file, now).unwrap();
            continue;
        }
        let was = std::fs::read_to_string(&file).unwrap_or_default();
        if was != now {
            write!(moved, "\n--- {}, was\n{was}--- is\n{now}", e.name).unwrap();
        }
    }
    assert!(moved.is_empty(), "golden tables moved; say why in CHANGELOG.md and write them anew with UPDATE_GOLDEN=1:{moved}");
}
