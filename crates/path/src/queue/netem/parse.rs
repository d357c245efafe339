//! netem's words.

use super::slot::Slot;
use super::NetemSpec;
use crate::impair::loss::Loss;
use crate::values::{Dist, Prob};
use crate::words::{TcError, Words};

/// In tc's order, which decides about shortened words.
const WORDS: &[&str] =
    &["limit", "latency", "delay", "loss", "drop", "ecn", "reorder", "corrupt", "gap", "duplicate", "distribution", "rate", "slot"];

pub(super) fn parse<C>(w: &mut Words<'_>) -> Result<NetemSpec<C>, TcError> {
    let mut s = NetemSpec::default();
    let (mut gap, mut lost) = (None, None);
    let mut dist = None;
    while let Some(word) = w.word() {
        let key = keyword(w, word)?;
        match key {
            "limit" => s.limit = w.packets(key)?,
            "delay" | "latency" => delay(w, &mut s)?,
            "loss" | "drop" => w.once(&mut lost, key, loss)?,
            "ecn" => s.ecn = true,
            "reorder" => (s.reorder, s.reorder_correlation) = with_correlation(w, key)?,
            "corrupt" => (s.corrupt, s.corrupt_correlation) = with_correlation(w, key)?,
            "duplicate" => (s.duplicate, s.duplicate_correlation) = with_correlation(w, key)?,
            "gap" => gap = Some(w.count(key)?),
            "distribution" => dist = Some(distribution(w)?),
            "rate" => rate(w, &mut s)?,
            _ => s.slot = Some(slot(w)?),
        }
    }
    s.loss = lost.unwrap_or_default();
    if let Some(d) = dist {
        if s.delay.0 == 0 || s.jitter.0 == 0 {
            return Err(w.wrong("distribution", "it needs a delay and jitter: delay 25ms 8ms distribution normal"));
        }
        s.distribution = d;
    }
    s.gap = match (s.reorder.0, gap) {
        (0, Some(g)) if g > 0 => return Err(w.wrong("gap", "it needs a reorder probability: reorder 25% gap 5")),
        (0, _) => 0,
        (_, g) => g.unwrap_or(0).max(1),
    };
    if s.reorder.0 > 0 && s.delay.0 == 0 {
        return Err(w.wrong("reorder", "it needs a delay to overtake: delay 10ms reorder 25%"));
    }
    if s.ecn && s.loss.is_none() {
        return Err(w.wrong("ecn", "it needs a loss to mark instead of: loss 1% ecn"));
    }
    Ok(s)
}

/// A keyword, with a hint where people forget what stands before a second time or a number.
fn keyword(w: &Words<'_>, word: &str) -> Result<&'static str, TcError> {
    w.keyword(word, WORDS).map_err(|e| {
        if word == "jitter" {
            w.not_understood(word, "jitter is the second time after delay: delay 25ms 8ms")
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            w.not_understood(word, &format!("no number belongs here; expected {}", WORDS.join(", ")))
        } else {
            e
        }
    })
}

fn delay<C>(w: &mut Words<'_>, s: &mut NetemSpec<C>) -> Result<(), TcError> {
    s.delay = w.time("delay")?;
    if let Some(j) = w.number_word() {
        if j.ends_with('%') {
            return Err(w.wrong(j, "a correlation needs jitter before it: delay 25ms 8ms 25%"));
        }
        s.jitter = w.as_time(j, "delay")?;
        if let Some(c) = w.number_word() {
            s.delay_correlation = w.as_percent(c, "delay correlation")?;
            if s.jitter.0 == 0 && s.delay_correlation.0 > 0 {
                return Err(w.wrong(c, "a correlation needs jitter above 0: delay 25ms 8ms 25%"));
            }
        }
    }
    Ok(())
}

fn with_correlation(w: &mut Words<'_>, key: &'static str) -> Result<(Prob, Prob), TcError> {
    let p = w.percent(key)?;
    let correlation = w.number_word().map_or(Ok(Prob::ZERO), |c| w.as_percent(c, key))?;
    Ok((p, correlation))
}

fn loss(w: &mut Words<'_>) -> Result<Loss, TcError> {
    let first = w.value("loss")?;
    let mut list = |most: usize| -> Result<Vec<Prob>, TcError> {
        let mut p = vec![w.percent("loss")?];
        while p.len() < most {
            match w.number_word() {
                Some(v) => p.push(w.as_percent(v, "loss")?),
                None => break,
            }
        }
        Ok(p)
    };
    match first {
        "state" => Ok(Loss::state(&list(5)?)),
        "gemodel" => Ok(Loss::gemodel(&list(4)?)),
        "random" => list(2).map(|p| Loss::Random { p: p[0], correlation: p.get(1).copied().unwrap_or_default() }),
        p => {
            let p = w.as_percent(p, "loss")?;
            let correlation = w.number_word().map_or(Ok(Prob::ZERO), |c| w.as_percent(c, "loss"))?;
            Ok(Loss::Random { p, correlation })
        }
    }
}

fn distribution(w: &mut Words<'_>) -> Result<Dist, TcError> {
    let name = w.value("distribution")?;
    match Dist::named(name) {
        Some(Dist::Uniform) => Err(w.wrong(name, "there is no such table: without distribution the jitter is uniform")),
        Some(d) => Ok(d),
        None => Err(w.wrong(name, "there is no such distribution: expected normal, pareto or paretonormal")),
    }
}

fn rate<C>(w: &mut Words<'_>, s: &mut NetemSpec<C>) -> Result<(), TcError> {
    s.rate = Some(w.rate("rate")?);
    if let Some(v) = w.signed_word() {
        s.packet_overhead = w.as_signed(v, "rate")?;
        if let Some(v) = w.number_word() {
            s.cell_size = w.as_count(v, "rate")?;
            if let Some(v) = w.signed_word() {
                s.cell_overhead = w.as_signed(v, "rate")?;
            }
        }
    }
    Ok(())
}

fn slot(w: &mut Words<'_>) -> Result<Slot, TcError> {
    let mut s = Slot::default();
    let first = w.value("slot")?;
    if first == "distribution" {
        s.distribution = Some(distribution(w)?);
        let v = w.value("slot distribution")?;
        s.min = w.as_nanos(v, "slot")?;
        let v = w.value("slot distribution")?;
        s.max = w.as_nanos(v, "slot")?;
    } else {
        s.min = w.as_nanos(first, "slot")?;
        s.max = w.number_word().map_or(Ok(s.min), |v| w.as_nanos(v, "slot"))?;
        if s.max < s.min {
            return Err(w.wrong("slot", "the most must not be less than the least: slot 5ms 10ms"));
        }
    }
    while let Some(word @ ("packets" | "bytes")) = w.ahead() {
        w.word();
        if word == "packets" {
            s.packets = w.count(word)?;
        } else {
            s.bytes = w.size(word)? as u32;
        }
    }
    Ok(s)
}
