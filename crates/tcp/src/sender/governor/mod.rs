//! The governor of a connection's window: its congestion control, what that may read, when it is asked, and what it has written.
//!
//! Source: RFC 5681 §3.1 (growth, the loss window), RFC 6937 (reduction), RFC 4015 §3.4 (restoring), RFC 7661 and 2861 (a window that was not
//! used), docs/models/tcp/pacing.md (the rate of controls that set none). How it differs: nothing known. Not modelled: a window in bytes, a
//! change of the control while the connection runs.

mod window_use;

use super::connection::Connection;
use super::report::{AckReport, Waiting};
use crate::cc::{
    AckSample, CaEvent, CongestionController, InAck, Observation, PktsAcked, Timestamps, View, Window, INFINITE_SSTHRESH, INIT_CWND,
};
use tcpscape_base::CaState;
use window_use::{Outstanding, WindowUse};

/// The congestion control of a connection with its window.
pub(super) struct Governor {
    cc: Box<dyn CongestionController>,
    /// It sets window and rate itself on every ACK.
    owns_window: bool,
    wants_lost: bool,
    wants_in_ack: bool,
    window: Window,
    usage: WindowUse,
}

impl Governor {
    /// Asks the control what it wants.
    pub fn new(cc: Box<dyn CongestionController>) -> Governor {
        Governor {
            owns_window: cc.owns_window(),
            wants_lost: cc.wants_lost(),
            wants_in_ack: cc.wants_in_ack(),
            cc,
            window: Window::default(),
            usage: WindowUse::default(),
        }
    }

    /// The connection is there after `rtt_us`; after `lost_syns` its window is one segment (RFC 5681 §3.1: more than one SYN was lost).
    pub fn start(&mut self, c: &Connection, rtt_us: u64, lost_syns: bool, waiting: Waiting) {
        self.window.cwnd = if lost_syns { 1 } else { c.cfg.kernel.initcwnd };
        self.usage.established(c.tick());
        let v = self.view(c, CaState::Open, waiting);
        self.cc.syn_acked(&v, rtt_us as i64);
        self.window.paced = c.cfg.fq;
        self.cc.init(&v, &mut self.window);
        self.owns_window = self.cc.owns_window();
        self.window.paced |= c.cfg.fq;
        self.update_pacing_rate(c);
    }

    // ---- what others read ----

    /// The control's own variables.
    pub fn observe(&self, v: &View, out: &mut Observation) {
        self.cc.observe(v, &self.window, out);
    }

