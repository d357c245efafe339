//! What a sender counts and shows: statistics, the fields of TCP_INFO, and the time spent under each limit.
//!
//! Source: the fields of TCP_INFO, its three limits extended by the window, pacing and small queues. How it differs: the limit is judged
//! after each event, so it is exact between events. Not modelled: counters of whole hosts (`/proc/net/snmp`).

use super::{Histogram, Sender};
use crate::cc::Observation;
use tcpscape_base::{CaState, Time};

/// What held the sender back, as time accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application had nothing more to send.
    App,
    /// The receiver's window.
    Rwnd,
    /// The congestion window.
    Cwnd,
    /// The pacing timer.
    Pacing,
    /// The send buffer was too small for the window.
    Sndbuf,
    /// The sender's own queue (TCP small queues).
    Tsq,
}

/// Names of the [`Limit`]s, in order.
pub const LIMITS: [&str; 6] = ["app", "rwnd", "cwnd", "pacing", "sndbuf", "tsq"];

/// Counters of one connection.
#[derive(Clone, Debug, Default)]
pub struct SenderStats {
    /// Segments with data sent, retransmissions included (`tcpi_data_segs_out`).
    pub data_segs_out: u64,
    /// Segments retransmitted (`tcpi_total_retrans`).
    pub retransmits: u64,
    /// Duplicates reported by DSACK: retransmissions that were not needed (`tcpi_dsack_dups`).
    pub dsack_dups: u64,
    /// ACKs taken in (`tcpi_segs_in`).
    pub segs_in: u64,
    /// ACKs dropped because their timestamp was older than one seen (`PAWSEstabRejected`).
    pub paws_rejected: u64,
    /// Retransmission timeouts (`TCPTimeouts`).
    pub rtos: u64,
    /// Fast recoveries entered (`TCPSackRecovery`).
    pub fast_recoveries: u64,
    /// Window reductions undone (`TCPFullUndo`, `TCPPartialUndo`, `TCPDSACKUndo`, `TCPLossUndo`).
    pub undos: u64,
    /// Timeouts found spurious by F-RTO (`TCPSpuriousRTOs`).
    pub spurious_rtos: u64,
    /// Tail loss probes sent (`TCPLossProbes`).
    pub tlps: u64,
    /// Reordering events seen (`tcpi_reord_seen`).
    pub reord_seen: u64,
    /// Retransmissions held back because the original was still in the sender's own queue (`TCPSpuriousRtxHostQueues`).
    pub held_in_host_queue: u64,
    /// Window reductions that echoes of congestion marks caused.
    pub ecn_reductions: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Bytes accepted from the application.
    pub bytes_written: u64,
    /// Time spent under each [`Limit`], ns, in the order of [`LIMITS`].
    pub limited_ns: [u64; 6],
    /// RTT samples.
    pub rtt: Histogram,
    /// Largest window, packets.
    pub cwnd_max: u32,
    /// Time integral of the window, packets·ns.
    pub cwnd_integral: u128,
    /// Largest receive window seen, bytes.
    pub max_rwnd: u32,
    /// The present limit.
    pub(super) limit: LimitClock,
}

/// What holds the sender back, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitClock {
    limit: Limit,
    since: Time,
}

impl Default for LimitClock {
    fn default() -> LimitClock {
        LimitClock { limit: Limit::App, since: Time::ZERO }
    }
}

/// A sample of the connection, the fields of TCP_INFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Smoothed RTT, µs.
    pub srtt_us: u32,
    /// RTT deviation, µs (`tcpi_rttvar`).
    pub rttvar_us: u32,
    /// Minimum RTT, µs; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Retransmission timeout, µs.
    pub rto_us: u64,
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Pacing rate, B/s.
    pub pacing_rate: u64,
    /// Delivery rate, B/s (`tcpi_delivery_rate`).
    pub delivery_rate: u64,
    /// Congestion-avoidance state.
    pub ca_state: CaState,
    /// Retransmissions so far.
    pub retransmits: u64,
    /// Spurious retransmissions so far.
    pub spurious: u64,
    /// Reordering metric, packets.
    pub reordering: u32,
    /// RACK's reordering window steps.
    pub reo_wnd_steps: u32,
    /// Receive window, bytes.
    pub rwnd: u32,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Packets delivered.
    pub delivered: u32,
    /// Packets marked lost so far.
    pub lost: u32,
    /// Packets in flight that are SACKed now (`tcpi_sacked`).
    pub sacked: u32,
    /// Packets in flight that count as lost now (`tcpi_lost`).
    pub lost_out: u32,
    /// Retransmitted copies in flight now (`tcpi_retrans`).
    pub copies_out: u32,
    /// Packets delivered whose ACK echoed a congestion mark (`tcpi_delivered_ce`).
    pub delivered_ce: u32,
}

/// What has happened to a connection so far: the counters of [`SenderStats`] and [`Info`] that stand for an event each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Segments retransmitted; one that the sender's own queue refuses is taken back.
    pub retransmits: u64,
    /// Retransmissions reported needless.
    pub spurious_retransmits: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Timeouts found spurious by F-RTO.
    pub spurious_rtos: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Window reductions undone.
    pub undos: u64,
    /// Tail loss probes sent.
    pub tlps: u64,
    /// Window reductions that echoes of congestion marks caused.
    pub ecn_reductions: u64,
    /// Reordering events seen.
    pub reord_seen: u64,
    /// Packets marked lost.
    pub lost: u64,
}

