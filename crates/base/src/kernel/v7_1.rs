//! Linux 7.1.

use super::{v6_18, Kernel, Rules, Version};

pub(super) static RULES: Rules = Rules { compresses_for_percent: 33, compression_slack_ns: 0, ..v6_18::RULES };

pub(super) const KERNEL: Kernel = Kernel { rules: Version::V7_1, ..Kernel::V6_18 };
