//! tc's words: a lexer that hands out the words of one discipline, tc's units, and values printed back as words.
//!
//! [`Words`] knows what a rate, a time, a size, a count and a percentage look like and how tc shortens keywords. Which keywords there are,
//! and what they mean, is said by each discipline's own `parse`.

pub mod print;
mod units;

use crate::values::Prob;
use std::cell::RefCell;
use tcpscape_base::{Duration, Rate};

/// Words that tc would refuse: one line with the word and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TcError(pub(crate) String);

/// The words of one queue, read from the left.
pub struct Words<'a> {
    kind: &'static str,
    rest: &'a [&'a str],
    /// What reads otherwise than many expect.
    hints: RefCell<Vec<String>>,
}

impl<'a> Words<'a> {
    /// The words after the name of a discipline.
    pub(crate) fn new(kind: &'static str, rest: &'a [&'a str]) -> Words<'a> {
        Words { kind, rest, hints: RefCell::default() }
    }
    /// What has been read so far and means something else than many expect, one line each.
    pub(crate) fn into_hints(self) -> Vec<String> {
        self.hints.into_inner()
    }
    /// The next word.
    pub(crate) fn word(&mut self) -> Option<&'a str> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
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
        known.iter().find(|k| k.starts_with(word)).copied().ok_or_else(|| self.not_understood(word, &expected(known)))
    }
    /// Whether this is one of the known words; the queues that came late to tc take no abbreviations.
    pub(crate) fn exact(&self, word: &str, known: &[&'static str]) -> Result<&'static str, TcError> {
        known.iter().find(|k| **k == word).copied().ok_or_else(|| self.not_understood(word, &expected(known)))
    }
    /// A word that is none of the discipline's.
    pub(crate) fn not_understood(&self, word: &str, hint: &str) -> TcError {
        TcError(format!("{}: {} is not understood: {hint}", self.kind, quoted(word)))
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
    /// A size in bytes.
    pub(crate) fn size(&mut self, key: &str) -> Result<u64, TcError> {
        let v = self.value(key)?;
        units::size(v)
            .ok_or_else(|| self.bad(v, key, "a size", "a number with b, k, m, g (of 1024) or kbit, mbit, for example 62500 or 32kbit"))
    }
    /// Packets, which tc reads as a size; it cuts a fraction off, which is refused here.
    pub(crate) fn packets(&mut self, key: &str) -> Result<u32, TcError> {
        let v = self.value(key)?;
        units::whole(v).ok_or_else(|| self.bad(v, key, "a count", "a whole number, for example 1000"))
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
    /// A time that tc sends as 32 bits of µs, which reach further than its ticks.
    pub(crate) fn long_time(&mut self, key: &str) -> Result<Duration, TcError> {
        let v = self.value(key)?;
        self.time_within(v, key, units::MICROS_MAX)
    }
    /// A word as a time.
    pub(crate) fn as_time(&self, v: &str, key: &str) -> Result<Duration, TcError> {
        self.time_within(v, key, units::TICKS_MAX)
    }
    fn time_within(&self, v: &str, key: &str, most: Duration) -> Result<Duration, TcError> {
        let accepted = format!("a number with s, ms, us or ns, at most {}s, for example 25ms", most.0 / 1_000_000_000);
        self.hint_of_bare(v, key, "µs");
        units::time(v, 1_000, most).ok_or_else(|| self.bad(v, key, "a time", &accepted))
    }
    /// A word as a time whose bare number is ns.
    pub(crate) fn as_nanos(&self, v: &str, key: &str) -> Result<Duration, TcError> {
        let accepted = "a number with s, ms, us or ns, at most 4294s, for example 800us";
        self.hint_of_bare(v, key, "ns");
        units::time(v, 1, units::MICROS_MAX).ok_or_else(|| self.bad(v, key, "a time", accepted))
    }
    /// A time without a unit is not in milliseconds.
    fn hint_of_bare(&self, v: &str, key: &str, unit: &str) {
        if v.len() < SHOWN && v.parse().is_ok_and(|n: f64| n > 0.0) {
            let text = format!("{}: {v} after {key} is {v} {unit} in tc's words; write {v}ms for milliseconds", self.kind);
            self.hints.borrow_mut().push(text);
        }
    }
    /// A probability.
    pub(crate) fn percent(&mut self, key: &str) -> Result<Prob, TcError> {
        let v = self.value(key)?;
        self.as_percent(v, key)
    }
    /// A word as a probability.
    pub(crate) fn as_percent(&self, v: &str, key: &str) -> Result<Prob, TcError> {
        units::percent(v).ok_or_else(|| {
            TcError(format!("{}: {} is not a {key} probability: give a percentage from 0% to 100%, for example 1%", self.kind, quoted(v)))
        })
    }
    /// A probability as a fraction.
    pub(crate) fn fraction(&mut self, key: &str) -> Result<f64, TcError> {
        let v = self.value(key)?;
        v.parse().map_err(|_| self.wrong(v, "give a probability above 0 and at most 1, for example 0.02"))
    }
    /// A whole number.
    pub(crate) fn count(&mut self, key: &str) -> Result<u32, TcError> {
        let v = self.value(key)?;
        self.as_count(v, key)
    }
    /// The same; of 0, which tc does not send, what holds without the word.
    pub(crate) fn count_or(&mut self, key: &str, otherwise: u32) -> Result<u32, TcError> {
        Ok(Some(self.count(key)?).filter(|&n| n > 0).unwrap_or(otherwise))
    }
    /// A word as a whole number.
    pub(crate) fn as_count(&self, v: &str, key: &str) -> Result<u32, TcError> {
        units::count(v).ok_or_else(|| self.bad(v, key, "a count", "a whole number, for example 5"))
    }
    /// A word as a whole number with a sign.
    pub(crate) fn as_signed(&self, v: &str, key: &str) -> Result<i32, TcError> {
        units::signed(v).ok_or_else(|| self.bad(v, key, "a number of bytes", "a whole number, for example 20 or -4"))
    }
    /// A keyword's value that names a queue or a class, which means nothing here: `1:`, `1:10` or `10`.
    pub(crate) fn place(&mut self, key: &str) -> Result<(), TcError> {
        let v = self.value(key)?;
        if is_handle(v) {
            Ok(())
        } else {
            Err(self.bad(v, key, "a handle", "hexadecimal numbers as in 1: or 1:10"))
        }
    }
    fn bad(&self, v: &str, key: &str, what: &str, accepted: &str) -> TcError {
        TcError(format!("{}: {} after {key} is not {what}: give {accepted}", self.kind, quoted(v)))
    }
    /// A word that is wrong where it stands.
    pub(crate) fn wrong(&self, word: &str, fix: &str) -> TcError {
        TcError(format!("{}: {}: {fix}", self.kind, quoted(word)))
    }
    /// A word that should have been there.
    pub(crate) fn missing(&self, what: &str, example: &str) -> TcError {
        TcError(format!("{}: {what} is missing: add {example}", self.kind))
    }
}

/// Whether this names a queue (`1:`), a class (`1:10`) or a part of one (`10`): 16 bits on each side, hexadecimal.
pub(crate) fn is_handle(text: &str) -> bool {
    let part = |n: &str| n.bytes().all(|b| b.is_ascii_hexdigit()) && u16::from_str_radix(n, 16).is_ok();
    match text.split_once(':') {
        Some((major, minor)) => (major.is_empty() || part(major)) && (minor.is_empty() || part(minor)) && text.len() > 1,
        None => part(text.strip_prefix("0x").unwrap_or(text)),
    }
}

/// Longest word in a message, characters.
const SHOWN: usize = 60;

/// A user's words as a message shows them: in quotation marks, without control characters, shortened.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(|c| if c == '"' { vec![c] } else { c.escape_debug().collect() }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

fn expected(known: &[&str]) -> String {
    format!("expected {}", known.join(", "))
}
