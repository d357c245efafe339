//! Networks of several links, round-trip times and directions: worked arithmetic, symmetry, conservation, determinism.

use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::results::QueueAccount;
use tcpscape_plan::{LinkId, LinkPlan, PlacePlan, Plan};
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::TrialOutput;

const MS: u64 = 1_000_000;

/// Queues of routers, in tc's words.
fn path(words: &[&str]) -> PathSpec {
    at(words, Host::Router)
}

fn at(words: &[&str], host: Host) -> PathSpec {
    let mut path = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    path.stages.iter_mut().for_each(|s| s.at = host);
    path
}

fn link(forward: &[&str], reverse: &[&str]) -> LinkPlan {
    LinkPlan { forward: path(forward), reverse: path(reverse) }
}

/// A plan of these flows over one link, at one place without links of its own.
fn plan(ms: u64, flows: &str, first: LinkPlan) -> Plan {
    let json = format!(r#"{{"duration_ns":{},"write_cost_ns":0,"timer_slack_ns":0,"wake_noise_ns":0,"flows":[{flows}]}}"#, ms * MS);
    let mut plan = Plan::from_json(&json).unwrap();
    (plan.forward, plan.reverse) = (first.forward, first.reverse);
    plan.places = vec![PlacePlan { enter: 0, leave: 1, ..PlacePlan::default() }];
    plan
}

/// Runs a plan, whose results must keep the laws.
fn run(plan: &Plan, seed: u64) -> TrialOutput {
    let trial = CheckedPlan::new(plan.clone()).unwrap().run(seed);
    trial.check_accounts(plan).unwrap();
    trial
}

/// The accounts of a link's direction.
fn queues<'a>(t: &'a TrialOutput, link: LinkId, direction: &'a str) -> impl Iterator<Item = &'a QueueAccount> {
    t.queues.iter().filter(move |q| q.link == Some(link) && q.direction.name() == direction)
}

fn finite(bytes: u64, more: &str) -> String {
    format!(r#"{{"cca":"reno","app":{{"kind":"finite","bytes":{bytes},"chunk":{bytes}}}{more}}}"#)
}

/// One link of 8 Mbit/s and 5 ms each way; behind it 5 and 35 ms more, on the left and on the right. The SYN of 74 bytes takes 74 µs.
#[test]
fn two_flows_over_one_link_have_their_own_round_trip_times() {
    let flows = [finite(1, ""), finite(1, r#","place":1,"start_ns":500000000"#)].join(",");
    let mut plan = plan(2_000, &flows, link(&["netem rate 8mbit limit 100", "netem delay 5ms"], &["netem delay 5ms"]));
    let far = link(&["netem delay 5ms"], &["netem delay 5ms"]);
    let near = link(&["netem delay 35ms"], &["netem delay 35ms"]);
    plan.places[0].far = far;
    plan.places.push(PlacePlan { enter: 0, leave: 1, near, far: LinkPlan::default() });
    let trial = run(&plan, 1);
    assert_eq!([0, 1].map(|i| trial.flows[i].rtt_ms.min), [20.074, 80.074]);
    assert_eq!(trial.flows.iter().map(|f| f.bytes_received).collect::<Vec<_>>(), [1, 1]);
    let names: Vec<String> = trial.queues.iter().map(|q| format!("{} {}", q.link.unwrap(), q.direction)).collect();
    let chain = ["chain/0 forward", "chain/0 forward", "chain/0 reverse"];
    assert_eq!(names, [&chain[..], &["far/0 forward", "far/0 reverse", "near/1 forward", "near/1 reverse"]].concat());
    assert_eq!(trial.queues.iter().map(|q| q.pipe.unwrap()).collect::<Vec<_>>(), [1, 1, 2, 5, 6, 7, 8]);
}

/// The way back takes 1 byte a µs. The upload's SYN (74 bytes) leaves at 0 and its SYN+ACK is back at 20.074 ms; then its ACK and ten segments stand in the
/// queue for 66 + 10 · 1514 = 15,206 µs, until 35.280 ms. The download's SYN of 15 ms is answered at 25 ms: that answer leaves at 35.280 + 0.074 ms,
/// and is there 10 ms later: 30.354 ms after the SYN. The ACK of its byte finds the queue empty: 20.066 ms.
#[test]
fn an_acknowledgement_waits_behind_the_data_of_the_other_direction() {
    let flows = [finite(1, r#","start_ns":15000000"#), finite(14_480, r#","up":true"#)].join(",");
    let plan = plan(1_000, &flows, link(&["netem delay 10ms"], &["netem rate 8mbit limit 100", "netem delay 10ms"]));
    let trial = run(&plan, 1);
    let rtt = trial.flows[0].rtt_ms;
    assert_eq!((rtt.min, rtt.max), (20.066, 30.354));
    assert_eq!(trial.flows[1].rtt_ms.min, 20.074);
    assert_eq!(trial.flows[1].bytes_received, 14_480);
}

/// Three links of 10 Mbit/s; one flow over all of them, and one over each. On each link they share what it carries.
#[test]
fn a_parking_lot_has_a_bottleneck_at_each_link() {
    let flows: Vec<String> = (0..4).map(|place| format!(r#"{{"cca":"cubic","place":{place}}}"#)).collect();
    let words = ["netem delay 2ms", "tbf rate 10mbit burst 3028 limit 60000"];
    let hop = || link(&words, &["netem delay 2ms"]);
    let mut plan = plan(20_000, &flows.join(","), hop());
    plan.links = vec![hop(), hop()];
    let place = |enter, leave| PlacePlan { enter, leave, ..PlacePlan::default() };
    plan.places = vec![place(0, 3), place(0, 1), place(1, 2), place(2, 3)];
    let trial = run(&plan, 1);
    let goodput = |i: usize| trial.flows[i].goodput_mbps;
    for i in 1..4 {
        let sum = goodput(0) + goodput(i);
        // 1448 bytes of each frame of 1514 are payload: 9.56 Mbit/s, and the first burst.
        assert!((8.5..9.6).contains(&sum), "link {i}: {sum} Mbit/s");
        assert!(goodput(0) < goodput(i), "the flow over three links has {} Mbit/s, that of link {i} {}", goodput(0), goodput(i));
        let carried: u64 = queues(&trial, LinkId::Chain(i - 1), "forward").last().unwrap().stats.bytes_out;
        assert!(carried as f64 * 8.0 <= 10e6 * 20.1, "link {i} carried {carried} bytes");
    }
    assert!((trial.flows[0].rtt_ms.min - 12.0) < 2.0 && trial.flows[0].rtt_ms.min >= 12.0, "{:?}", trial.flows[0].rtt_ms);
}

/// What leaves a link of a lossless chain enters the next one, both ways, and everything arrives.
#[test]
fn packets_are_conserved_from_link_to_link() {
    let flows = r#"{"cca":"cubic"},{"cca":"bbr","up":true}"#;
    let hop = |rate: &str| link(&["netem delay 3ms", rate], &["netem delay 3ms", rate]);
    let mut plan = plan(3_000, flows, hop("tbf rate 20mbit burst 3028 limit 6000000"));
    plan.links = vec![hop("tbf rate 10mbit burst 3028 limit 6000000")];
    plan.places[0].leave = 2;
    let trial = run(&plan, 3);
    let count = |i, way: &'static str| {
        let q: Vec<_> = queues(&trial, LinkId::Chain(i), way).filter(|q| q.stats.depth == 0).map(|q| &q.stats).collect();
        (q.first().unwrap().packets_in, q.last().unwrap().packets_out)
    };
    assert_eq!(count(0, "forward").1, count(1, "forward").0);
    assert_eq!(count(1, "reverse").1, count(0, "reverse").0);
    assert_eq!(count(1, "forward").1 + count(0, "reverse").1, trial.arrivals);
    assert!(trial.flows.iter().all(|f| f.bytes_received > 1_000_000), "{:?}", trial.flows);
}

fn mirrored(plan: &Plan) -> Plan {
    let mut other = plan.clone();
    let last = plan.links.len() + 1;
    let mut links: Vec<LinkPlan> = vec![LinkPlan { forward: plan.forward.clone(), reverse: plan.reverse.clone() }];
    links.extend(plan.links.iter().cloned());
    let turned = |l: &LinkPlan| LinkPlan { forward: l.reverse.clone(), reverse: l.forward.clone() };
    let mut links: Vec<LinkPlan> = links.iter().rev().map(turned).collect();
    let first = links.remove(0);
    (other.forward, other.reverse, other.links) = (first.forward, first.reverse, links);
    let place = |p: &PlacePlan| PlacePlan { enter: last - p.leave, leave: last - p.enter, near: turned(&p.far), far: turned(&p.near) };
    other.places = plan.places.iter().map(place).collect();
    other.flows.iter_mut().for_each(|f| f.up = !f.up);
    other
}

/// A network and its mirror image are the same trial, where nothing is random.
#[test]
fn up_is_down_in_a_mirror() {
    let flows = r#"{"cca":"cubic"},{"cca":"bbr","up":true,"place":1},{"cca":"reno","place":1,"start_ns":100000000}"#;
    let hop = || {
        link(&["netem delay 2ms", "tbf rate 10mbit burst 3028 limit 60000"], &["netem delay 3ms", "tbf rate 2mbit burst 3028 limit 30000"])
    };
    let mut plan = plan(5_000, flows, hop());
    plan.links = vec![hop()];
    let near = link(&["netem delay 4ms"], &["netem delay 6ms"]);
    plan.places =
        vec![PlacePlan { enter: 0, leave: 2, near, far: LinkPlan::default() }, PlacePlan { enter: 1, leave: 2, ..PlacePlan::default() }];
    let (a, b) = (run(&plan, 1), run(&mirrored(&plan), 1));
    assert_eq!((a.hash, a.arrivals), (b.hash, b.arrivals));
}

/// The same without places, where both hosts have queues of their own: what the sender's host does, the right one does as a sender.
#[test]
fn the_right_host_sends_as_the_left_one_does() {
    let delay = "netem delay 20ms limit 100000";
    for own in ["fq", "tbf rate 5mbit burst 6056 limit 40000", "fq_codel", "pfifo limit 20", ""] {
        for offload in [false, true] {
            let own: Vec<&str> = [own].into_iter().filter(|w| !w.is_empty()).collect();
            let ways = |from: Host, to: Host| {
                let mut there = at(&own, from);
                there.stages.extend(path(&["tbf rate 10mbit burst 6056 limit 30000"]).stages);
                let mut back = at(&["pfifo limit 1000"], to);
                back.stages.extend(path(&[delay]).stages);
                (there, back)
            };
            let mut down = plan(3_000, r#"{"cca":"bbr"},{"cca":"cubic","start_ns":50000000}"#, LinkPlan::default());
            (down.places, down.offload) = (Vec::new(), offload);
            let mut up = down.clone();
            up.flows.iter_mut().for_each(|f| f.up = true);
            (down.forward, down.reverse) = ways(Host::Sender, Host::Receiver);
            (up.reverse, up.forward) = ways(Host::Receiver, Host::Sender);
            let (a, b) = (run(&down, 1), run(&up, 1));
            assert!(a.flows.iter().all(|f| f.bytes_received > 100_000), "{own:?}");
            assert_eq!((a.hash, a.arrivals), (b.hash, b.arrivals), "{own:?}, offload {offload}");
        }
    }
}

/// A place without links of its own at both ends of the chain is the plain path with its queues at routers, whose hosts know each other.
#[test]
fn one_place_at_both_ends_is_a_plain_path() {
    for offload in [false, true] {
        let words = ["netem delay 10ms 2ms loss 0.5% limit 10000", "tbf rate 10mbit burst 6056 limit 40000"];
        let mut placed = plan(5_000, r#"{"cca":"cubic"},{"cca":"bbr"}"#, link(&words, &["netem delay 10ms"]));
        placed.offload = offload;
        let mut plain = placed.clone();
        (plain.places, plain.arp) = (Vec::new(), false);
        let (a, b) = (run(&placed, 5), run(&plain, 5));
        assert_eq!((a.hash, a.arrivals), (b.hash, b.arrivals));
    }
}

/// Where both hosts begin at once each learns the other's address from its question, after 10 ms and not after 20.
#[test]
fn a_question_of_neighbour_discovery_teaches_who_is_asked() {
    let mut plan = plan(1_000, &[finite(1, ""), finite(1, r#","up":true"#)].join(","), link(&["netem delay 10ms"], &["netem delay 10ms"]));
    plan.places.clear();
    plan.trace_packets = true;
    let trial = run(&plan, 1);
    let first = |flow: u32| trial.packets.flow.iter().position(|f| *f == flow).map(|i| trial.packets.t_ns[i]);
    assert_eq!([first(0), first(1)], [Some(10 * MS), Some(10 * MS)]);
}

/// The same seed gives the same trial, another one another, with random queues on every link.
#[test]
fn each_link_has_random_streams_of_its_own() {
    let flows = r#"{"cca":"cubic"},{"cca":"cubic","place":1},{"cca":"bbr","place":1,"up":true}"#;
    let rough = || link(&["netem delay 5ms 2ms loss 1%", "tbf rate 20mbit burst 6056 limit 40000"], &["netem delay 5ms 2ms loss 1%"]);
    let mut plan = plan(3_000, flows, rough());
    plan.links = vec![rough()];
    plan.places = (0..2).map(|enter| PlacePlan { enter, leave: 2, near: rough(), far: rough() }).collect();
    let hashes = [7, 7, 8].map(|seed| run(&plan, seed).hash);
    assert!(hashes[0] == hashes[1] && hashes[0] != hashes[2], "{hashes:?}");
    let trial = run(&plan, 7);
    let losses: Vec<u64> = trial.queues.iter().filter(|q| q.stats.packets_in > 1_000).map(|q| q.stats.drops.loss).collect();
    let mut differing = losses.clone();
    differing.dedup();
    assert!(differing.len() > 4, "{losses:?}");
}

/// A connection's packets are recorded at its own sender, wherever that is.
#[test]
fn a_file_of_packets_has_the_flows_of_every_place() {
    let mut plan =
        plan(500, &[finite(20_000, ""), finite(20_000, r#","up":true"#)].join(","), link(&["netem delay 10ms"], &["netem delay 10ms"]));
    plan.trace_packets = true;
    let file = std::env::temp_dir().join(format!("tcpscape-topology-{}.pcapng", std::process::id()));
    tcpscape_sim::write_pcapng(file.to_str().unwrap(), &CheckedPlan::new(plan.clone()).unwrap(), 1).unwrap();
    let written = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let trial = run(&plan, 1);
    let sent = |flow: u32| {
        (0..trial.packets.flow.len())
            .filter(|&i| trial.packets.flow[i] == flow && trial.packets.received[i] == 0 && trial.packets.len[i] > 0)
            .count()
    };
    assert!(sent(0) > 0 && sent(0) == sent(1), "{} {}", sent(0), sent(1));
    assert!(written.len() > 80 * trial.packets.flow.len(), "{} bytes of {} packets", written.len(), trial.packets.flow.len());
    let again = tcpscape_sim::packets_of(&written).unwrap();
    let bytes = |p: &tcpscape_sim::columns::PacketEvents| p.len.iter().map(|&n| u64::from(n)).sum::<u64>();
    let acks = |p: &tcpscape_sim::columns::PacketEvents| -> Vec<(u64, u32, u64, u32)> {
        (0..p.flow.len()).filter(|&i| p.len[i] == 0).map(|i| (p.t_ns[i], p.flow[i], p.ack[i], p.wnd[i])).collect()
    };
    assert!(again.seq.len() > trial.packets.seq.len(), "super-packets are cut in the file");
    assert_eq!((bytes(&again), acks(&again)), (bytes(&trial.packets), acks(&trial.packets)));
}
