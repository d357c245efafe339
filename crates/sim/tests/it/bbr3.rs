//! BBR version 3 against what its draft claims and against closed forms: no kernel has it to compare with. Its bottleneck holds 20 Mbit/s,
//! its path 40 ms; "BDP" is 66 packets of 1,514 bytes. Sections are those of draft-ietf-ccwg-bbr-06.

use std::sync::{Arc, Mutex};
use tcpscape_base::{CaState, Stream};
use tcpscape_path::{parse_tc, Host, PathSpec};
use tcpscape_plan::results::FlowSummary;
use tcpscape_plan::Plan;
use tcpscape_sim::CheckedPlan;
use tcpscape_sim::{Controls, TrialOutput};
use tcpscape_tcp::cc::{AckSample, Bbr3, CaEvent, CongestionController, LostPacket, Options, PktsAcked, View, Window};

const BDP: f64 = 66.0;
/// Payload that 20 Mbit/s carry, Mbit/s.
const BOUND: f64 = 20.0 * 1_448.0 / 1_514.0;

/// What the controller was after an ACK.
#[derive(Clone, Copy, Debug)]
struct Note {
    s: f64,
    state: &'static str,
    in_flight: f64,
    /// Of the payload, Mbit/s.
    rate: f64,
    bw: f64,
    inflight_hi: f64,
}

/// BBR version 3 with a note of each ACK.
struct Watched(Bbr3, Arc<Mutex<Vec<Note>>>);

impl CongestionController for Watched {
    fn init(&mut self, v: &View, w: &mut Window) {
        self.0.init(v, w);
    }
    fn ssthresh(&mut self, v: &View, w: &Window) -> u32 {
        self.0.ssthresh(v, w)
    }
    fn pkts_acked(&mut self, v: &View, w: &mut Window, a: &PktsAcked) {
        self.0.pkts_acked(v, w, a);
    }
    fn wants_lost(&self) -> bool {
        self.0.wants_lost()
    }
    fn on_lost(&mut self, v: &View, w: &mut Window, p: &LostPacket) {
        self.0.on_lost(v, w, p);
    }
    fn on_ack(&mut self, v: &View, w: &mut Window, s: &AckSample) {
        self.0.on_ack(v, w, s);
        self.1.lock().unwrap().push(Note {
            s: v.now.0 as f64 / 1e9,
            state: self.0.state(),
            in_flight: f64::from(v.in_flight),
            rate: w.pacing_rate as f64 * 8.0 / 1e6,
            bw: self.0.bandwidth() * 1_448.0 * 8.0 / 1e6,
            inflight_hi: self.0.inflight_hi().map_or(0.0, f64::from),
        });
    }
    fn on_state(&mut self, v: &View, w: &mut Window, new: CaState) {
        self.0.on_state(v, w, new);
    }
    fn on_event(&mut self, v: &View, w: &mut Window, e: CaEvent) {
        self.0.on_event(v, w, e);
    }
    fn undo(&mut self, v: &View, w: &Window) -> u32 {
        self.0.undo(v, w)
    }
    fn owns_window(&self) -> bool {
        true
    }
    fn sndbuf_expand(&self) -> u32 {
        self.0.sndbuf_expand()
    }
}

fn path(words: &[String], host: Host) -> PathSpec {
    let mut p = PathSpec::of(words.iter().map(|w| parse_tc(w).unwrap()));
    p.stages.iter_mut().for_each(|s| s.at = host);
    p.validate().unwrap();
    p
}

