//! A shooting range: two hosts, one link, the sender's queue under test, datagrams with numbers.
//!
//! The kernel stamps each datagram when it leaves the link, so it does not matter when the reader runs. It is built of the
//! same links as a trial's network. One thread does everything; it returns to the namespace in which it was.

use crate::netlink::{Batch, NetlinkError, Socket};
use crate::network::host::{wait_until_ready, Host};
use crate::network::{links, TestbedError};
use crate::qdisc::{self, stats, Extra, Place};
use crate::sys;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tcpscape_path::{Direction, QdiscSpec};

/// The receiver's port; any would do, nobody else is there.
const PORT: u16 = 7000;
/// Size of packets on the link, B.
const MTU: u32 = 1500;
/// Datagrams of one volley: small ones all fit into a receive buffer of the default size.
const VOLLEY: usize = 250;
/// A reader looks at the queue's counters this often, ms.
const LOOK: Duration = Duration::from_millis(2);
/// A datagram that has not come this long after the last one is lost, ns.
const LOST: u64 = 300_000_000;
/// Bytes in front of a datagram's own on the link: Ethernet, IPv4, UDP.
pub const HEADERS: usize = 14 + 20 + 8;

/// Both ends of the link.
pub struct Range {
    netlink: Socket,
    sender: UdpSocket,
    receiver: UdpSocket,
    next: u32,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its number among those that were sent, from 0.
    pub number: usize,
    /// Time from sending to leaving the link, ns.
    pub delay: u64,
    /// When it left the link, ns of the wall clock.
    pub at: u64,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// The hosts could not be made.
    #[error("{0}")]
    Network(#[from] TestbedError),
    /// The kernel refused a message; of a queue that it has not, the error is `NotFound`.
    #[error("{0}")]
    Refused(#[from] NetlinkError),
    /// A system call failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl RangeError {
    /// Whether the kernel does not have the queue.
    pub fn is_missing(&self) -> bool {
        matches!(self, RangeError::Refused(NetlinkError::Refused { error, .. }) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl Range {
    /// Builds the two hosts and the link, without a queue. Needs the right to make network namespaces.
    pub fn build() -> Result<Range, RangeError> {
        let home = sys::namespace()?;
        let built = Range::assemble();
        sys::enter(home.as_fd())?;
        built
    }

    fn assemble() -> Result<Range, RangeError> {
        let mut hosts = [Host::new()?, Host::new()?];
        let [far, near] = &mut hosts;
        let (ports, mut batch) = (links::ports(0), Batch::new());
        links::make(&mut batch, &ports, MTU, far.namespace.as_raw_fd());
        links::name(&mut batch, &ports[0]);
        links::introduce(&mut batch, &ports[0], &ports[1]);
        near.socket.request(&mut batch)?;
        batch.clear();
        links::raise(&mut batch, ports[1].number, false);
        links::name(&mut batch, &ports[1]);
        far.socket.request(&mut batch)?;
        let sender = UdpSocket::bind((links::address(0, Direction::Forward), 0))?;
        wait_until_ready(&mut hosts)?;
        let [far, near] = hosts;
        sys::enter(far.namespace.as_fd())?;
        let receiver = UdpSocket::bind((links::address(0, Direction::Reverse), PORT))?;
        receiver.set_read_timeout(Some(LOOK))?;
        sys::stamp(receiver.as_fd())?;
        sender.connect(receiver.local_addr()?)?;
        Ok(Range { netlink: near.socket, sender, receiver, next: 0 })
    }

    /// Puts a new queue, with its children, at the sender's egress in place of the one that is there.
    pub fn install(&mut self, spec: &QdiscSpec, seed: Option<u64>) -> Result<(), RangeError> {
        let device = links::device(Direction::Forward);
        let mut batch = Batch::new();
        qdisc::remove(&mut batch, device);
        // There may be none that could be removed.
        let _ = self.netlink.request(&mut batch);
        batch.clear();
        let mut queue = Some(spec);
        let mut depth = 0;
        while let Some(q) = queue {
            qdisc::encode(&mut batch, q, Place::at(device, depth, true), Extra { seed });
            (queue, depth) = (q.child(), depth + 1);
        }
        Ok(self.netlink.request(&mut batch)?)
    }

    /// Sends `count` datagrams of `bytes` as fast as it can, and says which arrived, in the order in which they did.
    pub fn fire(&mut self, count: usize, bytes: usize) -> Result<Vec<Hit>, RangeError> {
        let mut hits = Vec::with_capacity(count);
        let mut sent = 0;
        while sent < count {
            let volley = VOLLEY.min(count - sent);
            self.volley(sent, volley, bytes, &mut hits)?;
            sent += volley;
        }
        Ok(hits)
    }

    fn volley(&mut self, from: usize, count: usize, bytes: usize, hits: &mut Vec<Hit>) -> Result<(), RangeError> {
        let first = self.next;
        self.next = first.wrapping_add(count as u32);
        let dropped_before = self.dropped()?;
        let mut datagram = vec![0; bytes.max(4)];
        let mut sent = Vec::with_capacity(count);
        for i in 0..count as u32 {
            datagram[..4].copy_from_slice(&first.wrapping_add(i).to_be_bytes());
            sent.push(wall_clock());
            self.sender.send(&datagram)?;
        }
        let (mut seen, mut last) = (0, sys::now());
        // Duplicates may make up for the lost, and come first: then the rest is waited for.
        while sys::now() < last + LOST {
            if let Some(stamp) = sys::next_packet(self.receiver.as_fd(), &mut datagram) {
                last = sys::now();
                let number = u32::from_be_bytes([datagram[0], datagram[1], datagram[2], datagram[3]]).wrapping_sub(first) as usize;
                if let Some(&start) = sent.get(number) {
                    seen += 1;
                    hits.push(Hit { number: from + number, delay: stamp.at.saturating_sub(start), at: stamp.at });
                }
            } else if self.is_empty()? && seen as u64 + (self.dropped()? - dropped_before) >= count as u64 {
                break;
            }
        }
        Ok(())
    }

    /// Packets that the sender's queues dropped, by their own counters.
    pub fn dropped(&mut self) -> Result<u64, RangeError> {
        // A parent counts its child's drops too.
        self.counters(|sum: u64, c| sum.max(u64::from(c.drops)))
    }

    fn is_empty(&mut self) -> Result<bool, RangeError> {
        Ok(self.counters(|sum: u64, c| sum + u64::from(c.backlog_packets))? == 0)
    }

    fn counters(&mut self, add: impl Fn(u64, stats::Counters) -> u64) -> Result<u64, RangeError> {
        let mut sum = 0;
        let device = links::device(Direction::Forward);
        stats::read(&mut self.netlink, |c| {
            if c.device == device {
                sum = add(sum, c);
            }
        })?;
        Ok(sum)
    }
}

/// The wall clock, by which the kernel stamps, ns.
fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}
