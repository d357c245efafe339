//! Repair: what an ACK or a timer proves, what is lost, and how the window and the data are restored.
//!
//! One step of it takes a report and gives [`Actions`]: `recovery.rs` judges what the ACK proves about the present phase, here the verdict is
//! carried out, `rack.rs` says what is lost, and the phase that follows is chosen. Losses are marked and the governor of the window is told on
//! the way; what is sent and when the timer runs is left to `Outbound`.
//!
//! Source: RFC 5681 §3.2, RFC 6675 §5, RFC 6937 §3, RFC 8985 §6.2, §6.3 and §7.4, RFC 2018 §8, RFC 4015 §3.4, RFC 3168 §6.1.2. How it differs:
//! docs/models/tcp/recovery.md and rack.md. Not modelled: connections without SACK.

mod prr;
mod rack;
mod recovery;
mod undo;

use super::connection::Connection;
use super::flight::Marks;
use super::governor::Governor;
use super::report::{AckReport, Actions, Copies, Overtaken, Resend, Standing, TakenBack, TimerOrder, Waiting, Watch, WindowOrder};
use crate::cc::View;
use prr::{Progress, Prr};
use rack::{Bounds, Outcome, ProbeAck, Rack, Tlp, DUP_THRESH};
pub(super) use recovery::Phase;
use recovery::{Evidence, Next, Recovery, Verdict};
use tcpscape_base::CaState;
#[cfg(test)]
pub(super) use undo::Frto;

/// Repair of one connection.
pub(super) struct Repair {
    recovery: Recovery,
    rack: Rack,
    tlp: Tlp,
}

/// The rest of the sender: what is known of the connection, the governor of its window, and what waits to leave.
pub(super) struct Rest<'a> {
    pub c: &'a mut Connection,
    pub governor: &'a mut Governor,
    pub waiting: Waiting,
}

/// What carrying out a verdict brought.
struct Carried {
    resend: Resend,
    /// Recovery was left before its end, and the phase that follows has been chosen.
    reopened: bool,
}

/// What looking for losses brought.
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    /// Time until the next judgement, µs.
    wait_us: Option<u64>,
    /// Copies were lost, too.
    lost_copies: bool,
}

impl Actions {
    /// Nothing follows.
    const NONE: Actions = Actions { window: WindowOrder::Keep, timer: TimerOrder::Keep, resend: Resend::Nothing, orderly: false };
}

impl Repair {
    /// Nothing is missing.
    pub fn new() -> Repair {
        Repair { recovery: Recovery::new(), rack: Rack::new(), tlp: Tlp::default() }
    }

    // ---- what others read ----

    /// The state of congestion avoidance.
    #[inline]
    pub fn state(&self) -> CaState {
        self.recovery.state()
    }
    /// What who sends has to know.
    #[inline]
    pub fn standing(&self) -> Standing {
        Standing { state: self.recovery.state(), reordering: self.rack.reordering.degree() }
    }
    /// What is looked for in an ACK.
    #[inline]
    pub fn watch(&self) -> Watch {
        Watch { recovery_point: self.recovery.point(), undo_from: self.recovery.undo.left_edge(), probe_end: self.tlp.end_of_probe() }
    }
    /// Whether delivery rates can be measured: not while what the receiver had SACKed and dropped is repaired.
    #[inline]
    pub fn are_rates_usable(&self) -> bool {
        !self.recovery.has_reneged()
    }
    /// Times that reordering was seen.
    pub fn reorderings(&self) -> u64 {
        self.rack.reordering.events()
    }
    /// Quarters of the smallest RTT in the reordering window.
    pub fn reordering_steps(&self) -> u32 {
        self.rack.steps()
    }
    /// Whether a probe is out.
    pub fn probe_is_out(&self) -> bool {
        self.tlp.is_out()
    }

    // ---- an ACK ----

