//! Loss detection, recovery and its undo.
//!
//! Source: RFC 8985 (RACK), RFC 6937 (PRR), RFC 5682 (F-RTO), RFC 3522 and RFC 4015 (Eifel by timestamps), RFC 3708 (undo by DSACK).
//! Linux: `tcp_fastretrans_alert()`, `tcp_rack_*()`, `tcp_try_undo_*()`, `tcp_process_loss()`. How it differs: nothing known.

use super::ack::flag::*;
use super::scoreboard::{APP_LIMITED, EVER_RETRANS, LOST, RETRANS, SACKED};
use super::timers::TIMEOUT_MIN_US;
use super::*;
use crate::cc::LostPacket;

/// What to send after the ACK was processed (`REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rexmit {
    None,
    Lost,
    New,
}

impl Sender {
    /// `tcp_mark_skb_lost()`.
    pub(super) fn mark_lost(&mut self, id: u32) {
        let s = self.board.get_mut(id);
        if s.has(SACKED) {
            return;
        }
        if s.has(LOST) {
            if !s.has(RETRANS) {
                return;
            }
            // The retransmission is lost as well.
            s.flags &= !RETRANS;
            self.retrans_out -= 1;
        } else {
            s.flags |= LOST;
            self.lost_out += 1;
        }
        self.lost = self.lost.wrapping_add(1);
        self.board.note_lost(id);
        if self.wants_lost {
            let s = self.board.get(id);
            let p = LostPacket {
                seq: s.seq,
                end: s.end(),
                tx_in_flight: s.tx_in_flight(),
                lost: self.lost.wrapping_sub(s.tx_lost),
                is_app_limited: s.has(APP_LIMITED),
            };
            let v = self.view();
            self.cc.on_lost(&v, &mut self.w, &p);
        }
    }

    // RFC 8985 §6.2 step 4; Linux: tcp_rack_reo_wnd().
    fn reo_wnd_us(&self) -> u32 {
        if self.stats.reord_seen == 0 && (self.ca_state >= CaState::Recovery || self.sacked_out >= self.reordering) {
            return 0;
        }
        ((u64::from(self.min_rtt() >> 2) * u64::from(self.rack.reo_wnd_steps)).min(u64::from(self.rtt.srtt_us >> 3))) as u32
    }

    /// RFC 8985 §6.2 step 5; Linux: `tcp_rack_detect_loss()`. Returns the time until the next judgement, µs, 0 for none.
    fn rack_detect_loss(&mut self) -> u32 {
        let wait = i64::from(self.rack.rtt_us) + i64::from(self.reo_wnd_us());
        let (mstamp, end_seq, now) = (self.rack.mstamp_us, self.rack.end_seq, self.now_us() as i64);
        let Some(latest) = self.board.advance_cursor(|s| sent_after(mstamp, s.xmit_us(), end_seq, s.end())) else { return 0 };
        let timeout = (self.board.get(latest).xmit_us() as i64 + wait - now).max(0) as u32;
        // The list is in order of transmission: the first one that still has time ends the walk.
        while let Some(id) = self.board.oldest() {
            let s = self.board.get(id);
            if !sent_after(mstamp, s.xmit_us(), end_seq, s.end()) || s.xmit_us() as i64 + wait - now > 0 {
                break;
            }
            self.mark_lost(id);
            self.board.delist(id);
        }
        timeout
    }

