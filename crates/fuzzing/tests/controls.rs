//! Laws that every congestion control in the registry keeps under arbitrary sequences of events, with any parameters. Tests run with
//! overflow checks, so a division by zero or an overflow is a failure by itself.

#[path = "controls/pipe.rs"]
mod pipe;

use pipe::Pipe;
use tcpscape_fuzzing::choices::{bytes, Choices};
use tcpscape_fuzzing::control::{extreme, plain, Chaos, Kind};
use tcpscape_tcp::cc;

/// Bytes that one event takes at most: enough that choices do not run out.
const BYTES: usize = 120;

/// Runs `steps` steps for each kind and seed, and checks after each of them.
fn for_all(kinds: &[Kind], seeds: u64, steps: usize, check: impl Fn(&Chaos)) {
    for seed in 0..seeds {
        let bytes = bytes(seed, steps * BYTES);
        for kind in kinds {
            let mut c = Chaos::new(kind, Choices::new(&bytes));
            for _ in 0..steps {
                c.step();
                check(&c);
            }
        }
    }
}

#[test]
fn the_window_stays_between_one_and_the_clamp_and_the_rate_above_zero() {
    for_all(&plain(), 200, 1_000, |c| c.is_in_bounds());
}

#[test]
fn the_same_with_every_parameter_at_its_least_and_its_most() {
    for_all(&extreme(), 24, 600, |c| c.is_in_bounds());
}

#[test]
fn bursts_hold_a_segment() {
    for_all(&plain(), 20, 300, |c| {
        assert!(c.cc.min_tso_segs(&c.w) >= 1 && c.cc.sndbuf_expand() >= 2, "{:?}", c.kind);
        assert!(c.cc.owns_window() <= (c.w.pacing_rate < u64::MAX), "{:?}: who owns the window must say how fast it goes", c.kind);
    });
}

/// Two like connections, one of which loses packets in three round trips after a long while without. It sends less in them and in the next two, or it
/// has said that it does not react; then it never does, however many are lost.
#[test]
fn losses_bring_the_window_or_the_rate_down_unless_it_says_that_they_do_not() {
    for kind in plain() {
        let reacts = kind.make(1).reacts_to_loss();
        let (mut clean, mut lossy) = (Pipe::new(&kind), Pipe::new(&kind));
        for round in 0..if reacts { 25 } else { 50 } {
            clean.round(false);
            lossy.round(matches!(round, 20..=22) || (round > 22 && !reacts));
        }
        let (with, without) = (lossy.allowed, clean.allowed);
        assert!(if reacts { with < without } else { with == without }, "{kind:?}: {with} with losses, {without} without");
    }
}

#[test]
fn the_same_events_give_the_same_windows() {
    let bytes = bytes(7, 2_000 * BYTES);
    for kind in plain() {
        let run = || {
            let mut c = Chaos::new(&kind, Choices::new(&bytes));
            (0..2_000).map(|_| (c.step(), c.w.cwnd, c.w.ssthresh, c.w.pacing_rate)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{}", kind.name);
    }
}

#[test]
fn names_are_unique_and_answer_to_themselves() {
    for (i, e) in cc::REGISTRY.iter().enumerate() {
        assert!(cc::make(e.name, 0).is_some());
        assert!(cc::REGISTRY[..i].iter().all(|o| o.name != e.name) && !e.about.is_empty());
    }
    assert!(cc::make("no such", 0).is_none());
}

#[test]
fn parameters_have_a_range_that_holds_their_default() {
    for e in cc::REGISTRY {
        for (i, p) in e.params.iter().enumerate() {
            assert!(p.min < p.max && (p.min..=p.max).contains(&p.default), "{}: {p:?}", e.name);
            assert!(e.params[..i].iter().all(|o| o.name != p.name) && !p.about.is_empty(), "{}: {p:?}", e.name);
        }
    }
}
