//! Descriptions are true: of the words, shortened or not, and of the machines that the words make.

use std::collections::BTreeMap;
use tcpscape_base::{Ecn, Packet, Stream, Time};
use tcpscape_path::{parse_tc, Description, Marking, PathSpec, Pipe, StageStats};

/// Words that exercise more than the registry's examples.
const MORE: &[&str] = &[
    "netem",
    "netem delay 5ms 2ms 25% distribution pareto loss 2% duplicate 3% corrupt 1% limit 60",
    "netem delay 5ms 2ms rate 9mbit limit 40",
    "netem delay 5ms reorder 25% gap 3",
    "netem delay 5ms 2ms rate 9mbit reorder 25% limit 40",
    "netem slot 1ms 4ms packets 3",
    "netem loss 10% ecn",
    "tbf rate 9mbit burst 3028 limit 30000; netem delay 5ms 2ms",
    "netem delay 5ms; tbf rate 9mbit burst 3028 limit 30000",
    "tbf rate 9mbit burst 3028 limit 30000 peakrate 50mbit mtu 1514; pfifo limit 20",
    "htb rate 9mbit ceil 5mbit",
    "htb rate 5mbit ceil 9mbit; tbf rate 8mbit burst 3028 limit 9000",
    "tbf rate 5mbit burst 3028 limit 9000; red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 bandwidth 9mbit probability 0.1 ecn",
    "tbf rate 5mbit burst 3028 limit 9000; choke limit 30 min 5 max 15 avpkt 1500 bandwidth 9mbit probability 0.5 ecn",
    "htb rate 5mbit; codel limit 50 target 1ms interval 20ms ce_threshold 3ms",
    "htb rate 5mbit; codel limit 50 target 1ms interval 20ms",
    "htb rate 5mbit; fq_codel limit 30 target 1ms interval 20ms",
    "htb rate 5mbit; fq_codel memory_limit 30k noecn",
    "htb rate 5mbit; pie limit 50 tupdate 5ms",
    "htb rate 5mbit; fq_pie limit 50 tupdate 5ms ecn",
    "htb rate 5mbit; dualpi2 limit 40",
    "htb rate 5mbit; dualpi2 memlimit 40k drop_enqueue",
    "htb rate 5mbit; sfq limit 12 perturb 1",
    "htb rate 5mbit; sfq flows 2 depth 4 limit 100",
    "htb rate 5mbit; pfifo_head_drop limit 5",
    "htb rate 5mbit; fq limit 30 maxrate 3mbit ce_threshold 2ms",
    "cake bandwidth 5mbit memlimit 60k",
    "cake bandwidth 5mbit flowblind",
    "cake",
    "jitter delay 5ms 2ms order reorder",
    "jitter delay 5ms 2ms order correlated",
    "jitter delay 5ms 0ms order reorder limit 20",
];

fn all() -> impl Iterator<Item = &'static str> {
    crate::words_and(MORE)
}

fn describe(words: &str) -> Vec<Description> {
    parse_tc(words).unwrap_or_else(|e| panic!("{words}: {e}")).describe()
}

/// What went in and came out: what each packet was as it came (flow and ECN field), and packets by the time they left.
struct Run {
    sent: Vec<(u32, Ecn)>,
    out: Vec<(Time, Packet<u64>)>,
    stats: Vec<StageStats>,
}

/// Full frames of three flows, one each `gap` ns, until all have left.
fn run(words: &str, packets: u64, gap: u64) -> Run {
    let mut pipe = Pipe::new(&PathSpec::of([parse_tc(words).unwrap()]), 3, "forward");
    let mut random = Stream::new(7, "traffic");
    let (mut sent, mut out, mut now) = (vec![], vec![], Time::ZERO);
    while sent.len() < packets as usize || pipe.next_event().is_some() {
        let arrival = if sent.len() < packets as usize { Time(sent.len() as u64 * gap) } else { Time::MAX };
        now = arrival.min(pipe.next_event().unwrap_or(Time::MAX)).max(now);
        if arrival <= now {
            let (id, flow) = (sent.len() as u64, random.below(3));
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][random.below(3) as usize];
            pipe.push(now, Packet { id, flow, size: 1514, segs: 1, ecn, body: id, ..Default::default() });
            sent.push((flow, ecn));
        }
        out.extend(std::iter::from_fn(|| pipe.pop(now)).map(|p| (now, p)));
    }
    Run { sent, out, stats: pipe.stats() }
}

