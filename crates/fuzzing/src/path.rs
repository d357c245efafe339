//! Target `path`: queues, changes while they run, and packets, without TCP.
//!
//! What must hold: the accounts of every queue ([`tcpscape_path::check_accounts`]), and packets pushed, duplicated and cut are those that
//! came out, were dropped or are held; a queue that has nothing to give asks for a later time; departures from the first stage are told
//! once for each byte pushed, and not at all where nobody asked.

use crate::choices::Choices;
use crate::schedule;
use tcpscape_base::{Ecn, Edt, Flags, Packet, Segment, Time};
use tcpscape_path::{Host, PathSpec, Pipe};

/// Most packets pushed.
const MOST: u32 = 400;
/// Most times that the pipe is asked for packets.
const LOOKS: u32 = 20_000;
/// Times that a pipe may ask for one and the same instant again, for each packet that is inside.
const ASKS_AT_ONCE: u64 = 64;
/// The accounts are checked at the end, and after so many steps each.
const ACCOUNTS: u32 = 16;
/// Longest pause between two packets, ns.
const PAUSE: u32 = 1 << 30;

/// The target: choices are a path, then packets.
pub fn check(data: &[u8]) {
    let Some((spec, mut c)) = read(data) else { return };
    let (seed, tracked) = (u64::from(c.below(256)), c.one_in(2));
    let mut drive = Drive::new(&spec, seed, tracked);
    let mut id = 0;
    while !c.is_empty() && id < u64::from(MOST) {
        let pause = if c.one_in(2) { 0 } else { c.size(PAUSE) };
        drive.run(Time(drive.now.0 + u64::from(pause)));
        let packet = packet(&mut c, id, drive.now);
        drive.push(packet);
        id += 1;
    }
    drive.run(Time(drive.now.0 + 20_000_000_000));
    drive.check_accounts();
}

/// The path that bytes choose, and the choices left for its packets; `None` where it is refused.
pub fn read(data: &[u8]) -> Option<(PathSpec, Choices<'_>)> {
    let mut c = Choices::new(data);
    Some((schedule::path(&mut c, Host::Sender, 3)?, c))
}

/// A packet of one of four flows: data, perhaps offloaded, or an ACK.
fn packet(c: &mut Choices<'_>, id: u64, now: Time) -> Packet<Segment> {
    let pure = c.one_in(3);
    let segs = if !pure && c.one_in(4) { 1 + c.below(44) } else { 1 };
    let mss = c.pick(&[1448, 76, 8948]);
    let mut body = Segment { len: if pure { 0 } else { mss * segs }, ack: id * 1448, flags: Flags::ACK, ..Default::default() };
    if c.one_in(6) {
        body.push_sack((id * 1448 + 1448, id * 1448 + 2 * 1448));
    }
    let ecn = c.pick(&[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let edt = c.one_in(4).then(|| Edt::at(Time(now.0 + u64::from(c.size(15_000_000)))));
    Packet { id, flow: c.below(4), size: body.len + 66 * segs, segs: segs as u16, ecn, edt, body, ..Default::default() }
}

/// A pipe under test.
struct Drive<'a> {
    spec: &'a PathSpec,
    pipe: Pipe<Segment>,
    now: Time,
    tracked: bool,
    pushed: u64,
    came_out: u64,
    bytes_pushed: u64,
    bytes_released: u64,
    looks: u32,
    steps: u32,
}

impl<'a> Drive<'a> {
    fn new(spec: &'a PathSpec, seed: u64, tracked: bool) -> Drive<'a> {
        let mut pipe = Pipe::new(spec, seed, "forward");
        if tracked {
            pipe.track_departures();
        }
        Drive { spec, pipe, now: Time::ZERO, tracked, pushed: 0, came_out: 0, bytes_pushed: 0, bytes_released: 0, looks: 0, steps: 0 }
    }

    fn push(&mut self, p: Packet<Segment>) {
        self.bytes_pushed += u64::from(p.size);
        self.pushed += 1;
        self.pipe.push(self.now, p);
        self.account();
    }

    /// Takes out what comes until `until`, instant by instant.
    fn run(&mut self, until: Time) {
        let mut asked = 0;
        while let Some(t) = self.pipe.next_event().filter(|&t| t <= until) {
            if self.looks == LOOKS {
                break;
            }
            self.looks += 1;
            asked = if t <= self.now { asked + 1 } else { 0 };
            self.now = t.max(self.now);
            while self.pipe.pop(self.now).is_some() {
                self.came_out += 1;
            }
            self.account();
            let most = ASKS_AT_ONCE * (self.pipe.held() + 1);
            assert!(asked <= most, "time stands still at {}: {}", self.now, json(self.spec));
        }
        self.now = until.max(self.now);
    }

    fn account(&mut self) {
        let released: u64 = self.pipe.drain_released().map(|(_, size, _)| u64::from(size)).sum();
        assert!(self.tracked || released == 0, "departures that nobody asked for: {}", json(self.spec));
        self.bytes_released += released;
        // Where copies leave too, nothing holds the sender.
        let twice = self.pipe.holds_sender() && self.bytes_released > self.bytes_pushed;
        assert!(!twice, "a departure is told twice: {}", json(self.spec));
        self.steps += 1;
        if self.steps % ACCOUNTS == 0 {
            self.check_accounts();
        }
    }

    fn check_accounts(&self) {
        if let Err(broken) = self.pipe.check_accounts() {
            panic!("at {}: {broken}: {}", self.now, json(self.spec));
        }
        let stats = self.pipe.stats();
        let gained: u64 = stats.iter().map(|s| s.duplicated + s.segmented).sum();
        let dropped: u64 = stats.iter().map(|s| s.drops.total()).sum();
        let (entered, left) = (self.pushed + gained, self.came_out + dropped + self.pipe.held());
        assert_eq!(entered, left, "packets in and out at {}: {} {stats:#?}", self.now, json(self.spec));
    }
}

fn json(spec: &PathSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}
