//! The sending side of Linux's TCP: window, scoreboard, loss recovery, timers and pacing, without a clock or a socket.
//!
//! What it is: a machine of one connection that sends. `ack.rs` takes ACKs in, `recovery.rs` decides about losses and undo,
//! `output.rs` decides what may leave, `retransmit.rs` what goes again, `pacing.rs` when; `timers.rs` is the retransmission timer in its four roles, `scoreboard.rs` what is in flight,
//! `memory.rs` the send buffer, `ecn.rs` explicit congestion notification, `info.rs` what is counted.
//! Source: RFC 9293, 5681, 6298, 6675, 6937 (PRR), 8985 (RACK-TLP), 5682 (F-RTO), 3522 (Eifel), 3708 (DSACK undo), 7323, and
//! observed behaviour of Linux 6.1.192; the kernel's function names stand beside the rules. How it differs: see
//! docs/models/sender.md. Not modelled: urgent data, Fast Open, path-MTU probing, keep-alive.

mod accecn;
mod ack;
mod config;
mod ecn;
mod info;
mod memory;
mod output;
mod pacing;
mod recovery;
mod refused;
mod retransmit;
mod rtt;
mod scoreboard;
mod timers;

pub use config::{SenderConfig, Transmit};
pub use info::{Info, Limit, SenderStats, LIMITS};
pub use tcpscape_base::Histogram;

use crate::cc::{CaEvent, CongestionController, View, Window};
use crate::kernel::{Jiffies, Kernel};
use ecn::EcnState;
use memory::Queued;
use rtt::{Rtt, WindowedMin};
use scoreboard::Scoreboard;
use std::collections::VecDeque;
use tcpscape_base::{CaState, Flags, Segment, Time};

/// Window of the minimum-RTT filter: `net.ipv4.tcp_min_rtt_wlen`, 300 s.
const MIN_RTT_WINDOW_S: u64 = 300;
/// Largest super-packet TCP builds, bytes of payload: `GSO_LEGACY_MAX_SIZE − MAX_TCP_HEADER − 1`.
const GSO_MAX: u32 = 65_536 - 192 - 1;
/// `net.ipv4.tcp_reordering`: duplicate ACK threshold before any reordering was seen.
const REORDERING: u32 = 3;
/// `net.ipv4.tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// `TCP_RACK_RECOVERY_THRESH`: recoveries for which a widened reordering window persists.
const RACK_RECOVERY_THRESH: u8 = 16;
/// `TCP_TIMEOUT_INIT`: retransmission timeout before the first sample, 1 s.
const TIMEOUT_INIT_US: u64 = 1_000_000;
/// `TCP_RTO_MAX`, 120 s.
const RTO_MAX_US: u64 = 120_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    SynSent,
    Established,
}

/// What the retransmission timer stands for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Retrans,
    LossProbe,
    Reorder,
    Probe0,
}

/// A chunk of unsent data: a kernel skb of the write queue.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    len: u32,
    /// It ends a write (PSH).
    push: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    mstamp_us: u64,
    end_seq: u64,
    rtt_us: u32,
    advanced: bool,
    dsack_seen: bool,
    reo_wnd_steps: u32,
    reo_wnd_persist: u8,
    last_delivered: u32,
}

/// The sending machine of one connection.
pub struct Sender {
    kernel: Kernel,
    jiffies: Jiffies,
    mss: u32,
    gso: bool,
    nodelay: bool,
    tsq: bool,
    watch_host: bool,
    bare_host: bool,
    fq: bool,
    /// Whether the application's process is running, not an interrupt.
    in_process: bool,
    cc: Box<dyn CongestionController>,
    owns_window: bool,
    wants_in_ack: bool,
    wants_lost: bool,
    w: Window,
    state: State,
    now: Time,
    /// Segments to send, with the burst they belong to (0 for none).
    out: VecDeque<(Segment, u32)>,
    stats: SenderStats,

    // Sequence space.
    snd_una: u64,
    snd_nxt: u64,
    write_seq: u64,
    pushed_seq: u64,
    /// End of the last sub-MSS segment sent, for Nagle's test (`snd_sml`).
    snd_sml: u64,
    snd_wnd: u32,
    max_window: u32,
    board: Scoreboard,
    unsent: VecDeque<Unsent>,
    burst: u32,

    // Counts (`packets_out` and its parts).
    packets_out: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    highest_sack: u64,
    delivered: u32,
    delivered_ce: u32,
    delivered_mstamp: u64,
    first_tx_mstamp: u64,
    lost: u32,
    app_limited: u32,
    rate_delivered: u32,
    rate_interval_us: u32,

