//! ECN at the receiver: agreeing to it, and telling of marks: until the sender says that it has reacted, packet by packet, or in counts.
//!
//! Source: RFC 3168 §6.1.1 and §6.1.3, RFC 8257 §3.2 (DCTCP), RFC 9768; which ACKs go at once is observed
//! (docs/models/tcp/ecn.md). Does not model: a listener with `net.ipv4.tcp_ecn = 0`.
//!
//! Accurate ECN at the receiver: counting marked packets and bytes, and saying so on every ACK.
//!
//! **What it is.** Once the handshake has agreed, three bits of every ACK are the count of marked packets, and an option counts their
//! bytes where it has room. A mark after packets without one is acknowledged at once, and so is every second mark.
//! **Source.** RFC 9768 §3.1.1 and §3.2.2 (handshake, ACE), §3.2.2.5.1 (when ACKs are sent), §3.2.3 (option). Every packet is ECT(1)
//! (RFC 9331, draft-ietf-tcpm-generalized-ecn).
//! **How it differs.** The option is the one with ECT(1) and CE counts, on every ACK with at most two SACK blocks; the RFC also allows
//! it less often.
//! **What it does not model.** The counts of unmarked bytes; ACKs of marked pure ACKs; several ACKs for one merged segment.

use crate::cc::CongestionController;
use tcpscape_base::{Ecn, Flags, Segment};

/// How a listening socket tells of marks, by its congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// ECE until CWR comes (RFC 3168).
    #[default]
    Classic,
    /// ECE as the acknowledged packets were marked (RFC 8257); agrees to any request.
    Dctcp,
    /// Counts (RFC 9768) if the sender asks for them, otherwise as RFC 3168 has it; agrees to any request.
    Accurate,
}

impl Feedback {
    /// What a listening socket with this congestion control does.
    pub fn of(cc: &dyn CongestionController) -> Feedback {
        match (cc.needs_ecn(), cc.wants_accurate_ecn()) {
            (false, _) => Feedback::Classic,
            (true, false) => Feedback::Dctcp,
            (true, true) => Feedback::Accurate,
        }
    }
}

/// Flags of a segment that the receiver sends, and its own ECN field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marking {
    /// ECE, or the three flags of accurate feedback.
    pub flags: Flags,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// What a data segment's ECN field asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkReport {
    /// It was marked.
    pub marked: bool,
    /// The next ACKs should not be late.
    pub hurry: bool,
    /// The ACK of this segment should go at once …
    pub at_once: bool,
    /// … after one for what came before it.
    pub before: Option<EarlyAck>,
}

/// An ACK that goes before the segment at hand is acknowledged (RFC 8257 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EarlyAck {
    /// What it acknowledges.
    pub number: u64,
    /// Whether those packets were marked.
    pub marking: Marking,
}

/// RFC 3168's echo.
#[derive(Clone, Copy, Debug, Default)]
struct Echo {
    /// ACKs carry ECE.
    on: bool,
    /// A packet came that could have been marked.
    capable_seen: bool,
}

/// RFC 8257's state: DCTCP.CE, and where the packets of another state end.
#[derive(Clone, Copy, Debug)]
struct PacketEcho {
    /// The last packet was marked.
    ce: bool,
    /// The next byte expected when the last packet came.
    before: u64,
}

/// What the two ends agreed to.
#[derive(Clone, Copy, Debug)]
enum Agreement {
    /// No ECN.
    None,
    Classic,
    Dctcp(PacketEcho),
    Accurate(MarkCounts),
}

/// Where a connection stands with ECN.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnFeedback {
    listener: Feedback,
    agreement: Agreement,
    echo: Echo,
    /// How the SYN arrived.
    syn: Ecn,
}

fn dctcp_marking(ce: bool) -> Marking {
    Marking { flags: if ce { Flags::ECE } else { Flags::default() }, ecn: Ecn::Ect0 }
}

