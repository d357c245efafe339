use super::*;
use tcpscape_base::Time;

fn at(ms: u64) -> View {
    View { now: Time(ms * 1_000_000), jiffies: 1_000 + (ms / 10) as u32, hz: 100, is_cwnd_limited: true, ..View::default() }
}

fn ack(n: u32) -> AckSample {
    AckSample { acked: n, may_raise: true, ..AckSample::default() }
}

fn rtt(us: i64) -> PktsAcked {
    PktsAcked { pkts_acked: 1, rtt_us: us, in_flight: 0 }
}

/// After a loss at `w_max`, with the given smallest RTT.
fn reduced(w_max: u32, delay_min: u32) -> (Cubic, Window) {
    let (mut c, mut w) = (Cubic { rtt_min: delay_min, ..Cubic::default() }, Window { cwnd: w_max, prior_cwnd: w_max, ..Window::default() });
    w.ssthresh = c.ssthresh(&at(0), &w);
    w.cwnd = w.ssthresh;
    (c, w)
}

#[test]
fn constants_as_in_the_rfc_with_linuxs_rounding() {
    let r = Rules::default();
    assert_eq!((RENO_STEP, r.beta, r.inverse_c), (15, 717, 2_681_735_677)); // 8 · 1741 / 3 / 307 = 15.1; 2^40 / 410
}

/// RFC 9438 §4.2: a drop of 30 packets takes ∛(30/0.4004) = 4.215 s = 4,316/1024 s to make up; one of 300, 9,300/1024 s.
#[test]
fn k_of_known_drops() {
    assert_eq!([0, 1, 30, 300, 3_000].map(|drop| Rules::default().k(drop)), [0, 1_389, 4_316, 9_300, 20_037]);
    let roots = [(0, 0), (7, 1), (8, 2), (26, 2), (27, 3), (1 << 60, 1 << 20), ((1 << 63) - 1, 2_097_151)];
    assert!(roots.iter().all(|&(a, r)| cube_root(a) == r));
}

/// From 100 down to 70: at t = K the curve stands at 100 again, one second before it at 99.6, two after it at 103.2.
#[test]
fn the_curve_reaches_the_old_maximum_at_k() {
    let (mut c, w) = reduced(100, 0);
    c.update(&at(0), w.cwnd, 1);
    let e = c.epoch.unwrap();
    assert_eq!((w.cwnd, e.origin), (70, 100));
    assert!((4_300..=4_330).contains(&e.k), "{}", e.k);
    let k_ms = u64::from(e.k) * 1_000 / 1_024;
    assert_eq!(
        [e.target(&c.rules, &at(k_ms), 0), e.target(&c.rules, &at(k_ms - 1_000), 0), e.target(&c.rules, &at(k_ms + 2_000), 0)],
        [100, 100, 103]
    );
    // The target is the window one RTT ahead: 500 ms of RTT are 500 ms of time.
    assert_eq!(e.target(&c.rules, &at(1_000), 500_000), e.target(&c.rules, &at(1_500), 0));
}

#[test]
fn fast_convergence_gives_up_some_of_the_old_maximum() {
    let (mut c, mut w) = reduced(100, 0);
    w.cwnd = 80;
    // (1024 + 717) / 2048 of 80 = 68; 717 / 1024 of 80 = 56.
    assert_eq!((c.ssthresh(&at(0), &w), c.w_max), (56, 68));
    w.cwnd = 90;
    assert_eq!((c.ssthresh(&at(0), &w), c.w_max), (63, 90));
    w.cwnd = 2;
    assert_eq!(c.ssthresh(&at(0), &w), 2);
}

/// On a short path Reno is faster. Its estimate grows by one packet for 15/8 windows acknowledged, about one for two round
/// trips at 14 packets and more, with the window one packet behind: 20 round trips of 10 ms take it from 14 to 22.
#[test]
fn reno_friendly_region() {
    let (mut c, mut w) = reduced(21, 10_000);
    assert_eq!(w.cwnd, 14);
    for round in 0..20 {
        for _ in 0..w.cwnd {
            c.on_ack(&at(round * 10), &mut w, &ack(1));
        }
    }
    assert_eq!((c.epoch.unwrap().reno.cwnd, w.cwnd), (22, 22));
}

#[test]
fn growth_is_bounded_to_one_in_two_and_one_in_twenty() {
    // Long after the maximum the target runs away: one packet for two.
    let (mut c, w) = reduced(100, 0);
    c.update(&at(0), w.cwnd, 1);
    c.update(&at(60_000), w.cwnd, 1);
    assert_eq!(c.per_packet, 2);
    // No loss yet: 5 % a round trip although the curve is flat.
    let mut c = Cubic::default();
    c.update(&at(0), 1_000, 1);
    assert_eq!(c.per_packet, 20);
}

