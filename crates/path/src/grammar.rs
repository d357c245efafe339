//! A queue and its children in tc's own words.
//!
//! [`parse_tc`] reads what follows `tc qdisc add dev …`: `netem delay 25ms 8ms distribution normal loss 0.1%`,
//! `tbf rate 10mbit burst 6056 limit 62500`. A `;` puts the next queue as a child into the one before it. `root`,
//! `handle 1:`, `parent 1:1` and the like are accepted and mean nothing here. Words may be shortened as tc allows. What tc
//! refuses is refused with one line that names the word and what would do instead.

use crate::queue::{self, Entry, QdiscSpec, REGISTRY};
use crate::words::{is_handle, quoted, TcError, Words};

/// Reads a queue and its children.
///
/// ```
/// let q = tcpscape_path::parse_tc("tbf rate 10mbit burst 4000 latency 400ms; netem delay 50ms loss 2%").unwrap();
/// assert_eq!(q.to_tc(), "tbf rate 10mbit burst 4000 limit 504000; netem limit 1000 delay 50ms loss 2%");
/// let e = tcpscape_path::parse_tc("netem delay 25ms loss 120%").unwrap_err();
/// assert_eq!(e.to_string(), r#"netem: "120%" is not a loss probability: give a percentage from 0% to 100%, for example 1%"#);
/// ```
pub fn parse_tc(text: &str) -> Result<QdiscSpec, TcError> {
    parse_with_hints(text).map(|parsed| parsed.0)
}

/// The same, with a line for each word that reads otherwise than many expect.
///
/// ```
/// let hints = tcpscape_path::parse_with_hints("netem delay 25").unwrap().1;
/// assert_eq!(hints, ["netem: 25 after delay is 25 µs in tc's words; write 25ms for milliseconds"]);
/// ```
pub fn parse_with_hints(text: &str) -> Result<(QdiscSpec, Vec<String>), TcError> {
    let mut hints = Vec::new();
    let pieces = text.split(';').map(|p| strip(p.split_ascii_whitespace().collect())).collect::<Result<Vec<Vec<&str>>, TcError>>()?;
    let mut chain = Vec::new();
    for (i, words) in pieces.iter().enumerate() {
        let announced = pieces.get(i + 1).is_some_and(|next| next.first() == words.first());
        if !(announced && entry(words).is_some_and(|e| (e.announces)(words))) {
            chain.push(parse_one(words, &mut hints)?);
        }
    }
    queue::depth(chain.len()).map_err(|e| TcError(e.to_string()))?;
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
    Ok((spec, hints))
}

fn empty(text: &str) -> TcError {
    TcError(format!("{} has no queue: expected {}", quoted(text.trim()), names()))
}

fn names() -> String {
    REGISTRY.iter().map(|e| e.name).collect::<Vec<_>>().join(", ")
}

/// Longest name of a device: `IFNAMSIZ` with its end, bytes.
const DEVICE: usize = 15;

/// Takes off what says where a queue goes.
fn strip(mut words: Vec<&str>) -> Result<Vec<&str>, TcError> {
    loop {
        let n = match words[..] {
            ["tc" | "qdisc" | "class" | "add" | "change" | "replace" | "root", ..] => 1,
            ["dev", name, ..] if name.len() <= DEVICE && !name.contains(char::is_control) => 2,
            ["handle" | "parent" | "classid", handle, ..] if is_handle(handle) => 2,
            ["dev", name, ..] => return Err(misplaced("dev", name, "a device: give a name of at most 15 bytes")),
            [key @ ("handle" | "parent" | "classid"), handle, ..] => {
                return Err(misplaced(key, handle, "a handle: give hexadecimal numbers as in 1: or 1:10"))
            }
            _ => return Ok(words),
        };
        words.drain(..n);
    }
}

fn misplaced(key: &str, value: &str, fix: &str) -> TcError {
    TcError(format!("{} after {key} is not {fix}", quoted(value)))
}

fn parse_one(words: &[&str], hints: &mut Vec<String>) -> Result<QdiscSpec, TcError> {
    let Some((&name, rest)) = words.split_first() else { return Err(empty("")) };
    let entry = entry(words).ok_or_else(|| TcError(format!("{} is not a queue: expected {}", quoted(name), names())))?;
    let mut words = Words::new(entry.name, rest);
    let spec = (entry.parse)(&mut words)?;
    hints.append(&mut words.into_hints());
    Ok(spec)
}

/// The discipline that the first word names.
fn entry(words: &[&str]) -> Option<&'static Entry> {
    REGISTRY.iter().find(|e| words.first() == Some(&e.name))
}

#[cfg(test)]
mod tests;
