//! Loss.
//!
//! What it is: random loss with correlation, the four-state Markov chain (`loss state`) and Gilbert–Elliott (`loss gemodel`).
//! Source: tc-netem(8); Salsano, Ludovici, Ordine, Giannuzzi 2012 for the two chains.
//! How it differs: nothing known; each model draws from the stream called `loss`.
//! What it does not model: loss that depends on packet size or on the queue.

use super::chance::Crandom;
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
    /// Share of the packets that is lost in the long run, as a fraction. A correlation of random loss is not counted in: it makes losses
    /// rarer (docs/models/queues/netem.md).
    pub fn average(&self) -> f64 {
        match *self {
            Loss::Random { p, .. } => p.fraction(),
            Loss::Gemodel { p, r, h, k1 } => {
                let (to_bad, to_good) = (p.fraction(), r.fraction());
                // It begins in the good state and stays there where no way leads out.
                let bad = if to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
                bad * h.complement().fraction() + (1.0 - bad) * k1.fraction()
            }
            Loss::State { p13, p31, p32, p23, p14 } => {
                let [s1, s3, s2, s4] = balance([p13, p31, p32, p23, p14]);
                (s3 + s4) / (s1 + s3 + s2 + s4)
            }
        }
    }
    fn correlation(&self) -> Prob {
        match *self {
            Loss::Random { correlation, .. } => correlation,
            _ => Prob::ZERO,
        }
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

/// How often the four states are entered in the long run, in any unit, as 1, 3, 2, 4: the balance of the ways p13, p31, p32, p23, p14.
/// The chain begins in state 1, from where it ends up in one set of states only, whatever the probabilities.
fn balance([p13, p31, p32, p23, p14]: [Prob; 5]) -> [f64; 4] {
    // The second way out of a state begins where the first ends; above 100 % nothing is left of it.
    let after = |first: Prob, second: Prob| if first.0.checked_add(second.0).is_some() { second.fraction() } else { 0.0 };
    let (to_burst, to_gap) = (after(p14, p13), after(p32, p31));
    let (to_good, to_loss, alone) = (p32.fraction(), p23.fraction(), p14.fraction());
    if to_burst == 0.0 {
        return [1.0, 0.0, 0.0, alone];
    }
    // What enters the burst leaves it again, and within the burst as much goes from 3 to 2 as back.
    if to_good == 0.0 {
        return [to_gap, to_burst, 0.0, to_gap * alone];
    }
    let (s1, s3) = (to_gap * to_loss, to_burst * to_loss);
    [s1, s3, to_burst * to_good, s1 * alone]
}

/// A loss model at run time.
#[derive(Clone, Debug)]
pub struct LossMachine {
    model: Loss,
    chain: Chain,
    random: Crandom,
}

impl LossMachine {
    /// In its good state.
    pub fn new(model: Loss, stream: Stream) -> LossMachine {
        LossMachine { model, chain: Chain::GoodInGap, random: Crandom::new(model.correlation(), stream) }
    }
    /// What it runs.
    pub fn model(&self) -> Loss {
        self.model
    }
    /// Another model over the same stream; random loss keeps its correlation.
    pub fn set(&mut self, p: Prob) {
        self.model = Loss::Random { p, correlation: self.model.correlation() };
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
            chain => self.step(&chain),
        }
    }
    /// A step of a chain. The four states lose by where the step leads. Gilbert and Elliott's two lose by the state that the packet meets,
    /// with a draw of its own after that of the step.
    fn step(&mut self, model: &Loss) -> bool {
        let met = self.chain;
        self.chain = met.after(model, self.random.draw());
        match *model {
            Loss::Gemodel { h, k1, .. } => {
                let draw = self.random.draw();
                if met.is_bad() {
                    draw > h.0
                } else {
                    draw < k1.0
                }
            }
            _ => self.chain.is_bad(),
        }
    }
}

/// Where a chain stands: the four states of Salsano et al.; Gilbert and Elliott's good and bad state are the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    /// 1.
    GoodInGap,
    /// 3.
    LostInBurst,
    /// 2.
    GoodInBurst,
    /// 4.
    LostInGap,
}

