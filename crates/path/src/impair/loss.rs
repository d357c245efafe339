//! Loss.
//!
//! What it is: random loss with correlation, the four-state Markov chain (`loss state`) and Gilbert–Elliott (`loss gemodel`).
//! Source: tc-netem(8); Salsano, Ludovici, Ordine, Giannuzzi 2012 for the two chains. Linux: loss_event(), loss_4state(), loss_gilb_ell().
//! How it differs: nothing known; each model draws from the stream called `loss`.
//! What it does not model: loss that depends on packet size or on the queue.

use super::crandom::Crandom;
use crate::values::Prob;
use serde::{Deserialize, Serialize};
use tcpscape_base::Stream;

/// A loss model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// Each packet with probability `p`.
    Random {
        /// Probability.
        p: Prob,
        /// How much a draw leans on the last.
        #[serde(default)]
        correlation: Prob,
    },
    /// Four states: good in a gap (1), lost in a burst (3), good in a burst (2), lost alone in a gap (4).
    State {
        /// From gap to burst loss.
        p13: Prob,
        /// From burst loss back to the gap.
        p31: Prob,
        /// From burst loss to good in the burst.
        p32: Prob,
        /// From good in the burst to burst loss.
        p23: Prob,
        /// From gap to a lone loss.
        p14: Prob,
    },
    /// Two states, each with its loss probability.
    Gemodel {
        /// From good to bad.
        p: Prob,
        /// From bad to good.
        r: Prob,
        /// Chance to get through in the bad state (tc gives 1−h).
        h: Prob,
        /// Loss in the good state (tc's 1−k).
        k1: Prob,
    },
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::random(Prob::ZERO)
    }
}

impl Loss {
    /// Independent loss.
    pub fn random(p: Prob) -> Loss {
        Loss::Random { p, correlation: Prob::ZERO }
    }
    /// `loss state P13 [P31 [P32 [P23 [P14]]]]` with tc's defaults.
    pub fn state(p: &[Prob]) -> Loss {
        let get = |i: usize, default| p.get(i).copied().unwrap_or(default);
        let p13 = get(0, Prob::ZERO);
        Loss::State { p13, p31: get(1, p13.complement()), p32: get(2, Prob::ZERO), p23: get(3, Prob::ONE), p14: get(4, Prob::ZERO) }
    }
    /// `loss gemodel P [R [1-H [1-K]]]` with tc's defaults.
    pub fn gemodel(p: &[Prob]) -> Loss {
        let get = |i: usize, default| p.get(i).copied().unwrap_or(default);
        let first = get(0, Prob::ZERO);
        Loss::Gemodel { p: first, r: get(1, first.complement()), h: get(2, Prob::ONE).complement(), k1: get(3, Prob::ZERO) }
    }
    /// Whether it never loses anything.
    pub fn is_none(&self) -> bool {
        matches!(self, Loss::Random { p: Prob(0), .. })
    }
    pub(crate) fn words(&self) -> String {
        match self {
            Loss::Random { p, correlation: Prob(0) } => format!("loss {p}"),
            Loss::Random { p, correlation } => format!("loss {p} {correlation}"),
            Loss::State { p13, p31, p32, p23, p14 } => format!("loss state {p13} {p31} {p32} {p23} {p14}"),
            Loss::Gemodel { p, r, h, k1 } => format!("loss gemodel {p} {r} {} {k1}", h.complement()),
        }
    }
}

/// Where a chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Gap,
    BurstGood,
    BurstLost,
    GapLost,
}

/// A loss model at run time.
#[derive(Clone, Debug)]
pub struct LossMachine {
    model: Loss,
    state: State,
    random: Crandom,
}

