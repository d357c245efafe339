//! htb with a single class: a token bucket that may go into debt.
//!
//! What it is: the use that most people make of htb, one class with a rate and a ceiling. A packet leaves when neither
//! bucket (rate, ceiling) is in debt and is charged afterwards, so a bucket of any size lets any packet through.
//! Source: tc-htb(8); defaults of `burst` and `cburst` as tc computes them.
//! How it differs: a class without a parent cannot borrow, so the lower of rate and ceiling rules, as in Linux.
//! What it does not model: several classes, priorities, quanta, filters, `direct_qlen`, `mpu`, `overhead`, `linklayer`.

use crate::discipline::{report_parent, AnyQdisc, Body, Child, Description, Discipline, Freed, Meter, Patch, Qdisc, StageStats};
use crate::parts::pace::{harmless, Pace};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Packet, Rate, Time};

/// An htb class's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HtbSpec<C> {
    /// Rate, bit/s.
    pub rate: Rate,
    /// Ceiling, bit/s; the rate when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceil: Option<Rate>,
    /// Bucket of the rate, B; tc's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Bucket of the ceiling, B; tc's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cburst: Option<u64>,
    /// Queue in place of the packet FIFO of 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<C>>,
}

/// tc's `mtu` for htb, B: what the default bucket holds.
const MTU: u64 = 1600;
/// tc's clock on a kernel with high-resolution timers, Hz: the default bucket also holds one tick at the rate.
const HZ: u64 = 1_000_000_000;
/// Most debt that is remembered: 60 s. docs/models/queues/htb.md
const DEBT_MAX: i64 = 60_000_000_000;

/// Packets of the FIFO where no child is given: the device's queue length (`txqueuelen` of veth and Ethernet).
const OWN_QUEUE: u64 = 1000;
/// In tc's order, which decides about shortened words.
const WORDS: [&str; 17] = [
    "rate",
    "ceil",
    "burst",
    "buffer",
    "maxburst",
    "cburst",
    "cbuffer",
    "cmaxburst",
    "default",
    "r2q",
    "quantum",
    "prio",
    "mtu",
    "mpu",
    "overhead",
    "linklayer",
    "classid",
];

impl<C> HtbSpec<C> {
    fn without_child(&self) -> HtbSpec<()> {
        let HtbSpec { rate, ceil, burst, cburst, .. } = *self;
        HtbSpec { rate, ceil, burst, cburst, child: None }
    }
}

impl<C: Child> Discipline for HtbSpec<C> {
    const NAME: &'static str = "htb";
    const EXAMPLE: &'static str = "htb rate 10mbit";
    const CHANGES: &'static [&'static str] = &["rate", "burst", "limit"];

    fn parse(w: &mut Words<'_>) -> Result<HtbSpec<C>, TcError> {
        let Given { rate, ceil, burst, cburst } = given(w)?;
        let rate = rate.ok_or_else(|| w.missing("rate", "rate 10mbit"))?;
        Ok(HtbSpec { rate, ceil, burst: burst.filter(|&b| b > 0), cburst: cburst.filter(|&b| b > 0), child: None })
    }
    fn words(&self) -> String {
        let mut t = format!("htb rate {}", print::rate(self.rate));
        if let Some(c) = self.ceil {
            t += &format!(" ceil {}", print::rate(c));
        }
        for (word, bytes) in [("burst", self.burst), ("cburst", self.cburst)] {
            if let Some(b) = bytes {
                t += &format!(" {word} {b}");
            }
        }
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        if self.rate.bytes_per_sec() == 0 || self.ceil.is_some_and(|c| c.bytes_per_sec() == 0) {
            return Err(SpecError::new("htb rate", "must be at least 8 bit/s"));
        }
        Ok(())
    }
    /// `htb default 1; class … htb rate R` is one htb here: a queue without a rate of its own (shortened or not), and its class.
    fn announces(words: &[&str]) -> bool {
        words.split_first().is_some_and(|(_, rest)| given(&mut Words::new(Self::NAME, rest)).is_ok_and(|given| given.rate.is_none()))
    }
    fn describe(&self) -> Description {
        let rate = self.ceil.map_or(self.rate, |ceil| ceil.min(self.rate));
        let bucket = |rate: Rate, bytes: Option<u64>| bytes.unwrap_or(rate.bytes_per_sec() / HZ + MTU);
        let bucket = bucket(self.rate, self.burst).max(bucket(self.ceil.unwrap_or(self.rate), self.cburst));
        // A debt that is forgotten is no rate.
        let remembers = Pace::new(rate.bytes_per_sec()).nanos(Description::largest_packet(Description::LEAST_MTU)) < DEBT_MAX;
        let burst_bytes = remembers.then_some(bucket);
        let stored_bytes = Some(self.burst.max(self.cburst).unwrap_or(1 << 20).saturating_add(OWN_QUEUE * 1_514));
        Description { rate_bps: Some(rate.0), burst_bytes, owes_a_packet: true, stored_bytes, ..Description::of(Self::NAME) }
    }
    fn describe_own_queue(&self) -> Option<Description> {
        self.child.is_none().then(|| C::pfifo(OWN_QUEUE).describe_alone())
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        let child = match &self.child {
            Some(c) => c.build(seed, name),
            None => C::pfifo(OWN_QUEUE).build(seed, name),
        };
        Box::new(Htb::new(self.without_child(), child, self.child.is_none()))
    }
}