impl Sender {
    /// What has happened so far.
    pub fn event_counts(&self) -> EventCounts {
        let stats = &self.c.stats;
        EventCounts {
            retransmits: stats.retransmits,
            spurious_retransmits: stats.dsack_dups,
            rtos: stats.rtos,
            spurious_rtos: stats.spurious_rtos,
            fast_recoveries: stats.fast_recoveries,
            undos: stats.undos,
            tlps: stats.tlps,
            ecn_reductions: stats.ecn_reductions,
            reord_seen: self.repair.reorderings(),
            lost: u64::from(self.c.flight.marked_lost()),
        }
    }

    /// The variables of its congestion control, behind those that every connection has (rates in packets/s); none of a control that shows nothing.
    pub fn observe(&self, out: &mut Observation) {
        (out.is_told, out.states) = (false, &[]);
        out.values.clear();
        let (v, w) = (self.view(), self.governor.window());
        let mss = f64::from(v.mss.max(1));
        out.count("ca_state", v.ca_state as u8);
        out.count("app_limited", u8::from(v.counts.app_limited != 0));
        out.count("unsent", u8::from(v.has_unsent));
        out.count("lost", v.counts.lost);
        out.count("undos", self.c.stats.undos as f64);
        out.number("delivered", v.counts.delivered);
        out.number("inflight", v.in_flight);
        out.number("cwnd", w.cwnd);
        out.number("pacing_rate", if w.pacing_rate == u64::MAX { f64::INFINITY } else { w.pacing_rate as f64 / mss });
        out.number("delivery_rate", self.c.rate.bytes_per_second(self.c.cfg.mss) as f64 / mss);
        out.number("srtt", f64::from(v.srtt_us) / 8e6);
        out.is_told = false;
        self.governor.observe(&v, out);
    }

    /// Congestion-avoidance state and window, packets.
    pub fn state_and_window(&self) -> (CaState, u32) {
        (self.repair.state(), self.governor.cwnd())
    }

    /// Counters, with the time under the present limit added up to `now`.
    pub fn stats(&mut self, now: Time) -> &SenderStats {
        self.c.set_now(now);
        self.c.stats.reord_seen = self.repair.reorderings();
        self.account_as(self.c.stats.limit.limit);
        &self.c.stats
    }

    /// The connection's numbers now.
    pub fn info(&self) -> Info {
        let (c, w) = (&self.c, self.governor.window());
        Info {
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            srtt_us: c.rtt.srtt_us(),
            rttvar_us: c.rtt.deviation_us(),
            min_rtt_us: c.rtt.min_us(),
            rto_us: c.cfg.jiffies.to_micros(c.rtt.rto()),
            in_flight: c.flight.in_flight(),
            unacked: c.flight.out(),
            pacing_rate: w.pacing_rate,
            delivery_rate: c.rate.bytes_per_second(c.cfg.mss),
            ca_state: self.repair.state(),
            retransmits: c.stats.retransmits,
            spurious: c.stats.dsack_dups,
            reordering: self.repair.standing().reordering,
            reo_wnd_steps: self.repair.reordering_steps(),
            rwnd: c.peer.window(),
            bytes_acked: self.bytes_acked(),
            delivered: c.rate.delivered(),
            lost: c.flight.marked_lost(),
            sacked: c.flight.sacked(),
            lost_out: c.flight.lost(),
            copies_out: c.flight.copies_out(),
            delivered_ce: c.rate.delivered_ce(),
        }
    }

    /// Panics when the counters contradict the segments in flight; for tests.
    pub fn check_invariants(&self) {
        let w = self.governor.window();
        self.c.flight.check(self.c.stats.rtos);
        assert!(w.cwnd >= 1 && w.cwnd <= w.clamp, "cwnd {}", w.cwnd);
    }

    /// Adds the time since the last change to the present limit.
    fn account_as(&mut self, next: Limit) {
        let (now, cwnd, stats) = (self.c.now.time, self.governor.cwnd(), &mut self.c.stats);
        let LimitClock { limit, since } = std::mem::replace(&mut stats.limit, LimitClock { limit: next, since: now });
        let d = now.since(since).0;
        stats.limited_ns[limit as usize] += d;
        stats.cwnd_integral += u128::from(cwnd) * u128::from(d);
        stats.cwnd_max = stats.cwnd_max.max(cwnd);
    }

    /// Begins to count: the connection is there.
    pub(super) fn begin_account(&mut self) {
        self.c.stats.limit.since = self.c.now.time;
    }

    /// Judges what holds the sender back now.
    pub(super) fn account(&mut self) {
        if self.handshake.is_done() {
            self.account_as(self.limit());
        } else {
            self.begin_account();
        }
    }

    fn limit(&self) -> Limit {
        let (c, out) = (&self.c, &self.outbound);
        let full = c.flight.in_flight() >= self.governor.cwnd();
        if full && c.flight.has_lost_to_send() {
            Limit::Cwnd
        } else if !out.has_unsent() {
            if out.is_writer_blocked() {
                Limit::Sndbuf
            } else {
                Limit::App
            }
        } else if out.is_paced() {
            Limit::Pacing
        } else if out.is_throttled() {
            Limit::Tsq
        } else if !full && c.flight.nxt() + u64::from(c.cfg.mss) > c.window_end() {
            Limit::Rwnd
        } else {
            Limit::Cwnd
        }
    }
}
