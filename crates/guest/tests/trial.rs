//! A whole trial on the machine's own kernel, in namespaces of its own: the guest's code without the guest.

use std::collections::BTreeMap;
use std::fs::File;
use tcpscape_guest::trial::{run, Job};
use tcpscape_plan::results::SizeClass;
use tcpscape_plan::transfers::draw;
use tcpscape_plan::{App, FlowPlan, Plan};
use tcpscape_testbed::course::CapturePoint;
use tcpscape_testbed::{report::Report, sys, watch::Watched};

fn plan(text: &str) -> Plan {
    serde_json::from_str(text).expect("a plan")
}

fn job(plan: Plan) -> Job {
    Job { seed: 1, plan, sysctls: BTreeMap::new(), pcap: Vec::new(), sample_ns: 10_000_000 }
}

/// Runs a job on a thread of its own (it changes namespaces); None without the privilege.
fn on_this_kernel(job: Job, pcap: Option<std::path::PathBuf>) -> Option<(Report, Watched)> {
    let outcome = std::thread::spawn(move || {
        sys::prepare_signals();
        let captures: Vec<_> = pcap.into_iter().map(|file| (CapturePoint::Sender, file)).collect();
        run(&job, &File::open("/proc/thread-self/ns/net").expect("proc"), &captures)
    });
    match outcome.join().expect("no panic") {
        Ok(result) => Some(result),
        Err(e) => skip(&e.to_string()),
    }
}

/// Runs a trial until it is as it should be, five times at most: what the machine does beside it may spoil one in real time, a fault spoils all.
fn undisturbed(trial: fn()) {
    if !(1..5).any(|_| std::panic::catch_unwind(trial).is_ok()) {
        trial();
    }
}

/// Says why a test is skipped; any other failure is one.
fn skip<T>(why: &str) -> Option<T> {
    assert!(why.contains("not permitted") || why.contains("this kernel has no"), "{why}");
    tcpscape_base::skip(why);
    None
}

const BOTTLENECK: &str = r#"{"duration_ns": 400000000, "sample_interval_ns": 20000000, "queue_sample_interval_ns": 50000000,
  "forward": {"stages": [{"qdisc": {"kind": "tbf", "rate": 20000000, "burst": 6056, "limit": 100000}, "at": "router"}]},
  "flows": [{"cca": "reno", "app": {"kind": "bulk", "chunk": 8192}}]}"#;

#[test]
fn a_bulk_flow_fills_its_bottleneck_and_is_accounted_for() {
    undisturbed(|| {
        let Some((report, watched)) = on_this_kernel(job(plan(BOTTLENECK)), None) else { return };
        let flow = &report.flows[0];
        assert!(flow.established);
        assert!((10.0..20.5).contains(&flow.goodput_mbps), "{} Mbit/s through 20", flow.goodput_mbps);
        assert!((flow.goodput_mbps - flow.bytes_received as f64 * 8e-6 / flow.seconds).abs() < 1e-9);
        assert!((0.39..0.45).contains(&flow.seconds), "{} s", flow.seconds);
        assert!(flow.bytes_received <= flow.bytes_sent);
        let limits = flow.limited_by.expect("an established flow");
        let sum = limits.app + limits.rwnd + limits.sndbuf + limits.cwnd;
        assert!((0.99..1.01).contains(&sum), "limits add up to {sum}");
        assert!(watched.samples.t_ns.len() >= 15 && watched.samples.t_ns.windows(2).all(|w| w[0] < w[1]));
        assert!(watched.queues.packets.iter().any(|&n| n > 0), "a queue that never filled");
        assert_eq!(report.proof.as_ref().map(|p| p.stages.len()), Some(1));
    });
}

#[test]
fn finite_and_paced_writers_and_a_slow_reader_do_what_they_say() {
    undisturbed(|| {
        let mut said = plan(BOTTLENECK);
        said.forward.stages.clear();
        let flow = |app: App| FlowPlan { app, ..said.flows[0].clone() };
        let mut slow = flow(App::Paced { chunk: 1000, rate: 1e6 });
        slow.read = tcpscape_plan::Read { size: 500, delay_ns: 1_000_000 };
        let flows = vec![flow(App::Finite { chunk: 8192, bytes: 100_001 }), flow(App::Paced { chunk: 1000, rate: 1e6 }), slow];
        let Some((report, _)) = on_this_kernel(job(Plan { flows, ..said }), None) else { return };
        assert_eq!(report.caveats, Vec::<String>::new());
        let [finite, paced, slow] = &report.flows[..] else { panic!("three flows") };
        assert_eq!((finite.bytes_sent, finite.bytes_received), (100_001, 100_001));
        assert!(finite.seconds < 0.3);
        // at most one chunk a millisecond, and nearly as many where the machine is quiet
        assert!(paced.bytes_sent <= 402_000 && paced.bytes_sent > 100_000, "{}", paced.bytes_sent);
        // at most 500 bytes a millisecond; what is left is read after the end
        assert!(slow.bytes_received_first_half <= 103_000, "{}", slow.bytes_received_first_half);
        assert!(slow.bytes_received <= slow.bytes_sent);
    });
}

