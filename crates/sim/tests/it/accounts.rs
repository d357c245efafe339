//! The accounts of trials over random paths: nothing is missing, no link carries more than its rate, no RTT is below the path's delay.

use tcpscape_base::Stream;
use tcpscape_path::{parse_tc, Host, PathSpec, StageSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;

const NETEMS: [&str; 9] = [
    "netem delay 5ms",
    "netem delay 8ms 4ms duplicate 20% corrupt 3% reorder 10% gap 2 limit 30",
    "netem delay 3ms duplicate 60% limit 3",
    "netem delay 4ms rate 8mbit limit 20 corrupt 5%",
    "netem slot 1ms 5ms packets 3 delay 2ms loss 2%",
    "netem loss gemodel 1% 20% duplicate 5% delay 6ms 9ms",
    "netem rate 20mbit 20 53 5 reorder 30% delay 2ms",
    "netem corrupt 30% duplicate 30%",
    "netem limit 2 delay 1ms",
];
const SHAPERS: [&str; 5] = [
    "tbf rate 6mbit burst 4000 limit 9000",
    "tbf rate 2mbit burst 9373 limit 20000 peakrate 9mbit mtu 1514",
    "htb rate 9mbit",
    "htb rate 5mbit ceil 4mbit burst 3000 cburst 2000",
    "tbf rate 900kbit burst 1514 limit 3028",
];
const LEAVES: [&str; 11] = [
    "pfifo limit 3",
    "bfifo limit 2000",
    "pfifo_head_drop limit 4",
    "red limit 20000 min 3000 max 9000 avpkt 1000",
    "codel limit 12",
    "fq_codel limit 9 drop_batch 2",
    "pie limit 9",
    "cake bandwidth 4mbit memlimit 9000",
    "fq limit 20 flow_limit 6",
    "sfq limit 9",
    "dualpi2 limit 12",
];

fn pick<'a>(s: &mut Stream, list: &[&'a str]) -> &'a str {
    list[s.below(list.len() as u32) as usize]
}

/// One queue, or one in another.
fn words(s: &mut Stream) -> String {
    let (netem, shaper, leaf) = (pick(s, &NETEMS), pick(s, &SHAPERS), pick(s, &LEAVES));
    match s.below(7) {
        0 => netem.to_owned(),
        1 => format!("{netem}; {leaf}"),
        2 => format!("{netem}; {shaper}; {leaf}"),
        3 => format!("{shaper}; {netem}"),
        4 => format!("{shaper}; {leaf}"),
        5 => format!("{shaper}; {netem}; {leaf}"),
        _ => leaf.to_owned(),
    }
}

fn stages(s: &mut Stream) -> Vec<StageSpec> {
    let mut at = [Host::Sender, Host::Router][s.below(2) as usize];
    let count = 1 + s.below(3);
    (0..count)
        .map(|_| {
            let stage = StageSpec { qdisc: parse_tc(&words(s)).unwrap(), at };
            at = Host::Router;
            stage
        })
        .collect()
}

fn plan(s: &mut Stream) -> Plan {
    let flows = (0..1 + s.below(3)).map(|_| format!(r#"{{"cca":"{}"}}"#, pick(s, &["cubic", "bbr", "reno", "prague"]))).collect::<Vec<_>>();
    let json =
        format!(r#"{{"duration_ns":700000000,"offload":{},"ecn":{},"flows":[{}]}}"#, s.below(2) == 0, s.below(2) == 0, flows.join(","));
    let mut plan = Plan::from_json(&json).unwrap();
    plan.forward = PathSpec { stages: stages(s), ..PathSpec::default() };
    // Something between the hosts takes time, or the trial is one instant.
    plan.forward.stages.push(StageSpec { qdisc: parse_tc("netem delay 1ms").unwrap(), at: Host::Router });
    plan.reverse = PathSpec { stages: stages(s), ..PathSpec::default() };
    plan.reverse.stages.iter_mut().for_each(|stage| stage.at = Host::Router);
    plan
}

#[test]
fn every_trial_keeps_its_accounts() {
    let text = |p: &PathSpec| p.stages.iter().map(|s| s.qdisc.to_tc()).collect::<Vec<_>>().join(" | ");
    for n in 0..count() {
        let mut s = Stream::new(n, "accounts");
        let plan = plan(&mut s);
        let trial = CheckedPlan::new(plan.clone()).unwrap().run(n);
        let paths = || format!("trial {n}: {} || {}", text(&plan.forward), text(&plan.reverse));
        trial.check_accounts(&plan).unwrap_or_else(|e| panic!("{}\n{e}", paths()));
    }
}

/// A superpacket of 64 KiB has 863 headers at the least MTU: so much may leave an htb beyond its bucket before a trial ends.
#[test]
fn a_debt_is_a_packet_with_all_its_headers() {
    let json = r#"{"duration_ns":2000000000,"mtu":128,"offload":true,"flows":[{"cca":"reno"}],"forward":{"stages":[
        {"qdisc":{"kind":"htb","rate":1000000000},"at":"sender"},{"qdisc":{"kind":"netem","limit":1000,"delay":1000},"at":"router"}]}}"#;
    let checked = CheckedPlan::new(Plan::from_json(json).unwrap()).unwrap();
    let owed = (0..40).map(|n| {
        let trial = checked.run_within(1, 3_000 + n);
        trial.check_accounts(checked.plan()).unwrap_or_else(|e| panic!("{n}: {e}"));
        trial.queues[0].stats.bytes_out as f64 - trial.ended_s * 125e6
    });
    assert!(owed.fold(0.0, f64::max) > 68_000.0, "no trial ended in such a debt");
}

