//! Networks built in the kernel that runs the tests; without root, or without a queue, a test says so and passes.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tcpscape_path::{parse_tc, Host, PathSpec, StageSpec};
use tcpscape_plan::{LinkPlan, PlacePlan, Plan};
use tcpscape_testbed::network::{ends, Network, Scope, Settings, Testbed, TestbedError};
use tcpscape_testbed::sys;
use tcpscape_testbed::tcp_info::TcpInfo;

fn path(stages: &[(&str, Host)]) -> PathSpec {
    let stages = stages.iter().map(|&(words, at)| StageSpec { qdisc: parse_tc(words).unwrap(), at }).collect();
    PathSpec { stages, schedule: Vec::new() }
}

fn plan(forward: &[(&str, Host)], reverse: &[(&str, Host)]) -> Plan {
    let mut plan = Plan::from_json(r#"{"duration_ns": 2000000000, "flows": [{"cca": "cubic"}]}"#).unwrap();
    (plan.forward, plan.reverse) = (path(forward), path(reverse));
    plan
}

fn schedule(plan: &mut Plan, json: &str) {
    plan.forward.schedule = serde_json::from_str(json).unwrap();
    plan.forward.validate().unwrap();
}

/// Whether an error means only that this machine cannot.
fn cannot(e: &TestbedError) -> Option<String> {
    let text = e.to_string();
    ["not permitted", "this kernel has no"].iter().any(|w| text.contains(w)).then_some(text)
}

/// Settings of the whole kernel, which is put right again.
fn within(values: &BTreeMap<String, String>) -> Settings<'_> {
    Settings { values, scope: Scope::Kernel }
}

fn build(plan: &Plan, sysctls: &BTreeMap<String, String>) -> Option<Testbed> {
    match Testbed::build(plan, &within(sysctls), None) {
        Ok(t) => Some(t),
        Err(e) => match cannot(&e) {
            Some(why) => {
                tcpscape_base::skip(why);
                None
            }
            None => panic!("{e}"),
        },
    }
}

/// Sends `bytes` over the testbed's network and waits until they are read; gives the time it took.
fn send(t: &Testbed, bytes: usize) -> Duration {
    sys::enter(t.hosts(0)[1].namespace).unwrap();
    let listener = TcpListener::bind((t.hosts(0)[1].address, 5001)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all.len()
    });
    sys::enter(t.hosts(0)[0].namespace).unwrap();
    let begin = Instant::now();
    let mut stream = TcpStream::connect((t.hosts(0)[1].address, 5001)).unwrap();
    stream.write_all(&vec![0; bytes]).unwrap();
    drop(stream);
    assert_eq!(reader.join().unwrap(), bytes);
    begin.elapsed()
}

/// Sends `bytes` from one host of a place to the other and waits until they are read; how many bytes the kernel sent again.
fn send_between(t: &Testbed, place: usize, up: bool, bytes: usize) -> u64 {
    let [from, to] = ends(t, place, up);
    sys::enter(to.namespace).unwrap();
    let listener = TcpListener::bind((to.address, 5001)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all.len()
    });
    sys::enter(from.namespace).unwrap();
    let mut stream = TcpStream::connect((to.address, 5001)).unwrap();
    stream.write_all(&vec![0; bytes]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(reader.join().unwrap(), bytes);
    TcpInfo::of(stream.as_fd()).unwrap().bytes_retrans()
}

