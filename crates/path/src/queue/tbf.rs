//! tbf, the token bucket filter: a rate with a bucket, in front of a queue.
//!
//! What it is: tokens are time, filled at wall speed up to `burst / rate`; a packet leaves when the bucket holds the time
//! it takes at the rate (and, with a peak rate, when that smaller bucket holds its time too).
//! Source: tc-tbf(8).
//! How it differs: a change of parameters acts at once on the packet that waits, where Linux looks again at its old
//! timer or at the next arrival, whichever is first. Offloaded packets are always cut when they exceed the bucket.
//! What it does not model: `mpu`, `overhead` and `linklayer` (refused).

use super::fifo::{BfifoSpec, Fifo};
use crate::discipline::{
    report_parent, segments, AnyQdisc, Body, Cause, Child, Description, Discipline, Freed, Meter, Patch, Qdisc, StageStats,
};
use crate::parts::pace::{harmless, Pace};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use serde::{Deserialize, Serialize};
use tcpscape_base::{Duration, Packet, Rate, Time};

/// Bytes of the least frame of Ethernet (IEEE 802.3), which a bucket must hold for anything to pass.
const LEAST_FRAME: u64 = 64;

/// A tbf's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TbfSpec<C> {
    /// Rate, bit/s.
    pub rate: Rate,
    /// Bucket, B.
    pub burst: u64,
    /// Queue in front of it, B; a child queue replaces it.
    pub limit: u64,
    /// Peak rate, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peakrate: Option<Rate>,
    /// Bucket of the peak rate, B; needed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u64>,
    /// Queue in place of the byte FIFO.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<C>>,
}

impl<C> TbfSpec<C> {
    fn without_child(&self) -> TbfSpec<()> {
        let TbfSpec { rate, burst, limit, peakrate, mtu, .. } = *self;
        TbfSpec { rate, burst, limit, peakrate, mtu, child: None }
    }
}

