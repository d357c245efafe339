//! Changes while a link runs: by a schedule, one by one, and of the whole path.

use super::frames::Build;
use super::*;
use tcpscape_base::{Duration, Rate};
use tcpscape_path::schedule::Change;
use tcpscape_path::{ScheduledChange, REGISTRY};

fn due(link: &mut Link) -> Vec<u64> {
    departures(link, END).iter().map(|d| d.1 .0 / MS).collect()
}

fn delay(ms: u64) -> Patch {
    Patch { delay: Some(Duration::millis(ms)), ..Patch::default() }
}

fn arrive(link: &mut Link, ms: u64) {
    link.arrive(Time(ms * MS), Direction::Forward, &Build::default().frame());
}

#[test]
fn what_waits_keeps_its_due_time_when_the_delay_changes() {
    for stages in [&["netem delay 50ms"][..], &["netem delay 50ms", "pfifo limit 50"]] {
        let mut link = link(stages, &LinkOptions::default());
        arrive(&mut link, 0);
        link.change(Time(10 * MS), Direction::Forward, 0, 0, &delay(5)).expect("a change");
        arrive(&mut link, 20);
        assert_eq!(due(&mut link), [25, 50]);
        let refused = link.change(Time(90 * MS), Direction::Forward, 3, 0, &delay(5)).unwrap_err();
        assert!(refused.to_string().contains("stage"), "{refused}");
    }
}

/// The same kinds of queues: a change. Others: a new path, and the old one empties at its own times.
#[test]
fn a_path_is_replaced_without_loss() {
    for (to, last) in [("netem delay 5ms", 25), ("netem delay 5ms; pfifo limit 9", 25), ("pfifo limit 9", 20)] {
        let mut link = link(&["netem delay 50ms"], &LinkOptions::default());
        arrive(&mut link, 0);
        link.replace(Time(10 * MS), Direction::Forward, &path(&[to])).expect("a path");
        arrive(&mut link, 20);
        assert_eq!(due(&mut link), [last, 50], "{to}");
        let t = link.totals(Direction::Forward);
        assert_eq!((t.packets_in, t.packets_out, t.packets_held, t.drops.total(), t.drops_replaced), (2, 2, 0, 0, 0));
    }
}

#[test]
fn an_outage_ends_with_a_new_path() {
    for to in ["netem delay 50ms", "pfifo limit 9"] {
        let mut link = link(&["netem delay 50ms"], &LinkOptions::default());
        let outage = Patch { outage: Some(true), ..Patch::default() };
        link.change(Time(0), Direction::Forward, 0, 0, &outage).expect("a change");
        arrive(&mut link, 0);
        assert!(due(&mut link).is_empty(), "{to}");
        link.replace(Time(90 * MS), Direction::Forward, &path(&[to])).expect("a path");
        assert_eq!(due(&mut link), [90], "{to}");
    }
}

/// A schedule counts from the link's zero, from `begin` where it waits, from the replacement where it came with one.
#[test]
fn a_schedule_counts_from_its_begin() {
    let mut spec = path(&["netem delay 10ms"]);
    spec.schedule = vec![ScheduledChange { stage: 0, depth: 0, change: Change::Set { at: Time(100 * MS), set: delay(40) } }];
    let new = |waits| Link::new(&spec, &path(&[]), &LinkOptions { waits, ..LinkOptions::default() }).expect("a path");
    let delays = |link: &mut Link| {
        [50, 150, 550, 650].map(|ms| {
            arrive(link, ms);
            departures(link, Time((ms + 49) * MS))[0].1 .0 / MS - ms
        })
    };
    assert_eq!(delays(&mut new(false)), [10, 40, 40, 40]);
    assert_eq!(delays(&mut new(true)), [10, 10, 10, 10]);
    let mut begun = new(true);
    begun.begin(Time(500 * MS));
    assert_eq!(delays(&mut begun), [10, 10, 10, 40]);
    let mut replaced = link(&["netem delay 90ms"], &LinkOptions::default());
    replaced.replace(Time(500 * MS), Direction::Forward, &spec).expect("a path");
    arrive(&mut replaced, 550);
    arrive(&mut replaced, 650);
    assert_eq!(due(&mut replaced), [560, 690]);
}

