//! What is sampled while a trial runs, by columns. What an engine cannot see is an option: its column is left out.

use tcpscape_base::{table, Column};
use tcpscape_path::StageStats;

table! {
    /// Samples of flows: the fields of `struct tcp_info`, one row per flow and sampling time.
    columns FlowSamples of FlowSample {
        /// Time, ns.
        t_ns: u64,
        /// Flow number.
        flow: u32,
        /// Congestion window, packets.
        cwnd: u32,
        /// Slow-start threshold, packets.
        ssthresh: u32,
        /// Smoothed RTT, µs.
        srtt_us: u32,
        /// RTT deviation, µs.
        rttvar_us: u32,
        /// Minimum RTT, µs.
        min_rtt_us: u32,
        /// Retransmission timeout, µs.
        rto_us: u64,
        /// Packets in flight.
        in_flight: u32,
        /// Packets not acknowledged.
        unacked: u32,
        /// Pacing rate, B/s.
        pacing_rate: u64,
        /// Delivery rate, B/s.
        delivery_rate: u64,
        /// Congestion-avoidance state, 0 Open to 4 Loss.
        ca_state: u8,
        /// Retransmissions so far.
        retransmits: u64,
        /// Retransmissions reported needless so far.
        spurious_retransmits: u64,
        /// Reordering metric, packets.
        reordering: u32,
        /// Steps of RACK's reordering window; a kernel does not tell.
        reo_wnd_steps: Option<u32>,
        /// Receive window, bytes.
        rwnd: u32,
        /// Bytes acknowledged so far.
        bytes_acked: u64,
        /// Packets delivered so far.
        delivered: u32,
        /// Packets marked lost so far; a kernel tells only of those that are lost now.
        lost: Option<u32>,
        /// Packets delivered whose ACK echoed a congestion mark so far.
        delivered_ce: u32,
        /// Time with data to send, µs; a kernel's, as all that follow.
        busy_us: Option<u64>,
        /// Time limited by the receive window, µs.
        rwnd_limited_us: Option<u64>,
        /// Time limited by the send buffer, µs.
        sndbuf_limited_us: Option<u64>,
        /// Bytes written and not sent yet.
        notsent: Option<u32>,
        /// Whether the delivery rate is limited by the application.
        app_limited: Option<u8>,
    }
}

table! {
    /// Samples of queues.
    columns QueueSamples of QueueSample {
        /// Time, ns.
        t_ns: u64,
        /// 0 sender's host, 1 network forward, 2 reverse, 3 the right host where it sends data too; in a plan with places from 3 on, as each account of
        /// a queue says.
        pipe: u32,
        /// Stage within the pipe.
        stage: u32,
        /// 0 for the stage's own queue, 1 for its child, and so on.
        depth: u8,
        /// Packets held, those of its children included.
        packets: u64,
        /// Bytes held.
        bytes: u64,
        /// Delay of the packet that left last, ns: in the queue and its children. A kernel does not tell.
        sojourn_ns: Option<u64>,
        /// Packets dropped so far.
        drops: u64,
        /// Packets marked CE so far.
        marks: u64,
    }
}

table! {
    /// The delay of each packet of a probe: on the model probe by probe, on a kernel in the order in which they were sent.
    columns ProbeSamples of ProbeSample {
        /// When it was sent, ns.
        t_ns: u64,
        /// Probe number.
        probe: u32,
        /// Its one-way delay, or the round trip of an echo, ns; 2⁶⁴ − 1 for a packet that was lost.
        delay_ns: u64,
    }
}

impl FlowSamples {
    /// No rows yet, with the columns that the model has.
    pub fn of_model() -> FlowSamples {
        FlowSamples { reo_wnd_steps: Some(Vec::new()), lost: Some(Vec::new()), ..FlowSamples::default() }
    }

    /// No rows yet, with the columns that a kernel has.
    pub fn of_kernel() -> FlowSamples {
        FlowSamples {
            busy_us: Some(Vec::new()),
            rwnd_limited_us: Some(Vec::new()),
            sndbuf_limited_us: Some(Vec::new()),
            notsent: Some(Vec::new()),
            app_limited: Some(Vec::new()),
            ..FlowSamples::default()
        }
    }
}

impl QueueSamples {
    /// Adds a row for each queue of a pipe.
    pub fn push_pipe(&mut self, t_ns: u64, pipe: u32, queues: &[StageStats]) {
        for q in queues {
            self.push(QueueSample {
                t_ns,
                pipe,
                stage: q.stage as u32,
                depth: q.depth as u8,
                packets: q.backlog_packets,
                bytes: q.backlog_bytes,
                sojourn_ns: Some(q.delay.last),
                drops: q.drops.total(),
                marks: q.marked,
            });
        }
    }

    /// The columns; the numbers of pipes are bytes where all fit.
    pub fn narrowed(&self) -> Vec<Column> {
        self.columns().into_iter().map(|c| if c.name == "pipe" { c.narrowed() } else { c }).collect()
    }
}
