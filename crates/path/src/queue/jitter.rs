//! Delay variation with a choice of order: our own stage, beside netem's.
//!
//! What it is: `jitter delay 25ms 8ms distribution normal order clamp`. Three kinds:
//! - `reorder`: independent draws, release by due time, as netem;
//! - `clamp`: independent draws, no packet before the one ahead of it: a running maximum, which raises the mean delay;
//! - `correlated` (`tau 50ms`): the delay is an Ornstein–Uhlenbeck process seen at the packets' times, which nearly keeps
//!   mean and spread; order is kept besides by never passing the packet ahead.
//!
//! Source: netem's draws (tc-netem(8)); Uhlenbeck and Ornstein 1930, exact update of Gillespie 1996. Negative delays are 0.
//! How it differs: not in Linux. The normal draws of `correlated` come from netem's normal table, cut at −4σ.
//! What it does not model: loss and the other impairments: put a netem stage beside it.

use crate::discipline::{AnyQdisc, Body, Cause, Description, Discipline, Freed, Meter, Patch, Qdisc, StageStats, DELAY_MAX};
use crate::parts::dist::{self, Table};
use crate::parts::due::{Due, Held};
use crate::values::{Dist, SpecError};
use crate::words::{print, TcError, Words};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Packet, Stream, Time};

/// What becomes of the packets' order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By due time: packets overtake.
    Reorder,
    /// Kept by waiting for the packet ahead.
    #[default]
    Clamp,
    /// Kept, with a delay that wanders.
    Correlated,
}

/// The stage's parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Mean delay asked for.
    pub delay: Duration,
    /// Spread asked for, as in netem.
    #[serde(default)]
    pub jitter: Duration,
    /// Distribution; `correlated` knows only normal.
    #[serde(default)]
    pub distribution: Dist,
    /// What becomes of the order.
    #[serde(default)]
    pub order: Order,
    /// Time constant of `correlated`.
    #[serde(default = "default_tau")]
    pub tau: Duration,
    /// Packets held at most.
    #[serde(default = "default_limit")]
    pub limit: u32,
}

/// Time constant of `correlated` when none is given.
pub const TAU: Duration = Duration(50_000_000);
/// Packets held when nothing is said, as in netem.
const LIMIT: u32 = 1000;

fn default_tau() -> Duration {
    TAU
}
fn default_limit() -> u32 {
    LIMIT
}

impl Discipline for JitterSpec {
    const NAME: &'static str = "jitter";
    const EXAMPLE: &'static str = "jitter delay 25ms 8ms distribution normal order clamp";
    const CHANGES: &'static [&'static str] = &["delay", "jitter", "limit"];

    fn parse(w: &mut Words<'_>) -> Result<JitterSpec, TcError> {
        let mut s = JitterSpec {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            distribution: Dist::Uniform,
            order: Order::Clamp,
            tau: TAU,
            limit: default_limit(),
        };
        let (mut dist, mut delay) = (None, None);
        while let Some(word) = w.word() {
            let key = w.keyword(word, &["delay", "distribution", "order", "tau", "limit"])?;
            match key {
                "delay" => {
                    w.once(&mut delay, key, |w| w.time(key))?;
                    if let Some(j) = w.number_word() {
                        s.jitter = w.as_time(j, key)?;
                    }
                }
                "distribution" => {
                    let name = w.value(key)?;
                    let known = "there is no such distribution: expected uniform, normal, pareto or paretonormal";
                    dist = Some(Dist::named(name).ok_or_else(|| w.wrong(name, known))?);
                }
                "order" => {
                    s.order = match w.value(key)? {
                        "reorder" => Order::Reorder,
                        "clamp" => Order::Clamp,
                        "correlated" => Order::Correlated,
                        other => return Err(w.wrong(other, "there is no such order: expected reorder, clamp or correlated")),
                    }
                }
                "tau" => s.tau = w.time(key)?,
                _ => s.limit = w.packets(key)?,
            }
        }
        s.delay = delay.ok_or_else(|| w.missing("delay", "delay 25ms 8ms"))?;
        s.distribution = dist.unwrap_or(if s.order == Order::Correlated { Dist::Normal } else { Dist::Uniform });
        if s.order != Order::Correlated {
            s.tau = TAU;
        }
        Ok(s)
    }
    fn words(&self) -> String {
        let mut t = format!("jitter limit {} delay {} {}", self.limit, print::time(self.delay), print::time(self.jitter));
        if self.distribution != Dist::Uniform {
            t += &format!(" distribution {}", self.distribution.name());
        }
        match self.order {
            Order::Reorder => t + " order reorder",
            Order::Clamp => t + " order clamp",
            Order::Correlated => t + &format!(" order correlated tau {}", print::time(self.tau)),
        }
    }
    fn validate(&self) -> Result<(), SpecError> {
        if self.delay > DELAY_MAX || self.jitter.0 > i32::MAX as u64 {
            return Err(SpecError::new("jitter delay", "must stay below a day, the spread below 2.147 s"));
        }
        if self.order == Order::Correlated && self.distribution != Dist::Normal {
            return Err(SpecError::new("jitter distribution", "must be normal with order correlated"));
        }
        if self.order == Order::Correlated && self.tau.0 == 0 {
            return Err(SpecError::new("jitter tau", "must be above 0, for example 50ms"));
        }
        Ok(())
    }
    fn describe(&self) -> Description {
        Description {
            delay_ns: self.delay.0,
            jitter_ns: self.jitter.0,
            distribution: (self.jitter.0 > 0).then_some(self.distribution),
            spread_ns: (self.jitter.0 == 0).then_some(0.0),
            in_order: self.jitter.0 == 0 || self.order != Order::Reorder,
            ..Description::of_packets(Self::NAME, self.limit)
        }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Jitter::new(self, seed, name))
    }
}

