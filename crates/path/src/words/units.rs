//! tc's units. Numbers are decimal with an optional fraction and exponent; units are case-insensitive.

use crate::values::Prob;
use tcpscape_base::{Duration, Rate};

/// Longest time that tc 6.1 sends in ticks: 2³²−1 of 64 ns.
pub(super) const TICKS_MAX: Duration = Duration(0xffff_ffff * 64);
/// Longest time that tc 6.1 sends in µs: 2³²−1.
pub(super) const MICROS_MAX: Duration = Duration(0xffff_ffff * 1000);

/// Smallest number but 0: what is smaller is a mistake.
const LEAST: f64 = 1e-15;

/// The number at the start of a word and the rest in small letters. No `inf`, no `nan`, nothing negative.
fn number(word: &str) -> Option<(f64, String)> {
    if word.starts_with("0x") || word.starts_with("0X") {
        // strtod() reads hexadecimal too; without a unit, for `b` would be a digit.
        return count(word).map(|n| (f64::from(n), String::new()));
    }
    let end = (1..=word.len()).rev().find(|&n| {
        word.is_char_boundary(n) && word[..n].bytes().all(|b| b"0123456789.eE+-".contains(&b)) && word[..n].parse::<f64>().is_ok()
    })?;
    let value: f64 = word[..end].parse().ok()?;
    let is_zero_or_more = value == 0.0 || value >= LEAST;
    (value.is_finite() && is_zero_or_more).then(|| (value, word[end..].to_ascii_lowercase()))
}

/// A rate: bits for `bit`, bytes for `bps`; powers of 1000, of 1024 with `i`. Whole bytes per second, as tc keeps it.
pub(super) fn rate(word: &str) -> Option<Rate> {
    let (n, unit) = number(word)?;
    let (bytes, prefix) = match unit.strip_suffix("bps") {
        Some(p) => (true, p),
        None => (false, if unit.is_empty() { "" } else { unit.strip_suffix("bit")? }),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let per_sec = if bytes { n * factor } else { n * factor / 8.0 };
    (per_sec < 1e18).then(|| Rate(per_sec as u64 * 8))
}

/// A size in whole bytes: `k` is 1024; `kbit` is 1024 bits. What is more than 0 and less than a byte is a mistake.
pub(super) fn size(word: &str) -> Option<u64> {
    bytes(word).filter(|&n| n == 0.0 || n >= 1.0).map(|n| n as u64)
}

/// A whole number that tc reads as a size: `1k` is 1024.
pub(super) fn whole(word: &str) -> Option<u32> {
    bytes(word).filter(|n| n.fract() == 0.0).map(|n| n as u32)
}

fn bytes(word: &str) -> Option<f64> {
    let (n, unit) = number(word)?;
    let factor = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        "gbit" => 1024.0 * 1024.0 * 1024.0 / 8.0,
        _ => return None,
    };
    let bytes = n * factor;
    (bytes <= f64::from(u32::MAX)).then_some(bytes)
}

/// A time up to `most`; `bare` is how many ns a bare number counts.
pub(super) fn time(word: &str, bare: u64, most: Duration) -> Option<Duration> {
    let (n, unit) = number(word)?;
    let factor = match unit.as_str() {
        "" => bare as f64,
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let ns = n * factor;
    (ns <= most.0 as f64).then(|| Duration(ns.round_ties_even() as u64))
}

/// A percentage, with or without its sign.
pub(super) fn percent(word: &str) -> Option<Prob> {
    let (n, unit) = number(word)?;
    matches!(unit.as_str(), "" | "%").then(|| Prob::from_percent(n))?
}

/// A whole number: decimal, `0x` hexadecimal or `0` octal, as strtoul with base 0.
pub(super) fn count(word: &str) -> Option<u32> {
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u32::from_str_radix(hex, 16).ok();
    }
    match word.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => word.parse().ok(),
    }
}

/// A whole number with or without a sign.
pub(super) fn signed(word: &str) -> Option<i32> {
    match word.strip_prefix('-') {
        Some(n) => i32::try_from(-i64::from(count(n)?)).ok(),
        None => i32::try_from(count(word.strip_prefix('+').unwrap_or(word))?).ok(),
    }
}
