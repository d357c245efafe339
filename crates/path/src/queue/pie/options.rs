//! PIE's own words, which pie and fq_pie have in common.

use super::law::Law;
use crate::values::SpecError;
use crate::words::{print, TcError, Words};

/// The law's words, after those of its queue.
pub(crate) fn words(l: &Law) -> String {
    let mut t = format!(" target {} tupdate {} alpha {} beta {}", print::time(l.target), print::time(l.tupdate), l.alpha, l.beta);
    let flags = [(l.ecn, " ecn"), (l.bytemode, " bytemode"), (l.dq_rate_estimator, " dq_rate_estimator")];
    flags.iter().filter(|f| f.0).for_each(|f| t += f.1);
    t
}

pub(crate) fn validate(l: &Law) -> Result<(), SpecError> {
    if l.alpha > WEIGHT_MAX || l.beta > WEIGHT_MAX {
        return Err(SpecError::new("pie alpha", "and beta must be from 0 to 32 (sixteenths)"));
    }
    Ok(())
}

/// PIE's words in tc.
pub(crate) const WORDS: [&str; 10] =
    ["target", "tupdate", "alpha", "beta", "ecn", "noecn", "bytemode", "nobytemode", "dq_rate_estimator", "no_dq_rate_estimator"];

/// Reads one of [`WORDS`].
pub(crate) fn word(w: &mut Words<'_>, key: &str, l: &mut Law) -> Result<(), TcError> {
    match key {
        // tc sends no zero time: the default stays.
        "target" => l.target = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.target),
        "tupdate" => l.tupdate = Some(w.micros(key)?).filter(|d| d.0 > 0).unwrap_or(l.tupdate),
        "alpha" => l.alpha = w.count(key)?,
        "beta" => l.beta = w.count(key)?,
        "ecn" | "noecn" => l.ecn = key == "ecn",
        "bytemode" | "nobytemode" => l.bytemode = key == "bytemode",
        _ => l.dq_rate_estimator = key == "dq_rate_estimator",
    }
    Ok(())
}

/// Largest alpha and beta, sixteenths.
const WEIGHT_MAX: u32 = 32;