/// The wandering delay, in units of its spread.
#[derive(Clone, Debug)]
struct Wander {
    tau: f64,
    at: Time,
    x: f64,
    started: bool,
}

impl Wander {
    /// One step of the process from a standard normal draw `z`: exact for any interval.
    fn step(&mut self, now: Time, z: f64) -> f64 {
        let keep = if self.started { exp_neg(now.since(self.at).0 as f64 / self.tau) } else { 0.0 };
        self.x = self.x * keep + (1.0 - keep * keep).max(0.0).sqrt() * z;
        self.at = now;
        self.started = true;
        self.x
    }
}

/// e^−x for x ≥ 0 to about 1e-15, in plain multiplications, so that it is the same on every machine.
fn exp_neg(x: f64) -> f64 {
    if x > 40.0 {
        return 0.0;
    }
    // e^−x = (e^−x/64)^64; the series needs few terms below 40/64.
    let y = x / 64.0;
    let mut sum = 1.0;
    for k in (1..=14).rev() {
        sum = 1.0 - y / f64::from(k) * sum;
    }
    (0..6).fold(sum, |s, _| s * s)
}

/// The stage at run time.
pub struct Jitter<B> {
    delay: i64,
    jitter: i32,
    limit: u64,
    order: Order,
    table: Option<&'static Table>,
    wander: Wander,
    random: Stream,
    queue: Due<B>,
    latest: i64,
    backlog: u64,
    peeked: Option<Held<B>>,
    meter: Meter,
}

impl<B: Body> Jitter<B> {
    /// Empty; its stream is `name/delay`.
    pub fn new(s: &JitterSpec, seed: u64, name: &str) -> Jitter<B> {
        Jitter {
            delay: s.delay.0 as i64,
            jitter: s.jitter.0 as i32,
            limit: u64::from(s.limit),
            order: s.order,
            table: dist::table(s.distribution),
            wander: Wander { tau: s.tau.0 as f64, at: Time::ZERO, x: 0.0, started: false },
            random: Stream::new(seed, &format!("{name}/delay")),
            queue: Due::default(),
            latest: i64::MIN,
            backlog: 0,
            peeked: None,
            meter: Meter::default(),
        }
    }
    fn draw(&mut self, now: Time) -> i64 {
        if self.jitter == 0 {
            return self.delay;
        }
        let rnd = self.random.next_u32();
        if self.order != Order::Correlated {
            return dist::sample(self.delay, self.jitter, rnd, self.table);
        }
        let z = self.table.map_or(0, |t| t[rnd as usize % dist::ENTRIES]);
        let x = self.wander.step(now, f64::from(z) / dist::SCALE as f64);
        self.delay + (x * f64::from(self.jitter)).round_ties_even() as i64
    }
}