impl LossMachine {
    /// In its good state.
    pub fn new(model: Loss, stream: Stream) -> LossMachine {
        let rho = if let Loss::Random { correlation, .. } = model { correlation } else { Prob::ZERO };
        LossMachine { model, state: State::Gap, random: Crandom::new(rho, stream) }
    }
    /// What it runs.
    pub fn model(&self) -> Loss {
        self.model
    }
    /// Another model over the same stream; random loss keeps its correlation.
    pub fn set(&mut self, p: Prob) {
        let correlation = if let Loss::Random { correlation, .. } = self.model { correlation } else { Prob::ZERO };
        self.model = Loss::Random { p, correlation };
    }
    /// Puts back a model that `set` replaced.
    pub fn restore(&mut self, model: Loss) {
        self.model = model;
    }
    /// Whether the next packet is lost.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        match self.model {
            Loss::Random { p, .. } => self.random.hits(p),
            Loss::State { p13, p31, p32, p23, p14 } => {
                let n = self.random.draw();
                // Sums above 100 % wrap round, as the kernel's 32-bit sums do.
                let below = |p: Prob, q: Prob| n < p.0.wrapping_add(q.0);
                self.state = match self.state {
                    State::Gap if below(p14, Prob::ZERO) => State::GapLost,
                    State::Gap if below(p14, p13) => State::BurstLost,
                    State::BurstGood if below(p23, Prob::ZERO) => State::BurstLost,
                    State::BurstLost if below(p32, Prob::ZERO) => State::BurstGood,
                    State::BurstLost if below(p32, p31) => State::Gap,
                    State::GapLost => State::Gap,
                    same => same,
                };
                matches!(self.state, State::GapLost | State::BurstLost)
            }
            Loss::Gemodel { p, r, h, k1 } => {
                // The chain moves first; the loss is that of the state the packet met.
                let moves = self.random.draw();
                let fate = self.random.draw();
                if self.state == State::Gap {
                    if moves < p.0 {
                        self.state = State::BurstLost;
                    }
                    fate < k1.0
                } else {
                    if moves < r.0 {
                        self.state = State::Gap;
                    }
                    fate > h.0
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pct(p: f64) -> Prob {
        Prob::from_percent(p).unwrap()
    }
    /// Loss rate and mean length of a run of losses over two million packets.
    fn measure(model: Loss) -> (f64, f64) {
        let mut m = LossMachine::new(model, Stream::new(4, "loss"));
        let (mut lost, mut runs, mut before, n) = (0u32, 0u32, false, 2_000_000);
        for _ in 0..n {
            let l = m.strikes();
            lost += u32::from(l);
            runs += u32::from(l && !before);
            before = l;
        }
        (f64::from(lost) / f64::from(n), f64::from(lost) / f64::from(runs.max(1)))
    }
    fn near(got: f64, want: f64) -> bool {
        (got / want - 1.0).abs() < 0.03
    }

    #[test]
    fn random_loss_is_bernoulli() {
        let (rate, run) = measure(Loss::random(pct(2.0)));
        assert!(near(rate, 0.02) && near(run, 1.0 / 0.98), "{rate} {run}");
    }

    #[test]
    fn a_simple_gilbert_chain_loses_p_over_p_plus_r() {
        // p = 1 %, r = 25 %, everything lost in the bad state: 1/26, in runs of 4
        let (rate, run) = measure(Loss::gemodel(&[pct(1.0), pct(25.0)]));
        assert!(near(rate, 1.0 / 26.0) && near(run, 4.0), "{rate} {run}");
    }

    #[test]
    fn gilbert_elliott_mixes_both_loss_rates() {
        // bad share 1/11 at 70 % loss, good share 10/11 at 0.1 %
        let (rate, _) = measure(Loss::gemodel(&[pct(1.0), pct(10.0), pct(70.0), pct(0.1)]));
        assert!(near(rate, 0.7 / 11.0 + 0.001 * 10.0 / 11.0), "{rate}");
    }

    #[test]
    fn four_states_reach_their_balance() {
        // tc's defaults after p13 = 1 %: p31 = 99 %; a packet in state 3 that goes home gets through: π3 = p13/(p13+p31) = 1 %
        let (rate, _) = measure(Loss::state(&[pct(1.0)]));
        assert!(near(rate, 0.01), "{rate}");
        // bursts of 1/p31 = 4 and lone losses p14 = 0.5 %
        let (rate, _) = measure(Loss::state(&[pct(1.0), pct(25.0), pct(0.0), pct(100.0), pct(0.5)]));
        let (p3, p4) = (0.01 / 0.25, 0.005);
        assert!(near(rate, (p3 + p4) / (1.0 + p3 + p4)), "{rate}");
    }
}