/// Flows of these controls; `netem` is added to the delay, the buffer is `bdp`.
fn plan(ccas: &[&str], secs: u64, netem: &str, bdp: f64) -> Plan {
    let flows: Vec<String> = ccas.iter().map(|c| format!(r#"{{"cca":"{c}"}}"#)).collect();
    let json = format!(r#"{{"duration_ns":{},"arp":false,"flows":[{}]}}"#, secs * 1_000_000_000, flows.join(","));
    let mut p = Plan::from_json(&json).unwrap();
    let limit = 1_514.0 * BDP * bdp;
    p.forward =
        path(&[format!("netem delay 20ms {netem} limit 100000"), format!("tbf rate 20mbit burst 6056 limit {limit:.0}")], Host::Router);
    p.reverse = path(&["netem delay 20ms limit 100000".into()], Host::Receiver);
    p
}

/// Runs one trial.
fn run(p: &Plan, seed: u64) -> TrialOutput {
    CheckedPlan::new(p.clone()).unwrap().run(seed)
}

/// A lonely flow for `secs`, ACK by ACK.
fn watch(secs: u64, netem: &str, bdp: f64) -> (FlowSummary, Vec<Note>) {
    watch_plan(plan(&["bbr3"], secs, netem, bdp))
}

fn watch_plan(mut p: Plan) -> (FlowSummary, Vec<Note>) {
    let notes = Arc::new(Mutex::new(vec![]));
    let kept = notes.clone();
    let controls = Controls::new().with("watched", move |_, seed| Box::new(Watched(Bbr3::new(&Options { seed, set: None }), kept.clone())));
    p.flows[0].cca = "watched".into();
    let f = CheckedPlan::with_controls(p, &controls).unwrap().run(1).flows[0].clone();
    let notes = notes.lock().unwrap().clone();
    (f, notes)
}

/// The stays in states, in order: state and its notes.
fn stays(notes: &[Note]) -> Vec<(&'static str, &[Note])> {
    notes.chunk_by(|a, b| a.state == b.state).map(|c| (c[0].state, c)).collect()
}

fn seconds(n: &[Note]) -> f64 {
    n[n.len() - 1].s - n[0].s
}

/// Goodput of the second half, as a part of what the bottleneck carries.
fn share(f: &FlowSummary, secs: u64) -> f64 {
    (f.bytes_received - f.bytes_received_first_half) as f64 * 8.0 / (secs as f64 / 2.0) / 1e6 / BOUND
}

/// §5.3.1.1, A.1: the rate doubles each round trip, so that 6.6 windows need ⌈log₂ 6.6⌉ = 3, and three more show the plateau. The queue
/// stays at a BDP, and DRAIN at half the rate takes a round trip to empty it. 2 % is what the draft asks of the bandwidth.
#[test]
fn startup_finds_the_bandwidth_in_log_bdp_round_trips() {
    let (f, notes) = watch(4, "", 8.0);
    let all = stays(&notes);
    assert_eq!((all[0].0, all[1].0), ("STARTUP", "DRAIN"));
    let (startup, drain) = (all[0].1, all[1].1);
    assert!(seconds(startup) < 8.0 * 0.08, "{}", seconds(startup));
    let last = startup[startup.len() - 1];
    assert!((last.bw / BOUND - 1.0).abs() < 0.02, "{last:?}");
    let most = startup.iter().map(|n| n.in_flight).fold(0.0, f64::max);
    assert!((1.7 * BDP..2.2 * BDP).contains(&most), "{most}");
    assert!(seconds(drain) < 2.0 * 0.08, "{}", seconds(drain));
    assert_eq!((f.retransmits, f.rtos), (0, Some(0)));
}

/// §5.6.1: in CRUISE the rate is 1 % below the bandwidth as measured, and that is up to 2 % too much: samples are of 66 packets, one more or
/// less. What is in flight stays near a BDP: a rate that is 1 % above the link's for the 2 to 3 s of a cycle fills a quarter to a third of one, in the mean
/// half of that, and in a large buffer what the probe has left waits, too.
#[test]
fn cruising_keeps_a_bdp_in_flight() {
    for buffer in [0.5, 1.0, 4.0] {
        let (_, notes) = watch(20, "", buffer);
        let cruise: Vec<&Note> = notes.iter().filter(|n| n.state == "CRUISE" && n.s > 4.0).collect();
        let mean = |f: fn(&Note) -> f64| cruise.iter().map(|n| f(n)).sum::<f64>() / cruise.len() as f64;
        println!(
            "{buffer} BDP: in CRUISE {:.2} BDP in flight at {:.3} of the bandwidth",
            mean(|n| n.in_flight) / BDP,
            mean(|n| n.rate) / BOUND
        );
        assert!((0.85..1.25).contains(&(mean(|n| n.in_flight) / BDP)), "{buffer}: {}", mean(|n| n.in_flight) / BDP);
        assert!((mean(|n| n.rate) / BOUND / 0.99 - 1.0).abs() < 0.02, "{buffer}: {}", mean(|n| n.rate) / BOUND);
        let time: f64 = stays(&notes).iter().filter(|s| s.0 == "CRUISE").map(|s| seconds(s.1)).sum();
        assert!(time > 0.5 * 16.0, "{buffer}: {time} s in CRUISE");
    }
}

/// §5.3.3.5, §5.3.3.8: a probe 2 to 3 s or 63 round trips (2.5 s) after the one before or after PROBE_RTT, which thus leaves one in 5 s. It
/// lasts three round trips, of 40 ms at first and 90 ms at last, with 2.25 BDP in flight at most, of a bandwidth measured up to 2 % too high: a queue of 1.25.
#[test]
fn probes_come_two_to_three_seconds_after_a_cycle_begins() {
    let (_, notes) = watch(60, "", 8.0);
    let all = stays(&notes);
    let (mut began, mut probes) = (0.0, 0);
    for (i, (state, stay)) in all.iter().enumerate() {
        match *state {
            "DOWN" => began = stay[0].s,
            "CRUISE" if all[i - 1].0 != "DOWN" => began = stay[0].s,
            "REFILL" => {
                let wait = stay[0].s - began;
                assert!((1.95..3.05).contains(&wait), "{wait}");
            }
            "UP" => {
                let most = stay.iter().map(|n| n.in_flight).fold(0.0, f64::max);
                assert!((1.15 * BDP..2.25 * 1.02 * BDP + 8.0).contains(&most), "{most}");
                assert!((0.1..0.45).contains(&seconds(stay)), "{}", seconds(stay));
                probes += 1;
            }
            _ => {}
        }
    }
    assert!((10..=24).contains(&probes), "{probes}");
}

/// §5.3.4: every 5 s half a BDP in flight for 200 ms, and a round trip: 2 % of the bandwidth, with the 1 % of the pacing margin 97 %.
#[test]
fn probe_rtt_costs_two_per_cent() {
    let (f, notes) = watch(60, "", 8.0);
    let dips: Vec<&[Note]> = stays(&notes).into_iter().filter(|s| s.0 == "PROBE_RTT").map(|s| s.1).collect();
    assert!((10..=12).contains(&dips.len()), "{}", dips.len());
    for (a, b) in dips.iter().zip(&dips[1..]) {
        let gap = b[0].s - a[a.len() - 1].s;
        assert!((4.9..5.2).contains(&gap), "{gap}");
    }
    for d in &dips[..dips.len() - 1] {
        assert!((0.199_999..0.32).contains(&seconds(d)), "{}", seconds(d));
        let last = d[d.len() - 1].in_flight.min(d[d.len() / 2].in_flight);
        assert!((0.4 * BDP..0.56 * BDP).contains(&last), "{last}");
    }
    println!("in a deep buffer {:.3}", share(&f, 60));
    assert!((0.965..0.995).contains(&share(&f, 60)), "{}", share(&f, 60));
    assert_eq!(f.retransmits, 0, "no loss in a deep buffer");
}

/// Shallow buffers: nearly all of the bandwidth, with less loss than version 1. A bound of the volume is found (§5.5.10.2) and lies
/// between a BDP and what path and buffer hold.
#[test]
fn shallow_buffers_are_used_with_little_loss() {
    for buffer in [0.1, 0.2, 0.5] {
        let (f, notes) = watch(30, "", buffer);
        let lost = f.retransmits as f64 / f.data_segs_out as f64;
        let v1 = run(&plan(&["bbr"], 30, "", buffer), 1).flows[0].clone();
        let lost_v1 = v1.retransmits as f64 / v1.data_segs_out as f64;
        println!("{buffer} BDP: {:.3} and {lost:.4} lost, version 1 {:.3} and {lost_v1:.4}", share(&f, 30), share(&v1, 30));
        let hi: Vec<f64> = notes.iter().filter(|n| n.s > 10.0 && n.inflight_hi > 0.0).map(|n| n.inflight_hi).collect();
        let mean = hi.iter().sum::<f64>() / hi.len() as f64;
        println!("volume {:.2} BDP", mean / BDP);
        assert!(share(&f, 30) > 0.9, "{buffer}: {}", share(&f, 30));
        assert!(lost < 0.02 && lost < 0.5 * lost_v1, "{buffer}: {lost} {lost_v1}");
        assert!((0.8 * BDP..1.1 * (1.0 + buffer) * BDP + 6.0).contains(&mean), "{buffer}: {mean}");
    }
}

/// §3.1: full throughput with a loss rate of up to 1 %, where Reno's law gives 2.5 Mbit/s; beyond the 2 % of its threshold it falls, where
/// version 1 does not.
#[test]
fn one_per_cent_of_loss_costs_little_and_three_much() {
    let mean = |cca: &str, loss: &str| {
        let all: Vec<f64> = (1..=16).map(|s| share(&run(&plan(&[cca], 30, loss, 1.0), s).flows[0], 30)).collect();
        all.iter().sum::<f64>() / 16.0
    };
    let [clean, one, three] = ["", "loss 1%", "loss 3%"].map(|l| mean("bbr3", l));
    println!("no loss {clean:.3}, 1 % {one:.3}, 3 % {three:.3}");
    assert!(clean > 0.965 && one > 0.85 && three < 0.8 && three > 0.2, "{clean} {one} {three}");
    assert!(mean("cubic", "loss 1%") < 0.25 && mean("bbr", "loss 3%") > 0.9);
}

/// §5.3.3.8.1: CUBIC beside it gets 43 to 57 % of the bandwidth at 0.5 to 4 BDP, where version 1 leaves it a seventh at 0.5 and 1 BDP. Two of
/// its own share evenly.
#[test]
fn it_leaves_room_for_cubic_and_for_itself() {
    for buffer in [0.5, 1.0, 2.0, 4.0] {
        let against = |cca: &str, other: &str| {
            let t = run(&plan(&[cca, other], 60, "", buffer), 1);
            t.flows[1].goodput_mbps / (t.flows[0].goodput_mbps + t.flows[1].goodput_mbps)
        };
        let (cubic, v1, own) = (against("bbr3", "cubic"), against("bbr", "cubic"), against("bbr3", "bbr3"));
        println!("{buffer} BDP: CUBIC has {cubic:.2}, beside version 1 {v1:.2}; of two the second {own:.2}");
        assert!((0.35..0.65).contains(&cubic), "{buffer}: CUBIC has {cubic}");
        assert!((0.4..0.6).contains(&own), "{buffer}: the second one has {own}");
        if buffer <= 1.0 {
            assert!(v1 < 0.25, "{buffer}: beside version 1 CUBIC has {v1}");
        }
    }
}

/// A.15, A.16: the rate is multiplied at 15 s. More: UP raises the rate by 1.25 · 0.99 a round trip, so ten times more need 11 round trips; the
/// probe comes within 5 s. Less: two cycles later, with PROBE_RTTs between them, nothing is left of the old bandwidth.
#[test]
fn tenfold_changes_of_the_rate_are_followed() {
    let changed = |from: u64, to: u64| {
        let mut p = plan(&["bbr3"], 45, "", 1.0);
        let tbf = format!("tbf rate {from}mbit burst 12112 limit 1000000");
        p.forward = path(&["netem delay 20ms limit 100000".into(), tbf], Host::Router);
        let change = serde_json::json!([{"stage": 1, "change": {"kind": "set", "at": 15_000_000_000u64, "set": {"rate": to * 1_000_000}}}]);
        p.forward.schedule = serde_json::from_value(change).unwrap();
        let notes = watch_plan(p).1;
        let part = |n: &Note| n.bw / (to as f64 * 1_448.0 / 1_514.0);
        let after: Vec<&Note> = notes.iter().filter(|n| n.s > 15.0).collect();
        let found = after.iter().find(|n| (0.9..1.1).contains(&part(n))).map_or(f64::NAN, |n| n.s - 15.0);
        let last = after.iter().rev().find(|n| part(n) > 1.1).map_or(0.0, |n| n.s - 15.0);
        println!("{from} to {to} Mbit/s: found after {found:.2} s, no longer above after {last:.2} s");
        (found, last)
    };
    let (more, for_good) = (changed(20, 200).0, changed(200, 20).1);
    assert!(more < 7.0 && for_good < 15.0, "{more} {for_good}");
}

/// A.17: a bucket of 60 kB behind which a packet or two may wait. After the first burst the rate is the bucket's, with less loss than the
/// fifth that STARTUP's gain would cause.
#[test]
fn a_policer_is_obeyed() {
    let policed = |cca: &str| {
        let mut p = plan(&[cca], 40, "", 1.0);
        p.forward = path(&["netem delay 20ms limit 100000".into(), "tbf rate 20mbit burst 60000 limit 3100".into()], Host::Router);
        run(&p, 1).flows[0].clone()
    };
    let (f, v1) = (policed("bbr3"), policed("bbr"));
    let lost = |f: &FlowSummary| f.retransmits as f64 / f.data_segs_out as f64;
    println!("policer: {:.3} and {:.4} lost, version 1 {:.3} and {:.4}", share(&f, 40), lost(&f), share(&v1, 40), lost(&v1));
    assert!(share(&f, 40) > 0.8 && lost(&f) < 0.03);
}

/// Marks on a path of 2 ms: the answer by share keeps the queue of CAKE short without a loss, and the link busy.
#[test]
fn marks_replace_losses_on_a_short_path() {
    let mut p = plan(&["bbr3"], 20, "", 1.0);
    p.ecn = true;
    let cake = "cake bandwidth 20mbit besteffort rtt 10ms".to_string();
    p.forward = path(&["netem delay 1ms limit 100000".into(), cake], Host::Router);
    p.reverse = path(&["netem delay 1ms limit 100000".into()], Host::Receiver);
    p.sample_interval_ns = 100_000_000;
    let t = run(&p, 1);
    let (f, marks) = (&t.flows[0], *t.samples.delivered_ce.last().unwrap());
    println!("marks: {marks} of {}, {} retransmits, {:.3}, rtt {:?}", f.data_segs_out, f.retransmits, share(f, 20), f.rtt_ms);
    assert!(f.retransmits == 0 && marks > 0 && share(f, 20) > 0.9 && f.rtt_ms.p95 < 8.0);
}

/// The random waits differ between seeds, and the same seed repeats a trial.
#[test]
fn the_seed_decides_the_waits() {
    let p = plan(&["bbr3"], 10, "", 1.0);
    let hash = |seed| run(&p, seed).hash;
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
    // The stream is the controller's own.
    assert_ne!(Stream::new(1, "bbr3").next_u32(), Stream::new(1, "bbr").next_u32());
}