/// Three links; the first place crosses all of them behind an access link of two stages, the second one the middle one alone, the third one the last two.
/// Each link counts the bytes of the places that cross it, in the direction in which they travel.
#[test]
fn places_cross_the_links_between_their_routers_in_both_directions() {
    let link = || LinkPlan { forward: path(&[("pfifo limit 1000", Host::Router)]), reverse: path(&[("bfifo limit 900000", Host::Router)]) };
    let mut p = plan(&[("pfifo limit 1000", Host::Router), ("pfifo limit 1000", Host::Router)], &[("pfifo limit 1000", Host::Router)]);
    p.links = vec![link(), link()];
    let access = LinkPlan {
        forward: path(&[("tbf rate 400mbit burst 100000 limit 900000", Host::Router), ("pfifo limit 1000", Host::Router)]),
        reverse: path(&[("pfifo limit 1000", Host::Router)]),
    };
    let place = |enter, leave| PlacePlan { enter, leave, ..PlacePlan::default() };
    p.places = vec![PlacePlan { near: access.clone(), far: link(), ..place(0, 3) }, place(1, 2), place(1, 3)];
    let here = sys::namespace().unwrap();
    let Some(mut t) = build(&p, &BTreeMap::new()) else { return };
    let transfers = [(0, false, 100_000), (0, true, 200_000), (1, false, 400_000), (1, true, 800_000), (2, false, 1_600_000)];
    let again: u64 = transfers.iter().map(|&(number, up, bytes)| send_between(&t, number, up, bytes)).sum();
    sys::enter(here.as_fd()).unwrap();
    let seen: BTreeMap<String, u64> = t
        .accounts()
        .unwrap()
        .into_iter()
        .map(|q| (format!("{} {} {}", q.stage.link.unwrap(), q.stage.direction, q.stage.stage), q.sent_bytes / 100_000))
        .collect();
    // ACKs and headers add a few percent, and a busy machine sends segments again.
    let expected = [
        ("chain/0 forward 0", 1),
        ("chain/0 forward 1", 1),
        ("chain/0 reverse 0", 2),
        ("chain/1 forward 0", 1 + 4 + 16),
        ("chain/1 reverse 0", 2 + 8),
        ("chain/2 forward 0", 1 + 16),
        ("chain/2 reverse 0", 2),
        ("far/0 forward 0", 1),
        ("far/0 reverse 0", 2),
        ("near/0 forward 0", 1),
        ("near/0 forward 1", 1),
        ("near/0 reverse 0", 2),
    ];
    let near = |(name, bytes): &(&str, u64)| {
        seen.get(*name).is_some_and(|seen| (*bytes..=bytes + 1 + bytes / 10 + again / 100_000).contains(seen))
    };
    assert!(expected.iter().all(near) && seen.len() == expected.len(), "{seen:?}, {again} bytes sent again");
    assert_eq!(t.faults().unwrap(), [""; 0]);
}

#[test]
fn data_cross_two_routers_and_every_stage_counts_them() {
    let p = plan(
        &[("tbf rate 100mbit burst 10000 limit 200000", Host::Sender), ("htb rate 80mbit", Host::Router), ("pfifo limit 50", Host::Router)],
        &[
            ("tbf rate 50mbit burst 10000 limit 200000; bfifo limit 90000", Host::Receiver),
            ("htb rate 20mbit; pfifo limit 30", Host::Router),
        ],
    );
    let Some(mut t) = build(&p, &BTreeMap::new()) else { return };
    let took = send(&t, 1_000_000);
    assert!(took < Duration::from_secs(3), "{took:?}");
    // 1 MB at 80 Mbit/s takes 0.1 s
    assert!(took > Duration::from_millis(80), "{took:?}");
    let queues = t.accounts().unwrap();
    let places: Vec<_> = queues.iter().map(|q| (q.stage.direction.name(), q.stage.stage, q.stage.kind, q.at)).collect();
    assert_eq!(
        places,
        [
            ("forward", 0, "tbf", Host::Sender),
            ("forward", 1, "htb", Host::Router),
            ("forward", 2, "pfifo", Host::Router),
            ("reverse", 0, "tbf", Host::Receiver),
            ("reverse", 1, "htb", Host::Router),
        ]
    );
    for q in &queues {
        let least = if q.stage.direction == tcpscape_path::Direction::Forward { 660 } else { 50 };
        assert!(q.sent_packets >= least && q.sent_bytes > 66 * q.sent_packets - 2000, "{q:?}");
    }
    assert_eq!(queues[3].children[0].kind, "bfifo");
    assert_eq!(serde_json::to_value(&queues[0]).unwrap()["where"], "forward");
    assert_eq!(t.faults().unwrap(), Vec::<String>::new());
}

#[test]
fn sender_and_receiver_may_be_joined_directly() {
    let p = plan(&[("tbf rate 50mbit burst 20000 limit 200000", Host::Sender)], &[]);
    let Some(mut t) = build(&p, &BTreeMap::new()) else { return };
    send(&t, 100_000);
    assert_eq!(t.hosts(0)[1].address.to_string(), "10.77.1.3");
    assert_eq!(t.accounts().unwrap().len(), 1);
    assert_eq!(t.faults().unwrap(), Vec::<String>::new());
}

