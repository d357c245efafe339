//! Linux 6.19.

use super::{v6_18, Kernel, Rules, Version};

pub(super) static RULES: Rules = Rules { compresses_for_percent: 33, compression_slack_ns: 10_000, ..v6_18::RULES };

pub(super) const KERNEL: Kernel = Kernel { rules: Version::V6_19, ..Kernel::V6_18 };
