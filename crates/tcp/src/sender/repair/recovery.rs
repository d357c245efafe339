//! The phases of a connection between a loss and its repair, and what an ACK proves about the one under way.
//!
//! Source: RFC 5681 §3.2, RFC 6582 §3.2 (recovery ends when everything sent before is acknowledged), RFC 6675 §5, RFC 3522 and 3708 (undo),
//! RFC 5682 §3.1 (F-RTO). Judging changes nothing; `mod.rs` carries the verdicts out (`carry_out`). How it differs:
//! docs/models/tcp/recovery.md. Not modelled: connections without SACK.

use super::prr::Prr;
use super::undo::{AfterTimeout, Conclusion, Frto, Undo};
use tcpscape_base::CaState;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Phase {
    /// Nothing is missing.
    Open,
    /// Something arrived out of order; nothing is believed lost.
    Disorder,
    /// The window shrinks after a signal of congestion, without losses.
    Cwr(Prr),
    /// Fast recovery: losses are repaired while the window shrinks.
    Recovery(Prr),
    /// After a retransmission timeout.
    Loss(Frto),
}

/// Phase, recovery point and evidence of a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Recovery {
    phase: Phase,
    /// The highest sequence number sent when the phase began (`RecoveryPoint` of RFC 6675).
    point: u64,
    /// What would prove the last reduction wrong.
    pub undo: Undo,
    /// The receiver has dropped segments that it had SACKed.
    reneged: bool,
}

/// What a retransmission timeout does to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) struct TimeoutPlan {
    /// Nothing was being repaired or reduced before.
    pub was_orderly: bool,
    /// It is a loss event of its own: the threshold falls (RFC 5681 §3.1). One for data whose loss has lowered it already is not.
    pub reduces: bool,
    /// Whether F-RTO watches it: a first timeout outside of repairs, or one right after another.
    pub frto: Frto,
}

/// What an ACK tells about the present phase.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Evidence {
    /// The left edge.
    pub una: u64,
    /// The next new sequence number.
    pub nxt: u64,
    /// It moved the left edge.
    pub advanced: bool,
    /// Timestamp that it echoes.
    pub echo: u32,
    /// An original from before the recovery point was delivered.
    pub original: bool,
    /// It SACKed something, or is a duplicate.
    pub sacked_or_duplicate: bool,
    /// Copies in flight.
    pub copies: u32,
}

/// What follows from it for the present phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Verdict {
    /// Nothing: the phase goes on.
    GoOn,
    /// Everything sent before the phase began is acknowledged; if `needless`, the reduction is proven wrong at its end.
    Complete { needless: bool },
    /// Every retransmission was a duplicate: the reduction was wrong.
    AllDuplicates,
    /// An original arrived late, in recovery: the reduction was wrong.
    LateOriginal,
    /// The same, but copies are still in flight: wait for what they bring.
    LateOriginalCopiesOut,
    /// Timestamps or duplicates prove the timeout wrong.
    TimeoutNeedless,
    /// F-RTO: the timeout was spurious.
    SpuriousTimeout,
    /// F-RTO: send new data first.
    TryNew,
    /// F-RTO: the timeout was no mistake.
    GenuineTimeout,
}

/// What becomes of the phase once losses were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Next {
    /// It stays as it is, or has been chosen already: what the verdict made due goes out.
    GoOn,
    /// Recovery is under way: what is lost goes out.
    Repair,
    /// Recovery begins.
    Recover,
    /// Nothing is lost: Open or Disorder follows, or CWR after an echo of congestion.
    Settle,
}

impl Recovery {
    /// At the start of a connection.
    pub fn new() -> Recovery {
        Recovery { phase: Phase::Open, point: 0, undo: Undo::default(), reneged: false }
    }

    /// The present phase.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }
    /// Its name among Linux's congestion-avoidance states.
    #[inline]
    pub fn state(&self) -> CaState {
        self.phase.state()
    }
    /// Another phase begins while `nxt` is the next new sequence number: everything below belongs to it. A reduction that goes on as recovery
    /// keeps its recovery point.
    pub fn enter(&mut self, phase: Phase, nxt: u64) {
        if !matches!((self.phase, phase), (Phase::Cwr(_), Phase::Recovery(_))) {
            self.point = nxt;
        }
        self.phase = phase;
    }
    /// What a retransmission timeout does now: `una` is the left edge, `repeated` whether the timer has expired since that moved.
    pub fn plan_timeout(&self, una: u64, repeated: bool) -> TimeoutPlan {
        let was_orderly = matches!(self.phase, Phase::Open | Phase::Disorder);
        let in_loss = matches!(self.phase, Phase::Loss(_));
        let is_new = self.point <= una || (in_loss && !repeated);
        let repairing = in_loss || matches!(self.phase, Phase::Recovery(_));
        let frto = if repeated || !repairing { Frto::Watching } else { Frto::Off };
        TimeoutPlan { was_orderly, reduces: was_orderly || is_new, frto }
    }
    /// The reduction under way, in CWR and recovery.
    #[inline]
    pub fn reduction(&mut self) -> Option<&mut Prr> {
        match &mut self.phase {
            Phase::Cwr(prr) | Phase::Recovery(prr) => Some(prr),
            _ => None,
        }
    }
    /// F-RTO's outcome does not matter any more.
    pub fn end_frto(&mut self) {
        if let Phase::Loss(frto) = &mut self.phase {
            *frto = Frto::Off;
        }
    }