impl EcnFeedback {
    /// Before any SYN.
    pub fn new(listener: Feedback) -> EcnFeedback {
        EcnFeedback { listener, agreement: Agreement::None, echo: Echo::default(), syn: Ecn::NotEct }
    }

    /// A SYN asks for ECN or not (RFC 3168 §6.1.1). One that is itself marked as capable is no request, unless the listener needs ECN or
    /// the SYN asks for accurate feedback, of which an older listener sees only an unknown flag (docs/models/tcp/ecn.md).
    pub fn on_syn(&mut self, s: &Segment) {
        let asked = s.flags.has(Flags::ECE) && s.flags.has(Flags::CWR);
        let is_request_for_ecn = s.ecn == Ecn::NotEct || self.listener != Feedback::Classic || s.flags.has(Flags::AE);
        self.syn = s.ecn;
        self.agreement = match self.listener {
            _ if !(asked && is_request_for_ecn) => Agreement::None,
            Feedback::Accurate if is_request(s) => Agreement::Accurate(MarkCounts::new()),
            Feedback::Dctcp => Agreement::Dctcp(PacketEcho { ce: false, before: 1 }),
            Feedback::Classic | Feedback::Accurate => Agreement::Classic,
        };
    }
    /// The answer in the SYN-ACK.
    pub fn syn_ack(&self) -> Marking {
        match self.agreement {
            Agreement::None => Marking::default(),
            Agreement::Classic | Agreement::Dctcp(_) => Marking { flags: Flags::ECE, ecn: Ecn::NotEct },
            Agreement::Accurate(_) => Marking { flags: Flags::of_ace(self.syn.handshake_code()), ecn: Ecn::Ect1 },
        }
    }

    /// How an ACK is marked.
    #[inline]
    pub fn ack(&self) -> Marking {
        match &self.agreement {
            Agreement::None => Marking::default(),
            Agreement::Classic => Marking { ecn: Ecn::NotEct, ..dctcp_marking(self.echo.on) },
            Agreement::Dctcp(_) => dctcp_marking(self.echo.on),
            Agreement::Accurate(counts) => Marking { flags: counts.ace(), ecn: Ecn::Ect1 },
        }
    }
    /// An ACK leaves: adds the option of accurate feedback.
    #[inline]
    pub fn write(&mut self, ack: &mut Segment) {
        if let Agreement::Accurate(counts) = &mut self.agreement {
            counts.write(ack);
        }
    }

    /// An acceptable segment came: counts its mark where accurate feedback was agreed to (packets of `mss` bytes); otherwise CWR says that
    /// the sender has reduced its window, which ends the echo, and the sender may wait for the ACK (RFC 3168 §6.1.3).
    #[inline]
    pub fn on_segment(&mut self, s: &Segment, mss: u32) -> Counted {
        if let Agreement::Accurate(counts) = &mut self.agreement {
            return counts.count(s, mss);
        }
        let is_reduced = s.flags.has(Flags::CWR);
        self.echo.on &= !is_reduced;
        Counted { packets: 0, at_once: is_reduced && s.end() != s.seq }
    }
    /// The segment that ends the handshake: only accurate feedback counts it.
    pub fn on_first_segment(&mut self, s: &Segment, mss: u32) -> Counted {
        match self.agreement {
            Agreement::Accurate(_) => self.on_segment(s, mss),
            _ => Counted::default(),
        }
    }

    /// Whether marks are echoed in ECE: ECN was agreed to, and not accurate feedback.
    #[inline]
    pub fn echoes(&self) -> bool {
        matches!(self.agreement, Agreement::Classic | Agreement::Dctcp(_))
    }
    /// Data came; `next` is the next byte expected, and `is_delayed` whether an ACK waits.
    #[inline]
    pub fn on_data(&mut self, s: &Segment, next: u64, is_delayed: bool) -> MarkReport {
        if !self.echoes() {
            return MarkReport::default();
        }
        if s.ecn == Ecn::NotEct {
            // After packets that could be marked this is probably a retransmission.
            return MarkReport { hurry: self.echo.capable_seen, ..MarkReport::default() };
        }
        self.echo.capable_seen = true;
        let marked = s.ecn == Ecn::Ce;
        if let Agreement::Dctcp(state) = &mut self.agreement {
            let report = state.on_packet(marked, next, is_delayed);
            self.echo.on = marked;
            return report;
        }
        let hurry = marked && !self.echo.on;
        self.echo.on |= marked;
        MarkReport { marked, hurry, ..MarkReport::default() }
    }
}

