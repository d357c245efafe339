//! Laws that hold for every queue of the registry, and for paths made of them.

use tcpscape_base::{Ecn, Packet, Stream, Time};
use tcpscape_path::{parse_tc, Cause, PathSpec, Pipe};

/// Words that exercise more than the registry's examples.
const MORE: &[&str] = &[
    "netem delay 25ms 8ms 25% distribution paretonormal loss 2% 10% duplicate 3% corrupt 1% reorder 5% gap 3 limit 60",
    "netem loss state 2% 30% 20% 60% 1% ecn delay 3ms rate 20mbit 20 53 5",
    "netem loss gemodel 1% 10% 70% 0.1% slot 1ms 4ms packets 3 bytes 4000",
    "netem slot distribution normal 2ms 1ms packets 2 delay 1ms",
    "netem delay 1ms 5ms limit 5",
    "tbf rate 10mbit burst 6056 limit 62500; netem delay 50ms 20ms loss 2%",
    "netem delay 5ms 2ms duplicate 10% corrupt 5% reorder 20% gap 2 slot 1ms 3ms packets 3; tbf rate 10mbit burst 1514 limit 9000",
    "netem duplicate 50% corrupt 5% limit 4 rate 20mbit; pfifo limit 2",
    "htb rate 9mbit; netem delay 2ms 2ms reorder 30% limit 8; tbf rate 8mbit burst 3028 limit 6000; fq_codel limit 5",
    "netem delay 5ms 2ms; tbf rate 10mbit burst 3028 limit 30000",
    "netem delay 5ms 2ms duplicate 10%; pfifo limit 3",
    "tbf rate 10mbit burst 3028 limit 30000 peakrate 50mbit mtu 1514; pfifo limit 20",
    "htb rate 10mbit ceil 12mbit; netem delay 10ms 5ms",
    "htb rate 10mbit; tbf rate 8mbit burst 3028 limit 9000",
    "tbf rate 9mbit burst 3028 limit 9000; htb rate 8mbit; netem delay 1ms 1ms corrupt 2% limit 40",
    "cake bandwidth 9mbit diffserv8 flows ingress memlimit 20000 ethernet ack-filter",
    "cake bandwidth 10mbit no-split-gso dual-srchost rtt 1ms",
    "tbf rate 10mbit burst 3028 limit 30000; cake flowblind",
    "fq limit 30 flow_limit 20 quantum 1000 maxrate 400kbit",
    "tbf rate 10mbit burst 3028 limit 30000; fq flow_limit 12",
    "htb rate 10mbit; dualpi2 limit 40 no_split_gso",
    "tbf rate 10mbit burst 3028 limit 30000; dualpi2 drop_enqueue any_ect overflow",
    "pfifo_head_drop limit 3",
    "sfq perturb 1 limit 20 depth 5 headdrop quantum 500",
    "tbf rate 10mbit burst 3028 limit 30000; sfq perturb 1 limit 12",
    "htb rate 10mbit; pfifo_head_drop limit 5",
    "jitter delay 25ms 8ms distribution normal order reorder",
    "jitter delay 25ms 8ms distribution pareto order clamp limit 30",
    "jitter delay 25ms 8ms order correlated tau 20ms",
    "tbf rate 10mbit burst 3028 limit 30000",
    "tbf rate 6mbit burst 3028 limit 30000; red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 probability 0.1 adaptive",
    "htb rate 6mbit; red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 probability 0.1 ecn nodrop",
    "tbf rate 6mbit burst 3028 limit 30000; codel limit 50 ecn",
    "htb rate 6mbit; codel target 1ms interval 20ms ce_threshold 3ms",
    "tbf rate 6mbit burst 3028 limit 30000; fq_codel limit 20 drop_batch 4 flows 16 quantum 300",
    "netem delay 5ms 3ms; fq_codel",
    "htb rate 6mbit; pie limit 50 ecn bytemode",
    "tbf rate 6mbit burst 3028 limit 30000; pie dq_rate_estimator tupdate 5ms alpha 8",
    "tbf rate 6mbit burst 3028 limit 30000; fq_pie flows 4 ecn ecn_prob 5",
];

fn all() -> impl Iterator<Item = &'static str> {
    crate::words_and(MORE)
}

fn path(stages: &[&str]) -> PathSpec {
    let spec = PathSpec::of(stages.iter().map(|w| parse_tc(w).unwrap()));
    spec.validate().unwrap();
    spec
}

