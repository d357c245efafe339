//! tc's own words for a path.
//!
//! [`parse_tc`] reads what follows `tc qdisc add dev …`: `netem delay 25ms 8ms distribution normal loss 0.1%`,
//! `tbf rate 10mbit burst 6056 limit 62500`. A `;` puts the next queue as a child into the one before it. `root`,
//! `handle 1:`, `parent 1:1` and the like are accepted and mean nothing here. Words may be shortened as tc allows. What tc
//! refuses is refused with one line that names the word and what would do instead.

pub mod print;
#[cfg(test)]
mod tests;
mod units;

use crate::queue::REGISTRY;
use crate::spec::{Prob, QdiscSpec, SpecError};
use tcpscape_base::{Duration, Rate};

/// Words that tc would refuse: one line with the word and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TcError(String);

/// Reads a queue and its children.
///
/// ```
/// let q = tcpscape_path::parse_tc("tbf rate 10mbit burst 4000 latency 400ms; netem delay 50ms loss 2%").unwrap();
/// assert_eq!(q.to_tc(), "tbf rate 10mbit burst 4000 limit 504000; netem limit 1000 delay 50ms loss 2%");
/// let e = tcpscape_path::parse_tc("netem delay 25ms loss 120%").unwrap_err();
/// assert_eq!(e.to_string(), r#"netem: "120%" is not a loss probability: give a percentage from 0% to 100%, for example 1%"#);
/// ```
pub fn parse_tc(text: &str) -> Result<QdiscSpec, TcError> {
    let pieces: Vec<Vec<&str>> = text.split(';').map(|p| strip(p.split_whitespace().collect())).collect();
    let mut chain = Vec::new();
    for (i, words) in pieces.iter().enumerate() {
        // `htb default 1; class … htb rate R` is one htb here.
        let bare_htb = words.first() == Some(&"htb") && !words.iter().any(|w| w.starts_with("rate"));
        if !(bare_htb && pieces.get(i + 1).and_then(|n| n.first()) == Some(&"htb")) {
            chain.push(parse_one(words)?);
        }
    }
    let mut inner: Option<QdiscSpec> = None;
    for mut outer in chain.into_iter().rev() {
        if let Some(child) = inner.take() {
            let (name, below) = (outer.name(), child.name());
            if !outer.set_child(child) {
                let fix = format!("\"{below}\" cannot follow it after ;: put it in front");
                return Err(TcError(format!("{name}: cannot hold a child queue, so {fix}")));
            }
        }
        inner = Some(outer);
    }
    let spec = inner.ok_or_else(|| empty(text))?;
    spec.validate().map_err(|e| TcError(e.to_string()))?;
    Ok(spec)
}

fn empty(text: &str) -> TcError {
    TcError(format!("\"{}\" has no queue: expected {}", text.trim(), names()))
}

fn names() -> String {
    REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Takes off what says where a queue goes.
fn strip(mut words: Vec<&str>) -> Vec<&str> {
    loop {
        let n = match words.first() {
            Some(&("tc" | "qdisc" | "class" | "add" | "change" | "replace" | "root")) => 1,
            Some(&("handle" | "parent" | "dev" | "classid")) => 2,
            _ => return words,
        };
        words.drain(..n.min(words.len()));
    }
}

fn parse_one(words: &[&str]) -> Result<QdiscSpec, TcError> {
    let Some((&name, rest)) = words.split_first() else { return Err(empty("")) };
    let Some(entry) = REGISTRY.iter().find(|e| e.name == name) else {
        return Err(TcError(format!("\"{name}\" is not a queue: expected {}", names())));
    };
    (entry.parse)(&mut Words { kind: entry.name, rest, last: name })
}

/// The words of one queue, read from the left.
pub struct Words<'a> {
    kind: &'static str,
    rest: &'a [&'a str],
    last: &'a str,
}