    /// The highest sequence number sent when the phase began.
    #[inline]
    pub fn point(&self) -> u64 {
        self.point
    }
    /// Everything up to `nxt` belongs to the phase from now on.
    pub fn extend_to(&mut self, nxt: u64) {
        self.point = nxt;
    }
    /// The receiver has dropped what it had SACKed: until this is repaired, delivery rates are not measured.
    pub fn receiver_reneged(&mut self) {
        self.reneged = true;
    }
    /// Everything that was missing is repaired.
    pub fn repaired(&mut self) {
        self.reneged = false;
    }
    /// Whether the receiver has dropped what it had SACKed.
    #[inline]
    pub fn has_reneged(&self) -> bool {
        self.reneged
    }

    /// What an ACK proves about the present phase.
    pub fn judge(&self, e: &Evidence) -> Verdict {
        let needless = self.undo.proven(e.echo);
        let complete = e.una >= self.point;
        match self.phase {
            Phase::Open | Phase::Disorder => self.judge_duplicates(),
            // One byte beyond, so that what was in flight when the signal came does not end it.
            Phase::Cwr(_) if e.una > self.point => Verdict::Complete { needless: false },
            Phase::Cwr(_) => Verdict::GoOn,
            Phase::Recovery(_) if complete => Verdict::Complete { needless },
            Phase::Recovery(_) if e.advanced && self.undo.by_timestamp(e.echo) => {
                if e.copies > 0 {
                    Verdict::LateOriginalCopiesOut
                } else {
                    Verdict::LateOriginal
                }
            }
            Phase::Recovery(_) => self.judge_duplicates(),
            Phase::Loss(_) if e.advanced && needless => Verdict::TimeoutNeedless,
            Phase::Loss(frto) => match frto.judge(&self.after_timeout(e)) {
                Conclusion::Spurious => Verdict::SpuriousTimeout,
                Conclusion::TryNew => Verdict::TryNew,
                _ if complete => Verdict::Complete { needless },
                Conclusion::Genuine => Verdict::GenuineTimeout,
                Conclusion::Open => Verdict::GoOn,
            },
        }
    }

    /// What becomes of the phase now that losses were looked for: whether anything is lost, copies among it, and whether recovery was just
    /// left before its end. After a timeout a lost copy begins a recovery, which RFC 6675 §5.1
    /// forbids (docs/models/tcp/recovery.md).
    pub fn next(&self, lost: bool, lost_copies: bool, reopened: bool) -> Next {
        match self.phase {
            Phase::Recovery(_) => Next::Repair,
            Phase::Loss(_) if !lost_copies => Next::GoOn,
            _ if lost => Next::Recover,
            _ if reopened => Next::GoOn,
            _ => Next::Settle,
        }
    }

    fn judge_duplicates(&self) -> Verdict {
        if self.undo.by_duplicates() {
            Verdict::AllDuplicates
        } else {
            Verdict::GoOn
        }
    }

    fn after_timeout(&self, e: &Evidence) -> AfterTimeout {
        AfterTimeout {
            original: e.original,
            advanced: e.advanced,
            sacked_or_duplicate: e.sacked_or_duplicate,
            sent_new: e.nxt > self.point,
            recovered: e.una >= self.point,
        }
    }
}

