//! What comes out of a trial on any engine: a summary of each flow, probe and kind of transfer, and the account of each queue. What an engine cannot
//! see is an option.

use crate::player::PlayerSummary;
use crate::topology::{LinkId, StageName};
use serde::Serialize;
use tcpscape_base::Histogram;
use tcpscape_path::{Direction, Host, StageStats};

/// RTT samples in ms: the model's are single measurements, a kernel's the smoothed RTT at an interval. NaN where there was none.
#[derive(Clone, Copy, Debug, Serialize)]
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

impl Default for RttSummary {
    fn default() -> RttSummary {
        RttSummary { min: f64::NAN, p50: f64::NAN, p95: f64::NAN, p99: f64::NAN, max: f64::NAN, mean: f64::NAN }
    }
}

impl RttSummary {
    /// Of times that were counted in µs.
    pub fn of(times: &Histogram) -> RttSummary {
        if times.count() == 0 {
            return RttSummary::default();
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
    /// Mean over time; a kernel's over its samples.
    pub mean: Option<f64>,
    /// Largest; a kernel's of its samples.
    pub max: Option<u32>,
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
    /// The pacing rate; a kernel counts it to the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<f64>,
    /// The send buffer.
    pub sndbuf: f64,
    /// The sender's own queue (TCP small queues); a kernel counts it to the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsq: Option<f64>,
}

/// One flow's results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FlowSummary {
    /// Congestion control.
    pub cca: String,
    /// When connect() returned, s; where it never did, NaN, or 0 on a kernel.
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
    /// Retransmission timeouts; of a kernel that does not tell, of single flows only.
    pub rtos: Option<u64>,
    /// Spurious timeouts found by F-RTO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spurious_rtos: Option<u64>,
    /// Fast recoveries; a kernel's of single flows only.
    pub fast_recoveries: Option<u64>,
    /// Window reductions undone; a kernel's of single flows only.
    pub undos: Option<u64>,
    /// Tail loss probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlps: Option<u64>,
    /// Reordering events.
    pub reord_seen: u64,
    /// Reordering metric at the end, packets.
    pub reordering: u32,
    /// RTT samples, ms.
    pub rtt_ms: RttSummary,
    /// Smoothed RTT at the end, ms.
    pub srtt_ms: Option<f64>,
    /// Windowed minimum RTT at the end, ms.
    pub min_rtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd: CwndSummary,
    /// What limited it; none of a kernel's flow that was never established.
    pub limited_by: Option<LimitedBy>,
    /// Whether both ends agreed to use ECN.
    pub ecn: bool,
    /// Packets delivered whose ACK echoed a congestion mark.
    pub delivered_ce: u64,
    /// Window reductions that such echoes caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn_reductions: Option<u64>,
    /// Segments with data sent.
    pub data_segs_out: u64,
    /// ACKs received.
    pub segs_in: u64,
    /// Old ACKs dropped by PAWS at the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paws_rejected: Option<u64>,
    /// Largest receive window, bytes.
    pub max_rwnd: u32,
    /// What the receiver counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverSummary>,
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
    /// Payload that arrived of a media flow, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_bytes: Option<u64>,
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

/// The account of a queue of any engine.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum QueueReport {
    /// Of the model's own queues, which see each packet.
    Own(QueueAccount),
    /// Of a kernel's.
    Kernel(KernelQueue),
}

impl QueueReport {
    /// The account of a kernel's queue.
    pub fn kernel(&self) -> Option<&KernelQueue> {
        match self {
            QueueReport::Kernel(queue) => Some(queue),
            QueueReport::Own(_) => None,
        }
    }
}

/// The account of one of the model's own queues, and where it is.
#[derive(Clone, Debug, Serialize)]
pub struct QueueAccount {
    /// The account itself.
    #[serde(flatten)]
    pub stats: StageStats,
    /// Which direction of its link.
    pub direction: Direction,
    /// Its link; none in a plan without places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkId>,
    /// Its pipe, as samples of queues number it; none in a plan without places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipe: Option<u32>,
}

/// What a kernel counts of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct KernelQueue {
    /// The stage.
    #[serde(flatten)]
    pub stage: StageName,
    /// Whose egress.
    pub at: Host,
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes that left.
    pub sent_bytes: u64,
    /// Packets that the outermost queue dropped or saw dropped by its child as they came.
    pub dropped: u64,
    /// Packets that the outermost queue marked CE; netem does not tell.
    pub marked: u64,
    /// Packets that had to wait for a rate.
    pub overlimits: u64,
    /// Packets given back by the device.
    pub requeues: u64,
    /// Packets held.
    pub backlog_packets: u64,
    /// Bytes held.
    pub backlog_bytes: u64,
    /// The queues inside, outermost first. What a netem inside loses at random shows only here; what it drops because it is full shows in both.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<KernelChild>,
}

/// A kernel's queue inside another.
#[derive(Clone, Debug, Serialize)]
pub struct KernelChild {
    /// The kernel's name of it.
    pub kind: &'static str,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets held.
    pub backlog_packets: u64,
    /// Bytes held.
    pub backlog_bytes: u64,
}
