use super::*;
use crate::discipline::{Freed, Qdisc};
use tcpscape_base::Ecn;

fn codel(ecn: bool) -> Queued<u32, Codel<u32>> {
    Queued::new(Codel::new(&CodelSpec { law: Law { ecn, ..Law::default() }, ..CodelSpec::default() }))
}
fn full(n: u32) -> Packet<u32> {
    Packet { size: 1514, segs: 1, body: n, ecn: Ecn::Ect0, ..Default::default() }
}
/// A standing queue of 20 packets served every ms: each has waited 20 ms. When the drops (or marks) come, ms.
fn strikes(mut q: Queued<u32, Codel<u32>>, until: u64) -> Vec<u64> {
    let (mut f, mut out) = (Freed::default(), vec![]);
    for i in 0..20 {
        q.enqueue(Time(0), full(i), &mut f);
    }
    for ms in 1..until {
        let now = Time(ms * 1_000_000);
        let before = q.account.meter.s.drops.aqm + q.account.meter.s.marked;
        q.dequeue(now, &mut f);
        let struck = q.account.meter.s.drops.aqm + q.account.meter.s.marked - before;
        (0..struck).for_each(|_| out.push(ms));
        while q.packets() < 20 {
            q.enqueue(now, full(0), &mut f);
        }
    }
    out
}

#[test]
fn drops_come_an_interval_apart_then_faster() {
    // From 5 ms on for 100 ms; then 100 ms later, then 50: from y = 1 Newton's first step towards 1/√2 ends at 1/2.
    let d = strikes(codel(false), 400);
    assert_eq!(d[..3], [105, 205, 255], "{d:?}");
    assert!(d.windows(2).all(|w| w[1] - w[0] <= 100));
}

#[test]
fn marks_come_when_drops_would_and_lose_nothing() {
    let q = codel(true);
    assert_eq!(strikes(q, 260)[..3], strikes(codel(false), 260)[..3]);
}

#[test]
fn a_peeked_packet_is_judged_once_and_still_counts() {
    let (mut q, mut f) = (codel(false), Freed::default());
    for i in 0..3 {
        q.enqueue(Time(0), full(i), &mut f);
    }
    assert_eq!(q.peek(Time(1), &mut f), Some(1514));
    assert_eq!((q.packets(), q.bytes(), q.policy.queue.len()), (3, 4542, 2));
    assert_eq!(q.dequeue(Time(900_000_000), &mut f).map(|p| p.body), Some(0));
    assert!(q.policy.control.finds_no_delay(), "what happens after the look is not CoDel's business");
}

#[test]
fn a_queue_of_one_frame_is_never_too_long() {
    let (mut q, mut f) = (codel(false), Freed::default());
    for s in 0..50u64 {
        q.enqueue(Time(s * 1_000_000_000), full(0), &mut f);
        q.enqueue(Time(s * 1_000_000_000), full(0), &mut f);
        assert!(q.dequeue(Time(s * 1_000_000_000 + 300_000_000), &mut f).is_some());
        assert!(q.dequeue(Time(s * 1_000_000_000 + 600_000_000), &mut f).is_some());
    }
    assert_eq!(q.account.meter.s.drops.total(), 0);
}
