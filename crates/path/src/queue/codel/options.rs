//! CoDel's own words, which codel and fq_codel have in common.

use super::law::Law;
use crate::discipline::Marking;
use crate::values::SpecError;
use crate::words::{print, TcError, Words};

/// The law's words, after those of its queue; `ecn` is what holds without a word.
pub(crate) fn words(l: &Law, ecn: bool) -> String {
    let mut t = format!(" target {} interval {}", print::time(l.target), print::time(l.interval));
    if let Some(c) = l.ce_threshold {
        t += &format!(" ce_threshold {}", print::time(c));
    }
    match (l.ecn, ecn) {
        (true, false) => t + " ecn",
        (false, true) => t + " noecn",
        _ => t,
    }
}

pub(crate) fn validate(l: &Law) -> Result<(), SpecError> {
    if [Some(l.target), Some(l.interval), l.ce_threshold].iter().flatten().any(|d| d.0 >= LONGEST) {
        return Err(SpecError::new("codel target", "interval and ce_threshold must be below 2199 s"));
    }
    Ok(())
}

/// `ce_threshold` marks without `ecn` too.
pub(crate) fn marking(l: &Law) -> Marking {
    Marking::when(l.ecn || l.ce_threshold.is_some())
}

/// CoDel's words in tc.
pub(crate) const WORDS: [&str; 5] = ["target", "interval", "ecn", "noecn", "ce_threshold"];

/// Reads one of [`WORDS`].
pub(crate) fn word(w: &mut Words<'_>, key: &str, l: &mut Law) -> Result<(), TcError> {
    match key {
        // tc sends no zero: the default stays.
        "target" => l.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.target),
        "interval" => l.interval = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.interval),
        "ce_threshold" => l.ce_threshold = Some(w.micros(key)?),
        _ => l.ecn = key == "ecn",
    }
    Ok(())
}

/// Half a turn of CoDel's clock, ns.
const LONGEST: u64 = 1 << 41;
