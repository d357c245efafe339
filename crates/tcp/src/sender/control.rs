//! The congestion control of a connection: what it may read, when it is asked, and what it writes.
//!
//! Source: RFC 5681 §3.1 (growth), RFC 6937 (reduction), docs/models/tcp/pacing.md (the rate of controls that set none). How it differs: nothing
//! known. Not modelled: a change of the control while the connection runs.

use super::report::AckReport;
use super::Sender;
use crate::cc::{AckSample, CaEvent, CongestionController, Counts, InAck, PktsAcked, RateSample, Timestamps, View};

/// A congestion control with what it has said of itself.
pub(super) struct Control {
    /// The control.
    pub cc: Box<dyn CongestionController>,
    /// It sets window and rate itself on every ACK.
    pub owns_window: bool,
    /// It wants to know of packets marked lost.
    pub wants_lost: bool,
    wants_in_ack: bool,
}

impl Control {
    /// Asks the control what it wants.
    pub fn new(cc: Box<dyn CongestionController>) -> Control {
        Control { owns_window: cc.owns_window(), wants_lost: cc.wants_lost(), wants_in_ack: cc.wants_in_ack(), cc }
    }
}

impl Sender {
    /// What the congestion control may read now.
    pub(super) fn view(&self) -> View {
        View {
            now: self.now.time,
            jiffies: self.tick() as u32,
            hz: self.cfg.jiffies.hz(),
            mss: self.cfg.mss,
            snd_una: self.flight.una(),
            snd_nxt: self.flight.nxt(),
            srtt_us: self.rtt.srtt8_us(),
            min_rtt_us: self.rtt.min_us(),
            in_flight: self.flight.in_flight(),
            packets_out: self.flight.out(),
            sacked_out: self.flight.sacked(),
            counts: self.counts(),
            ca_state: self.recovery.state(),
            is_cwnd_limited: self.window_use.is_limited(),
            most_packets_out: self.window_use.most_out(),
            last_sent: self.window_use.last_sent() as u32,
            has_unsent: !self.buffer.is_empty(),
            pacing_next_ns: self.pacer.next_ns(),
            timestamps: Timestamps { value: self.peer.tsval(), echo: self.peer.echo() },
            ecn: self.ecn.mode,
        }
    }

    /// What happened to packets since the connection began.
    #[inline]
    fn counts(&self) -> Counts {
        Counts {
            delivered: self.delivery.delivered(),
            delivered_ce: self.delivery.delivered_ce(),
            lost: self.flight.marked_lost(),
            delivered_us: self.delivery.delivered_us(),
            app_limited: self.delivery.app_limited_until(),
        }
    }

    /// Something has happened to the connection.
    pub(super) fn event(&mut self, e: CaEvent) {
        let v = self.view();
        self.control.cc.on_event(&v, &mut self.w, e);
    }

    /// An ACK has been read, before anything is decided.
    pub(super) fn notify_control(&mut self, r: &AckReport) {
        if !r.was_idle {
            let since = self.delivery.delivered().wrapping_sub(r.delivery.sampled.as_ref().map_or(0, |p| p.delivered_then));
            let acked = PktsAcked { pkts_acked: r.delivery.acked, rtt_us: r.rtt_us, in_flight: self.cfg.mss.wrapping_mul(since) };
            let v = self.view();
            self.control.cc.pkts_acked(&v, &mut self.w, &acked);
        }
        if self.control.wants_in_ack {
            let ack = InAck { slow_path: !r.predicted, win_update: r.window_update, ece: r.congestion };
            let v = self.view();
            self.control.cc.in_ack(&v, &mut self.w, ack);
        }
    }

    /// The window after an ACK: reduced packet by packet while a reduction is under way, otherwise the control's affair.
    pub(super) fn control_window(&mut self, r: &AckReport) {
        // Where segments often arrive out of order, any delivery lets the window grow; otherwise only progress in order does.
        let progress = r.delivery.acked > 0 || (r.delivery.sacked > 0 && self.rack.reordering.is_large());
        let sample = AckSample { acked: r.delivered, ack: r.ack, may_raise: progress, rate: self.rate_sample(r) };
        let owns = self.control.owns_window;
        if !owns && self.recovery.is_reducing() {
            self.reduce(r.delivered, sample.rate.losses, r.advanced());
        } else {
            if owns || progress {
                let v = self.view();
                self.control.cc.on_ack(&v, &mut self.w, &sample);
                if std::mem::take(&mut self.w.enter_cwr) {
                    self.enter_cwr();
                }
            }
            if progress && !owns {
                self.window_use.touch(self.tick());
            }
        }
        self.update_pacing_rate();
    }

    /// The delivery-rate sample of an ACK.
    #[inline]
    fn rate_sample(&mut self, r: &AckReport) -> RateSample {
        let (now_us, min_rtt_us, marked) = (self.now_us(), self.rtt.min_us(), self.flight.marked_lost());
        let mut rate = self.delivery.sample(r.delivery.sampled.as_ref(), r.delivered, now_us, min_rtt_us, r.prior.rates_usable);
        rate.rtt_us = r.rtt_us;
        rate.losses = marked.wrapping_sub(r.prior.marked_lost);
        rate.lost = marked.wrapping_sub(r.delivery.sampled.as_ref().map_or(0, |p| p.lost_then));
        rate.prior_in_flight = r.prior.in_flight;
        rate.is_ack_delayed = r.maybe_delayed;
        rate
    }

    /// The rate of a control that sets none: what the window sends in an RTT, doubled in the first half of slow start, a fifth more after.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.control.owns_window {
            return;
        }
        let early = u64::from(self.w.cwnd) < u64::from(self.w.ssthresh) / 2;
        let percent = if early { PACING_SLOW_START } else { PACING_AVOIDANCE };
        let window = u64::from(self.cfg.mss) * u64::from(self.w.cwnd.max(self.flight.out()));
        // The smoothed RTT is in eighths of a µs; before the first sample it counts as one such eighth.
        let rate = window * percent * (8 * 1_000_000 / 100);
        self.w.pacing_rate = rate / u64::from(self.rtt.srtt8_us()).max(1);
    }
}

/// `net.ipv4.tcp_pacing_ss_ratio`, per cent.
const PACING_SLOW_START: u64 = 200;
/// `net.ipv4.tcp_pacing_ca_ratio`, per cent.
const PACING_AVOIDANCE: u64 = 120;
