//! What this machine's kernel lets the live engine do, found by trying it in namespaces of this process.
//!
//! | Question | File |
//! |---|---|
//! | Can the emulator have its packets? | [`backends`] |
//! | How late does a thread wake up? | [`timer`] |
//! | Which queues are there, and does netem behave? | [`tcpscape_testbed::capabilities`] |

pub mod backends;
pub mod timer;

use crate::channel::Channel;
use crate::spaces::Options;
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};
use tcpscape_testbed::capabilities::{kinds, netem};

/// What is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Job {
    /// Without a user namespace.
    root: bool,
    /// What is to be measured, by name, in this order.
    measure: Vec<String>,
}

/// A measurement: what is found, or why it cannot be made.
type Measure = fn() -> Result<Value, String>;

/// Every measurement by name.
const MEASURES: &[(&str, Measure)] = &[
    ("backends", || Ok(json!(backends::probe()))),
    ("kinds", || found(kinds())),
    ("netem", || found(netem::probe())),
    ("timer", || found(timer::probe())),
    ("rate", || found(backends::rates())),
];

/// Enters namespaces, says what is possible there and measures what was asked for; before each measurement its name is an event.
pub fn run(job: Value, channel: &Channel) -> Result<Value, String> {
    let job: Job = serde_json::from_value(job).map_err(|e| format!("job: {e}"))?;
    let spaces = channel.enter(&Options { root: job.root }).map_err(|e| e.to_string())?;
    let mut facts = Map::from_iter([("realtime".to_owned(), json!(spaces.realtime()))]);
    for name in job.measure {
        let (_, measure) = MEASURES.iter().find(|(n, _)| *n == name).ok_or_else(|| format!("measure: {name:?} is unknown"))?;
        channel.send(&json!({ "event": "measuring", "what": name }));
        facts.insert(name, measure()?);
    }
    Ok(Value::Object(facts))
}

fn found<T: Serialize, E: std::fmt::Display>(result: Result<T, E>) -> Result<Value, String> {
    result.map(|found| json!(found)).map_err(|e| e.to_string())
}
