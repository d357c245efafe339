//! Departures asked for ahead of time are those that come of asking at each moment.

use super::frames::Build;
use super::*;
use tcpscape_path::schedule::Change;
use tcpscape_path::ScheduledChange;

const PATHS: &[&[&str]] = &[
    &["netem delay 20ms limit 100000"],
    &["netem delay 20ms loss 3% duplicate 2% corrupt 2% limit 100000", "tbf rate 20mbit burst 6056 limit 40000"],
    &["netem delay 5ms limit 200000", "netem delay 5ms 2ms", "fq_codel limit 20", "netem rate 30mbit"],
];

type Left = Vec<(Direction, Time, Vec<u8>)>;

/// A path whose last stage is out of service for a while, where it is not the first.
fn changing(words: &[&str]) -> PathSpec {
    let mut spec = path(words);
    let outage = |(at, outage)| Change::Set { at: Time(at * MS), set: Patch { outage: Some(outage), ..Patch::default() } };
    let change = |each| ScheduledChange { stage: words.len() - 1, depth: 0, change: outage(each) };
    if words.len() > 1 {
        spec.schedule = [(301, true), (313, false), (500, true), (501, false)].map(change).to_vec();
    }
    spec
}

/// What leaves of frames that come at random times, some of them super-packets, where the link is asked every `step` ns.
fn left(words: &[&str], step: u64) -> (Left, [Vec<String>; 2]) {
    let ahead = step > 1;
    let options = LinkOptions { merge: true, ahead, seed: 3, capture: Some(1 << 20), ..LinkOptions::default() };
    let mut link = Link::new(&changing(words), &path(&["netem delay 7ms limit 100000"]), &options).expect("a path");
    let foresight = if ahead { link.foresight().0 } else { 0 };
    assert!(!ahead || foresight >= step, "the link is asked in time");
    let mut random = Stream::new(1, "arrivals");
    let (mut at, mut all, mut looked) = (0, Left::new(), 0);
    for n in 0..3_000u64 {
        at += random.next_u64() % 600_000;
        while ahead && looked + step <= at {
            looked += step;
            all.extend(departures(&mut link, Time(looked + foresight)));
        }
        if !ahead {
            all.extend(departures(&mut link, Time(at)));
        }
        let frame = Build { payload: 100, ..if n % 5 == 0 { Build::full(3) } else { Build::default() } }.frame();
        link.arrive(Time(at), if n % 3 == 0 { Direction::Reverse } else { Direction::Forward }, &frame);
    }
    all.extend(departures(&mut link, END));
    assert_eq!(Direction::BOTH.map(|d| link.totals(d).belated), [0, 0]);
    all.sort();
    (all, Direction::BOTH.map(|d| account(&link, d)))
}

/// The account of a direction and what became of each packet.
fn account(link: &Link, direction: Direction) -> Vec<String> {
    let log = link.log(direction).expect("a link that keeps it");
    let mut each: Vec<String> = log.events.iter().map(|event| format!("{event:?}")).collect();
    each.sort();
    each.push(format!("{:?}", link.totals(direction)));
    each
}

#[test]
fn what_is_known_ahead_is_what_comes() {
    for words in PATHS {
        let reference = left(words, 1);
        assert!(reference.0.len() > 2_000);
        let ahead = left(words, 4 * MS);
        assert!(ahead.0 == reference.0, "{words:?}: {:?}", ahead.0.iter().zip(&reference.0).find(|(a, b)| a != b));
        for (a, b) in ahead.1.iter().flatten().zip(reference.1.iter().flatten()) {
            assert_eq!(a, b, "{words:?}");
        }
    }
}

#[test]
fn nothing_is_known_ahead_unless_it_is_asked_for_and_the_entrance_is_a_constant_delay() {
    let foresight = |words: &[&str], ahead| {
        let options = LinkOptions { ahead, ..LinkOptions::default() };
        Link::new(&path(words), &path(&["netem delay 9ms limit 100000"]), &options).expect("a path").foresight().0
    };
    assert_eq!(foresight(PATHS[0], true), 9 * MS);
    assert_eq!(foresight(&["netem delay 2ms loss 1% limit 100000", "tbf rate 1mbit burst 6056 limit 9000"], true), 2 * MS);
    assert_eq!(foresight(PATHS[0], false), 0);
    for other in [
        "netem delay 5ms",
        "netem delay 5ms limit 1000",
        "netem delay 5ms 1ms limit 100000",
        "netem delay 5ms rate 1mbit limit 100000",
        "netem delay 5ms reorder 10% limit 100000",
        "tbf rate 1mbit burst 6056 limit 9000",
    ] {
        assert_eq!(foresight(&[other, "netem delay 20ms limit 100000"], true), 0, "{other}");
    }
    assert_eq!(foresight(&[], true), 0);
    let change = Change::Set { at: Time(MS), set: Patch { delay: Some(Duration(MS)), ..Patch::default() } };
    let spec = PathSpec { schedule: vec![ScheduledChange { stage: 0, depth: 0, change }], ..path(PATHS[0]) };
    assert_eq!(spec.foresight_ns(), 0, "the delay changes");
}
