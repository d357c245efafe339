use super::*;
use std::collections::BTreeMap;
use tcpscape_base::Time;

/// Mark-free, window-limited, MTU of 1500, RTT of `rtt_ms`.
fn view(rtt_ms: u32) -> View {
    View {
        mss: 1448,
        srtt_us: rtt_ms * 8_000,
        min_rtt_us: rtt_ms * 1_000,
        is_cwnd_limited: true,
        ecn: EcnMode::Accurate,
        snd_nxt: 1,
        ..View::default()
    }
}

/// In congestion avoidance with a window of `cwnd`, past the transition.
fn avoiding(v: &View, cwnd: u32) -> (Prague, Window) {
    let mut p = Prague::new(&Options::default());
    let mut w = Window { cwnd, ssthresh: cwnd, ..Window::default() };
    p.init(v, &mut w);
    p.rounds = 10;
    p.seen_mark = true;
    p.update_increase(v);
    (p, w)
}

/// Acknowledges `n` packets, `marks` of them marked.
fn ack(p: &mut Prague, v: &mut View, w: &mut Window, n: u32, marks: u32) {
    v.counts.delivered += n;
    v.counts.delivered_ce += marks;
    p.on_ack(v, w, &AckSample { acked: n, may_raise: true, ..AckSample::default() });
}

fn window(p: &Prague) -> f64 {
    p.window as f64 / PACKET as f64
}

/// At 25 ms a window of 100 grows by a packet in a round trip; at 10 ms by (10/25)² = 0.16; at 50 ms by a packet again.
#[test]
fn growth_in_a_round_trip_depends_on_the_square_of_short_rtts() {
    for (rtt, grown) in [(25, 1.0), (10, 0.16), (50, 1.0)] {
        let mut v = view(rtt);
        let (mut p, mut w) = avoiding(&v, 100);
        v.snd_una = 0;
        for _ in 0..50 {
            ack(&mut p, &mut v, &mut w, 2, 0);
        }
        assert!((window(&p) - 100.0 - grown).abs() < 0.02 * grown, "{rtt} ms: {}", window(&p));
    }
}

/// Draft §2.4.4: (10/25)² = 0.16 of a packet of 1,500 bytes, three of 500 bytes.
#[test]
fn the_increase_is_the_square_of_the_rtts() {
    assert_eq!([increase_of(1_448, None), increase_of(448, None)], [PACKET, 3 * PACKET]);
    assert_eq!(increase_of(1_448, Some((80_000, 200_000))), PACKET * 16 / 100);
}

/// Below 25 ms the increase of the rate in a second is the same for all: increase/RTT² is constant.
#[test]
fn prague_rtt_scaling_off_is_dctcp() {
    let set = BTreeMap::from([("prague_rtt_scaling".to_owned(), 0)]);
    let mut p = Prague::new(&Options { set: Some(&set), ..Options::default() });
    p.init(&view(5), &mut Window { ssthresh: 1, ..Window::default() });
    p.rounds = 100;
    p.update_increase(&view(5));
    assert_eq!(p.increase, PACKET);
}

/// 25 of 100 packets marked: α = 0 + 1/16 · 1/4 = 1/64; nothing marked in the next round: 15/16 of that.
#[test]
fn alpha_averages_over_sixteen_rounds() {
    let mut v = view(50);
    let (mut p, mut w) = avoiding(&v, 100);
    v.snd_una = 1;
    v.now = Time(50_000_000);
    ack(&mut p, &mut v, &mut w, 100, 25);
    assert_eq!(p.alpha.get(), ALPHA_ONE / 64);
    v.now = Time(100_000_000);
    ack(&mut p, &mut v, &mut w, 100, 0);
    assert_eq!(p.alpha.get(), ALPHA_ONE / 64 * 15 / 16);
}