impl<C: Child> Discipline for TbfSpec<C> {
    const NAME: &'static str = "tbf";
    const EXAMPLE: &'static str = "tbf rate 10mbit burst 6056 limit 62500";
    const CHANGES: &'static [&'static str] = &["rate", "burst", "limit"];

    fn parse(w: &mut Words<'_>) -> Result<TbfSpec<C>, TcError> {
        let (mut rate, mut burst, mut limit, mut latency, mut peak, mut mtu) = (None, None, None, None, None, None);
        while let Some(word) = w.word() {
            let known =
                ["limit", "latency", "burst", "buffer", "maxburst", "mtu", "minburst", "mpu", "rate", "peakrate", "overhead", "linklayer"];
            let key = w.keyword(word, &known)?;
            match key {
                "limit" => w.once(&mut limit, key, |w| w.size(key))?,
                "latency" => w.once(&mut latency, key, |w| w.long_time(key))?,
                "burst" | "buffer" | "maxburst" => w.once(&mut burst, key, |w| w.size_and_cell(key))?,
                "mtu" | "minburst" => w.once(&mut mtu, key, |w| w.size_and_cell(key))?,
                "rate" => w.once(&mut rate, key, |w| w.rate(key))?,
                "peakrate" => w.once(&mut peak, key, |w| w.rate(key))?,
                _ => harmless(w, key)?,
            }
            if limit.is_some() && latency.is_some() {
                return Err(w.wrong(word, "limit and latency say the same thing twice: give one of them"));
            }
        }
        let rate = rate.ok_or_else(|| w.missing("rate", "rate 10mbit"))?;
        let burst: u64 =
            burst.filter(|&b| b >= LEAST_FRAME).ok_or_else(|| w.missing("burst", "burst 6056 (bytes; at least a full frame, 1514)"))?;
        if peak.is_some() && mtu.is_none() {
            return Err(w.missing("mtu", "mtu 1514 (it is needed with peakrate)"));
        }
        // tc: the bytes that the rate carries in the latency, plus the bucket; with a peak rate the smaller of both.
        let from_latency = latency.map(|l| {
            let bytes = |rate: Rate, bucket: u64| (rate.bytes_per_sec() as f64 * l.secs_f64()) as u64 + bucket;
            let l1 = bytes(rate, burst);
            let least = peak.map_or(l1, |p| l1.min(bytes(p, mtu.unwrap_or(0))));
            // tc sends 32 bits.
            least.min(u64::from(u32::MAX))
        });
        let limit = limit.or(from_latency).filter(|&l| l > 0 && latency != Some(Duration::ZERO));
        let limit = limit.ok_or_else(|| w.missing("limit or latency", "limit 62500 (bytes) or latency 50ms"))?;
        Ok(TbfSpec { rate, burst, limit, peakrate: peak, mtu: peak.and(mtu), child: None })
    }
    fn words(&self) -> String {
        let mut t = format!("tbf rate {} burst {} limit {}", print::rate(self.rate), self.burst, self.limit);
        if let (Some(p), Some(m)) = (self.peakrate, self.mtu) {
            t += &format!(" peakrate {} mtu {m}", print::rate(p));
        }
        t
    }
    fn validate(&self) -> Result<(), SpecError> {
        if self.rate.bytes_per_sec() == 0 {
            return Err(SpecError::new("tbf rate", "must be at least 8 bit/s"));
        }
        if self.burst < LEAST_FRAME || self.burst > u64::from(u32::MAX) {
            return Err(SpecError::new(
                "tbf burst",
                "must be from 64 bytes, the least frame of Ethernet, to 4294967295 bytes (a full frame is 1514)",
            ));
        }
        if let Some(p) = self.peakrate {
            if p <= self.rate {
                return Err(SpecError::new("tbf peakrate", "must be above rate"));
            }
            if self.mtu.unwrap_or(0) == 0 {
                return Err(SpecError::new("tbf mtu", "is needed with peakrate: give a full frame, 1514, or more"));
            }
        }
        Ok(())
    }
    fn describe(&self) -> Description {
        Description {
            rate_bps: Some(self.rate.0),
            burst_bytes: Some(self.burst),
            stored_bytes: Some(self.burst.saturating_add(self.limit)),
            ..Description::of(Self::NAME)
        }
    }
    fn describe_own_queue(&self) -> Option<Description> {
        self.child.is_none().then(|| C::bfifo(self.limit).describe_alone())
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        match &self.child {
            Some(c) => Box::new(Tbf::new(self.without_child(), c.build::<B>(seed, name), c.name() == BfifoSpec::NAME)),
            None => Box::new(Tbf::new(self.without_child(), Fifo::bytes(self.limit), true)),
        }
    }
}

/// A bucket: what a packet costs, and what it holds at most, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    pace: Pace,
    depth: i64,
}

impl Bucket {
    fn new(rate: Rate, bytes: u64) -> Bucket {
        let pace = Pace::new(rate.bytes_per_sec());
        Bucket { pace, depth: pace.nanos(bytes) }
    }
    /// What is left of so much when a packet leaves.
    #[inline]
    fn paid(&self, tokens: i64, size: u32) -> i64 {
        tokens.min(self.depth) - self.pace.nanos(u64::from(size))
    }
}

/// What both buckets hold, ns; the peak rate's holds nothing where there is none.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    main: i64,
    peak: i64,
}

/// The queue itself, in front of a child of this kind.
pub struct Tbf<Q> {
    spec: TbfSpec<()>,
    main: Bucket,
    peak: Option<Bucket>,
    /// What was left when the last packet had left.
    tokens: Tokens,
    last: Time,
    max_size: u32,
    wake: Time,
    child: Q,
    passes_limit_on: bool,
    meter: Meter,
}

