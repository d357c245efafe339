use super::*;
use crate::discipline::{spec, try_spec, Freed, Qdisc};
use tcpscape_base::{Packet, Time};

const MS: u64 = 1_000_000;

fn cake(words: &str) -> Queued<u32, Cake<u32>> {
    Queued::new(Cake::new(&spec(words), 1, "t"))
}
fn packet(flow: u32, body: u32) -> Packet<u32> {
    Packet { flow, size: 1514, segs: 1, body, ..Default::default() }
}
fn put(q: &mut Queued<u32, Cake<u32>>, at: u64, flow: u32, n: u32) {
    for i in 0..n {
        q.enqueue(Time(at), packet(flow, i), &mut Freed::default());
    }
}
/// Departures (time, flow) when every wake-up from `now` on is obeyed.
fn drain(q: &mut Queued<u32, Cake<u32>>, mut now: u64) -> Vec<(u64, u32)> {
    let mut out = vec![];
    while q.packets() > 0 {
        match q.dequeue(Time(now), &mut Freed::default()) {
            Some(p) => out.push((now, p.flow)),
            None => now = q.next_event().0,
        }
    }
    out
}

#[test]
fn frames_leave_evenly_without_a_burst() {
    // 1514 B at 20 Mbit/s take 605.6 µs.
    let mut q = cake("cake bandwidth 20mbit besteffort");
    put(&mut q, 0, 1, 5);
    let times: Vec<u64> = drain(&mut q, 0).iter().map(|d| d.0).collect();
    for (i, t) in times.iter().enumerate() {
        assert!(t.abs_diff(i as u64 * 605_600) < 5, "{times:?}");
    }
}

#[test]
fn target_interval_quantum_and_memory() {
    // 20 Mbit/s: 5 ms and 100 ms stand; 2,500,000 >> 12 = 610 B; 4 · 250 kB are less than 4 MiB.
    let (p, quantum, memory) = cake("cake bandwidth 20mbit").policy.view();
    assert_eq!((p.target, p.interval, quantum, memory), (5 * MS, 100 * MS, 610, 4 << 20));
    assert!(p.mtu_time.abs_diff(605_600) < 2);
    // 1 Mbit/s: a frame takes 12.112 ms, the target 18.168 ms; the interval grows as much; quantum at least 300 B.
    let (p, quantum, _) = cake("cake bandwidth 1mbit").policy.view();
    assert!(p.target.abs_diff(18_168_000) < 10 && p.interval.abs_diff(113_168_000) < 10, "{p:?}");
    assert_eq!(quantum, 300);
    // metro: 10 ms, target 500 µs; at 100 Mbit/s a frame and a half takes 181.7 µs.
    let (p, quantum, _) = cake("cake bandwidth 100mbit metro").policy.view();
    assert_eq!((p.target, p.interval, quantum), (500_000, 10 * MS, 1514));
    assert_eq!(cake("cake").policy.view().2, 10_240 * 1514);
    assert_eq!(cake("cake memlimit 100k").policy.view().2, 102_400);
    // diffserv8: 49/64 of 1,250,000 B/s are 957,031.
    assert_eq!(cake("cake bandwidth 10mbit diffserv8").policy.view().1, 300);
    assert_eq!(cake("cake bandwidth 40mbit diffserv8").policy.view().1, (957_031 * 4) >> 12);
}

#[test]
fn framing() {
    // 1500 B of IP + 8 B in ATM: ⌈1508/48⌉ = 32 cells of 53 = 1696 B. On PTM, 1530 + ⌈1530/64⌉ = 1554. Ethernet: 1538.
    for (words, bytes) in [
        ("", 1514),
        ("overhead 0", 1500),
        ("ipoa-vcmux", 1696),
        ("pppoe-ptm", 1554),
        ("ethernet", 1538),
        ("ethernet ether-vlan", 1542),
        ("docsis", 1518),
        ("conservative", 33 * 53),
        ("raw", 1514),
    ] {
        // 1 MB/s: a byte takes a µs.
        let mut q = cake(&format!("cake bandwidth 8mbit {words}"));
        put(&mut q, 0, 1, 2);
        let d = drain(&mut q, 0);
        assert!(d[1].0.abs_diff(bytes * 1_000) < 5, "{words}: {d:?}");
    }
    let mut q = cake("cake bandwidth 8mbit ethernet");
    for _ in 0..2 {
        q.enqueue(Time(0), Packet { size: 60, ..packet(1, 0) }, &mut Freed::default());
    }
    assert!(drain(&mut q, 0)[1].0.abs_diff(84_000) < 5, "no frame is shorter than 84 B");
}

