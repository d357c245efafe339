//! Twins: the same packets at the same times through the link and through the simulator's network, and the same becomes of each.
//!
//! Packets are told apart by their sequence number: loss, due time, order, CE marks and copies of the n-th packet are the same, for every
//! discipline of the registry and every impairment, at the sender's host, in the network and on the way back. Damaged packets are left out on
//! both sides, as a receiver leaves them out.

use super::frames::{read, Build};
use super::*;
use tcpscape_base::{Duration, Ecn, Flags, Rate, Segment};
use tcpscape_fuzzing::choices::{bytes, Choices};
use tcpscape_fuzzing::schedule;
use tcpscape_path::schedule::Change;
use tcpscape_path::{Host, ScheduledChange, REGISTRY};
use tcpscape_plan::Plan;
use tcpscape_sim::{Arrival, CheckedPlan, Network};
use tcpscape_tcp::Transmit;

/// Words beyond the registry's examples that generated paths seldom have.
const MORE: &[&str] = &[
    "netem delay 25ms 8ms 25% distribution paretonormal loss 2% 10% duplicate 3% corrupt 1% reorder 5% gap 3",
    "cake bandwidth 9mbit diffserv8 flows ingress memlimit 30000 ethernet ack-filter",
    "cake bandwidth 10mbit no-split-gso dual-srchost rtt 1ms ack-filter-aggressive",
    "tbf rate 6mbit burst 3028 limit 40000; fq_codel limit 20 flows 16 ecn",
    "jitter delay 25ms 8ms order correlated tau 20ms",
];
/// Generated paths.
const GENERATED: u64 = 170;
const MSS: u32 = 1_448;
/// When, direction, sequence number, ECN field.
type Seen = (Time, Direction, u64, u8);

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// The pipes of a plain path.
const HOST: u32 = 0;
const NETWORK: u32 = 1;
const REVERSE: u32 = 2;

/// The simulator's network, driven event by event.
struct Model {
    network: Network,
    seen: Vec<Seen>,
    /// The latest time: what has left its host since then is told at once.
    now: Time,
}

impl Model {
    fn run(&mut self, until: Time) {
        let net = &mut self.network;
        loop {
            let now = self.now;
            let next = [HOST, NETWORK, REVERSE].into_iter().filter_map(|pipe| net.next_event(pipe, now)).min();
            let Some(t) = next.filter(|t| *t <= until) else { return };
            let now = t.max(now);
            self.now = now;
            net.leave_host(HOST, NETWORK, now);
            net.released(HOST).for_each(drop);
            drop(net.departed());
            while let Some(Arrival::Data(_, s)) = net.arrived(NETWORK, now) {
                self.seen.push((now, Direction::Forward, s.seq, ecn_bits(s.ecn)));
            }
            while let Some(Arrival::Back(_, s)) = net.arrived(REVERSE, now) {
                self.seen.push((now, Direction::Reverse, s.seq, 0));
            }
        }
    }

    fn send(&mut self, now: Time, flow: usize, segment: Segment) {
        self.now = now;
        let segs = segment.len.div_ceil(MSS).max(1) as u16;
        self.network.send(now, flow, &Transmit { segment, segs, burst: 1, departure: now });
    }
}

/// What leaves the link until `until`, as [`Model`] sees it: each segment of a super-packet by itself, where they are cut.
fn run(link: &mut Link, until: Time, cut: bool, seen: &mut Vec<Seen>) {
    while let Some(d) = link.depart(until) {
        // A receiver drops what is damaged.
        let Some(r) = read(d.frame) else { continue };
        let (direction, packets) = (d.direction, usize::from(d.packets));
        let ecn = if direction == Direction::Forward { r.ecn } else { 0 };
        let events = &link.log(direction).expect("a log").events;
        // Those of a queue that dropped meanwhile are older or of packets that have not left.
        let left: Vec<Time> = events.iter().rev().filter_map(due).take(packets).collect();
        for n in 0..if cut { packets } else { 1 } {
            seen.push((left[packets - 1 - n], direction, u64::from(r.seq) + n as u64 * u64::from(MSS), ecn));
        }
    }
}

/// When a packet that left was due.
fn due(event: &log::Event) -> Option<Time> {
    match event.fate {
        log::Fate::Left { due, .. } => Some(due),
        _ => None,
    }
}

