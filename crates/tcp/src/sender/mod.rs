//! The sending side of TCP: a machine of one connection that is written to and acknowledged, without a clock or a socket.
//!
//! [`Connection`] is what is known; three owners decide. An ACK goes through them in one direction ([`Sender::on_ack`]): it is read into a
//! report, [`Repair`] judges it and answers with actions, the [`Governor`] of the window carries out the one for the window, [`Outbound`] the
//! ones for the timer and for what is sent. Each owner has its state to itself; what one needs of another is an argument. Which rule is where:
//! docs/models/tcp/sender.md. Source: RFC 9293, 5681, 6298, 6675, 6937, 8985, 5682, 3522, 3708, 7323, and observed behaviour of Linux 6.1 and
//! 6.12. How it differs, what it does not model: there.

mod ack;
mod config;
mod connection;
mod delivery;
mod ecn;
mod flight;
mod governor;
mod handshake;
mod info;
mod outbound;
mod peer;
mod repair;
mod report;
mod rtt;

pub use config::{SenderConfig, Transmit, Tuning};
pub use info::{EventCounts, Info, Limit, SenderStats, LIMITS};
pub use tcpscape_base::Histogram;

use crate::cc::{AckSample, View};
use ack::Kind;
use connection::Connection;
use governor::Governor;
use handshake::{Handshake, State};
use outbound::{Outbound, Purpose, Reason};
use repair::{Repair, Rest};
use report::{Actions, Resend, TimerOrder, WindowOrder};
use tcpscape_base::{Segment, Time};

/// The sending machine of one connection.
pub struct Sender {
    handshake: Handshake,
    /// What is known.
    c: Connection,
    /// What is lost, and what becomes of the window because of it.
    repair: Repair,
    /// The congestion control and its window.
    governor: Governor,
    /// What leaves, and when.
    outbound: Outbound,
}

impl Sender {
    /// A closed connection; [`Sender::connect`] opens it.
    pub fn new(cfg: SenderConfig) -> Sender {
        Sender {
            handshake: Handshake::new(),
            c: Connection::new(&cfg),
            repair: Repair::new(),
            outbound: Outbound::new(cfg.send_buffer(), cfg.sndbuf > 0, cfg.kernel.skb_overhead),
            governor: Governor::new(cfg.congestion),
        }
    }

    /// Takes in a segment from the peer.
    pub fn on_segment(&mut self, now: Time, s: &Segment) {
        self.c.set_now(now);
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
        let is_next = self.handshake.is_done() && self.c.peer.receives(s);
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
        self.c.set_now(now);
        match self.outbound.due(&self.c) {
            None => {}
            Some(Purpose::Reordering) => self.on_reordering_timer(),
            Some(Purpose::LossProbe) => self.send_loss_probe(),
            Some(Purpose::Retransmit) => self.on_retransmission_timeout(),
            Some(Purpose::WindowProbe) => {
                self.outbound.stop_timer();
                self.outbound.on_window_probe_timer(&mut self.c, &mut self.governor, self.repair.standing());
            }
        }
        if self.outbound.take_released(now) {
            self.on_released();
        }
        self.account();
    }

