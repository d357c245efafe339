//! Explicit congestion notification (RFC 3168).

use super::*;
use tcpscape_base::Ecn;

const ECE: Flags = Flags::ECE;

/// A connection that asked for ECN, whose peer answered with these flags beside SYN and ACK.
fn with_ecn(congestion: &str, answer: Flags) -> Script {
    let mut s = Sender::new(SenderConfig { ecn: true, congestion: cc::make(congestion, 0).unwrap(), ..config() });
    let t = Time(SYN_AT * 1_000_000);
    s.connect(t, t);
    let syn = s.poll_transmit().unwrap().segment;
    assert!(syn.flags.has(Flags::SYN.with(Flags::ECE).with(Flags::CWR)));
    assert_eq!(syn.ecn, if congestion == "dctcp" { Ecn::Ect0 } else { Ecn::NotEct });
    let mut x = Script { s, base: SYN_AT + 100, rtt_ms: 100 };
    let flags = Flags::SYN.with(Flags::ACK).with(answer);
    let syn_ack = Segment { flags, ack: 1, wnd: 2_000_000, tsval: x.ts(0.0), tsecr: x.ts(-100.0), ..Segment::default() };
    x.s.on_segment(x.time(0.0), &syn_ack);
    x.s.poll_transmit().unwrap();
    x
}

impl Script {
    fn echo(&mut self, ms: f64, n: u64) {
        let a = self.plain(ms, n);
        self.give(ms, Segment { flags: a.flags.with(ECE), ..a });
    }
    fn segments(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.s.poll_transmit()).map(|t| t.segment).filter(|s| s.len > 0).collect()
    }
}

#[test]
fn agreed_only_if_the_syn_ack_has_ece_alone() {
    for (answer, agreed) in [(ECE, true), (Flags::default(), false), (ECE.with(Flags::CWR), false), (Flags::CWR, false)] {
        let mut x = with_ecn("reno", answer);
        x.write_segs(0.0, 2);
        let data = x.segments();
        assert_eq!((x.s.uses_ecn(), data[0].ecn), (agreed, if agreed { Ecn::Ect0 } else { Ecn::NotEct }), "{answer:?}");
        assert!(data.iter().all(|s| s.flags.0 & (Flags::ECE.0 | Flags::CWR.0) == 0));
    }
}

#[test]
fn a_repeated_syn_does_not_ask() {
    let mut s = Sender::new(SenderConfig { ecn: true, ..config() });
    s.connect(Time::ZERO, Time::ZERO);
    s.poll_transmit().unwrap();
    s.on_timer(s.next_event().unwrap());
    assert_eq!(s.poll_transmit().unwrap().segment.flags, Flags::SYN);
}

/// Echoes of one round trip reduce once, by half; the next new data say CWR, once. Nothing is sent again, and nothing is undone.
#[test]
fn an_echo_halves_the_window_once_a_round_trip() {
    let mut x = with_ecn("reno", ECE);
    x.set_cwnd(20);
    x.write_segs(0.0, 60);
    assert_eq!(x.segments().iter().map(|s| u64::from(s.len.div_ceil(MSS))).sum::<u64>(), 20);
    x.echo(100.0, 2);
    assert_eq!((x.state(), x.ssthresh(), x.s.info().delivered_ce), (CaState::Cwr, 10, 2));
    for i in 2..10 {
        x.echo(100.0 + i as f64, 2 * i);
    }
    let new = x.segments();
    assert_eq!(new.iter().filter(|s| s.flags.has(Flags::CWR)).count(), 1);
    assert!(new[0].flags.has(Flags::CWR) && new.iter().all(|s| s.ecn == Ecn::Ect0));
    x.ack(120.0, 20);
    assert_eq!((x.stats().ecn_reductions, x.stats().retransmits, x.stats().undos), (1, 0, 0));
    assert!(x.cwnd() <= 10, "{}", x.cwnd());
    // The state ends only when something beyond the reduction was acknowledged.
    assert_eq!(x.state(), CaState::Cwr);
    x.ack(121.0, 21);
    assert_eq!((x.state(), x.cwnd()), (CaState::Open, 10));
}

