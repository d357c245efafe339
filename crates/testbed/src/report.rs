//! The result of a trial, with the model's names and units.

use crate::network::QueueReport;
use crate::proof::Proof;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_sim::output::{ProbeSummary, TransfersSummary};

pub(crate) mod flow;
pub use flow::{Cwnd, FlowReport, Rtt};

/// One trial.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Length of the trial, ns.
    pub duration_ns: u64,
    /// Per flow.
    pub flows: Vec<FlowReport>,
    /// Per probe.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeSummary>,
    /// Per entry of the plan's transfers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<TransfersSummary>,
    /// Per queue.
    pub queues: Vec<QueueReport>,
    /// What weakens the result.
    pub caveats: Vec<String>,
    /// The kernel's counters of the sending and of the receiving hosts, each kind together, those that are not 0.
    pub counters: BTreeMap<String, u64>,
    /// What the path was asked for and what it did.
    pub proof: Option<Proof>,
    /// Where the tables are.
    pub tables: BTreeMap<&'static str, Table>,
}

/// A table in a file of its own: its columns one after the other, little endian.
#[derive(Debug, Serialize)]
pub struct Table {
    /// File name.
    pub file: String,
    /// Rows.
    pub rows: usize,
    /// Names and types.
    pub columns: Vec<(&'static str, &'static str)>,
}

/// Adds the counters of one host from the text of /proc/net/netstat or /proc/net/snmp, those that are not 0, as
/// `sender.TcpExt.TCPTimeouts`.
pub fn counters(host: &str, text: &str, into: &mut BTreeMap<String, u64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) = (pair[0].split_once(": "), pair[1].split_once(": ")) else { continue };
        if !group.starts_with("Tcp") {
            continue;
        }
        for (name, value) in names.split(' ').zip(values.split(' ')) {
            if let Some(n) = value.parse::<u64>().ok().filter(|&n| n > 0) {
                *into.entry(format!("{host}.{group}.{name}")).or_default() += n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_host_and_group_and_zeros_left_out() {
        let text = "TcpExt: SyncookiesSent TCPTimeouts TCPSackRecovery\nTcpExt: 0 3 2\nIpExt: InOctets\nIpExt: 7\n";
        let mut found = BTreeMap::new();
        counters("sender", text, &mut found);
        assert_eq!(found, BTreeMap::from([("sender.TcpExt.TCPTimeouts".into(), 3), ("sender.TcpExt.TCPSackRecovery".into(), 2)]));
    }
}
