//! A sender, an emulator's namespace and a receiver on real veth pairs, for tests that need no privilege.
//!
//! A process of several threads cannot enter a user namespace, and a test runs in one. So a test starts its own program again, which
//! unshares before it becomes that program, and runs there what it is about.

#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tcpscape_live::emulator::{device, sys, Port, PortError};
use tcpscape_testbed::netlink::{self, Batch, Socket, CREATE};
use tcpscape_testbed::network::layout::Direction;
use tcpscape_testbed::network::links;
use tcpscape_testbed::network::offload::Offload;

/// Says in which test the program runs inside its namespaces.
const INSIDE: &str = "TCPSCAPE_TEST_INSIDE";
/// How long a test may take inside, s.
const LIMIT_S: u32 = 60;

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
        Err(e) => println!("skipped {test}: no user and network namespace here: {e}"),
    }
}

/// Sender, middle and receiver.
pub struct Wire {
    pub sender: OwnedFd,
    pub middle: OwnedFd,
    pub receiver: OwnedFd,
}

/// Version 6 addresses, of the sender and of the receiver.
const V6: [Ipv6Addr; 2] = [Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 3)];
/// `RTM_NEWADDR`, `IFA_LOCAL`, `IFA_ADDRESS`, `IFA_F_NODAD`. Source: linux/rtnetlink.h, linux/if_addr.h.
const NEW_ADDRESS: u16 = 20;
const LOCAL: u16 = 2;
const ADDRESS: u16 = 1;
const AT_ONCE: u8 = 2;

fn name_v6(b: &mut Batch, direction: Direction, address: Ipv6Addr) {
    let mut header = [libc::AF_INET6 as u8, 64, AT_ONCE, 0, 0, 0, 0, 0];
    header[4..8].copy_from_slice(&links::device(direction).to_ne_bytes());
    b.message(NEW_ADDRESS, CREATE, &header);
    b.put(LOCAL, &address.octets());
    b.put(ADDRESS, &address.octets());
}

impl Wire {
    /// Two veth pairs and three namespaces: sender `fwd`, middle `rev` and `fwd`, receiver `rev`.
    pub fn new(mtu: u32, super_packets: bool) -> Wire {
        let host = || (netlink::new_namespace().unwrap(), Socket::open().unwrap());
        // Devices are made from the near end; the thread ends in the receiver's namespace.
        let (mut sender, mut middle, mut receiver) = (host(), host(), host());
        let send = |socket: &mut Socket, fill: &dyn Fn(&mut Batch)| {
            let mut b = Batch::new();
            fill(&mut b);
            socket.request(&mut b).unwrap();
        };
        let (far, farther) = (middle.0.as_raw_fd(), receiver.0.as_raw_fd());
        send(&mut sender.1, &|b| {
            links::make(b, 0, mtu, far);
            links::name(b, 0, Direction::Forward);
            name_v6(b, Direction::Forward, V6[0]);
        });
        send(&mut middle.1, &|b| {
            links::raise(b, Direction::Reverse, false);
            links::make(b, 1, mtu, farther);
        });
        send(&mut receiver.1, &|b| {
            links::raise(b, Direction::Reverse, false);
            links::name(b, 0, Direction::Reverse);
            name_v6(b, Direction::Reverse, V6[1]);
        });
        let devices: [(&mut Socket, &[Direction]); 3] = [
            (&mut sender.1, &[Direction::Forward]),
            (&mut middle.1, &[Direction::Forward, Direction::Reverse]),
            (&mut receiver.1, &[Direction::Reverse]),
        ];
        for (socket, directions) in devices {
            while !links::ready(socket).unwrap() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            for (&d, offload) in directions.iter().flat_map(|d| Offload::ALL.map(|o| (d, o))) {
                offload.set(socket.as_fd(), links::device_name(d), super_packets).unwrap();
            }
        }
        Wire { sender: sender.0, middle: middle.0, receiver: receiver.0 }
    }

    /// The emulator's ports: the sender's side, the receiver's side.
    pub fn ports(&self, super_packets: bool) -> [Port; 2] {
        ["rev", "fwd"].map(|device| Port::packet(self.middle.as_fd(), device, super_packets).unwrap())
    }

    /// The receiver's address.
    pub fn address(v6: bool) -> IpAddr {
        if v6 {
            V6[1].into()
        } else {
            links::address(0, Direction::Reverse).into()
        }
    }
}

/// Two namespaces with a TUN device each: sender, receiver, and the emulator's ports.
pub fn tuns(mtu: u32, super_packets: bool) -> Result<(OwnedFd, OwnedFd, [Port; 2]), PortError> {
    let end = |direction| {
        let namespace = netlink::new_namespace().unwrap();
        let port = Port::tun(namespace.as_fd(), links::device_name(direction), mtu, super_packets)?;
        let mut b = Batch::new();
        let number = device::index(links::device_name(direction)).unwrap();
        let mut header = [libc::AF_INET as u8, 31, 0, 0, 0, 0, 0, 0];
        header[4..8].copy_from_slice(&number.to_ne_bytes());
        b.message(NEW_ADDRESS, CREATE, &header);
        let address: Ipv4Addr = links::address(0, direction);
        b.put(LOCAL, &address.octets());
        b.put(ADDRESS, &address.octets());
        Socket::open().unwrap().request(&mut b).unwrap();
        Ok((namespace, port))
    };
    let ((sender, near), (receiver, far)) = (end(Direction::Forward)?, end(Direction::Reverse)?);
    Ok((sender, receiver, [near, far]))
}

/// Does something in a namespace, in a thread of its own.
pub fn within<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            sys::enter(namespace).unwrap();
            work()
        });
        inside.join().unwrap()
    })
}
