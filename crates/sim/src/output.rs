//! What comes out of a trial: per-flow summaries, queue accounts, and columns of samples and packets.

use serde::Serialize;
use tcpscape_base::{Segment, Time};
use tcpscape_path::StageStats;
use tcpscape_tcp::Info;

/// A column of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// 64-bit integers.
    U64(Vec<u64>),
    /// 32-bit integers.
    U32(Vec<u32>),
    /// Bytes.
    U8(Vec<u8>),
}

/// Named columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns in order.
    pub columns: Vec<(&'static str, Column)>,
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $variant:ident($ty:ty)),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name { $($(#[$fdoc])* pub $field: Vec<$ty>),* }
        impl $name {
            /// The columns with their names.
            pub fn into_table(self) -> Table {
                Table { columns: vec![$((stringify!($field), Column::$variant(self.$field))),*] }
            }
        }
    };
}

table! {
    /// Samples of flows: the fields of `struct tcp_info`, one row per flow and sampling time.
    FlowSamples {
        /// Time, ns.
        t_ns: U64(u64),
        /// Flow number.
        flow: U32(u32),
        /// Congestion window, packets.
        cwnd: U32(u32),
        /// Slow-start threshold, packets.
        ssthresh: U32(u32),
        /// Smoothed RTT, µs.
        srtt_us: U32(u32),
        /// RTT deviation, µs.
        rttvar_us: U32(u32),
        /// Minimum RTT, µs.
        min_rtt_us: U32(u32),
        /// Retransmission timeout, µs.
        rto_us: U64(u64),
        /// Packets in flight.
        in_flight: U32(u32),
        /// Packets not acknowledged.
        unacked: U32(u32),
        /// Pacing rate, B/s.
        pacing_rate: U64(u64),
        /// Delivery rate, B/s.
        delivery_rate: U64(u64),
        /// Congestion-avoidance state, 0 Open to 4 Loss.
        ca_state: U8(u8),
        /// Retransmissions so far.
        retransmits: U64(u64),
        /// Retransmissions reported needless so far.
        spurious_retransmits: U64(u64),
        /// Reordering metric, packets.
        reordering: U32(u32),
        /// Steps of RACK's reordering window.
        reo_wnd_steps: U32(u32),
        /// Receive window, bytes.
        rwnd: U32(u32),
        /// Bytes acknowledged so far.
        bytes_acked: U64(u64),
        /// Packets delivered so far.
        delivered: U32(u32),
        /// Packets marked lost so far.
        lost: U32(u32),
        /// Packets delivered whose ACK echoed a congestion mark so far.
        delivered_ce: U32(u32),
    }
}

table! {
    /// Samples of queues.
    QueueSamples {
        /// Time, ns.
        t_ns: U64(u64),
        /// 0 sender's host, 1 network forward, 2 reverse.
        pipe: U8(u8),
        /// Stage within the pipe.
        stage: U32(u32),
        /// 0 for the stage's own queue, 1 for its child, and so on.
        depth: U8(u8),
        /// Packets held, those of its children included.
        packets: U64(u64),
        /// Bytes held.
        bytes: U64(u64),
        /// Delay of the packet that left last, ns: in the queue and its children.
        sojourn_ns: U64(u64),
        /// Packets dropped so far.
        drops: U64(u64),
        /// Packets marked CE so far.
        marks: U64(u64),
    }
}

table! {
    /// Packets as seen at the sender.
    PacketEvents {
        /// Time, ns.
        t_ns: U64(u64),
        /// Flow number.
        flow: U32(u32),
        /// 0 sent, 1 received.
        received: U8(u8),
        /// Sequence number, 64-bit offset.
        seq: U64(u64),
        /// Acknowledgement number, 64-bit offset.
        ack: U64(u64),
        /// Payload bytes.
        len: U32(u32),
        /// Window, bytes.
        wnd: U32(u32),
        /// TCP flags.
        flags: U8(u8),
        /// Timestamp value.
        tsval: U32(u32),
        /// Timestamp echo.
        tsecr: U32(u32),
        /// Number of SACK blocks.
        nsack: U8(u8),
        /// SACK blocks' edges, 0 where there are none.
        sack0_start: U64(u64),
        /// End of the first block.
        sack0_end: U64(u64),
        /// Second block.
        sack1_start: U64(u64),
        /// End of the second block.
        sack1_end: U64(u64),
        /// Third block.
        sack2_start: U64(u64),
        /// End of the third block.
        sack2_end: U64(u64),
    }
}

impl FlowSamples {
    /// Adds a row.
    pub fn push(&mut self, t: Time, flow: u32, x: &Info) {
        self.t_ns.push(t.0);
        self.flow.push(flow);
        self.cwnd.push(x.cwnd);
        self.ssthresh.push(x.ssthresh);
        self.srtt_us.push(x.srtt_us);
        self.rttvar_us.push(x.rttvar_us);
        self.min_rtt_us.push(x.min_rtt_us);
        self.rto_us.push(x.rto_us);
        self.in_flight.push(x.in_flight);
        self.unacked.push(x.unacked);
        self.pacing_rate.push(x.pacing_rate);
        self.delivery_rate.push(x.delivery_rate);
        self.ca_state.push(x.ca_state as u8);
        self.retransmits.push(x.retransmits);
        self.spurious_retransmits.push(x.spurious);
        self.reordering.push(x.reordering);
        self.reo_wnd_steps.push(x.reo_wnd_steps);
        self.rwnd.push(x.rwnd);
        self.bytes_acked.push(x.bytes_acked);
        self.delivered.push(x.delivered);
        self.lost.push(x.lost);
        self.delivered_ce.push(x.delivered_ce);
    }
}

impl PacketEvents {
    /// Adds a packet.
    pub fn push(&mut self, at: Time, flow: u32, s: &Segment, received: bool) {
        let mut blocks = [(0, 0); 3];
        for (k, b) in s.sacks().enumerate() {
            blocks[k] = b;
        }
        self.t_ns.push(at.0);
        self.flow.push(flow);
        self.received.push(u8::from(received));
        self.seq.push(s.seq);
        self.ack.push(s.ack);
        self.len.push(s.len);
        self.wnd.push(s.wnd);
        self.flags.push(s.flags.0);
        self.tsval.push(s.tsval);
        self.tsecr.push(s.tsecr);
        self.nsack.push(s.nsack);
        self.sack0_start.push(blocks[0].0);
        self.sack0_end.push(blocks[0].1);
        self.sack1_start.push(blocks[1].0);
        self.sack1_end.push(blocks[1].1);
        self.sack2_start.push(blocks[2].0);
        self.sack2_end.push(blocks[2].1);
    }
}

impl QueueSamples {
    /// Adds a row for each queue of a pipe.
    pub fn push(&mut self, t: Time, pipe: u8, queues: &[StageStats]) {
        for q in queues {
            self.t_ns.push(t.0);
            self.pipe.push(pipe);
            self.stage.push(q.stage as u32);
            self.depth.push(q.depth as u8);
            self.packets.push(q.backlog_packets);
            self.bytes.push(q.backlog_bytes);
            self.sojourn_ns.push(q.delay.last);
            self.drops.push(q.drops.total());
            self.marks.push(q.marked);
        }
    }
}

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

/// One trial's results.
#[derive(Clone, Debug, Default)]
pub struct TrialOutput {
    /// The seed it ran with.
    pub seed: u64,
    /// Per flow.
    pub flows: Vec<FlowSummary>,
    /// Per queue: forward (host, network), then reverse.
    pub queues: Vec<(&'static str, StageStats)>,
    /// Flow samples.
    pub samples: FlowSamples,
    /// Queue samples.
    pub queue_samples: QueueSamples,
    /// Packets at the sender.
    pub packets: PacketEvents,
    /// The receivers' window scale shifts.
    pub wscale: Vec<u8>,
    /// Events processed.
    pub events: u64,
    /// Packets delivered, both ways.
    pub arrivals: u64,
    /// Hash over every delivery in order: equal runs have equal hashes.
    pub hash: u64,
    /// What weakens the result.
    pub caveats: Vec<String>,
}
