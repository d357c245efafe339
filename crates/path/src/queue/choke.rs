//! choke: red with a comparison, so that a flow that fills the queue meets itself.
//!
//! What it is: a FIFO limited in packets under RED's law. Once the average has reached `min`, each packet that comes is compared with one
//! drawn from the queue; if both are of one flow, both are dropped. What passes that is struck as red would, by the average.
//! Source: Pan, Prabhakar, Psounis 2000 ("CHOKe: a stateless active queue management scheme for approximating fair bandwidth allocation");
//! tc-choke(8); defaults as in messages that tc 6.1 sent.
//! How it differs: lengths are whole packets, as tc sends the thresholds, so that the average lies up to a packet above a constant length. An idle time begins when a packet is asked for and none is there, as in red; a
//! parent's look (tbf) leaves the packet where it stands. A drop of a flow of the same host is not told to its TCP.
//! What it does not model: several draws for one packet (the paper's multi-drop CHOKe), a change of its parameters while it runs.

use super::red::law::{Fate, Law};
use super::red::tc::Computed;
use super::red::RedSpec;
use crate::discipline::{Aged, AnyQdisc, Body, Books, Cause, Description, Discipline, Marking, Policy, Queued};
use crate::values::SpecError;
use crate::words::{print, TcError, Words};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcpscape_base::{Packet, Rate, Stream, Time};

/// choke's parameters, those that tc derives included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChokeSpec {
    /// Most that it holds, packets.
    pub limit: u32,
    /// Average below which nothing happens, packets.
    pub min: u32,
    /// Average from which every packet is struck, packets.
    pub max: u32,
    /// Packets whose burst the average forgives.
    pub burst: u32,
    /// Average packet, B.
    pub avpkt: u32,
    /// Rate at which the average is taken to decay in an idle time, bit/s.
    pub bandwidth: Rate,
    /// Probability just below `max`.
    pub probability: f64,
    /// Mark instead of dropping where a packet allows it; not the two that meet.
    #[serde(default)]
    pub ecn: bool,
}

const WORDS: [&str; 8] = ["limit", "bandwidth", "ecn", "min", "max", "burst", "avpkt", "probability"];
/// tc's defaults (messages of tc 6.1).
const PROBABILITY: f64 = 0.02;
const AVPKT: u32 = 1000;

impl ChokeSpec {
    /// The red from whose words tc computes the same weight and table, or a threshold that is too large.
    fn red(&self) -> Result<RedSpec, SpecError> {
        let bytes =
            |packets: u32| packets.checked_mul(self.avpkt).ok_or_else(|| wrong("max", "and avpkt give more than 4 GiB: lower one of them"));
        Ok(RedSpec {
            limit: u32::MAX,
            min: bytes(self.min)?,
            max: bytes(self.max)?,
            burst: self.burst,
            avpkt: self.avpkt,
            bandwidth: self.bandwidth,
            probability: self.probability,
            ecn: self.ecn,
            harddrop: false,
            nodrop: false,
            adaptive: false,
        })
    }
    /// What the kernel gets besides the parameters.
    pub fn computed(&self) -> Result<Computed, SpecError> {
        Computed::of(&self.red()?).map_err(|e| wrong(e.field.trim_start_matches("red "), &e.fix))
    }
}

fn wrong(field: &str, fix: &str) -> SpecError {
    SpecError::new(&format!("choke {field}"), fix)
}

impl Discipline for ChokeSpec {
    const NAME: &'static str = "choke";
    const EXAMPLE: &'static str = "choke limit 100 bandwidth 10mbit ecn";

