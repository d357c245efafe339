//! A sender, an emulator's namespace and a receiver on real veth pairs, for tests that need no privilege.
//!
//! A process of several threads cannot enter a user namespace, and a test runs in one. So a test starts its own program again, which
//! unshares before it becomes that program, and runs there what it is about.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tcpscape_live::emulator::Port;
use tcpscape_path::Direction;
use tcpscape_plan::Plan;
use tcpscape_testbed::netlink::{Batch, Socket};
use tcpscape_testbed::network::links;
use tcpscape_testbed::network::wire::{End, Wire};

/// Says in which test the program runs inside its namespaces.
const INSIDE: &str = "TCPSCAPE_TEST_INSIDE";
/// How long a test may take inside, s: only what hangs takes that long.
const LIMIT_S: u32 = 300;

/// Runs a test's body in a new user and network namespace. Prints a reason and does nothing where the machine cannot.
pub fn isolated(test: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        // SAFETY: an integer argument. A test that hangs ends.
        unsafe { libc::alarm(LIMIT_S) };
        return body();
    }
    // SAFETY: no arguments.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mut program = Command::new(std::env::current_exe().expect("the program of this test"));
    program.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(INSIDE, test);
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ];
    let enter = move || {
        // SAFETY: integer arguments; the process has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        maps.iter().try_for_each(|(file, text)| std::fs::write(file, text))
    };
    // SAFETY: between fork and exec it makes system calls and opens files; no other thread holds a lock that it needs.
    unsafe { program.pre_exec(enter) };
    match program.status() {
        Ok(status) => assert!(status.success(), "{test} failed inside its namespaces: {status}"),
        Err(e) => tcpscape_base::skip(format!("{test}: no user and network namespace here: {e}")),
    }
}

/// Version 6 addresses, of the sender and of the receiver.
const V6: [Ipv6Addr; 2] = [Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 3)];
fn plan(mtu: u32, super_packets: bool) -> Plan {
    let mut plan = Plan::from_json(r#"{"duration_ns": 1000000000, "flows": [{"cca": "cubic"}]}"#).unwrap();
    (plan.mtu, plan.offload) = (mtu, super_packets);
    plan
}

/// Sender, middle and receiver, joined by veth pairs, with addresses of both versions.
pub fn wire(mtu: u32, super_packets: bool) -> Wire {
    let settings = BTreeMap::from([("net.ipv6.conf.default.disable_ipv6".to_owned(), "0".to_owned())]);
    let wire = Wire::build(&plan(mtu, super_packets), &settings).unwrap();
    for (namespace, direction, address) in [(wire.sender(), Direction::Forward, V6[0]), (wire.receiver(), Direction::Reverse, V6[1])] {
        let mut batch = Batch::new();
        links::assign(&mut batch, links::device(direction), address, 64);
        within(namespace, || Socket::open().unwrap().request(&mut batch).unwrap());
    }
    wire
}

/// The emulator's ports on the middle's devices.
pub fn ports(wire: &Wire, super_packets: bool) -> [Port; 2] {
    Wire::MIDDLE.map(|device| Port::open(wire.middle(), device, super_packets).unwrap())
}

/// The receiver's address.
pub fn address(v6: bool) -> IpAddr {
    if v6 {
        V6[1].into()
    } else {
        End::Receiver.address().into()
    }
}

/// Does something in a namespace, in a thread of its own.
pub fn within<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            tcpscape_testbed::sys::enter(namespace).unwrap();
            work()
        });
        inside.join().unwrap()
    })
}
