//! What comes out of a trial: a summary of each flow, the account of each queue, and what was recorded.

use crate::columns::{FlowSamples, PacketEvents, ProbeSamples, QueueSamples, SenderEvents};
use crate::player::PlayerSummary;
use serde::Serialize;
use std::fmt;
use tcpscape_base::Histogram;
use tcpscape_path::StageStats;

/// RTT samples in ms.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RttSummary {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}

impl RttSummary {
    /// Of times that were counted in µs; NaN where there was none.
    pub fn of(times: &Histogram) -> RttSummary {
        if times.count() == 0 {
            return RttSummary { min: f64::NAN, p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, max: f64::NAN, mean: f64::NAN };
        }
        let quantile = |q| times.quantile(q) / 1e3;
        RttSummary {
            min: f64::from(times.min()) / 1e3,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max: f64::from(times.max()) / 1e3,
            mean: times.mean() / 1e3,
        }
    }
}

/// The window in packets.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CwndSummary {
    /// Mean over time.
    pub mean: f64,
    /// Largest.
    pub max: u32,
}

/// Shares of the sending time spent under each limit.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LimitedBy {
    /// The application had nothing to send.
    pub app: f64,
    /// The receiver's window.
    pub rwnd: f64,
    /// The congestion window.
    pub cwnd: f64,
    /// The pacing rate.
    pub pacing: f64,
    /// The send buffer.
    pub sndbuf: f64,
    /// The sender's own queue (TCP small queues).
    pub tsq: f64,
}

/// One flow's results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowSummary {
    /// Congestion control.
    pub cca: String,
    /// When connect() returned, s; NaN never.
    pub start_s: f64,
    /// When it stopped, s.
    pub stop_s: f64,
    /// Sending time, s.
    pub seconds: f64,
    /// Whether the handshake succeeded.
    pub established: bool,
    /// Bytes the receiver's application got.
    pub bytes_received: u64,
    /// Of these, bytes it had by the middle of the trial.
    pub bytes_received_first_half: u64,
    /// Bytes the sender's application wrote.
    pub bytes_sent: u64,
    /// Bytes received · 8 / sending time, Mbit/s.
    pub goodput_mbps: f64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmissions that DSACKs reported needless.
    pub spurious_retransmits: u64,
    /// DSACKs that the receiver sent.
    pub dsacks: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Spurious timeouts found by F-RTO.
    pub spurious_rtos: u64,
    /// Fast recoveries.
    pub fast_recoveries: u64,
    /// Window reductions undone.
    pub undos: u64,
    /// Tail loss probes.
    pub tlps: u64,
    /// Reordering events.
    pub reord_seen: u64,
    /// Reordering metric at the end, packets.
    pub reordering: u32,
    /// RTT samples, ms.
    pub rtt_ms: RttSummary,
    /// Smoothed RTT at the end, ms.
    pub srtt_ms: f64,
    /// Windowed minimum RTT at the end, ms.
    pub min_rtt_ms: f64,
    /// Congestion window.
    pub cwnd: CwndSummary,
    /// What limited it.
    pub limited_by: LimitedBy,
    /// Whether both ends agreed to use ECN.
    pub ecn: bool,
    /// Packets delivered whose ACK echoed a congestion mark.
    pub delivered_ce: u64,
    /// Window reductions that such echoes caused.
    pub ecn_reductions: u64,
    /// Segments with data sent.
    pub data_segs_out: u64,
    /// ACKs received.
    pub segs_in: u64,
    /// Old ACKs dropped by PAWS at the sender.
    pub paws_rejected: u64,
    /// Largest receive window, bytes.
    pub max_rwnd: u32,
    /// What the receiver counted.
    pub receiver: ReceiverSummary,
    /// What the viewer of its player has seen; none where it has no player.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<PlayerSummary>,
    /// Its answers to requests; none where its application does not answer any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responses: Option<ResponseSummary>,
}

/// The receiver's counters.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ReceiverSummary {
    /// ACKs sent.
    pub acks: u64,
    /// Segments that came with a congestion mark.
    pub ce_segments: u64,
    /// Segments queued out of order.
    pub ooo_segments: u64,
    /// Segments with nothing new.
    pub duplicates: u64,
    /// DSACKs sent.
    pub dsacks: u64,
    /// ACKs saved by SACK compression.
    pub compressed_acks: u64,
    /// Segments dropped by PAWS.
    pub dropped_paws: u64,
    /// Segments dropped or pruned for want of memory.
    pub dropped_memory: u64,
    /// ACKs with a zero window.
    pub zero_window_acks: u64,
}

