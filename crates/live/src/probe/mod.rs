//! What this machine's kernel lets the live engine do, found by trying it in namespaces of this process.

use crate::channel::Channel;
use crate::spaces::Options;
use serde::Deserialize;
use serde_json::{json, Value};

/// What is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Job {
    /// Without a user namespace.
    root: bool,
}

/// Enters namespaces and says what is possible there.
pub fn run(job: Value, channel: &Channel) -> Result<Value, String> {
    let job: Job = serde_json::from_value(job).map_err(|e| format!("job: {e}"))?;
    let spaces = channel.enter(&Options { root: job.root }).map_err(|e| e.to_string())?;
    Ok(json!({ "realtime": spaces.realtime() }))
}
