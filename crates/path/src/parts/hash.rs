//! The hash that sorts flows into buckets.

/// A flow's number scrambled under a key, SplitMix64's finaliser without its last step: use the upper half.
pub fn hash(flow: u32, key: u64) -> u64 {
    let mut z = (u64::from(flow) ^ key).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}
