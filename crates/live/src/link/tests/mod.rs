//! The link, on frames built by etherparse.

mod ahead;
mod captures;
mod changes;
mod frames;
mod supers;
mod twins;

use super::*;
use frames::{Build, ETHERNET_ARP};
use tcpscape_base::Stream;
use tcpscape_path::parse_tc;

fn path(words: &[&str]) -> PathSpec {
    PathSpec::of(words.iter().map(|w| parse_tc(w).expect("tc's words")))
}

fn link(forward: &[&str], options: &LinkOptions) -> Link {
    Link::new(&path(forward), &path(&[]), options).expect("a path")
}

/// Everything that leaves until `until`: direction, due time, bytes.
fn departures(link: &mut Link, until: Time) -> Vec<(Direction, Time, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(t) = link.next_event().filter(|t| *t <= until) {
        while let Some(d) = link.depart(t) {
            all.push((d.direction, d.due, d.frame.to_vec()));
        }
    }
    all
}

const MS: u64 = 1_000_000;
const END: Time = Time(3_600_000 * MS);

#[test]
fn frames_leave_unchanged_when_their_delay_is_over() {
    let mut link = Link::new(&path(&["netem delay 25ms"]), &path(&["netem delay 10ms"]), &LinkOptions::default()).unwrap();
    let (data, arp) = (Build::default().frame(), ETHERNET_ARP.to_vec());
    link.arrive(Time(MS), Direction::Forward, &data);
    link.arrive(Time(2 * MS), Direction::Reverse, &arp);
    assert_eq!(link.next_event(), Some(Time(12 * MS)));
    assert!(link.depart(Time(12 * MS - 1)).is_none());
    let out = departures(&mut link, END);
    assert_eq!(out, [(Direction::Reverse, Time(12 * MS), arp), (Direction::Forward, Time(26 * MS), data)]);
    assert_eq!(link.next_event(), None);
    let t = link.totals(Direction::Forward);
    assert_eq!((t.packets_in, t.packets_out, t.packets_held, t.delay.p50), (1, 1, 0, 25 * MS));
}

/// A path without a queue is a wire.
#[test]
fn without_a_queue_frames_leave_at_once() {
    let mut link = link(&[], &LinkOptions::default());
    let data = Build::default().frame();
    link.arrive(Time(5), Direction::Forward, &data);
    link.arrive(Time(5), Direction::Reverse, &data);
    let times: Vec<_> = departures(&mut link, Time(5)).into_iter().map(|d| (d.0, d.1)).collect();
    assert_eq!(times, [(Direction::Forward, Time(5)), (Direction::Reverse, Time(5))]);
}

/// A receive time from before the last event, as a driver's kernel timestamps can be, does not turn the clock back.
#[test]
fn a_belated_arrival_counts_as_the_latest_event() {
    let mut link = link(&["netem delay 1ms rate 10mbit"], &LinkOptions::default());
    let data = Build { payload: 1_448, ..Build::default() }.frame();
    for t in [100, 90, 95] {
        link.arrive(Time(t * MS), Direction::Forward, &data);
    }
    let due: Vec<u64> = departures(&mut link, END).iter().map(|d| d.1 .0 / 1_000).collect();
    assert_eq!((due, link.totals(Direction::Forward).belated), (vec![102_211, 103_422, 104_633], 2));
}

/// Whatever bytes come, nothing panics, and what is not understood passes as it is.
#[test]
fn garbage_passes_unchanged() {
    let mut link = link(&["netem delay 1ms limit 5000"], &LinkOptions::default());
    let mut random = Stream::new(1, "garbage");
    let mut sent = 0;
    for n in 0..2_000u64 {
        let frame: Vec<u8> = (0..random.below(120)).map(|_| random.next_u32() as u8).collect();
        sent += u64::from(frame.len() >= VNET_HEADER);
        link.arrive(Time(n), Direction::Forward, &frame);
    }
    assert_eq!(departures(&mut link, END).len() as u64, link.totals(Direction::Forward).packets_out);
    assert_eq!(link.totals(Direction::Forward).packets_out, sent);
}

/// Frames that are nearly right: bytes of headers changed, ends cut off. Nothing panics, no packet is lost uncounted, and what leaves
/// unchanged is what came.
#[test]
fn damaged_headers_do_no_harm() {
    let mut random = Stream::new(2, "headers");
    let words = ["netem delay 1ms limit 100000 loss 5% ecn corrupt 5% duplicate 2%", "cake bandwidth 10gbit ack-filter memlimit 100000000"];
    let mut cut = 0;
    for round in 0..300 {
        let options = LinkOptions { seed: round, merge: round % 3 == 0, capture: Some(20_000), ..LinkOptions::default() };
        let mut link = link(&words, &options);
        for n in 0..40u64 {
            let (v6, udp) = (random.below(2) == 0, random.below(3) == 0);
            let gso = [0, 1_448][random.below(2) as usize];
            let b = Build { v6, udp, payload: random.below(5_000) as usize, gso, ecn: 2, ..Build::default() };
            let mut frame = b.frame();
            for _ in 0..random.below(4) {
                let place = random.below(90.min(frame.len() as u32)) as usize;
                frame[place] = random.next_u32() as u8;
            }
            if random.below(5) == 0 {
                frame.truncate(random.below(frame.len() as u32) as usize);
            }
            link.arrive(Time(n * MS), Direction::BOTH[(n % 2) as usize], &frame);
        }
        drop(departures(&mut link, END));
        let mut file = Vec::new();
        let about = capture::About { program: "", comment: "", zero: 0 };
        capture::write_pcapng(&mut file, &link, &about).expect("writing to memory");
        for direction in Direction::BOTH {
            let t = link.totals(direction);
            assert_eq!(t.packets_in + t.duplicated, t.packets_out + t.drops.total() + t.drops_damaged + t.packets_held, "{round}: {t:#?}");
            cut += t.packets_in;
        }
    }
    assert!(cut > 300 * 40, "some super-packets were still cut: {cut}");
}
