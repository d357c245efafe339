//! BOLA-BASIC: the rung follows from the buffer's level alone.
//!
//! Source: Spiteri, Urgaonkar, Sitaraman, "BOLA: Near-optimal bitrate adaptation for online videos", INFOCOM 2016: with Q segments in the
//! buffer, the rung m that maximises (V(υ_m + γp) − Q) / S_m, where S_m is the segment's size and υ_m = ln(S_m / S_1) its utility; nothing is asked for
//! while that is negative for every rung. V = (Q_max − 1) / (υ_M + γp) keeps the buffer within Q_max segments, and the last rung's value turns
//! negative exactly where the next segment has no room. How it differs: γp = 5, the paper's choice, is fixed; with it an empty buffer takes the
//! lowest rung. Does not model: BOLA-FINITE, BOLA-O and BOLA-U, the placeholder and abandonment rules of dash.js.

use super::PlayerPlan;
use super::{Algorithm, Download};
use tcpscape_base::Duration;

/// γp: what a second without stall is worth, in units of utility.
const GAMMA_P: f64 = 5.0;
/// Levels are rounded to this, ns, so that the last bit of a logarithm decides nothing.
const GRAIN: f64 = 1_000.0;

/// The levels of the buffer at which each rung becomes the choice.
#[derive(Debug)]
pub(super) struct Bola {
    /// From which level of media on a rung is better than every lower one.
    from: Vec<Duration>,
}

impl Bola {
    pub fn new(plan: &PlayerPlan) -> Bola {
        let sizes: Vec<f64> = plan.ladder.iter().map(|&rate| rate as f64).collect();
        let utility = |m: usize| (sizes[m] / sizes[0]).ln() + GAMMA_P;
        let segment = plan.segment_ns as f64;
        let v = (plan.buffer_ns as f64 / segment - 1.0) / utility(sizes.len() - 1);
        // Rungs i < m are equally good at the level Q where (V u_i − Q) / S_i = (V u_m − Q) / S_m, and m is better above it.
        let equal = |i: usize, m: usize| v * (sizes[m] * utility(i) - sizes[i] * utility(m)) / (sizes[m] - sizes[i]);
        let threshold = |m: usize| (0..m).map(|i| equal(i, m)).fold(0.0, f64::max);
        let level = |q: f64| Duration(((q * segment / GRAIN).round() * GRAIN) as u64);
        Bola { from: (0..sizes.len()).map(|m| level(threshold(m))).collect() }
    }
}

impl Algorithm for Bola {
    fn downloaded(&mut self, _: Download) {}

    /// The highest rung that is better than every lower one has the largest value of all.
    fn choose(&self, level: Duration) -> usize {
        self.from.iter().rposition(|&from| from <= level).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Abr;
    use super::*;

    fn plan(ladder: &[u64], segment_s: u64, buffer_s: u64) -> PlayerPlan {
        let s = 1_000_000_000;
        PlayerPlan { ladder: ladder.to_vec(), segment_ns: segment_s * s, buffer_ns: buffer_s * s, abr: Abr::Bola }
    }

    /// Rungs 1 and e Mbit/s (rounded), 4 s, 28 s: u = 5 and 6, V = (7 − 1) / 6 = 1. Equal where 5 − Q = (6 − Q) / e:
    /// Q = (5e − 6) / (e − 1) = 4.418 segments = 17.67 s.
    #[test]
    fn two_rungs_change_where_the_paper_says() {
        let bola = Bola::new(&plan(&[1_000_000, 2_718_282], 4, 28));
        assert!((bola.from[1].secs_f64() - 17.672).abs() < 0.001, "{:?}", bola.from);
        assert_eq!(bola.choose(Duration::ZERO), 0);
        assert_eq!((bola.choose(Duration(17_600_000_000)), bola.choose(Duration(17_700_000_000))), (0, 1));
    }

    /// The table of levels chooses what the formula's maximum does, at every level.
    #[test]
    fn the_levels_are_the_maximum_of_the_formula() {
        for ladder in [&[1_000_000, 2_500_000, 5_000_000, 8_000_000, 16_000_000][..], &[300_000, 310_000, 4_000_000], &[2_000_000]] {
            let plan = plan(ladder, 4, 30);
            let bola = Bola::new(&plan);
            let u = |m: usize| (ladder[m] as f64 / ladder[0] as f64).ln() + 5.0;
            let v = 6.5 / u(ladder.len() - 1);
            for ms in (0..26_000).step_by(37) {
                let q = f64::from(ms) / 4_000.0;
                let value = |m: usize| (v * u(m) - q) / ladder[m] as f64;
                let best = (0..ladder.len()).max_by(|&a, &b| value(a).total_cmp(&value(b))).unwrap();
                assert_eq!(bola.choose(Duration(ms as u64 * 1_000_000)), best, "{ladder:?} at {q}");
            }
        }
    }

    /// V(υ_M + γp) = Q_max − 1: where there is room for one more segment and no more, the value of the highest rung is 0 and it is the choice.
    #[test]
    fn the_highest_rung_is_chosen_until_the_buffer_is_full() {
        let bola = Bola::new(&plan(&[1_000_000, 2_500_000, 5_000_000, 8_000_000, 16_000_000], 4, 30));
        assert!(bola.from.windows(2).all(|pair| pair[0] < pair[1]) && bola.from[4] < Duration::secs(26), "{:?}", bola.from);
        assert_eq!(bola.choose(Duration::secs(26)), 4);
    }
}
