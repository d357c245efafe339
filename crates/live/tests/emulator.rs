//! Real TCP connections through the emulator, in namespaces that a test makes for itself: every byte arrives, whatever the path does.

mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use support::{address, isolated, ports, wire, within};
use tcpscape_live::emulator::{Emulator, EmulatorOptions, EmulatorReport, Port};
use tcpscape_live::link::{Link, LinkOptions, Totals};
use tcpscape_path::{parse_tc, Direction, Host, PathSpec, StageSpec};
use tcpscape_testbed::network::wire::Wire;

const LISTENS: u16 = 5001;

fn path(words: &str) -> PathSpec {
    PathSpec { stages: vec![StageSpec { qdisc: parse_tc(words).unwrap(), at: Host::Router }], schedule: Vec::new() }
}

fn link(forward: &str, reverse: &str, options: &LinkOptions) -> Link {
    Link::new(&path(forward), &path(reverse), options).unwrap()
}

/// Bytes that repeat nowhere within a window.
fn content(bytes: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let step = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

/// Sends bytes over a connection and compares what arrives with them.
fn transfer(sender: BorrowedFd<'_>, receiver: BorrowedFd<'_>, to: IpAddr, bytes: usize) {
    let data = content(bytes);
    let listener = within(receiver, || TcpListener::bind((to, LISTENS)).unwrap());
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut arrived = Vec::with_capacity(bytes);
            stream.read_to_end(&mut arrived).unwrap();
            arrived
        });
        let mut stream = within(sender, || TcpStream::connect((to, LISTENS)).unwrap());
        stream.write_all(&data).unwrap();
        drop(stream);
        let arrived = reading.join().unwrap();
        assert_eq!(arrived.len(), bytes);
        assert!(arrived == data, "the bytes changed on the way");
    })
}

/// One transfer through a path: the emulator's account and the link's.
fn through(wire: &Wire, ports: [Port; 2], link: Link, v6: bool, bytes: usize) -> (EmulatorReport, [Totals; 2]) {
    let running = Emulator::start(link, ports, &EmulatorOptions::default()).unwrap();
    transfer(wire.sender(), wire.receiver(), address(v6), bytes);
    let (report, link) = running.stop();
    (report, Direction::BOTH.map(|d| link.totals(d)))
}

fn no_unasked_loss(report: &EmulatorReport) {
    assert_eq!((report.forward.unasked.total(), report.reverse.unasked.total()), (0, 0), "{report:?}");
}

#[test]
fn bytes_arrive_over_a_path_that_only_delays() {
    isolated("bytes_arrive_over_a_path_that_only_delays", || {
        let wire = wire(1500, false);
        let link = link("netem delay 5ms limit 100000", "netem delay 5ms limit 100000", &LinkOptions::default());
        let (report, [forward, reverse]) = through(&wire, ports(&wire, false), link, false, 4 << 20);
        no_unasked_loss(&report);
        assert!(forward.packets_in >= (4 << 20) / 1460 && reverse.packets_in > 0, "{forward:?}");
        assert_eq!(report.forward.released, forward.packets_out);
        assert_eq!(report.clock_stepped, 0);
        assert!(forward.delay.min == 5_000_000 && forward.delay.max == 5_000_000, "{forward:?}");
    });
}

/// Whether something shows in a link's account.
type Shows = fn(&Totals) -> bool;

/// What a path does to packets, in tc's words, and how it shows.
const IMPAIRMENTS: [(&str, Shows); 4] = [
    ("netem delay 2ms loss 2% limit 100000", |t| t.drops.loss > 0),
    ("netem delay 3ms 2ms limit 100000", |t| t.reordered > 0),
    ("netem delay 2ms duplicate 3% limit 100000", |t| t.duplicated > 0),
    ("netem delay 2ms corrupt 2% limit 100000", |t| t.corrupted > 0),
];

fn intact_through_every_impairment(mtu: u32, super_packets: bool, v6: bool) {
    let wire = wire(mtu, super_packets);
    for (words, shows) in IMPAIRMENTS {
        let options = LinkOptions { seed: 7, merge: super_packets, ..LinkOptions::default() };
        let link = link(words, "netem delay 2ms limit 100000", &options);
        let bytes = mtu as usize * 700;
        let (report, [forward, _]) = through(&wire, ports(&wire, super_packets), link, v6, bytes);
        assert!(shows(&forward), "{words}: {forward:?}");
        assert!(forward.packets_in >= 700, "{words}: decided by packet of MTU size: {forward:?}");
        assert_eq!(super_packets, report.forward.frames_in < forward.packets_in, "{words}: {report:?}");
        no_unasked_loss(&report);
    }
}