    /// Window, threshold and rate.
    #[inline]
    pub fn window(&self) -> &Window {
        &self.window
    }
    /// The congestion window, packets.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.window.cwnd
    }
    /// The pacing rate, bytes a second; none if transmissions are not paced.
    #[inline]
    pub fn paced_rate(&self) -> Option<u64> {
        self.window.paced.then_some(self.window.pacing_rate)
    }
    /// Whether the control sets window and rate itself on every ACK.
    #[inline]
    pub fn owns_window(&self) -> bool {
        self.owns_window
    }
    /// Whether the control wants to know of packets marked lost.
    #[inline]
    pub fn wants_lost(&self) -> bool {
        self.wants_lost
    }
    /// Whether PRR governs the window in this state: in CWR and recovery, and where the control owns the window in recovery alone, if it says so.
    #[inline]
    pub fn follows_prr(&self, state: CaState) -> bool {
        if self.owns_window {
            state == CaState::Recovery && self.cc.repairs_by_prr()
        } else {
            is_reducing(state)
        }
    }
    /// Windows that the send buffer has room for.
    pub fn sndbuf_expand(&self) -> u32 {
        self.cc.sndbuf_expand()
    }
    /// Segments that one burst holds: those of `by_rate`, as far as the control bounds them, and no more than there is `room` for.
    #[inline]
    pub fn burst_segments(&self, by_rate: u32, room: u32, least: Option<u32>) -> u32 {
        let least = least.unwrap_or_else(|| self.cc.min_tso_segs(&self.window));
        let segments = by_rate.max(least).min(room);
        if self.owns_window {
            return segments.min(self.cc.max_tso_segs(&self.window)).max(1);
        }
        segments
    }
    /// The threshold that an undo returns to: three quarters of the window, if that is more than the present threshold.
    pub fn threshold_to_restore(&self, state: CaState) -> u32 {
        if is_reducing(state) {
            self.window.ssthresh
        } else {
            self.window.ssthresh.max(self.window.cwnd / 2 + self.window.cwnd / 4)
        }
    }

    /// What the congestion control may read now.
    #[inline]
    pub fn view(&self, c: &Connection, state: CaState, waiting: Waiting) -> View {
        View {
            now: c.now.time,
            jiffies: c.tick() as u32,
            hz: c.cfg.jiffies.hz(),
            mss: c.cfg.mss,
            snd_una: c.flight.una(),
            snd_nxt: c.flight.nxt(),
            srtt_us: c.rtt.srtt8_us(),
            min_rtt_us: c.rtt.min_us(),
            in_flight: c.flight.in_flight(),
            packets_out: c.flight.out(),
            sacked_out: c.flight.sacked(),
            counts: c.counts(),
            ca_state: state,
            is_cwnd_limited: self.usage.is_limited(),
            most_packets_out: self.usage.most_out(),
            last_sent: self.usage.last_sent() as u32,
            has_unsent: waiting.has_unsent,
            pacing_next_ns: waiting.next_departure_ns,
            timestamps: Timestamps { now: c.timestamp(), value: c.peer.tsval(), echo: c.peer.echo() },
            ecn: c.ecn.mode,
        }
    }

    // ---- an ACK ----

    /// An ACK has been read, before anything is decided.
    #[inline]
    pub fn on_read(&mut self, v: &View, r: &AckReport) {
        if !r.was_idle {
            let since = v.counts.delivered.wrapping_sub(r.delivery.sampled.as_ref().map_or(0, |p| p.delivered_then));
            let acked = PktsAcked { pkts_acked: r.delivery.acked, rtt_us: r.rtt_us, in_flight: v.mss.wrapping_mul(since) };
            self.cc.pkts_acked(v, &mut self.window, &acked);
        }
        if self.wants_in_ack {
            let ack = InAck { slow_path: !r.window.predicted, win_update: r.window.update, ece: r.congestion };
            self.cc.in_ack(v, &mut self.window, ack);
        }
    }

    /// The control decides about the window; returns whether it asks for a reduction as after a signal of congestion.
    #[inline]
    pub fn on_ack(&mut self, v: &View, sample: &AckSample, tick: u64) -> bool {
        self.cc.on_ack(v, &mut self.window, sample);
        if sample.may_raise && !self.owns_window {
            self.usage.touch(tick);
        }
        std::mem::take(&mut self.window.enter_cwr)
    }

    /// The window while it is reduced.
    #[inline]
    pub fn reduce_to(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd.clamp(1, self.window.clamp);
    }

    /// The rate of a control that sets none: what the window sends in an RTT, doubled in the first half of slow start, a fifth more after.
    #[inline]
    pub fn update_pacing_rate(&mut self, c: &Connection) {
        if self.owns_window {
            return;
        }
        let w = &mut self.window;
        let early = u64::from(w.cwnd) < u64::from(w.ssthresh) / 2;
        let percent = if early { PACING_SLOW_START } else { PACING_AVOIDANCE };
        let window = u64::from(c.cfg.mss) * u64::from(w.cwnd.max(c.flight.out()));
        // The smoothed RTT is in eighths of a µs; before the first sample it counts as one such eighth.
        let rate = window * percent * (8 * 1_000_000 / 100);
        w.pacing_rate = rate / u64::from(c.rtt.srtt8_us()).max(1);
    }

    // ---- reductions ----

    /// The segment `id` was just marked lost.
    pub fn on_lost(&mut self, v: &View, c: &Connection, id: u32) {
        self.cc.on_lost(v, &mut self.window, &c.flight.lost_packet(id));
    }

    /// Another state begins; the control learns of it while the old one is still visible.
    pub fn on_state(&mut self, v: &View, state: CaState) {
        self.cc.on_state(v, &mut self.window, state);
    }

    /// A loss event: the control says where the threshold falls to, and the window before it is kept for an undo.
    fn lower_threshold(&mut self, v: &View) {
        self.window.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = self.cc.ssthresh(v, &self.window);
    }

    /// A reduction begins: credit for growth is forgotten, the threshold falls. Returns the window before it.
    pub fn begin_reduction(&mut self, v: &View) -> u32 {
        self.window.cwnd_cnt = 0;
        self.lower_threshold(v);
        self.window.prior_cwnd
    }

    /// A reduction ends with the window at the threshold, unless it was undone.
    pub fn end_reduction(&mut self, v: &View, tick: u64, undone: bool) {
        if self.owns_window {
            return;
        }
        if self.window.ssthresh < INFINITE_SSTHRESH && !undone {
            self.window.cwnd = self.window.ssthresh.min(self.window.clamp);
            self.usage.touch(tick);
        }
        self.cc.on_event(v, &mut self.window, CaEvent::CompleteCwr);
    }

    /// A timeout that is a loss event of its own.
    pub fn on_loss_event(&mut self, v: &View) {
        self.lower_threshold(v);
        self.cc.on_event(v, &mut self.window, CaEvent::Loss);
    }

    /// The loss window of RFC 5681 §3.1: one segment more than is believed in flight. Credit for growth is forgotten.
    pub fn restart_window(&mut self, in_flight: u32, tick: u64) {
        self.window.cwnd_cnt = 0;
        self.window.cwnd = (in_flight + 1).min(self.window.clamp);
        self.usage.touch(tick);
    }

    /// RFC 4015 §3.4: the window is the control's affair; the threshold rises to what it was. Returns whether it did.
    pub fn restore(&mut self, v: &View, ssthresh: u32) -> bool {
        self.window.cwnd = self.cc.undo(v, &self.window).clamp(1, self.window.clamp);
        let rises = ssthresh > self.window.ssthresh;
        if rises {
            self.window.ssthresh = ssthresh;
        }
        rises
    }

    // ---- the use of the window ----

    /// The window was changed, or counts as full.
    #[inline]
    pub fn touch(&mut self, tick: u64) {
        self.usage.touch(tick);
    }

    /// Data leave now.
    #[inline]
    pub fn on_sending(&mut self, c: &Connection, state: CaState, waiting: Waiting) {
        if c.flight.in_flight() == 0 {
            let v = self.view(c, state, waiting);
            self.cc.on_event(&v, &mut self.window, CaEvent::TxStart);
        }
        self.usage.sent(c.tick());
    }

    /// After a transmission: was the window used? One that was not for an RTO shrinks halfway to what was (RFC 2861 §3.2), unless a writer is
    /// `blocked`.
    #[inline]
    pub fn judge_use(&mut self, c: &Connection, state: CaState, limited: bool, blocked: bool) {
        let outstanding = Outstanding {
            limited,
            out: c.flight.out(),
            una: c.flight.una(),
            nxt: c.flight.nxt(),
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
        };
        let unused = self.usage.judge(&outstanding, c.tick(), c.rtt.rto());
        if unused && c.cfg.kernel.slow_start_after_idle && !self.owns_window {
            self.shrink_unused(c, state, blocked);
        }
    }

    fn shrink_unused(&mut self, c: &Connection, state: CaState, blocked: bool) {
        if state == CaState::Open && !blocked {
            if let Some(cwnd) = self.usage.halfway_to_use(self.window.cwnd, c.cfg.kernel.initcwnd) {
                self.window.ssthresh = self.threshold_to_restore(state);
                self.window.cwnd = cwnd;
            }
        }
        self.usage.touch(c.tick());
    }

    /// Before data are sent after a pause (RFC 2861 §3.1).
    pub fn restart_after_pause(&mut self, c: &Connection, state: CaState, waiting: Waiting) {
        if !c.cfg.kernel.slow_start_after_idle || c.flight.out() > 0 || self.owns_window {
            return;
        }
        let (tick, rto, initial) = (c.tick(), c.rtt.rto(), c.cfg.kernel.initcwnd);
        if self.usage.after_pause(self.window.cwnd, initial, tick, rto).is_none() {
            return;
        }
        let v = self.view(c, state, waiting);
        self.cc.on_event(&v, &mut self.window, CaEvent::CwndRestart); // may change the window
        self.window.ssthresh = self.threshold_to_restore(state);
        if let Some(cwnd) = self.usage.after_pause(self.window.cwnd, initial, tick, rto) {
            self.window.cwnd = cwnd;
        }
        self.usage.restarted(tick);
    }

    /// The window for a buffer that is to hold it, segments.
    pub fn window_to_buffer(&self) -> u32 {
        self.window.cwnd.max(INIT_CWND)
    }

    #[cfg(test)]
    pub fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }
    #[cfg(test)]
    pub fn usage(&self) -> &WindowUse {
        &self.usage
    }
}

/// Whether the window is reduced packet by packet.
fn is_reducing(state: CaState) -> bool {
    matches!(state, CaState::Cwr | CaState::Recovery)
}

/// `net.ipv4.tcp_pacing_ss_ratio`, per cent.
const PACING_SLOW_START: u64 = 200;
/// `net.ipv4.tcp_pacing_ca_ratio`, per cent.
const PACING_AVOIDANCE: u64 = 120;
