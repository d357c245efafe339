//! Linux 6.6.

use super::{v6_1, Kernel, Rules, Version};

pub(super) static RULES: Rules =
    Rules { syn_linear_timeouts: 4, opens_to_offer: true, supposed_options: 12, takes_in_beside_processes: true, ..v6_1::RULES };

pub(super) const KERNEL: Kernel = Kernel { rules: Version::V6_6, skb_overhead: 896, ..Kernel::V6_12 };