/// The log has one end for each packet, wherever super-packets are cut: before the path, behind the host, or in a queue that damages them.
#[test]
fn every_packet_has_one_end() {
    let words = ["netem delay 5ms 1ms loss 2% corrupt 20%", "tbf rate 40mbit burst 6056 limit 50000", "htb rate 30mbit; fq_codel limit 60"];
    for whole in [Whole::Nowhere, Whole::AtHost, Whole::Everywhere] {
        let mut link = link(&words, &LinkOptions { whole, capture: Some(0), seed: 4, ..LinkOptions::default() });
        for n in 0..200 {
            link.arrive(Time(n * MS), Direction::Forward, &Build::full(1 + n as usize % 20).frame());
        }
        drop(departures(&mut link, END));
        let log = link.log(Direction::Forward).expect("a log");
        let mut ends: Vec<u64> = log.events.iter().map(|e| e.number).collect();
        ends.sort_unstable();
        assert_eq!(ends, (0..log.packets.len() as u64).collect::<Vec<_>>(), "{whole:?}");
        let t = link.totals(Direction::Forward);
        assert!(t.drops.loss > 0 && t.drops.total() > t.drops.loss && t.corrupted > 0, "{whole:?} {t:?}");
    }
}

/// Whatever comes and changes, no packet is lost uncounted and nothing leaves before it came.
#[test]
fn no_packet_is_lost_uncounted() {
    for seed in 0..60 {
        let mut random = Stream::new(seed, "changes");
        let example = |random: &mut Stream| REGISTRY[random.below(REGISTRY.len() as u32) as usize].example;
        let stages: Vec<&str> = (0..random.below(4)).map(|_| example(&mut random)).collect();
        let mut spec = path(&stages);
        spec.stages.iter_mut().for_each(|s| s.at = if random.below(2) == 0 { tcpscape_path::Host::Router } else { s.at });
        let options = LinkOptions { seed, merge: seed % 2 == 0, capture: Some(0), ..LinkOptions::default() };
        let mut link = Link::new(&spec, &path(&["netem delay 3ms 3ms"]), &options).expect("a path");
        let mut now = 0;
        for _ in 0..300 {
            now += u64::from(random.below(3_000_000));
            let direction = Direction::BOTH[random.below(2) as usize];
            match random.below(40) {
                0 => link.replace(Time(now), direction, &path(&[example(&mut random)])).expect("a path"),
                1 => drop(link.change(Time(now), direction, 0, 0, &Patch { rate: Some(Rate(1_000_000)), ..Patch::default() })),
                2 => drop(link.change(Time(now), direction, 0, 0, &Patch { outage: Some(random.below(2) == 0), ..Patch::default() })),
                _ => {
                    let n = 1 + random.below(44) as usize;
                    let b = if random.below(2) == 0 { Build::full(n) } else { Build::default() };
                    link.arrive(Time(now), direction, &Build { ecn: random.below(4) as u8, ..b }.frame());
                }
            }
            let until = Time(now + u64::from(random.below(2_000_000)));
            while let Some(d) = link.depart(until) {
                assert!(d.due <= until && d.arrived <= d.due, "{d:?}");
            }
        }
        drop(departures(&mut link, END));
        for direction in Direction::BOTH {
            let t = link.totals(direction);
            let lost = t.drops.total() + t.drops_replaced + t.drops_damaged;
            assert_eq!(t.packets_in + t.duplicated, t.packets_out + lost + t.packets_held, "{seed} {direction} {stages:?}: {t:#?}");
            let log = link.log(direction).expect("a log");
            let left = log.events.iter().filter(|e| matches!(e.fate, log::Fate::Left { .. })).count() as u64;
            assert_eq!((log.packets.len() as u64, left, log.beyond), (t.packets_in, t.packets_out, 0));
        }
    }
}
