//! Rate-based adaptation: the highest rung that a share of the throughput of late carries.
//!
//! Source: Jiang, Sekar, Zhang, "Improving fairness, efficiency, and stability in HTTP-based adaptive video streaming with FESTIVE", CoNEXT 2012,
//! section 4 (the harmonic mean, which one fast segment does not lift; a rung may take 85 % of it); Yin et al., SIGCOMM 2015, section 7 (the mean of
//! the last five segments, its algorithm RB). How it differs: FESTIVE averages 20 segments. Does not model: FESTIVE's random requests, gradual
//! switches and delayed updates.

use super::PlayerPlan;
use super::{Algorithm, Download};
use std::collections::VecDeque;
use tcpscape_base::Duration;

/// Segments of which the mean is taken.
const LAST: usize = 5;
/// The share of the mean that a rung may take, percent.
const SAFETY_PERCENT: f64 = 85.0;

/// The last segments' throughputs.
#[derive(Debug)]
pub(super) struct Throughput {
    ladder: Vec<u64>,
    /// Time for a bit of each of the last segments, ns, the newest last.
    bit_times: VecDeque<f64>,
}

impl Throughput {
    pub fn new(plan: &PlayerPlan) -> Throughput {
        Throughput { ladder: plan.ladder.clone(), bit_times: VecDeque::with_capacity(LAST) }
    }

    /// Harmonic mean of the last throughputs, bit/s; none before the first segment.
    fn mean_bps(&self) -> Option<f64> {
        let total: f64 = self.bit_times.iter().sum();
        (!self.bit_times.is_empty()).then(|| 1e9 * self.bit_times.len() as f64 / total)
    }
}

impl Algorithm for Throughput {
    fn downloaded(&mut self, download: Download) {
        if self.bit_times.len() == LAST {
            self.bit_times.pop_front();
        }
        self.bit_times.push_back(download.took.0.max(1) as f64 / (8.0 * download.bytes as f64));
    }

    fn choose(&self, _: Duration) -> usize {
        let Some(mean) = self.mean_bps() else { return 0 };
        let most = mean * SAFETY_PERCENT / 100.0;
        self.ladder.iter().rposition(|&rate| rate as f64 <= most).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Abr;
    use super::*;

    fn fed(ms: &[u64]) -> Throughput {
        let (ladder, s) = (vec![1_000_000, 2_500_000, 5_000_000, 8_000_000], 1_000_000_000);
        let mut abr = Throughput::new(&PlayerPlan { ladder, segment_ns: 4 * s, buffer_ns: 30 * s, abr: Abr::Throughput });
        // 500 kB in so many ms.
        ms.iter().for_each(|&ms| abr.downloaded(Download { bytes: 500_000, took: Duration(ms * 1_000_000) }));
        abr
    }

    #[test]
    fn the_first_segment_is_of_the_lowest_rung() {
        assert_eq!(fed(&[]).choose(Duration::secs(20)), 0);
    }

    /// 4 and 12 Mbit/s: the harmonic mean is 6, not 8; 85 % of it is 5.1, which carries 5.
    #[test]
    fn the_mean_is_harmonic_and_is_not_used_up() {
        let abr = fed(&[1_000, 333]);
        assert!((abr.mean_bps().unwrap() - 6.0e6).abs() < 5e3, "{abr:?}");
        assert_eq!(abr.choose(Duration::ZERO), 2);
        assert_eq!(fed(&[1_000]).choose(Duration::ZERO), 1, "3.4 carries 2.5");
        assert_eq!(fed(&[10_000]).choose(Duration::ZERO), 0, "nothing carries less than the lowest rung");
    }

    #[test]
    fn only_five_segments_count() {
        assert_eq!(fed(&[100_000, 400, 400, 400, 400, 400]).choose(Duration::ZERO), 3, "10 Mbit/s carry 8");
    }
}
