//! Receivers that misbehave: each lie is seen in what it is meant to change, and in nothing else.

use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::results::FlowSummary;
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;

/// A flow of `cca` for 20 s over 10 Mbit/s and 40 ms behind `words`, whose receiver is as `lie` says.
fn flow(cca: &str, words: &str, lie: &str) -> FlowSummary {
    let how = if lie.is_empty() { String::new() } else { format!(r#","misbehaves":"{lie}""#) };
    let json = format!(r#"{{"duration_ns":20000000000,"arp":false,"ecn":true,"flows":[{{"cca":"{cca}"{how}}}]}}"#);
    let mut plan = Plan::from_json(&json).unwrap();
    let at = |words: &[&str], host: Host| {
        let mut path = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
        path.stages.iter_mut().for_each(|s| s.at = host);
        path
    };
    plan.forward = at(&["netem delay 20ms limit 100000", words], Host::Router);
    plan.reverse = at(&["netem delay 20ms limit 100000"], Host::Receiver);
    CheckedPlan::new(plan).unwrap().run(1).flows[0].clone()
}

const LOSSY: &str = "netem rate 10mbit loss 2% limit 100";
const MARKING: &str = "tbf rate 10mbit burst 3028 limit 300000; codel target 5ms interval 100ms ecn";

/// A sender that does not see losses keeps the link full where one that does has 1.2 / sqrt(0.02) packets a round trip, a quarter of it: 5,000 packets in 20 s,
/// of which 2 % are sent again. What was lost is not counted as received, by either.
#[test]
fn losses_that_are_acknowledged_are_not_seen() {
    let (honest, lie) = (flow("reno", LOSSY, ""), flow("reno", LOSSY, "optimistic"));
    assert!(honest.goodput_mbps < 4.0 && honest.retransmits > 50, "{} {}", honest.goodput_mbps, honest.retransmits);
    assert!(lie.goodput_mbps > 9.0 && lie.retransmits < 10, "{} {}", lie.goodput_mbps, lie.retransmits);
}

/// RFC 3465 §2.3 has the reason: a sender that counts bytes or packets instead of acknowledgements gives nothing for dividing them.
#[test]
fn divided_acknowledgements_change_nothing_but_their_number() {
    let (honest, lie) = (flow("reno", LOSSY, ""), flow("reno", LOSSY, "dividing"));
    let acks = |f: &FlowSummary| f.receiver.unwrap().acks;
    assert!(acks(&lie) > 4 * acks(&honest), "{} {}", acks(&lie), acks(&honest));
    assert!((0.75..1.33).contains(&(lie.goodput_mbps / honest.goodput_mbps)), "{} {}", lie.goodput_mbps, honest.goodput_mbps);
}

/// Without the echo no reduction: the sender fills the buffer of 300 kB, 240 ms, until it overflows; with it the queue stays below half of that.
#[test]
fn marks_that_are_concealed_reduce_nothing() {
    for cca in ["reno", "prague"] {
        let (honest, lie) = (flow(cca, MARKING, ""), flow(cca, MARKING, "concealing"));
        assert!(honest.rtt_ms.p95 < 40.0 + 120.0 && honest.delivered_ce > 5, "{cca}: {} {}", honest.rtt_ms.p95, honest.delivered_ce);
        assert!(lie.rtt_ms.p95 > 40.0 + 200.0 && lie.delivered_ce == 0, "{cca}: {} {}", lie.rtt_ms.p95, lie.delivered_ce);
    }
}
