use super::*;
use crate::discipline::spec;
use tcpscape_base::Ecn;

pub(super) const TYPICAL: &str = "red limit 257216 min 21434 max 64304 avpkt 1500 burst 24 bandwidth 6.85mbit probability 0.1";

pub(super) fn full(n: u32) -> Packet<u32> {
    Packet { size: 1514, segs: 1, body: n, ecn: Ecn::Ect0, ..Default::default() }
}

#[test]
fn what_tc_computes() {
    // Sent by tc 6.1 for these words: Wlog 4, Plog 19, Scell_log 15 and the first cells.
    let c = Computed::of(&spec::<RedSpec>(TYPICAL)).unwrap();
    assert_eq!((c.wlog, c.plog, c.cell_log), (4, 0x13, 15));
    assert_eq!(c.damping[..16], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(c.max_p, 429_496_729);
}

#[test]
fn floyds_defaults() {
    // max = limit/4, min = max/3, burst = (2·min + max) / (3·avpkt), 0.02, 10 Mbit/s
    let s: RedSpec = spec("red limit 400000 avpkt 1000");
    assert_eq!((s.max, s.min, s.burst, s.probability, s.bandwidth), (100_000, 33_333, 55, 0.02, Rate(10_000_000)));
    assert_eq!(spec::<RedSpec>("red limit 400000 min 30000 avpkt 1000 burst 55").max, 90_000);
}

#[test]
fn above_max_all_are_struck_and_ecn_saves_them() {
    for (words, drops, marks) in [("", 1, 0), (" ecn", 0, 1), (" ecn harddrop", 1, 0)] {
        let mut q: Red<u32> = Red::new(&spec(&format!("{TYPICAL}{words}")), 1, "t");
        q.law = q.law.at(80_000);
        q.enqueue(Time(0), full(0), &mut Freed::default());
        assert_eq!((q.meter.s.drops.aqm, q.meter.s.marked), (drops, marks), "{words}");
    }
}

#[test]
fn only_a_look_in_vain_makes_it_idle() {
    let mut q: Red<u32> = Red::new(&spec(TYPICAL), 1, "t");
    let mut f = Freed::default();
    q.enqueue(Time(0), full(0), &mut f);
    assert!(q.law.idle_since().is_none() && q.dequeue(Time(1), &mut f).is_some());
    assert_eq!(q.next_event(), Time::ZERO, "whoever owns it looks once more");
    assert!(q.peek(Time(1), &mut f).is_none() && q.law.idle_since().is_none(), "tbf peeks");
    assert!(q.dequeue(Time(2), &mut f).is_none());
    assert_eq!((q.law.idle_since(), q.next_event()), (Some(Time(2)), Time::MAX));
}

#[test]
fn adaptive_raises_a_probability_that_is_too_low() {
    let mut q: Red<u32> = Red::new(&spec(&format!("{TYPICAL} adaptive")), 1, "t");
    q.law = q.law.at(60_000);
    q.catch_up(Time(1_020_000_000));
    // twice a hundredth, every 51 ticks
    assert_eq!(q.law.top(), 429_496_729 + 2 * 42_949_673);
}
