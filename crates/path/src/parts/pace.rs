//! What shapers share: from bytes to nanoseconds at a rate without a division per packet, and words about framing.

use crate::words::{TcError, Words};

/// A rate as a fixed-point reciprocal: nanoseconds per byte = `mult / 2^shift`, with 32 significant bits, which is the
/// precision that Linux keeps: a packet's time is at most 1 ns below the exact one (1500 B at 1 Mbit/s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    mult: u64,
    shift: u32,
}

impl Pace {
    /// The pace of `bytes_per_sec`; a zero rate never lets anything through, so it must not be used.
    pub fn new(bytes_per_sec: u64) -> Pace {
        let rate = u128::from(bytes_per_sec.max(1));
        // The least shift that gives the multiplier its 32nd bit.
        let shift = (0..34).find(|s| (1_000_000_000u128 << s) / rate >= 1 << 31).unwrap_or(34);
        Pace { mult: ((1_000_000_000u128 << shift) / rate) as u64, shift }
    }
    /// The time `bytes` take, ns.
    #[inline]
    pub fn nanos(self, bytes: u64) -> i64 {
        (bytes.saturating_mul(self.mult) >> self.shift) as i64
    }
}

/// Reads the value of a word about framing that changes nothing here: `mpu 0`, `overhead 0`, `linklayer ethernet`, any `mtu`.
pub(crate) fn harmless(w: &mut Words<'_>, key: &str) -> Result<(), TcError> {
    let v = w.value(key)?;
    match (key, v) {
        ("mtu", _) => w.as_count(v, key).map(drop),
        ("mpu" | "overhead", "0") | ("linklayer", "ethernet") => Ok(()),
        _ => Err(w.wrong(key, "it is not modelled: leave it away")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_at_10_mbit_takes_1_2112_ms() {
        assert_eq!(Pace::new(1_250_000).nanos(1514), 1_211_200);
    }

    #[test]
    fn never_more_than_a_nanosecond_early() {
        for rate in [1u64, 100, 125_000, 7_500_000, 1_234_567, 12_500_000_000] {
            for len in [54u64, 1514, 6056, 65_226] {
                let exact = (u128::from(len) * 1_000_000_000 / u128::from(rate)) as i64;
                let got = Pace::new(rate).nanos(len);
                assert!((exact - got) <= 1 + exact / (1 << 30) && got <= exact, "{rate} {len} {exact} {got}");
            }
        }
    }
}
