//! Packet scripts: segments and times in, segments and window out. Times are in ms since the connection was established; the RTT is
//! 100 ms, a tick 1 ms, the handshake sample makes the RTO 300 ms unless a test says otherwise. Segments are named by their number.

mod accecn;
mod detection;
mod ecn;
mod output;
mod recovery;
mod refused;
mod start;
mod timeout;
mod v6_12;
mod view;
mod window;

use super::*;
use crate::cc::{self, AckSample, CongestionController, View};
use crate::Jiffies;
use cc::Window;
use std::sync::{Arc, Mutex};
use tcpscape_base::{CaState, Duration, Flags, Kernel};

const MSS: u32 = 1448;
/// When the SYN leaves, ms.
const SYN_AT: u64 = 10_000;

/// Sequence number of the first byte of segment `n`.
fn seg(n: u64) -> u64 {
    1 + n * u64::from(MSS)
}

/// A window that nobody changes, and a note of what was learned.
#[derive(Clone, Default)]
struct Spy {
    rate: u64,
    samples: Arc<Mutex<Vec<AckSample>>>,
    lost: Arc<Mutex<Vec<cc::LostPacket>>>,
}

impl CongestionController for Spy {
    fn init(&mut self, _v: &View, w: &mut Window) {
        w.paced = self.rate > 0;
        w.pacing_rate = if self.rate > 0 { self.rate } else { u64::MAX };
    }
    fn ssthresh(&mut self, _v: &View, w: &Window) -> u32 {
        w.cwnd
    }
    fn on_ack(&mut self, _v: &View, _w: &mut Window, s: &AckSample) {
        self.samples.lock().unwrap().push(*s);
    }
    fn wants_lost(&self) -> bool {
        true
    }
    fn on_lost(&mut self, _v: &View, _w: &mut Window, p: &cc::LostPacket) {
        self.lost.lock().unwrap().push(*p);
    }
    fn owns_window(&self) -> bool {
        true
    }
}

/// A connection whose peer is the test.
struct Script {
    s: Sender,
    /// When it was established.
    base: u64,
    rtt_ms: u64,
}

fn config() -> SenderConfig {
    let kernel = Kernel { hz: 1_000, ..Kernel::V6_1 };
    SenderConfig {
        kernel,
        jiffies: Jiffies::new(kernel.hz, Duration::ZERO),
        mss: MSS,
        sndbuf: 0,
        gso: true,
        nodelay: true,
        ecn: false,
        tsq: false,
        watch_host: false,
        fq: false,
        bare_host: false,
        tuning: Tuning::default(),
        congestion: cc::make("reno", 0).unwrap(),
    }
}

impl Script {
    /// Established after `rtt_ms`, with a receive window of 2,000,000 bytes.
    fn with(cfg: SenderConfig, rtt_ms: u64) -> Script {
        let mut s = Sender::new(cfg);
        let t = Time(SYN_AT * 1_000_000);
        s.connect(t, t);
        s.poll_transmit().unwrap();
        let mut x = Script { s, base: SYN_AT + rtt_ms, rtt_ms };
        let syn_ack = Segment {
            flags: Flags::SYN.with(Flags::ACK),
            ack: 1,
            wnd: 2_000_000,
            tsval: x.ts(0.0),
            tsecr: x.ts(-(rtt_ms as f64)),
            ..Segment::default()
        };
        x.s.on_segment(x.time(0.0), &syn_ack);
        x.s.poll_transmit().unwrap();
        assert!(x.s.take_wake());
        x
    }

    fn new() -> Script {
        Script::with(config(), 100)
    }

    fn time(&self, ms: f64) -> Time {
        Time((self.base as f64 * 1e6 + ms * 1e6) as u64)
    }

    /// The timestamp clock then.
    fn ts(&self, ms: f64) -> u32 {
        config().jiffies.stamp(self.time(ms))
    }

    /// Lets timers fire until `ms`.
    fn run(&mut self, ms: f64) {
        let until = self.time(ms);
        while let Some(t) = self.s.next_event().filter(|&t| t <= until) {
            self.s.on_timer(t);
            self.s.check_invariants();
        }
    }

    /// Writes `bytes` at `ms`; returns what was accepted.
    fn write(&mut self, ms: f64, bytes: u64) -> u64 {
        self.run(ms);
        let n = self.s.write(self.time(ms), bytes);
        self.s.check_invariants();
        n
    }

    /// Writes `n` segments, whatever the send buffer.
    fn write_segs(&mut self, ms: f64, n: u64) {
        self.make_room(10_000_000);
        assert_eq!(self.write(ms, n * u64::from(MSS)), n * u64::from(MSS));
    }

    fn give(&mut self, ms: f64, a: Segment) {
        self.run(ms);
        self.s.on_segment(self.time(ms), &a);
        self.s.check_invariants();
    }

    /// An ACK that has everything below segment `n` and echoes what was sent an RTT ago.
    fn plain(&self, ms: f64, n: u64) -> Segment {
        let tsecr = self.ts(ms - self.rtt_ms as f64);
        Segment { seq: 1, ack: seg(n), wnd: 2_000_000, flags: Flags::ACK, tsval: self.ts(ms), tsecr, ..Segment::default() }
    }

    fn ack(&mut self, ms: f64, n: u64) {
        self.give(ms, self.plain(ms, n));
    }

    /// An ACK with SACK (or DSACK) blocks of whole segments.
    fn sack(&mut self, ms: f64, n: u64, blocks: &[(u64, u64)]) {
        let mut a = self.plain(ms, n);
        blocks.iter().for_each(|b| a.push_sack((seg(b.0), seg(b.1))));
        self.give(ms, a);
    }

    /// The peer's window from now on, bytes: closed first, since an ACK that repeats the number cannot shrink it.
    fn peer_window(&mut self, ms: f64, wnd: u32) {
        for wnd in [0, wnd] {
            self.give(ms, Segment { wnd, ..self.plain(ms, 0) });
        }
    }

    /// The ACK that a repeated SYN-ACK is answered with.
    fn pure_ack(&mut self, ms: f64) -> Segment {
        self.give(ms, Segment { flags: Flags::SYN.with(Flags::ACK), ..Segment::default() });
        self.s.poll_transmit().unwrap().segment
    }

    /// What has left since the last call: (number of its first segment, bytes).
    fn sent(&mut self) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| self.s.poll_transmit())
            .filter(|t| t.segment.len > 0)
            .map(|t| ((t.segment.seq - 1) / u64::from(MSS), t.segment.len))
            .collect()
    }

    /// Numbers of the segments that have left since the last call.
    fn sent_segs(&mut self) -> Vec<u64> {
        let bursts = self.sent();
        bursts.iter().flat_map(|&(n, len)| n..n + u64::from(len.div_ceil(MSS))).collect()
    }

    /// `n` segments of a window of `n` are out, sent at 0; `more` wait.
    fn full_window(n: u32, more: u64) -> Script {
        let mut x = Script::new();
        x.set_cwnd(n);
        x.write_segs(0.0, u64::from(n) + more);
        assert_eq!(x.sent_segs().len() as u32, n);
        x
    }
}
