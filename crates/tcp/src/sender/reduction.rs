//! Carrying out what recovery decides: the window is reduced, restored, or left alone.
//!
//! Source: RFC 5681 §3.2, RFC 6675 §5, RFC 6937 §3, RFC 8985 §6.2 and §6.3, RFC 4015 §3.4, RFC 3168 §6.1.2. How it differs: docs/models/tcp/recovery.md.
//! Not modelled: a window in bytes.

use super::losses::Search;
use super::prr::{Progress, Prr};
use super::rack::DUP_THRESH;
use super::recovery::{Evidence, Next, Phase, Verdict};
use super::report::AckReport;
use super::timer::Purpose;
use super::tlp::{Outcome, ProbeAck};
use super::Sender;
use crate::cc::{CaEvent, INFINITE_SSTHRESH};
use tcpscape_base::CaState;

/// What is to be sent again once an ACK has been processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    /// Nothing.
    Nothing,
    /// What is lost.
    Lost,
    /// New data, as F-RTO asks; what is lost if there was none to send.
    NewFirst,
}

/// What follows from an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actions {
    /// What goes out again.
    pub resend: Resend,
    /// The timer was set for a reason of its own.
    pub timer_is_set: bool,
}

impl Actions {
    /// Nothing follows.
    pub const NONE: Actions = Actions { resend: Resend::Nothing, timer_is_set: false };
}

/// What carrying out a verdict brought.
struct Carried {
    resend: Resend,
    /// Recovery was left before its end, and the phase that follows has been chosen.
    reopened: bool,
}

impl Sender {
    // ---- an ACK ----

    /// One step of recovery: what the ACK proves, what is lost now, and which phase follows. While all is in order, and the ACK gives no reason
    /// to look closer, nothing.
    #[inline]
    pub(super) fn recover(&mut self, r: &AckReport) -> Actions {
        if self.recovery.phase() == Phase::Open && !r.is_alarming() {
            Actions::NONE
        } else {
            self.step(r)
        }
    }

    fn step(&mut self, r: &AckReport) -> Actions {
        if r.congestion {
            self.recovery.undo.keep_reduction();
        }
        if r.reneged && r.advanced() {
            return self.wait_for_reneging();
        }
        let verdict = self.recovery.judge(&self.evidence(r));
        if matches!(verdict, Verdict::LateOriginal | Verdict::LateOriginalCopiesOut) {
            self.rack.reordering.overtaken(r.prior.una, self.flight.sacked_end(), self.cfg.mss);
        }
        if verdict == Verdict::LateOriginalCopiesOut {
            return Actions::NONE;
        }
        let Carried { resend, reopened } = self.carry_out(verdict, r);
        let Search { timer_is_set, lost_copies } = self.look_for_losses();
        let resend = match self.recovery.next(self.flight.lost() > 0, lost_copies, reopened) {
            Next::GoOn => resend,
            Next::Repair => Resend::Lost,
            Next::Recover => {
                self.enter_recovery(r.congestion);
                Resend::Lost
            }
            Next::Settle => {
                self.settle(r.congestion);
                resend
            }
        };
        Actions { resend, timer_is_set }
    }

    fn evidence(&self, r: &AckReport) -> Evidence {
        Evidence {
            una: self.flight.una(),
            nxt: self.flight.nxt(),
            advanced: r.advanced(),
            echo: self.peer.echo(),
            original: r.delivery.original,
            sacked_or_duplicate: r.delivery.sacked > 0 || r.is_duplicate,
            copies: self.flight.copies_out(),
        }
    }

    /// RFC 2018 §8: the receiver has dropped what it had SACKed. The timer waits for max(srtt/2, 10 ms); then it is treated as after a timeout.
    fn wait_for_reneging(&mut self) -> Actions {
        let us = u64::from(self.rtt.srtt_us() / 2).max(RENEGING_WAIT_US);
        self.arm(Purpose::Retransmit, self.cfg.jiffies.from_micros(us));
        Actions { resend: Resend::Nothing, timer_is_set: true }
    }

