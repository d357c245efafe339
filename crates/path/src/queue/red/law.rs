//! RED's law: the average length of a queue, and what it means for a packet that comes.
//!
//! What it is: an exponentially weighted average, which an idle time lowers as small packets would have; a probability that grows with
//! it; strikes spaced evenly at that probability; optionally a probability that adapts itself. Lengths are whole numbers of a unit, and so is what is
//! compared: bytes for red, packets for choke. The average itself has more bits, but each arrival takes the whole part of it for its decay.
//! Source: Floyd and Jacobson 1993 ("Random early detection gateways for congestion avoidance"): the average, the idle time, evenly spaced
//! strikes; Floyd, Gummadi and Shenker 2001 ("Adaptive RED"): the adaptation.
//! How it differs: from the papers as the sentences under "The law" in docs/models/queues/red.md say.
//! What it does not model: nothing known.

use super::tc::Computed;
use super::RedSpec;
use tcpscape_base::{Stream, Time};

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is let in.
    Pass,
    /// It is struck by chance, between the thresholds.
    Early,
    /// It is struck for certain, above them.
    Forced,
}

/// One queue's state under the law.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    average: Average,
    /// Lower threshold of the average, in the unit of the lengths.
    min: u64,
    slope: Slope,
    spacing: Spacing,
    stream: Stream,
}

impl Law {
    /// A queue that has always been empty, of lengths in bytes.
    pub fn new(s: &RedSpec, stream: Stream) -> Law {
        Law::between(s.min, s.max, Computed::of(s).expect("a validated red"), stream)
    }

    /// One whose lengths have the unit of these thresholds, `min` and `max`.
    pub fn between(min: u32, max: u32, tc: Computed, stream: Stream) -> Law {
        let slope = Slope::new(max - min, &tc);
        Law { average: Average::new(tc), min: u64::from(min), slope, spacing: Spacing::Open, stream }
    }

    /// A packet comes and finds a queue of length `backlog`.
    pub fn arrival(&mut self, now: Time, backlog: u64) -> Fate {
        self.observe(now, backlog);
        self.fate()
    }

    /// The first half of an arrival: moves the average, and says whether it has reached `min`.
    pub fn observe(&mut self, now: Time, backlog: u64) -> bool {
        self.average.arrival(now, backlog);
        !self.average.is_below(self.min)
    }

    /// Somebody has asked for a packet in vain: from here on the queue is idle.
    pub fn idles(&mut self, now: Time) {
        self.average.idle.get_or_insert(now);
    }

    /// Keeps the average between 0.4 and 0.6 of the way from `min` to `max` (Adaptive RED), where it adapts.
    pub fn adapt(&mut self, now: Time) {
        let fifth = u64::from(self.slope.width / 5);
        match self.average.length_at(now) {
            long if long > self.min + 3 * fifth => self.slope.steepen(),
            short if short < self.min + 2 * fifth => self.slope.flatten(),
            _ => {}
        }
        self.slope.round();
    }

    /// The second half: what happens to the packet.
    pub fn fate(&mut self) -> Fate {
        let outside = if self.average.is_below(self.min) {
            Fate::Pass
        } else if !self.average.is_below(self.min + u64::from(self.slope.width)) {
            Fate::Forced
        } else {
            let (above, slope, stream) = (self.average.above(self.min), self.slope, &mut self.stream);
            let struck = self.spacing.ends(above, || slope.draw(stream));
            return if struck { Fate::Early } else { Fate::Pass };
        };
        self.spacing = Spacing::Open;
        outside
    }
}

/// How often an idle time of so many µs halves the average, by tc's table; its last cell holds for all longer ones.
fn halvings(tc: &Computed, idle_us: u64) -> u8 {
    tc.damping[(idle_us >> tc.cell_log).min(CELLS) as usize]
}

/// Where the table has no halving yet: a line that would lose all within one cell's time, down to a half at most.
fn along_line(scaled: u64, idle_us: u64, cell_log: u8) -> u64 {
    let (half, loss) = (scaled >> 1, (scaled * idle_us) >> cell_log);
    if loss < half {
        scaled - loss
    } else {
        half
    }
}

/// The average length: `avg ← (1 − w)·avg + w·backlog` with w = 2^-wlog.
#[derive(Clone, Debug)]
struct Average {
    /// Length · 2^wlog.
    scaled: u64,
    /// Since when the queue is idle.
    idle: Option<Time>,
    tc: Computed,
}

