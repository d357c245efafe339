//! The retransmission timer in its four roles: RTO, tail loss probe, reordering timeout, zero-window probe.
//!
//! Source: RFC 6298, RFC 8985 §7 (TLP), §6.3 (reordering timer), RFC 9293 §3.8.6.1 (probes). Linux: `tcp_write_timer_handler()`.

use super::output::Push;
use super::scoreboard::{LOST, RETRANS, SACKED};
use super::*;

/// SYN timeouts without backoff in 6.12 (`net.ipv4.tcp_syn_linear_timeouts`).
const SYN_LINEAR_TIMEOUTS: u32 = 4;

impl Sender {
    /// Arms the timer for `what`, `when` jiffies ahead, plus what pacing still holds back (`tcp_reset_xmit_timer()`).
    pub(super) fn arm_paced(&mut self, what: Pending, when: u64) {
        let hold = self.wstamp_ns.saturating_sub(self.now.0);
        let hold = if hold == 0 { 0 } else { self.jiffies.from_micros(hold / 1_000) };
        self.arm(what, when + hold);
    }

    /// `inet_csk_reset_xmit_timer()`: at most RTO_MAX ahead.
    pub(super) fn arm(&mut self, what: Pending, when: u64) {
        let when = when.min(self.jiffies.from_micros(RTO_MAX_US));
        self.timer = Some((what, self.jiffies.at(self.now) + when, self.jiffies.fire(self.now, when)));
    }

    pub(super) fn pending(&self) -> Option<Pending> {
        self.timer.map(|t| t.0)
    }

    /// Takes an RTT sample for the estimator, and `ca_rtt` for the minimum (`tcp_ack_update_rtt()`).
    pub(super) fn take_rtt_sample(&mut self, seq_rtt: u32, ca_rtt: u32, maybe_delayed: bool) {
        self.update_min_rtt(ca_rtt, maybe_delayed);
        self.rtt.sample(seq_rtt, self.snd_una, self.snd_nxt);
        self.stats.rtt.add(seq_rtt);
        self.set_rto();
        self.backoff = 0;
    }

    fn set_rto(&mut self) {
        self.rto_jiffies = self.jiffies.from_micros(self.rtt.rto_us().min(RTO_MAX_US));
    }

    // Linux: tcp_update_rtt_min(): a delayed ACK cannot raise the minimum; 0 counts as one tick.
    fn update_min_rtt(&mut self, us: u32, maybe_delayed: bool) {
        if maybe_delayed && us > self.min_rtt() {
            return;
        }
        let us = if us == 0 { self.jiffies.to_micros(1) as u32 } else { us };
        let hz = u64::from(self.jiffies.hz());
        self.rtt_min.update(MIN_RTT_WINDOW_S * hz, self.jiffies.at(self.now), us);
    }

    /// Time until the RTO of the oldest segment, µs, perhaps past (`tcp_rto_delta_us()`).
    fn rto_delta_us(&self) -> i64 {
        let rto = self.jiffies.to_micros(self.rto_jiffies) as i64;
        self.board.front().map_or(rto, |s| s.xmit_us() as i64 + rto - self.now_us() as i64)
    }

    /// `tcp_rearm_rto()`.
    pub(super) fn rearm_rto(&mut self) {
        if self.packets_out == 0 {
            self.timer = None;
            return;
        }
        let mut rto = self.rto_jiffies;
        if matches!(self.pending(), Some(Pending::Reorder | Pending::LossProbe)) {
            rto = self.jiffies.from_micros(self.rto_delta_us().max(1) as u64);
        }
        self.arm_paced(Pending::Retrans, rto);
    }

    /// `tcp_set_xmit_timer()`: a loss probe if one is due before the RTO, else the RTO.
    pub(super) fn set_xmit_timer(&mut self) {
        if !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
    }

