//! Columns of numbers that a trial fills on request: samples of flows and queues, packets at the sender, events of the sender.

use tcpscape_base::{CaState, Segment, Time};
use tcpscape_path::StageStats;
use tcpscape_tcp::{EventCounts, Info};

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

impl Column {
    /// Small numbers: bytes where all of them fit.
    fn narrow(numbers: Vec<u32>) -> Column {
        if numbers.iter().all(|n| *n <= 255) {
            Column::U8(numbers.into_iter().map(|n| n as u8).collect())
        } else {
            Column::U32(numbers)
        }
    }
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
        /// 0 sender's host, 1 network forward, 2 reverse, 3 the right host where it sends data too; in a plan with places from 3 on, as each account of
        /// a queue says.
        pipe: narrow(u32),
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
    /// The delay of each packet of a probe, probe by probe.
    ProbeSamples {
        /// When it was sent, ns.
        t_ns: U64(u64),
        /// Probe number.
        probe: U32(u32),
        /// Its one-way delay, or the round trip of an echo, ns; 2⁶⁴ − 1 for a packet that was lost.
        delay_ns: U64(u64),
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

table! {
    /// Events of senders, one row for each moment at which something happened to one: by how much each counter grew, and what it was then.
    SenderEvents {
        /// Time, ns.
        t_ns: U64(u64),
        /// Flow number.
        flow: U32(u32),
        /// Congestion-avoidance state afterwards, 0 Open to 4 Loss; a row for each change of it.
        ca_state: U8(u8),
        /// Congestion window afterwards, packets.
        cwnd: U32(u32),
        /// Segments retransmitted.
        retransmits: U32(u32),
        /// Retransmissions reported needless.
        spurious_retransmits: U32(u32),
        /// Retransmission timeouts.
        rtos: U32(u32),
        /// Timeouts found spurious by F-RTO.
        spurious_rtos: U32(u32),
        /// Fast recoveries entered.
        fast_recoveries: U32(u32),
        /// Window reductions undone.
        undos: U32(u32),
        /// Tail loss probes sent.
        tlps: U32(u32),
        /// Window reductions that echoes of congestion marks caused.
        ecn_reductions: U32(u32),
        /// Reordering events seen.
        reord_seen: U32(u32),
        /// Packets marked lost.
        lost: U32(u32),
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

impl SenderEvents {
    /// Adds what happened between two looks at a sender, which is in this state and has this window now.
    pub fn push(&mut self, t: Time, flow: u32, (state, cwnd): (CaState, u32), (before, after): (EventCounts, EventCounts)) {
        let grew = |before: u64, after: u64| after.saturating_sub(before) as u32;
        self.t_ns.push(t.0);
        self.flow.push(flow);
        self.ca_state.push(state as u8);
        self.cwnd.push(cwnd);
        self.retransmits.push(grew(before.retransmits, after.retransmits));
        self.spurious_retransmits.push(grew(before.spurious_retransmits, after.spurious_retransmits));
        self.rtos.push(grew(before.rtos, after.rtos));
        self.spurious_rtos.push(grew(before.spurious_rtos, after.spurious_rtos));
        self.fast_recoveries.push(grew(before.fast_recoveries, after.fast_recoveries));
        self.undos.push(grew(before.undos, after.undos));
        self.tlps.push(grew(before.tlps, after.tlps));
        self.ecn_reductions.push(grew(before.ecn_reductions, after.ecn_reductions));
        self.reord_seen.push(grew(before.reord_seen, after.reord_seen));
        self.lost.push(grew(before.lost, after.lost));
    }
}

impl QueueSamples {
    /// Adds a row for each queue of a pipe.
    pub fn push(&mut self, t: Time, pipe: u32, queues: &[StageStats]) {
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