#[test]
fn there_is_one_for_each_level_that_the_machine_reports() {
    for words in all() {
        let kinds: Vec<&str> = describe(words).iter().map(|d| d.kind).collect();
        let stats = run(words, 10, 1_000_000).stats;
        assert_eq!(kinds, stats.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), "{words}");
        assert!(stats.iter().enumerate().all(|(depth, s)| s.depth == depth), "{words}");
    }
}

#[test]
fn values_are_in_their_ranges() {
    for d in all().flat_map(describe) {
        assert!([d.loss, d.duplicate, d.corrupt, d.reorder].iter().all(|p| (0.0..=1.0).contains(p)), "{d:?}");
        assert_eq!(d.jitter_ns > 0, d.distribution.is_some(), "{d:?}");
        assert!(d.rate_bps != Some(0), "{d:?}");
        let json = serde_json::to_value(&d).unwrap();
        assert_eq!((&json["kind"], json.as_object().unwrap().len()), (&serde_json::json!(d.kind), 15));
    }
}

/// Longest of the parts of each flow, and of each ECN field in it, that left behind a later packet.
fn overtaken(run: &Run) -> usize {
    let mut latest: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    let mut late = 0;
    for (_, p) in &run.out {
        let (flow, ecn) = run.sent[p.id as usize];
        let last = latest.entry((flow, ecn as u8)).or_default();
        late += usize::from(p.id < *last);
        *last = p.id.max(*last);
    }
    late
}

#[test]
fn order_is_kept_where_they_say_so_and_only_there() {
    for words in all() {
        for gap in [100_000, 2_000_000] {
            let kept = describe(words).iter().all(|d| d.in_order);
            assert!(!kept || overtaken(&run(words, 2_000, gap)) == 0, "{words}");
        }
        if describe(words).iter().any(|d| !d.in_order) {
            assert!(overtaken(&run(words, 2_000, 100_000)) > 0, "{words}");
        }
    }
}

#[test]
fn limits_are_those_of_a_flood() {
    for words in all() {
        for (d, s) in describe(words).iter().zip(run(words, 3_000, 1_000).stats) {
            assert!(d.limit_packets.is_none_or(|most| s.peak_packets <= most), "{words}: {d:?} {s:?}");
            assert!(d.limit_bytes.is_none_or(|most| s.peak_bytes <= most), "{words}: {d:?} {s:?}");
            // No discipline takes less than 768 B of memory for a packet.
            assert!(d.limit_memory_bytes.is_none_or(|most| s.peak_packets <= most / 768 + 1), "{words}: {d:?} {s:?}");
        }
    }
    for words in ["pfifo limit 30", "bfifo limit 45420", "pfifo_head_drop limit 30", "netem delay 1s limit 30", "jitter delay 1s limit 30"]
    {
        let inside = format!("htb rate 5mbit; {words}");
        let (d, s) = (describe(&inside).remove(1), run(&inside, 100, 0).stats.remove(1));
        assert_eq!(s.peak_packets, d.limit_packets.or(d.limit_bytes.map(|b| b / 1514)).unwrap(), "{words}: it can be filled");
    }
}

#[test]
fn rates_are_those_of_a_flood() {
    for words in all() {
        let overtaken = describe(words).iter().any(|d| d.reorder > 0.0);
        let Some(rate) = describe(words).iter().filter_map(|d| d.rate_bps).min().filter(|_| !overtaken) else { continue };
        let out = run(words, 20_000, 100_000).out;
        // The first tenth has left the buckets' bursts behind.
        let rest = &out[out.len() / 10..];
        let seconds = (rest[rest.len() - 1].0 .0 - rest[0].0 .0) as f64 / 1e9;
        let measured = (rest.len() - 1) as f64 * 1514.0 * 8.0 / seconds;
        let own = describe(words).iter().all(|d| d.kind != "fq");
        assert!(measured <= 1.01 * rate as f64, "{words}: {measured} of {rate}");
        assert!(measured >= 0.98 * rate as f64 || !own, "{words}: {measured} of {rate}");
    }
}

