//! The rules in which kernels differ, by name.

/// What applies where kernels differ in more than a sysctl (docs/models/tcp/kernel-profiles.md has a row for each).
#[derive(Debug)]
pub struct Rules {
    /// Timeouts of a SYN without back-off (`net.ipv4.tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Ticks of a peer's timestamp clock in a second, as they are assumed for repeated ACKs.
    pub peer_ticks: u64,
    /// Whether the first unsent buffer is filled up from the next one before it is sent.
    pub fills_unsent_head: bool,
    /// Whether the first window is all that the buffer is good for, although the SYN-ACK cannot say more than 65,535.
    pub opens_beyond_syn: bool,
    /// Whether the window grows to what is offered where a new ratio of payload to memory opens its ceiling.
    pub opens_to_offer: bool,
    /// What a timestamp counts for, ms, that is echoed within its millisecond; 0 counts nothing.
    pub least_echo_ms: u32,
    /// Whether a lack of memory for a segment in order closes the window.
    pub closes_without_memory: bool,
    /// Whether the sender's segment size is measured on data out of order too.
    pub measures_out_of_order: bool,
    /// Whether autotuning takes what still waits to be read from what was read in a round trip.
    pub autotunes_without_unread: bool,
    /// Whether a delayed ACK waits at most a tick less than the least retransmission timeout, and its estimate is bounded.
    pub delays_below_least_rto: bool,
    /// Whether an ACK that SACK compression's timer sends has the timestamp of its departure, instead of that of the last segment's arrival.
    pub stamps_compressed_acks_anew: bool,
    /// SACK compression holds an ACK back for at most this share of the round-trip time, % (`net.ipv4.tcp_comp_sack_rtt_percent`) …
    pub compresses_for_percent: u64,
    /// … and sends it so much later, ns: what is seen of `net.ipv4.tcp_comp_sack_slack_ns`, which is all of 100 µs, all of 10 µs in 6.19.0 and nothing of them in 7.1.5.
    pub compression_slack_ns: u64,
    /// Bytes of options that each of the ten segments has besides its data which are supposed to have been read in the round trip before the first.
    pub supposed_options: u32,
    /// Segments that autotuning makes room for beyond twice what was read in a round trip.
    pub spare_segments: u64,
    /// Whether a timestamp echo that is older than the round-trip time counts for nothing while data wait to be read.
    pub skips_larger_unread: bool,
    /// Whether autotuning makes room for what waits beyond a gap, with each segment that comes there.
    pub autotunes_for_gaps: bool,
    /// Whether what is due beyond 64 packets is taken in while the process runs that they have woken; before 6.5 that process has to sleep first (here: with the others).
    pub takes_in_beside_processes: bool,
}
