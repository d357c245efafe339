//! Applications that ask and that pause, probes, and transfers: with times and counts that were worked out by hand.

use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::TrialOutput;

/// A trial of so many ms with this part of a plan (`"flows": …`), over tc's words both ways, at routers; its accounts are checked. Addresses are known.
fn run(ms: u64, fields: &str, forward: &[&str], reverse: &[&str]) -> TrialOutput {
    let mut plan = Plan::from_json(&format!(r#"{{"duration_ns": {}, "arp": false, {fields}}}"#, ms * 1_000_000)).unwrap();
    plan.forward = PathSpec::of(forward.iter().map(|w| parse_tc(w).unwrap()));
    plan.reverse = PathSpec::of(reverse.iter().map(|w| parse_tc(w).unwrap()));
    plan.forward.stages.iter_mut().chain(&mut plan.reverse.stages).for_each(|stage| stage.at = Host::Router);
    let trial = CheckedPlan::new(plan.clone()).unwrap().run(1);
    trial.check_accounts(&plan).unwrap_or_else(|e| panic!("{fields}: {e}"));
    trial
}

fn flow(app: &str) -> String {
    format!(r#""flows": [{{"cca": "reno", "app": {app}}}]"#)
}

const NEAR: [&str; 1] = ["netem delay 20ms"];
const FAR: [&str; 1] = ["netem delay 30ms"];

/// RTT 50 ms, answers of one packet: the SYN goes at 0, the connection is open at the receiver at 20 + 50 ms, and each request takes a round trip and some µs
/// of the applications. With 150 ms of thought a request goes out every 200 ms: at 0.07, 0.27, …, 9.87 s in 10 s, 50 in all, of which the last is answered at 9.92.
#[test]
fn an_answer_of_a_packet_takes_a_round_trip() {
    let trial = run(10_000, &flow(r#"{"kind": "respond", "response": 1000, "think_ns": 150000000}"#), &NEAR, &FAR);
    let answers = trial.flows[0].responses.unwrap();
    assert_eq!((answers.count, trial.flows[0].bytes_received), (50, 50_000));
    assert!((50.0..50.1).contains(&answers.time_ms.min) && answers.time_ms.max < 50.1, "{answers:?}");
}

/// Ten packets are a first window: 14,480 bytes still take one round trip. One byte more than that takes two, as the window opens with the first ACKs.
#[test]
fn an_answer_beyond_the_first_window_takes_two() {
    let time = |bytes: u64| {
        let app = format!(r#"{{"kind": "respond", "response": {bytes}, "think_ns": 5000000000, "chunk": 65536}}"#);
        run(2_000, &flow(&app), &NEAR, &FAR).flows[0].responses.unwrap().time_ms.max
    };
    let (window, more) = (time(14_480), time(14_481));
    assert!((50.0..50.2).contains(&window), "{window}");
    assert!((100.0..100.4).contains(&more), "{more}");
}

/// Requests at 1.0, 1.1, …: where a client keeps its clock since the flow's start, two flows with different RTTs ask at the same times. The first request
/// goes as soon as the connection is open.
#[test]
fn clients_with_a_clock_ask_together() {
    let fields = r#""trace_packets": true, "flows": [
        {"cca": "reno", "start_ns": 1000000000, "app": {"kind": "respond", "response": 4000, "every_ns": 100000000}},
        {"cca": "cubic", "start_ns": 1000000000, "app": {"kind": "respond", "response": 4000, "every_ns": 100000000}}]"#;
    let trial = run(2_000, fields, &NEAR, &FAR);
    let p = &trial.packets;
    for flow in [0, 1] {
        let requests: Vec<u64> =
            (0..p.t_ns.len()).filter(|&i| p.flow[i] == flow && p.received[i] == 1 && p.len[i] > 0).map(|i| p.t_ns[i]).collect();
        // Asked at 1.07 s, then at 1.1 s and each 100 ms until 1.9 s; each comes 30 ms later, and some µs for the sleep.
        let asked: Vec<u64> = requests.iter().map(|t| (t - 30_000_000) / 1_000_000).collect();
        assert_eq!(asked, [1_070, 1_120, 1_200, 1_300, 1_400, 1_500, 1_600, 1_700, 1_800, 1_900], "flow {flow}");
        assert_eq!(trial.flows[flow as usize].responses.unwrap().count, 10);
    }
}

/// For 100 ms of each second the writer gives 200 kB/s in chunks of 1 kB, one each 5 ms and some µs for the sleep: 20 each period, 5 periods. The window
/// of ten packets never stops it: 10 of them are under way in a round trip of 50 ms.
#[test]
fn an_on_off_writer_pauses() {
    let app = r#"{"kind": "on_off", "chunk": 1000, "on_ns": 100000000, "off_ns": 900000000, "rate_Bps": 200000}"#;
    let trial = run(5_000, &flow(app), &NEAR, &FAR);
    assert_eq!(trial.flows[0].bytes_received, 5 * 20 * 1_000);
}

/// As fast as the socket takes them: the link of 8 Mbit/s is busy while the writer writes, and with what the send buffer holds then. Of 1514 bytes 1448 are data:
/// a link that is always busy carries 0.956 MB a second; half of the time it is at least half of that, and less than all of it.
#[test]
fn an_on_off_writer_without_a_rate_fills_its_time() {
    let path = ["netem delay 5ms", "tbf rate 8mbit burst 15kb limit 30kb"];
    let bytes = |app: &str| {
        let fields = format!(r#""flows": [{{"cca": "reno", "sndbuf": 30000, "app": {app}}}]"#);
        run(8_000, &fields, &path, &["netem delay 5ms"]).flows[0].bytes_received as f64
    };
    let always = bytes(r#"{"kind": "bulk"}"#);
    let half = bytes(r#"{"kind": "on_off", "on_ns": 1000000000, "off_ns": 1000000000}"#);
    assert!((0.45..0.6).contains(&(half / always)), "{half} of {always}");
    let whole = bytes(r#"{"kind": "on_off", "on_ns": 1000000000, "off_ns": 0}"#);
    assert_eq!(whole, always);
}

const VOICE: &str = r#"{"kind": "udp", "size": 172, "interval_ns": 20000000}"#;

/// 172 bytes of payload with 8 of UDP, 20 of IPv4 and 14 of Ethernet are 214: 171.2 µs at 10 Mbit/s. In 10 s 500 packets leave at 0, 20, … 9980 ms, the
/// last of which arrives after the end of the trial (10,000.17 ms). Delays are counted in whole µs.
#[test]
fn a_call_on_an_idle_link_has_the_links_delay() {
    let fields = format!(r#""flows": [], "sample_interval_ns": 1000000000, "probes": [{VOICE}]"#);
    let trial = run(10_000, &fields, &["netem delay 20ms rate 10mbit"], &[]);
    let p = &trial.probes[0];
    assert_eq!((p.sent, p.received, p.reordered, p.jitter_ms), (500, 499, 0, 0.0));
    assert_eq!([p.delay_ms.min, p.delay_ms.p50, p.delay_ms.p99, p.delay_ms.max], [20.171; 4]);
    let s = &trial.probe_samples;
    assert_eq!((s.t_ns[1], s.probe[1], s.delay_ns[1], s.delay_ns[499]), (20_000_000, 0, 20_171_200, u64::MAX));
}

/// There 20 ms and back 30 ms, for both kinds of echo and both ways; one-way delays of a probe against the chain are those of the way back.
#[test]
fn an_echo_goes_both_ways() {
    let probe = |kind: &str, up: bool| format!(r#"{{"kind": "{kind}", "size": 56, "interval_ns": 200000000, "up": {up}}}"#);
    let probes = [probe("icmp_echo", false), probe("udp_echo", true), probe("udp", true)].join(",");
    let trial = run(2_000, &format!(r#""flows": [], "probes": [{probes}]"#), &NEAR, &FAR);
    let delays: Vec<_> = trial.probes.iter().map(|p| (p.sent, p.received, p.delay_ms.min, p.delay_ms.max)).collect();
    assert_eq!(delays, [(10, 10, 50.0, 50.0), (10, 10, 50.0, 50.0), (10, 10, 30.0, 30.0)]);
}

/// Behind a FIFO of 50 packets of 1514 bytes that a bulk flow keeps full, at 10 Mbit/s: a packet waits for most of 50 · 1.2112 = 60.6 ms, and never longer than
/// that and the packet that is being sent; alone it would take 20 ms.
#[test]
fn a_call_behind_a_full_queue_waits_in_it() {
    let fields = format!(r#""flows": [{{"cca": "reno"}}], "probes": [{VOICE}]"#);
    let trial = run(20_000, &fields, &["netem delay 20ms", "tbf rate 10mbit burst 1514 limit 75700"], &["netem delay 20ms"]);
    let (p, d) = (&trial.probes[0], &trial.probes[0].delay_ms);
    assert!(d.p50 > 50.0 && d.max < 20.0 + 51.0 * 1.2112, "{d:?}");
    assert!(p.sent == 1_000 && p.received < 999, "some of it was dropped: {p:?}");
}

/// A packet of a call that takes 400 ms: the 20 that are under way at the end of the trial are not lost, and nothing else is.
#[test]
fn what_waits_at_the_end_is_not_lost() {
    let fields = format!(r#""flows": [], "probes": [{VOICE}]"#);
    let trial = run(10_000, &fields, &["netem delay 400ms"], &[]);
    let p = &trial.probes[0];
    assert_eq!((p.sent, p.received, p.due, p.lost), (500, 480, 480, 0));
}

/// A queue that tells flows apart serves the call's 86 kbit/s first: it waits for the packets that the link has begun, of which htb's burst allows two.
#[test]
fn a_call_behind_a_fair_queue_does_not_wait() {
    let fields = format!(r#""flows": [{{"cca": "reno"}}], "probes": [{VOICE}]"#);
    let trial = run(20_000, &fields, &["netem delay 20ms", "htb rate 10mbit; fq_codel"], &["netem delay 20ms"]);
    let p = &trial.probes[0];
    assert!(p.received == 999 && p.delay_ms.max < 20.2 + 3.0 * 1.2112, "{p:?}");
}

/// netem drops a packet of 10 % unless it copies it at the same time, which it does of 20 %: 8 % of 5,000 are 400 ± 19 without any, five times 96. A copy does
/// not count twice.
#[test]
fn what_is_lost_and_what_is_copied_is_known() {
    let fields = r#""flows": [], "probes": [{"kind": "udp", "size": 100, "interval_ns": 2000000}]"#;
    let trial = run(10_000, fields, &["netem delay 5ms loss 10% duplicate 20%"], &[]);
    let (p, q) = (&trial.probes[0], &trial.queues[0].stats);
    assert!((p.sent - p.received).abs_diff(400) < 96, "{p:?}");
    assert!(q.packets_out > p.received && p.sent == 5_000, "{q:?}");
}

/// In a fresh namespace the address is asked for first: the first packet waits 50 ms for the answer, the others do not. The
/// last one, of 980 ms, comes at the very end, too late to count.
#[test]
fn a_probe_waits_for_its_neighbours_address() {
    let plan = |arp: bool| {
        let text = format!(r#"{{"duration_ns": 1000000000, "arp": {arp}, "flows": [], "probes": [{VOICE}]}}"#);
        let mut plan = Plan::from_json(&text).unwrap();
        (plan.forward, plan.reverse) = (PathSpec::of([parse_tc(NEAR[0]).unwrap()]), PathSpec::of([parse_tc(FAR[0]).unwrap()]));
        CheckedPlan::new(plan).unwrap().run(1).probes.remove(0)
    };
    let (known, asked) = (plan(false), plan(true));
    assert_eq!((known.delay_ms.max, asked.delay_ms.max, asked.received), (20.0, 70.0, 49));
}

/// A transfer of one packet on an idle path: SYN and SYN-ACK, the packet and its ACK are two round trips of 50 ms, but for µs.
#[test]
fn a_short_transfer_takes_two_round_trips() {
    let fields = r#""flows": [], "transfers": [{"flow": {"cca": "cubic"}, "per_second": 5, "least": 1000, "most": 1000, "shape": 1.2}]"#;
    let trial = run(60_000, fields, &NEAR, &FAR);
    let (t, small) = (&trial.transfers[0], &trial.transfers[0].classes[0]);
    assert!((100.0..100.2).contains(&small.completion_ms.min) && small.completion_ms.max < 100.2, "{small:?}");
    // 300 are expected; those of the last 100 ms may not be done.
    assert!(small.started.abs_diff(300) < 87 && small.started - small.completed < 8, "{small:?}");
    assert!((1_000 * small.completed..=1_000 * small.started).contains(&t.bytes_received), "{t:?}");
}

/// The same arrivals in the same trial, whatever else it has; all that is complete was received.
#[test]
fn transfers_share_a_link_with_flows() {
    let transfers = r#""transfers": [{"flow": {"cca": "reno"}, "per_second": 20, "least": 5000, "most": 1000000, "shape": 1.2},
        {"flow": {"cca": "bbr", "start_ns": 5000000000, "stop_ns": 6000000000}, "per_second": 50, "least": 2000, "most": 2000, "shape": 1}]"#;
    let path = ["netem delay 10ms", "tbf rate 20mbit burst 15kb limit 60kb"];
    let started = |flows: &str| {
        let trial = run(20_000, &format!("{flows}, {transfers}"), &path, &["netem delay 10ms"]);
        let count = |t: &tcpscape_plan::results::TransfersSummary| t.classes.iter().map(|c| c.started).collect::<Vec<_>>();
        assert!(trial.transfers.iter().all(|t| t.classes.iter().map(|c| c.completed).sum::<u64>() > 0), "{:?}", trial.transfers);
        (trial.transfers.iter().map(count).collect::<Vec<_>>(), trial.hash)
    };
    let (alone, beside) = (started(r#""flows": []"#), started(r#""flows": [{"cca": "cubic"}]"#));
    assert_eq!(alone.0, beside.0);
    assert_ne!(alone.1, beside.1);
    assert_eq!(alone, started(r#""flows": []"#));
}

/// RSTs that end connections are lost, ACKs too: slots are given back all the same, and what is not complete is known.
#[test]
fn transfers_end_on_a_lossy_path() {
    let fields = r#""flows": [], "transfers": [{"flow": {"cca": "cubic"}, "per_second": 100, "least": 1000, "most": 20000, "shape": 1.2}]"#;
    let trial = run(30_000, fields, &["netem delay 5ms loss 20%"], &["netem delay 5ms loss 20%"]);
    let t = &trial.transfers[0];
    let (started, completed) = t.classes.iter().fold((0, 0), |sum, c| (sum.0 + c.started, sum.1 + c.completed));
    assert!(completed > started / 2 && completed < started && t.retransmits > started / 4, "{t:?}");
}

/// Two links of 5 and 10 ms down, 6 and 11 ms up; place 0 crosses both behind access links of 3 and 4 ms each way, place 1 only the second one. A call down place 0
/// takes 3 + 5 + 10 + 4 = 22 ms, an echo against the chain 4 + 11 + 6 + 3 more, a call up place 1 takes 11 ms. A transfer of a packet takes two round trips.
#[test]
fn probes_and_transfers_take_the_way_of_their_place() {
    let stages = |ms: u64| format!(r#"{{"stages": [{{"qdisc": {{"kind": "netem", "delay": {}}}, "at": "router"}}]}}"#, ms * 1_000_000);
    let link = |there: u64, back: u64| format!(r#"{{"forward": {}, "reverse": {}}}"#, stages(there), stages(back));
    let probe = |kind: &str, place: usize, up: bool| {
        format!(r#"{{"kind": "{kind}", "size": 56, "interval_ns": 100000000, "place": {place}, "up": {up}}}"#)
    };
    let plan = format!(
        r#"{{"duration_ns": 10000000000, "flows": [], "forward": {}, "reverse": {}, "links": [{}],
            "places": [{{"enter": 0, "leave": 2, "near": {}, "far": {}}}, {{"enter": 1, "leave": 2}}],
            "probes": [{}, {}, {}],
            "transfers": [{{"flow": {{"cca": "cubic", "place": 1, "up": true}}, "per_second": 5, "least": 1000, "most": 1000, "shape": 1}}]}}"#,
        stages(5),
        stages(6),
        link(10, 11),
        link(3, 3),
        link(4, 4),
        probe("udp", 0, false),
        probe("icmp_echo", 0, true),
        probe("udp", 1, true),
    );
    let plan = Plan::from_json(&plan).unwrap();
    let trial = CheckedPlan::new(plan.clone()).unwrap().run(1);
    trial.check_accounts(&plan).unwrap();
    let delays: Vec<_> = trial.probes.iter().map(|p| (p.sent, p.delay_ms.min, p.delay_ms.max)).collect();
    assert_eq!(delays, [(100, 22.0, 22.0), (100, 46.0, 46.0), (100, 11.0, 11.0)]);
    let small = &trial.transfers[0].classes[0];
    assert!(small.completed > 20 && small.completion_ms.min >= 42.0 && small.completion_ms.max < 42.2, "{small:?}");
}
