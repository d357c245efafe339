//! Accurate ECN feedback (RFC 9768).

use super::*;
use crate::cc::EcnMode;
use tcpscape_base::Ecn;

/// A prague connection whose peer answered the SYN with this code; its SYN and the ACK of the SYN-ACK.
fn answered(code: u8, syn_ack_ecn: Ecn) -> (Script, Segment, Segment) {
    let mut s = Sender::new(SenderConfig { congestion: cc::make("prague", 0).unwrap(), ..config() });
    let t = Time(SYN_AT * 1_000_000);
    s.connect(t, t);
    let syn = s.poll_transmit().unwrap().segment;
    let mut x = Script { s, base: SYN_AT + 100, rtt_ms: 100 };
    let flags = Flags::SYN.with(Flags::ACK).with(Flags::of_ace(code));
    let syn_ack = Segment { flags, ecn: syn_ack_ecn, ack: 1, wnd: 2_000_000, tsval: x.ts(0.0), tsecr: x.ts(-100.0), ..Segment::default() };
    x.s.on_segment(x.time(0.0), &syn_ack);
    let third = x.s.poll_transmit().unwrap().segment;
    (x, syn, third)
}

impl Script {
    /// An ACK of everything below segment `n` with this ACE field.
    fn count(&mut self, ms: f64, n: u64, ace: u8) {
        let a = self.plain(ms, n);
        self.give(ms, Segment { flags: a.flags.with(Flags::of_ace(ace)), ..a });
    }
    fn data(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.s.poll_transmit()).map(|t| t.segment).filter(|s| s.len > 0).collect()
    }
}

/// Every packet is ECT(1), the SYN asks with all three flags; the ACK of the SYN-ACK says how that came, then the count stands at 5, or
/// at 6 if the SYN-ACK was marked.
#[test]
fn the_handshake() {
    for (arrived, third_says, count) in [(Ecn::NotEct, 2, 5), (Ecn::Ect1, 3, 5), (Ecn::Ect0, 4, 5), (Ecn::Ce, 6, 6)] {
        let (mut x, syn, third) = answered(0b011, arrived);
        assert_eq!((syn.flags.ace(), syn.ecn), (7, Ecn::Ect1));
        assert_eq!((third.flags.ace(), third.ecn), (third_says, Ecn::Ect1));
        x.write_segs(0.0, 2);
        assert!(x.data().iter().all(|s| s.flags.ace() == count && s.ecn == Ecn::Ect1));
        assert!(x.s.uses_ecn() && x.is_paced() && x.owns_window());
    }
}

/// A peer that knows only RFC 3168 gets ECT(0) data from a Reno; one that refuses gets no ECN at all.
#[test]
fn falls_back_to_classic_ecn_and_to_none() {
    for (code, agreed, ecn) in [(0b001, true, Ecn::Ect0), (0b000, false, Ecn::NotEct), (0b111, false, Ecn::NotEct)] {
        let (mut x, _, third) = answered(code, Ecn::NotEct);
        assert_eq!((third.flags, third.ecn), (Flags::ACK, Ecn::NotEct));
        x.set_cwnd(20);
        x.write_segs(0.0, 20);
        assert!(x.data().iter().all(|s| s.ecn == ecn));
        assert!(x.s.uses_ecn() == agreed && !x.is_paced() && !x.owns_window());
        let a = x.plain(100.0, 2);
        x.give(100.0, Segment { flags: a.flags.with(Flags::ECE), ..a });
        assert_eq!(x.state() == CaState::Cwr, agreed);
        if agreed {
            assert_eq!(x.ssthresh(), 10);
        }
    }
}

/// 5 → 6 → 6 → 0: one mark, none, two. CWR is never said, and what a mark cost is not undone.
#[test]
fn marks_are_counted_not_echoed() {
    let (mut x, ..) = answered(0b011, Ecn::Ect1);
    x.write_segs(0.0, 40);
    x.run(99.0);
    x.data();
    x.count(100.0, 2, 6);
    assert_eq!((x.s.info().delivered_ce, x.state()), (1, CaState::Cwr));
    x.count(101.0, 4, 6);
    assert_eq!(x.s.info().delivered_ce, 1);
    x.count(102.0, 6, 0);
    assert_eq!((x.s.info().delivered_ce, x.stats().ecn_reductions), (3, 1));
    x.run(200.0);
    assert!(x.data().iter().all(|s| s.flags.ace() == 5));
}

/// A count that comes with an ACK of nothing new is taken when the next ACK delivers something.
#[test]
fn an_ack_of_nothing_is_not_read() {
    let (mut x, ..) = answered(0b011, Ecn::Ect1);
    x.write_segs(0.0, 10);
    x.run(99.0);
    x.count(100.0, 2, 5);
    x.count(101.0, 2, 7);
    assert_eq!(x.s.info().delivered_ce, 0);
    x.count(102.0, 4, 7);
    assert_eq!(x.s.info().delivered_ce, 2);
}

#[test]
fn a_mark_on_the_syn_is_known_to_the_control() {
    let (x, ..) = answered(0b110, Ecn::Ect1);
    assert_eq!((x.s.info().delivered_ce, x.ecn_mode()), (1, EcnMode::Accurate));
}
