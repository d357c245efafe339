//! The sender's own queue has no room (docs/models/tcp/sender.md, "Refused by the own queue").

use super::*;

impl Script {
    /// What has left since the last call, in whole.
    fn transmits(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.s.poll_transmit()).filter(|t| t.burst != 0).collect()
    }
    fn refuse(&mut self, ms: f64, t: &Transmit) {
        self.s.on_refused(self.time(ms), t);
        self.s.check_invariants();
    }
}

#[test]
fn a_refused_segment_waits_and_the_window_shrinks() {
    let mut x = Script::full_window(20, 20);
    x.ack(100.0, 2);
    let sent = x.transmits();
    assert_eq!((sent.len(), x.s.info().unacked), (2, 18 + 4));
    x.refuse(100.0, &sent[1]);
    assert_eq!((x.state(), x.s.info().unacked, x.s.snd_nxt()), (CaState::Cwr, 20, seg(22)));
    assert_eq!((x.ssthresh(), x.stats().retransmits, x.undo_from()), (11, 0, None));
    assert_eq!(x.stats().data_segs_out, 24, "each attempt counts");
    // The next ACKs bring it out, as far as the reduction lets them.
    x.ack(101.0, 6);
    assert_eq!(x.sent_segs()[0], 22);
    assert!(x.stats().retransmits == 0 && x.cwnd() < 20);
}

#[test]
fn what_was_to_follow_is_taken_back_unseen() {
    let mut x = Script::new();
    x.set_cwnd(40);
    x.set_buffer_size(10_000_000);
    x.set_pacing_rate(1 << 20); // super-packets of two
    x.write(0.0, 10 * u64::from(MSS));
    let sent: Vec<Transmit> = std::iter::from_fn(|| x.s.poll_transmit()).collect();
    assert!(sent.len() > 1);
    // As if only the first had been asked for.
    let mut y = Script::new();
    y.set_cwnd(40);
    y.set_buffer_size(10_000_000);
    y.set_pacing_rate(1 << 20);
    y.write(0.0, 10 * u64::from(MSS));
    let first = y.s.poll_transmit().unwrap();
    y.refuse(0.0, &first);
    assert_eq!((y.s.info().unacked, y.s.snd_nxt(), y.s.has_output()), (0, 1, false));
    assert_eq!(y.stats().data_segs_out, u64::from(first.segs));
    // Nothing is in flight: the probe timer tries again.
    assert_eq!(y.timer().map(|t| t.0), Some(Purpose::WindowProbe));
    y.run(1_000.0);
    assert_eq!(y.sent_segs()[0], 0);
}

#[test]
fn a_refused_retransmission_is_still_to_come() {
    let mut x = Script::full_window(10, 0);
    x.sack(100.0, 1, &[(3, 10)]);
    x.run(200.0);
    let sent = x.transmits();
    assert_eq!(sent[0].segment.seq, seg(1));
    assert!(x.flight().copies_out() > 0);
    x.refuse(200.0, &sent[0]);
    assert_eq!(x.state(), CaState::Recovery, "a recovery goes on");
    x.sack(210.0, 1, &[(3, 10)]);
    x.run(400.0);
    assert!(x.sent_segs().contains(&1));
}

#[test]
fn a_refused_timeout_retransmission_comes_again_in_half_a_second_without_backoff() {
    let mut x = Script::full_window(1, 0);
    let mut due = Time::ZERO;
    while x.stats().rtos == 0 {
        x.transmits();
        due = x.s.next_event().unwrap();
        x.s.on_timer(due);
    }
    let (sent, rto_us) = (x.transmits(), x.s.info().rto_us);
    assert_eq!((sent.len(), x.backoff()), (1, 1));
    let ms = due.0 as f64 / 1e6 - x.base as f64;
    x.refuse(ms, &sent[0]);
    assert_eq!((x.backoff(), x.s.info().rto_us), (0, rto_us / 2));
    let (what, when) = x.timer().unwrap();
    assert!(what == Purpose::Retransmit && (500.0..580.0).contains(&(when - ms)), "{when}");
    x.run(ms + 600.0);
    assert_eq!(x.sent_segs(), [0]);
}
