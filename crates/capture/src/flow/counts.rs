//! Counters of one direction: exact, whatever rows are kept.

use serde::Serialize;

/// What was seen of the data and of its acknowledgements. Segments are packets as the network carries them: a super-packet counts as several.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Counts {
    /// Packets with data.
    pub packets: u64,
    /// Segments in them.
    pub segments: u64,
    /// Bytes of payload in them, repeated ones as often as they came.
    pub payload_bytes: u64,
    /// Packets that are super-packets.
    pub super_packets: u64,
    /// Retransmitted segments seen.
    pub retransmissions: u64,
    /// Of them, those that ACKs caused.
    pub fast_retransmissions: u64,
    /// Of them, those by the timeout itself.
    pub timeouts: u64,
    /// Of them, those in the slow start after a timeout.
    pub after_timeout: u64,
    /// Of them, tail loss probes.
    pub tail_probes: u64,
    /// Segments that came twice, or would have, because of a retransmission.
    pub spurious: u64,
    /// Of them, those that a DSACK reports.
    pub spurious_by_dsack: u64,
    /// Of them, those that a timestamp reports (Eifel detection, RFC 3522).
    pub spurious_by_timestamp: u64,
    /// Of them, those covered sooner than the retransmission could have been.
    pub spurious_by_time: u64,
    /// Lost segments, retransmissions included.
    pub losses: u64,
    /// Of them, those between the sender and here.
    pub losses_before: u64,
    /// Of them, those of a path that reorders which the receiver may have discarded on a late arrival (see `discarded`): it had echoed a newer
    /// timestamp by the time at which their retransmission was covered.
    pub losses_uncertain: u64,
    /// Segments delivered after later ones.
    pub reordered: u64,
    /// Of them, those between the sender and here.
    pub reordered_before: u64,
    /// Largest reordering: segments that had come before.
    pub reordering_segments_max: u64,
    /// Largest reordering, ns.
    pub reordering_ns_max: u64,
    /// Segments that came late, and nothing shows why.
    pub late_unexplained: u64,
    /// Copies that the network made.
    pub duplicates: u64,
    /// Packets that the receiver discards, since it had echoed a newer timestamp before they came (PAWS, RFC 7323 §5.3).
    pub discarded: u64,
    /// Segments outside of the window.
    pub out_of_window: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// How often the window closed.
    pub zero_windows: u64,
    /// How long it was closed, ns.
    pub zero_window_ns: u64,
    /// Data packets with CE.
    pub ce: u64,
    /// Bytes that were acknowledged and that the capture does not hold.
    pub not_captured_bytes: u64,
    /// Bytes that the capture holds after their acknowledgement: its host put the packets of both directions out of order.
    pub captured_late_bytes: u64,
    /// Times with nothing in flight, of 200 ms and more.
    pub idles: u64,
    /// Packets of the other end with an ACK number.
    pub acks: u64,
    /// Duplicate ACKs.
    pub dup_acks: u64,
    /// ACKs that came after later ones.
    pub acks_reordered: u64,
    /// DSACK blocks.
    pub dsacks: u64,
    /// Bytes that they report.
    pub dsack_bytes: u64,
    /// ACKs with SACK blocks.
    pub sacks: u64,
    /// ACKs with ECE.
    pub ece: u64,
    /// Entries given up because too many were outstanding: what became of them is unknown.
    pub given_up: u64,
    /// Events that were not kept as rows.
    pub events_left_out: u64,
}