#[test]
fn only_those_that_say_so_mark_and_they_do() {
    for words in all() {
        for (d, s) in describe(words).iter().zip(run(words, 20_000, 2_200_000).stats) {
            assert!(s.marked == 0 || d.ecn != Marking::Never, "{words}: {s:?}");
            let full = s.drops.total() > 100 || s.peak_packets > 10;
            assert!(s.marked > 0 || d.ecn == Marking::Never || !full, "{words}: {s:?}");
        }
    }
    for (words, ecn) in [
        ("codel", Marking::Never),
        ("codel ecn", Marking::Enabled),
        ("codel ce_threshold 1ms", Marking::Enabled),
        ("fq_codel", Marking::Enabled),
        ("fq_codel noecn", Marking::Never),
        ("pie ecn noecn", Marking::Never),
        ("cake", Marking::Always),
        ("dualpi2", Marking::Always),
    ] {
        assert_eq!(describe(words)[0].ecn, ecn, "{words}");
    }
}

#[test]
fn netems_shares_are_those_that_packets_meet() {
    for words in [
        "netem loss 2%",
        "netem loss random 7.5% duplicate 3% corrupt 11%",
        "netem loss gemodel 1% 10% 70% 0.1% corrupt 2%",
        "netem loss state 2% 30% 20% 60% 1% duplicate 1%",
        "netem delay 3ms 1ms distribution normal",
        "netem delay 3ms 1ms distribution normal rate 1gbit",
        "netem delay 3ms reorder 20% gap 2",
    ] {
        let packets = 200_000;
        let (d, s) = (describe(words).remove(0), run(words, packets, 10_000_000).stats.remove(0));
        let n = packets as f64;
        let near = |measured: f64, share: f64| assert!((measured - share).abs() < 0.05 * share + 1e-9, "{words}: {measured} {share}");
        near(s.drops.loss as f64 / (n + s.duplicated as f64), d.loss);
        near(s.duplicated as f64 / n, d.duplicate);
        near(s.corrupted as f64 / (n + s.duplicated as f64 - s.drops.loss as f64), d.corrupt);
        if d.reorder > 0.0 {
            // Of two that may, `reorder` do: one waits for each that does, and the others wait for nothing.
            near(s.delay.mean, d.delay_ns as f64 * (1.0 - d.reorder / (1.0 + d.reorder)));
        } else {
            let serving = d.rate_bps.map_or(0.0, |r| 1514.0 * 8e9 / r as f64);
            assert!((s.delay.mean - d.delay_ns as f64 - serving).abs() < 0.06 * d.jitter_ns as f64 + 1e-9, "{words}: {:?}", s.delay);
            assert!((s.delay.sd - d.jitter_ns as f64).abs() < 0.06 * d.jitter_ns as f64 + 1e-9, "{words}: {:?}", s.delay);
        }
    }
}

#[test]
fn words_and_values_worked_by_hand() {
    let d = describe("netem la 25ms 8000 di normal los 0.1% li 5k");
    assert_eq!((d[0].delay_ns, d[0].jitter_ns, d[0].loss, d[0].limit_packets), (25_000_000, 8_000_000, 0.001, Some(5120)));
    let d = describe("netem d 10ms delay 5ms");
    assert_eq!(d[0].delay_ns, 5_000_000, "the last one holds");
    let d = describe("tbf r 10MBPS b 1.5kbit la 400ms");
    assert_eq!((d[0].rate_bps, d[1].kind, d[1].limit_bytes), (Some(80_000_000), "bfifo", Some(4_000_192)));
    let d = describe("root handle 1: htb default 1; class parent 1: classid 1:1 htb r 5mbit c 4mbit");
    assert_eq!((d.len(), d[0].rate_bps, d[1].kind, d[1].limit_packets), (2, Some(4_000_000), "pfifo", Some(1000)));
    let d = describe("htb rate 5mbit; red limit 60000 min 6000 max 18000 avpkt 1500 burst 8 bandwidth 9mbit probability 0.1");
    assert_eq!((d.len(), d[1].kind, d[1].rate_bps, d[1].limit_bytes), (2, "red", None, Some(60_000)));
    assert_eq!(describe("cake datacentre bandwidth 2bps")[0].rate_bps, Some(16));
    assert_eq!(describe("cake bandwidth 300mbit")[0].limit_memory_bytes, Some(15_000_000), "4 · 37.5 MB/s · 0.1 s");
    assert_eq!(describe("netem loss gemodel 1% 25%")[0].loss, 0.01 / 0.26);
}