impl Average {
    fn new(tc: Computed) -> Average {
        Average { scaled: 0, idle: Some(Time::ZERO), tc }
    }
    /// The first packet after an idle time lowers the average by that; every other one moves it towards the backlog that it finds.
    fn arrival(&mut self, now: Time, backlog: u64) {
        self.scaled = match self.idle.take() {
            Some(since) => self.decayed(now, since),
            None => self.scaled + backlog - (self.scaled >> self.tc.wlog),
        };
    }
    /// The average after an idle time: `(1 − w)^m` of it for the m small packets that would have fitted in.
    fn decayed(&self, now: Time, since: Time) -> u64 {
        let idle_us = now.since(since).0 / 1_000;
        match halvings(&self.tc, idle_us) {
            0 => along_line(self.scaled, idle_us, self.tc.cell_log),
            n => self.scaled >> n,
        }
    }
    /// The average as a packet would find it now.
    fn length_at(&self, now: Time) -> u64 {
        self.idle.map_or(self.scaled, |since| self.decayed(now, since)) >> self.tc.wlog
    }
    fn is_below(&self, length: u64) -> bool {
        self.scaled < length << self.tc.wlog
    }
    /// By how many whole units it exceeds `min`.
    fn above(&self, min: u64) -> u64 {
        (self.scaled - (min << self.tc.wlog)) >> self.tc.wlog
    }
}

/// How the probability grows between the thresholds.
#[derive(Clone, Copy, Debug)]
struct Slope {
    /// From `min` to `max`.
    width: u32,
    /// Probability just below `max`, of 2³².
    top: u32,
    /// Probability for each unit above `min`, of 2³².
    per_unit: u32,
}

impl Slope {
    /// Without a probability (which 1 becomes in 32 bits), the one per unit is 2^-plog.
    fn new(width: u32, tc: &Computed) -> Slope {
        let top = if tc.max_p > 0 { tc.max_p } else { (u32::MAX >> tc.plog).wrapping_mul(width) };
        Slope { width, top, per_unit: (top / width).max(1) }
    }
    /// A length times packets, uniform up to the inverse of the probability per unit.
    fn draw(self, stream: &mut Stream) -> u32 {
        stream.next_u32() / self.per_unit
    }
    /// Adaptive RED's α: up by a quarter, or 1 % if that is less, as long as it is at most 50 %.
    fn steepen(&mut self) {
        if self.top <= TOP_MAX {
            self.top += (self.top / 4).min(TOP_STEP);
        }
    }
    /// Adaptive RED's β: down to nine tenths, as long as it is at least 1 %.
    fn flatten(&mut self) {
        if self.top >= TOP_MIN {
            self.top = self.top / 10 * 9;
        }
    }
    /// An adapted probability per unit is rounded; the one at the beginning is cut.
    fn round(&mut self) {
        self.per_unit = ((self.top + self.width / 2) / self.width).max(1);
    }
}

/// Where a run of packets between two strikes stands. Floyd and Jacobson space strikes evenly between 1 and 1/p packets apart: of a number R drawn
/// uniformly between 0 and 1 for each run, the n-th packet is struck as soon as n·p ≥ R.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spacing {
    /// No run: the next packet between the thresholds begins one and passes.
    Open,
    /// So many packets have come since the run began. It ends once they, times the whole units of the average above `min`, reach `product`.
    Run { packets: u64, product: u32 },
}

impl Spacing {
    /// Whether the run ends with a packet that finds the average `above` units over `min`; then the next one begins.
    fn ends(&mut self, above: u64, draw: impl FnOnce() -> u32) -> bool {
        let struck = match self {
            Spacing::Open => false,
            Spacing::Run { packets, product } => {
                *packets += 1;
                if above * *packets < u64::from(*product) {
                    return false;
                }
                true
            }
        };
        *self = Spacing::Run { packets: 0, product: draw() };
        struck
    }
}

/// The last cell of tc's table, which stands for every longer time.
const CELLS: u64 = 255;
/// Bounds and largest step of an adapted probability, of 2³²: 1 %, 50 %, 1 % (Floyd, Gummadi and Shenker 2001 §3).
const TOP_MIN: u32 = 42_949_673;
const TOP_MAX: u32 = 50 * TOP_MIN;
const TOP_STEP: u32 = TOP_MIN;

