//! Counting congestion marks (RFC 9768).

use super::*;
use tcpscape_base::Ecn;

/// A listener of this kind that got a SYN with these flags; its answer's code and ECN field.
fn open(feedback: Feedback, asks: u8, syn_ecn: Ecn) -> (Script, u8, Ecn) {
    let mut s = Script { r: Receiver::new(&ReceiverConfig { feedback, ..config(Kernel::V6_1, 0) }), now: 0, out: Vec::new() };
    let mut syn = seg(0, 0, 1_000, Flags::SYN.with(Flags::of_ace(asks)));
    syn.ecn = syn_ecn;
    s.give(syn);
    let answer = s.out[0].1;
    s.at(50);
    s.give(seg(1, 0, 1_050, Flags::ACK.with(Flags::of_ace(3))));
    s.out.clear();
    (s, answer.flags.ace(), answer.ecn)
}

impl Script {
    fn packet(&mut self, n: u64, ecn: Ecn) {
        let mut x = seg(at(n), 1448, 1_000 + self.now as u32, Flags::ACK.with(Flags::of_ace(5)));
        x.ecn = ecn;
        self.give(x);
    }
    /// ACK numbers (in segments), ACE fields and marked bytes of the ACKs.
    fn counts(&mut self) -> Vec<(u64, u8, u32)> {
        self.out.drain(..).map(|(_, s)| ((s.ack - 1) / 1448, s.flags.ace(), s.ceb)).collect()
    }
}

/// An accurate listener says how the SYN came; it answers a classic request in the classic way. A classic listener takes a SYN that
/// asks for more as a classic request, marked as capable or not; DCTCP's too.
#[test]
fn answers_to_requests() {
    use Feedback::{Accurate, Classic, Dctcp};
    for (ecn, code) in [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)] {
        let (_, said, with) = open(Accurate, 0b111, ecn);
        assert_eq!((said, with), (code, Ecn::Ect1));
    }
    assert_eq!(open(Accurate, 0b011, Ecn::NotEct).1, 0b001);
    assert_eq!(open(Accurate, 0b000, Ecn::NotEct).1, 0b000);
    assert_eq!(open(Classic, 0b111, Ecn::Ect1).1, 0b001);
    assert_eq!(open(Dctcp, 0b111, Ecn::Ect1).1, 0b001);
}

/// Once quick ACKs are over: a mark after none is acknowledged at once and so is every second one; the way back is not.
#[test]
fn a_new_mark_and_every_second_one_are_acknowledged_at_once() {
    let (mut s, ..) = open(Feedback::Accurate, 0b111, Ecn::Ect1);
    for n in 0..60 {
        s.packet(n, Ecn::Ect1);
        s.read(u64::MAX);
    }
    s.at(s.now + 100);
    assert!(s.counts().iter().all(|&(_, ace, bytes)| (ace, bytes) == (5, 1)));
    s.packet(60, Ecn::Ce);
    assert_eq!(s.counts(), [(61, 6, 1 + 1448)]);
    s.packet(61, Ecn::Ce);
    assert_eq!(s.counts(), []);
    s.packet(62, Ecn::Ce);
    assert_eq!(s.counts(), [(63, 0, 1 + 3 * 1448)]);
    s.packet(63, Ecn::Ect1);
    assert_eq!(s.counts(), []);
    s.packet(64, Ecn::Ce);
    assert_eq!(s.counts(), [(65, 1, 1 + 4 * 1448)]);
    assert_eq!(s.r.stats().ce_segments, 4);
}

/// Three SACK blocks leave no room for the option; the three bits always travel. Every ACK is ECT(1).
#[test]
fn the_option_gives_way_to_sack_blocks() {
    let (mut s, ..) = open(Feedback::Accurate, 0b111, Ecn::Ect1);
    for n in [2, 4, 6] {
        s.packet(n, Ecn::Ce);
    }
    let seen: Vec<(u8, bool, u8, Ecn)> = s.out.drain(..).map(|(_, s)| (s.nsack, s.ceb > 0, s.flags.ace(), s.ecn)).collect();
    assert_eq!(seen, [(1, true, 6, Ecn::Ect1), (2, true, 7, Ecn::Ect1), (3, false, 0, Ecn::Ect1)]);
}