    /// When [`Sender::on_timer`] wants to be called.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.outbound.next_event()
    }

    /// The next segment that leaves.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbound.poll(&self.c)
    }

    /// `bytes` of the frames of that burst have left the sender's host, or were dropped in its queue. With TCP small queues
    /// their memory is free again.
    pub fn on_departure(&mut self, now: Time, burst: u32, bytes: u32) {
        if self.outbound.on_departure(burst, bytes, &self.c) {
            self.on_room_in_host(now);
        }
    }

    /// The queue of the sender's own host has no room for `t`, the segment just given by [`Sender::poll_transmit`]. Its data wait
    /// for the next occasion (an ACK, a write, a timer); what was to follow in the same batch does too. The window shrinks as after a signal of
    /// congestion.
    pub fn on_refused(&mut self, now: Time, t: &Transmit) {
        self.c.set_now(now);
        if !self.handshake.is_done() {
            return;
        }
        let back = self.outbound.take_all_back(t, &mut self.c);
        self.repair.on_taken_back(&back);
        let (repair, mut rest) = self.repair();
        repair.enter_cwr(&mut rest);
        if self.c.flight.out() == 0 {
            self.outbound.stop_timer();
            self.outbound.schedule_window_probe(&self.c);
        }
        self.account();
    }

    /// The application writes up to `bytes`; returns how many were accepted. When fewer were, the writer blocks until
    /// [`Sender::take_wake`] says so.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.take_write(now, bytes, true)
    }

    /// The application goes on with a write that has blocked after some of its bytes were accepted: `bytes` are left of it.
    pub fn continue_write(&mut self, now: Time, bytes: u64) -> u64 {
        self.take_write(now, bytes, false)
    }

    fn take_write(&mut self, now: Time, bytes: u64, is_new: bool) -> u64 {
        self.c.set_now(now);
        if !self.handshake.is_done() {
            self.outbound.block_writer();
            return 0;
        }
        let written = self.outbound.write(bytes, is_new, &mut self.c, &mut self.governor, self.repair.standing());
        self.repair.on_sent(written.sent);
        self.account();
        written.bytes
    }

    /// The application sets `TCP_NODELAY`.
    pub fn set_nodelay(&mut self) {
        self.c.cfg.nodelay = true;
    }

    /// The application ends its stream. The FIN is one more byte of it, whose flag and length are the caller's affair: it waits neither for the
    /// congestion window nor for a fuller burst, and Nagle's rule ends (observed on Linux 6.18). No trial ends so: its connections are reset.
    pub fn finish(&mut self, now: Time) {
        self.set_nodelay();
        self.outbound.finish();
        self.write(now, 1);
    }

    /// The application sets `SO_SNDBUF` to `bytes`. Returns the bytes of memory that it gives.
    pub fn set_send_buffer(&mut self, bytes: u32) -> u32 {
        let size = config::fixed_send_buffer(bytes, &self.c.cfg.kernel);
        self.outbound.fix_send_buffer(size);
        size
    }

    /// Whether a blocked or new writer should be woken; the answer is given once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        self.outbound.take_wake()
    }

    /// Whether segments wait in [`Sender::poll_transmit`].
    pub fn has_output(&self) -> bool {
        self.outbound.has_output()
    }

    /// Whether the connection is established.
    pub fn established(&self) -> bool {
        self.handshake.is_done()
    }

    /// Next sequence number to send.
    pub fn snd_nxt(&self) -> u64 {
        self.c.flight.nxt()
    }

    /// Whether both ends agreed to use ECN.
    pub fn uses_ecn(&self) -> bool {
        self.c.ecn.mode.is_on()
    }

    /// Everything acknowledged and nothing waiting.
    pub fn idle(&self) -> bool {
        self.c.flight.out() == 0 && !self.outbound.has_unsent()
    }

    /// Bytes acknowledged so far.
    pub fn bytes_acked(&self) -> u64 {
        self.c.flight.una() - 1
    }

    // ---- a segment from the peer ----

    /// A segment has come on an established connection.
    fn on_established(&mut self, s: &Segment) {
        self.c.stats.segs_in += 1;
        let timer = match self.c.classify(s) {
            Kind::Syn => return self.outbound.give(self.c.bare_ack(self.c.flight.nxt())), // its ACK was lost
            Kind::OldTimestamp | Kind::TooOld => return self.answer_unacceptable(),
            Kind::Unsent => return,
            Kind::Current => self.on_ack(s),
            Kind::Old => self.on_old_ack(s),
        };
        let sent = self.outbound.answer(timer, &mut self.c, &mut self.governor, self.repair.standing());
        self.repair.on_sent(sent);
        self.outbound.check_space(&self.c, &mut self.governor, self.repair.standing());
    }

    // RFC 9293 §3.10.7.4: an unacceptable segment is answered by an ACK.
    fn answer_unacceptable(&mut self) {
        if self.c.peer.take_answer(self.c.tick(), &self.c.cfg.jiffies) {
            self.send_ack();
        }
    }

    /// An ACK at or above the left edge: it is read and judged, the window follows, and what is lost goes out again. Returns what is left to do
    /// with the timer.
    #[inline]
    fn on_ack(&mut self, s: &Segment) -> TimerOrder {
        let window = self.c.take_window(s);
        if window.changed && self.outbound.has_unsent() {
            self.governor.restart_after_pause(&self.c, self.repair.state(), self.outbound.waiting());
        }
        let mut report = self.c.begin_report(s, window);
        self.c.read(s, &self.repair.watch(), &mut report);
        let mut view = self.view();
        self.governor.on_read(&view, &report);
        if report.was_idle {
            let (repair, mut rest) = self.repair();
            repair.on_idle_ack(&report, &mut rest);
            self.outbound.on_window_news(&mut self.c);
            return TimerOrder::Keep;
        }
        let usable = self.repair.are_rates_usable();
        let actions = self.repair.on_ack(&report, &mut self.c, &mut self.governor, self.outbound.waiting());
        let sample = self.c.sample(&report, usable);
        match actions.window {
            WindowOrder::Keep => {}
            WindowOrder::Reduce(cwnd) => {
                self.governor.reduce_to(cwnd);
                if self.governor.owns_window() {
                    view = self.view();
                    self.ask_control(&view, AckSample { may_raise: false, ..sample });
                }
            }
            WindowOrder::Ask(progress) => {
                if actions.orderly {
                    view.counts = self.c.counts(); // the rest is as it was
                } else {
                    view = self.view();
                }
                self.ask_control(&view, AckSample { may_raise: progress, ..sample });
            }
        }
        self.governor.update_pacing_rate(&self.c);
        self.resend(&actions)
    }

    /// The congestion control decides about the window; it may ask for a reduction.
    #[inline]
    fn ask_control(&mut self, view: &View, sample: AckSample) {
        if self.governor.on_ack(view, &sample, self.c.tick()) {
            let (repair, mut rest) = self.repair();
            repair.enter_cwr(&mut rest);
        }
    }

    /// An ACK older than the newest, still young enough for its SACK blocks.
    fn on_old_ack(&mut self, s: &Segment) -> TimerOrder {
        if s.sacks().len() == 0 {
            return TimerOrder::Keep;
        }
        let report = self.c.read_old(s, &self.repair.watch());
        let (repair, mut rest) = self.repair();
        let actions = repair.on_old_ack(&report, &mut rest);
        self.resend(&actions)
    }

    // ---- what the owners are given ----

    /// What the congestion control may read now.
    #[inline]
    fn view(&self) -> View {
        self.governor.view(&self.c, self.repair.state(), self.outbound.waiting())
    }

    /// Repair, and what it works on.
    #[inline]
    fn repair(&mut self) -> (&mut Repair, Rest<'_>) {
        (&mut self.repair, Rest { c: &mut self.c, governor: &mut self.governor, waiting: self.outbound.waiting() })
    }

    // ---- what goes out ----

    /// RFC 5682 §3.1 step 2.b and RFC 6675 §5 step C: sends again what an ACK has made due, once the timer is set. Returns what is left to do
    /// with that.
    #[inline]
    fn resend(&mut self, actions: &Actions) -> TimerOrder {
        if actions.resend == Resend::Nothing {
            return actions.timer;
        }
        self.outbound.set_timer(actions.timer, &self.c);
        if actions.resend == Resend::NewFirst {
            let sent = self.outbound.push_pending(&mut self.c, &mut self.governor, self.repair.standing());
            self.repair.on_sent(sent);
            if self.repair.new_data_left(self.c.flight.nxt()) {
                return TimerOrder::Keep;
            }
        }
        self.send_lost();
        TimerOrder::Keep
    }

    fn send_lost(&mut self) {
        let copies = self.outbound.send_lost(&mut self.c, &mut self.governor, self.repair.state());
        self.repair.on_resent(&copies);
    }

    fn send_ack(&mut self) {
        self.outbound.send_ack(self.c.bare_ack(self.c.flight.nxt()), self.c.now.time);
    }

    #[inline(never)]
    fn on_room_in_host(&mut self, now: Time) {
        self.c.set_now(now);
        self.on_released();
        self.account();
    }

    /// What waited may go: the pacing timer has fired, or the host's queue has let something go.
    fn on_released(&mut self) {
        if !self.handshake.is_done() {
            return;
        }
        if self.c.flight.has_lost_to_send() && self.governor.cwnd() > self.c.flight.in_flight() {
            self.send_lost();
        }
        let sent = self.outbound.send_pending(Reason::All, &mut self.c, &mut self.governor, self.repair.standing());
        self.repair.on_sent(sent);
    }

    // ---- timers ----

    /// RFC 8985 §6.2 step 5.
    fn on_reordering_timer(&mut self) {
        let (repair, mut rest) = self.repair();
        if repair.on_reordering_timer(&mut rest) {
            self.send_lost();
        }
        if self.outbound.purpose() != Some(Purpose::Retransmit) {
            self.outbound.rearm_rto(&self.c);
        }
    }

    /// RFC 8985 §7.3: one new segment, or the last one again.
    fn send_loss_probe(&mut self) {
        if !self.repair.probe_is_out() {
            let resent = !self.outbound.window_allows_head(&self.c);
            let left = if resent {
                self.outbound.probe_with_last(&mut self.c, &mut self.governor, self.repair.state())
            } else {
                let sent = self.outbound.send_pending(Reason::Probe, &mut self.c, &mut self.governor, self.repair.standing());
                self.repair.on_sent(sent);
                sent > 0
            };
            if left {
                self.repair.on_probe_sent(self.c.flight.nxt(), resent);
                self.c.stats.tlps += 1;
                self.outbound.stop_timer();
            }
        }
        self.outbound.rearm_rto(&self.c);
    }

    /// RFC 6298 §5.4 to §5.6.
    fn on_retransmission_timeout(&mut self) {
        self.outbound.stop_timer();
        if self.handshake.state() == State::SynSent {
            return self.on_syn_timeout();
        }
        if self.c.flight.out() == 0 {
            return;
        }
        self.c.stats.rtos += 1;
        let (repair, mut rest) = self.repair();
        repair.on_timeout(&mut rest);
        if self.c.peer.window() > 0 {
            self.c.rtt.count_timeout();
        }
        let copies = self.outbound.send_head_again(&mut self.c, &mut self.governor, self.repair.state());
        self.repair.on_resent(&copies);
        self.c.rtt.timed_out(&self.c.cfg.jiffies);
        self.outbound.arm(Purpose::Retransmit, self.c.rtt.rto(), &self.c);
    }
}

/// Sequence number of the peer's first data, behind its SYN.
const FIRST_DATA: u64 = 1;

#[cfg(test)]
mod tests;
