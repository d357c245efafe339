//! What a kernel's queues do, found by short measurements, never by their mere presence.
//!
//! Which queues there are is found here, by setting each one up: a module that can be loaded is loaded by that. Whether netem does what it is told
//! is measured in [`netem`], on two hosts and one link ([`range`]).

pub mod netem;
pub mod range;

use range::{Range, RangeError};
use serde::Serialize;
use tcpscape_path::parse_tc;

/// A queue that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// tc's name.
    pub name: &'static str,
    /// Why it cannot be had; None where it can.
    pub problem: Option<String>,
}

/// Each queue in the fewest words that set it up.
const WORDS: &[(&str, &str)] = &[
    ("netem", "netem"),
    ("tbf", "tbf rate 1mbit burst 2000 limit 10000"),
    ("htb", "htb rate 1mbit"),
    ("pfifo", "pfifo"),
    ("bfifo", "bfifo"),
    ("pfifo_head_drop", "pfifo_head_drop"),
    ("red", "red limit 100000 min 10000 max 30000 avpkt 1000 burst 20 bandwidth 10mbit probability 0.02"),
    ("choke", "choke limit 100 min 20 max 60 avpkt 1000 burst 30 bandwidth 10mbit probability 0.02"),
    ("codel", "codel"),
    ("fq_codel", "fq_codel"),
    ("pie", "pie"),
    ("fq_pie", "fq_pie"),
    ("sfq", "sfq"),
    ("cake", "cake"),
    ("fq", "fq"),
];

/// Tries every queue, in new network namespaces.
pub fn kinds() -> Result<Vec<Kind>, RangeError> {
    let mut range = Range::build()?;
    let mut kinds = Vec::new();
    for &(name, words) in WORDS {
        let problem = match range.install(&parse_tc(words).expect("words of this file"), None) {
            Ok(()) => None,
            Err(e) if e.is_missing() => Some(format!("modprobe sch_{name}, or a kernel with CONFIG_NET_SCH_{}", name.to_uppercase())),
            Err(e) => Some(e.to_string()),
        };
        kinds.push(Kind { name, problem });
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_has_words_that_tc_reads_and_messages() {
        for (name, words) in WORDS {
            let spec = parse_tc(words).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(spec.name(), *name);
            assert!(crate::qdisc::knows(&spec), "{name}");
        }
    }
}
