//! What needs no kernel: where stages go, what schedules become.

use super::changes::{expand, Act};
use super::gate::Layer;
use super::layout::Layout;
use std::collections::BTreeSet;
use tcpscape_base::Rate;
use tcpscape_path::{parse_tc, Direction, Host, Loss, PathSpec, QdiscSpec, StageSpec};
use tcpscape_plan::{LinkPlan, PlacePlan, Plan};

fn path(stages: &[(&str, Host)]) -> PathSpec {
    let stages = stages.iter().map(|&(words, at)| StageSpec { qdisc: parse_tc(words).unwrap(), at }).collect();
    PathSpec { stages, schedule: Vec::new() }
}

fn plan(forward: PathSpec, reverse: PathSpec) -> Plan {
    let plan = Plan::from_json(r#"{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}]}"#).unwrap();
    Plan { forward, reverse, ..plan }
}

/// A forward path of one queue at the sender with a schedule.
fn scheduled(words: &str, schedule: &str) -> Plan {
    let mut forward = path(&[(words, Host::Sender)]);
    forward.schedule = serde_json::from_str(schedule).unwrap();
    forward.validate().unwrap();
    plan(forward, PathSpec::default())
}

/// Time in ms and what happens.
fn changes(p: &Plan) -> Vec<(u64, Vec<Act>)> {
    expand(p, &Layout::of(p).unwrap()).unwrap().into_iter().map(|c| (c.at_ns / 1_000_000, c.acts)).collect()
}

fn queue(depth: usize, words: &str) -> Act {
    Act::Queue(depth, parse_tc(words).unwrap())
}

fn layers(p: &Plan) -> Vec<Layer> {
    Layout::of(p).unwrap().stages[0].layers.clone()
}

fn tc(words: &str) -> Layer {
    Layer::Queue(parse_tc(words).unwrap())
}

#[test]
fn stages_stand_at_hosts_in_the_order_of_their_direction() {
    let (s, r, d) = (Host::Sender, Host::Router, Host::Receiver);
    let pfifo = "pfifo limit 10";
    let places = |forward: &[Host], reverse: &[Host]| {
        let of = |hosts: &[Host]| path(&hosts.iter().map(|&h| (pfifo, h)).collect::<Vec<_>>());
        let layout = Layout::of(&plan(of(forward), of(reverse))).unwrap();
        let at = |direction| layout.stages.iter().filter(|s| s.name.direction == direction).map(|s| s.host).collect::<Vec<_>>();
        (layout.hosts() - 2, at(Direction::Forward), at(Direction::Reverse))
    };
    assert_eq!(places(&[], &[]), (0, vec![], vec![]));
    assert_eq!(places(&[s], &[d]), (0, vec![0], vec![1]));
    assert_eq!(places(&[r], &[]), (1, vec![1], vec![]));
    assert_eq!(places(&[s, r, r], &[d]), (2, vec![0, 1, 2], vec![3]));
    // the longer direction decides how many routers there are
    assert_eq!(places(&[s, r], &[d, r, r]), (2, vec![0, 1], vec![3, 2, 1]));
    assert_eq!(places(&[s], &[r, r]), (2, vec![0], vec![2, 1]));
}

#[test]
fn roles_and_names() {
    let layout = Layout::of(&plan(path(&[("pfifo", Host::Router), ("pfifo", Host::Router)]), PathSpec::default())).unwrap();
    assert_eq!([0, 1, 2, 3].map(|h| layout.role(h)), [Host::Sender, Host::Router, Host::Router, Host::Receiver]);
    assert_eq!(layout.host_name(2), "router 2");
    assert_eq!(layout.stages[1].name.to_string(), "forward stage 1 (pfifo)");
}

/// Hop by hop along the routes from each host to each other one: no router sends a packet back, and each address is there once.
#[test]
fn routes_of_a_parking_lot_lead_to_every_host() {
    let fifo = || path(&[("pfifo limit 10", Host::Router)]);
    let mut p = plan(fifo(), fifo());
    p.links = vec![LinkPlan { forward: path(&[("pfifo limit 10", Host::Router); 2]), reverse: fifo() }, LinkPlan::default()];
    let access = LinkPlan { forward: fifo(), reverse: fifo() };
    let place = |enter, leave| PlacePlan { enter, leave, near: access.clone(), far: LinkPlan::default() };
    p.places = vec![place(0, 3), place(0, 1), place(1, 2), place(2, 3), PlacePlan { far: access.clone(), ..place(1, 3) }];
    let l = Layout::of(&p).unwrap();
    let addresses: Vec<_> = l.cables.iter().flat_map(|c| c.ports.iter().map(|port| port.address)).collect();
    assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), addresses.len());
    assert!(l.cables.iter().all(|c| u32::from(c.ports[0].address) ^ u32::from(c.ports[1].address) == 1), "both ends are in one /31");
    let ends: Vec<usize> = l.places.iter().flatten().copied().collect();
    for (from, to) in ends.iter().flat_map(|&from| ends.iter().map(move |&to| (from, to))).filter(|(from, to)| from != to) {
        let own = l.cables_of(to).next().unwrap().0;
        let network = l.cables[own].ports[0].address;
        let (mut at, mut steps) = (l.cables_of(from).next().map(|(_, c, end)| c.hosts[1 - end]).unwrap(), 0);
        while at != to {
            let direct = l.cables_of(at).find(|(i, ..)| *i == own).map(|(i, _, end)| (i, end));
            let routes = l.routes(at);
            let found = |wanted| routes.iter().find(|(network, _)| *network == wanted).map(|(_, by)| *by);
            let (cable, end) = direct.or_else(|| found(Some(network))).or_else(|| found(None)).expect("a route");
            at = l.cables[cable].hosts[1 - end];
            steps += 1;
            assert!(steps < l.hosts(), "a loop from {from} to {to}");
        }
    }
    let most = (0..l.hosts()).filter(|&h| !l.is_end(h)).map(|h| l.routes(h).len()).max();
    assert!(most < Some(ends.len()), "a default route stands for most hosts");
}

