//! Samples as lines of the channel: one line for each column, its bytes little endian in base64 (RFC 4648).

use crate::channel::Channel;
use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::json;
use tcpscape_sim::Plan;
use tcpscape_testbed::watch::Watched;

/// Sends the tables that the plan asks for.
pub fn send(plan: &Plan, seen: &Watched, channel: &Channel) {
    if plan.sample_interval_ns > 0 {
        columns("samples", seen.samples.columns(), channel);
    }
    if plan.queue_sample_interval_ns > 0 {
        columns("queue_samples", seen.queues.columns(), channel);
    }
    if plan.sample_interval_ns > 0 && !plan.probes.is_empty() {
        columns("probe_samples", seen.probes.columns(), channel);
    }
}

fn columns(table: &str, columns: Vec<(&'static str, &'static str, Vec<u8>)>, channel: &Channel) {
    for (name, ty, bytes) in columns {
        channel.send(&json!({ "event": "column", "table": table, "name": name, "type": ty, "data": BASE64_STANDARD.encode(bytes) }));
    }
}
