//! Target `grammar`: tc's words as text.
//!
//! What must hold: whatever the text, [`parse_tc`] returns. What it accepts passes `validate`, prints words that read back to the same queue
//! and the same words, is the same after JSON, has a description within its ranges, and consists of known words and numbers only. What it
//! refuses is refused in one line of bounded length without control characters.

use tcpscape_path::{parse_tc, parse_with_hints, Description, PathSpec, QdiscSpec, REGISTRY};

/// Longest text; a longer one is cut.
const LONGEST: usize = 4_096;
/// Longest message of a refusal, characters.
const LONGEST_MESSAGE: usize = 600;
/// Words after which a handle stands.
const PLACES: [&str; 4] = ["handle", "parent", "classid", "default"];

/// Every word of tc's grammar that is no number.
const VOCABULARY: [&str; 12] = [
    "tc qdisc class add change replace root handle parent dev classid ethernet linklayer",
    "netem limit latency delay loss drop ecn reorder corrupt gap duplicate distribution rate slot random state gemodel normal pareto",
    "paretonormal packets bytes jitter order clamp correlated tau",
    "tbf latency burst buffer maxburst mtu minburst mpu peakrate overhead htb ceil cburst cbuffer cmaxburst default r2q quantum prio",
    "pfifo bfifo pfifo_head_drop red min max avpkt probability bandwidth harddrop nodrop adaptive choke",
    "codel fq_codel target interval noecn ce_threshold flows memory_limit drop_batch",
    "pie fq_pie tupdate alpha beta bytemode nobytemode dq_rate_estimator no_dq_rate_estimator ecn_prob",
    "cake unlimited besteffort precedence diffserv8 diffserv4 diffserv3 flowblind srchost dsthost hosts dual-srchost dual-dsthost",
    "triple-isolate nat nonat wash nowash split-gso no-split-gso ack-filter ack-filter-aggressive no-ack-filter memlimit rtt ingress egress",
    "noatm atm ptm raw conservative datacentre lan metro regional internet oceanic satellite interplanetary via-ethernet docsis fwmark",
    "dualpi2 coupling_factor step_thresh min_qlen_step overflow no_overflow drop_dequeue drop_enqueue any_ect l4s_ect classic_protection no_split_gso split_gso typical_rtt max_rtt",
    "fq flow_limit initial_quantum maxrate pacing nopacing refill_delay horizon horizon_cap horizon_drop orphan_mask low_rate_threshold timer_slack buckets sfq perturb divisor depth headdrop redflowlimit",
];

/// The target: bytes are text, what is no UTF-8 is replaced.
pub fn check(data: &[u8]) {
    read(&String::from_utf8_lossy(&data[..data.len().min(LONGEST)]));
}

/// Reads words and checks what comes of it; `None` where they are refused.
pub fn read(text: &str) -> Option<QdiscSpec> {
    match parse_with_hints(text) {
        Ok((spec, hints)) => {
            hints.iter().for_each(|hint| one_short_line(text, hint));
            reads_back(text, &spec);
            spec.describe().iter().for_each(|d| in_range(text, d));
            known_words(text);
            Some(spec)
        }
        Err(refusal) => {
            one_short_line(text, &refusal.to_string());
            None
        }
    }
}

fn reads_back(text: &str, spec: &QdiscSpec) {
    if let Err(e) = PathSpec::of([spec.clone()]).validate() {
        panic!("{text:?} is accepted, but {e}");
    }
    let printed = spec.to_tc();
    let again = parse_tc(&printed).unwrap_or_else(|e| panic!("{text:?} prints {printed:?}, which is refused: {e}"));
    assert_eq!(*spec, again, "{text:?} prints {printed:?}, which reads back as another queue");
    assert_eq!(printed, again.to_tc(), "{text:?}: the words of the words differ");
    let json = serde_json::to_string(spec).unwrap_or_else(|e| panic!("{text:?} has no JSON: {e}"));
    let from_json: QdiscSpec = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{text:?}: {json} is refused: {e}"));
    assert_eq!(*spec, from_json, "{text:?}: {json} reads back as another queue");
}

fn in_range(text: &str, d: &Description) {
    assert!([d.loss, d.duplicate, d.corrupt, d.reorder].iter().all(|p| (0.0..=1.0).contains(p)), "{text:?}: {d:?}");
    assert_eq!(d.jitter_ns > 0, d.distribution.is_some(), "{text:?}: {d:?}");
    assert!(d.rate_bps != Some(0), "{text:?}: {d:?}");
}

/// Every accepted word is a number or a known word, perhaps shortened: nothing is skipped unread.
fn known_words(text: &str) {
    for queue in text.split(';') {
        let words: Vec<&str> = queue.split_ascii_whitespace().collect();
        for (i, word) in words.iter().enumerate() {
            let before = if i > 0 { words[i - 1] } else { "" };
            let device = before == "dev" && !word.contains(char::is_control);
            let handle = PLACES.iter().any(|p| !before.is_empty() && p.starts_with(before)) && is_handle(word);
            let number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && word.is_ascii();
            let known = vocabulary().any(|k| k.starts_with(word));
            assert!(device || handle || number || known, "{text:?}: {word:?} is accepted");
        }
    }
}

/// Hexadecimal digits with a colon among them, perhaps.
fn is_handle(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'x')
}

fn one_short_line(text: &str, message: &str) {
    assert!(!message.is_empty() && !message.chars().any(char::is_control), "{text:?}: {message:?} is not one line");
    let length = message.chars().count();
    assert!(length <= LONGEST_MESSAGE, "{text:?}: a message of {length} characters: {message}");
}

/// Every word that is no number.
pub fn vocabulary() -> impl Iterator<Item = &'static str> {
    VOCABULARY.iter().flat_map(|line| line.split(' '))
}

/// Words to begin with: the example of each queue.
pub fn examples() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|e| e.example)
}