/// What the words of a class name.
#[derive(Default)]
struct Given {
    rate: Option<Rate>,
    ceil: Option<Rate>,
    burst: Option<u64>,
    cburst: Option<u64>,
}

/// Reads the words of a class, or of the queue that announces it.
fn given(w: &mut Words<'_>) -> Result<Given, TcError> {
    let mut given = Given::default();
    while let Some(word) = w.word() {
        let key = w.keyword(word, &WORDS)?;
        match key {
            "rate" => w.once(&mut given.rate, key, |w| w.rate(key))?,
            "ceil" => w.once(&mut given.ceil, key, |w| w.rate(key))?,
            "burst" | "buffer" | "maxburst" => w.once(&mut given.burst, key, |w| w.size_and_cell(key))?,
            "cburst" | "cbuffer" | "cmaxburst" => w.once(&mut given.cburst, key, |w| w.size_and_cell(key))?,
            // They steer several classes, which there are none of here.
            "r2q" | "quantum" | "prio" => drop(w.count(key)?),
            "default" | "classid" => w.place(key)?,
            _ => harmless(w, key)?,
        }
    }
    Ok(given)
}

/// A bucket that may go into debt; times are ns.
#[derive(Clone, Copy, Debug)]
struct Purse {
    pace: Pace,
    depth: i64,
    /// When it holds nothing and owes nothing, if nothing is taken: before now it holds the time since then, after now it is in debt.
    empty: i64,
}

impl Purse {
    /// tc sends the depth as whole microseconds in ticks of 64 ns, and the kernel keeps that.
    fn full(rate: Rate, bytes: Option<u64>) -> Purse {
        let per_sec = rate.bytes_per_sec().max(1);
        let bytes = bytes.filter(|&b| b > 0).unwrap_or(per_sec / HZ + MTU);
        let micros = u128::from(bytes) * 1_000_000 / u128::from(per_sec);
        let depth = i64::try_from(micros * 125 / 8 * 64).unwrap_or(i64::MAX);
        Purse { pace: Pace::new(per_sec), depth, empty: -depth }
    }
    /// It holds no more than its depth at this time.
    #[inline]
    fn bounded(&self, at: i64) -> i64 {
        self.empty.max(at.saturating_sub(self.depth))
    }
    /// A packet leaves, so long after the last: page htb, "Paying".
    #[inline]
    fn pay(&mut self, now: i64, pause: i64, size: u32) {
        self.empty += (pause - DEBT_MAX).max(0);
        let empty = self.bounded(now) + self.pace.nanos(u64::from(size));
        self.empty = empty.min(now + DEBT_MAX - 1);
    }
}

/// The queue itself.
pub struct Htb<B> {
    spec: HtbSpec<()>,
    rate: Purse,
    ceil: Purse,
    last: Time,
    child: AnyQdisc<B>,
    passes_limit_on: bool,
    meter: Meter,
}

impl<B: Body> Htb<B> {
    /// Full buckets in front of `child`. `passes_limit_on`: the child is a FIFO that a change of the limit is meant for.
    pub fn new(spec: HtbSpec<()>, child: AnyQdisc<B>, passes_limit_on: bool) -> Htb<B> {
        let (rate, ceil) = Self::purses(&spec);
        Htb { spec, rate, ceil, last: Time::ZERO, child, passes_limit_on, meter: Meter::default() }
    }
    fn purses(s: &HtbSpec<()>) -> (Purse, Purse) {
        (Purse::full(s.rate, s.burst), Purse::full(s.ceil.unwrap_or(s.rate), s.cburst))
    }
    /// When both debts are paid.
    #[inline]
    fn ready(&self) -> Time {
        self.last.max(Time(self.rate.empty.max(self.ceil.empty).max(0) as u64))
    }
}