#[cfg(test)]
impl Law {
    /// With an average of so many bytes, and not idle.
    pub fn at(mut self, bytes: u64) -> Law {
        (self.average.scaled, self.average.idle) = (bytes << self.average.tc.wlog, None);
        self
    }
    pub fn idle_since(&self) -> Option<Time> {
        self.average.idle
    }
    pub fn top(&self) -> u32 {
        self.slope.top
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TYPICAL;
    use super::*;
    use crate::discipline::spec;

    fn law() -> Law {
        Law::new(&spec(TYPICAL), Stream::new(1, "t"))
    }

    #[test]
    fn the_average_follows_a_sixteenth_of_the_way() {
        let mut a = law().at(0).average;
        a.arrival(Time(0), 16_000);
        assert_eq!(a.length_at(Time(0)), 1_000);
        a.arrival(Time(0), 16_000);
        assert_eq!(a.length_at(Time(0)), 1_000 + 15_000 / 16);
    }

    #[test]
    fn an_idle_time_lowers_it_along_a_line_and_then_by_halves() {
        // Cells of 32.768 ms. A quarter of one takes a quarter off, three quarters would take more than a half: that is the least in the first 13
        // cells. From there on the table says one halving, in the end 31.
        let mut a = law().at(64_000).average;
        a.idle = Some(Time(0));
        let at = |micros: u64| a.length_at(Time(micros * 1_000));
        assert_eq!([at(0), at(8_192), at(24_576), at(12 * 32_768)], [64_000, 48_000, 32_000, 32_000]);
        assert_eq!([at(13 * 32_768), at(1_000 * 32_768)], [32_000, 0]);
        assert_eq!(at(26 * 32_768), 64_000 >> a.tc.damping[26]);
        // The packet that ends the idle time adds nothing of its own.
        a.arrival(Time(8_192_000), 5_000);
        assert_eq!((a.length_at(Time(8_192_000)), a.idle), (48_000, None));
    }

    #[test]
    fn strikes_are_evenly_spaced_at_the_average_they_were_drawn_for() {
        // Half-way between min and max at 0.1: evenly between 1 and 1 / 0.05 = 20 packets from strike to strike.
        let mut law = law().at(21_434 + 42_870 / 2);
        let fates: Vec<bool> = (0..40_000).map(|_| law.fate() == Fate::Early).collect();
        let hits: Vec<usize> = (0..fates.len()).filter(|&i| fates[i]).collect();
        assert!((3_700..3_900).contains(&hits.len()), "{}", hits.len());
        let mut lengths = [0u32; 21];
        hits.windows(2).for_each(|w| lengths[w[1] - w[0]] += 1);
        assert!(lengths[1..].iter().all(|n| (130..260).contains(n)), "{lengths:?}");
    }

    #[test]
    fn a_run_ends_when_packets_times_bytes_reach_the_draw() {
        let mut spacing = Spacing::Open;
        assert!(!spacing.ends(1_000, || 3_500), "the first only begins a run");
        let struck: Vec<bool> = (0..4).map(|_| spacing.ends(1_000, || 0)).collect();
        assert_eq!(struck, [false, false, false, true]);
        assert!(spacing.ends(0, || 9), "nothing drawn, nothing waited for");
        // The average may move meanwhile: 2 packets of 4 B above are enough for 9 only with a third.
        assert!(!spacing.ends(4, || 0) && !spacing.ends(4, || 0) && spacing.ends(4, || 0));
    }

    #[test]
    fn the_thresholds_are_min_and_just_below_max() {
        for (bytes, fate) in [(21_433, Fate::Pass), (64_303, Fate::Pass), (64_304, Fate::Forced)] {
            assert_eq!(law().at(bytes).fate(), fate, "{bytes}");
        }
        let mut inside = law().at(64_303);
        inside.spacing = Spacing::Run { packets: 0, product: 42_869 };
        assert_eq!(inside.clone().fate(), Fate::Early);
        inside.average.scaled = 80_000 << 4;
        assert_eq!((inside.fate(), inside.spacing), (Fate::Forced, Spacing::Open), "outside, a run is given up");
    }

    #[test]
    fn the_slope_is_the_probability_over_the_width() {
        // 0.1 · 2³² / 42870 B = 10018.6, cut; a draw is below 2³² / 10018 = 428726 = 42870 B / 0.1 and a little.
        let slope = law().slope;
        assert_eq!((slope.top, slope.per_unit), (429_496_729, 10_018));
        assert!((0..1_000).all(|i| slope.draw(&mut Stream::new(i, "t")) <= 428_725));
    }

    /// A quarter of a cell takes a quarter; half a cell and more take a half.
    #[test]
    fn before_the_first_halving_the_average_falls_along_a_line() {
        assert_eq!([0, 2_048, 4_095, 4_096, 8_000].map(|us| along_line(64_000, us, 13)), [64_000, 48_000, 32_008, 32_000, 32_000]);
    }

    #[test]
    fn an_adapted_probability_moves_by_a_quarter_or_a_hundredth_and_by_a_tenth() {
        let mut law = law().at(60_000);
        law.slope.top = 4 * 20_000_000;
        law.adapt(Time(0));
        assert_eq!(law.slope.top, 100_000_000, "a quarter is less than a hundredth");
        law.adapt(Time(0));
        assert_eq!(law.slope.top, 125_000_000);
        law.slope.top = TOP_MAX;
        law.adapt(Time(0));
        law.adapt(Time(0));
        assert_eq!(law.slope.top, TOP_MAX + TOP_STEP, "one step above a half at most");
        let mut law = law.at(30_000);
        law.slope.top = 100_000_000;
        law.adapt(Time(0));
        assert_eq!((law.slope.top, law.slope.per_unit), (90_000_000, 2_099), "90000000 / 42870 = 2099.4");
        // 0.4 and 0.6 of the way: 38582 and 47156 B.
        for bytes in [38_582, 47_156] {
            let mut still = law.clone().at(bytes);
            still.adapt(Time(0));
            assert_eq!(still.slope.top, 90_000_000, "{bytes}");
        }
    }
}
