//! Linux 6.1.

use super::{Kernel, Rules, Version, WindowRule};

pub(super) static RULES: Rules = Rules {
    syn_linear_timeouts: 0,
    peer_ticks: 1_024,
    fills_unsent_head: false,
    opens_beyond_syn: false,
    opens_to_offer: false,
    least_echo_ms: 1,
    closes_without_memory: false,
    measures_out_of_order: false,
    autotunes_without_unread: false,
    delays_below_least_rto: false,
    stamps_compressed_acks_anew: false,
    compresses_for_percent: 5,
    compression_slack_ns: 100_000,
    supposed_options: 0,
    spare_segments: 16,
    skips_larger_unread: false,
    autotunes_for_gaps: false,
    takes_in_beside_processes: false,
};

pub(super) const KERNEL: Kernel = Kernel {
    rules: Version::V6_1,
    hz: 100,
    window: WindowRule::Half,
    skb_overhead: 1_280,
    max_tcp_header: 320,
    rmem_max: 212_992,
    wmem_max: 212_992,
    tcp_rmem_default: 131_072,
    tcp_rmem_max: 6_291_456,
    tcp_wmem_default: 16_384,
    tcp_wmem_max: 4_194_304,
    limit_output_bytes: 1 << 20,
    comp_sack_nr: 44,
    comp_sack_delay_ns: 1_000_000,
    slow_start_after_idle: true,
    initcwnd: 10,
    host_time_ns: 0,
};
