//! tc's words made of choices: mostly right, with values from nothing to the largest that there are.
//!
//! A phrase has places for values: `{p}` packets, `{b}` bytes, `{t}` a time, `{r}` a rate, `{%}` a percentage, `{n}` a small number.

use crate::choices::Choices;

/// Queues without a child, each with phrases of which a third is taken.
const LEAVES: [(&str, &[&str]); 15] = [
    ("pfifo", &["limit {p}"]),
    ("bfifo", &["limit {b}"]),
    ("pfifo_head_drop", &["limit {p}"]),
    (
        "red limit 60000 avpkt 1000",
        &["ecn", "harddrop", "nodrop", "adaptive", "probability {n}", "min {b}", "max {b}", "burst {n}", "bandwidth {r}"],
    ),
    ("choke limit {p} bandwidth {r}", &["ecn", "probability 0.2", "min {n}", "max {p}", "burst {n}", "avpkt {b}"]),
    ("codel", &["limit {p}", "target {t}", "interval {t}", "ecn", "ce_threshold {t}"]),
    (
        "fq_codel",
        &[
            "limit {p}",
            "flows {n}",
            "quantum {b}",
            "target {t}",
            "interval {t}",
            "noecn",
            "memory_limit {b}",
            "drop_batch {n}",
            "ce_threshold {t}",
        ],
    ),
    ("pie", &["limit {p}", "target {t}", "tupdate {t}", "alpha {n}", "beta {n}", "ecn", "bytemode", "dq_rate_estimator"]),
    (
        "fq_pie",
        &["limit {p}", "flows {n}", "quantum {b}", "target {t}", "tupdate {t}", "ecn", "ecn_prob {n}", "bytemode", "memory_limit {b}"],
    ),
    ("cake", &["bandwidth {r}", "rtt {t}", "diffserv8", "flowblind", "dual-srchost", "ingress", "no-split-gso", "besteffort"]),
    (
        "cake bandwidth {r}",
        &["ack-filter", "ack-filter-aggressive", "memlimit {b}", "overhead {n}", "mpu {n}", "atm", "ptm", "flows", "ingress"],
    ),
    ("dualpi2", &["limit {p}", "memlimit {b}", "coupling_factor {n}", "step_thresh {t}", "min_qlen_step {n}", "overflow", "drop_enqueue"]),
    (
        "dualpi2 tupdate {t}",
        &["any_ect", "classic_protection {n}", "alpha {n}", "beta {n}", "no_split_gso", "step_thresh {n}p", "target {t}"],
    ),
    (
        "fq",
        &[
            "limit {p}",
            "flow_limit {p}",
            "quantum {b}",
            "maxrate {r}",
            "nopacing",
            "refill_delay {t}",
            "horizon {t}",
            "horizon_cap",
            "ce_threshold {t}",
        ],
    ),
    ("sfq", &["limit {p}", "perturb {n}", "quantum {b}", "divisor 8", "flows {n}", "depth {n}", "headdrop"]),
];
const DELAYS: [&str; 7] = [
    "",
    "delay {t}",
    "delay {t} {t}",
    "delay {t} {t} {%}",
    "delay {t} {t} distribution normal",
    "delay {t} {t} distribution pareto",
    "delay {t} {t} {%} distribution paretonormal",
];
const LOSSES: [&str; 6] =
    ["", "loss {%}", "loss {%} {%}", "loss state {%} {%} {%} {%} {%}", "loss gemodel {%} {%} {%} {%}", "loss {%} ecn"];
const JUDGES: [&str; 6] = ["duplicate {%} {%}", "corrupt {%}", "limit {p}", "reorder {%} gap {n}", "rate {r}", "rate {r} {n} {n} {n}"];
const SLOTS: [&str; 3] = ["slot {t} {t} packets {n} bytes {b}", "slot {t}", "slot distribution normal {t} {t} packets {n}"];
const JITTERS: [&str; 5] = ["order reorder", "order clamp", "order correlated tau {t}", "limit {p}", "distribution pareto"];
const SHAPERS: [&str; 6] = [
    "tbf rate {r} burst {b} limit {b}",
    "tbf rate {r} burst {b} latency {t}",
    "tbf rate {r} burst {b} limit {b} peakrate {r} mtu {b}",
    "htb rate {r}",
    "htb rate {r} ceil {r} burst {b}",
    "htb rate {r} cburst {b}",
];