    /// RFC 8985 §7.2; Linux: `tcp_schedule_loss_probe()`.
    pub(super) fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        if self.packets_out == 0 || !matches!(self.ca_state, CaState::Open | CaState::Cwr) {
            return false;
        }
        // Two smoothed RTTs, and room for a delayed ACK when one packet is out.
        let us = u64::from(self.rtt.srtt_us >> 2) + if self.packets_out == 1 { u64::from(rtt::RTO_MIN_US) } else { TIMEOUT_MIN_US };
        let mut timeout = self.jiffies.from_micros(us);
        let delta = if advancing_rto { self.jiffies.to_micros(self.rto_jiffies) as i64 } else { self.rto_delta_us() };
        if delta > 0 {
            timeout = timeout.min(self.jiffies.from_micros(delta as u64));
        }
        self.arm_paced(Pending::LossProbe, timeout);
        true
    }

    pub(super) fn on_retransmission_timer(&mut self, what: Pending, timeout: u64) {
        if timeout > self.jiffies.at(self.now) {
            self.timer = Some((what, timeout, self.jiffies.fire(self.now, timeout - self.jiffies.at(self.now))));
            return;
        }
        match what {
            Pending::Reorder => self.on_reorder_timeout(),
            Pending::LossProbe => self.send_loss_probe(),
            Pending::Retrans => {
                self.timer = None;
                self.on_rto();
            }
            Pending::Probe0 => {
                self.timer = None;
                self.on_probe_timer();
            }
        }
    }

    // RFC 6298 §5; Linux: tcp_retransmit_timer().
    fn on_rto(&mut self) {
        if self.state == State::SynSent {
            self.syn_retrans += 1;
            self.send_syn();
            // net.ipv4.tcp_syn_linear_timeouts = 4: in 6.12 so many timeouts pass before they begin to double.
            if !self.kernel.is_6_12() || self.syn_retrans > SYN_LINEAR_TIMEOUTS {
                self.rto_jiffies = (self.rto_jiffies << 1).min(self.jiffies.from_micros(RTO_MAX_US));
            }
            self.arm(Pending::Retrans, self.rto_jiffies);
            return;
        }
        if self.packets_out == 0 {
            return;
        }
        self.stats.rtos += 1;
        self.enter_loss();
        if self.snd_wnd > 0 {
            self.retransmits += 1;
        }
        let head = self.board.base();
        self.rto_burst = if self.retransmit(head, 1) > 0 { self.burst } else { 0 };
        self.backoff += 1;
        self.rto_jiffies = (self.rto_jiffies << 1).min(self.jiffies.from_micros(RTO_MAX_US));
        self.arm(Pending::Retrans, self.rto_jiffies);
    }

    /// Linux: `tcp_enter_loss()`.
    fn enter_loss(&mut self) {
        let new_recovery = self.ca_state < CaState::Recovery;
        self.mark_lost_by_timeout();
        if self.ca_state <= CaState::Disorder || self.high_seq <= self.snd_una || (self.ca_state == CaState::Loss && self.retransmits == 0)
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.w.prior_cwnd = self.w.cwnd;
            let v = self.view();
            self.w.ssthresh = self.cc.ssthresh(&v, &self.w);
            self.ca_event(CaEvent::Loss);
            self.init_undo();
        }
        self.w.cwnd = (self.in_flight() + 1).min(self.w.clamp);
        self.w.cwnd_cnt = 0;
        self.cwnd_stamp = self.jiffies.at(self.now);
        // A timeout in spite of many SACKs: the degree of reordering was over-estimated.
        if self.ca_state <= CaState::Disorder && self.sacked_out >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
        self.set_ca_state(CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.ecn.reduced();
        // RFC 5682 §2.1 step 1.
        self.frto = new_recovery || self.retransmits > 0;
    }

    // Linux: tcp_timeout_mark_lost(): all but what was sent within the last RACK RTT; forgets SACKs of a receiver that reneged.
    fn mark_lost_by_timeout(&mut self) {
        let reneged = self.board.front().is_some_and(|s| s.has(SACKED));
        if reneged {
            self.board.clear_sacked();
            self.sacked_out = 0;
            self.is_sack_reneg = true;
        }
        self.board.prune_parked();
        let head = self.board.base();
        for id in self.board.iter_ids() {
            let s = *self.board.get(id);
            if s.has(SACKED) {
                continue;
            }
            if !reneged && id != head && i64::from(self.rack.rtt_us) > self.now_us() as i64 - s.xmit_us() as i64 {
                continue;
            }
            self.mark_lost(id);
            if self.board.get(id).flags & (LOST | RETRANS) == LOST {
                self.board.park(id);
            }
        }
    }

    // RFC 8985 §7.3; Linux: tcp_send_loss_probe().
    fn send_loss_probe(&mut self) {
        if self.tlp_high_seq != 0 {
            self.rearm_rto();
            return;
        }
        self.tlp_retrans = false;
        let sent = if self.window_allows_head() {
            let before = self.packets_out;
            self.write_xmit(Push::Probe);
            self.packets_out > before
        } else if let Some(last) = self.board.back_id().filter(|&id| !self.in_host_queue(self.board.get(id).burst)) {
            let sent = self.transmit_again(last, 1) > 0;
            self.tlp_retrans = sent;
            sent
        } else {
            false
        };
        if sent {
            self.tlp_high_seq = self.snd_nxt;
            self.stats.tlps += 1;
            self.timer = None;
        }
        self.rearm_rto();
    }

    /// Arms the zero-window probe when data waits and nothing is in flight (`tcp_check_probe_timer()`).
    pub(super) fn check_probe_timer(&mut self) {
        if self.packets_out == 0 && self.timer.is_none() && !self.unsent.is_empty() {
            let when = self.rto_jiffies.max(self.jiffies.hz_over(5));
            self.arm_paced(Pending::Probe0, when);
        }
    }

    /// The window moved while nothing was in flight (`tcp_ack_probe()`).
    pub(super) fn ack_probe(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        if self.snd_nxt + u64::from(self.unsent[0].len) <= self.wnd_end() {
            self.backoff = 0;
            self.timer = None;
        } else {
            let when = self.probe0_when();
            self.arm_paced(Pending::Probe0, when);
        }
    }

    fn probe0_when(&self) -> u64 {
        let base = self.rto_jiffies.max(self.jiffies.hz_over(5));
        (base << self.backoff.min(10)).min(self.jiffies.from_micros(RTO_MAX_US))
    }

    // Linux: tcp_probe_timer(), tcp_send_probe0(): a segment if the window has room for part of one, else one old byte's worth of ACK.
    fn on_probe_timer(&mut self) {
        if self.packets_out > 0 || self.unsent.is_empty() {
            self.probes_out = 0;
            return;
        }
        if self.snd_nxt < self.wnd_end() {
            self.write_wakeup();
        } else {
            let probe = self.bare_ack(self.snd_una - 1);
            self.out.push_back((probe, 0));
        }
        self.stats.window_probes += 1;
        if self.packets_out > 0 || self.unsent.is_empty() {
            self.probes_out = 0;
            self.backoff = 0;
            return;
        }
        self.probes_out += 1;
        self.backoff += 1;
        let when = self.probe0_when();
        self.arm_paced(Pending::Probe0, when);
    }
}

/// `TCP_TIMEOUT_MIN_US`: least time of the probe and reordering timers beyond their estimate, 2 ms.
pub(super) const TIMEOUT_MIN_US: u64 = 2_000;