    /// Does what the verdict asks for.
    fn carry_out(&mut self, verdict: Verdict, r: &AckReport) -> Carried {
        let phase = self.recovery.phase();
        if phase == Phase::Open {
            self.recovery.undo.forget_first();
        }
        let mut carried = Carried { resend: Resend::Nothing, reopened: false };
        match verdict {
            Verdict::GoOn if matches!(phase, Phase::Loss(_)) => carried.resend = Resend::Lost,
            Verdict::GoOn | Verdict::LateOriginalCopiesOut => {}
            Verdict::Complete { needless } => self.complete(phase, needless),
            Verdict::AllDuplicates => {
                self.rack.recovery_was_needless();
                self.undo(false);
                if matches!(phase, Phase::Recovery(_)) {
                    self.settle(r.congestion);
                    carried.reopened = true;
                }
            }
            Verdict::LateOriginal => {
                self.forget_first_without_copies();
                self.undo(true);
                self.open_or_disorder();
                carried.reopened = true;
            }
            Verdict::TimeoutNeedless | Verdict::SpuriousTimeout => {
                self.undo(true);
                self.stats.spurious_rtos += u64::from(verdict == Verdict::SpuriousTimeout);
                self.rtt.progressed();
                self.enter(Phase::Open);
                self.recovery.repaired();
            }
            Verdict::TryNew => {
                self.recovery.extend_to(self.flight.nxt());
                if self.may_send_new() {
                    carried.resend = Resend::NewFirst;
                } else {
                    self.recovery.end_frto();
                    carried.resend = Resend::Lost;
                }
            }
            Verdict::GenuineTimeout => {
                self.recovery.end_frto();
                carried.resend = Resend::Lost;
            }
        }
        carried
    }

    /// Everything sent before the phase began is acknowledged.
    fn complete(&mut self, phase: Phase, needless: bool) {
        if let Phase::Cwr(_) = phase {
            self.end_reduction(false);
            return self.enter(Phase::Open);
        }
        if needless {
            self.undo(false);
        } else {
            self.rack.recovery_ended();
        }
        self.enter(Phase::Open);
        self.recovery.repaired();
        if let Phase::Recovery(_) = phase {
            self.end_reduction(needless);
        }
    }

    /// RFC 5682 §3.1 step 2.b and RFC 6675 §5 step C: sends what an ACK has made due.
    pub(super) fn resend(&mut self, what: Resend) {
        match what {
            Resend::Nothing => return,
            Resend::Lost => {}
            Resend::NewFirst => {
                self.push_pending();
                if self.flight.nxt() > self.recovery.point() {
                    return;
                }
                self.recovery.end_frto();
            }
        }
        self.retransmit_lost();
    }

    /// RFC 8985 §7.4: what the ACK says to a probe that is out.
    #[inline]
    pub(super) fn judge_probe(&mut self, r: &AckReport) {
        if !self.tlp.is_out() {
            return;
        }
        let probe_ack = ProbeAck { ack: r.ack, duplicate: r.probe_duplicate, empty: r.is_empty() };
        if self.tlp.on_ack(&probe_ack) == Outcome::Repaired {
            let prr = self.begin_reduction();
            self.enter(Phase::Cwr(prr));
            self.end_reduction(false);
            self.open_or_disorder();
        }
    }

