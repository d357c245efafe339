//! Random queues under random traffic, with a digest of everything that comes of it, for comparing two builds:
//! `random_queues FROM UNTIL > FILE` with each of them, then `diff`. Words that are refused are printed with the reason.

use tcpscape_base::{Duration, Ecn, Edt, Flags, Packet, Rate, Segment, Stream, Time};
use tcpscape_path::schedule::Change;
use tcpscape_path::{parse_tc, Patch, PathSpec, Pipe, Prob, ScheduledChange};

/// Queues without a child, each with words of which a third is taken.
const LEAVES: [(&str, &[&str]); 15] = [
    ("pfifo", &["limit 3", "limit 30"]),
    ("bfifo", &["limit 4000", "limit 40000"]),
    ("pfifo_head_drop", &["limit 3", "limit 30"]),
    (
        "red limit 60000 avpkt 1000",
        &["ecn", "harddrop", "adaptive", "probability 0.2", "min 5000", "max 30000", "burst 20", "bandwidth 2mbit"],
    ),
    ("choke limit 40 bandwidth 5mbit", &["ecn", "probability 0.2", "min 4", "max 20", "burst 10", "avpkt 1500"]),
    ("codel", &["limit 30", "target 2ms", "interval 20ms", "ecn", "ce_threshold 1ms"]),
    ("fq_codel", &["limit 30", "flows 4", "quantum 300", "target 2ms", "interval 20ms", "noecn", "memory_limit 60k", "drop_batch 3"]),
    ("pie", &["limit 40", "target 5ms", "tupdate 5ms", "alpha 8", "beta 10", "ecn", "bytemode", "dq_rate_estimator"]),
    ("fq_pie", &["limit 40", "flows 3", "quantum 500", "target 5ms", "tupdate 5ms", "ecn", "ecn_prob 5", "bytemode"]),
    ("cake", &["bandwidth 9mbit", "bandwidth 20mbit", "rtt 1ms", "diffserv8", "flowblind", "dual-srchost", "ingress", "no-split-gso"]),
    (
        "cake bandwidth 12mbit",
        &["ack-filter", "ack-filter-aggressive", "memlimit 40000", "overhead 18", "mpu 64", "atm", "ptm", "flows", "ingress"],
    ),
    (
        "dualpi2",
        &[
            "limit 30",
            "memlimit 40000",
            "coupling_factor 4",
            "step_thresh 2ms",
            "min_qlen_step 2",
            "overflow",
            "drop_enqueue",
            "target 5ms",
        ],
    ),
    ("dualpi2 tupdate 4ms", &["any_ect", "classic_protection 30", "alpha 2", "beta 20", "no_split_gso", "step_thresh 4p"]),
    (
        "fq",
        &[
            "limit 50",
            "flow_limit 8",
            "quantum 1000",
            "maxrate 3mbit",
            "maxrate 400kbit",
            "nopacing",
            "refill_delay 1ms",
            "horizon 10ms",
            "horizon_cap",
        ],
    ),
    ("sfq", &["limit 20", "perturb 1", "quantum 500", "quantum 4000", "divisor 8", "flows 4", "depth 4", "headdrop"]),
];
const DELAYS: &[&str] = &["", "delay 5ms", "delay 8ms 6ms 30%", "delay 10ms 4ms distribution normal", "delay 3ms 5ms distribution pareto"];
const LOSSES: &[&str] = &["", "loss 2%", "loss 3% 40%", "loss state 2% 30% 20% 60% 1%", "loss gemodel 2% 20% 70% 0.5%", "loss 4% ecn"];
const JUDGES: &[&str] = &["duplicate 3% 20%", "corrupt 2%", "limit 30", "reorder 20% gap 3", "rate 10mbit", "rate 8mbit 20 53 5"];
const SLOTS: &[&str] = &["slot 1ms 4ms packets 3 bytes 4000", "slot 2ms", "slot distribution normal 2ms 1ms packets 2"];
const JITTERS: &[&str] = &["order reorder", "order clamp distribution pareto", "order correlated tau 20ms", "limit 20"];
const SHAPERS: &[&str] = &[
    "tbf rate 9mbit burst 3028 limit 30000",
    "tbf rate 4mbit burst 1514 limit 9000",
    "tbf rate 30mbit burst 9000 limit 60000 peakrate 50mbit mtu 1514",
    "htb rate 9mbit",
    "htb rate 6mbit ceil 4mbit burst 9000",
];

fn pick<'a>(s: &mut Stream, list: &[&'a str]) -> &'a str {
    list[s.below(list.len() as u32) as usize]
}
fn a_third(s: &mut Stream, list: &[&str]) -> String {
    list.iter().filter(|_| s.below(3) == 0).map(|w| format!(" {w}")).collect()
}
fn leaf(s: &mut Stream) -> String {
    let (name, words) = LEAVES[s.below(LEAVES.len() as u32) as usize];
    format!("{name}{}", a_third(s, words))
}
fn netem(s: &mut Stream) -> String {
    format!(
        "netem {} {}{}{}",
        pick(s, DELAYS),
        pick(s, LOSSES),
        a_third(s, JUDGES),
        if s.below(3) == 0 { a_third(s, SLOTS) } else { String::new() }
    )
}
fn words(s: &mut Stream) -> String {
    match s.below(8) {
        0 => leaf(s),
        1 => netem(s),
        2 => format!("{}; {}", netem(s), leaf(s)),
        3 => format!("jitter delay 9ms 4ms {}", pick(s, JITTERS)),
        4 => format!("{}; {}", pick(s, SHAPERS), netem(s)),
        _ => format!("{}; {}", pick(s, SHAPERS), leaf(s)),
    }
}