impl Phase {
    /// Its name among Linux's congestion-avoidance states.
    #[inline]
    pub fn state(self) -> CaState {
        match self {
            Phase::Open => CaState::Open,
            Phase::Disorder => CaState::Disorder,
            Phase::Cwr(_) => CaState::Cwr,
            Phase::Recovery(_) => CaState::Recovery,
            Phase::Loss(_) => CaState::Loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::report::Copies;

    /// Data up to 10,000 were out when the phase began at 1,000; one segment was sent again at timestamp 50.
    fn phase(phase: Phase) -> Recovery {
        let mut r = Recovery::new();
        r.undo.begin(1_000, 0, None);
        r.undo.resent(&Copies { left: 1, counted: 1, first: Some(50) });
        r.enter(phase, 10_000);
        r
    }

    fn ack(una: u64, echo: u32) -> Evidence {
        Evidence { una, nxt: 12_000, advanced: true, echo, ..Evidence::default() }
    }

    /// RFC 6582 §3.2: a partial acknowledgment keeps recovery going, a full one ends it.
    #[test]
    fn recovery_ends_at_the_recovery_point() {
        let r = phase(Phase::Recovery(Prr::new(20)));
        assert_eq!(r.judge(&ack(9_999, 60)), Verdict::GoOn);
        assert_eq!(r.judge(&ack(10_000, 60)), Verdict::Complete { needless: false });
        assert_eq!(r.judge(&ack(10_000, 49)), Verdict::Complete { needless: true });
        let c = phase(Phase::Cwr(Prr::new(20)));
        assert_eq!((c.judge(&ack(10_000, 60)), c.judge(&ack(10_001, 60))), (Verdict::GoOn, Verdict::Complete { needless: false }));
    }

    /// RFC 3522: an echo older than the first retransmission; RFC 3708: every retransmission was a duplicate.
    #[test]
    fn a_partial_ack_may_prove_the_reduction_wrong() {
        let mut r = phase(Phase::Recovery(Prr::new(20)));
        assert_eq!(r.judge(&ack(2_000, 49)), Verdict::LateOriginal);
        assert_eq!(r.judge(&Evidence { copies: 1, ..ack(2_000, 49) }), Verdict::LateOriginalCopiesOut);
        assert_eq!(r.judge(&Evidence { advanced: false, ..ack(2_000, 49) }), Verdict::GoOn);
        r.undo.duplicates(1);
        assert_eq!(r.judge(&Evidence { advanced: false, ..ack(2_000, 60) }), Verdict::AllDuplicates);
        r.enter(Phase::Disorder, 10_000);
        assert_eq!(r.judge(&ack(2_000, 60)), Verdict::AllDuplicates);
    }

    /// RFC 5681 §3.1: the threshold falls once for the data of one flight. RFC 5682: a timeout during repairs is not watched.
    #[test]
    fn what_a_timeout_does() {
        let plan = |p, una, repeated| {
            let t = phase(p).plan_timeout(una, repeated);
            (t.reduces, t.frto)
        };
        assert_eq!(plan(Phase::Open, 1_000, false), (true, Frto::Watching));
        assert_eq!(plan(Phase::Cwr(Prr::new(20)), 2_000, false), (false, Frto::Watching));
        assert_eq!(plan(Phase::Recovery(Prr::new(20)), 2_000, false), (false, Frto::Off));
        assert_eq!(plan(Phase::Recovery(Prr::new(20)), 10_000, false), (true, Frto::Off));
        assert_eq!(plan(Phase::Loss(Frto::Off), 2_000, false), (true, Frto::Off));
        assert_eq!(plan(Phase::Loss(Frto::Off), 2_000, true), (false, Frto::Watching));
    }

    #[test]
    fn losses_begin_a_recovery_outside_of_repairs() {
        let next = |p, lost, copies, reopened| phase(p).next(lost, copies, reopened);
        assert_eq!((next(Phase::Open, true, false, false), next(Phase::Open, false, false, false)), (Next::Recover, Next::Settle));
        assert_eq!(next(Phase::Recovery(Prr::new(20)), true, true, false), Next::Repair);
        let loss = Phase::Loss(Frto::Off);
        assert_eq!((next(loss, true, false, false), next(loss, true, true, false)), (Next::GoOn, Next::Recover));
        assert_eq!((next(Phase::Disorder, false, false, true), next(Phase::Disorder, true, false, true)), (Next::GoOn, Next::Recover));
    }

    /// A reduction that goes on as recovery ends where it would have ended.
    #[test]
    fn the_recovery_point_moves_with_a_new_phase() {
        let mut r = phase(Phase::Cwr(Prr::new(20)));
        r.enter(Phase::Recovery(Prr::new(20)), 15_000);
        assert_eq!(r.point(), 10_000);
        r.enter(Phase::Loss(Frto::Off), 16_000);
        assert_eq!(r.point(), 16_000);
    }

    /// RFC 5682 §3.1 after RFC 3522: timestamps decide first, then F-RTO, then whether all is repaired.
    #[test]
    fn after_a_timeout() {
        let r = phase(Phase::Loss(Frto::Watching));
        assert_eq!(r.judge(&ack(2_000, 49)), Verdict::TimeoutNeedless);
        assert_eq!(r.judge(&Evidence { nxt: 10_000, ..ack(2_000, 60) }), Verdict::TryNew);
        assert_eq!(r.judge(&Evidence { original: true, ..ack(2_000, 60) }), Verdict::SpuriousTimeout);
        assert_eq!(r.judge(&Evidence { sacked_or_duplicate: true, ..ack(2_000, 60) }), Verdict::GenuineTimeout);
        assert_eq!(r.judge(&ack(10_000, 60)), Verdict::Complete { needless: false });
        assert_eq!(phase(Phase::Loss(Frto::Off)).judge(&ack(2_000, 60)), Verdict::GoOn);
    }
}
