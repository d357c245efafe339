//! What tc computes from red's words before it tells the kernel.
//!
//! What it is: the weight of the average (`Wlog`), the spacing's bits (`Plog`, not used when the probability is sent too), the
//! probability in 32 bits, and a table of how an idle time damps the average.
//! Source: tc-red(8); S. Floyd, "RED: discussions of setting parameters", 1997. Compared with tc 6.1's own
//! messages.
//! How it differs: nothing known. What it does not model: nothing.

use super::RedSpec;
use crate::values::SpecError;

/// What the kernel gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The average's weight is 2^-wlog.
    pub wlog: u8,
    /// Bits of a random number as the kernel took it before it knew `max_p`.
    pub plog: u8,
    /// An idle time is looked up by cells of 2^cell_log µs.
    pub cell_log: u8,
    /// By how many bits the average shrinks in so many cells.
    pub damping: [u8; 256],
    /// Probability at `max`, Q0.32; 0 for (max − min) / 2^plog.
    pub max_p: u32,
}

impl Computed {
    /// Computes it, or says which word cannot be met.
    pub fn of(s: &RedSpec) -> Result<Computed, SpecError> {
        let no = |field: &str, fix: &str| SpecError::new(&format!("red {field}"), fix);
        let wlog =
            weight(s).ok_or_else(|| no("burst", "is too small for min: burst must be above min / avpkt, and not larger than 2^31"))?;
        let plog = bits(s).ok_or_else(|| no("probability", "is too small for the distance from min to max"))?;
        let (cell_log, damping) = idle_damping(wlog, s).ok_or_else(|| no("bandwidth", "is too low for avpkt"))?;
        let fits = |bytes: u32| 32 - bytes.leading_zeros() + u32::from(wlog) < 32;
        if !fits(s.min) || !fits(s.max) {
            return Err(no("max", "is too large for the weight that burst asks for: lower max or burst"));
        }
        // tc keeps 32 bits: certainty becomes 0, for which the kernel takes its old measure.
        let max_p = (s.probability * 2f64.powi(32)) as u64 as u32;
        Ok(Computed { wlog, plog, cell_log, damping, max_p })
    }
}

/// The least weight with which a burst of so many packets from an empty queue leaves the average below `min`: Floyd's
/// condition, burst + 1 − min/avpkt ≤ (1 − (1−W)^burst) / W.
fn weight(s: &RedSpec) -> Option<u8> {
    let burst = f64::from(s.burst);
    let a = burst + 1.0 - f64::from(s.min) / f64::from(s.avpkt);
    if a < 1.0 {
        return None;
    }
    (1..32)
        .find(|&log| {
            let w = 0.5f64.powi(log);
            a <= (1.0 - (1.0 - w).powf(burst)) / w
        })
        .map(|log| log as u8)
}

/// How often the probability per byte doubles before it exceeds one.
fn bits(s: &RedSpec) -> Option<u8> {
    let per_byte = s.probability / f64::from(s.max - s.min);
    (0..32).find(|&i| per_byte * 2f64.powi(i) > 1.0).map(|i| i as u8)
}

/// tc's clock has 15.625 ticks a µs, and tc takes its packet time in them for µs, as the kernel's table expects neither.
const TICKS_PER_MICRO: f64 = 15.625;

/// As many small packets as fit into the idle time would each have taken W off the average: −log₂-like steps of ln(1−W).
fn idle_damping(wlog: u8, s: &RedSpec) -> Option<(u8, [u8; 256])> {
    let micros = f64::from(s.avpkt) / s.bandwidth.bytes_per_sec().min(u64::from(u32::MAX)) as f64 * 1e6;
    let packet = f64::from((f64::from(micros as u32) * TICKS_PER_MICRO) as u32);
    let per_tick = -(1.0 - 0.5f64.powi(i32::from(wlog))).ln() / packet;
    let longest = 31.0 / per_tick;
    let cell_log = (0..32).find(|&log| longest / 2f64.powi(log) < 512.0)?;
    let mut table = [0u8; 256];
    for (i, entry) in table.iter_mut().enumerate() {
        *entry = ((((i as u64) << cell_log) as f64 * per_tick) as u64).min(31) as u8;
    }
    table[255] = 31;
    Some((cell_log as u8, table))
}
