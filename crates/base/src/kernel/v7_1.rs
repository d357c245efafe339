//! Linux 7.1.

use super::{v6_19, Kernel, Rules, Version};

pub(super) static RULES: Rules = Rules { compression_slack_ns: 0, ..v6_19::RULES };

pub(super) const KERNEL: Kernel = Kernel { rules: Version::V7_1, ..Kernel::V6_19 };
