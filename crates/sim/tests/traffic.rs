//! Applications that ask and that pause, probes, and transfers: with times and counts that were worked out by hand.

use tcpscape_path::{parse_tc, PathSpec};
use tcpscape_sim::{Plan, TrialOutput};

/// A trial of so many ms with this part of a plan (`"flows": …`), over tc's words both ways; its accounts are checked. Addresses are known.
fn run(ms: u64, fields: &str, forward: &[&str], reverse: &[&str]) -> TrialOutput {
    let mut plan = Plan::from_json(&format!(r#"{{"duration_ns": {}, "arp": false, {fields}}}"#, ms * 1_000_000)).unwrap();
    plan.forward = PathSpec::of(forward.iter().map(|w| parse_tc(w).unwrap()));
    plan.reverse = PathSpec::of(reverse.iter().map(|w| parse_tc(w).unwrap()));
    let trial = plan.clone().check().unwrap().run(1);
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