/// What a probe measured. Delays are of packets that came back, or arrived, by the end of the trial, ms.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProbeSummary {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived; of an echo, that came back.
    pub received: u64,
    /// Packets that had the time to arrive: sent more than the longest delay of the trial before its end.
    pub due: u64,
    /// Of these, the ones that did not arrive.
    pub lost: u64,
    /// One-way delay, or round trip of an echo, ms; NaN where nothing arrived.
    pub delay_ms: RttSummary,
    /// Interarrival jitter at the end (RFC 3550 §6.4.1), ms.
    pub jitter_ms: f64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
}

/// Times of requests, from each one to the last byte of its answer, ms.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ResponseSummary {
    /// Answers that were complete.
    pub count: u64,
    /// Time of a request, ms.
    pub time_ms: RttSummary,
}

/// Connections of one [`crate::TransfersPlan`] whose size lies in one class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizeClass {
    /// Largest size of the class, bytes.
    pub most: u64,
    /// Connections that began.
    pub started: u64,
    /// Of these, those that were complete by the end.
    pub completed: u64,
    /// Time from connect() to the last acknowledgement, ms.
    pub completion_ms: RttSummary,
}

/// What became of connections that arrived at random.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TransfersSummary {
    /// By size, the smallest first: up to 10 kB, 100 kB, 1 MB, and more.
    pub classes: Vec<SizeClass>,
    /// Bytes that the receivers' applications got.
    pub bytes_received: u64,
    /// Segments retransmitted, SYNs included.
    pub retransmits: u64,
}

/// A link of a network with places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// That number of the chain.
    Chain(usize),
    /// The left host's of that place.
    Near(usize),
    /// The right host's.
    Far(usize),
}

impl fmt::Display for Link {
    /// `chain/0`, `near/2`, `far/2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Chain(i) => write!(f, "chain/{i}"),
            Link::Near(place) => write!(f, "near/{place}"),
            Link::Far(place) => write!(f, "far/{place}"),
        }
    }
}

/// The account of a queue, and where it is.
#[derive(Clone, Debug)]
pub struct QueueAccount {
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Its link; none in a plan without places.
    pub link: Option<Link>,
    /// Its pipe, as samples of queues number it.
    pub pipe: u32,
    /// The account itself.
    pub stats: StageStats,
}

/// One trial's results; [`TrialOutput::check_accounts`] says whether they fit each other.
#[derive(Clone, Debug, Default)]
pub struct TrialOutput {
    /// The seed it ran with.
    pub seed: u64,
    /// Per flow.
    pub flows: Vec<FlowSummary>,
    /// Per queue, pipe by pipe: forward (host, network), then reverse; of a chain link by link.
    pub queues: Vec<QueueAccount>,
    /// Per probe.
    pub probes: Vec<ProbeSummary>,
    /// Per entry of the plan's transfers.
    pub transfers: Vec<TransfersSummary>,
    /// Flow samples.
    pub samples: FlowSamples,
    /// Queue samples.
    pub queue_samples: QueueSamples,
    /// The delay of each packet of the probes, where flows are sampled.
    pub probe_samples: ProbeSamples,
    /// Packets at the sender.
    pub packets: PacketEvents,
    /// What happened to the senders, and when.
    pub sender_events: SenderEvents,
    /// The receivers' window scale shifts.
    pub wscale: Vec<u8>,
    /// When it was over, s: at the end of the last connection, after that what was on its way is not looked at.
    pub ended_s: f64,
    /// Packets that had come out of each pipe when the trial was over, and nobody had taken.
    pub untaken: Vec<u64>,
    /// Events processed.
    pub events: u64,
    /// Packets delivered, both ways.
    pub arrivals: u64,
    /// Hash over every delivery in order: equal runs have equal hashes.
    pub hash: u64,
    /// Why the trial was ended long before its time: then its results are none. One line with the fix.
    pub stalled: Option<String>,
    /// What weakens the result.
    pub caveats: Vec<String>,
}
