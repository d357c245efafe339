//! Hosts whose path a program makes; here there is none. Without the privilege
//! to make namespaces, a test says so and passes, unless it must run ([`tcpscape_base::skip`]).

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use tcpscape_path::PathSpec;
use tcpscape_plan::Plan;
use tcpscape_testbed::network::wire::{host_address, End, Others, Wire, ROUTER};
use tcpscape_testbed::network::TestbedError;
use tcpscape_testbed::sys;

fn plan() -> Plan {
    let mut plan = Plan::from_json(r#"{"duration_ns": 2000000000, "flows": [{"cca": "cubic"}]}"#).unwrap();
    (plan.forward, plan.reverse) = (PathSpec::default(), PathSpec::default());
    plan
}

/// None, and the reason said, where this machine cannot.
fn allowed<T>(outcome: Result<T, TestbedError>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(e) if e.to_string().contains("not permitted") => {
            tcpscape_base::skip(e);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Does something in a namespace, on a thread of its own.
fn within<T: Send>(namespace: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| s.spawn(|| sys::enter(namespace).map(|()| act()).unwrap()).join().unwrap())
}

fn setting(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_middle_has_two_devices_without_addresses_and_lets_nothing_pass() {
    let Some(mut wire) = allowed(Wire::build(&plan(), &BTreeMap::new())) else { return };
    let middle = wire.middle();
    let devices = within(middle, || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    assert!(Wire::MIDDLE.iter().all(|d| devices.contains(&format!("{d}:"))), "{devices}");
    let addresses = within(middle, || std::fs::read_to_string("/proc/thread-self/net/fib_trie").unwrap());
    assert!(!addresses.contains("10.77."), "{addresses}");
    let refused = within(wire.sender(), || {
        TcpStream::connect_timeout(&(End::Receiver.address(), 5001).into(), std::time::Duration::from_millis(50)).is_err()
    });
    assert!(refused, "nobody copies frames, and yet there is a connection");
    let local = within(wire.receiver(), || TcpListener::bind(("127.0.0.1", 0)).and_then(|l| TcpStream::connect(l.local_addr()?)).is_ok());
    assert!(local, "loopback is down");
    assert_eq!(wire.faults().unwrap(), Vec::<String>::new());
}

#[test]
fn permanent_neighbours_stand_where_the_plan_has_no_arp() {
    let Some(wire) = allowed(Wire::build(&Plan { arp: false, ..plan() }, &BTreeMap::new())) else { return };
    let table = |namespace| within(namespace, || std::fs::read_to_string("/proc/thread-self/net/arp").unwrap());
    // flags 0x6: complete and permanent
    assert!(table(wire.sender()).contains("10.77.1.3        0x1         0x6         02:77:00:00:02:03"), "{}", table(wire.sender()));
    assert!(table(wire.receiver()).contains("10.77.1.2        0x1         0x6         02:77:00:00:01:02"), "{}", table(wire.receiver()));
    assert_eq!(table(wire.middle()).lines().count(), 1);
}

#[test]
fn a_router_and_further_hosts_answer_on_their_side_of_the_middle() {
    let others = Others { router: true, hosts: 2 };
    let Some(mut wire) = allowed(Wire::with(&Plan { arp: false, ..plan() }, &BTreeMap::new(), others)) else { return };
    let listen = |namespace| within(namespace, || TcpListener::bind(("0.0.0.0", 5001)).unwrap());
    let _listeners = [wire.receiver(), wire.router().unwrap(), wire.host(0).unwrap(), wire.host(1).unwrap()].map(listen);
    let reaches = |namespace, address: std::net::Ipv4Addr| {
        within(namespace, || TcpStream::connect_timeout(&(address, 5001).into(), std::time::Duration::from_millis(500)).is_ok())
    };
    assert!(reaches(wire.sender(), ROUTER));
    assert!(reaches(wire.receiver(), host_address(1)));
    assert!(reaches(wire.host(0).unwrap(), End::Receiver.address()));
    assert!(!reaches(wire.sender(), host_address(0)), "nobody copies frames, and yet there is a connection");
    assert!(wire.host(2).is_none());
    assert_eq!(wire.faults().unwrap(), Vec::<String>::new());
}

#[test]
fn settings_reach_both_ends_and_those_of_the_whole_machine_are_named() {
    let before = setting("core/rmem_max");
    let values = [("net.ipv4.tcp_rmem", "4096 131072 777777"), ("net.core.rmem_max", "7777777"), ("net.ipv4.tcp_nonsense", "1")];
    let values: BTreeMap<String, String> = values.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let Some(wire) = allowed(Wire::build(&plan(), &values)) else { return };
    for end in [wire.sender(), wire.receiver()] {
        assert_eq!(within(end, || setting("ipv4/tcp_rmem")), "4096 131072 777777");
    }
    assert_ne!(within(wire.middle(), || setting("ipv4/tcp_rmem")), "4096 131072 777777");
    assert_eq!(setting("core/rmem_max"), before);
    let [global, unknown] = wire.unset() else { panic!("{:?}", wire.unset()) };
    assert!(global.starts_with(&format!("sysctl net.core.rmem_max = 7777777: it cannot be set here and stays {before};")), "{global}");
    assert!(unknown.starts_with("sysctl net.ipv4.tcp_nonsense = 1: this kernel has no such setting"), "{unknown}");
    let wrong = BTreeMap::from([("net.ipv4.tcp_rmem".to_owned(), "lots".to_owned())]);
    let e = Wire::build(&plan(), &wrong).err().unwrap().to_string();
    assert!(e.starts_with("sysctl net.ipv4.tcp_rmem = lots: "), "{e}");
}

#[test]
fn offloads_are_as_asked() {
    for offload in [false, true] {
        let Some(mut wire) = allowed(Wire::build(&Plan { offload, ..plan() }, &BTreeMap::new())) else { return };
        assert_eq!(wire.faults().unwrap(), Vec::<String>::new());
    }
}