    fn parse(w: &mut Words<'_>) -> Result<ChokeSpec, TcError> {
        let (mut limit, mut min, mut max, mut burst, mut avpkt, mut bandwidth) = (0, 0, 0, 0, AVPKT, None);
        let (mut probability, mut ecn) = (PROBABILITY, false);
        while let Some(word) = w.word() {
            let key = w.exact(word, &WORDS)?;
            match key {
                "limit" => limit = w.count(key)?,
                "min" => min = w.count(key)?,
                "max" => max = w.count(key)?,
                "burst" => burst = w.count(key)?,
                "avpkt" => avpkt = u32::try_from(w.size(key)?).unwrap_or(u32::MAX),
                "bandwidth" => bandwidth = Some(w.rate(key)?),
                "probability" => probability = w.fraction(key)?,
                _ => ecn = true,
            }
        }
        if limit == 0 {
            return Err(w.missing("limit", "limit 100 (packets)"));
        }
        let bandwidth = bandwidth.ok_or_else(|| w.missing("bandwidth", "bandwidth 10mbit"))?;
        let or = |n: u32, default: u32| if n > 0 { n } else { default };
        let max = or(max, limit / 4);
        let min = or(min, max / 3);
        let burst = or(burst, ((2 * u64::from(min) + u64::from(max)) / 3) as u32);
        Ok(ChokeSpec { limit, min, max, burst, avpkt, bandwidth, probability, ecn })
    }
    fn words(&self) -> String {
        let t = format!("choke limit {} min {} max {} avpkt {} burst {}", self.limit, self.min, self.max, self.avpkt, self.burst);
        let t = t + &format!(" bandwidth {} probability {}", print::rate(self.bandwidth), self.probability);
        if self.ecn {
            t + " ecn"
        } else {
            t
        }
    }
    fn validate(&self) -> Result<(), SpecError> {
        if self.limit == 0 || self.avpkt == 0 || self.bandwidth.bytes_per_sec() == 0 {
            return Err(wrong("limit", "avpkt and bandwidth must be above 0"));
        }
        if self.max <= self.min || self.max > self.limit {
            return Err(wrong("max", "must be above min and at most limit: limit 100 min 10 max 30"));
        }
        if !(self.probability > 0.0 && self.probability <= 1.0) {
            return Err(wrong("probability", "must be above 0 and at most 1, for example 0.02"));
        }
        self.computed().map(|_| ())
    }
    fn describe(&self) -> Description {
        Description { ecn: Marking::when(self.ecn), ..Description::of_packets(Self::NAME, self.limit) }
    }
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B> {
        Box::new(Queued::new(Choke::new(self, seed, name)))
    }
}

/// The queue itself.
pub struct Choke<B> {
    limit: u64,
    ecn: bool,
    law: Law,
    queue: VecDeque<Aged<B>>,
    lots: Stream,
}

impl<B> Choke<B> {
    /// An empty queue; RED's draws are the stream `name/drop`, those from the queue `name/lots`.
    pub fn new(spec: &ChokeSpec, seed: u64, name: &str) -> Choke<B> {
        let stream = |purpose: &str| Stream::new(seed, &format!("{name}/{purpose}"));
        Choke {
            limit: u64::from(spec.limit),
            ecn: spec.ecn,
            law: Law::between(spec.min, spec.max, spec.computed().expect("a validated choke"), stream("drop")),
            queue: VecDeque::new(),
            lots: stream("lots"),
        }
    }
    /// Draws a packet from the queue, each with the same chance, and takes it out if it is of this flow.
    fn draw(&mut self, flow: u32) -> Option<Packet<B>> {
        let most = u32::try_from(self.queue.len()).ok().filter(|&n| n > 0)?;
        let place = self.lots.below(most) as usize;
        if self.queue[place].1.flow != flow {
            return None;
        }
        self.queue.remove(place).map(|met| met.1)
    }
}

impl<B: Send> Policy<B> for Choke<B> {
    const NAME: &'static str = ChokeSpec::NAME;
    const ASKS_ONCE_MORE: bool = true;
    const LOOKS_IN_PLACE: bool = true;

