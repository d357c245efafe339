//! Linux 6.12.

use super::{Kernel, Rules, Version, WindowRule};

pub(super) static RULES: Rules = Rules {
    syn_linear_timeouts: 4,
    peer_ticks: 1_200,
    fills_unsent_head: true,
    opens_beyond_syn: true,
    opens_to_offer: false,
    least_echo_ms: 0,
    closes_without_memory: true,
    measures_out_of_order: true,
    autotunes_without_unread: true,
    delays_below_least_rto: true,
    stamps_compressed_acks_anew: false,
    compresses_for_percent: 5,
    compression_slack_ns: 100_000,
    supposed_options: 0,
    spare_segments: 16,
    skips_larger_unread: false,
    autotunes_for_gaps: false,
    takes_in_beside_processes: true,
};

pub(super) const KERNEL: Kernel =
    Kernel { rules: Version::V6_12, hz: 1000, window: WindowRule::ScalingRatio, skb_overhead: 960, ..Kernel::V6_1 };
