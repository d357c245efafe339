//! Columns of numbers that only the model fills, on request: packets at the sender, events of the sender.

use tcpscape_base::{table, CaState, Segment, Time};
use tcpscape_plan::samples::FlowSample;
use tcpscape_tcp::{EventCounts, Info};

table! {
    /// Packets as seen at the sender.
    columns PacketEvents of PacketEvent {
        /// Time, ns.
        t_ns: u64,
        /// Flow number.
        flow: u32,
        /// 0 sent, 1 received.
        received: u8,
        /// Sequence number, 64-bit offset.
        seq: u64,
        /// Acknowledgement number, 64-bit offset.
        ack: u64,
        /// Payload bytes.
        len: u32,
        /// Window, bytes.
        wnd: u32,
        /// TCP flags.
        flags: u8,
        /// Timestamp value.
        tsval: u32,
        /// Timestamp echo.
        tsecr: u32,
        /// Number of SACK blocks.
        nsack: u8,
        /// SACK blocks' edges, 0 where there are none.
        sack0_start: u64,
        /// End of the first block.
        sack0_end: u64,
        /// Second block.
        sack1_start: u64,
        /// End of the second block.
        sack1_end: u64,
        /// Third block.
        sack2_start: u64,
        /// End of the third block.
        sack2_end: u64,
    }
}

table! {
    /// Events of senders, one row for each moment at which something happened to one: by how much each counter grew, and what it was then.
    columns SenderEvents of SenderEvent {
        /// Time, ns.
        t_ns: u64,
        /// Flow number.
        flow: u32,
        /// Congestion-avoidance state afterwards, 0 Open to 4 Loss; a row for each change of it.
        ca_state: u8,
        /// Congestion window afterwards, packets.
        cwnd: u32,
        /// Segments retransmitted.
        retransmits: u32,
        /// Retransmissions reported needless.
        spurious_retransmits: u32,
        /// Retransmission timeouts.
        rtos: u32,
        /// Timeouts found spurious by F-RTO.
        spurious_rtos: u32,
        /// Fast recoveries entered.
        fast_recoveries: u32,
        /// Window reductions undone.
        undos: u32,
        /// Tail loss probes sent.
        tlps: u32,
        /// Window reductions that echoes of congestion marks caused.
        ecn_reductions: u32,
        /// Reordering events seen.
        reord_seen: u32,
        /// Packets marked lost.
        lost: u32,
    }
}

impl PacketEvent {
    /// A packet.
    pub fn of(at: Time, flow: u32, s: &Segment, received: bool) -> PacketEvent {
        let mut blocks = [(0, 0); 3];
        for (k, b) in s.sacks().enumerate() {
            blocks[k] = b;
        }
        let [(sack0_start, sack0_end), (sack1_start, sack1_end), (sack2_start, sack2_end)] = blocks;
        PacketEvent {
            t_ns: at.0,
            flow,
            received: u8::from(received),
            seq: s.seq,
            ack: s.ack,
            len: s.len,
            wnd: s.wnd,
            flags: s.flags.0,
            tsval: s.tsval,
            tsecr: s.tsecr,
            nsack: s.nsack,
            sack0_start,
            sack0_end,
            sack1_start,
            sack1_end,
            sack2_start,
            sack2_end,
        }
    }
}

impl SenderEvent {
    /// What happened between two looks at a sender, which is in this state and has this window now.
    pub fn between(t: Time, flow: u32, state: CaState, cwnd: u32, before: EventCounts, after: EventCounts) -> SenderEvent {
        let grew = |count: fn(&EventCounts) -> u64| count(&after).saturating_sub(count(&before)) as u32;
        SenderEvent {
            t_ns: t.0,
            flow,
            ca_state: state as u8,
            cwnd,
            retransmits: grew(|c| c.retransmits),
            spurious_retransmits: grew(|c| c.spurious_retransmits),
            rtos: grew(|c| c.rtos),
            spurious_rtos: grew(|c| c.spurious_rtos),
            fast_recoveries: grew(|c| c.fast_recoveries),
            undos: grew(|c| c.undos),
            tlps: grew(|c| c.tlps),
            ecn_reductions: grew(|c| c.ecn_reductions),
            reord_seen: grew(|c| c.reord_seen),
            lost: grew(|c| c.lost),
        }
    }
}

/// A row of the samples of flows: what `struct tcp_info` says of a sender.
pub(crate) fn flow_sample(t: Time, flow: u32, x: &Info) -> FlowSample {
    FlowSample {
        t_ns: t.0,
        flow,
        cwnd: x.cwnd,
        ssthresh: x.ssthresh,
        srtt_us: x.srtt_us,
        rttvar_us: x.rttvar_us,
        min_rtt_us: x.min_rtt_us,
        rto_us: x.rto_us,
        in_flight: x.in_flight,
        unacked: x.unacked,
        pacing_rate: x.pacing_rate,
        delivery_rate: x.delivery_rate,
        ca_state: x.ca_state as u8,
        retransmits: x.retransmits,
        spurious_retransmits: x.spurious,
        reordering: x.reordering,
        reo_wnd_steps: Some(x.reo_wnd_steps),
        rwnd: x.rwnd,
        bytes_acked: x.bytes_acked,
        delivered: x.delivered,
        lost: Some(x.lost),
        delivered_ce: x.delivered_ce,
        ..FlowSample::default()
    }
}
