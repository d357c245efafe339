//! Laws that a sender and a receiver keep together, whatever the channel between them does, for every congestion control.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use tcpscape_base::{Duration, Ecn, Flags, Kernel, Segment, Stream, Time};
use tcpscape_tcp::{cc, Feedback, Info, Jiffies, Receiver, ReceiverConfig, Sender, SenderConfig, Tuning};

/// Seeds per congestion control in the everyday run; `TCPSCAPE_LAW_SEEDS` asks for more.
const SEEDS: u64 = 200;
/// No transfer here may take longer: at 30 % loss each way and 76 bytes a segment, thousands of timeouts of two minutes are due.
const LONGEST: Time = Time(2_000_000 * 1_000_000_000);
/// Nor more events.
const MOST_EVENTS: u64 = 4_000_000;

fn seeds() -> u64 {
    std::env::var("TCPSCAPE_LAW_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(SEEDS)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The first of `frames` of a burst leaves the sender's host.
    Departure(u32, Segment),
    ToReceiver(Segment),
    ToSender(Segment),
    Write,
    Read,
}

/// What one direction does to a packet, in parts per thousand and ns.
#[derive(Clone, Debug)]
struct Channel {
    loss: u32,
    duplicate: u32,
    delay: u64,
    jitter: u64,
    /// Nothing passes between these times.
    outage: Range<u64>,
}

impl Channel {
    fn random(r: &mut Stream) -> Channel {
        let pick = |r: &mut Stream, most: u32| if r.below(3) == 0 { 0 } else { r.below(most) };
        let start = u64::from(r.below(4_000)) * 1_000_000;
        Channel {
            loss: pick(r, 300),
            duplicate: pick(r, 100),
            delay: u64::from(pick(r, 100_000)) * 1_000,
            jitter: u64::from(pick(r, 60_000)) * 1_000,
            outage: start..start + u64::from(pick(r, 3_000)) * 1_000_000,
        }
    }
}

/// A transfer between two machines.
struct World {
    rng: Stream,
    now: Time,
    sender: Sender,
    receiver: Receiver,
    forward: Channel,
    reverse: Channel,
    mss: u32,
    whole: bool,
    watch_host: bool,
    queue: BinaryHeap<Reverse<(Time, u64)>>,
    bodies: BTreeMap<u64, Event>,
    numbered: u64,
    /// Bytes to write, bytes read.
    left: u64,
    total: u64,
    read: u64,
    /// A read is on its way; the reader is busy until then.
    reading: bool,
    reader_until: Time,
    blocked: bool,
    pauses: u32,
    seen: Info,
}

impl World {
    fn new(name: &str, seed: u64) -> World {
        let mut rng = Stream::new(seed, "laws");
        let r = &mut rng;
        let base = [Kernel::V6_1, Kernel::V6_6, Kernel::V6_12, Kernel::V6_18, Kernel::V6_19, Kernel::V7_1][r.below(6) as usize];
        let kernel = Kernel { hz: [100, 250, 1_000][r.below(3) as usize], ..base };
        let mss = [76, 536, 1448, 8_948][r.below(4) as usize];
        let jiffies = Jiffies::new(kernel.hz, Duration(u64::from(r.next_u32())));
        let buffer = |r: &mut Stream| if r.below(2) == 0 { 0 } else { 2_304 + r.below(400_000) };
        let whole = r.below(3) == 0;
        let watch_host = r.below(2) == 0;
        let sender = Sender::new(SenderConfig {
            kernel,
            jiffies,
            mss,
            sndbuf: buffer(r),
            gso: r.below(4) > 0,
            nodelay: r.below(2) == 0,
            ecn: r.below(2) == 0,
            tsq: watch_host && r.below(2) == 0,
            watch_host,
            bare_host: watch_host && r.below(2) == 0,
            tuning: Tuning::default(),
            fq: false,
            congestion: cc::make(name, seed).unwrap(),
        });
        let receiver = Receiver::new(&ReceiverConfig {
            kernel,
            jiffies,
            mss,
            advmss: mss + 12,
            rcvbuf: buffer(r),
            sack: true,
            feedback: [Feedback::Classic, Feedback::Dctcp, Feedback::Accurate][r.below(3) as usize],
            misbehaves: None,
        });
        let most = [3_000, 100_000, 1_000_000][r.below(3) as usize];
        let total = 1 + u64::from(r.below(most));
        World {
            now: Time(1_000_000 + u64::from(r.below(1 << 30))),
            sender,
            receiver,
            forward: Channel::random(r),
            reverse: Channel::random(r),
            mss,
            whole,
            watch_host,
            queue: BinaryHeap::new(),
            bodies: BTreeMap::new(),
            numbered: 0,
            left: total,
            total,
            read: 0,
            reading: false,
            reader_until: Time::ZERO,
            blocked: true,
            pauses: r.below(30),
            seen: Info::default(),
            rng,
        }
    }

    fn at(&mut self, t: Time, e: Event) {
        self.queue.push(Reverse((t, self.numbered)));
        self.bodies.insert(self.numbered, e);
        self.numbered += 1;
    }

    fn cross(&mut self, s: Segment, forward: bool) {
        let c = if forward { self.forward.clone() } else { self.reverse.clone() };
        if c.outage.contains(&self.now.0) {
            return;
        }
        let copies = 1 + u32::from(self.rng.below(1_000) < c.duplicate);
        for _ in 0..copies {
            if self.rng.below(1_000) >= c.loss {
                let d = c.delay + ((u64::from(self.rng.next_u32()) * c.jitter) >> 32) + 1_000;
                self.at(self.now + Duration(d), if forward { Event::ToReceiver(s) } else { Event::ToSender(s) });
            }
        }
    }

    fn send_cut(&mut self, s: Segment) {
        let (mut off, step) = (0, if self.whole { s.len.max(1) } else { self.mss });
        loop {
            let len = step.min(s.len - off);
            self.cross(Segment { seq: s.seq + u64::from(off), len, ..s }, true);
            off += len;
            if off >= s.len {
                return;
            }
        }
    }

    fn flush(&mut self) {
        while let Some(t) = self.sender.poll_transmit() {
            assert!(u32::from(t.segs) == t.segment.len.div_ceil(self.mss).max(1), "{t:?}");
            assert!(t.segment.end() <= 1 + self.total, "{t:?} beyond what was written");
            if self.watch_host {
                let stay = u64::from(self.rng.below(2_000_000));
                self.at(self.now + Duration(stay), Event::Departure(t.burst, t.segment));
            } else {
                self.send_cut(t.segment);
            }
        }
        while let Some(s) = self.receiver.poll_transmit(self.now) {
            self.cross(s, false);
        }
        if self.receiver.readable() > 0 && !self.reading {
            self.reading = true;
            self.at(self.now.max(self.reader_until), Event::Read);
        }
        if self.sender.take_wake() && self.blocked && self.left > 0 {
            self.blocked = false;
            self.at(self.now, Event::Write);
        }
    }

    fn write(&mut self) {
        let most = [1, 3_000, 70_000][self.rng.below(3) as usize];
        let chunk = (1 + u64::from(self.rng.below(most))).min(self.left);
        let n = self.sender.write(self.now, chunk);
        assert!(n <= chunk);
        self.left -= n;
        self.blocked = n < chunk;
        if !self.blocked && self.left > 0 {
            let d = self.pause(3_000);
            self.at(self.now + d, Event::Write);
        }
    }

    /// Mostly short, rarely up to `most` ms.
    fn pause(&mut self, most: u32) -> Duration {
        if self.pauses > 0 && self.rng.below(40) == 0 {
            self.pauses -= 1;
            return Duration::millis(u64::from(self.rng.below(most)));
        }
        Duration(u64::from(self.rng.below(300_000)))
    }

    fn act(&mut self, e: Event) {
        match e {
            Event::Departure(burst, s) => {
                let frames = s.len + s.len.div_ceil(self.mss).max(1) * (s.frame_len() - s.len);
                let first = self.rng.below(frames + 1);
                self.sender.on_departure(self.now, burst, first);
                self.sender.on_departure(self.now, burst, frames - first);
                self.send_cut(s);
            }
            Event::ToReceiver(s) => self.receiver.on_segment(self.now, &s, 0),
            Event::ToSender(s) => self.sender.on_segment(self.now, &s),
            Event::Write => self.write(),
            Event::Read => {
                let most = 1 + u64::from(self.rng.below(100_000));
                self.read += self.receiver.read(self.now, most);
                let d = self.pause(5_000) + Duration::micros(10);
                self.reader_until = self.now + d;
                self.reading = false;
            }
        }
    }

    /// The next event of any kind; false when everything has been delivered and acknowledged.
    fn step(&mut self) -> bool {
        if self.read == self.total && self.sender.idle() {
            return false;
        }
        let queued = self.queue.peek().map_or(Time::MAX, |r| r.0 .0);
        let (s, r) = (self.sender.next_event().unwrap_or(Time::MAX), self.receiver.next_event().unwrap_or(Time::MAX));
        let t = queued.min(s).min(r);
        assert!(t < Time::MAX, "nothing will ever happen again");
        self.now = self.now.max(t);
        if s <= self.now {
            self.sender.on_timer(self.now);
            assert!(self.sender.next_event().map_or(true, |t| t > self.now), "the sender's timer stands still at {}", self.now);
        } else if r <= self.now {
            self.receiver.on_timer(self.now);
            assert!(self.receiver.next_event().map_or(true, |t| t > self.now), "the receiver's timer stands still at {}", self.now);
        } else {
            let Reverse((_, k)) = self.queue.pop().expect("it was the earliest");
            let e = self.bodies.remove(&k).expect("it was numbered");
            self.act(e);
        }
        self.flush();
        true
    }

    /// What holds after every event.
    fn check(&mut self) {
        self.sender.check_invariants();
        let i = self.sender.info();
        assert!(i.cwnd >= 1 && i.ssthresh >= 1, "{i:?}");
        assert!(i.bytes_acked >= self.seen.bytes_acked && i.retransmits >= self.seen.retransmits, "{i:?} after {:?}", self.seen);
        assert!(i.delivered >= self.seen.delivered && i.lost >= self.seen.lost, "{i:?} after {:?}", self.seen);
        assert!(i.bytes_acked <= self.receiver.rcv_nxt(), "acknowledged before it came");
        assert!(self.sender.snd_nxt() <= 1 + self.total - self.left, "sent before it was written");
        assert!(i.rto_us <= 120_000_000 && i.min_rtt_us > 0, "{i:?}");
        self.seen = i;
    }
}

/// Runs one transfer to its end; says where it was if it does not get there.
fn transfer(name: &str, seed: u64) -> (u64, u64, Time) {
    let mut w = World::new(name, seed);
    w.sender.connect(w.now, w.now);
    w.flush();
    let mut events = 0u64;
    while w.step() {
        w.check();
        events += 1;
        let late = w.now > LONGEST || events > MOST_EVENTS;
        assert!(!late, "{name} {seed}: {} of {} bytes after {} and {events} events: {:?}", w.read, w.total, w.now, w.sender.info());
    }
    assert_eq!(w.receiver.rcv_nxt(), 1 + w.total);
    assert_eq!(w.receiver.stats().bytes, w.total);
    assert_eq!(w.sender.bytes_acked(), w.total);
    let i = w.sender.info();
    let s = w.sender.stats(w.now);
    assert_eq!((s.bytes_written, i.unacked), (w.total, 0));
    // A retransmission counted twice, as Linux does after a timeout that follows an undo, stays counted.
    assert!(u64::from(i.in_flight) <= s.rtos, "{i:?}");
    (events, s.retransmits, w.now)
}

#[test]
fn every_transfer_arrives_in_order_and_completely() {
    for e in cc::REGISTRY {
        let failed: Vec<u64> = (0..seeds()).filter(|&seed| std::panic::catch_unwind(|| transfer(e.name, seed)).is_err()).collect();
        assert!(failed.is_empty(), "{} with seeds {failed:?}", e.name);
    }
}

#[test]
fn the_same_seed_repeats_a_transfer() {
    for e in cc::REGISTRY {
        assert_eq!(transfer(e.name, 5), transfer(e.name, 5), "{}", e.name);
    }
}

/// An ACK that no honest receiver would send, but that is well formed.
fn forged(r: &mut Stream, s: &Sender, mss: u32, ts: u32) -> Segment {
    let (una, nxt) = (s.bytes_acked() + 1, s.snd_nxt());
    let span = (nxt - una + 3 * u64::from(mss)) as u32;
    let point = |r: &mut Stream| (una + u64::from(r.below(span))).saturating_sub(u64::from(r.below(4) / 3 * 20 * mss)).max(1);
    let edge = |r: &mut Stream, x: u64| if r.below(3) > 0 { 1 + (x - 1) / u64::from(mss) * u64::from(mss) } else { x };
    let ack = if r.below(3) == 0 { una } else { point(r) };
    let ack = edge(r, ack);
    let wnd = if r.below(4) == 0 { r.below(3_000) } else { r.below(400_000) };
    let tsecr = if r.below(8) == 0 { 0 } else { ts.saturating_sub(r.below(300)) };
    let tsval = (ts + 10).saturating_sub(r.below(12));
    let mut a = Segment { seq: 1, ack, wnd, tsval, tsecr, flags: Flags::ACK, ..Segment::default() };
    for _ in 0..r.below(4) {
        let start = point(r);
        let start = edge(r, start);
        a.push_sack((start, start + 1 + u64::from(r.below(6) * mss) - u64::from(r.below(2))));
    }
    a
}

#[test]
fn no_acknowledgement_breaks_the_sender() {
    for e in cc::REGISTRY {
        for seed in 0..seeds() {
            let mut r = Stream::new(seed, "forged");
            let mss = [536, 1448][r.below(2) as usize];
            let kernel = Kernel { hz: [100, 1_000][r.below(2) as usize], ..Kernel::V6_1 };
            let mut s = Sender::new(SenderConfig {
                kernel,
                jiffies: Jiffies::new(kernel.hz, Duration::ZERO),
                mss,
                sndbuf: 0,
                gso: r.below(2) == 0,
                nodelay: r.below(2) == 0,
                ecn: r.below(2) == 0,
                tsq: false,
                watch_host: false,
                bare_host: false,
                tuning: Tuning::default(),
                fq: false,
                congestion: cc::make(e.name, seed).unwrap(),
            });
            let mut now = Time(1_000_000_000);
            s.connect(now, now);
            now += Duration::millis(30);
            let syn = Flags::SYN.with(Flags::ACK);
            s.on_segment(now, &Segment { ack: 1, wnd: 65_535, flags: syn, tsval: 1, tsecr: 1_001, ..Segment::default() });
            for _ in 0..600 {
                let longest = [1_000_000, 20_000_000, 900_000_000][(r.below(30) / 14) as usize];
                now += Duration(u64::from(r.below(longest)));
                if s.next_event().is_some_and(|t| t <= now) {
                    s.on_timer(now);
                }
                if r.below(3) == 0 {
                    s.write(now, 1 + u64::from(r.below(60_000)));
                }
                let ts = now.millis() as u32;
                let a = forged(&mut r, &s, mss, ts);
                s.on_segment(now, &a);
                while s.poll_transmit().is_some() {}
                s.check_invariants();
                assert!(s.info().cwnd >= 1, "{} {seed}", e.name);
            }
        }
    }
}

/// A segment of a peer that loses, reorders, repeats and cuts its data in any way, around the next byte that `receiver` expects.
/// `echo` is the last timestamp that the receiver sent.
fn wild(r: &mut Stream, receiver: &Receiver, mss: u32, ts: u32, echo: u32) -> Segment {
    let next = receiver.rcv_nxt();
    let spread = [1, 3, 12, 60][r.below(4) as usize] * mss;
    let place = (next + u64::from(r.below(spread))).saturating_sub(u64::from(r.below(spread) / 4)).max(1);
    let seq = if r.below(2) == 0 { next } else { 1 + (place - 1) / u64::from(mss) * u64::from(mss) };
    let len = if r.below(4) > 0 { mss } else { r.below(mss) };
    let mut flags = Flags::ACK;
    for (flag, rate) in [(Flags::PSH, 10), (Flags::CWR, 60), (Flags::SYN, 300), (Flags::RST, 300)] {
        if r.below(rate) == 0 {
            flags = flags.with(flag);
        }
    }
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][r.below(4) as usize];
    Segment {
        seq,
        ack: 1,
        len,
        tsval: ts - r.below(4),
        tsecr: echo.wrapping_sub(r.below(20) / 19 * r.next_u32()),
        flags,
        ecn,
        ..Segment::default()
    }
}

