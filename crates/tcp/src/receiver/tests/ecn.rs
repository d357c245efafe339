//! Echoing congestion marks (RFC 3168 §6.1.3, RFC 8257 §3.2).

use super::*;
use tcpscape_base::Ecn;

/// A connection whose SYN asked for ECN and carried `syn_ecn`; whether it was agreed.
fn open(dctcp: bool, syn_ecn: Ecn) -> (Script, bool) {
    let mut s = Script {
        r: Receiver::new(&ReceiverConfig { feedback: if dctcp { Feedback::Dctcp } else { Feedback::Classic }, ..config(Kernel::V6_1, 0) }),
        now: 0,
        out: Vec::new(),
    };
    let mut syn = seg(0, 0, 1_000, Flags::SYN.with(Flags::ECE).with(Flags::CWR));
    syn.ecn = syn_ecn;
    s.give(syn);
    let agreed = s.out[0].1.flags.has(Flags::ECE);
    s.at(50);
    s.give(seg(1, 0, 1_050, Flags::ACK));
    s.out.clear();
    (s, agreed)
}

impl Script {
    /// Full segment `n` with an ECN field and more flags.
    fn marked(&mut self, n: u64, ecn: Ecn, flags: Flags) {
        let mut x = seg(at(n), 1448, 1_000 + self.now as u32, Flags::ACK.with(flags));
        x.ecn = ecn;
        self.give(x);
    }
    /// ACK numbers (in segments) and whether each echoes.
    fn echoes(&mut self) -> Vec<(u64, bool)> {
        self.out.drain(..).map(|(_, s)| ((s.ack - 1) / 1448, s.flags.has(Flags::ECE))).collect()
    }
    /// Takes in so many unmarked segments that quick ACKs are over.
    fn settle(&mut self) -> u64 {
        for n in 0..60 {
            self.marked(n, Ecn::Ect0, Flags::default());
            self.read(u64::MAX);
        }
        self.at(self.now + 100);
        self.out.clear();
        60
    }
}

#[test]
fn who_agrees() {
    assert!(open(false, Ecn::NotEct).1);
    assert!(!open(false, Ecn::Ect0).1, "a SYN must not be marked as capable");
    assert!(open(true, Ecn::Ect0).1, "unless both use DCTCP");
    let mut plain = Receiver::new(&config(Kernel::V6_1, 0));
    plain.on_segment(Time::ZERO, &seg(0, 0, 1, Flags::SYN), 0);
    assert!(!plain.poll_transmit(Time::ZERO).unwrap().flags.has(Flags::ECE));
}

#[test]
fn echoes_until_the_sender_has_reduced() {
    let (mut s, _) = open(false, Ecn::NotEct);
    let n = s.settle();
    s.marked(n, Ecn::Ce, Flags::default());
    assert_eq!(s.echoes(), [(n + 1, true)], "at once");
    s.marked(n + 1, Ecn::Ect0, Flags::default());
    assert_eq!(s.echoes(), [(n + 2, true)]);
    s.marked(n + 2, Ecn::Ect0, Flags::CWR);
    assert_eq!(s.echoes(), [(n + 3, false)], "CWR is acknowledged at once");
    assert_eq!(s.r.stats().ce_segments, 1);
}

#[test]
fn a_mark_means_nothing_without_agreement() {
    let mut s = Script::new(Kernel::V6_1, 0);
    s.marked(0, Ecn::Ce, Flags::default());
    assert!(s.echoes().iter().all(|e| !e.1));
}

/// A delayed ACK of unmarked packets goes out without ECE before the marked one is acknowledged with it, and the other way round.
#[test]
fn dctcp_acknowledges_marked_and_unmarked_packets_apart() {
    let (mut s, _) = open(true, Ecn::Ect0);
    let n = s.settle();
    s.marked(n, Ecn::Ect0, Flags::default());
    assert_eq!(s.echoes(), [], "delayed");
    s.marked(n + 1, Ecn::Ce, Flags::default());
    assert_eq!(s.echoes(), [(n + 1, false), (n + 2, true)]);
    s.marked(n + 2, Ecn::Ce, Flags::default());
    assert_eq!(s.echoes(), [], "same as before: delayed");
    s.marked(n + 3, Ecn::Ect0, Flags::default());
    assert_eq!(s.echoes(), [(n + 3, true), (n + 4, false)]);
    assert_eq!(s.r.ecn.ack().ecn, Ecn::Ect0);
}