impl<'a> Words<'a> {
    /// The next word.
    pub(crate) fn word(&mut self) -> Option<&'a str> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.last = first;
        Some(first)
    }
    /// The next word if it begins with a digit, as tc decides about optional numbers.
    pub(crate) fn number_word(&mut self) -> Option<&'a str> {
        if self.rest.first()?.starts_with(|c: char| c.is_ascii_digit()) {
            self.word()
        } else {
            None
        }
    }
    /// The next word if it begins with a digit or a sign.
    pub(crate) fn signed_word(&mut self) -> Option<&'a str> {
        if self.rest.first()?.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
            self.word()
        } else {
            None
        }
    }
    /// The next word, without taking it.
    pub(crate) fn ahead(&self) -> Option<&'a str> {
        self.rest.first().copied()
    }
    /// Which of the known words this is; tc takes any beginning of one, the first in its order.
    pub(crate) fn keyword(&self, word: &str, known: &[&'static str]) -> Result<&'static str, TcError> {
        known.iter().find(|k| k.starts_with(word)).copied().ok_or_else(|| {
            let hint = match (self.kind, word) {
                ("netem", "jitter") => "jitter is the second time after delay: delay 25ms 8ms".to_owned(),
                ("netem", w) if w.starts_with(|c: char| c.is_ascii_digit()) => {
                    format!("no number belongs here; expected {}", known.join(", "))
                }
                _ => format!("expected {}", known.join(", ")),
            };
            TcError(format!("{}: \"{word}\" is not understood: {hint}", self.kind))
        })
    }
    /// Whether this is one of the known words; the queues that came late to tc take no abbreviations.
    pub(crate) fn exact(&self, word: &str, known: &[&'static str]) -> Result<&'static str, TcError> {
        known
            .iter()
            .find(|k| **k == word)
            .copied()
            .ok_or_else(|| TcError(format!("{}: \"{word}\" is not understood: expected {}", self.kind, known.join(", "))))
    }
    /// The value of a keyword.
    pub(crate) fn value(&mut self, key: &str) -> Result<&'a str, TcError> {
        self.word().ok_or_else(|| TcError(format!("{}: \"{key}\" is the last word: a value must follow it", self.kind)))
    }
    /// Reads a keyword's value that may be given only once.
    pub(crate) fn once<T>(
        &mut self,
        slot: &mut Option<T>,
        key: &str,
        read: impl FnOnce(&mut Self) -> Result<T, TcError>,
    ) -> Result<(), TcError> {
        if slot.is_some() {
            return Err(self.wrong(key, "it is given twice: leave one away"));
        }
        *slot = Some(read(self)?);
        Ok(())
    }
    /// Words that change nothing when they say nothing: `mpu 0`, `overhead 0`, `linklayer ethernet`, any `mtu`.
    pub(crate) fn harmless(&mut self, key: &str) -> Result<(), TcError> {
        let v = self.value(key)?;
        match (key, v) {
            ("mtu", _) | ("mpu" | "overhead", "0") | ("linklayer", "ethernet") => Ok(()),
            _ => Err(self.wrong(key, "it is not modelled: leave it away")),
        }
    }
    /// A size in bytes.
    pub(crate) fn size(&mut self, key: &str) -> Result<u64, TcError> {
        let v = self.value(key)?;
        units::size(v)
            .ok_or_else(|| self.bad(v, key, "a size", "a number with b, k, m, g (of 1024) or kbit, mbit, for example 62500 or 32kbit"))
    }
    /// A size, and tc's cell size after `/`, which has no effect any more.
    pub(crate) fn size_and_cell(&mut self, key: &str) -> Result<u64, TcError> {
        let v = self.value(key)?;
        let (size, cell) = v.split_once('/').unwrap_or((v, "8"));
        let cell_ok = cell.parse::<u32>().is_ok_and(u32::is_power_of_two);
        let size = units::size(size).filter(|_| cell_ok);
        size.ok_or_else(|| self.bad(v, key, "a size", "a number with b, k, m, g (of 1024) or kbit, mbit, for example 6056 or 32kbit"))
    }
    /// A rate above zero.
    pub(crate) fn rate(&mut self, key: &str) -> Result<Rate, TcError> {
        let v = self.value(key)?;
        let units = "a number above 0 with bit, kbit, mbit, gbit (bits) or bps, kbps, mbps (bytes), for example 10mbit";
        units::rate(v).filter(|r| r.0 > 0).ok_or_else(|| self.bad(v, key, "a rate", units))
    }
    /// A time.
    pub(crate) fn time(&mut self, key: &str) -> Result<Duration, TcError> {
        let v = self.value(key)?;
        self.as_time(v, key)
    }
    /// A time in whole µs, as tc sends it for most queues.
    pub(crate) fn micros(&mut self, key: &str) -> Result<Duration, TcError> {
        self.time(key).map(|t| Duration::micros(t.as_micros()))
    }
    /// A word as a time.
    pub(crate) fn as_time(&self, v: &str, key: &str) -> Result<Duration, TcError> {
        let most = if key == "latency" && self.kind == "tbf" { units::LATENCY_MAX } else { units::DELAY_MAX };
        let accepted = format!("a number with s, ms, us or ns, at most {}s, for example 25ms", most.0 / 1_000_000_000);
        units::time(v, 1_000, most).ok_or_else(|| self.bad(v, key, "a time", &accepted))
    }
    /// A word as a time whose bare number is ns, as tc has it for slots.
    pub(crate) fn as_slot_time(&self, v: &str) -> Result<Duration, TcError> {
        let accepted = "a number with s, ms, us or ns, at most 4294s, for example 800us";
        units::time(v, 1, units::LATENCY_MAX).ok_or_else(|| self.bad(v, "slot", "a time", accepted))
    }
    /// A probability.
    pub(crate) fn percent(&mut self, key: &str) -> Result<Prob, TcError> {
        let v = self.value(key)?;
        self.as_percent(v, key)
    }
    /// A word as a probability.
    pub(crate) fn as_percent(&self, v: &str, key: &str) -> Result<Prob, TcError> {
        units::percent(v).ok_or_else(|| {
            TcError(format!("{}: \"{v}\" is not a {key} probability: give a percentage from 0% to 100%, for example 1%", self.kind))
        })
    }
    /// A whole number.
    pub(crate) fn count(&mut self, key: &str) -> Result<u32, TcError> {
        let v = self.value(key)?;
        self.as_count(v, key)
    }
    /// A word as a whole number.
    pub(crate) fn as_count(&self, v: &str, key: &str) -> Result<u32, TcError> {
        units::count(v).ok_or_else(|| self.bad(v, key, "a count", "a whole number, for example 5"))
    }
    /// A word as a whole number with a sign.
    pub(crate) fn as_signed(&self, v: &str, key: &str) -> Result<i32, TcError> {
        units::signed(v).ok_or_else(|| self.bad(v, key, "a number of bytes", "a whole number, for example 20 or -4"))
    }
    fn bad(&self, v: &str, key: &str, what: &str, accepted: &str) -> TcError {
        TcError(format!("{}: \"{v}\" after {key} is not {what}: give {accepted}", self.kind))
    }
    /// A word that is wrong where it stands.
    pub(crate) fn wrong(&self, word: &str, fix: &str) -> TcError {
        TcError(format!("{}: \"{word}\": {fix}", self.kind))
    }
    /// A word that should have been there.
    pub(crate) fn missing(&self, what: &str, example: &str) -> TcError {
        TcError(format!("{}: {what} is missing: add {example}", self.kind))
    }
    /// Words that are right one by one, but not together.
    pub(crate) fn wrong_spec(&self, e: &SpecError) -> TcError {
        TcError(e.to_string())
    }
}
