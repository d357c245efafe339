//! What a trial holds in memory: `memory SECONDS CONTROLS SENDER ROUTER [FIELDS]`, with tc's words for the sender's egress and the router
//! (empty for none), controls as `cubic*2,bbr`, and more fields of the plan as JSON. Prints the peak of resident memory (Linux) and what was carried.

use tcpscape_path::{parse_tc, Host, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;

/// The most memory that the process has held, kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// `cubic*2,bbr` as a list of names.
fn names(controls: &str) -> Vec<&str> {
    let group = |g| -> Vec<&str> {
        let (name, count) = str::split_once(g, '*').unwrap_or((g, "1"));
        vec![name; count.parse().expect("a number of flows")]
    };
    controls.split(',').flat_map(group).collect()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, controls, sender, router) = match &args[..] {
        [seconds, controls, sender, router, ..] => (seconds, controls, sender, router),
        _ => panic!("SECONDS CONTROLS SENDER ROUTER [FIELDS]"),
    };
    let flows: Vec<String> = names(controls).iter().map(|name| format!(r#"{{"cca":"{name}"}}"#)).collect();
    let fields = args.get(4).map_or(r#""kernel":"6.1""#, String::as_str);
    let ns = (seconds.parse::<f64>().expect("s") * 1e9) as u64;
    let json = format!(r#"{{"duration_ns":{ns},{fields},"flows":[{}]}}"#, flows.join(","));
    let mut plan = Plan::from_json(&json).expect("a plan");
    let hop = |words: &str, at| -> Vec<StageSpec> {
        match words {
            "" => Vec::new(),
            _ => vec![StageSpec { qdisc: parse_tc(words).expect("words"), at }],
        }
    };
    plan.forward.stages = [hop(sender, Host::Sender), hop(router, Host::Router)].concat();
    plan.reverse.stages = hop("netem delay 25ms limit 10000000", Host::Receiver);
    let plan = CheckedPlan::new(plan).expect("a plan that can run");
    let before = peak_kb();
    let trial = plan.run(1);
    let megabytes = trial.flows.iter().map(|f| f.bytes_received).sum::<u64>() / 1_000_000;
    println!("{before} kB before, {} kB at most, {} events, {megabytes} MB carried", peak_kb(), trial.events);
}