impl Chain {
    /// Whether a packet is lost here; for Gilbert and Elliott, whether this is the bad state.
    fn is_bad(self) -> bool {
        matches!(self, Chain::LostInBurst | Chain::LostInGap)
    }
    /// Where a draw leads from here.
    fn after(self, model: &Loss, draw: u32) -> Chain {
        // The shares of the draws lie one after the other from 0 on. Sums above 100 % wrap round.
        let mut end = 0u32;
        let chosen = self.exits(model).into_iter().find(|(share, _)| {
            end = end.wrapping_add(share.0);
            draw < end
        });
        match chosen {
            Some((_, to)) => to,
            // A lone loss is over after one packet.
            None if self == Chain::LostInGap => Chain::GoodInGap,
            None => self,
        }
    }
    /// The ways out of a state with their probabilities.
    fn exits(self, model: &Loss) -> [(Prob, Chain); 2] {
        let shut = (Prob::ZERO, self);
        match (*model, self) {
            (Loss::State { p13, p14, .. }, Chain::GoodInGap) => [(p14, Chain::LostInGap), (p13, Chain::LostInBurst)],
            (Loss::State { p31, p32, .. }, Chain::LostInBurst) => [(p32, Chain::GoodInBurst), (p31, Chain::GoodInGap)],
            (Loss::State { p23, .. }, Chain::GoodInBurst) => [(p23, Chain::LostInBurst), shut],
            (Loss::Gemodel { p, .. }, Chain::GoodInGap) => [(p, Chain::LostInBurst), shut],
            (Loss::Gemodel { r, .. }, Chain::LostInBurst) => [(r, Chain::GoodInGap), shut],
            _ => [shut, shut],
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
    fn near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.03
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
    fn shares_lie_one_after_the_other() {
        // From state 1: below 10 % to state 4, from there to 30 % to state 3, else it stays. From state 3: 50 % to 2, 25 % to 1.
        let model = Loss::State { p13: pct(20.0), p31: pct(25.0), p32: pct(50.0), p23: pct(40.0), p14: pct(10.0) };
        let leads = |from: Chain, at: f64| from.after(&model, pct(at).0);
        assert_eq!([9.9, 10.1, 29.9, 30.1].map(|at| leads(Chain::GoodInGap, at)), {
            [Chain::LostInGap, Chain::LostInBurst, Chain::LostInBurst, Chain::GoodInGap]
        });
        assert_eq!([49.9, 50.1, 74.9, 75.1].map(|at| leads(Chain::LostInBurst, at)), {
            [Chain::GoodInBurst, Chain::GoodInGap, Chain::GoodInGap, Chain::LostInBurst]
        });
        assert_eq!([39.9, 40.1].map(|at| leads(Chain::GoodInBurst, at)), [Chain::LostInBurst, Chain::GoodInBurst]);
        assert_eq!([0.0, 99.9].map(|at| leads(Chain::LostInGap, at)), [Chain::GoodInGap; 2]);
        // 70 % and 60 % wrap round to 30 %: the second share is empty, and from 70 % on the state stays.
        let model = Loss::State { p13: pct(60.0), p31: Prob::ZERO, p32: Prob::ZERO, p23: Prob::ZERO, p14: pct(70.0) };
        assert_eq!([69.9, 70.1].map(|at| Chain::GoodInGap.after(&model, pct(at).0)), [Chain::LostInGap, Chain::GoodInGap]);
    }

    #[test]
    fn the_average_is_what_packets_meet() {
        for model in [
            Loss::random(pct(2.0)),
            Loss::gemodel(&[pct(1.0), pct(25.0)]),
            Loss::gemodel(&[pct(1.0), pct(10.0), pct(70.0), pct(0.1)]),
            Loss::state(&[pct(1.0), pct(25.0), pct(0.0), pct(100.0), pct(0.5)]),
            Loss::state(&[pct(2.0), pct(30.0), pct(20.0), pct(60.0), pct(1.0)]),
            // The ways out of state 3 are over 100 % together: the second one is shut.
            Loss::state(&[pct(2.0), pct(30.0), pct(80.0), pct(60.0), pct(1.0)]),
            // Only lone losses; and the same where the way to a burst is shut.
            Loss::state(&[pct(0.0), pct(30.0), pct(20.0), pct(60.0), pct(10.0)]),
            Loss::state(&[pct(95.0), pct(30.0), pct(20.0), pct(60.0), pct(10.0)]),
        ] {
            let (rate, _) = measure(model);
            assert!(near(rate, model.average()), "{model:?}: {rate} {}", model.average());
        }
        let ends = [
            // A good state that nothing leaves, and a bad one.
            (Loss::gemodel(&[pct(0.0), pct(0.0), pct(100.0), pct(3.0)]), 0.03),
            (Loss::gemodel(&[pct(1.0), pct(0.0), pct(70.0)]), 0.7),
            // Lost for ever in state 3, saved for ever in state 2, never away from state 1.
            (Loss::state(&[pct(1.0), pct(0.0)]), 1.0),
            (Loss::state(&[pct(1.0), pct(10.0), pct(10.0), pct(0.0)]), 0.0),
            (Loss::state(&[pct(0.0)]), 0.0),
        ];
        assert!(ends.iter().all(|(model, share)| model.average() == *share), "{:?}", ends.map(|e| e.0.average()));
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
