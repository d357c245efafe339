//! Linux 7.1.

use super::{v6_12, Kernel, Rules, Version};

pub(super) static RULES: Rules = Rules {
    opens_to_offer: true,
    compresses_for_percent: 33,
    compression_slack_ns: 0,
    spare_segments: 0,
    skips_larger_unread: true,
    autotunes_for_gaps: true,
    ..v6_12::RULES
};

pub(super) const KERNEL: Kernel = Kernel { rules: Version::V7_1, ..Kernel::V6_18 };
