//! F-RTO: was a retransmission timeout spurious?
//!
//! Source: RFC 5682 §3.1 (SACK-enhanced). How it differs: an original that the first ACK delivers proves the timeout spurious already, and any SACK
//! or duplicate ACK after new data were sent says that it was not (docs/models/tcp/recovery.md). Not modelled: the basic algorithm of §2.1, for
//! connections without SACK.

/// Whether the timeout's outcome is still watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Frto {
    /// Not, or not any more: conventional recovery.
    Off,
    /// The first ACKs after the timeout decide.
    Watching,
}

/// What an ACK after a timeout shows.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sender) struct AfterTimeout {
    /// A segment from before the timeout was delivered that was never sent again.
    pub original: bool,
    /// It moved the left edge.
    pub advanced: bool,
    /// It SACKed something, or is a duplicate.
    pub sacked_or_duplicate: bool,
    /// New data were sent since the timeout.
    pub sent_new: bool,
    /// Everything sent before the timeout is acknowledged.
    pub recovered: bool,
}

/// What F-RTO concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sender) enum Conclusion {
    /// Nothing yet.
    Open,
    /// Step 3.b: the timeout was spurious.
    Spurious,
    /// Step 2.b: send new data and see what they bring.
    TryNew,
    /// Step 3.a: it was not; recover as usual.
    Genuine,
}

impl Frto {
    /// Judges an ACK.
    pub fn judge(self, ack: &AfterTimeout) -> Conclusion {
        match self {
            Frto::Off => Conclusion::Open,
            Frto::Watching if ack.original => Conclusion::Spurious,
            Frto::Watching if ack.sent_new && ack.sacked_or_duplicate => Conclusion::Genuine,
            Frto::Watching if !ack.sent_new && ack.advanced && !ack.recovered => Conclusion::TryNew,
            Frto::Watching => Conclusion::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §3.1 step by step: the first ACK moves the edge, new data leave; then an original arrives, or a SACK says otherwise.
    #[test]
    fn the_steps_of_the_rfc() {
        let advance = AfterTimeout { advanced: true, ..AfterTimeout::default() };
        assert_eq!(Frto::Watching.judge(&advance), Conclusion::TryNew);
        let original = AfterTimeout { original: true, sent_new: true, ..advance };
        assert_eq!(Frto::Watching.judge(&original), Conclusion::Spurious);
        assert_eq!(Frto::Watching.judge(&AfterTimeout { sent_new: false, ..original }), Conclusion::Spurious);
        let sack = AfterTimeout { sacked_or_duplicate: true, sent_new: true, ..AfterTimeout::default() };
        assert_eq!(Frto::Watching.judge(&sack), Conclusion::Genuine);
        assert_eq!(Frto::Off.judge(&original), Conclusion::Open);
        assert_eq!(Frto::Watching.judge(&AfterTimeout { recovered: true, ..advance }), Conclusion::Open);
    }
}
