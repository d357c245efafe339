//! Same seed, same decisions, on a real kernel's packets: what the emulator did to each packet of a trial is what the simulator's pipe does to
//! packets of the same sizes at the same times.

#[allow(dead_code)] // what the tests of the emulator need besides
mod support;

use std::net::UdpSocket;
use std::time::Duration;
use support::{address, isolated, ports, wire, within};
use tcpscape_base::{Edt, Packet, Time};
use tcpscape_live::emulator::{Emulator, EmulatorOptions};
use tcpscape_live::link::log::{Fate, Log};
use tcpscape_live::link::{Link, LinkOptions};
use tcpscape_path::{parse_tc, Cause, Direction, Host, PathSpec, Pipe, NETWORK_STREAMS};

const SEED: u64 = 5;
const PORT: u16 = 5001;

/// What becomes of packets: when they are due and in which order, and why they are dropped.
#[derive(Debug, PartialEq)]
struct Decisions {
    left: Vec<(u64, Time)>,
    dropped: Vec<(u64, Cause)>,
}

fn path(words: &str) -> PathSpec {
    let mut spec = PathSpec::of([parse_tc(words).unwrap()]);
    spec.stages[0].at = Host::Router;
    spec
}

fn in_the_log(log: &Log) -> Decisions {
    let mut d = Decisions { left: Vec::new(), dropped: Vec::new() };
    for e in &log.events {
        match e.fate {
            Fate::Left { due, .. } => d.left.push((e.number, due)),
            Fate::Dropped { cause, .. } => d.dropped.push((e.number, cause)),
            _ => panic!("{e:?}"),
        }
    }
    d
}

/// The same arrivals through the simulator's pipe.
fn in_the_simulator(log: &Log, spec: &PathSpec) -> Decisions {
    let mut pipe: Pipe<u64> = Pipe::new(spec, SEED, NETWORK_STREAMS);
    pipe.track_drops();
    let mut left = Vec::new();
    let mut take = |pipe: &mut Pipe<u64>, until: Time| {
        while let Some(t) = pipe.next_event().filter(|t| *t <= until) {
            left.extend(pipe.pop(t).map(|p| (p.id, t)));
        }
    };
    for (id, a) in (0..).zip(&log.packets) {
        take(&mut pipe, Time(a.at.0.saturating_sub(1)));
        pipe.push(a.at, Packet { id, flow: a.flow, size: a.size, segs: 1, edt: Some(Edt::at(a.at)), body: id, ..Packet::default() });
    }
    let last = log.packets.last().map_or(Time::ZERO, |a| a.at);
    take(&mut pipe, Time(last.0 + 2_000_000_000));
    let dropped = pipe.drain_drops().map(|d| (d.id, d.cause)).collect();
    Decisions { left, dropped }
}

/// Datagrams of many sizes from three sockets, in bursts.
fn send(wire: &tcpscape_testbed::network::wire::Wire) {
    let to = (address(false), PORT);
    let _receiver = within(wire.receiver(), || UdpSocket::bind(to).unwrap());
    let sockets = within(wire.sender(), || [0, 1, 2].map(|_| UdpSocket::bind("0.0.0.0:0").unwrap()));
    // The neighbour's address is asked for across the path; meanwhile the kernel keeps only some packets.
    sockets[0].send_to(&[0], to).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    for n in 0..3_000usize {
        let bytes = [0; 1_472];
        sockets[n % 3].send_to(&bytes[..1 + n * 577 % bytes.len()], to).unwrap();
        if n % 25 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    // Everything is out when the longest delay is over.
    std::thread::sleep(Duration::from_millis(400));
}

#[test]
fn the_emulator_decides_about_real_packets_as_the_simulator_does() {
    isolated("the_emulator_decides_about_real_packets_as_the_simulator_does", || {
        for words in [
            "netem delay 25ms 8ms distribution normal loss 3% limit 100000",
            "netem delay 5ms reorder 20% gap 3 duplicate 2% limit 100000",
            "tbf rate 30mbit burst 6056 limit 20000",
            "htb rate 30mbit; fq_codel limit 40",
            "jitter delay 20ms 5ms order correlated limit 100000",
        ] {
            let wire = wire(1500, false);
            let spec = path(words);
            let options = LinkOptions { seed: SEED, capture: Some(0), ..LinkOptions::default() };
            let link = Link::new(&spec, &path("netem delay 1ms limit 1000"), &options).unwrap();
            let running = Emulator::start(link, ports(&wire, false), &EmulatorOptions::default()).unwrap();
            send(&wire);
            let (_, link) = running.stop();
            let log = link.log(Direction::Forward).unwrap();
            let (real, mut simulated) = (in_the_log(log), in_the_simulator(log, &spec));
            // A question for a neighbour's address that comes at the very end is still inside when the emulator stops.
            let last = real.left.iter().map(|(_, due)| *due).max().unwrap();
            let inside = simulated.left.iter().filter(|(_, due)| *due > last).count();
            assert!(inside <= 2, "{words}: {inside} were inside when the emulator stopped, 400 ms after the last datagram");
            simulated.left.retain(|(_, due)| *due <= last);
            assert!(log.packets.len() >= 3_000 && real.left.len() > 1_000, "{words}: {} came", log.packets.len());
            let first = real.left.iter().zip(&simulated.left).position(|(a, b)| a != b);
            assert!(real == simulated, "{words}: from the {first:?}th that left, {} and {} left", real.left.len(), simulated.left.len());
        }
    });
}