#[test]
fn without_arp_the_first_packet_is_the_syn() {
    let mut p = plan(&[("pfifo limit 100", Host::Router)], &[("pfifo limit 100", Host::Router)]);
    p.arp = false;
    let Some(mut t) = build(&p, &BTreeMap::new()) else { return };
    let seconds = send(&t, 1).as_secs_f64();
    let q = t.accounts().unwrap();
    // Every Ethernet frame that passes the router is a TCP segment: SYN, ACK, data, FIN and ACKs.
    assert!(q[0].sent_packets <= 6 && q[1].sent_packets <= 6, "{q:?} after {seconds} s");
}

#[test]
fn settings_reach_both_ends_and_are_put_back() {
    let p = plan(&[], &[]);
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let before = read("core/rmem_max");
    let sysctls = [("net.ipv4.tcp_rmem", "4096 131072 777777"), ("net.core.rmem_max", "7777777")];
    let Some(t) = build(&p, &sysctls.map(|(k, v)| (k.to_owned(), v.to_owned())).into()) else { return };
    assert_eq!(read("core/rmem_max"), "7777777");
    let here = sys::namespace().unwrap();
    for end in [t.hosts(0)[0].namespace, t.hosts(0)[1].namespace] {
        sys::enter(end).unwrap();
        assert_eq!(read("ipv4/tcp_rmem"), "4096 131072 777777");
    }
    drop(t);
    sys::enter(here.as_fd()).unwrap();
    assert_eq!(read("core/rmem_max"), before);
    let wrong = [("net.ipv4.tcp_nonsense", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let e = Testbed::build(&p, &within(&wrong), None).err().unwrap().to_string();
    assert_eq!(e, "sysctl net.ipv4.tcp_nonsense = 1: this kernel has no such setting");
}

#[test]
fn what_the_kernel_does_not_have_is_named() {
    let e =
        Testbed::build(&plan(&[("jitter delay 25ms 8ms order clamp", Host::Sender)], &[]), &within(&BTreeMap::new()), None).err().unwrap();
    assert!(e.to_string().starts_with("jitter: the kernel has no such queue; write netem delay"), "{e}");
    if let Err(e) =
        Testbed::build(&plan(&[("pfifo limit 10", Host::Sender), ("netem delay 1ms", Host::Router)], &[]), &within(&BTreeMap::new()), None)
    {
        let text = e.to_string();
        let expected = "forward stage 1 (netem): this kernel has no netem: build it with CONFIG_NET_SCH_NETEM";
        assert!(text == expected || text.contains("not permitted"), "{text}");
    }
}

#[test]
fn steps_ramps_periods_and_traces_become_single_changes() {
    let mut p = plan(&[("tbf rate 10mbit burst 10000 limit 100000; pfifo limit 40", Host::Sender), ("htb rate 50mbit", Host::Router)], &[]);
    schedule(
        &mut p,
        r#"[
        {"stage": 0, "change": {"kind": "ramp", "from": 100000000, "until": 400000000, "every": 100000000,
            "start": {"rate": 10000000}, "end": {"rate": 40000000}}},
        {"stage": 0, "depth": 1, "change": {"kind": "periodic", "first": 500000000, "period": 600000000, "hold": 50000000, "set": {"limit": 20}}},
        {"stage": 1, "change": {"kind": "rate_trace", "points": [[0, 8000000], [700000000, 16000000]], "repeat": 1400000000}},
        {"stage": 1, "change": {"kind": "set", "at": 5000000000, "set": {"rate": 1000000}}}]"#,
    );
    let Some(mut t) = build(&p, &BTreeMap::new()) else { return };
    let times: Vec<u64> = t.changes().iter().map(|c| c.at_ns / 1_000_000).collect();
    // The ramp's first step changes nothing; the last set is after the plan's end.
    assert_eq!(times, [0, 200, 300, 400, 500, 550, 700, 1100, 1150, 1400, 1700, 1750]);
    for i in 0..times.len() {
        t.apply(i).unwrap();
    }
    send(&t, 10_000);
}