const PACKETS: [&str; 8] = ["30", "1", "2", "3", "5", "10", "100", "1000"];
const BYTES: [&str; 8] = ["30000", "1", "1514", "3028", "6056", "9000", "100k", "1m"];
const TIMES: [&str; 10] = ["5ms", "0ms", "1ns", "1us", "100us", "1ms", "2ms", "20ms", "100ms", "1s"];
const RATES: [&str; 8] = ["10mbit", "64kbit", "1mbit", "2mbit", "5mbit", "20mbit", "100mbit", "1gbit"];
const PERCENTAGES: [&str; 8] = ["1%", "0%", "0.1%", "3%", "20%", "50%", "90%", "100%"];
const NUMBERS: [&str; 8] = ["4", "0", "1", "2", "3", "8", "20", "64"];

/// One value in place of `kind`: a usual one, now and then one at the ends of what there is.
fn value(c: &mut Choices<'_>, kind: char) -> String {
    let extreme = c.one_in(16);
    let (usual, units): (&[&str], &[&str]) = match kind {
        'p' => (&PACKETS, &[""]),
        'b' => (&BYTES, &["", "b", "k", "kbit"]),
        't' => (&TIMES, &["ns", "us", "ms", "s"]),
        'r' => (&RATES, &["bit", "kbit", "mbit", "gbit", "bps"]),
        '%' => (&PERCENTAGES, &["e-9%", "e-7%"]),
        _ => (&NUMBERS, &[""]),
    };
    if extreme {
        let most = c.pick(&[16, u32::from(u16::MAX), u32::MAX]);
        format!("{}{}", c.size(most), c.pick(units))
    } else {
        c.pick(usual).to_owned()
    }
}

/// A phrase with its values.
fn filled(c: &mut Choices<'_>, phrase: &str) -> String {
    let mut text = String::new();
    let mut pieces = phrase.split(['{', '}']);
    text += pieces.next().unwrap_or_default();
    while let (Some(place), Some(after)) = (pieces.next(), pieces.next()) {
        text += &value(c, place.chars().next().unwrap_or('n'));
        text += after;
    }
    text
}

fn one(c: &mut Choices<'_>, phrases: &[&str]) -> String {
    let phrase = c.pick(phrases);
    filled(c, phrase)
}

fn a_third(c: &mut Choices<'_>, phrases: &[&str]) -> String {
    let mut text = String::new();
    for phrase in phrases {
        if c.one_in(3) {
            text += " ";
            text += &filled(c, phrase);
        }
    }
    text
}

fn leaf(c: &mut Choices<'_>) -> String {
    let (name, phrases) = c.pick(&LEAVES);
    filled(c, name) + &a_third(c, phrases)
}

fn netem(c: &mut Choices<'_>) -> String {
    let mut text = format!("netem {} {}", one(c, &DELAYS), one(c, &LOSSES));
    text += &a_third(c, &JUDGES);
    if c.one_in(3) {
        text += &a_third(c, &SLOTS);
    }
    text
}

/// A queue and its children in tc's words.
pub fn queue(c: &mut Choices<'_>) -> String {
    match c.below(9) {
        0 => netem(c),
        1 => leaf(c),
        2 => format!("{}; {}", netem(c), leaf(c)),
        3 => format!("jitter delay {} {}{}", value(c, 't'), value(c, 't'), a_third(c, &JITTERS)),
        4 => format!("{}; {}", one(c, &SHAPERS), netem(c)),
        5 => format!("{}; {}; {}", one(c, &SHAPERS), netem(c), leaf(c)),
        6 => one(c, &SHAPERS),
        _ => format!("{}; {}", one(c, &SHAPERS), leaf(c)),
    }
}

/// A delay on its own, as most paths have one.
pub fn delay(c: &mut Choices<'_>) -> String {
    format!("netem {}", one(c, &DELAYS[..3])).trim_end().to_owned()
}