    /// What follows from an ACK while something is in flight. While all is in order, no probe is out, and the ACK gives no reason to look closer,
    /// that is little.
    #[inline(always)]
    pub fn on_ack(&mut self, r: &AckReport, c: &mut Connection, governor: &mut Governor, waiting: Waiting) -> Actions {
        self.learn(r, c);
        self.rack.adapt(r.delivery.sampled.as_ref().map_or(0, |p| p.delivered_then), c.rate.delivered());
        if self.recovery.phase() == Phase::Open && !r.is_alarming() && !self.tlp.is_out() {
            let timer = if r.restarts_timer { TimerOrder::Restart(CaState::Open) } else { TimerOrder::Keep };
            return Actions { window: self.growth(r, governor), timer, resend: Resend::Nothing, orderly: true };
        }
        self.look_closer(r, &mut Rest { c, governor, waiting })
    }

    #[inline(never)]
    fn look_closer(&mut self, r: &AckReport, rest: &mut Rest) -> Actions {
        self.judge_probe(r, rest);
        let mut actions = self.recover(r, rest);
        if actions.timer == TimerOrder::Keep && r.restarts_timer {
            actions.timer = TimerOrder::Restart(self.recovery.state());
        }
        actions.window = if rest.governor.follows_prr(self.recovery.state()) {
            let newly_lost = rest.c.flight.marked_lost().wrapping_sub(r.prior.marked_lost);
            self.reduce(r.delivered, newly_lost, r.advanced(), rest)
        } else {
            self.growth(r, rest.governor)
        };
        actions
    }

    /// An ACK while nothing is in flight: it may tell of duplicates, and of a probe. Nothing is sent again.
    pub fn on_idle_ack(&mut self, r: &AckReport, rest: &mut Rest) {
        self.learn(r, rest.c);
        if r.duplicate.is_some() {
            self.recover(r, rest);
        }
        self.judge_probe(r, rest);
    }

    /// An ACK below the left edge, whose SACKs count.
    pub fn on_old_ack(&mut self, r: &AckReport, rest: &mut Rest) -> Actions {
        self.learn(r, rest.c);
        self.recover(r, rest)
    }

    /// RACK and the evidence for an undo learn of what was delivered, and of duplicates.
    #[inline(always)]
    fn learn(&mut self, r: &AckReport, c: &Connection) {
        if r.duplicate.is_some() && !r.probe_duplicate {
            self.rack.on_duplicate();
        }
        if r.delivery.needless > 0 {
            self.recovery.undo.duplicates(r.delivery.needless);
        }
        if let Some(late) = r.sacked_late {
            // After a timeout that cannot be undone, SACKs tell of its own retransmissions.
            if self.recovery.state() != CaState::Loss || self.recovery.undo.left_edge().is_some() {
                self.rack.reordering.overtaken(late, c.cfg.mss);
            }
        }
        self.rack.delivered(&r.delivery);
        if let Some(late) = r.acked_late {
            self.rack.reordering.overtaken(late, c.cfg.mss);
        }
    }

    /// RFC 8985 §7.4: what the ACK says to a probe that is out.
    fn judge_probe(&mut self, r: &AckReport, rest: &mut Rest) {
        let probe_ack = ProbeAck { ack: r.ack, duplicate: r.probe_duplicate, empty: r.is_empty() };
        if self.tlp.on_ack(&probe_ack) == Outcome::Repaired {
            let prr = self.begin_reduction(rest);
            self.enter(Phase::Cwr(prr), rest);
            self.end_reduction(false, rest);
            self.open_or_disorder(rest);
        }
    }

    /// One step of recovery: what the ACK proves, what is lost now, and which phase follows. While all is in order, and the ACK gives no reason
    /// to look closer, nothing.
    fn recover(&mut self, r: &AckReport, rest: &mut Rest) -> Actions {
        if self.recovery.phase() == Phase::Open && !r.is_alarming() {
            Actions::NONE
        } else {
            self.step(r, rest)
        }
    }