impl PacketEcho {
    // RFC 8257 §3.2: an ACK stands for packets that were all marked or all unmarked. Where that changes, an ACK that was delayed goes first.
    fn on_packet(&mut self, ce: bool, next: u64, is_delayed: bool) -> MarkReport {
        let changed = self.ce != ce;
        let before = EarlyAck { number: self.before, marking: dctcp_marking(self.ce) };
        *self = PacketEcho { ce, before: next };
        MarkReport { marked: ce, hurry: false, at_once: changed, before: (changed && is_delayed).then_some(before) }
    }
}

/// First value of the count of marked packets (RFC 9768 §3.2.1).
const CEP_INIT: u32 = 5;
/// Marks after which an ACK is due (`n` of RFC 9768 §3.2.2.5.1).
const MARKS_PER_ACK: u32 = 2;
/// SACK blocks beside which the option has room: 40 bytes − 12 of timestamps − 8 of its own.
const MOST_SACKS: u8 = 2;
/// Width of the option's counter.
const CEB_MASK: u32 = 0xff_ffff;

/// Counts of one connection that has agreed to accurate feedback.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkCounts {
    /// Marked packets (`r.cep`).
    packets: u32,
    /// Their payload bytes (`r.ceb`).
    bytes: u32,
    /// Marks since the last ACK.
    since_ack: u32,
    /// The last packet was marked.
    last_marked: bool,
}

/// What a segment added to the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Marked packets.
    pub packets: u32,
    /// An ACK should go at once.
    pub at_once: bool,
}

/// Whether a SYN asks for accurate feedback (RFC 9768 §3.1.1).
pub(super) fn is_request(syn: &Segment) -> bool {
    syn.flags.ace() == 0b111
}

