//! Nothing in a trial may grow with simulated time where no samples are asked for: its lists are counted while it runs.

use super::*;
use tcpscape_base::{Flags, Segment};
use tcpscape_path::{parse_tc, Host, StageSpec};
use tcpscape_plan::Plan;

/// A checked plan of these controls, with tc's words at the sender's egress and at a router, empty for none.
fn plan(seconds: u64, controls: &[&str], sender: &str, router: &str) -> CheckedPlan<'static> {
    let flows: Vec<String> = controls.iter().map(|name| format!(r#"{{"cca":"{name}"}}"#)).collect();
    let json = format!(r#"{{"duration_ns":{},"flows":[{}]}}"#, seconds * 1_000_000_000, flows.join(","));
    let mut plan = Plan::from_json(&json).unwrap();
    for (words, at) in [(sender, Host::Sender), (router, Host::Router)] {
        if !words.is_empty() {
            plan.forward.stages.push(StageSpec { qdisc: parse_tc(words).unwrap(), at });
        }
    }
    plan.reverse.stages = vec![StageSpec { qdisc: parse_tc("netem delay 20ms limit 100000").unwrap(), at: Host::Receiver }];
    CheckedPlan::new(plan).unwrap()
}

/// Runs a trial; gives the largest number of entries that its calendar held, and the largest number of packets on its way. Departures are told of within the instant.
fn most_held(plan: &CheckedPlan<'_>) -> (usize, u64) {
    let mut engine = Engine::new(plan, 1);
    let (mut entries, mut packets) = (0, 0);
    while let Some((t, node)) = engine.events.pop(engine.end) {
        if t > engine.now {
            assert_eq!(engine.network.news(), 0, "departures that nobody was told of at {t}");
            (entries, packets) = (entries.max(engine.events.queued()), packets.max(engine.network.held()));
        }
        engine.now = t;
        engine.call(node);
        engine.read_next();
    }
    (entries, packets)
}

fn holds_no_more_when_it_lasts_longer(controls: &[&str], sender: &str, router: &str) {
    let held = |seconds| most_held(&plan(seconds, controls, sender, router));
    let (short, long) = (held(15), held(60));
    let no_more = long.0 <= short.0 * 5 / 4 && long.1 <= short.1 * 5 / 4;
    assert!(no_more, "{sender} | {router}: (entries, packets) {short:?} in 15 s, {long:?} in 60 s");
}

#[test]
fn what_a_trial_holds_does_not_grow_with_its_length() {
    let delay = "netem delay 20ms limit 100000";
    for (sender, router) in [
        ("", "netem delay 20ms rate 20mbit limit 50"),
        (delay, "tbf rate 20mbit burst 6056 limit 60000"),
        (delay, "cake bandwidth 20mbit"),
        ("tbf rate 2mbit burst 6000 limit 4000", delay),
        ("tbf rate 2mbit burst 6000 limit 4000", ""),
        ("tbf rate 2mbit burst 9373 limit 2000", ""),
        ("cake bandwidth 2mbit memlimit 4000", ""),
        ("tbf rate 20mbit burst 6056 limit 60000; fq_codel", delay),
        ("htb rate 20mbit; pfifo limit 50", delay),
        ("cake bandwidth 20mbit", delay),
        ("fq", "netem delay 20ms rate 20mbit limit 50"),
        ("netem delay 20ms loss 1% duplicate 1% rate 20mbit limit 50", ""),
    ] {
        holds_no_more_when_it_lasts_longer(&["cubic", "cubic", "bbr"], sender, router);
    }
}

#[test]
fn neither_does_what_a_hundred_flows_hold() {
    let delay = "netem delay 20ms limit 100000";
    for (sender, router) in [("", "netem delay 20ms rate 20mbit limit 200"), ("cake bandwidth 20mbit", delay), (delay, "htb rate 20mbit")] {
        holds_no_more_when_it_lasts_longer(&["cubic"; 100], sender, router);
    }
}

#[test]
fn a_trial_ends_at_its_bound_of_work() {
    let plan = plan(1, &["cubic"], "", "netem delay 20ms rate 20mbit limit 50");
    let whole = plan.run(1);
    let short = plan.run_within(1, 500);
    assert!((500..1_000).contains(&(short.events + short.arrivals)), "{} {}", short.events, short.arrivals);
    assert_eq!(plan.run_within(1, whole.events + whole.arrivals).hash, whole.hash);
}

#[test]
fn a_trial_that_is_stopped_has_no_result_and_one_that_is_not_the_same() {
    let plan = plan(2, &["cubic", "bbr"], "", "netem delay 20ms 3ms rate 20mbit limit 50");
    let whole = plan.run(7);
    let work = whole.events + whole.arrivals;
    let mut looks = 0;
    let again = plan.run_unless(7, || {
        looks += 1;
        false
    });
    assert_eq!(again.map(|t| (t.hash, t.events, t.arrivals)), Some((whole.hash, whole.events, whole.arrivals)));
    assert!(work > 4 * LOOK, "{work}");
    assert!((work / (LOOK + 64)..=work / LOOK + 1).contains(&looks), "{looks} looks at {work} events and deliveries");
    for most in [1, 2, 4] {
        let mut looks = 0;
        let stopped = plan.run_unless(7, || {
            looks += 1;
            looks == most
        });
        assert!(stopped.is_none());
        assert_eq!(looks, most);
    }
}

/// What the own queue refuses is tried again at the next ACK, write or timer, not at the next tick of a pacing clock that nothing moved on. On Linux
/// 6.1 (virtual engine) bbr's 2 s through the first queue take 136 segments in 4 s, and 5 ms of delay on the way back.
#[test]
fn a_paced_flow_does_not_storm_a_queue_that_refuses_it() {
    for words in
        ["tbf rate 2mbit burst 9373 limit 2000", "tbf rate 2mbit burst 6000 limit 4000", "netem rate 2mbit limit 1", "pfifo limit 0"]
    {
        for control in ["bbr", "bbr3", "prague", "cubic"] {
            let json = format!(r#"{{"duration_ns":2000000000,"ecn":true,"flows":[{{"cca":"{control}"}}]}}"#);
            let mut plan = Plan::from_json(&json).unwrap();
            plan.forward.stages = vec![StageSpec { qdisc: parse_tc(words).unwrap(), at: Host::Sender }];
            let trial = CheckedPlan::new(plan.clone()).unwrap().run(1);
            assert!(trial.events < 100_000, "{control} through {words}: {} events", trial.events);
            trial.check_accounts(&plan).unwrap_or_else(|e| panic!("{control} through {words}: {e}"));
        }
    }
}

/// 100 connections a second of some round trips of 40 ms each: about 20 are open at a time, of 1,500 in 15 s as of 6,000 in a minute. Each is told of its end
/// 10 s later at the latest, so the calendar holds some 1,000 entries of those that are over.
#[test]
fn a_trial_holds_the_transfers_that_are_open_not_all_of_them() {
    let plan = |seconds: u64, loss: &str| {
        let transfers = r#"[{"flow":{"cca":"cubic"},"per_second":100,"least":1000,"most":100000,"shape":1.2}]"#;
        let json = format!(r#"{{"duration_ns":{},"flows":[],"transfers":{transfers}}}"#, seconds * 1_000_000_000);
        let mut plan = Plan::from_json(&json).unwrap();
        let stage = |words: &str| StageSpec { qdisc: parse_tc(words).unwrap(), at: Host::Router };
        plan.forward.stages = vec![stage(&format!("netem delay 20ms {loss} limit 100000"))];
        plan.reverse.stages = vec![stage("netem delay 20ms limit 100000")];
        CheckedPlan::new(plan).unwrap()
    };
    for (loss, most_slots) in [("", 100), ("loss 5%", 500)] {
        let slots = |plan: &CheckedPlan<'_>| {
            let mut engine = Engine::new(plan, 1);
            assert!(engine.run(u64::MAX) == Ended::Over);
            let started: u64 = engine.transfers.summaries(&engine.flows)[0].classes.iter().map(|c| c.started).sum();
            (engine.flows.len(), started)
        };
        let ((few, started), (more, all)) = (slots(&plan(15, loss)), slots(&plan(60, loss)));
        assert!(started > 1_300 && all > 5_500, "{started} and {all} connections");
        assert!(few <= most_slots && more <= few * 3 / 2, "{loss}: {few} slots for {started} connections, {more} for {all}");
        let (short, long) = (most_held(&plan(15, loss)), most_held(&plan(60, loss)));
        assert!(long.0 <= short.0 * 5 / 4 && long.1 <= short.1 * 2, "{loss}: (entries, packets) {short:?} in 15 s, {long:?} in 60 s");
    }
}

/// A copy of the SYN that comes when the connection is open is answered by the receiver (RFC 9293 §3.10.7.4); its application sleeps on.
#[test]
fn a_late_copy_of_the_syn_does_not_begin_the_application_anew() {
    let json = r#"{"duration_ns":2000000000,"flows":[{"cca":"cubic","read":{"size":65536,"delay_ns":300000000}}]}"#;
    let mut plan = Plan::from_json(json).unwrap();
    plan.forward.stages = vec![StageSpec { qdisc: parse_tc("netem delay 20ms rate 20mbit").unwrap(), at: Host::Router }];
    let checked = CheckedPlan::new(plan).unwrap();
    let mut engine = Engine::new(&checked, 1);
    while !engine.flows[0].receiver.is_open() {
        let (t, node) = engine.events.pop(engine.end).expect("the connection opens");
        engine.now = t;
        engine.call(node);
        engine.read_next();
    }
    engine.now = Time(engine.now.0 + 5_000_000);
    let due = engine.flows[0].read_due(engine.now).expect("it sleeps");
    engine.deliver(0, &Segment { flags: Flags::SYN, wnd: 65_535, ..Segment::default() });
    assert_eq!(engine.flows[0].read_due(engine.now), Some(due));
}
