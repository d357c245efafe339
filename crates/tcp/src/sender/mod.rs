//! The sending side of TCP: a machine of one connection that is written to and acknowledged, without a clock or a socket.
//!
//! A segment from the peer goes through it in one direction: `ack.rs` reads it into an [`report::AckReport`], `recovery.rs` judges what that
//! proves, `reduction.rs` carries the verdict out, `control.rs` lets the congestion control set the window, `output.rs` and `retransmit.rs`
//! send what is due. Each rule has its state in a component of its own: see docs/models/tcp/sender.md for the table. Source: RFC 9293, 5681,
//! 6298, 6675, 6937, 8985, 5682, 3522, 3708, 7323, and observed behaviour of Linux 6.1 and 6.12. How it differs, what it does not model: there.

mod accecn;
mod ack;
mod config;
mod control;
mod delivery;
mod ecn;
mod flight;
mod frto;
mod handshake;
mod host_queue;
mod info;
mod losses;
mod output;
mod pacer;
mod peer;
mod prr;
mod rack;
mod recovery;
mod reduction;
mod refused;
mod report;
mod retransmit;
mod rtt;
mod send_buffer;
mod timeouts;
mod timer;
mod tlp;
mod undo;
mod window_use;

pub use config::{SenderConfig, Transmit};
pub use info::{EventCounts, Info, Limit, SenderStats, LIMITS};
pub use tcpscape_base::Histogram;

use crate::cc::Window;
use config::Settings;
use control::Control;
use delivery::DeliveryRate;
use ecn::EcnState;
use flight::{timestamp, Flight};
use handshake::{Handshake, State};
use host_queue::HostQueue;
use pacer::Pacer;
use peer::Peer;
use rack::Rack;
use recovery::Recovery;
use rtt::Rtt;
use send_buffer::SendBuffer;
use std::collections::VecDeque;
use tcpscape_base::{Segment, Time};
use timer::Timer;
use tlp::Tlp;
use window_use::WindowUse;

/// A time, with the tick of the host's clock that it lies in.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    time: Time,
    tick: u64,
}

/// The sending machine of one connection.
pub struct Sender {
    cfg: Settings,
    now: Moment,
    handshake: Handshake,
    // What is told from outside.
    peer: Peer,
    ecn: EcnState,
    // What is known of the data.
    buffer: SendBuffer,
    flight: Flight,
    delivery: DeliveryRate,
    rtt: Rtt,
    rack: Rack,
    tlp: Tlp,
    recovery: Recovery,
    // What decides how much may leave, and when.
    control: Control,
    w: Window,
    window_use: WindowUse,
    pacer: Pacer,
    host: HostQueue,
    timer: Timer,
    // What comes out: segments, with the burst they belong to (0 for none), and numbers.
    out: VecDeque<(Segment, u32)>,
    stats: SenderStats,
}

impl Sender {
    /// A closed connection; [`Sender::connect`] opens it.
    pub fn new(cfg: SenderConfig) -> Sender {
        let (size, fixed) = cfg.send_buffer();
        Sender {
            cfg: cfg.settings(),
            now: Moment::default(),
            handshake: Handshake::new(),
            peer: Peer::default(),
            ecn: EcnState::new(cfg.ecn, &*cfg.congestion),
            buffer: SendBuffer::new(size, fixed, cfg.kernel.skb_overhead),
            flight: Flight::new(),
            delivery: DeliveryRate::new(),
            rtt: Rtt::new(&cfg.jiffies),
            rack: Rack::new(),
            tlp: Tlp::default(),
            recovery: Recovery::new(),
            control: Control::new(cfg.congestion),
            w: Window::default(),
            window_use: WindowUse::default(),
            pacer: Pacer::default(),
            host: HostQueue::new(),
            timer: Timer::default(),
            out: VecDeque::new(),
            stats: SenderStats::default(),
        }
    }

    /// Takes in a segment from the peer.
    pub fn on_segment(&mut self, now: Time, s: &Segment) {
        self.set_now(now);
        match self.handshake.state() {
            State::Closed => {}
            State::SynSent => self.on_syn_ack(s),
            State::Established => self.on_established(s),
        }
        self.account();
    }

    /// Data of the peer's application have come, after [`Sender::on_segment`] was given the segment: whether they are the next ones. The first
    /// ones of all are acknowledged at once, later ones by the data that are sent from now on (docs/models/methods/player.md, "On the wire").
    pub fn receive(&mut self, s: &Segment) -> bool {
        let is_next = self.handshake.is_done() && self.peer.receives(s);
        if is_next && s.seq == FIRST_DATA {
            self.send_ack();
        }
        is_next
    }

    /// SYNs sent again, which `retransmits` does not count.
    pub fn repeated_syns(&self) -> u32 {
        self.handshake.repeated()
    }

    /// A timer set by [`Sender::next_event`] has come.
    pub fn on_timer(&mut self, now: Time) {
        self.set_now(now);
        self.on_fired();
        if self.pacer.take_due(now) {
            self.on_released();
        }
        self.account();
    }

    /// When [`Sender::on_timer`] wants to be called.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match (self.timer.fires(), self.pacer.timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The next segment that leaves.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let Some((segment, burst)) = self.out.pop_front() else {
            self.out.clear(); // the next one starts at the front of the same memory
            return None;
        };
        let departure = self.departure(&segment, burst);
        Some(Transmit { segment, segs: segment.len.div_ceil(self.cfg.mss).max(1) as u16, burst, departure })
    }

    /// The application writes up to `bytes`; returns how many were accepted. When fewer were, the writer blocks until
    /// [`Sender::take_wake`] says so.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.set_now(now);
        if !self.handshake.is_done() {
            self.buffer.block();
            return 0;
        }
        self.host.enter_process();
        let n = self.take_write(bytes);
        self.host.leave_process();
        self.account();
        n
    }

    /// Whether a blocked or new writer should be woken; the answer is given once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        self.buffer.take_wake()
    }

    /// Whether segments wait in [`Sender::poll_transmit`].
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether the connection is established.
    pub fn established(&self) -> bool {
        self.handshake.is_done()
    }

    /// Next sequence number to send.
    pub fn snd_nxt(&self) -> u64 {
        self.flight.nxt()
    }

    /// Whether both ends agreed to use ECN.
    pub fn uses_ecn(&self) -> bool {
        self.ecn.mode.is_on()
    }

    /// Everything acknowledged and nothing waiting.
    pub fn idle(&self) -> bool {
        self.flight.out() == 0 && self.buffer.is_empty()
    }

    /// Bytes acknowledged so far.
    pub fn bytes_acked(&self) -> u64 {
        self.flight.una() - 1
    }

    // ---- the clocks ----

    /// It is `now`.
    #[inline]
    fn set_now(&mut self, now: Time) {
        self.now = Moment { time: now, tick: self.cfg.jiffies.at(now) };
    }
    /// Now, µs.
    #[inline]
    fn now_us(&self) -> u64 {
        self.now.time.micros()
    }
    /// Now, ticks of the host.
    #[inline]
    fn tick(&self) -> u64 {
        self.now.tick
    }
    /// Now, on the clock of timestamps.
    #[inline]
    fn timestamp(&self) -> u32 {
        timestamp(self.now.time.0)
    }
}

/// Sequence number of the peer's first data, behind its SYN.
const FIRST_DATA: u64 = 1;

#[cfg(test)]
mod tests;