#[test]
fn flows_share_and_a_sparse_one_goes_first() {
    let mut q = cake("cake flows bandwidth 20mbit");
    put(&mut q, 0, 1, 20);
    put(&mut q, 0, 2, 20);
    let mut now = 0;
    let mut order = vec![];
    while order.len() < 12 {
        match q.dequeue(Time(now), &mut Freed::default()) {
            Some(p) => order.push(p.flow),
            None => now = q.next_event().0,
        }
    }
    assert!(order.iter().filter(|&&f| f == 1).count().abs_diff(6) <= 1, "{order:?}");
    q.enqueue(Time(now), Packet { size: 100, ..packet(3, 0) }, &mut Freed::default());
    let next = drain(&mut q, now);
    assert!(next[..2].iter().any(|d| d.1 == 3), "{next:?}");
}

#[test]
fn flowblind_is_one_queue() {
    let mut q = cake("cake flowblind");
    put(&mut q, 0, 1, 3);
    put(&mut q, 0, 2, 3);
    assert_eq!(drain(&mut q, 0).iter().map(|d| d.1).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2]);
}

#[test]
fn a_standing_queue_is_thinned_and_the_longest_flow_pays_for_memory() {
    // 40 Mbit/s come into 20 for a second.
    let mut q = cake("cake bandwidth 20mbit");
    for i in 0..3300u64 {
        let now = i * 302_800;
        put(&mut q, now, 1, 1);
        while q.dequeue(Time(now), &mut Freed::default()).is_some() {}
    }
    assert!((30..400).contains(&q.account.meter.s.drops.aqm), "{:?}", q.account.meter.s.drops);
    // 20 kB: 15 packets of 1280 B each (this body carries nothing).
    let mut q = cake("cake memlimit 20000 bandwidth 1mbit");
    put(&mut q, 0, 1, 3);
    put(&mut q, 0, 2, 20);
    assert_eq!((q.packets(), q.account.meter.s.drops.limit), (15, 8));
    assert_eq!(drain(&mut q, 0).iter().filter(|d| d.1 == 1).count(), 3);
}

#[test]
fn words_come_back() {
    for words in [
        "cake",
        "cake bandwidth 20mbit rtt 50ms besteffort dual-srchost ingress no-split-gso ack-filter wash",
        "cake bandwidth 20mbit diffserv4 flows ack-filter-aggressive atm overhead -4 mpu 64 memlimit 100000",
    ] {
        assert_eq!(spec::<CakeSpec>(words).words(), words);
    }
    assert_eq!(spec::<CakeSpec>("cake lan"), spec("cake rtt 1ms"));
    assert_eq!(spec::<CakeSpec>("cake bandwidth 5mbit unlimited"), spec("cake"));
    for (words, why) in [("cake nat", "not modelled"), ("cake bandwith 5mbit", "not understood"), ("cake overhead 300", "-64 to 256")] {
        let e = try_spec::<CakeSpec>(words).unwrap_err().to_string();
        assert!(e.contains(why) && !e.contains('\n'), "{e}");
    }
}

/// Of 800 frames, how many are of the pair of hosts that has one flow, beside another pair that has three; all of them wait from the start.
fn share_of_a_lonely_flow(words: &str) -> usize {
    let mut q = cake(words);
    for flow in 0..4 {
        for i in 0..1_000 {
            q.enqueue(Time(0), Packet { hosts: u32::from(flow > 0), ..packet(flow, i) }, &mut Freed::default());
        }
    }
    drain(&mut q, 0).iter().take(800).filter(|d| d.1 == 0).count()
}

#[test]
fn pairs_of_hosts_have_equal_shares_where_hosts_are_isolated() {
    // Half of 800, where hosts count; a quarter, where flows do.
    for (isolation, share) in [("", 400), ("dual-srchost", 400), ("dual-dsthost", 400), ("hosts", 400), ("srchost", 400), ("flows", 200)] {
        let reached = share_of_a_lonely_flow(&format!("cake bandwidth 100mbit rtt 1000s memlimit 100mb {isolation}"));
        assert!(reached.abs_diff(share) <= 12, "{isolation}: {reached}");
    }
}