/// α = 1/4 takes an eighth off a window of 80, and again only 25 ms later at an RTT of 10 ms; a loss takes a half.
#[test]
fn marks_cost_half_of_alpha_once_per_virtual_round_trip() {
    let mut v = view(10);
    let (mut p, mut w) = avoiding(&v, 80);
    p.alpha = Alpha((ALPHA_ONE / 4) << GAIN_SHIFT);
    for (ms, left) in [(1_000, 70.0), (1_010, 70.0), (1_026, 61.25)] {
        v.now = Time(ms * 1_000_000);
        p.on_state(&v, &mut w, CaState::Cwr);
        assert!((window(&p) - left).abs() < 1e-5, "{} at {ms} ms", window(&p));
    }
    p.on_state(&v, &mut w, CaState::Recovery);
    assert_eq!((window(&p), w.ssthresh), (30.625, 31));
    assert!(p.in_loss && p.undo(&v, &w) == 80);
    assert_eq!(window(&p), 61.25);
}

/// Slow start doubles; the first mark halves the window and ends it, and the blocking window follows by one packet for two
/// acknowledged: from 40 to 20 takes 40 of them.
#[test]
fn the_first_mark_ends_slow_start() {
    let mut v = view(50);
    let mut p = Prague::new(&Options::default());
    let mut w = Window { cwnd: 20, ..Window::default() };
    p.init(&v, &mut w);
    v.in_flight = 20;
    for _ in 0..10 {
        ack(&mut p, &mut v, &mut w, 2, 0);
    }
    assert_eq!((w.cwnd, window(&p)), (40, 40.0));
    ack(&mut p, &mut v, &mut w, 2, 2);
    assert_eq!((w.cwnd, window(&p)), (39, 20.0));
    for _ in 0..19 {
        ack(&mut p, &mut v, &mut w, 2, 2);
    }
    assert_eq!((w.cwnd, w.in_slow_start()), (20, false));
}

/// 20 packets of 1500 bytes in 50 ms are 600 kB/s, twice that in slow start; 0.24 ms of it are less than a packet, at 100 MB/s
/// they are 16.
#[test]
fn the_rate_is_a_window_per_round_trip() {
    let v = view(50);
    let (p, w) = avoiding(&v, 20);
    assert_eq!((w.pacing_rate, p.burst), (600_000, 1));
    let mut start = Window { cwnd: 20, ..Window::default() };
    Prague::new(&Options::default()).init(&v, &mut start);
    assert_eq!(start.pacing_rate, 1_200_000);
    let (p, w) = avoiding(&view(15), 1_000);
    assert_eq!((w.pacing_rate, p.burst), (100_000_000, 16));
}

/// Windows below two packets are a matter of pacing.
#[test]
fn all_marked_leaves_the_smallest_window() {
    let mut v = view(50);
    let (mut p, mut w) = avoiding(&v, 20);
    p.alpha = Alpha(ALPHA_ONE << GAIN_SHIFT);
    for i in 0..20 {
        v.now = Time((1 + i) * 100_000_000);
        v.ca_state = CaState::Open;
        p.on_state(&v, &mut w, CaState::Cwr);
        ack(&mut p, &mut v, &mut w, 1, 1);
    }
    assert_eq!((p.window, w.pacing_rate), (MIN_WINDOW, MIN_RATE));
    for _ in 0..20 {
        ack(&mut p, &mut v, &mut w, 1, 1);
    }
    assert_eq!(w.cwnd, MIN_CWND);
}

/// At the smallest window pacing is what holds it back: it grows by a packet for one unmarked if data wait, not if the sender has none.
#[test]
fn the_smallest_window_grows_while_data_wait() {
    let mut v = View { is_cwnd_limited: false, has_unsent: true, ..view(50) };
    let (mut p, mut w) = avoiding(&v, 2);
    p.set_window(0);
    ack(&mut p, &mut v, &mut w, 1, 0);
    assert_eq!(p.window, MIN_WINDOW + PACKET);
    v.has_unsent = false;
    ack(&mut p, &mut v, &mut w, 1, 0);
    assert_eq!(p.window, MIN_WINDOW + PACKET);
}

#[test]
fn without_accurate_feedback_it_is_reno() {
    let v = View { ecn: EcnMode::Classic, ..view(50) };
    let mut p = Prague::new(&Options::default());
    let mut w = Window { cwnd: 50, prior_cwnd: 90, ..Window::default() };
    p.init(&v, &mut w);
    assert_eq!((p.ssthresh(&v, &w), p.undo(&v, &w), p.owns_window(), w.paced), (25, 90, false, false));
}