#[test]
fn a_retransmission_cannot_be_marked() {
    let mut x = with_ecn("reno", ECE);
    x.set_cwnd(10);
    x.write_segs(0.0, 10);
    x.segments();
    x.sack(100.0, 0, &[(1, 5)]);
    x.run(160.0);
    let again = x.segments();
    assert_eq!((again[0].seq, again[0].ecn), (1, Ecn::NotEct));
}

#[test]
fn without_agreement_an_echo_means_nothing() {
    let mut x = with_ecn("reno", Flags::default());
    x.write_segs(0.0, 10);
    x.echo(100.0, 2);
    assert_eq!((x.state(), x.s.info().delivered_ce), (CaState::Open, 0));
}

/// An echo and a loss together: the window is not restored when the loss proves spurious.
#[test]
fn what_ecn_asks_for_is_not_undone() {
    let mut x = with_ecn("reno", ECE);
    x.set_cwnd(20);
    x.write_segs(0.0, 20);
    x.segments();
    let mut a = x.plain(100.0, 0);
    a.push_sack((seg(1), seg(5)));
    a.flags = a.flags.with(ECE);
    x.give(100.0, a);
    x.run(160.0);
    assert_eq!((x.state(), x.ssthresh()), (CaState::Recovery, 10));
    // The original arrives after all: echoed timestamp older than the retransmission.
    x.ack(161.0, 5);
    assert!(x.ssthresh() == 10 && x.cwnd() < 20);
}

#[test]
fn dctcp_marks_every_packet_as_capable_and_shrinks_by_half_of_alpha() {
    let mut x = with_ecn("dctcp", ECE);
    x.set_cwnd(20);
    x.write_segs(0.0, 60);
    x.segments();
    assert_eq!(x.pure_ack(0.0).ecn, Ecn::Ect0);
    // α starts at 1: the first round's echo halves.
    x.echo(100.0, 2);
    assert_eq!((x.state(), x.ssthresh()), (CaState::Cwr, 10));
    // Without the peer's consent it is Reno and marks nothing.
    let mut y = with_ecn("dctcp", Flags::default());
    assert_eq!(y.pure_ack(0.0).ecn, Ecn::NotEct);
}

/// After a timeout that cannot be undone, as the window had been reduced by an echo before, a SACK tells nothing of reordering; after one
/// that can, it does.
#[test]
fn sacks_after_a_timeout_that_cannot_be_undone_are_no_reordering() {
    for (echoed, events) in [(true, 0), (false, 1)] {
        let mut x = with_ecn("reno", ECE);
        x.write_segs(0.0, 10);
        if echoed {
            x.echo(100.0, 2);
        } else {
            x.ack(100.0, 2);
        }
        assert_eq!(x.state(), if echoed { CaState::Cwr } else { CaState::Open });
        let mut t = 0.0;
        while x.stats().rtos == 0 {
            t = x.timer().unwrap().1;
            x.run(t);
        }
        assert_eq!(x.undo_from(), Some(seg(2)).filter(|_| !echoed));
        x.segments();
        // The copy of segment 2 is acknowledged. There are no new data for F-RTO: two segments, 3 and 4, are sent again.
        let give = |x: &mut Script, ms: f64, n: u64, blocks: &[(u64, u64)]| {
            let mut a = Segment { tsecr: x.ts(t), ..x.plain(ms, n) };
            blocks.iter().for_each(|b| a.push_sack((seg(b.0), seg(b.1))));
            x.give(ms, a);
        };
        give(&mut x, t + 100.0, 3, &[]);
        assert_eq!(x.sent_segs(), [3, 4]);
        give(&mut x, t + 101.0, 3, &[(7, 8)]);
        assert_eq!((x.state(), x.s.event_counts().reord_seen), (CaState::Loss, 0));
        // Segment 6, which was never sent again, is SACKed after 7.
        give(&mut x, t + 102.0, 3, &[(6, 8)]);
        assert_eq!((x.state(), x.s.event_counts().reord_seen), (CaState::Loss, events), "{echoed}");
    }
}