/// Packets that came out of a link at the instant at which a trial ended have not entered the next one.
#[test]
fn what_came_out_at_the_end_is_not_missed() {
    let netem = |more: &str| format!(r#"{{"stages":[{{"qdisc":{{"kind":"netem","limit":1000,"delay":0{more}}},"at":"router"}}]}}"#);
    let json = format!(
        r#"{{"duration_ns":20000000,"forward":{},"reverse":{},"places":[{{"enter":0,"leave":1,"near":{{"forward":{},"reverse":{}}}}}],
        "flows":[{{"cca":"reno","start_ns":58,"stop_ns":1788}},{{"cca":"reno","start_ns":0,"stop_ns":0}},{{"cca":"reno","start_ns":7,"stop_ns":0}}]}}"#,
        netem(""),
        netem(r#","duplicate":4294967295"#),
        netem(""),
        netem(""),
    );
    let checked = CheckedPlan::new(Plan::from_json(&json).unwrap()).unwrap();
    let untaken: u64 = (0..2_000)
        .map(|work| {
            let trial = checked.run_within(0, work);
            trial.check_accounts(checked.plan()).unwrap_or_else(|e| panic!("{work}: {e}"));
            trial.untaken.iter().sum::<u64>()
        })
        .sum();
    assert!(untaken > 0, "no trial ended between two links");
}

/// On a path that loses nothing a receiver gets every byte that its sender sent, also what is on its way at the end; goodput is those bytes over the
/// time from the SYN-ACK to the end that the plan says. All three are read off the packets at the sender.
#[test]
fn goodput_is_what_the_packets_at_the_sender_show() {
    let json = r#"{"duration_ns":4000000000,"trace_packets":true,
        "forward":{"stages":[{"qdisc":{"kind":"netem","limit":100000,"delay":20000000,"rate":20000000},"at":"router"}]},
        "reverse":{"stages":[{"qdisc":{"kind":"netem","limit":100000,"delay":5000000},"at":"router"}]},
        "flows":[{"cca":"cubic","rcvbuf":100000},{"cca":"reno","rcvbuf":60000,"start_ns":700000000,"stop_ns":2900000000},
            {"cca":"cubic","start_ns":3990000000}]}"#;
    let ends_s = [4.0, 2.9, 4.0];
    let trial = CheckedPlan::new(Plan::from_json(json).unwrap()).unwrap().run(1);
    let p = &trial.packets;
    let of = |flow: usize, received: u8| (0..p.seq.len()).filter(move |&k| p.flow[k] as usize == flow && p.received[k] == received);
    for (i, (flow, end_s)) in trial.flows.iter().zip(ends_s).enumerate() {
        // The SYN has the number 0, so that the numbers of data end with their count and one.
        let bytes = of(i, 0).map(|k| p.seq[k] + u64::from(p.len[k])).max().map_or(0, |end| end.saturating_sub(1));
        let expected = of(i, 1).next().map_or(0.0, |syn_ack| bytes as f64 * 8e-6 / (end_s - p.t_ns[syn_ack] as f64 * 1e-9));
        assert!((flow.goodput_mbps - expected).abs() <= 1e-9 * expected, "flow {i}: {} Mbit/s, {expected} expected", flow.goodput_mbps);
    }
    assert!(trial.flows[0].goodput_mbps > 5.0 && trial.flows[1].goodput_mbps > 3.0, "both carried data");
    assert_eq!(trial.flows[2].goodput_mbps, 0.0, "its SYN-ACK came after the end");
}

/// Trials to run: `TCPSCAPE_ACCOUNT_TRIALS` for more.
fn count() -> u64 {
    std::env::var("TCPSCAPE_ACCOUNT_TRIALS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}