/// Random traffic of small, full and offloaded packets: what came out, and when.
fn drive(spec: &PathSpec, seed: u64, packets: u64, keep_every_law: bool) -> (Pipe<u64>, Vec<(Time, Packet<u64>)>) {
    let mut pipe = Pipe::new(spec, seed, "forward");
    if pipe.holds_sender() {
        pipe.track_departures();
    }
    let mut traffic = Stream::new(9, "traffic");
    let (mut out, mut arrival, mut sent, mut released) = (vec![], Time::ZERO, 0, 0u64);
    let mut pushed_bytes = 0;
    loop {
        let wake = pipe.next_event().unwrap_or(Time::MAX);
        if sent == packets && wake == Time::MAX {
            break;
        }
        let now = if sent < packets { arrival.min(wake) } else { wake };
        if sent < packets && arrival <= wake {
            let segs = if traffic.below(10) == 0 { 1 + traffic.below(4) } else { 1 };
            let size = if traffic.below(3) == 0 { 54 } else { 1514 } * segs;
            let ecn = if traffic.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            pipe.push(now, Packet { id: sent, flow: 7, size, segs: segs as u16, ecn, body: sent, ..Default::default() });
            pushed_bytes += u64::from(size);
            sent += 1;
            arrival = Time(now.0 + if traffic.below(4) == 0 { 0 } else { u64::from(traffic.below(2_500_000)) });
        }
        while let Some(p) = pipe.pop(now) {
            out.push((now, p));
        }
        released += pipe.drain_released().map(|(flow, size, _)| u64::from(size) * u64::from(flow == 7)).sum::<u64>();
        if keep_every_law {
            conservation(&pipe, sent, out.len() as u64);
        }
        let next = pipe.next_event().unwrap_or(Time::MAX);
        assert!(next > now || sent < packets && arrival == now || next == Time::MAX, "time stands still at {now}");
    }
    if pipe.holds_sender() {
        assert_eq!(released, pushed_bytes, "everything that held the sender has let go of it");
    } else {
        assert_eq!(released, 0);
    }
    (pipe, out)
}

/// A list of departures that nobody drains would grow with every packet.
#[test]
fn departures_are_kept_only_where_they_are_asked_for() {
    for words in all() {
        let mut pipe = Pipe::new(&path(&[words]), 1, "forward");
        for id in 0..50 {
            pipe.push(Time(id), Packet { id, flow: 7, size: 1514, segs: 1, body: id, ..Default::default() });
        }
        while let Some(t) = pipe.next_event().filter(|t| *t < Time(10_000_000_000)) {
            while pipe.pop(t).is_some() {}
        }
        assert_eq!(pipe.released(), 0, "{words}");
    }
}

/// Each drop is told once, with its stage and its cause: as many as the accounts count, but for netem's losses of one of two copies.
#[test]
fn every_drop_is_told() {
    let mut told_at_all = 0;
    for words in all() {
        let spec = path(&[words, "netem loss 5% limit 30 delay 1ms", "pfifo limit 1"]);
        let mut pipe = Pipe::new(&spec, 3, "forward");
        pipe.track_drops();
        for id in 0..3_000 {
            let now = Time(id * 300_000);
            pipe.push(now, Packet { id, flow: (id % 3) as u32, size: 1514, segs: 1, ecn: Ecn::NotEct, body: id, ..Default::default() });
            while pipe.pop(now).is_some() {}
        }
        let told: Vec<_> = pipe.drain_drops().collect();
        assert!(told.windows(2).all(|w| w[0].at <= w[1].at) && told.iter().all(|d| d.id < 3_000 && d.segs == 1), "{words}");
        for stage in 0..3 {
            let stats: Vec<_> = pipe.stats().into_iter().filter(|s| s.stage == stage).collect();
            let copies: u64 = stats.iter().map(|s| s.duplicated).sum();
            for (cause, counted) in [
                (Cause::Loss, stats.iter().map(|s| s.drops.loss).sum::<u64>()),
                (Cause::Limit, stats.iter().map(|s| s.drops.limit).sum()),
                (Cause::Oversize, stats.iter().map(|s| s.drops.oversize).sum()),
                (Cause::Aqm, stats.iter().map(|s| s.drops.aqm).sum()),
            ] {
                let told = told.iter().filter(|d| d.stage == stage && d.cause == cause).count() as u64;
                assert!(
                    told == counted || cause == Cause::Loss && copies > 0 && told < counted,
                    "{words}, {stage}: {told} of {counted} {cause:?}"
                );
                told_at_all += told;
            }
        }
    }
    assert!(told_at_all > 5_000, "{told_at_all}");
}

/// No account misses a packet: what was sent came in, what was popped has left, and between them the accounts balance.
fn conservation(pipe: &Pipe<u64>, sent: u64, popped: u64) {
    pipe.check_accounts().unwrap_or_else(|e| panic!("{e}"));
    let s = pipe.stats();
    let last = s.iter().rev().find(|q| q.depth == 0).map_or(sent, |q| q.packets_out);
    assert!(s.first().map_or(true, |q| q.packets_in == sent), "{s:#?}");
    assert_eq!(last, popped + pipe.held() - s.iter().filter(|q| q.depth == 0).map(|q| q.backlog_packets).sum::<u64>(), "{s:#?}");
}

#[test]
fn nothing_is_lost_uncounted_and_time_never_runs_back() {
    for words in all() {
        let (pipe, out) = drive(&path(&[words]), 3, 3_000, true);
        assert!(out.windows(2).all(|w| w[0].0 <= w[1].0), "{words}");
        assert!(!out.is_empty(), "{words}");
        assert_eq!(pipe.backlog(0), (0, 0), "{words}: empty at the end");
        for s in pipe.stats() {
            assert!(s.peak_packets > 0 && s.packets_out <= s.packets_in + s.duplicated + s.segmented || s.depth == 0, "{words} {s:?}");
            assert!(s.delay.count == 0 || s.delay.min as f64 <= s.delay.mean && s.delay.mean <= s.delay.max as f64, "{words} {s:?}");
        }
    }
}