#[test]
fn our_own_queue_is_refused_wherever_it_is() {
    let e = Layout::of(&plan(
        path(&[("tbf rate 1mbit burst 2000 limit 9000; jitter delay 25ms 8ms order clamp", Host::Sender)]),
        PathSpec::default(),
    ));
    assert!(e.unwrap_err().to_string().starts_with("jitter: the kernel has no such queue; write netem delay"));
}

#[test]
fn a_ramp_carries_all_parameters_at_each_step() {
    let ramp = r#"[{"stage": 0, "change": {"kind": "ramp", "from": 100000000, "until": 300000000, "every": 100000000,
        "start": {"delay": 10000000}, "end": {"delay": 30000000}}}]"#;
    let seen = changes(&scheduled("netem delay 5ms loss 1%", ramp));
    let expected = [(100, "netem delay 10ms loss 1%"), (200, "netem delay 20ms loss 1%"), (300, "netem delay 30ms loss 1%")];
    assert_eq!(seen, expected.map(|(t, words)| (t, vec![queue(0, words)])));
}

#[test]
fn after_a_period_everything_is_as_before() {
    let periodic = r#"[{"stage": 0, "change": {"kind": "periodic", "first": 200000000, "period": 1000000000, "hold": 100000000,
        "set": {"loss": 42949673, "rate": 8000000, "jitter": 1000000}}}]"#;
    let seen = changes(&scheduled("netem delay 5ms loss gemodel 5%", periodic));
    let of = |act: &Act| match act {
        Act::Queue(0, QdiscSpec::Netem(s)) => (s.loss, s.rate, s.jitter.0),
        other => panic!("{other:?}"),
    };
    let during = of(&seen[0].1[0]);
    assert_eq!((seen[0].0, during.1, during.2), (200, Some(Rate(8_000_000)), 1_000_000));
    assert!(matches!(during.0, Loss::Random { .. }));
    let after = of(&seen[1].1[0]);
    // A rate of 0 takes netem's rate away; leaving it out would keep it.
    assert_eq!((seen[1].0, after.1, after.2), (300, Some(Rate(0)), 0));
    assert!(matches!(after.0, Loss::Gemodel { .. }));
    assert_eq!(seen.len(), 2);
}