    fn step(&mut self, r: &AckReport, rest: &mut Rest) -> Actions {
        if r.congestion {
            self.recovery.undo.keep_reduction();
        }
        if r.reneged && r.advanced() {
            // RFC 2018 §8: the receiver has dropped what it had SACKed. It gets max(srtt/2, 10 ms); then it is treated as after a timeout.
            let us = u64::from(rest.c.rtt.srtt_us() / 2).max(RENEGING_WAIT_US);
            return Actions { timer: TimerOrder::Timeout(us), ..Actions::NONE };
        }
        let verdict = self.recovery.judge(&evidence(r, rest.c));
        if matches!(verdict, Verdict::LateOriginal | Verdict::LateOriginalCopiesOut) {
            let late = Overtaken { low: r.prior.una, high: rest.c.flight.sacked_end() };
            self.rack.reordering.overtaken(late, rest.c.cfg.mss);
        }
        if verdict == Verdict::LateOriginalCopiesOut {
            return Actions::NONE;
        }
        let Carried { resend, reopened } = self.carry_out(verdict, r, rest);
        let Search { wait_us, lost_copies } = self.look_for_losses(rest);
        let resend = match self.recovery.next(rest.c.flight.lost() > 0, lost_copies, reopened) {
            Next::GoOn => resend,
            Next::Repair => Resend::Lost,
            Next::Recover => {
                self.enter_recovery(r.congestion, rest);
                Resend::Lost
            }
            Next::Settle => {
                self.settle(r.congestion, rest);
                resend
            }
        };
        Actions { timer: wait_us.map_or(TimerOrder::Keep, TimerOrder::LookAgain), resend, ..Actions::NONE }
    }