impl MarkCounts {
    /// Nothing was counted. A mark on the SYN is told in the SYN-ACK, and not counted (RFC 9768 §3.2.2.2).
    pub fn new() -> MarkCounts {
        MarkCounts { packets: CEP_INIT, bytes: 0, since_ack: 0, last_marked: false }
    }
    /// The ACE field.
    #[inline]
    pub fn ace(&self) -> Flags {
        Flags::of_ace(self.packets as u8)
    }
    /// An acceptable segment; a merged one stands for the packets of `mss` bytes that it was made of.
    pub fn count(&mut self, s: &Segment, mss: u32) -> Counted {
        let is_marked = s.ecn == Ecn::Ce;
        let is_new = is_marked && !self.last_marked;
        self.last_marked = is_marked;
        if !is_marked {
            return Counted::default();
        }
        let packets = s.len.div_ceil(mss).max(1);
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(s.len);
        self.since_ack += packets;
        Counted { packets, at_once: s.len > 0 && (is_new || self.since_ack >= MARKS_PER_ACK) }
    }
    /// An ACK leaves: adds the option if there is room.
    pub fn write(&mut self, ack: &mut Segment) {
        self.since_ack = 0;
        if ack.nsack <= MOST_SACKS {
            ack.ceb = 1 + (self.bytes & CEB_MASK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(listener: Feedback, asks: u8) -> EcnFeedback {
        let mut e = EcnFeedback::new(listener);
        e.on_syn(&Segment { flags: Flags::SYN.with(Flags::of_ace(asks)), ..Segment::default() });
        e
    }
    fn data(ecn: Ecn, flags: Flags) -> Segment {
        Segment { seq: 1, len: 1_448, ecn, flags, ..Segment::default() }
    }

    /// RFC 3168 §6.1.3: "ECN-Echo in ACKs until it receives a CWR packet", which asks for an ACK.
    #[test]
    fn the_echo_stays_until_the_sender_has_reduced() {
        let mut e = open(Feedback::Classic, 0b011);
        assert_eq!(e.on_data(&data(Ecn::Ce, Flags::ACK), 1, false), MarkReport { marked: true, hurry: true, ..MarkReport::default() });
        assert!(!e.on_data(&data(Ecn::Ce, Flags::ACK), 1, false).hurry, "the echo is on already");
        e.on_data(&data(Ecn::Ect0, Flags::ACK), 1, false);
        assert!(e.ack().flags.has(Flags::ECE));
        assert!(e.on_segment(&data(Ecn::Ect0, Flags::CWR), 1_448).at_once);
        assert!(!e.ack().flags.has(Flags::ECE));
    }

    /// RFC 8257 §3.2, figure 1: CE changes from 0 to 1 and back.
    #[test]
    fn dctcp_sends_an_ack_of_the_other_state_first() {
        let mut e = open(Feedback::Dctcp, 0b011);
        assert_eq!(e.on_data(&data(Ecn::Ect0, Flags::ACK), 1_449, false), MarkReport::default());
        let before = |number, flags| Some(EarlyAck { number, marking: Marking { flags, ecn: Ecn::Ect0 } });
        let report = e.on_data(&data(Ecn::Ce, Flags::ACK), 2_897, true);
        assert_eq!((report.before, report.at_once, e.ack().flags), (before(1_449, Flags::default()), true, Flags::ECE));
        assert_eq!(e.on_data(&data(Ecn::Ce, Flags::ACK), 4_345, true), MarkReport { marked: true, ..MarkReport::default() });
        let report = e.on_data(&data(Ecn::Ect0, Flags::ACK), 5_793, true);
        assert_eq!((report.before, report.at_once, e.ack().flags), (before(4_345, Flags::ECE), true, Flags::default()));
        assert_eq!(e.on_data(&data(Ecn::Ce, Flags::ACK), 7_241, false).before, None, "no ACK was delayed");
    }

    #[test]
    fn nothing_is_told_without_agreement() {
        let mut e = open(Feedback::Classic, 0);
        assert_eq!(e.on_data(&data(Ecn::Ce, Flags::ACK), 1, false), MarkReport::default());
        assert_eq!((e.ack(), e.syn_ack()), (Marking::default(), Marking::default()));
    }

    #[test]
    fn a_retransmission_is_no_reason_to_wait() {
        let mut e = open(Feedback::Classic, 0b011);
        assert!(!e.on_data(&data(Ecn::NotEct, Flags::ACK), 1, false).hurry);
        e.on_data(&data(Ecn::Ect0, Flags::ACK), 1, false);
        assert!(e.on_data(&data(Ecn::NotEct, Flags::ACK), 1, false).hurry);
    }

    fn packet(len: u32, ecn: Ecn) -> Segment {
        Segment { len, ecn, ..Segment::default() }
    }

    /// RFC 9768 §3.2.2.5.1: at once on the first mark after none, then on every second one.
    #[test]
    fn new_marks_and_every_second_one_are_told_at_once() {
        let mut c = MarkCounts::new();
        let mut at_once = |ecn| c.count(&packet(1_448, ecn), 1_448).at_once;
        let sequence = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ce];
        assert_eq!(sequence.map(&mut at_once), [false, true, true, false, true], "no ACK was sent in between");
    }

    /// RFC 9768 §3.2.2: 5 at first, modulo 8; a merged segment counts its packets.
    #[test]
    fn packets_and_bytes() {
        let mut c = MarkCounts::new();
        assert_eq!(c.count(&packet(3 * 1_448 + 1, Ecn::Ce), 1_448).packets, 4);
        assert_eq!(c.count(&packet(0, Ecn::Ce), 1_448), Counted { packets: 1, at_once: false });
        let mut ack = Segment::default();
        c.write(&mut ack);
        assert_eq!((c.ace().ace(), ack.ceb), (2, 1 + 4_345));
    }
}