impl<B: Body> Qdisc<B> for Htb<B> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let taken = self.child.enqueue(now, p, freed);
        self.meter.held(self.child.packets(), self.child.bytes());
        taken
    }
    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        if now < self.ready() || self.child.packets() == 0 {
            // A class without packets is not asked.
            return None;
        }
        let p = self.child.dequeue(now, freed)?;
        let pause = now.since(self.last).0 as i64;
        self.rate.pay(now.0 as i64, pause, p.size);
        self.ceil.pay(now.0 as i64, pause, p.size);
        self.last = now;
        self.meter.leave(&p);
        Some(p)
    }
    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        if now < self.ready() {
            return None;
        }
        self.child.peek(now, freed)
    }
    #[inline]
    fn next_event(&self) -> Time {
        if self.child.packets() == 0 {
            return Time::MAX;
        }
        self.ready().max(self.child.next_event())
    }
    fn below(&self) -> Option<&dyn Qdisc<B>> {
        Some(self.child.as_ref())
    }
    fn change(&mut self, now: Time, depth: usize, patch: &Patch) {
        if depth > 0 {
            return self.child.change(now, depth - 1, patch);
        }
        if let Some(rate) = patch.rate {
            // A single class: rate and ceiling move together unless the ceiling was lower.
            self.spec.ceil = self.spec.ceil.filter(|&c| c != self.spec.rate).map(|c| c.min(rate));
            self.spec.rate = rate;
        }
        self.spec.burst = patch.burst.or(self.spec.burst);
        if patch.limit.is_some() && self.passes_limit_on {
            self.child.change(now, 0, &Patch { limit: patch.limit, ..Default::default() });
        }
        // htb keeps its tokens over a change, within the new depth.
        let (rate, ceil) = Self::purses(&self.spec);
        for (old, new) in [(&mut self.rate, rate), (&mut self.ceil, ceil)] {
            *old = Purse { empty: old.empty, ..new };
            old.empty = old.bounded(self.last.0 as i64);
        }
    }
    fn current(&self, depth: usize) -> Patch {
        if depth > 0 {
            return self.child.current(depth - 1);
        }
        Patch { rate: Some(self.spec.rate), burst: self.spec.burst, limit: self.child.current(0).limit, ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        report_parent(&self.meter, "htb", self.child.as_ref(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QdiscSpec;

    #[test]
    fn tcs_default_bucket_at_60_mbit_is_212992_ns() {
        // 1600 B at 7.5 MB/s = 213.33 µs → 213 µs → 3328 ticks of 64 ns, as tc sends it
        assert_eq!(Purse::full(Rate(60_000_000), None).depth, 212_992);
        // 10 KiB at 1.25 MB/s = 8192 µs = 128000 ticks
        assert_eq!(Purse::full(Rate(10_000_000), Some(10_240)).depth, 128_000 * 64);
    }

    /// A byte takes 1 µs, and the bucket holds 10 ms.
    #[test]
    fn a_debt_is_less_than_60_s_and_of_a_pause_60_s_count() {
        const S: i64 = 1_000_000_000;
        let mut purse = Purse::full(Rate(8_000_000), Some(10_000));
        purse.pay(0, 0, 4_000);
        assert_eq!(purse.empty, -6_000_000, "6 ms are left");
        purse.pay(0, 0, 100_000_000);
        assert_eq!(purse.empty, 60 * S - 1, "of 100 s");
        purse.pay(70 * S, 70 * S, 0);
        assert_eq!(purse.empty, 70 * S - 1, "60 of the 70 s have paid all but the nanosecond that is left over");
        purse.pay(71 * S, S, 0);
        assert_eq!(purse.empty, 71 * S - 10_000_000, "no more than the depth");
    }

    #[test]
    fn the_long_run_rate_is_the_lower_of_rate_and_ceiling() {
        for (rate, ceil, want) in [(10_000_000, 20_000_000, 10_000_000), (20_000_000, 10_000_000, 10_000_000)] {
            let s = HtbSpec { rate: Rate(rate), ceil: Some(Rate(ceil)), burst: None, cburst: None, child: None };
            let mut q: Htb<()> = Htb::new(s, QdiscSpec::pfifo(OWN_QUEUE).build(1, "t"), true);
            let (mut f, mut now, mut n) = (Freed::default(), Time::ZERO, 0u64);
            while now < Time(2_000_000_000) {
                q.enqueue(now, Packet { size: 1514, segs: 1, ..Default::default() }, &mut f);
                match q.dequeue(now, &mut f) {
                    Some(p) => n += u64::from(p.size),
                    None => now = q.next_event(),
                }
            }
            let got = n as f64 * 8.0 / 2.0;
            assert!((got / want as f64 - 1.0).abs() < 0.002, "{got}");
        }
    }
}