#[test]
fn an_unchanged_window_is_evaluated_32_times_a_second() {
    let (mut c, w) = reduced(1_000, 0);
    c.update(&at(0), w.cwnd, 1);
    let first = c.per_packet;
    c.update(&at(30), w.cwnd, 1); // 3 jiffies = HZ/32
    assert_eq!((c.per_packet, c.evaluated.jiffies), (first, 1_000));
    c.update(&at(40), w.cwnd, 1);
    assert_eq!(c.evaluated.jiffies, 1_004);
    assert_eq!(c.epoch.unwrap().reno.acked, 3);
}

#[test]
fn idle_time_moves_the_epoch() {
    let (mut c, mut w) = reduced(100, 0);
    c.update(&at(0), w.cwnd, 1);
    c.on_event(&View { last_sent: 1_100, ..at(5_000) }, &mut w, CaEvent::TxStart);
    assert_eq!(c.epoch.unwrap().start, 1_400); // idle from jiffy 1,100 to 1,500
    c.on_event(&View { last_sent: 1_100, ..at(5_000) }, &mut w, CaEvent::TxStart);
    assert_eq!(c.epoch.unwrap().start, 1_500); // never later than now
}

/// Slow start with 20 packets of window and 100 ms of smallest RTT: 112.5 ms is the limit.
#[test]
fn hystart_leaves_on_delay_after_eight_samples() {
    let (mut c, mut w) = (Cubic::default(), Window { cwnd: 20, ..Window::default() });
    c.init(&at(0), &mut w);
    c.pkts_acked(&at(0), &mut w, &rtt(100_000));
    let round = |ms| View { snd_una: ms, snd_nxt: ms + 1, ..at(ms) };
    for (start, us, leaves) in [(1_000, 112_500, false), (2_000, 112_501, true)] {
        for i in 0..9 {
            assert!(w.in_slow_start() && w.ssthresh > 20);
            c.pkts_acked(&View { snd_una: start, ..round(start + i * 5) }, &mut w, &rtt(us));
        }
        assert_eq!((c.hystart.found, w.ssthresh == 20), (leaves, leaves));
    }
}

/// ACKs 1 ms apart for more than 50 ms = half of 100 ms end slow start; 3 ms apart they are no train; paced, it takes 100 ms.
#[test]
fn hystart_leaves_on_a_long_train() {
    let run = |gap: u64, paced: bool, until: u64| {
        let (mut c, mut w) = (Cubic::default(), Window { cwnd: 20, paced, ..Window::default() });
        c.init(&View { snd_nxt: 9, ..at(0) }, &mut w);
        (0..=until / gap).map(|i| i * gap).find(|&ms| {
            c.pkts_acked(&at(ms), &mut w, &rtt(100_000));
            c.hystart.found
        })
    };
    assert_eq!([run(1, false, 200), run(3, false, 200), run(1, true, 200)], [Some(51), None, Some(101)]);
}

#[test]
fn a_timeout_forgets_and_the_first_second_of_an_epoch_gives_no_delay() {
    let (mut c, mut w) = reduced(100, 50_000);
    c.update(&at(0), w.cwnd, 1);
    c.pkts_acked(&at(990), &mut w, &rtt(10_000));
    assert_eq!(c.rtt_min, 50_000);
    c.pkts_acked(&at(1_000), &mut w, &rtt(10_000));
    assert_eq!(c.rtt_min, 10_000);
    assert_eq!(c.undo(&at(0), &w), 100);
    c.on_state(&at(0), &mut w, CaState::Loss);
    assert_eq!((c.w_max, c.rtt_min, c.epoch.is_none()), (0, 0, true));
}

fn with(set: &[(&str, i64)]) -> Cubic {
    let set = set.iter().map(|&(k, x)| (k.to_string(), x)).collect();
    Cubic::new(&Options { seed: 0, set: Some(&set) })
}

#[test]
fn parameters_and_what_follows_from_them() {
    assert_eq!(with(&[("bic_scale", 82)]).rules.inverse_c, 1_340_867_838); // 2^40 / 820
    let (mut c, mut w) = (with(&[("beta", 512), ("fast_convergence", 0)]), Window { cwnd: 100, ..Window::default() });
    assert_eq!((c.ssthresh(&at(0), &w), c.w_max), (50, 100));
    w.cwnd = 80;
    assert_eq!((c.ssthresh(&at(0), &w), c.w_max), (40, 80));
    for p in PARAMS {
        assert!((p.min..=p.max).contains(&p.default), "{p:?}");
        for x in [p.min, p.max] {
            with(&[(p.name, x)]);
        }
    }
}

/// As Linux, which takes it only without HyStart.
#[test]
fn a_first_threshold_needs_hystart_off() {
    for (hystart, threshold) in [(0, 30), (1, crate::cc::INFINITE_SSTHRESH)] {
        let (mut c, mut w) = (with(&[("initial_ssthresh", 30), ("hystart", hystart)]), Window::default());
        c.init(&at(0), &mut w);
        assert_eq!(w.ssthresh, threshold);
    }
}

