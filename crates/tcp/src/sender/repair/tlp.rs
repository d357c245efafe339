//! The tail loss probe: when the ACKs stop, one segment more shows whether the last ones were lost.
//!
//! Source: RFC 8985 §7. How it differs: docs/models/tcp/rack.md, "Probe". Not modelled: probes while a reordering timer runs.

/// The probe of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct Tlp {
    /// SND.NXT when the probe left: it is out until that is acknowledged (`TLP.end_seq`).
    end: Option<u64>,
    /// It was a segment sent again, not new data (`TLP.is_retrans`).
    resent: bool,
}

/// What an ACK says to the probe.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct ProbeAck {
    /// Its number.
    pub ack: u64,
    /// It reports the probe as a duplicate.
    pub duplicate: bool,
    /// It says nothing but its number: no progress, no window, no SACK.
    pub empty: bool,
}

/// What became of the probe (§7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Outcome {
    /// It is still out.
    Pending,
    /// It has arrived, and nothing was lost, or loss detection sees to it.
    Ended,
    /// It repaired a loss: the window must be reduced.
    Repaired,
}

impl Tlp {
    /// Whether a probe is out.
    #[inline]
    pub fn is_out(&self) -> bool {
        self.end.is_some()
    }
    /// Whether a copy is out as a probe.
    pub fn copy_is_out(&self) -> bool {
        self.is_out() && self.resent
    }
    /// Where the probe ends that is out.
    #[inline]
    pub fn end_of_probe(&self) -> Option<u64> {
        self.end
    }
    /// A probe has left.
    pub fn sent(&mut self, nxt: u64, resent: bool) {
        *self = Tlp { end: Some(nxt), resent };
    }
    /// No probe is out any more.
    pub fn end(&mut self) {
        self.end = None;
    }

    /// What the ACK makes of the probe; one that has ended is forgotten.
    pub fn on_ack(&mut self, a: &ProbeAck) -> Outcome {
        let Some(end) = self.end.filter(|&end| a.ack >= end) else { return Outcome::Pending };
        let outcome = if !self.resent || a.duplicate {
            Outcome::Ended // new data, or the original arrived as well
        } else if a.ack > end {
            Outcome::Repaired // beyond the probe without a DSACK: there was only the copy
        } else if a.empty {
            Outcome::Ended // the duplicate ACK that original and copy cause
        } else {
            Outcome::Pending
        };
        if outcome != Outcome::Pending {
            self.end = None;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ack: u64) -> ProbeAck {
        ProbeAck { ack, duplicate: false, empty: false }
    }

    /// §7.4.2: an ACK beyond the probe without a DSACK means that the probe filled a hole.
    #[test]
    fn the_cases_of_the_rfc() {
        let mut t = Tlp::default();
        assert_eq!(t.on_ack(&ack(10)), Outcome::Pending);
        t.sent(10, true);
        assert_eq!((t.on_ack(&ack(9)), t.on_ack(&ack(10))), (Outcome::Pending, Outcome::Pending));
        assert_eq!(t.on_ack(&ack(11)), Outcome::Repaired);
        t.sent(10, true);
        assert_eq!(t.on_ack(&ProbeAck { duplicate: true, ..ack(11) }), Outcome::Ended);
        t.sent(10, true);
        assert_eq!(t.on_ack(&ProbeAck { empty: true, ..ack(10) }), Outcome::Ended);
        t.sent(10, false);
        assert_eq!(t.on_ack(&ack(10)), Outcome::Ended);
        assert!(!t.is_out());
    }
}