impl<Q> Tbf<Q> {
    /// A full bucket in front of `child`. `passes_limit_on`: the child is a byte FIFO, whose limit is that of the specification.
    pub fn new(spec: TbfSpec<()>, child: Q, passes_limit_on: bool) -> Tbf<Q> {
        let (main, tokens, meter) = Default::default();
        let (last, wake) = (Time::ZERO, Time::ZERO);
        let mut q = Tbf { spec, main, peak: None, tokens, last, max_size: 0, wake, child, passes_limit_on, meter };
        q.refill();
        q
    }
    /// New parameters fill the buckets, as `tc qdisc change` does.
    fn refill(&mut self) {
        let s = &self.spec;
        let mtu = s.mtu.unwrap_or(s.burst);
        self.main = Bucket::new(s.rate, s.burst);
        self.peak = s.peakrate.map(|p| Bucket::new(p, mtu));
        self.tokens = Tokens { main: self.main.depth, peak: self.peak.map_or(0, |b| b.depth) };
        let max = if self.peak.is_some() { s.burst.min(mtu) } else { s.burst };
        self.max_size = u32::try_from(max).unwrap_or(u32::MAX);
        self.wake = Time::ZERO;
    }
}

impl<Q> Tbf<Q> {
    /// What the buckets hold when a packet of this size leaves now: page tbf, "Paying".
    #[inline]
    fn paid(&self, now: Time, size: u32) -> Tokens {
        let gained = (now.since(self.last).0 as i64).min(self.main.depth);
        Tokens {
            main: self.main.paid(self.tokens.main + gained, size),
            peak: self.peak.map_or(0, |b| b.paid(self.tokens.peak + gained, size)),
        }
    }
    /// The size of the next packet and what the buckets hold after it, if it may leave now; otherwise remembers when it may.
    #[inline]
    fn offer<B>(&mut self, now: Time, freed: &mut Freed) -> Option<(u32, Tokens)>
    where
        Q: Qdisc<B>,
    {
        if now < self.wake {
            return None;
        }
        self.wake = Time::ZERO;
        let size = self.child.peek(now, freed)?;
        self.afford(now, size).map(|left| (size, left))
    }
    /// What the buckets hold when a packet of this size leaves now; none, and when it may leave, where they do not suffice.
    #[inline]
    fn afford(&mut self, now: Time, size: u32) -> Option<Tokens> {
        let left = self.paid(now, size);
        let debt = -left.main.min(left.peak);
        if debt > 0 {
            self.wake = Time(now.0.saturating_add(debt as u64));
            return None;
        }
        Some(left)
    }
}

impl<B: Body, Q: Qdisc<B>> Qdisc<B> for Tbf<Q> {
    fn enqueue(&mut self, now: Time, p: Packet<B>, freed: &mut Freed) -> bool {
        self.meter.arrive(&p);
        let mut taken = false;
        if p.size <= self.max_size {
            taken = self.child.enqueue(now, p, freed);
        } else if p.segs > 1 && segments(&p).all(|s| s.size <= self.max_size) {
            self.meter.cut(p.segs);
            for s in segments(&p) {
                taken |= self.child.enqueue(now, s, freed);
            }
        } else {
            self.meter.drops(Cause::Oversize, &p);
            freed.dropped(Cause::Oversize, &p);
        }
        self.meter.held(self.child.packets(), self.child.bytes());
        taken
    }

    fn dequeue(&mut self, now: Time, freed: &mut Freed) -> Option<Packet<B>> {
        let (_, left) = self.offer(now, freed)?;
        let taken = self.child.dequeue(now, freed);
        self.meter.leave(taken.as_ref()?);
        (self.tokens, self.last) = (left, now);
        // What can be looked at in place need not be asked for once more.
        if let Some(size) = self.child.head() {
            self.afford(now, size);
        }
        taken
    }

    fn peek(&mut self, now: Time, freed: &mut Freed) -> Option<u32> {
        self.offer(now, freed).map(|(size, _)| size)
    }