    // Recovery.
    ca_state: CaState,
    high_seq: u64,
    prior_ssthresh: u32,
    prr_delivered: u32,
    prr_out: u32,
    undo_marker: u64,
    undo_retrans: i32,
    retrans_stamp: u32,
    reordering: u32,
    rack: Rack,
    frto: bool,
    tlp_high_seq: u64,
    tlp_retrans: bool,
    is_sack_reneg: bool,

    // RTT and timers.
    rtt: Rtt,
    rtt_min: WindowedMin,
    rto_jiffies: u64,
    backoff: u32,
    retransmits: u32,
    probes_out: u32,
    timer: Option<(Pending, u64, Time)>,
    wstamp_ns: u64,
    pacing_timer: Option<Time>,

    // Window validation.
    is_cwnd_limited: bool,
    max_packets_out: u32,
    cwnd_usage_seq: u64,
    cwnd_used: u32,
    cwnd_stamp: u64,
    lsndtime: u64,

    // Socket.
    sndbuf: u32,
    sndbuf_locked: bool,
    wmem_queued: u64,
    gso_segs: u32,
    nospace: bool,
    wake: bool,
    local_queue: u64,
    /// Bursts in the queues of the sender's host: a window that starts at `host_base`.
    host: VecDeque<Queued>,
    host_base: u32,
    tsq_throttled: bool,
    limit: Limit,
    limit_since: Time,

    // Peer.
    ecn: EcnState,
    ts_recent: u32,
    rcv_nxt: u64,
    rcv_tsecr: u32,
    /// Timestamp value of the last segment, acceptable or not (`rx_opt.rcv_tsval`).
    rcv_tsval: u32,
    syn_sent_ns: u64,
    syn_retrans: u32,
    /// The burst that the last RTO sent again.
    rto_burst: u32,
    /// Jiffy of the last answer to an unacceptable segment (`last_oow_ack_time`).
    answered: Option<u64>,
}

impl Sender {
    /// A closed connection; [`Sender::connect`] opens it.
    pub fn new(cfg: SenderConfig) -> Sender {
        let locked = cfg.sndbuf > 0;
        // Linux: sock_setsockopt(SO_SNDBUF) caps at wmem_max and doubles, SOCK_MIN_SNDBUF 4608.
        let sndbuf = if locked { (cfg.sndbuf.min(cfg.kernel.wmem_max) * 2).max(4_608) } else { cfg.kernel.tcp_wmem_default };
        let cc = &cfg.congestion;
        let (owns_window, wants_in_ack, wants_lost) = (cc.owns_window(), cc.wants_in_ack(), cc.wants_lost());
        let ecn = EcnState::new(cfg.ecn, &**cc);
        let rto = cfg.jiffies.from_micros(TIMEOUT_INIT_US);
        Sender {
            kernel: cfg.kernel,
            jiffies: cfg.jiffies,
            mss: cfg.mss,
            gso: cfg.gso,
            nodelay: cfg.nodelay,
            tsq: cfg.tsq,
            watch_host: cfg.watch_host,
            bare_host: cfg.bare_host,
            fq: cfg.fq,
            in_process: false,
            cc: cfg.congestion,
            owns_window,
            wants_in_ack,
            wants_lost,
            w: Window::default(),
            state: State::Closed,
            now: Time::ZERO,
            out: VecDeque::new(),
            stats: SenderStats::default(),
            snd_una: 0,
            snd_nxt: 0,
            write_seq: 0,
            pushed_seq: 1,
            snd_sml: 0,
            snd_wnd: 0,
            max_window: 0,
            board: Scoreboard::default(),
            unsent: VecDeque::new(),
            burst: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            highest_sack: 0,
            delivered: 0,
            delivered_ce: 0,
            delivered_mstamp: 0,
            first_tx_mstamp: 0,
            lost: 0,
            app_limited: u32::MAX,
            rate_delivered: 0,
            rate_interval_us: 0,
            ca_state: CaState::Open,
            high_seq: 0,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            undo_marker: 0,
            undo_retrans: 0,
            retrans_stamp: 0,
            reordering: REORDERING,
            rack: Rack { reo_wnd_steps: 1, ..Rack::default() },
            frto: false,
            tlp_high_seq: 0,
            tlp_retrans: false,
            is_sack_reneg: false,
            rtt: Rtt::default(),
            rtt_min: WindowedMin::new(),
            rto_jiffies: rto,
            backoff: 0,
            retransmits: 0,
            probes_out: 0,
            timer: None,
            wstamp_ns: 0,
            pacing_timer: None,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 0,
            cwnd_used: 0,
            cwnd_stamp: 0,
            lsndtime: 0,
            sndbuf,
            sndbuf_locked: locked,
            wmem_queued: 0,
            gso_segs: 0,
            nospace: false,
            wake: false,
            local_queue: 0,
            host: VecDeque::new(),
            host_base: 1,
            tsq_throttled: false,
            limit: Limit::App,
            limit_since: Time::ZERO,
            ecn,
            ts_recent: 0,
            rcv_nxt: 0,
            rcv_tsecr: 0,
            rcv_tsval: 0,
            syn_sent_ns: 0,
            syn_retrans: 0,
            rto_burst: 0,
            answered: None,
        }
    }

