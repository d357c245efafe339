//! Linux 6.18.

use super::{v6_12, Kernel, Rules, Version};

pub(super) static RULES: Rules = Rules {
    opens_to_offer: true,
    stamps_compressed_acks_anew: true,
    spare_segments: 0,
    skips_larger_unread: true,
    autotunes_for_gaps: true,
    ..v6_12::RULES
};

pub(super) const KERNEL: Kernel = Kernel {
    rules: Version::V6_18,
    rmem_max: 4 << 20,
    wmem_max: 4 << 20,
    tcp_rmem_max: 32 << 20,
    limit_output_bytes: 4 << 20,
    ..Kernel::V6_12
};