    /// `tcp_rack_mark_lost()`; returns whether the reordering timer was set.
    fn rack_mark_lost(&mut self) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let us = self.rack_detect_loss();
        if us > 0 {
            let j = self.jiffies.from_micros(u64::from(us) + TIMEOUT_MIN_US).min(self.rto_jiffies);
            self.arm(Pending::Reorder, j);
        }
        us > 0
    }

    /// The reordering timer fired (`tcp_rack_reo_timeout()`).
    pub(super) fn on_reorder_timeout(&mut self) {
        let (inflight, lost) = (self.in_flight(), self.lost);
        self.rack_detect_loss();
        if inflight != self.in_flight() {
            if self.ca_state != CaState::Recovery {
                self.enter_recovery(0);
                if !self.owns_window {
                    let newly_lost = self.lost.wrapping_sub(lost);
                    self.cwnd_reduction(1, newly_lost, 0);
                }
            }
            self.retransmit_lost();
        }
        if self.pending() != Some(Pending::Retrans) {
            self.rearm_rto();
        }
    }

    /// A segment sent at `xmit_us` was delivered (RFC 8985 §6.2 steps 1, 2; Linux: `tcp_rack_advance()`).
    pub(super) fn rack_advance(&mut self, flags: u8, end_seq: u64, xmit_us: u64) {
        let rtt = (self.now_us().saturating_sub(xmit_us)) as u32;
        if rtt < self.min_rtt() && flags & (RETRANS | EVER_RETRANS) != 0 {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt;
        if sent_after(xmit_us, self.rack.mstamp_us, end_seq, self.rack.end_seq) {
            self.rack.mstamp_us = xmit_us;
            self.rack.end_seq = end_seq;
        }
    }

    // RFC 8985 §6.2 step 4, DSACK adaptation; Linux: tcp_rack_update_reo_wnd().
    pub(super) fn rack_update_reo_wnd(&mut self, prior_delivered: u32) {
        if prior_delivered == 0 {
            return;
        }
        if (prior_delivered.wrapping_sub(self.rack.last_delivered) as i32) < 0 {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.reo_wnd_steps = (self.rack.reo_wnd_steps + 1).min(255);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = self.delivered;
            self.rack.reo_wnd_persist = RACK_RECOVERY_THRESH;
        } else if self.rack.reo_wnd_persist == 0 {
            self.rack.reo_wnd_steps = 1;
        }
    }

    /// Something below the highest SACK was delivered late: reordering (`tcp_check_sack_reordering()`).
    pub(super) fn check_reordering(&mut self, low_seq: u64) {
        let fack = self.highest_sack_seq();
        if low_seq >= fack {
            return;
        }
        let metric = fack - low_seq;
        if metric > u64::from(self.reordering * self.mss) {
            self.reordering = metric.div_ceil(u64::from(self.mss)).min(u64::from(MAX_REORDERING)) as u32;
        }
        self.stats.reord_seen += 1;
    }

    // ---- window reduction: RFC 6937 with Linux's slow-start bound ----

    /// `tcp_current_ssthresh()`.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.in_cwnd_reduction() {
            self.w.ssthresh
        } else {
            self.w.ssthresh.max((self.w.cwnd >> 1) + (self.w.cwnd >> 2))
        }
    }

    /// `tcp_init_undo()`.
    pub(super) fn init_undo(&mut self) {
        self.undo_marker = self.snd_una;
        self.undo_retrans = self.retrans_out as i32;
        if self.tlp_high_seq != 0 && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1;
        }
    }

    pub(super) fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.w.cwnd_cnt = 0;
        self.w.prior_cwnd = self.w.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        let v = self.view();
        self.w.ssthresh = self.cc.ssthresh(&v, &self.w);
        self.ecn.reduced();
    }

    /// `tcp_cwnd_reduction()`.
    pub(super) fn cwnd_reduction(&mut self, acked: u32, newly_lost: u32, flags: u32) {
        if acked == 0 || self.w.prior_cwnd == 0 {
            return;
        }
        let inflight = self.in_flight();
        let delta = i64::from(self.w.ssthresh) - i64::from(inflight);
        self.prr_delivered += acked;
        let sndcnt = if delta < 0 {
            let dividend = u64::from(self.w.ssthresh) * u64::from(self.prr_delivered) + u64::from(self.w.prior_cwnd) - 1;
            (dividend / u64::from(self.w.prior_cwnd)) as i64 - i64::from(self.prr_out)
        } else {
            let mut n = (i64::from(self.prr_delivered) - i64::from(self.prr_out)).max(i64::from(acked));
            if flags & SND_UNA_ADVANCED != 0 && newly_lost == 0 {
                n += 1;
            }
            n.min(delta)
        };
        // The first one always goes: a fast retransmit.
        let sndcnt = sndcnt.max(i64::from(self.prr_out == 0));
        self.w.cwnd = (i64::from(inflight) + sndcnt).clamp(1, i64::from(self.w.clamp)) as u32;
    }

    fn end_cwnd_reduction(&mut self) {
        if self.owns_window {
            return;
        }
        if self.w.ssthresh < crate::cc::INFINITE_SSTHRESH && (self.ca_state == CaState::Cwr || self.undo_marker != 0) {
            self.w.cwnd = self.w.ssthresh.min(self.w.clamp);
            self.cwnd_stamp = self.jiffies.at(self.now);
        }
        self.ca_event(CaEvent::CompleteCwr);
    }

    fn enter_recovery(&mut self, flags: u32) {
        self.stats.fast_recoveries += 1;
        // The clock for the undo starts with this recovery's own retransmission.
        if !self.any_retrans_done() {
            self.retrans_stamp = 0;
        }
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            if flags & ECE == 0 {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction();
        }
        self.set_ca_state(CaState::Recovery);
    }

    // ---- undo ----

    fn any_retrans_done(&self) -> bool {
        self.retrans_out > 0 || self.board.front().is_some_and(|s| s.has(EVER_RETRANS))
    }

    /// Whether the echoed timestamp is older than `when` (`tcp_tsopt_ecr_before()`).
    pub(super) fn ecr_before(&self, when: u32) -> bool {
        self.rcv_tsecr != 0 && (self.rcv_tsecr.wrapping_sub(when) as i32) < 0
    }

    // RFC 3522; Linux: tcp_packet_delayed(): what was acknowledged left before the first retransmission, or there was none.
    fn packet_delayed(&self) -> bool {
        if self.retrans_stamp != 0 {
            self.ecr_before(self.retrans_stamp)
        } else {
            true
        }
    }

    fn may_undo(&self) -> bool {
        self.undo_marker != 0 && (self.undo_retrans == 0 || self.packet_delayed())
    }

    /// `tcp_undo_cwnd_reduction()`.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            if self.lost_out > 0 {
                self.board.unmark_all_lost();
            }
            self.lost_out = 0;
            self.board.unpark();
        }
        if self.prior_ssthresh != 0 {
            let v = self.view();
            self.w.cwnd = self.cc.undo(&v, &self.w).clamp(1, self.w.clamp);
            if self.prior_ssthresh > self.w.ssthresh {
                self.w.ssthresh = self.prior_ssthresh;
                self.ecn.queue_cwr = false;
            }
        }
        self.cwnd_stamp = self.jiffies.at(self.now);
        self.undo_marker = 0;
        self.rack.advanced = true;
        self.stats.undos += 1;
    }

    fn try_undo_recovery(&mut self) {
        if self.may_undo() {
            self.undo_reduction(false);
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        self.set_ca_state(CaState::Open);
        self.is_sack_reneg = false;
    }

    fn try_undo_dsack(&mut self) -> bool {
        if self.undo_marker == 0 || self.undo_retrans != 0 {
            return false;
        }
        self.rack.reo_wnd_persist = (self.rack.reo_wnd_persist + 1).min(RACK_RECOVERY_THRESH);
        self.undo_reduction(false);
        true
    }

    fn try_undo_loss(&mut self, frto: bool) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.stats.spurious_rtos += u64::from(frto);
        self.retransmits = 0;
        self.set_ca_state(CaState::Open);
        self.is_sack_reneg = false;
        true
    }

    /// `tcp_try_undo_partial()`; true when the state is to be left as it is.
    fn try_undo_partial(&mut self, prior_snd_una: u64) -> bool {
        if self.undo_marker == 0 || !self.packet_delayed() {
            return false;
        }
        self.check_reordering(prior_snd_una);
        if self.retrans_out > 0 {
            return true;
        }
        if !self.any_retrans_done() {
            self.retrans_stamp = 0;
        }
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }

    fn try_keep_open(&mut self) {
        let state = if self.sacked_out + self.lost_out > 0 || self.any_retrans_done() { CaState::Disorder } else { CaState::Open };
        if self.ca_state != state {
            self.set_ca_state(state);
            self.high_seq = self.snd_nxt;
        }
    }

    fn try_to_open(&mut self, flags: u32) {
        if !self.any_retrans_done() {
            self.retrans_stamp = 0;
        }
        if flags & ECE != 0 {
            self.stats.ecn_reductions += u64::from(self.ca_state < CaState::Cwr);
            self.enter_cwr();
        }
        if self.ca_state != CaState::Cwr {
            self.try_keep_open();
        }
    }

    // ---- the state machine ----

    /// `tcp_identify_packet_loss()`.
    fn identify_loss(&mut self, flags: &mut u32) {
        if self.board.is_empty() {
            return;
        }
        let before = self.retrans_out;
        if self.rack_mark_lost() {
            *flags &= !SET_XMIT_TIMER;
        }
        if before > self.retrans_out {
            *flags |= LOST_RETRANS;
        }
    }

    /// Linux: `tcp_fastretrans_alert()`.
    pub(super) fn fastretrans_alert(&mut self, prior_snd_una: u64, dupack: bool, flags: &mut u32, rexmit: &mut Rexmit) {
        if self.packets_out == 0 {
            self.sacked_out = 0;
        }
        if *flags & ECE != 0 {
            self.prior_ssthresh = 0; // the reduction is due, whatever turns out about losses
        }
        if self.sack_reneging(flags) {
            return;
        }
        if self.ca_state == CaState::Open {
            self.retrans_stamp = 0;
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_cwnd_reduction();
                    self.set_ca_state(CaState::Open);
                }
                CaState::Recovery => {
                    self.try_undo_recovery();
                    // end_cwnd_reduction() looks at the state it leaves: Open, so the undo marker decides.
                    self.end_cwnd_reduction();
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if *flags & SND_UNA_ADVANCED != 0 && self.try_undo_partial(prior_snd_una) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(*flags);
                }
                self.identify_loss(flags);
                if self.ca_state != CaState::Recovery {
                    if self.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(*flags);
                }
            }
            CaState::Loss => {
                self.process_loss(*flags, dupack, rexmit);
                self.identify_loss(flags);
                if !(self.ca_state == CaState::Open || *flags & LOST_RETRANS != 0) {
                    return;
                }
                if self.recover_or_open(flags) {
                    return;
                }
            }
            _ => {
                if self.recover_or_open(flags) {
                    return;
                }
            }
        }
        *rexmit = Rexmit::Lost;
    }

    /// The default branch of `tcp_fastretrans_alert()`; true when no recovery is needed.
    fn recover_or_open(&mut self, flags: &mut u32) -> bool {
        if self.ca_state <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_loss(flags);
        if self.lost_out == 0 {
            self.try_to_open(*flags);
            return true;
        }
        self.enter_recovery(*flags);
        false
    }

    // The receiver dropped what it had SACKed: wait a little, then time out (tcp_check_sack_reneging()).
    fn sack_reneging(&mut self, flags: &mut u32) -> bool {
        if *flags & SACK_RENEGING == 0 || *flags & SND_UNA_ADVANCED == 0 {
            return false;
        }
        *flags &= !SET_XMIT_TIMER;
        let us = u64::from(self.rtt.srtt_us >> 4).max(10_000);
        self.arm(Pending::Retrans, self.jiffies.from_micros(us));
        true
    }

    // RFC 5682 §3.1 (SACK-enhanced F-RTO); Linux: tcp_process_loss().
    fn process_loss(&mut self, flags: u32, dupack: bool, rexmit: &mut Rexmit) {
        let recovered = self.snd_una >= self.high_seq;
        if flags & SND_UNA_ADVANCED != 0 && self.try_undo_loss(false) {
            return;
        }
        if self.frto {
            // Step 3.b: something never retransmitted was delivered, so not all was lost.
            if flags & ORIG_SACK_ACKED != 0 && self.try_undo_loss(true) {
                return;
            }
            if self.snd_nxt > self.high_seq {
                if flags & DATA_SACKED != 0 || dupack {
                    self.frto = false;
                }
            } else if flags & SND_UNA_ADVANCED != 0 && !recovered {
                self.high_seq = self.snd_nxt;
                // Step 2.b: try new data first.
                if !self.unsent.is_empty() && self.wnd_end() > self.snd_nxt {
                    *rexmit = Rexmit::New;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return;
        }
        *rexmit = Rexmit::Lost;
    }

    /// `tcp_xmit_recovery()`.
    pub(super) fn xmit_recovery(&mut self, rexmit: Rexmit) {
        match rexmit {
            Rexmit::None => return,
            Rexmit::New => {
                self.push_pending();
                if self.snd_nxt > self.high_seq {
                    return;
                }
                self.frto = false;
            }
            Rexmit::Lost => {}
        }
        self.retransmit_lost();
    }

    // RFC 8985 §7.4; Linux: tcp_process_tlp_ack().
    pub(super) fn process_tlp_ack(&mut self, ack: u64, flags: u32) {
        if ack < self.tlp_high_seq {
            return;
        }
        if !self.tlp_retrans || flags & DSACK_TLP != 0 {
            self.tlp_high_seq = 0;
        } else if ack > self.tlp_high_seq {
            self.init_cwnd_reduction();
            self.set_ca_state(CaState::Cwr);
            self.end_cwnd_reduction();
            self.try_keep_open();
        } else if flags & (SND_UNA_ADVANCED | NOT_DUP | DATA_SACKED) == 0 {
            self.tlp_high_seq = 0;
        }
    }
}

/// RFC 8985 §5.2 `RACK_sent_after`; Linux: `tcp_skb_sent_after()`.
#[inline]
pub(super) fn sent_after(t1: u64, t2: u64, seq1: u64, seq2: u64) -> bool {
    t1 > t2 || (t1 == t2 && seq1 > seq2)
}