    /// Opens the connection: queues a SYN. `since` is when the application called connect(), earlier than `now` if the
    /// first packet had to wait for the neighbour's address.
    pub fn connect(&mut self, now: Time, since: Time) {
        self.now = now;
        self.state = State::SynSent;
        self.snd_nxt = 1;
        self.write_seq = 1;
        self.syn_sent_ns = since.0;
        self.send_syn();
        self.arm(Pending::Retrans, self.rto_jiffies);
    }

    fn send_syn(&mut self) {
        let (flags, ecn) = self.ecn.syn(self.syn_retrans > 0);
        self.out.push_back((Segment { flags, ecn, wnd: 64_240, tsval: self.tsval(), ..Segment::default() }, 0));
    }

    /// Takes in a segment from the peer.
    pub fn on_segment(&mut self, now: Time, s: &Segment) {
        self.now = now;
        match self.state {
            State::Closed => {}
            State::SynSent => self.on_syn_ack(s),
            State::Established => self.on_ack_segment(s),
        }
        self.account();
    }

    // RFC 9293 §3.10.7.3; Linux: tcp_rcv_synsent_state_process(), tcp_init_transfer().
    fn on_syn_ack(&mut self, s: &Segment) {
        if !s.flags.has(Flags::SYN) || !s.flags.has(Flags::ACK) || s.ack != 1 {
            return;
        }
        self.ecn.on_syn_ack(s);
        self.ts_recent = s.tsval;
        self.rcv_tsecr = s.tsecr;
        self.rcv_tsval = s.tsval;
        self.rcv_nxt = s.end();
        self.snd_una = 1;
        self.snd_wnd = s.wnd;
        self.max_window = s.wnd;
        self.stats.max_rwnd = s.wnd;
        self.delivered = 1;
        self.delivered_ce = u32::from(self.ecn.accurate.syn_was_marked);
        self.delivered_mstamp = self.now_us();
        self.timer = None;
        self.retransmits = 0;
        self.backoff = 0;
        let m = if self.syn_retrans == 0 {
            (self.now.0 - self.syn_sent_ns) / 1_000
        } else {
            u64::from(self.tsval().wrapping_sub(s.tsecr).max(1)) * 1_000
        };
        self.take_rtt_sample(m as u32, m as u32, false);
        self.state = State::Established;
        if self.syn_retrans > 1 {
            self.w.cwnd = 1;
        }
        self.cwnd_stamp = self.jiffies.at(self.now);
        // The first data is no restart after idling (tcp_finish_connect()).
        self.lsndtime = self.cwnd_stamp;
        self.retrans_stamp = 0;
        let v = self.view();
        self.cc.syn_acked(&v, m as i64);
        self.w.paced = self.fq;
        self.cc.init(&v, &mut self.w);
        self.owns_window = self.cc.owns_window();
        self.w.paced |= self.fq;
        self.update_pacing_rate();
        self.expand_sndbuf();
        self.limit_since = self.now;
        self.send_ack();
        self.answer_syn_ack(s.ecn);
        self.wake = true;
    }

    /// A timer set by [`Sender::next_event`] has come.
    pub fn on_timer(&mut self, now: Time) {
        self.now = now;
        if let Some((what, timeout, fire)) = self.timer {
            if fire <= now {
                self.on_retransmission_timer(what, timeout);
            }
        }
        if self.pacing_timer.is_some_and(|t| t <= now) {
            self.pacing_timer = None;
            self.on_pacing_timer();
        }
        self.account();
    }