#[test]
fn a_leaf_queue_balances_alone() {
    for words in all().filter(|w| !w.contains(';')) {
        let (pipe, _) = drive(&path(&[words]), 5, 2_000, false);
        let last = pipe.stats().pop().unwrap();
        let (gained, gone) = (last.duplicated + last.segmented, last.packets_out + last.drops.total() + last.backlog_packets);
        assert_eq!(last.packets_in + gained, gone, "{words}");
    }
}

#[test]
fn the_same_seed_makes_the_same_decisions() {
    for words in all() {
        let spec = path(&[words, "tbf rate 20mbit burst 6056 limit 40000"]);
        let run = |seed| drive(&spec, seed, 2_000, false).1;
        assert_eq!(run(1), run(1), "{words}");
    }
    let spec = path(&["netem delay 25ms 8ms loss 5%"]);
    assert_ne!(drive(&spec, 1, 500, false).1, drive(&spec, 2, 500, false).1);
}

#[test]
fn queues_of_many_stages_keep_the_laws() {
    let words: Vec<&str> = all().collect();
    for pair in words.windows(3) {
        drive(&path(pair), 4, 1_000, true);
    }
}

#[test]
fn coming_late_changes_nothing() {
    // Whoever owns the clock may look only every 7 ms: what comes out, and in which order, is the same.
    for words in all() {
        let spec = path(&[words, "netem delay 2ms", "tbf rate 9mbit burst 3028 limit 20000"]);
        let order = |step: u64| {
            let mut pipe: Pipe<u64> = Pipe::new(&spec, 8, "forward");
            let mut got = vec![];
            for i in 0..400u64 {
                pipe.push(Time(i * 1_400_000), Packet { id: i, size: 1514, segs: 1, body: i, ..Default::default() });
                if i % step == 0 {
                    got.extend(std::iter::from_fn(|| pipe.pop(Time(i * 1_400_000))).map(|p| p.body));
                }
            }
            got.extend(std::iter::from_fn(|| pipe.pop(Time(10_000_000_000_000))).map(|p| p.body));
            got
        };
        assert_eq!(order(1), order(5), "{words}");
    }
}

#[test]
fn an_order_that_is_kept_is_kept() {
    for order in ["clamp", "correlated"] {
        let spec = path(&[&format!("jitter delay 25ms 20ms distribution normal order {order} limit 100000")]);
        let (pipe, out) = drive(&spec, 6, 20_000, false);
        assert!(out.windows(2).all(|w| w[0].1.id <= w[1].1.id), "{order}");
        assert_eq!(pipe.stats()[0].reordered, 0);
    }
}

#[test]
fn an_empty_path_lets_everything_through_at_once() {
    let (_, out) = drive(&PathSpec::default(), 1, 100, true);
    assert_eq!(out.len(), 100);
    let mut pipe: Pipe<u64> = Pipe::new(&PathSpec::default(), 1, "forward");
    pipe.push(Time(5), Packet::default());
    assert_eq!(pipe.next_event(), Some(Time(5)));
    assert!(pipe.pop(Time(5)).is_some() && pipe.next_event().is_none() && !pipe.holds_sender());
}

/// Tokens for four frames and a queue for two: of eight that come at one instant four pass before the queue fills.
#[test]
fn what_comes_at_one_instant_passes_a_queue_one_by_one() {
    for (stages, at) in
        [(&["netem delay 10ms", TOKENS][..], 10_000_000), (&[TOKENS][..], 0), (&[TOKENS, "netem delay 10ms"][..], 10_000_000)]
    {
        let mut pipe: Pipe<u64> = Pipe::new(&path(stages), 1, "forward");
        let passed = (0..8).map(|id| pipe.push(Time(0), Packet { id, size: 1_514, segs: 1, ..Packet::default() })).count();
        let at_once: Vec<u64> = std::iter::from_fn(|| pipe.pop(Time(at))).map(|p| p.id).collect();
        let later: Vec<u64> = std::iter::from_fn(|| pipe.pop(Time(1_000_000_000))).map(|p| p.id).collect();
        assert_eq!((passed, at_once, later), (8, vec![0, 1, 2, 3], vec![4, 5]), "{stages:?}");
    }
}

const TOKENS: &str = "tbf rate 1mbit burst 6056 limit 3028";

#[test]
fn who_holds_the_sender() {
    for (words, holds) in [
        ("pfifo limit 10", true),
        ("tbf rate 10mbit burst 6056 limit 62500", true),
        ("htb rate 10mbit", true),
        ("netem loss 1%", true),
        ("netem delay 1ms", false),
        ("netem rate 1mbit", false),
        ("tbf rate 10mbit burst 6056 limit 62500; netem delay 1ms", false),
        ("jitter delay 1ms", false),
    ] {
        assert_eq!(Pipe::<u64>::new(&path(&[words]), 1, "forward").holds_sender(), holds, "{words}");
    }
}