    /// RFC 6937 §3: the window follows what was delivered while it is reduced.
    pub(super) fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool) {
        let in_flight = self.flight.in_flight();
        let progress = Progress { delivered, safe: advanced && newly_lost == 0, in_flight, ssthresh: self.w.ssthresh };
        if let Some(allowance) = self.recovery.reduction().and_then(|prr| prr.on_ack(&progress)) {
            self.w.cwnd = in_flight.saturating_add(allowance).clamp(1, self.w.clamp);
        }
    }

    // ---- reductions ----

    /// A phase begins; the congestion control learns of it while the old one is still visible.
    pub(super) fn enter(&mut self, phase: Phase) {
        let v = self.view();
        self.control.cc.on_state(&v, &mut self.w, phase.state());
        self.recovery.enter(phase, self.flight.nxt());
    }

    /// A reduction of the window begins (RFC 6937 §3: the variables are set). Credit for growth and a probe that is out are forgotten, and the
    /// receiver is told if it asked for it.
    fn begin_reduction(&mut self) -> Prr {
        let prr = Prr::new(self.w.cwnd);
        self.w.cwnd_cnt = 0;
        self.lower_threshold();
        self.tlp.end();
        self.ecn.reduced();
        prr
    }

    /// A loss event: the congestion control says where the threshold falls to, and the window before it is kept for an undo.
    fn lower_threshold(&mut self) {
        self.w.prior_cwnd = self.w.cwnd;
        let v = self.view();
        self.w.ssthresh = self.control.cc.ssthresh(&v, &self.w);
    }

    /// A reduction ends with the window at the threshold, unless it was undone.
    fn end_reduction(&mut self, undone: bool) {
        if self.control.owns_window {
            return;
        }
        if self.w.ssthresh < INFINITE_SSTHRESH && !undone {
            self.w.cwnd = self.w.ssthresh.min(self.w.clamp);
            self.window_use.touch(self.tick());
        }
        self.event(CaEvent::CompleteCwr);
    }

    /// The window shrinks without a loss: congestion was echoed, or the sender's own queue refused a packet (RFC 3168 §6.1.2).
    pub(super) fn enter_cwr(&mut self) {
        self.recovery.undo.keep_reduction();
        if self.recovery.state() < CaState::Cwr {
            self.recovery.undo.end();
            let prr = self.begin_reduction();
            self.enter(Phase::Cwr(prr));
        }
    }

    /// Losses begin to be repaired (RFC 6675 §5 step 4). A reduction under way goes on; after `congestion` it cannot be undone.
    pub(super) fn enter_recovery(&mut self, congestion: bool) {
        self.stats.fast_recoveries += 1;
        // The evidence for an undo begins with this recovery's own retransmissions.
        self.forget_first_without_copies();
        let going_on = self.recovery.reduction().copied();
        let restore = (going_on.is_none() && !congestion).then(|| self.threshold_to_restore());
        self.begin_evidence(restore);
        let prr = going_on.unwrap_or_else(|| self.begin_reduction());
        self.enter(Phase::Recovery(prr));
    }

    /// A retransmission timeout: everything but the newest segments is lost, and slow start begins anew (RFC 5681 §3.1, RFC 6298 §5).
    pub(super) fn enter_loss(&mut self) {
        let plan = self.recovery.plan_timeout(self.flight.una(), self.rtt.has_timed_out());
        self.mark_lost_by_timeout();
        if plan.was_orderly && self.flight.sacked() >= DUP_THRESH {
            self.rack.reordering.overestimated();
        }
        if plan.reduces {
            self.begin_evidence(Some(self.threshold_to_restore()));
            self.lower_threshold();
            self.event(CaEvent::Loss);
        }
        self.restart_window();
        self.enter(Phase::Loss(plan.frto));
    }

    /// The loss window of RFC 5681 §3.1: one segment more than is believed in flight. Credit for growth and a probe that is out are forgotten,
    /// and the receiver is told if it asked for it.
    fn restart_window(&mut self) {
        self.w.cwnd_cnt = 0;
        self.w.cwnd = (self.flight.in_flight() + 1).min(self.w.clamp);
        self.window_use.touch(self.tick());
        self.tlp.end();
        self.ecn.reduced();
    }

    // ---- undo ----

    /// The threshold that an undo returns to: three quarters of the window, if that is more than the present threshold.
    pub(super) fn threshold_to_restore(&self) -> u32 {
        if self.recovery.is_reducing() {
            self.w.ssthresh
        } else {
            self.w.ssthresh.max(self.w.cwnd / 2 + self.w.cwnd / 4)
        }
    }

    /// From now on retransmissions are evidence for or against the reduction, which an undo takes back to the threshold `restore`.
    fn begin_evidence(&mut self, restore: Option<u32>) {
        let copies = self.flight.copies_out() + u32::from(self.tlp.copy_is_out());
        self.recovery.undo.begin(self.flight.una(), copies, restore);
    }

    /// Takes the last reduction back; with `losses`, what was believed lost is not.
    fn undo(&mut self, losses: bool) {
        self.stats.undos += 1;
        self.rack.look_again();
        if losses {
            self.flight.forget_losses();
        }
        if let Some(ssthresh) = self.recovery.undo.take() {
            self.restore_window(ssthresh);
        }
        self.window_use.touch(self.tick());
    }

    /// RFC 4015 §3.4: the window is the congestion control's affair; the threshold rises to what it was. A reduction that no longer stands is
    /// not told to the receiver.
    fn restore_window(&mut self, ssthresh: u32) {
        let v = self.view();
        self.w.cwnd = self.control.cc.undo(&v, &self.w).clamp(1, self.w.clamp);
        if ssthresh > self.w.ssthresh {
            self.w.ssthresh = ssthresh;
            self.ecn.queue_cwr = false;
        }
    }

    /// The evidence of timestamps begins anew when nothing that was sent again is left.
    fn forget_first_without_copies(&mut self) {
        if !self.flight.any_resent() {
            self.recovery.undo.forget_first();
        }
    }

    /// Nothing is lost: the phase is Open or Disorder, or CWR if congestion was echoed (RFC 3168 §6.1.2).
    fn settle(&mut self, congestion: bool) {
        self.forget_first_without_copies();
        if congestion {
            self.stats.ecn_reductions += u64::from(self.recovery.state() < CaState::Cwr);
            self.enter_cwr();
        }
        if !matches!(self.recovery.phase(), Phase::Cwr(_)) {
            self.open_or_disorder();
        }
    }

    fn open_or_disorder(&mut self) {
        let orderly = self.flight.sacked() + self.flight.lost() == 0 && !self.flight.any_resent();
        let phase = if orderly { Phase::Open } else { Phase::Disorder };
        if self.recovery.phase() != phase {
            self.enter(phase);
        }
    }
}

/// Least time that a receiver gets after it has dropped what it had SACKed: 10 ms.
const RENEGING_WAIT_US: u64 = 10_000;