    /// When [`Sender::on_timer`] wants to be called.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match (self.timer, self.pacing_timer) {
            (Some((_, _, a)), Some(b)) => Some(a.min(b)),
            (Some((_, _, a)), None) => Some(a),
            (None, b) => b,
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
        Some(Transmit { segment, segs: segment.len.div_ceil(self.mss).max(1) as u16, burst, departure })
    }

    /// Whether the connection is established.
    pub fn established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether a blocked or new writer should be woken; the answer is given once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wake)
    }

    /// The application writes up to `bytes`; returns how many were accepted. When fewer were, the writer blocks until
    /// [`Sender::take_wake`] says so. Linux: `tcp_sendmsg_locked()`.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.now = now;
        if self.state != State::Established {
            self.nospace = true;
            return 0;
        }
        self.in_process = true;
        let n = self.sendmsg(bytes);
        self.in_process = false;
        self.account();
        n
    }

    /// Whether segments wait in [`Sender::poll_transmit`].
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Next sequence number to send.
    pub fn snd_nxt(&self) -> u64 {
        self.snd_nxt
    }

    /// Whether both ends agreed to use ECN.
    pub fn uses_ecn(&self) -> bool {
        self.ecn.ok
    }

    /// Everything acknowledged and nothing waiting.
    pub fn idle(&self) -> bool {
        self.packets_out == 0 && self.unsent.is_empty()
    }

    /// Bytes acknowledged so far.
    pub fn bytes_acked(&self) -> u64 {
        self.snd_una.saturating_sub(1)
    }

    // ---- shared by the other files ----

    #[inline]
    fn now_us(&self) -> u64 {
        self.now.micros()
    }
    /// The timestamp clock, ms. Never 0, so that an echo of it is always an echo.
    #[inline]
    fn tsval(&self) -> u32 {
        Self::ts_of(self.now.0)
    }
    #[inline]
    fn ts_of(ns: u64) -> u32 {
        (ns / 1_000_000) as u32 + 1
    }
    /// `tcp_packets_in_flight()`.
    #[inline]
    fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }
    #[inline]
    fn wnd_end(&self) -> u64 {
        self.snd_una + u64::from(self.snd_wnd)
    }
    #[inline]
    fn min_rtt(&self) -> u32 {
        self.rtt_min.get()
    }
    /// `tcp_in_cwnd_reduction()`.
    #[inline]
    fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }
    /// `tcp_highest_sack_seq()`.
    #[inline]
    fn highest_sack_seq(&self) -> u64 {
        if self.sacked_out == 0 {
            self.snd_una
        } else {
            self.highest_sack
        }
    }

    fn view(&self) -> View {
        View {
            now: self.now,
            jiffies: self.jiffies.at(self.now) as u32,
            hz: self.jiffies.hz(),
            mss: self.mss,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            srtt_us: self.rtt.srtt_us,
            min_rtt_us: self.min_rtt(),
            in_flight: self.in_flight(),
            packets_out: self.packets_out,
            sacked_out: self.sacked_out,
            delivered: self.delivered,
            delivered_ce: self.delivered_ce,
            lost: self.lost,
            delivered_mstamp: self.delivered_mstamp,
            app_limited: self.app_limited,
            ca_state: self.ca_state,
            is_cwnd_limited: self.is_cwnd_limited,
            max_packets_out: self.max_packets_out,
            lsndtime: self.lsndtime as u32,
            has_unsent: !self.unsent.is_empty(),
            wstamp_ns: self.wstamp_ns,
            rcv_tsval: self.rcv_tsval,
            rcv_tsecr: self.rcv_tsecr,
            ecn_ok: self.ecn.ok,
            accurate_ecn: self.ecn.accurate.on,
        }
    }

    fn set_ca_state(&mut self, new: CaState) {
        let v = self.view();
        self.cc.on_state(&v, &mut self.w, new);
        self.ca_state = new;
    }

    fn ca_event(&mut self, e: CaEvent) {
        let v = self.view();
        self.cc.on_event(&v, &mut self.w, e);
    }

    // Linux: tcp_update_pacing_rate(): 200 % of the rate in slow start's first half, 120 % after.
    fn update_pacing_rate(&mut self) {
        if self.owns_window {
            return;
        }
        let ratio = if u64::from(self.w.cwnd) < u64::from(self.w.ssthresh) / 2 { 200 } else { 120 };
        let mut rate = u64::from(self.mss) * ((1_000_000 / 100) << 3) * ratio * u64::from(self.w.cwnd.max(self.packets_out));
        if self.rtt.srtt_us > 0 {
            rate /= u64::from(self.rtt.srtt_us);
        }
        self.w.pacing_rate = rate;
    }
}

#[cfg(test)]
mod tests;