/// The path of `reno_friendly_region`: by itself the curve is at 21 − 0.4 (2.6 − 0.2)³ = 15.5 packets after 0.2 s, rounded up.
#[test]
fn unfriendly_cubic_does_not_follow_reno() {
    let (c, mut w) = reduced(21, 10_000);
    let mut c = Cubic { rules: with(&[("tcp_friendliness", 0)]).rules, ..c };
    for round in 0..20 {
        for _ in 0..w.cwnd {
            c.on_ack(&at(round * 10), &mut w, &ack(1));
        }
    }
    assert!((15..=17).contains(&w.cwnd), "{}", w.cwnd);
}

/// The train of `hystart_leaves_on_a_long_train`, 3 ms between ACKs, and the delay rule, each with its own bit.
#[test]
fn hystart_looks_for_what_it_is_told_to() {
    let train = |set: &[(&str, i64)]| {
        let (mut c, mut w) = (with(set), Window { cwnd: 20, ..Window::default() });
        c.init(&View { snd_nxt: 9, ..at(0) }, &mut w);
        (0..70).map(|i| 3 * i).find(|&ms| {
            c.pkts_acked(&at(ms), &mut w, &rtt(100_000));
            c.hystart.found
        })
    };
    assert_eq!([train(&[]), train(&[("hystart_ack_delta_us", 3_000)])], [None, Some(51)]);
    assert_eq!(train(&[("hystart_ack_delta_us", 3_000), ("hystart_detect", 2)]), None);
    assert_eq!(train(&[("hystart_ack_delta_us", 3_000), ("hystart_low_window", 21)]), None);
    assert_eq!(train(&[("hystart_ack_delta_us", 3_000), ("hystart", 0)]), None);
}

/// A flow in slow start with HyStart++ whose round trips are made by hand.
struct Plus {
    c: Cubic,
    w: Window,
    una: u64,
}

impl Plus {
    fn new(paced: bool) -> Plus {
        let (mut c, mut w) = (with(&[("hystartpp", 1)]), Window { cwnd: 100, paced, ..Window::default() });
        c.init(&at(0), &mut w);
        Plus { c, w, una: 1 }
    }

    /// One round trip of `acks` ACKs for `n` packets each, with an RTT of `us`.
    fn round(&mut self, acks: u32, n: u32, us: i64) {
        let end = self.una + u64::from(acks);
        for _ in 0..acks {
            self.una += 1;
            let v = View { snd_una: self.una, snd_nxt: end, ..at(self.una) };
            self.c.pkts_acked(&v, &mut self.w, &rtt(us));
            self.c.on_ack(&v, &mut self.w, &ack(n));
        }
    }
}

/// RFC 9406 §4.2: 8 samples above 50 + 50/8 = 56.25 ms begin the conservative phase: 16 packets add 4. In its fifth round's end slow start ends.
#[test]
fn hystartpp_slows_down_and_ends_after_five_rounds() {
    let mut p = Plus::new(false);
    p.round(16, 1, 50_000);
    p.round(16, 1, 56_249);
    assert_eq!(p.w.cwnd, 132);
    // The eighth sample of this round decides: seven packets at full speed, then nine at a quarter.
    p.round(16, 1, 64_000);
    assert_eq!(p.w.cwnd, 132 + 7 + 9 / 4);
    for _ in 0..4 {
        p.round(16, 1, 64_000);
    }
    assert!(p.w.in_slow_start());
    assert_eq!(p.w.cwnd, 132 + 7 + (9 + 4 * 16) / 4);
    p.round(1, 1, 64_000);
    assert_eq!((p.w.ssthresh, p.c.hystartpp.unwrap().done), (157, true));
}

#[test]
fn hystartpp_returns_to_full_speed_when_the_delay_falls() {
    let mut p = Plus::new(false);
    p.round(16, 1, 50_000);
    p.round(16, 1, 60_000);
    let cwnd = p.w.cwnd;
    p.round(16, 1, 59_999);
    // Seven samples at a quarter of the speed with the credit of one left from the round before, then nine at full speed.
    assert_eq!(p.w.cwnd, cwnd + (1 + 7) / 4 + 9);
    assert!(p.w.in_slow_start() && !p.c.hystartpp.unwrap().done);
}

#[test]
fn hystartpp_takes_eight_packets_an_ack_unless_paced_and_stops_at_a_loss() {
    let (mut p, mut q) = (Plus::new(false), Plus::new(true));
    p.round(1, 20, 50_000);
    q.round(1, 20, 50_000);
    assert_eq!((p.w.cwnd, q.w.cwnd), (108, 120));
    q.w.ssthresh = q.c.ssthresh(&at(0), &q.w);
    q.w.cwnd = 60;
    q.round(1, 20, 50_000);
    assert_eq!(q.w.cwnd, 80);
}