    fn admit(&mut self, now: Time, mut p: Packet<B>, books: &mut Books<'_>) -> bool {
        let choosy = self.law.observe(now, self.queue.len() as u64);
        if let Some(met) = if choosy { self.draw(p.flow) } else { None } {
            books.leaves(&met);
            books.drops(Cause::Aqm, &met);
            books.drops(Cause::Aqm, &p);
            return true;
        }
        if self.law.fate() != Fate::Pass {
            if !(self.ecn && p.mark()) {
                books.drops(Cause::Aqm, &p);
                return true;
            }
            books.marked();
        }
        books.append(&mut self.queue, self.limit, now, p)
    }
    fn choose(&mut self, now: Time, books: &mut Books<'_>) -> Option<Aged<B>> {
        let Some(p) = self.queue.pop_front() else {
            // Asked in vain, it is idle. tbf and htb never ask in vain.
            self.law.idles(now);
            return None;
        };
        books.leaves(&p.1);
        Some(p)
    }
    fn head(&self) -> Option<u32> {
        self.queue.front().map(|(_, p)| p.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::{spec, try_spec, Freed, Qdisc};
    use tcpscape_base::Ecn;

    const TYPICAL: &str = "choke limit 100 min 10 max 30 avpkt 1500 burst 20 bandwidth 10mbit probability 0.1";

    /// A queue of these flows' packets whose average stands at so many packets.
    fn queue(words: &str, flows: &[u32], average: u64) -> Queued<u32, Choke<u32>> {
        let mut q = Queued::new(Choke::new(&spec(words), 1, "t"));
        for &flow in flows {
            assert!(q.enqueue(Time(0), packet(flow), &mut Freed::default()));
        }
        stand_at(&mut q, average);
        q
    }
    /// Brings the average to so many packets.
    fn stand_at(q: &mut Queued<u32, Choke<u32>>, average: u64) {
        for _ in 0..1_000 {
            q.policy.law.observe(Time(0), average);
        }
    }
    fn packet(flow: u32) -> Packet<u32> {
        Packet { flow, size: 1514, segs: 1, ecn: Ecn::Ect0, ..Default::default() }
    }
    fn counts(q: &Queued<u32, Choke<u32>>) -> (u64, u64, u64, u64) {
        let s = &q.account.meter.s;
        (s.drops.aqm, s.drops.limit, s.marked, q.packets())
    }

    #[test]
    fn what_tc_computes() {
        // Wlog, Plog, Scell_log and the first cell that halves, as tc 6.1 sent them.
        for (words, expected) in [
            ("limit 100 bandwidth 10mbit", (3, 20, 13, 12)),
            ("limit 100 avpkt 2k bandwidth 10mbit", (3, 21, 14, 12)),
            ("limit 100 min 20 bandwidth 10mbit", (2, 18, 12, 11)),
            ("limit 100 max 60 bandwidth 10mbit", (4, 21, 14, 12)),
            ("limit 1001 bandwidth 10mbit", (6, 23, 16, 13)),
            ("limit 400 min 50 max 100 burst 100 bandwidth 1mbit", (7, 22, 20, 16)),
            ("limit 100 min 10 max 30 avpkt 1500 burst 20 bandwidth 10mbit probability 0.1", (4, 19, 15, 9)),
        ] {
            let c = spec::<ChokeSpec>(&format!("choke {words}")).computed().unwrap();
            let halves = c.damping.iter().position(|&d| d == 1).unwrap();
            assert_eq!((c.wlog, c.plog, c.cell_log, halves), expected, "{words}");
        }
        assert_eq!(spec::<ChokeSpec>(TYPICAL).computed().unwrap().max_p, 429_496_729);
    }

    #[test]
    fn tcs_defaults_and_what_it_refuses() {
        let s: ChokeSpec = spec("choke limit 100 bandwidth 10mbit");
        assert_eq!((s.min, s.max, s.avpkt, s.probability), (8, 25, 1000, 0.02));
        assert_eq!(spec::<ChokeSpec>(&s.words()), s);
        for (words, why) in [
            ("choke bandwidth 1mbit", "limit is missing"),
            ("choke limit 100", "bandwidth is missing"),
            ("choke limit 100 max 101 bandwidth 1mbit", "choke max: must be above min and at most limit"),
            ("choke limit 100 min 30 max 30 bandwidth 1mbit", "choke max"),
            ("choke limit 100 min 10 max 30 burst 2 bandwidth 1mbit", "choke burst: is too small"),
            ("choke limit 10 bandwidth 1mbit", "choke burst"),
            ("choke limit 100 probability 2 bandwidth 1mbit", "choke probability"),
            ("choke limit 100 bandwidth 1mbit nodrop", "\"nodrop\" is not understood"),
        ] {
            let e = try_spec::<ChokeSpec>(words).unwrap_err().to_string();
            assert!(e.contains(why) && !e.contains('\n'), "{words}: {e}");
        }
    }

    #[test]
    fn below_min_nobody_is_compared() {
        let mut q = queue(TYPICAL, &[1; 9], 9);
        assert!(q.enqueue(Time(0), packet(1), &mut Freed::default()));
        assert_eq!(counts(&q), (0, 0, 0, 10));
    }

    #[test]
    fn a_flow_alone_meets_itself_and_loses_two() {
        let mut q = queue(TYPICAL, &[1; 9], 20);
        let mut f = Freed { on: true, ..Default::default() };
        (0..3).for_each(|_| assert!(q.enqueue(Time(0), packet(1), &mut f)));
        assert_eq!((counts(&q), f.list.len()), ((6, 0, 0, 6), 6));
    }

    #[test]
    fn the_chance_to_meet_is_the_share_of_the_queue() {
        // Six of nine packets are flow 1's.
        for (flow, share) in [(1, 6.0 / 9.0), (2, 3.0 / 9.0), (3, 0.0)] {
            let mut c = queue(TYPICAL, &[1, 1, 2, 1, 1, 2, 1, 1, 2], 9).policy;
            let mut met = 0;
            for _ in 0..9_000 {
                if let Some(p) = c.draw(flow) {
                    met += 1;
                    c.queue.push_back((Time(0), p));
                }
            }
            assert!((f64::from(met) / 9_000.0 - share).abs() < 0.02, "{flow}: {met}");
        }
    }

    #[test]
    fn a_stranger_is_struck_as_in_red() {
        // The arrival itself moves the average from 20 to 19.3: 0.1 · 9.3/20 = 1/21.5, so strikes are 1 to 21.5 packets apart: 178 of 2000.
        let mut q = queue(&format!("{TYPICAL} ecn"), &[1; 9], 20);
        for flow in 100..2_100 {
            stand_at(&mut q, 20);
            q.enqueue(Time(0), packet(flow), &mut Freed::default());
            q.dequeue(Time(0), &mut Freed::default());
        }
        let (drops, _, marks, _) = counts(&q);
        assert!(drops == 0 && (155..200).contains(&marks), "{drops} {marks}");
        // From max on, all of them; without ECN they are lost.
        for (words, expected) in [(format!("{TYPICAL} ecn"), (0, 0, 1, 10)), (TYPICAL.to_owned(), (1, 0, 0, 9))] {
            let mut q = queue(&words, &[1; 9], 40);
            assert!(q.enqueue(Time(0), packet(2), &mut Freed::default()));
            assert_eq!(counts(&q), expected);
        }
    }

    #[test]
    fn the_limit_refuses() {
        let mut q = queue("choke limit 9 min 6 max 9 burst 20 bandwidth 10mbit", &[1, 2, 3, 4, 5, 6, 7, 8, 9], 0);
        assert!(!q.enqueue(Time(0), packet(10), &mut Freed::default()));
        assert_eq!(counts(&q), (0, 1, 0, 9));
    }

    #[test]
    fn an_idle_time_begins_when_it_is_asked_in_vain() {
        // An average of 20 packets of 1500 B at 10 Mbit/s and 2^-4: after a second nothing is left of it.
        let drops_after = |asks: bool| {
            let mut q = queue(TYPICAL, &[1], 20);
            let mut f = Freed::default();
            assert!(q.dequeue(Time(0), &mut f).is_some() && q.next_event() == Time::ZERO);
            if asks {
                assert!(q.dequeue(Time(0), &mut f).is_none());
            } else {
                assert!(q.peek(Time(0), &mut f).is_none());
            }
            assert_eq!(q.next_event(), Time::MAX, "asked or looked at, it need not be again");
            (0..3).for_each(|_| assert!(q.enqueue(Time(1_000_000_000), packet(1), &mut f)));
            counts(&q).0
        };
        assert_eq!((drops_after(true), drops_after(false)), (0, 2));
    }

    #[test]
    fn what_a_parent_has_looked_at_can_still_be_drawn() {
        let mut q = queue(TYPICAL, &[1], 20);
        let mut f = Freed::default();
        assert_eq!(q.peek(Time(0), &mut f), Some(1514));
        assert!(q.enqueue(Time(0), packet(1), &mut f));
        assert_eq!((counts(&q), q.peek(Time(0), &mut f)), ((2, 0, 0, 0), None));
    }

    /// Each arrival takes the whole packets of the average for its decay: falling from 20, it comes to rest as soon as that part is 9, at just below ten.
    #[test]
    fn the_average_counts_whole_packets() {
        let mut q = queue(TYPICAL, &[], 20);
        (0..1_000).for_each(|_| {
            q.policy.law.observe(Time(0), 9);
        });
        let reaches_ten = |q: &mut Queued<u32, Choke<u32>>| q.policy.law.observe(Time(0), 10);
        assert!(!q.policy.law.observe(Time(0), 9) && reaches_ten(&mut q), "one longer queue is enough from there, not from 9.0");
        stand_at(&mut q, 0);
        stand_at(&mut q, 9);
        assert!(!reaches_ten(&mut q));
    }
}