/// A segment as a frame. Sequence numbers do not wrap here.
fn frame(s: &Segment, flow: usize, direction: Direction) -> Vec<u8> {
    let mut b = Build { payload: s.len as usize, ecn: ecn_bits(s.ecn), ..Build::default() };
    if s.len > MSS {
        b.gso = MSS as u16;
    }
    let ports = (40_000 + flow as u16, 5_001);
    b.back = direction == Direction::Reverse;
    b.ports = if b.back { (ports.1, ports.0) } else { ports };
    (b.tcp.sequence_number, b.tcp.acknowledgment_number) = (s.seq as u32, s.ack as u32);
    let mut options = vec![1, 1, 8, 10];
    options.extend([s.tsval.to_be_bytes(), s.tsecr.to_be_bytes()].concat());
    if s.nsack > 0 {
        options.extend([1, 1, 5, 2 + 8 * s.nsack]);
        options.extend(s.sacks().flat_map(|(from, to)| [(from as u32).to_be_bytes(), (to as u32).to_be_bytes()].concat()));
    }
    b.tcp.set_options_raw(&options).expect("options");
    b.frame()
}

/// Data of three flows, many of them super-packets, and their ACKs, some with SACK blocks, at random times.
fn drive(plan: &CheckedPlan<'_>, seed: u64, options: &LinkOptions) -> (Vec<Seen>, Vec<Seen>) {
    let mut model = Model { network: Network::new(plan, MSS, seed), seen: Vec::new(), now: Time::ZERO };
    let mut link = Link::new(&plan.plan().forward, &plan.plan().reverse, options).expect("a path");
    let (mut seen, mut now, mut traffic) = (Vec::new(), 0, Stream::new(11, "traffic"));
    let (mut next, cut) = ([1u64; 2], options.whole != Whole::Everywhere);
    for n in 0..1_000u64 {
        now += if traffic.below(4) == 0 { 0 } else { u64::from(traffic.below(4_000_000)) };
        let flow = if n < 3 { n as usize } else { traffic.below(3) as usize };
        let direction = Direction::BOTH[usize::from(n >= 3 && traffic.below(3) == 0)];
        let seq = next[direction.index()];
        let mut s = Segment { seq, ack: 1 + 700 * n, tsval: n as u32, tsecr: 5, flags: Flags::ACK, ..Segment::default() };
        if direction == Direction::Forward {
            s.len = if traffic.below(3) == 0 { MSS * (1 + traffic.below(12)) - traffic.below(2) * 400 } else { MSS };
            s.ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][traffic.below(3) as usize];
        } else if traffic.below(4) == 0 {
            s.push_sack((s.ack + 1_448, s.ack + 2_896));
        }
        next[direction.index()] += u64::from(s.len).max(1);
        model.run(Time(now));
        // The clock of the link comes late, now and then.
        if traffic.below(3) > 0 {
            run(&mut link, Time(now), cut, &mut seen);
        }
        link.arrive(Time(now), direction, &frame(&s, flow, direction));
        match direction {
            Direction::Forward => model.send(Time(now), flow, s),
            Direction::Reverse => drop(model.network.send_back(Time(now), flow, s)),
        }
    }
    model.run(Time(now + 5_000 * MS));
    run(&mut link, Time(now + 5_000 * MS), cut, &mut seen);
    (model.seen, seen)
}

/// The order of the two directions among each other does not matter, nor does that within one instant of a joined super-packet.
fn of(direction: Direction, seen: &[Seen]) -> Vec<Seen> {
    seen.iter().filter(|s| s.1 == direction).copied().collect()
}

fn plan(forward: PathSpec, reverse: PathSpec, offload: bool) -> CheckedPlan<'static> {
    let mut plan =
        Plan::from_json(r#"{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}, {"cca": "cubic"}, {"cca": "cubic"}]}"#).expect("a plan");
    (plan.forward, plan.reverse, plan.offload) = (forward, reverse, offload);
    CheckedPlan::new(plan).expect("a plan that can run")
}

fn assert_twins(plan: &CheckedPlan<'_>, whole: Whole, what: &str) -> usize {
    let mut compared = 0;
    for seed in 1..3 {
        // What a queue cuts and a link joins again the simulator counts one by one.
        for merge in [false, true].into_iter().take(if whole == Whole::Everywhere { 1 } else { 2 }) {
            let (model, link) = drive(plan, seed, &LinkOptions { seed, whole, merge, capture: Some(0), ..LinkOptions::default() });
            for d in Direction::BOTH {
                let (model, link) = (of(d, &model), of(d, &link));
                let differs = model.iter().zip(&link).position(|(a, b)| a != b);
                let around = differs.map(|i| (i, model[i], link[i]));
                assert!(
                    differs.is_none() && model.len() == link.len(),
                    "{what}, {d}, seed {seed}: {around:?}, {}, {}",
                    model.len(),
                    link.len()
                );
                compared += model.len();
            }
        }
    }
    compared
}