/// What holds for every ACK, whatever came. Returns the right edge of the window that it offers.
fn check_ack(a: &Segment, receiver: &Receiver) -> u64 {
    assert!(a.ack <= receiver.rcv_nxt(), "{a:?} acknowledges what has not come");
    let blocks: Vec<(u64, u64)> = a.sacks().collect();
    for (i, &(start, end)) in blocks.iter().enumerate() {
        assert!(start < end, "{a:?}");
        // RFC 2018 §4: beyond the acknowledgement, apart from a duplicate in the first place (RFC 2883), and disjoint.
        assert!(i == 0 || start > a.ack, "{a:?}");
        assert!(blocks[i + 1..].iter().all(|b| i == 0 || b.1 < start || end < b.0), "{a:?}");
    }
    a.ack + u64::from(a.wnd)
}

#[test]
fn no_segment_breaks_the_receiver() {
    for seed in 0..20 * seeds() {
        let mut r = Stream::new(seed, "wild");
        let base = [Kernel::V6_1, Kernel::V6_6, Kernel::V6_12, Kernel::V6_18, Kernel::V6_19, Kernel::V7_1][r.below(6) as usize];
        let kernel = Kernel { hz: [100, 1_000][r.below(2) as usize], ..base };
        let mss = [76, 536, 1448][r.below(3) as usize];
        let rcvbuf = if r.below(3) == 0 { 0 } else { 2_304 + r.below(100_000) };
        let jiffies = Jiffies::new(kernel.hz, Duration(u64::from(r.next_u32())));
        let feedback = [Feedback::Classic, Feedback::Dctcp, Feedback::Accurate][r.below(3) as usize];
        let sack = r.below(4) > 0;
        let config = ReceiverConfig { kernel, jiffies, mss, advmss: mss + 12, rcvbuf, sack, feedback, misbehaves: None };
        let mut receiver = Receiver::new(&config);
        let mut now = Time(2_000_000_000);
        let syn = Flags::SYN.with(Flags::of_ace([0b000, 0b011, 0b111][r.below(3) as usize]));
        receiver.on_segment(now, &Segment { flags: syn, tsval: 1_990, ..Segment::default() }, 0);
        receiver.on_segment(now, &Segment { seq: 1, ack: 1, flags: Flags::ACK, tsval: 1_990, ..Segment::default() }, 0);
        while receiver.poll_transmit(now).is_some() {}
        let (mut edge, mut read, mut echo) = (0, 0, 0);
        for _ in 0..300 {
            let longest = [30_000, 3_000_000, 300_000_000][r.below(3) as usize];
            now += Duration(u64::from(r.below(longest)));
            if receiver.next_event().is_some_and(|t| t <= now) {
                receiver.on_timer(now);
                assert!(receiver.next_event().map_or(true, |t| t > now), "{seed}: the timer stands still");
            }
            let s = wild(&mut r, &receiver, mss, (now.0 / 1_000_000) as u32, echo);
            receiver.on_segment(now, &s, 0);
            if r.below(4) == 0 {
                let most = u64::from(r.below(100_000));
                read += receiver.read(now, most);
            }
            while let Some(a) = receiver.poll_transmit(now) {
                let right = check_ack(&a, &receiver);
                // RFC 9293 §3.8.6: the right edge stays, but for 6.12 when it has no memory (a window of 0), and for DCTCP's ACK of a part,
                // whose window counts from the whole.
                let closed = kernel.rules().closes_without_memory && a.wnd == 0;
                assert!(right >= edge || closed || (feedback == Feedback::Dctcp && a.ack < receiver.rcv_nxt()), "{seed}: {a:?} < {edge}");
                assert!(sack || a.nsack == 0, "{seed}: SACK was not permitted");
                edge = if closed { right } else { edge.max(right) };
                echo = a.tsval;
            }
            assert_eq!(read + receiver.readable(), receiver.rcv_nxt() - 1, "{seed}: every byte is readable once");
        }
    }
}
