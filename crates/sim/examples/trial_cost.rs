//! One flow of a congestion control on the benchmark's path, for a count of instructions from outside: `trial_cost NAME SECONDS`;
//! prints the ACKs that its sender got.

use tcpscape_path::{parse_tc, Host, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds] = &args[..] else { panic!("NAME SECONDS") };
    let ns = seconds.parse::<u64>().expect("s") * 1_000_000_000;
    let json = format!(
        r#"{{"duration_ns": {ns}, "flows": [{{"cca": "{name}", "rcvbuf": 4200000, "sndbuf": 4200000}}],
        "kernel": {{"profile": "6.1", "rmem_max": 1073741824, "wmem_max": 1073741824}}}}"#
    );
    let mut plan = Plan::from_json(&json).expect("a plan");
    let hop = |words: &str, at| StageSpec { qdisc: parse_tc(words).expect("words"), at };
    plan.forward.stages =
        vec![hop("netem delay 25ms limit 10000000", Host::Sender), hop("tbf rate 42mbit burst 6056 limit 262500", Host::Router)];
    plan.reverse.stages = vec![hop("netem delay 25ms limit 10000000", Host::Receiver)];
    let trial = CheckedPlan::new(plan).expect("a plan that can run").run(1);
    println!("{}", trial.flows[0].segs_in);
}