    /// Does what the verdict asks for.
    fn carry_out(&mut self, verdict: Verdict, r: &AckReport, rest: &mut Rest) -> Carried {
        let phase = self.recovery.phase();
        if phase == Phase::Open {
            self.recovery.undo.forget_first();
        }
        let mut carried = Carried { resend: Resend::Nothing, reopened: false };
        match verdict {
            Verdict::GoOn if matches!(phase, Phase::Loss(_)) => carried.resend = Resend::Lost,
            Verdict::GoOn | Verdict::LateOriginalCopiesOut => {}
            Verdict::Complete { needless } => self.complete(phase, needless, rest),
            Verdict::AllDuplicates => {
                self.rack.recovery_was_needless();
                self.undo(false, rest);
                if matches!(phase, Phase::Recovery(_)) {
                    self.settle(r.congestion, rest);
                    carried.reopened = true;
                }
            }
            Verdict::LateOriginal => {
                self.forget_first_without_copies(rest.c);
                self.undo(true, rest);
                self.open_or_disorder(rest);
                carried.reopened = true;
            }
            Verdict::TimeoutNeedless | Verdict::SpuriousTimeout => {
                self.undo(true, rest);
                rest.c.stats.spurious_rtos += u64::from(verdict == Verdict::SpuriousTimeout);
                rest.c.rtt.progressed();
                self.enter(Phase::Open, rest);
                self.recovery.repaired();
            }
            Verdict::TryNew => {
                self.recovery.extend_to(rest.c.flight.nxt());
                if rest.waiting.has_unsent && rest.c.window_end() > rest.c.flight.nxt() {
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
    fn complete(&mut self, phase: Phase, needless: bool, rest: &mut Rest) {
        if let Phase::Cwr(_) = phase {
            self.end_reduction(false, rest);
            return self.enter(Phase::Open, rest);
        }
        if needless {
            self.undo(false, rest);
        } else {
            self.rack.recovery_ended();
        }
        self.enter(Phase::Open, rest);
        self.recovery.repaired();
        if let Phase::Recovery(_) = phase {
            self.end_reduction(needless, rest);
        }
    }

    /// Nothing is lost: the phase is Open or Disorder, or CWR if congestion was echoed (RFC 3168 §6.1.2).
    fn settle(&mut self, congestion: bool, rest: &mut Rest) {
        self.forget_first_without_copies(rest.c);
        if congestion {
            rest.c.stats.ecn_reductions += u64::from(self.recovery.state() < CaState::Cwr);
            self.enter_cwr(rest);
        }
        if !matches!(self.recovery.phase(), Phase::Cwr(_)) {
            self.open_or_disorder(rest);
        }
    }

    fn open_or_disorder(&mut self, rest: &mut Rest) {
        let flight = &rest.c.flight;
        let orderly = flight.sacked() + flight.lost() == 0 && !flight.any_resent();
        let phase = if orderly { Phase::Open } else { Phase::Disorder };
        if self.recovery.phase() != phase {
            self.enter(phase, rest);
        }
    }

    /// What becomes of a window that is not reduced: the control's affair. Where segments often arrive out of order, any delivery lets it grow;
    /// otherwise only progress in order does.
    #[inline(always)]
    fn growth(&self, r: &AckReport, governor: &Governor) -> WindowOrder {
        let progress = r.delivery.acked > 0 || (r.delivery.sacked > 0 && self.rack.reordering.is_large());
        if governor.owns_window() || progress {
            WindowOrder::Ask(progress)
        } else {
            WindowOrder::Keep
        }
    }

    // ---- what was sent ----

    /// RFC 5682 §3.1 step 2.b: whether new data have left since F-RTO asked for them; `nxt` is the next new sequence number. If not, its outcome
    /// does not matter any more.
    pub fn new_data_left(&mut self, nxt: u64) -> bool {
        let left = nxt > self.recovery.point();
        if !left {
            self.recovery.end_frto();
        }
        left
    }

    /// `n` segments of new data have left.
    #[inline]
    pub fn on_sent(&mut self, n: u32) {
        if let Some(prr) = self.recovery.reduction() {
            prr.sent(n);
        }
    }

    /// Segments were sent again.
    pub fn on_resent(&mut self, copies: &Copies) {
        self.recovery.undo.resent(copies);
        self.on_sent(copies.left);
    }

    /// What was sent has not left after all.
    pub fn on_taken_back(&mut self, back: &TakenBack) {
        if let Some(prr) = self.recovery.reduction() {
            prr.taken_back(back.segments);
        }
        if back.probe {
            self.tlp.end();
        }
    }

    /// A loss probe has left; `nxt` is the next new sequence number, `resent` whether it was a segment sent again.
    pub fn on_probe_sent(&mut self, nxt: u64, resent: bool) {
        self.tlp.sent(nxt, resent);
    }

    // ---- losses ----

    /// What is lost now, if anything was delivered since this was last asked.
    fn look_for_losses(&mut self, rest: &mut Rest) -> Search {
        if rest.c.flight.out() == 0 || !self.rack.take_to_look() {
            return Search::default();
        }
        let copies = rest.c.flight.copies_out();
        let wait_us = self.mark_overdue(rest);
        Search { wait_us, lost_copies: rest.c.flight.copies_out() < copies }
    }

    /// RFC 8985 §6.2 step 5: marks what is lost; returns the time until the next judgement, µs.
    fn mark_overdue(&mut self, rest: &mut Rest) -> Option<u64> {
        let bounds = Bounds {
            recovering: self.recovery.state() >= CaState::Recovery,
            sacked: rest.c.flight.sacked(),
            min_rtt_us: rest.c.rtt.min_us(),
            srtt_us: rest.c.rtt.srtt_us(),
        };
        let (patience, now_us) = (self.rack.patience_us(&bounds), rest.c.now_us());
        let wait = self.rack.wait_us(&mut rest.c.flight, patience, now_us);
        while let Some(id) = self.rack.overdue(&rest.c.flight, patience, now_us) {
            self.mark_lost(id, rest);
            rest.c.flight.decided(id);
        }
        wait
    }

    /// Marks a segment lost and tells the congestion control that wants to know.
    fn mark_lost(&self, id: u32, rest: &mut Rest) {
        if rest.c.flight.mark_lost(id) && rest.governor.wants_lost() {
            let v = self.view(rest);
            rest.governor.on_lost(&v, rest.c, id);
        }
    }

    /// Marks lost all but what was sent within the last RTT that RACK measured (RFC 8985 §6.3, without the reordering window). A SACKed segment
    /// at the left edge shows that the receiver has dropped what it had: then none of its SACKs counts (RFC 2018 §8).
    fn mark_lost_by_timeout(&mut self, rest: &mut Rest) {
        let reneged = rest.c.flight.front().is_some_and(|s| s.is(Marks::SACKED));
        if reneged {
            rest.c.flight.forget_sacks();
            self.recovery.receiver_reneged();
        }
        rest.c.flight.begin_timeout();
        let (head, now_us, rtt_us) = (rest.c.flight.front_id(), rest.c.now_us(), u64::from(self.rack.rtt_us()));
        for id in rest.c.flight.ids() {
            let s = rest.c.flight.get(id);
            let recent = s.sent_us() + rtt_us > now_us;
            if s.is(Marks::SACKED) || (recent && !reneged && id != head) {
                continue;
            }
            self.mark_lost(id, rest);
            rest.c.flight.lost_by_timeout(id);
        }
    }

    // ---- timers ----

    /// RFC 8985 §6.2 step 5: the reordering timer has expired. Returns whether anything was found lost. A recovery that begins so counts one
    /// packet as delivered, so that a retransmission may leave.
    pub fn on_reordering_timer(&mut self, rest: &mut Rest) -> bool {
        let marked = rest.c.flight.marked_lost();
        self.mark_overdue(rest);
        let newly_lost = rest.c.flight.marked_lost().wrapping_sub(marked);
        if newly_lost > 0 && !matches!(self.recovery.phase(), Phase::Recovery(_)) {
            self.enter_recovery(false, rest);
            if rest.governor.follows_prr(self.recovery.state()) {
                if let WindowOrder::Reduce(cwnd) = self.reduce(1, newly_lost, false, rest) {
                    rest.governor.reduce_to(cwnd);
                }
            }
        }
        newly_lost > 0
    }

    /// A retransmission timeout: everything but the newest segments is lost, and slow start begins anew (RFC 5681 §3.1, RFC 6298 §5).
    pub fn on_timeout(&mut self, rest: &mut Rest) {
        let plan = self.recovery.plan_timeout(rest.c.flight.una(), rest.c.rtt.has_timed_out());
        self.mark_lost_by_timeout(rest);
        if plan.was_orderly && rest.c.flight.sacked() >= DUP_THRESH {
            self.rack.reordering.overestimated();
        }
        if plan.reduces {
            let restore = rest.governor.threshold_to_restore(self.recovery.state());
            self.begin_evidence(Some(restore), rest.c);
            let v = self.view(rest);
            rest.governor.on_loss_event(&v);
        }
        rest.governor.restart_window(rest.c.flight.in_flight(), rest.c.tick());
        self.tlp.end();
        rest.c.ecn.reduced();
        self.enter(Phase::Loss(plan.frto), rest);
    }

    // ---- reductions ----

    /// What the congestion control may read now.
    fn view(&self, rest: &Rest) -> View {
        rest.governor.view(rest.c, self.recovery.state(), rest.waiting)
    }

    /// A phase begins; the congestion control learns of it while the old one is still visible.
    fn enter(&mut self, phase: Phase, rest: &mut Rest) {
        let v = self.view(rest);
        rest.governor.on_state(&v, phase.state());
        self.recovery.enter(phase, rest.c.flight.nxt());
    }

    /// A reduction of the window begins (RFC 6937 §3: the variables are set). A probe that is out is forgotten, and the receiver is told if it
    /// asked for it.
    fn begin_reduction(&mut self, rest: &mut Rest) -> Prr {
        let v = self.view(rest);
        let prr = Prr::new(rest.governor.begin_reduction(&v));
        self.tlp.end();
        rest.c.ecn.reduced();
        prr
    }

    /// RFC 6937 §3: the window follows what was delivered while it is reduced.
    fn reduce(&mut self, delivered: u32, newly_lost: u32, advanced: bool, rest: &Rest) -> WindowOrder {
        let in_flight = rest.c.flight.in_flight();
        let progress = Progress { delivered, safe: advanced && newly_lost == 0, in_flight, ssthresh: rest.governor.window().ssthresh };
        let allowance = self.recovery.reduction().and_then(|prr| prr.on_ack(&progress));
        allowance.map_or(WindowOrder::Keep, |n| WindowOrder::Reduce(in_flight.saturating_add(n)))
    }

    fn end_reduction(&self, undone: bool, rest: &mut Rest) {
        let v = self.view(rest);
        rest.governor.end_reduction(&v, rest.c.tick(), undone);
    }

    /// The window shrinks without a loss: congestion was echoed, or the sender's own queue refused a packet (RFC 3168 §6.1.2).
    pub fn enter_cwr(&mut self, rest: &mut Rest) {
        self.recovery.undo.keep_reduction();
        if self.recovery.state() < CaState::Cwr {
            self.recovery.undo.end();
            let prr = self.begin_reduction(rest);
            self.enter(Phase::Cwr(prr), rest);
        }
    }

    /// Losses begin to be repaired (RFC 6675 §5 step 4). A reduction under way goes on; after `congestion` it cannot be undone.
    fn enter_recovery(&mut self, congestion: bool, rest: &mut Rest) {
        rest.c.stats.fast_recoveries += 1;
        // The evidence for an undo begins with this recovery's own retransmissions.
        self.forget_first_without_copies(rest.c);
        let going_on = self.recovery.reduction().copied();
        let restore = (going_on.is_none() && !congestion).then(|| rest.governor.threshold_to_restore(self.recovery.state()));
        self.begin_evidence(restore, rest.c);
        let prr = match going_on {
            None => self.begin_reduction(rest),
            // CWR did not follow it where the control owns the window.
            Some(_) if rest.governor.owns_window() => Prr::new(rest.governor.cwnd()),
            Some(prr) => prr,
        };
        self.enter(Phase::Recovery(prr), rest);
    }

    // ---- undo ----

    /// From now on retransmissions are evidence for or against the reduction, which an undo takes back to the threshold `restore`.
    fn begin_evidence(&mut self, restore: Option<u32>, c: &Connection) {
        let copies = c.flight.copies_out() + u32::from(self.tlp.copy_is_out());
        self.recovery.undo.begin(c.flight.una(), copies, restore);
    }

    /// Takes the last reduction back; with `losses`, what was believed lost is not. A reduction that no longer stands is not told to the receiver.
    fn undo(&mut self, losses: bool, rest: &mut Rest) {
        rest.c.stats.undos += 1;
        self.rack.look_again();
        if losses {
            rest.c.flight.forget_losses();
        }
        if let Some(ssthresh) = self.recovery.undo.take() {
            let v = self.view(rest);
            if rest.governor.restore(&v, ssthresh) {
                rest.c.ecn.queue_cwr = false;
            }
        }
        rest.governor.touch(rest.c.tick());
    }

    /// The evidence of timestamps begins anew when nothing that was sent again is left.
    fn forget_first_without_copies(&mut self, c: &Connection) {
        if !c.flight.any_resent() {
            self.recovery.undo.forget_first();
        }
    }

    #[cfg(test)]
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }
    #[cfg(test)]
    pub fn rack(&mut self) -> &mut Rack {
        &mut self.rack
    }
}

fn evidence(r: &AckReport, c: &Connection) -> Evidence {
    Evidence {
        una: c.flight.una(),
        nxt: c.flight.nxt(),
        advanced: r.advanced(),
        echo: c.peer.echo(),
        original: r.delivery.original,
        sacked_or_duplicate: r.delivery.sacked > 0 || r.is_duplicate(),
        copies: c.flight.copies_out(),
    }
}

/// Least time that a receiver gets after it has dropped what it had SACKed: 10 ms.
const RENEGING_WAIT_US: u64 = 10_000;
