//! BBR's arithmetic: bandwidth in fixed point, the bandwidth-delay product, and pacing rates from both.
//!
//! **What it is.** Conversions without a state, of both versions of BBR.
//! **Source.** draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.
//! **How it differs, what it does not model.** See the header of `bbr/mod.rs`.

use crate::cc::{RateSample, View, Window, INIT_CWND};

/// Bandwidth: packets per µs, times 2^24.
pub(crate) type Bw = u32;

/// The bandwidth of a valid sample: packets delivered over the time it took.
pub(crate) fn bandwidth(rs: &RateSample) -> u64 {
    ((rs.delivered as u64) << BW_SCALE) / rs.interval_us as u64
}

/// Bandwidth-delay product times `gain`, rounded up, packets; the first window while there is no RTT (draft §4.2.3.2).
pub(crate) fn bdp(bw: Bw, min_rtt: u32, gain: u32) -> u32 {
    if min_rtt == u32::MAX {
        return INIT_CWND;
    }
    let scaled = (u64::from(bw) * u64::from(min_rtt)).wrapping_mul(gain.into()) >> 8;
    scaled.div_ceil(1 << BW_SCALE) as u32
}

/// The rate that sends the present window in a smoothed RTT, 1 ms if there is none yet, times `gain`, bytes per second.
pub(crate) fn first_rate(v: &View, w: &Window, gain: u32) -> u64 {
    let rtt = if v.srtt_us > 0 { (v.srtt_us >> 3).max(1) } else { 1_000 };
    let bw = (u64::from(w.cwnd) << BW_SCALE) / u64::from(rtt);
    bytes_per_sec(v.mss, Bw::try_from(bw).unwrap_or(Bw::MAX), gain)
}

/// `bw` times `gain`, less 1 %, in bytes per second (draft §4.2.1).
pub(crate) fn bytes_per_sec(mss: u32, bw: Bw, gain: u32) -> u64 {
    let per_us = (u64::from(bw) * u64::from(mss)).saturating_mul(gain.into()) >> 8;
    per_us.saturating_mul(10_000 * (100 - MARGIN_PERCENT)) >> BW_SCALE
}

/// Fraction bits of [`Bw`].
pub(crate) const BW_SCALE: u32 = 24;
/// A gain of 1.
pub(crate) const UNIT: u32 = 256;
/// Pacing below the bandwidth, per cent.
const MARGIN_PERCENT: u64 = 1;