impl<B: Body> Qdisc<B> for Jitter<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        if self.packets() >= self.limit {
            self.meter.drops(Cause::Limit, &p);
            freed.dropped(Cause::Limit, &p);
            return false;
        }
        let mut due = now.0 as i64 + self.draw(now).max(0);
        if self.order != Order::Reorder {
            due = due.max(self.latest);
            self.latest = due;
        }
        self.backlog += u64::from(p.size);
        let ticket = self.meter.ticket();
        self.queue.push(Held { due, arrived: now, ticket, packet: p });
        let packets = self.packets();
        self.meter.held(packets, self.backlog);
        true
    }
    fn dequeue(&mut self, now: Time, _: &mut Freed) -> Option<Packet<B>> {
        let ready = self.queue.first_due().is_some_and(|d| d <= now.0 as i64);
        let h = self.peeked.take().or_else(|| if ready { self.queue.pop() } else { None })?;
        self.backlog -= u64::from(h.packet.size);
        self.meter.leave(&h.packet);
        self.meter.delay(now, h.arrived, h.ticket);
        Some(h.packet)
    }
    fn peek(&mut self, now: Time, _: &mut Freed) -> Option<u32> {
        if self.peeked.is_none() && self.queue.first_due().is_some_and(|d| d <= now.0 as i64) {
            self.peeked = self.queue.pop();
        }
        self.peeked.as_ref().map(|h| h.packet.size)
    }
    fn next_event(&self) -> Time {
        if self.peeked.is_some() {
            return Time::ZERO;
        }
        self.queue.first_due().map_or(Time::MAX, |d| Time(d as u64))
    }
    fn packets(&self) -> u64 {
        (self.queue.len() + usize::from(self.peeked.is_some())) as u64
    }
    fn bytes(&self) -> u64 {
        self.backlog
    }
    fn orphans(&self) -> bool {
        true
    }
    fn change(&mut self, _: Time, depth: usize, patch: &Patch) {
        if depth == 0 {
            self.delay = patch.delay.map_or(self.delay, |d| d.0 as i64);
            self.jitter = patch.jitter.map_or(self.jitter, |j| i32::try_from(j.0).unwrap_or(i32::MAX));
            self.limit = patch.limit.unwrap_or(self.limit);
        }
    }
    fn current(&self, _: usize) -> Patch {
        Patch {
            delay: Some(Duration(self.delay as u64)),
            jitter: Some(Duration(self.jitter as u64)),
            limit: Some(self.limit),
            ..Default::default()
        }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        out.push(self.meter.report("jitter", self.packets(), self.backlog));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exp() {
        for x in [0.0, 1e-9, 0.02, 0.5, 1.0, 3.7, 20.0, 39.0] {
            assert!((exp_neg(x) / f64::exp(-x) - 1.0).abs() < 1e-12, "{x}");
        }
        assert_eq!(exp_neg(1e9), 0.0);
    }

    #[test]
    fn the_wandering_delay_has_unit_spread_and_the_asked_correlation() {
        // steps of τ/5: correlation e^−0.2 = 0.8187
        let mut s = Stream::new(3, "z");
        let t = dist::table(Dist::Normal).unwrap();
        let mut w = Wander { tau: 50e6, at: Time::ZERO, x: 0.0, started: false };
        let xs: Vec<f64> = (0..400_000u64)
            .map(|i| w.step(Time(i * 10_000_000), f64::from(t[s.next_u32() as usize % dist::ENTRIES]) / dist::SCALE as f64))
            .collect();
        let n = xs.len() as f64;
        let mean = xs.iter().sum::<f64>() / n;
        let var = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let cov = xs.windows(2).map(|p| (p[0] - mean) * (p[1] - mean)).sum::<f64>() / n;
        assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.03 && (cov / var - 0.8187).abs() < 0.01, "{mean} {var} {cov}");
    }
}