#[test]
fn htbs_ceiling_follows_its_rate() {
    let set = r#"[{"stage": 0, "change": {"kind": "set", "at": 1000000, "set": {"rate": 8000000, "limit": 50}}}]"#;
    let p = scheduled("htb rate 10mbit ceil 10mbit", set);
    assert_eq!(layers(&p), [tc("htb rate 10mbit ceil 10mbit"), tc("pfifo limit 1000")]);
    assert_eq!(changes(&p), [(1, vec![queue(0, "htb rate 8mbit"), queue(1, "pfifo limit 50")])]);
}

#[test]
fn an_outage_closes_a_gate_behind_the_innermost_queue() {
    let outage = r#"[{"stage": 0, "change": {"kind": "periodic", "first": 200000000, "period": 500000000, "hold": 100000000, "set": {"outage": true}}}]"#;
    let gate = |limit| Layer::Gate { limit };
    let tbf = "tbf rate 10mbit burst 6056 limit 62500";
    for (words, expected) in [
        ("netem delay 5ms", vec![tc("netem delay 5ms"), gate(u64::MAX)]),
        (tbf, vec![tc(tbf), gate(62_500)]),
        ("bfifo limit 9000", vec![gate(9_000)]),
        ("pfifo limit 90", vec![tc("netem limit 90"), gate(u64::MAX)]),
        ("htb rate 10mbit", vec![tc("htb rate 10mbit"), tc("netem limit 1000"), gate(u64::MAX)]),
        ("tbf rate 10mbit burst 6056 limit 62500; pfifo limit 7", vec![tc(tbf), tc("netem limit 7"), gate(u64::MAX)]),
    ] {
        let p = scheduled(words, outage);
        assert_eq!(layers(&p), expected, "{words}");
        let last = expected.len() - 1;
        let closed = |on| vec![Act::Close(last, on)];
        assert_eq!(changes(&p), [(200, closed(true)), (300, closed(false)), (700, closed(true)), (800, closed(false))], "{words}");
    }
}

#[test]
fn a_rate_of_zero_in_a_trace_is_an_outage() {
    let trace = r#"[{"stage": 0, "change": {"kind": "rate_trace", "points": [[0, 8000000], [100000000, 0], [200000000, 16000000]], "repeat": 600000000}}]"#;
    let tbf = |rate: &str| queue(0, &format!("tbf rate {rate} burst 6056 limit 62500"));
    let seen = changes(&scheduled("tbf rate 10mbit burst 6056 limit 62500", trace));
    assert_eq!(
        seen,
        [
            (0, vec![tbf("8mbit")]),
            (100, vec![Act::Close(1, true)]),
            (200, vec![tbf("16mbit"), Act::Close(1, false)]),
            (600, vec![tbf("8mbit")]),
            (700, vec![Act::Close(1, true)]),
            (800, vec![tbf("16mbit"), Act::Close(1, false)]),
        ]
    );
}

#[test]
fn tbfs_limit_is_its_fifos() {
    let set = r#"[{"stage": 0, "change": {"kind": "set", "at": 0, "set": {"limit": 9000}}},
        {"stage": 0, "change": {"kind": "set", "at": 1000000, "set": {"outage": true}}}]"#;
    let seen = changes(&scheduled("tbf rate 10mbit burst 6056 limit 62500", set));
    assert_eq!(seen[0], (0, vec![queue(0, "tbf rate 10mbit burst 6056 limit 9000"), Act::Limit(1, 9000)]));
    // Another kind of child has a limit of its own.
    let seen = changes(&scheduled("tbf rate 10mbit burst 6056 limit 62500; pfifo limit 7", set));
    assert_eq!(seen[0], (0, vec![queue(0, "tbf rate 10mbit burst 6056 limit 9000")]));
}

#[test]
fn too_many_changes_are_refused() {
    let ramp = r#"[{"stage": 0, "change": {"kind": "ramp", "from": 0, "until": 1000000000, "every": 500,
        "start": {"delay": 10000000}, "end": {"delay": 900000000}}}]"#;
    let p = scheduled("netem delay 5ms", ramp);
    let e = expand(&p, &Layout::of(&p).unwrap()).unwrap_err();
    assert_eq!(e.to_string(), "changes: more than 1000000 in one trial; take longer steps");
}
