//! What comes out of a trial of the model: the results that every engine has, and what was recorded.

use crate::columns::{PacketEvents, SenderEvents};
use crate::record::ControlRecord;
use serde::{Serialize, Serializer};
use tcpscape_plan::results::{FlowSummary, ProbeSummary, QueueAccount, TransfersSummary};
use tcpscape_plan::samples::{FlowSamples, ProbeSamples, QueueSamples};

/// One trial's results; [`TrialOutput::check_accounts`] says whether they fit each other. The document has all but the tables and what its checks need.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TrialOutput {
    /// The seed it ran with.
    pub seed: u64,
    /// Length of the trial, ns.
    pub duration_ns: u64,
    /// Per flow.
    pub flows: Vec<FlowSummary>,
    /// Per queue, pipe by pipe: forward (host, network), then reverse; of a chain link by link.
    pub queues: Vec<QueueAccount>,
    /// Per probe.
    pub probes: Vec<ProbeSummary>,
    /// Per entry of the plan's transfers.
    pub transfers: Vec<TransfersSummary>,
    /// Flow samples.
    #[serde(skip)]
    pub samples: FlowSamples,
    /// Queue samples.
    #[serde(skip)]
    pub queue_samples: QueueSamples,
    /// The delay of each packet of the probes, where flows are sampled.
    #[serde(skip)]
    pub probe_samples: ProbeSamples,
    /// Packets at the sender.
    #[serde(skip)]
    pub packets: PacketEvents,
    /// What happened to the senders, and when.
    #[serde(skip)]
    pub sender_events: SenderEvents,
    /// What the congestion controls showed of themselves.
    #[serde(skip)]
    pub control: ControlRecord,
    /// The receivers' window scale shifts.
    #[serde(skip)]
    pub wscale: Vec<u8>,
    /// When it was over, s: at the end of the last connection, after that what was on its way is not looked at.
    #[serde(skip)]
    pub ended_s: f64,
    /// Packets that had come out of each pipe when the trial was over, and nobody had taken.
    #[serde(skip)]
    pub untaken: Vec<u64>,
    /// Events processed.
    pub events: u64,
    /// Packets delivered, both ways.
    pub arrivals: u64,
    /// Hash over every delivery in order: equal runs have equal hashes.
    #[serde(serialize_with = "hexadecimal")]
    pub hash: u64,
    /// Why the trial was ended long before its time: then its results are none. One line with the fix.
    #[serde(skip)]
    pub stalled: Option<String>,
    /// What weakens the result.
    pub caveats: Vec<String>,
}

fn hexadecimal<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}
