//! What 6.12 does otherwise than 6.1 when it sends.

use super::*;

fn newer() -> Script {
    Script::with(SenderConfig { kernel: Kernel { hz: 1_000, ..Kernel::V6_12 }, ..config() }, 100)
}

#[test]
fn the_first_five_syn_timeouts_are_a_second_apart() {
    let linear = vec![1, 2, 3, 4, 5, 7, 11];
    for (kernel, times) in [(Kernel::V6_1, vec![1, 3, 7, 15]), (Kernel::V6_6, linear.clone()), (Kernel::V6_12, linear)] {
        let kernel = Kernel { hz: 1_000, ..kernel };
        let mut s = Sender::new(SenderConfig { kernel, ..config() });
        s.connect(Time::ZERO, Time::ZERO);
        s.poll_transmit().unwrap();
        for due in times {
            let t = s.next_event().unwrap();
            assert_eq!((t.0 as f64 / 1e9 * 0.97).round(), f64::from(due), "{t}");
            s.on_timer(t);
            assert!(s.poll_transmit().is_some());
        }
    }
}

#[test]
fn what_a_window_cut_off_is_filled_up_from_the_next_write() {
    for (mut x, bursts) in [(Script::new(), vec![(3, MSS)]), (newer(), vec![(3, 2 * MSS)])] {
        x.set_cwnd(3);
        // The first write is cut after three segments; what is left of it and the next one wait.
        x.write_segs(0.0, 4);
        x.append_buffer(2 * MSS);
        x.sent();
        x.set_cwnd(8);
        let memory = x.memory();
        x.release();
        let sent = x.sent();
        assert_eq!(sent[0], bursts[0]);
        assert!(x.memory() >= memory, "splitting what was joined costs its buffer again");
    }
}

#[test]
fn a_pure_ack_may_be_older() {
    for (kernel, rejected) in [(Kernel::V6_1, 1), (Kernel::V6_12, 0)] {
        let mut x = Script::with(SenderConfig { kernel: Kernel { hz: 1_000, ..kernel }, ..config() }, 100);
        x.write_segs(300.0, 4);
        x.sent();
        x.ack(400.0, 1);
        assert_eq!(x.s.info().rto_us, 300_000);
        let mut old = x.plain(400.0, 1);
        old.tsval = x.ts(400.0 - 340.0); // 300 ms · 1.024 < 340 < 300 ms · 1.2
        x.give(401.0, old);
        assert_eq!(x.stats().paws_rejected, rejected);
    }
}
