//! Round-trip times: their least, their distribution, and the smoothed value that timers follow.
//!
//! Source: RFC 6298 §2 (smoothing, variance), §2.4 with the floor that Linux has (200 ms on the variance's part).

use serde::Serialize;
use tcpscape_base::Histogram;

/// Floor of the variance's part of a retransmission timeout, ns (Linux, `tcp_rto_min`).
const FLOOR: u64 = 200_000_000;
/// Timeout before there is a sample, ns (RFC 6298 §2.1).
const INITIAL: u64 = 1_000_000_000;

/// Times between a packet and its answer.
#[derive(Debug, Default)]
pub struct Times {
    distribution: Histogram,
    least: Option<u64>,
    smoothed: u64,
    variance: u64,
    sum: f64,
    squares: f64,
}

/// A distribution of times, ms.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Summary {
    /// Samples.
    pub n: u64,
    /// Least.
    pub min_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Standard deviation.
    pub sd_ms: f64,
    /// Largest.
    pub max_ms: f64,
}

/// The longest time that a clock without damage shows, ns: nine years.
const LONGEST: u64 = 1 << 58;

impl Times {
    /// A sample, ns.
    pub fn add(&mut self, ns: u64) {
        let ns = ns.min(LONGEST);
        if self.least.is_none() {
            (self.smoothed, self.variance) = (ns, ns / 2);
        } else {
            self.variance = (3 * self.variance + self.smoothed.abs_diff(ns)) / 4;
            self.smoothed = (7 * self.smoothed + ns) / 8;
        }
        self.least = Some(self.least.map_or(ns, |l| l.min(ns)));
        self.distribution.add(u32::try_from(ns / 1_000).unwrap_or(u32::MAX));
        self.sum += ns as f64;
        self.squares += ns as f64 * ns as f64;
    }
    /// Samples.
    pub fn count(&self) -> u64 {
        self.distribution.count()
    }
    /// The least, ns.
    pub fn least(&self) -> Option<u64> {
        self.least
    }
    /// The `q` quantile, ns; `None` without samples.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (self.count() > 0).then(|| (self.distribution.quantile(q) * 1e3) as u64)
    }
    /// Smoothed, ns; 0 without samples.
    pub fn smoothed(&self) -> u64 {
        self.smoothed
    }
    /// The retransmission timeout of a sender whose RTT is longer than these times by `more` ns.
    pub fn timeout(&self, more: u64) -> u64 {
        match self.least {
            None => INITIAL,
            Some(_) => self.smoothed + more + (4 * self.variance).max(FLOOR),
        }
    }
    /// What a table shows; `None` without samples.
    pub fn summary(&self) -> Option<Summary> {
        let n = self.count();
        let mean = self.sum / n as f64;
        let ms = |us: f64| us / 1e3;
        (n > 0).then(|| Summary {
            n,
            min_ms: self.least.unwrap_or(0) as f64 / 1e6,
            p50_ms: ms(self.distribution.quantile(0.5)),
            mean_ms: mean / 1e6,
            p95_ms: ms(self.distribution.quantile(0.95)),
            sd_ms: (self.squares / n as f64 - mean * mean).max(0.0).sqrt() / 1e6,
            max_ms: ms(f64::from(self.distribution.max())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298_with_a_floor() {
        let mut t = Times::default();
        assert_eq!(t.timeout(0), INITIAL);
        t.add(100_000_000);
        assert_eq!(t.timeout(0), 300_000_000);
        t.add(200_000_000);
        // variance = 3/4·50 + 1/4·100 = 62.5 ms, smoothed = 112.5 ms
        assert_eq!(t.timeout(1_000_000), 112_500_000 + 1_000_000 + 250_000_000);
        let s = t.summary().expect("two samples");
        assert_eq!((s.n, s.min_ms, s.mean_ms, s.sd_ms), (2, 100.0, 150.0, 50.0));
    }
}