fn at(words: &[&str], host: Host) -> PathSpec {
    let mut spec = path(words);
    spec.stages.iter_mut().for_each(|s| s.at = host);
    spec
}

#[test]
fn every_discipline_decides_as_in_the_simulator() {
    let mut compared = 0;
    for words in REGISTRY.iter().map(|e| e.example).chain(MORE.iter().copied()) {
        for host in [Host::Sender, Host::Router] {
            let forward = at(&[words, "netem delay 7ms 3ms loss 1%"], host);
            let reverse = at(&[words], if host == Host::Sender { Host::Receiver } else { host });
            compared += assert_twins(&plan(forward, reverse, false), Whole::AtHost, &format!("{words} {host:?}"));
        }
    }
    assert!(compared > 300_000, "{compared}");
}

/// Paths of any words and changes that a generator finds, each with a path back.
#[test]
fn generated_paths_decide_as_in_the_simulator() {
    let mut compared = 0;
    for seed in 0..GENERATED {
        let bytes = bytes(seed, 400);
        let mut c = Choices::new(&bytes);
        let (Some(forward), Some(reverse)) = (schedule::path(&mut c, Host::Sender, 3), schedule::path(&mut c, Host::Receiver, 2)) else {
            continue;
        };
        let what = format!("{seed}: {}", serde_json::to_string(&(&forward, &reverse)).unwrap_or_default());
        compared += assert_twins(&plan(forward, reverse, false), Whole::AtHost, &what);
    }
    assert!(compared > 100_000, "{compared}");
}

#[test]
fn with_offloads_super_packets_are_decided_on_whole() {
    // What netem damages it cuts, and the simulator then counts a part with the numbers of the whole; without corruption there is no doubt.
    for words in ["netem delay 5ms 2ms loss 3% duplicate 2%", "tbf rate 50mbit burst 70000 limit 200000", "htb rate 50mbit; fq_codel"] {
        let mut forward = at(&[words, "netem delay 1ms"], Host::Router);
        forward.stages[0].at = Host::Sender;
        assert_twins(&plan(forward, path(&[]), true), Whole::Everywhere, words);
    }
}

#[test]
fn schedules_change_both_at_the_same_moment() {
    let set = |at: u64, set: Patch| Change::Set { at: Time(at * MS), set };
    let mut forward = at(&["netem delay 5ms 1ms", "tbf rate 20mbit burst 6056 limit 60000", "netem delay 9ms"], Host::Router);
    forward.stages[0].at = Host::Sender;
    let changes = [
        (0, set(400, Patch { delay: Some(Duration::millis(40)), jitter: Some(Duration::millis(9)), ..Patch::default() })),
        (1, set(700, Patch { rate: Some(Rate(5_000_000)), ..Patch::default() })),
        (
            2,
            Change::Periodic {
                first: Time(500 * MS),
                period: Duration::millis(300),
                hold: Duration::millis(50),
                set: Patch { outage: Some(true), ..Patch::default() },
            },
        ),
    ];
    forward.schedule = changes.into_iter().map(|(stage, change)| ScheduledChange { stage, depth: 0, change }).collect();
    let mut reverse = at(&["netem delay 5ms"], Host::Router);
    let lossy = Patch { loss: tcpscape_path::Prob::from_percent(20.0), ..Patch::default() };
    reverse.schedule = vec![ScheduledChange { stage: 0, depth: 0, change: set(600, lossy) }];
    assert_twins(&plan(forward, reverse, false), Whole::AtHost, "a schedule");
}

/// What the twins would see if a name or a size were another.
#[test]
fn another_seed_or_size_makes_another_link() {
    let words = &["netem delay 5ms 2ms loss 2% rate 30mbit"];
    let checked = plan(at(words, Host::Router), at(words, Host::Router), false);
    let (model, other) = (
        drive(&checked, 1, &LinkOptions { capture: Some(0), ..LinkOptions::default() }).0,
        drive(&checked, 1, &LinkOptions { seed: 2, capture: Some(0), ..LinkOptions::default() }).1,
    );
    assert_ne!(of(Direction::Forward, &model), of(Direction::Forward, &other));
    assert_ne!(of(Direction::Reverse, &model), of(Direction::Reverse, &other));
}