/// A change at one time, or again and again.
fn change(s: &mut Stream, stages: usize) -> ScheduledChange {
    let set = match s.below(6) {
        0 => Patch { limit: Some(u64::from(s.below(60)) + 1), ..Patch::default() },
        1 => Patch { rate: Some(Rate(u64::from(s.below(20) + 1) * 1_000_000)), ..Patch::default() },
        2 => Patch { delay: Some(Duration::millis(u64::from(s.below(20)))), ..Patch::default() },
        3 => Patch { outage: Some(true), ..Patch::default() },
        4 => Patch { loss: Some(Prob(s.next_u32())), jitter: Some(Duration::millis(2)), ..Patch::default() },
        _ => Patch { burst: Some(4_000), limit: Some(20_000), ..Patch::default() },
    };
    let change = if s.below(2) == 0 {
        Change::Set { at: Time(400_000_000), set }
    } else {
        Change::Periodic { first: Time(300_000_000), period: Duration::millis(250), hold: Duration::millis(60), set }
    };
    ScheduledChange { stage: s.below(stages as u32) as usize, depth: s.below(2) as usize, change }
}

/// FNV-1a over texts.
struct Digest(u64);

impl Digest {
    fn add(&mut self, what: &impl std::fmt::Debug) {
        for b in format!("{what:?}").bytes() {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn take(&mut self, pipe: &mut Pipe<Segment>, until: Time) {
        while let Some(t) = pipe.next_event().filter(|&t| t <= until) {
            while let Some(p) = pipe.pop(t) {
                self.add(&(t, p));
            }
        }
        pipe.drain_released().for_each(|d| self.add(&d));
        self.add(&(pipe.backlog(0), pipe.next_event()));
    }
}

/// A packet of one of the flows: data (offloaded or not) or a pure ACK.
fn packet(s: &mut Stream, now: Time, id: u64, acks: &mut [u64]) -> Packet<Segment> {
    let most = acks.len() as u32;
    let flow = s.below(most).min(s.below(most));
    let pure = s.below(3) == 0;
    let segs = if !pure && s.below(6) == 0 { 1 + s.below(4) } else { 1 };
    let ack = &mut acks[flow as usize];
    *ack += u64::from(s.below(3)) * 1448;
    let flags = if s.below(9) == 0 { Flags::ACK.with(Flags::ECE) } else { Flags::ACK };
    let mut body = Segment { len: if pure { 0 } else { 1448 * segs }, ack: *ack, flags, ..Default::default() };
    if s.below(7) == 0 {
        body.push_sack((*ack + 1448, *ack + 1448 * (2 + u64::from(s.below(3)))));
    }
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][s.below(4) as usize];
    let edt = (s.below(3) == 0).then(|| Edt::at(Time(now.0 + u64::from(s.below(15_000_000)))));
    Packet { id, flow, size: body.len + 66 * segs, segs: segs as u16, ecn, edt, body, ..Default::default() }
}

/// The digest of one path: its JSON, its words, what came out when, what it counted. Or why it cannot be.
fn trial(n: u64, text: &[String], s: &mut Stream) -> Result<u64, String> {
    let queues: Result<Vec<_>, _> = text.iter().map(|t| parse_tc(t)).collect();
    let mut spec = PathSpec::of(queues.map_err(|e| e.to_string())?);
    if s.below(3) == 0 {
        spec.schedule = vec![change(s, spec.stages.len())];
    }
    spec.validate().map_err(|e| e.to_string())?;
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    digest.add(&serde_json::to_string(&spec).map_err(|e| e.to_string())?);
    spec.stages.iter().for_each(|stage| digest.add(&stage.qdisc.to_tc()));
    let mut pipe: Pipe<Segment> = Pipe::new(&spec, n, "forward");
    if s.below(2) == 0 {
        pipe.track_departures();
    }
    let mut acks = vec![0; 1 + s.below(9) as usize];
    let gap = [400_000, 900_000, 2_000_000][s.below(3) as usize];
    let mut now = Time::ZERO;
    for id in 0..900 {
        let rest = if s.below(200) == 0 { s.below(300_000_000) } else { 0 };
        now = Time(now.0 + u64::from(s.below(gap)) * u64::from(s.below(6) > 0) + u64::from(rest));
        digest.take(&mut pipe, now);
        let p = packet(s, now, id, &mut acks);
        digest.add(&pipe.push(now, p));
    }
    digest.take(&mut pipe, Time(20_000_000_000));
    pipe.check_accounts()?;
    digest.add(&pipe.stats());
    Ok(digest.0)
}

fn main() {
    let range: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().expect("FROM UNTIL")).collect();
    let [from, until] = range[..] else { panic!("FROM UNTIL") };
    for n in from..until {
        let mut s = Stream::new(n, "queues");
        let text: Vec<String> = (0..1 + s.below(2)).map(|_| words(&mut s)).collect();
        match trial(n, &text, &mut s) {
            Ok(digest) => println!("{n} {text:?} {digest:016x}"),
            Err(why) => println!("{n} {text:?} refused: {why}"),
        }
    }
}