/// 100 kbit/s for 0.2 s are 2,500 bytes: a network of 20 Mbit/s brings five segments, what the buffer holds, at once, and then one each 0.2 s.
#[test]
fn a_player_asks_and_its_server_answers() {
    undisturbed(|| {
        let mut watched = plan(BOTTLENECK);
        watched.duration_ns = 800_000_000;
        let player = r#"{"ladder_bps": [100000], "segment_ns": 200000000, "buffer_ns": 1000000000, "abr": "bola"}"#;
        watched.flows[0].player = Some(serde_json::from_str(player).expect("a player"));
        let Some((report, _)) = on_this_kernel(job(watched), None) else { return };
        let flow = &report.flows[0];
        let seen = flow.player.expect("a player has a viewer");
        assert!(seen.began && (5..=9).contains(&seen.segments) && seen.played_s <= 0.9, "{seen:?}");
        assert!(flow.bytes_received >= seen.segments * 2_500 && flow.bytes_received <= flow.bytes_sent, "{}", flow.bytes_received);
        assert_eq!(report.caveats, Vec::<String>::new());
    });
}

/// A path without a queue, so that all arrives: every 20 ms a datagram and an echo, from 100 ms on, are 15 each in 400 ms.
#[test]
fn probes_of_each_kind_arrive_on_an_idle_path() {
    undisturbed(|| {
        let mut probed = plan(BOTTLENECK);
        probed.forward.stages.clear();
        probed.flows[0].app = App::Finite { chunk: 100, bytes: 100 };
        let kinds = ["udp", "udp_echo", "icmp_echo"];
        let probe = |kind, up| format!(r#"{{"kind": "{kind}", "size": 100, "interval_ns": 20000000, "start_ns": 100000000, "up": {up}}}"#);
        let texts = kinds.iter().flat_map(|kind| [probe(kind, false), probe(kind, true)]);
        probed.probes = texts.map(|text| serde_json::from_str(&text).expect("a probe")).collect();
        let Some((report, watched)) = on_this_kernel(job(probed), None) else { return };
        assert_eq!(report.caveats, Vec::<String>::new());
        assert_eq!(report.probes.len(), 6);
        for probe in &report.probes {
            // the last packet leaves 20 ms before the end; a machine that is busier than that loses it
            assert!(probe.sent == 15 && (14..=15).contains(&probe.received) && probe.delay_ms.min > 0.0, "{probe:?}");
            assert_eq!(probe.reordered, 0);
        }
        let table = &watched.probes;
        assert_eq!(table.t_ns.len(), 90);
        assert!(table.t_ns.windows(2).all(|w| w[0] <= w[1]) && table.t_ns[0] >= 100_000_000, "{:?}", &table.t_ns[..6]);
        let arrived = report.probes.iter().map(|p| p.received).sum::<u64>();
        assert_eq!(table.delay_ns.iter().filter(|&&delay| delay < u64::MAX).count() as u64, arrived);
    });
}

#[test]
fn a_probe_that_cannot_carry_its_number_is_refused() {
    let mut probed = plan(BOTTLENECK);
    probed.probes = vec![serde_json::from_str(r#"{"kind": "udp", "size": 7, "interval_ns": 1000000}"#).expect("a probe")];
    let outcome = std::thread::spawn(move || {
        let home = File::open("/proc/thread-self/ns/net").expect("proc");
        run(&job(probed), &home, &[]).map(|_| ()).map_err(|e| e.to_string())
    });
    let why = outcome.join().expect("no panic").expect_err("refused");
    if !why.contains("write at least 8") {
        skip::<()>(&why);
    }
}

/// 200 connections a second for 300 ms, in both directions, on a path that carries them at once.
#[test]
fn transfers_are_those_that_were_drawn() {
    undisturbed(|| {
        let mut busy = plan(BOTTLENECK);
        busy.forward.stages.clear();
        busy.flows[0].app = App::Finite { chunk: 100, bytes: 100 };
        let entry = |up| {
            let flow = format!(r#"{{"cca": "reno", "stop_ns": 300000000, "up": {up}}}"#);
            format!(r#"{{"flow": {flow}, "per_second": 200, "least": 1000, "most": 300000, "shape": 1.2}}"#)
        };
        busy.transfers = [false, true].map(|up| serde_json::from_str(&entry(up)).expect("transfers")).to_vec();
        let drawn: Vec<_> = busy.transfers.iter().enumerate().map(|(i, t)| draw(t, i, 1, busy.duration_ns)).collect();
        let Some((report, _)) = on_this_kernel(job(busy), None) else { return };
        assert_eq!(report.caveats, Vec::<String>::new());
        assert_eq!(report.transfers.len(), 2);
        for (drawn, summary) in drawn.iter().zip(&report.transfers) {
            let count = |of: fn(&SizeClass) -> u64| summary.classes.iter().map(of).sum::<u64>();
            assert_eq!((count(|c| c.started), count(|c| c.completed)), (drawn.len() as u64, drawn.len() as u64));
            assert_eq!(summary.bytes_received, drawn.iter().map(|t| t.bytes).sum::<u64>());
            let small = drawn.iter().filter(|t| t.bytes <= 10_000).count() as u64;
            assert!(summary.classes[0].started == small && summary.classes[0].completion_ms.min > 0.0, "{summary:?}");
        }
    });
}

/// Requests every 50 ms for 400 ms are 8 at most; data that travel up are those of the right host.
#[test]
fn clients_ask_and_writers_pause() {
    undisturbed(|| {
        let mut asked = plan(BOTTLENECK);
        asked.forward.stages.clear();
        let flow = |app: App, up: bool| FlowPlan { app, up, ..asked.flows[0].clone() };
        let respond = |think_ns, every_ns| App::Respond { chunk: 8192, response: 20_000, think_ns, every_ns };
        let on_off = App::OnOff { chunk: 1000, on_ns: 50_000_000, off_ns: 150_000_000, rate: 1e6 };
        let flows = vec![flow(respond(0, 50_000_000), false), flow(respond(30_000_000, 0), true), flow(on_off, true)];
        let Some((report, _)) = on_this_kernel(job(Plan { flows, ..asked }), None) else { return };
        assert_eq!(report.caveats, Vec::<String>::new());
        let [every, think, turns] = &report.flows[..] else { panic!("three flows") };
        for (flow, most) in [(every, 8), (think, 14)] {
            let seen = flow.responses.expect("it answers");
            assert!((2..=most).contains(&seen.count) && seen.time_ms.min > 0.0, "{seen:?}");
            assert!((seen.count * 20_000..=(seen.count + 1) * 20_000).contains(&flow.bytes_received), "{}", flow.bytes_received);
        }
        // two turns of 50 ms at 1 MB/s, and a chunk more in each
        assert!(turns.bytes_sent <= 102_000 && turns.bytes_sent >= 10_000, "{}", turns.bytes_sent);
        assert!(turns.responses.is_none());
    });
}

#[test]
fn the_recorder_writes_a_pcap_of_the_senders_packets() {
    let file = std::env::temp_dir().join(format!("tcpscape-guest-{}.pcap", std::process::id()));
    let Some((report, _)) = on_this_kernel(job(plan(BOTTLENECK)), Some(file.clone())) else { return };
    let bytes = std::fs::read(&file).expect("a file");
    std::fs::remove_file(&file).expect("removable");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 101));
    let (mut at, mut packets) = (24, 0);
    while at + 16 <= bytes.len() {
        assert_eq!(bytes[at + 16] >> 4, 4, "an IPv4 header");
        at += 16 + word(at + 8) as usize;
        packets += 1;
    }
    assert_eq!(at, bytes.len());
    assert!(packets >= report.flows[0].data_segs_out, "{packets} packets, {} with data", report.flows[0].data_segs_out);
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_named() {
    let mut said = plan(BOTTLENECK);
    said.flows[0].cca = "nosuch".into();
    let outcome = std::thread::spawn(move || {
        let home = File::open("/proc/thread-self/ns/net").expect("proc");
        run(&job(said), &home, &[]).map(|_| ()).map_err(|e| e.to_string())
    });
    let said = outcome.join().expect("no panic").expect_err("refused");
    if !said.contains("nosuch") {
        skip::<()>(&said);
    }
}