#[test]
fn bytes_arrive_intact_in_packets_of_1500() {
    isolated("bytes_arrive_intact_in_packets_of_1500", || intact_through_every_impairment(1500, false, false));
}

#[test]
fn bytes_arrive_intact_in_super_packets_of_1500() {
    isolated("bytes_arrive_intact_in_super_packets_of_1500", || intact_through_every_impairment(1500, true, false));
}

#[test]
fn bytes_arrive_intact_in_packets_of_9000_and_version_6() {
    isolated("bytes_arrive_intact_in_packets_of_9000_and_version_6", || intact_through_every_impairment(9000, false, true));
}

#[test]
fn bytes_arrive_intact_in_super_packets_of_9000_and_version_6() {
    isolated("bytes_arrive_intact_in_super_packets_of_9000_and_version_6", || intact_through_every_impairment(9000, true, true));
}

#[test]
fn the_link_can_be_asked_while_it_runs() {
    isolated("the_link_can_be_asked_while_it_runs", || {
        let wire = wire(1500, false);
        let both = "netem delay 2ms limit 100000";
        let running = Emulator::start(
            link(both, both, &LinkOptions::default()),
            ports(&wire, false),
            &EmulatorOptions { realtime: false, ..EmulatorOptions::default() },
        )
        .unwrap();
        let before = running.snapshot().unwrap();
        transfer(wire.sender(), wire.receiver(), address(false), 100_000);
        let packets = running.with(|_, link| link.totals(Direction::Forward).packets_in).unwrap();
        let after = running.snapshot().unwrap();
        assert!(packets >= 100_000 / 1460 && after.totals[0].packets_in >= packets && after.at > before.at);
        assert_eq!(after.emulator.conditions.realtime, 0);
        assert!(after.emulator.wakeups > before.emulator.wakeups && after.emulator.cpu_s > before.emulator.cpu_s);
    });
}

#[test]
fn super_packets_where_none_should_be_are_lost_and_said() {
    isolated("super_packets_where_none_should_be_are_lost_and_said", || {
        // The devices' segmentation is on, the ports are for packets of the MTU.
        let wire = wire(1500, true);
        let both = "netem delay 1ms limit 100000";
        let running = Emulator::start(link(both, both, &LinkOptions::default()), ports(&wire, false), &EmulatorOptions::default()).unwrap();
        let to = (address(false), LISTENS);
        let _listener = within(wire.receiver(), || TcpListener::bind(to).unwrap());
        let mut stream = within(wire.sender(), || TcpStream::connect(to).unwrap());
        stream.write_all(&content(20_000)).unwrap();
        while running.snapshot().is_some_and(|now| now.emulator.forward.unasked.too_large == 0) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (report, _) = running.stop();
        assert!(report.forward.unasked.too_large > 0, "{report:?}");
        assert!(report.flags([0, 0]).iter().any(|f| f.contains("as super-packets where none should be")), "{:?}", report.flags([0, 0]));
    });
}

#[test]
fn a_device_that_is_missing_is_named() {
    isolated("a_device_that_is_missing_is_named", || {
        let wire = wire(1500, false);
        let error = Port::open(wire.middle(), "nothing0", false).err().unwrap().to_string();
        assert!(error.contains("nothing0") && error.contains("No such device"), "{error}");
    });
}

#[test]
fn an_idle_emulator_answers_and_ends() {
    isolated("an_idle_emulator_answers_and_ends", || {
        let wire = wire(1500, false);
        for stop in [true, false] {
            let both = "netem delay 2ms limit 100000";
            let running =
                Emulator::start(link(both, both, &LinkOptions::default()), ports(&wire, false), &EmulatorOptions::default()).unwrap();
            // The hosts' own packets are over, and the loop waits for nothing but a command.
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(running.snapshot().is_some());
            assert!(running.with(|now, _| now).is_some_and(|now| now.0 >= 50_000_000));
            if stop {
                assert_eq!(running.stop().0.clock_stepped, 0);
            }
        }
    });
}
