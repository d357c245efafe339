//! The delays that netem really makes, against published numbers, and what keeping the order does to them.
//!
//! The numbers are the means, spreads and zero probabilities of netem's truncated normal delay in the data set of the
//! published jitter-cliff study (one-way delay and its standard deviation in ms).

use tcpscape_base::{Packet, Time};
use tcpscape_path::{parse_tc, PathSpec, Pipe, StageStats};

/// Delay, jitter, mean achieved, spread achieved, probability of no delay at all.
const TRUNCATED_NORMAL: &[(u32, u32, f64, f64, f64)] = &[
    (12, 4, 11.999, 3.994, 0.001465),
    (12, 12, 12.994, 10.391, 0.158691),
    (12, 24, 16.737, 17.833, 0.308594),
    (25, 4, 24.997, 4.0, 0.0),
    (25, 8, 24.997, 7.991, 0.000977),
    (25, 10, 25.014, 9.939, 0.006348),
    (25, 14, 25.199, 13.538, 0.037109),
    (25, 24, 26.834, 20.976, 0.148926),
    (50, 20, 50.028, 19.878, 0.006348),
    (13, 7, 13.082, 6.802, 0.031738),
    (30, 40, 35.228, 32.409, 0.226807),
];

/// Sends packets `gap` ns apart through one stage.
fn measure(words: &str, n: u64, gap: u64) -> (StageStats, f64) {
    let mut pipe: Pipe<u64> = Pipe::new(&PathSpec::of([parse_tc(words).unwrap()]), 17, "forward");
    let (mut at_once, mut now) = (0u64, Time::ZERO);
    for i in 0..n {
        now = Time(i * gap);
        pipe.push(now, Packet { id: i, size: 1514, segs: 1, body: i, ..Default::default() });
        while let Some(p) = pipe.pop(now) {
            at_once += u64::from(p.body == i);
        }
    }
    while let Some(t) = pipe.next_event() {
        now = now.max(t);
        while pipe.pop(now).is_some() {}
    }
    (pipe.stats().remove(0), at_once as f64 / n as f64)
}

#[test]
fn netems_normal_delay_has_the_published_mean_spread_and_zeros() {
    for &(delay, jitter, mean, sd, zero) in TRUNCATED_NORMAL {
        let n = 300_000;
        let (s, at_once) = measure(&format!("netem delay {delay}ms {jitter}ms distribution normal limit 1000000"), n, 200_000);
        let error = f64::from(jitter) / (n as f64).sqrt();
        let got = (s.delay.mean * 1e-6, s.delay.sd * 1e-6);
        assert!((got.0 - mean).abs() < 4.0 * error + 0.001, "{delay} {jitter}: mean {} for {mean}", got.0);
        assert!((got.1 / sd - 1.0).abs() < 0.01, "{delay} {jitter}: sd {} for {sd}", got.1);
        let tolerance = 4.0 * (zero * (1.0 - zero) / n as f64).sqrt() + 1e-6;
        assert!((at_once - zero).abs() < tolerance, "{delay} {jitter}: {at_once} for {zero}");
    }
}

#[test]
fn clamping_raises_the_mean_and_correlation_keeps_it() {
    let achieved = |order: &str| {
        let s = measure(&format!("jitter delay 25ms 5ms distribution normal order {order} limit 1000000"), 200_000, 200_000).0;
        (s.delay.mean * 1e-6, s.delay.sd * 1e-6, s.reordered)
    };
    let reorder = achieved("reorder");
    assert!((reorder.0 - 25.0).abs() < 0.1 && (reorder.1 - 5.0).abs() < 0.1 && reorder.2 > 100_000, "{reorder:?}");
    let clamp = achieved("clamp");
    assert!(clamp.0 > 32.0 && clamp.1 < 3.0 && clamp.2 == 0, "a running maximum: {clamp:?}");
    let wandering = achieved("correlated tau 50ms");
    assert!((wandering.0 - 25.0).abs() < 0.8 && (wandering.1 - 5.0).abs() < 0.5 && wandering.2 == 0, "{wandering:?}");
}

#[test]
fn loss_leaves_the_published_share() {
    let (s, _) = measure("netem loss 2%", 500_000, 1_000);
    let rate = s.drops.loss as f64 / s.packets_in as f64;
    assert!((rate - 0.02).abs() < 4.0 * (0.02 * 0.98 / 500_000f64).sqrt(), "{rate}");
}

#[test]
fn a_bucket_and_a_queue_serve_at_their_rate_and_hold_their_limit() {
    // Overload at 20 Mbit/s into 10 Mbit/s for 10 s: 1.25 MB/s · 10 s + burst leave; the queue holds ⌊62500/1514⌋ = 41
    // packets, a delay of 41 · 1.2112 ms for the last to come.
    let mut pipe: Pipe<u64> = Pipe::new(&PathSpec::of([parse_tc("tbf rate 10mbit burst 6056 limit 62500").unwrap()]), 1, "forward");
    let mut bytes = 0u64;
    let gap = 605_600;
    for i in 0..10_000_000_000u64 / gap {
        pipe.push(Time(i * gap), Packet { id: i, size: 1514, segs: 1, body: i, ..Default::default() });
        while let Some(p) = pipe.pop(Time(i * gap)) {
            bytes += u64::from(p.size);
        }
    }
    let want = 12_500_000 + 6056;
    assert!(bytes.abs_diff(want) <= 2 * 1514, "{bytes} for {want}");
    let s = pipe.stats();
    assert_eq!(s[1].peak_packets, 41);
    assert_eq!(s[0].delay.max, 41 * 1_211_200);
}

#[test]
fn poisson_arrivals_at_a_fixed_service_wait_as_m_d_1() {
    // M/D/1: mean wait in the queue = ρ·S / (2(1−ρ)); at ρ = 0.8, S = 1.2112 ms: 2.4224 ms.
    // A bucket of one packet lets a packet leave when it holds a full one, so it serves after S of rest like a server
    // whose service is over when the next may start: the delay measured is the wait alone.
    let mut pipe: Pipe<u64> = Pipe::new(&PathSpec::of([parse_tc("tbf rate 10mbit burst 1514 limit 10000000").unwrap()]), 1, "forward");
    let mut random = tcpscape_base::Stream::new(5, "poisson");
    let mut t = 0.0f64;
    for i in 0..600_000u64 {
        t += -(1.0 - random.unit_f64()).ln() * 1_211_200.0 / 0.8;
        let now = Time(t as u64);
        pipe.push(now, Packet { id: i, size: 1514, segs: 1, body: i, ..Default::default() });
        while pipe.pop(now).is_some() {}
    }
    let wait = pipe.stats()[0].delay.mean * 1e-6;
    assert!((wait / 2.4224 - 1.0).abs() < 0.04, "{wait}");
}