    #[inline]
    fn next_event(&self) -> Time {
        self.wake.max(self.child.next_event())
    }
    fn below(&self) -> Option<&dyn Qdisc<B>> {
        Some(&self.child)
    }
    fn change(&mut self, now: Time, depth: usize, patch: &Patch) {
        if depth > 0 {
            return self.child.change(now, depth - 1, patch);
        }
        let old_rate = self.spec.rate;
        self.spec.rate = patch.rate.unwrap_or(old_rate);
        self.spec.burst = patch.burst.unwrap_or(self.spec.burst);
        if let Some(limit) = patch.limit {
            self.spec.limit = limit;
            // Only its own kind of queue hears of it.
            if self.passes_limit_on {
                self.child.change(now, 0, &Patch { limit: Some(limit), ..Default::default() });
            }
        }
        let held = self.paid(now, 0).main;
        self.refill();
        if patch.keep_tokens {
            // The same bytes at the new rate.
            let held = i128::from(held) * i128::from(old_rate.0) / i128::from(self.spec.rate.0.max(1));
            self.tokens.main = (held as i64).min(self.main.depth);
            self.last = now;
        }
    }
    fn current(&self, depth: usize) -> Patch {
        if depth > 0 {
            return self.child.current(depth - 1);
        }
        Patch { rate: Some(self.spec.rate), burst: Some(self.spec.burst), limit: Some(self.spec.limit), ..Default::default() }
    }
    fn report(&self, out: &mut Vec<StageStats>) {
        report_parent(&self.meter, "tbf", &self.child, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::spec;
    use crate::QdiscSpec;

    fn tbf(words: &str) -> Tbf<Fifo<u32>> {
        let s: TbfSpec<QdiscSpec> = spec(words);
        Tbf::new(s.without_child(), Fifo::bytes(s.limit), true)
    }
    fn full(n: u32) -> Packet<u32> {
        Packet { size: 1514, segs: 1, body: n, ..Default::default() }
    }
    /// Departure times when `n` packets come at time 0 and every wake-up is obeyed.
    fn departures(q: &mut Tbf<Fifo<u32>>, n: u32) -> Vec<u64> {
        let (mut f, mut out, mut now) = (Freed::default(), vec![], Time::ZERO);
        (0..n).for_each(|i| assert!(q.enqueue(now, full(i), &mut f)));
        while q.packets() > 0 {
            match q.dequeue(now, &mut f) {
                Some(_) => out.push(now.0),
                None => now = q.next_event(),
            }
        }
        out
    }

    #[test]
    fn four_frames_of_burst_then_one_each_1_2112_ms() {
        // burst 6056 = 4 · 1514; 1514 B at 10 Mbit/s = 1.2112 ms
        let mut q = tbf("tbf rate 10mbit burst 6056 limit 62500");
        assert_eq!(departures(&mut q, 7), [0, 0, 0, 0, 1_211_200, 2_422_400, 3_633_600]);
    }

    #[test]
    fn the_peak_rate_spaces_the_burst() {
        // at 100 Mbit/s a frame takes 121.12 µs, and the peak bucket holds one
        let mut q = tbf("tbf rate 10mbit burst 6056 limit 62500 peakrate 100mbit mtu 1514");
        let d = departures(&mut q, 6);
        assert_eq!(d[..4], [0, 121_120, 242_240, 363_360]);
        // five frames need 6.056 ms of tokens; 4.8448 were there at the start
        assert_eq!(d[4..], [1_211_200, 2_422_400]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_never_leaves() {
        let mut q = tbf("tbf rate 10mbit burst 1500 limit 62500");
        q.enqueue(Time(0), full(0), &mut Freed::default());
        assert_eq!((q.packets(), q.meter.s.drops.oversize), (0, 1));
    }

    #[test]
    fn a_change_of_rate_fills_the_bucket_and_keeps_the_queue() {
        let mut q = tbf("tbf rate 10mbit burst 1514 limit 62500");
        let mut f = Freed::default();
        (0..5).for_each(|i| assert!(q.enqueue(Time(0), full(i), &mut f)));
        assert!(q.dequeue(Time(0), &mut f).is_some() && q.dequeue(Time(0), &mut f).is_none());
        q.change(Time(1000), 0, &Patch { rate: Some(Rate(20_000_000)), ..Default::default() });
        assert!(q.dequeue(Time(1000), &mut f).is_some() && q.dequeue(Time(1000), &mut f).is_none());
        assert_eq!(q.next_event(), Time(1000 + 605_600));
    }
}
