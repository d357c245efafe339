//! The player as a whole, with worked numbers.

use super::*;

const S: u64 = 1_000_000_000;

fn plan(abr: Abr) -> PlayerPlan {
    PlayerPlan { ladder: vec![1_000_000, 2_500_000, 5_000_000], segment_ns: 4 * S, buffer_ns: 12 * S, abr }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// 1 Mbit/s for 4 s is 500,000 bytes; a third of a byte more is a byte more.
#[test]
fn a_segment_has_its_rate_times_its_length() {
    assert_eq!(plan(Abr::Bola).segment_bytes(0), 500_000);
    let odd = PlayerPlan { ladder: vec![1], segment_ns: S, ..plan(Abr::Bola) };
    assert_eq!(odd.segment_bytes(0), 1);
}

/// 12 s hold three segments of 4 s. The first is there at 0.5 s, the second at 1 s (7.5 s buffered), the third at 1.5 s (11 s): there is room for a
/// fourth when 8 s are left, at 4.5 s.
#[test]
fn a_full_buffer_waits_for_room() {
    let mut player = Player::new(&plan(Abr::Throughput));
    assert_eq!(player.next(at(0)), Next::Request(500_000));
    player.on_segment_complete(at(500));
    assert!(matches!(player.next(at(500)), Next::Request(_)));
    player.on_segment_complete(at(1_000));
    assert!(matches!(player.next(at(1_000)), Next::Request(_)));
    player.on_segment_complete(at(1_500));
    assert_eq!(player.next(at(1_500)), Next::Wait(at(4_500)));
    assert!(matches!(player.next(at(4_500)), Next::Request(_)));
}

/// Rungs 1, 5, 5 Mbit/s (500 kB in 0.5 s are 8 Mbit/s, 85 % of them carry 5): mean 11/3, one change of 4, start-up 0.5 s. Segments come at 0.5, 1 and
/// 12.5 s: 8 s of media last until 8.5 s, a stall of 4 s. QoE = (11 − 4 − 5 · 4.5) / 3 Mbit/s.
#[test]
fn the_qoe_is_that_of_the_paper() {
    let mut player = Player::new(&plan(Abr::Throughput));
    assert_eq!(player.next(at(0)), Next::Request(500_000));
    player.on_segment_complete(at(500));
    assert_eq!(player.next(at(500)), Next::Request(2_500_000));
    player.on_segment_complete(at(1_000));
    player.next(at(1_000));
    player.on_segment_complete(at(12_500));
    let s = player.summary(at(13_500));
    assert_eq!((s.startup_s, s.began, s.stalls, s.stalled_s, s.played_s), (0.5, true, 1, 4.0, 9.0));
    assert_eq!((s.segments, s.switches), (3, 1));
    assert!((s.bitrate_mbps.unwrap() - 11.0 / 3.0).abs() < 1e-12);
    assert!((s.qoe_mbps.unwrap() - (11.0 - 4.0 - 22.5) / 3.0).abs() < 1e-12);
}

#[test]
fn a_player_that_never_began_has_waited() {
    let mut player = Player::new(&plan(Abr::Bola));
    player.next(at(1_000));
    let s = player.summary(at(6_000));
    assert_eq!((s.startup_s, s.began, s.segments, s.bitrate_mbps, s.qoe_mbps), (5.0, false, 0, None, None));
}

#[test]
fn what_no_player_can_be_is_refused_by_its_field() {
    let field = |plan: PlayerPlan| plan.check().err().map(|e| e.0);
    assert_eq!(field(plan(Abr::Bola)), None);
    assert_eq!(field(PlayerPlan { ladder: vec![], ..plan(Abr::Bola) }), Some("ladder"));
    assert_eq!(field(PlayerPlan { ladder: vec![2, 2], ..plan(Abr::Bola) }), Some("ladder"));
    assert_eq!(field(PlayerPlan { segment_ns: 1, ..plan(Abr::Bola) }), Some("segment"));
    assert_eq!(field(PlayerPlan { buffer_ns: 7 * S, ..plan(Abr::Bola) }), Some("buffer"));
}