/// An option of a discipline: how it may be shortened, and what may follow it.
type Choice = (&'static [&'static str], &'static [&'static str]);

const NETEM: &[Choice] = &[
    (&["delay", "d", "de", "del", "dela", "latency", "la", "lat"], &["25ms", "3000", "1e3us 2ms", "0 5ms", "25ms 8ms 25%", ".5s 1.5msecs"]),
    (&["loss", "lo", "los", "drop", "dr"], &["1%", "0.1", "random 5% 25%", "gemodel 1% 10%", "state 1% 30%", "0%"]),
    (&["duplicate", "du", "dup"], &["1%", "2 20%"]),
    (&["corrupt", "c", "co"], &["1e-1%", "3% 5%"]),
    (&["rate", "ra", "rat"], &["1mbit", "10mbps", "5gbit 20 100 5", "1kibit"]),
    (&["limit", "l", "li", "lim"], &["100", "5k", "0x20"]),
    (&["slot", "s", "sl"], &["1ms", "800us 10ms packets 5", "distribution normal 10ms 1ms"]),
];
const TBF: &[Choice] = &[
    (&["rate", "r", "ra"], &["10mbit", "1mbps", "300kibit"]),
    (&["burst", "b", "bu", "buffer", "buf", "maxburst", "m", "max"], &["10k", "6056", "32kbit/8"]),
    (&["limit", "l", "li"], &["62500", "10kb", "1m"]),
];
const HTB: &[Choice] = &[
    (&["rate", "r", "ra"], &["10mbit", "1mbps", "300kibit"]),
    (&["ceil", "c", "ce"], &["5mbit", "20mbit"]),
    (&["burst", "b", "buf", "maxb"], &["10k", "6056"]),
];
const JITTER: &[Choice] = &[
    (&["delay", "d", "del"], &["25ms 8ms", "3ms", "3ms 1000"]),
    (&["order", "o", "ord"], &["clamp", "reorder"]),
    (&["limit", "l", "li"], &["100", "5k"]),
];

/// The words of a random choice of options in random order, in full and shortened; the first `needed` are always there.
fn random_words(random: &mut Stream, name: &str, choices: &[Choice], needed: usize) -> [String; 2] {
    let mut options: Vec<[String; 2]> = vec![];
    for (i, (forms, values)) in choices.iter().enumerate() {
        if i < needed || random.below(2) == 0 {
            let (form, value) = (forms[random.below(forms.len() as u32) as usize], values[random.below(values.len() as u32) as usize]);
            let place = random.below(options.len() as u32 + 1) as usize;
            options.insert(place, [format!(" {} {value}", forms[0]), format!(" {form} {value}")]);
        }
    }
    [0, 1].map(|k| name.to_owned() + &options.iter().map(|o| o[k].as_str()).collect::<String>())
}

#[test]
fn shortened_words_mean_what_the_full_ones_do() {
    let mut random = Stream::new(1, "words");
    for i in 0..4_000 {
        let (name, choices, needed) = [("netem", NETEM, 0), ("tbf", TBF, 3), ("htb", HTB, 1), ("jitter", JITTER, 1)][i % 4];
        let [full, short] = random_words(&mut random, name, choices, needed);
        let spec = parse_tc(&short).unwrap_or_else(|e| panic!("{short}: {e}"));
        assert_eq!(describe(&full), spec.describe(), "{short}");
        assert_eq!(describe(&spec.to_tc()), spec.describe(), "{short}");
    }
    for words in all() {
        let spec = parse_tc(words).unwrap();
        assert_eq!(describe(&spec.to_tc()), spec.describe(), "{words}");
    }
}
