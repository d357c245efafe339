//! A port of the emulator: a device's frames in, frames out in order, and the account of what got lost on the way.

use super::device::Counters;
use super::outbox::{Outbox, Waiting};
use super::packet::{Arrival, PacketPort};
use super::report::{DirectionReport, Losses};
use super::sys;
use crate::link::VNET_HEADER;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use tcpscape_base::{Histogram, Time};

/// Why a port could not be opened: one line for a user.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// AF_PACKET on a device.
    #[error("packets of device {device}: {error}{}", hint(.error))]
    Packet {
        /// The device.
        device: String,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The namespace.
    #[error("network namespace: {0}")]
    Namespace(io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; it takes CAP_NET_RAW in the device's network namespace",
        _ => "",
    }
}

/// Where frames come from and go to: a device.
pub struct Port {
    packets: PacketPort,
    counters: Counters,
    drops_before: u64,
    outbox: Outbox,
    /// A frame was refused for now: no sending before this moment of CLOCK_MONOTONIC, ns.
    pause_until: Option<u64>,
    account: Account,
}

/// What happened to the frames that this port sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    lateness: Histogram,
    released: u64,
    frames: u64,
    bytes: u64,
    retries: u64,
    overfull: u64,
    refused: BTreeMap<i32, u64>,
    largest_batch: u64,
}

/// What may still be done at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Frames.
    pub frames: usize,
    /// Bytes; the last frame may exceed it.
    pub bytes: usize,
}

impl Bound {
    /// A frame of so many bytes was one of them.
    pub(super) fn take(&mut self, bytes: usize) {
        self.frames = self.frames.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
    pub(super) fn allows_more(self) -> bool {
        self.frames > 0 && self.bytes > 0
    }
}

/// How long to wait after the kernel had no room for a frame, ns.
const PAUSE: u64 = 100_000;
/// A frame that still finds no room this long after it was due is lost, ns.
const PATIENCE: u64 = 500_000_000;

impl Port {
    /// The frames of a device in a namespace, with `virtio_net_hdr`: AF_PACKET. `super_packets` says whether frames larger than the MTU
    /// (GSO) may come; without, there is room for more frames.
    pub fn open(namespace: BorrowedFd<'_>, device: &str, super_packets: bool) -> Result<Port, PortError> {
        inside(namespace, || {
            let open = || Ok((PacketPort::open(device, super_packets)?, Counters::open(device)?));
            open().map_err(|error| PortError::Packet { device: device.to_owned(), error }).map(Port::new)
        })
    }

    fn new((packets, mut counters): (PacketPort, Counters)) -> Port {
        let drops_before = counters.drops();
        let (outbox, account) = (Outbox::default(), Account::default());
        Port { packets, counters, drops_before, outbox, pause_until: None, account }
    }

    /// Frames are handed over ahead of time and wait for their departure in the device's queue ([`PacketPort::time_departures`]).
    pub fn time_departures(&mut self) -> io::Result<()> {
        self.packets.time_departures()
    }

    /// Whether they are.
    pub(super) fn is_timed(&self) -> bool {
        self.packets.is_timed()
    }

    /// What becomes readable when a frame arrives.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }

    /// Hands over frames that have arrived, within a bound: how many, and whether there may be more.
    pub(super) fn receive(&mut self, mut bound: Bound, mut take: impl FnMut(Arrival<'_>)) -> (u64, bool) {
        let mut n = 0;
        let mut each = |arrival: Arrival<'_>| {
            bound.take(arrival.frame.len());
            take(arrival);
            n += 1;
            bound.allows_more()
        };
        let more = self.packets.receive(&mut each);
        (n, more)
    }

    /// Lets a frame leave at the next [`Port::flush`].
    pub(super) fn queue(&mut self, due: Time, packets: u16, frame: &[u8]) {
        if !self.outbox.push(due, packets, frame) {
            self.account.overfull += 1;
        }
    }

    /// Whether so much waits that it should be sent before more is queued.
    pub(super) fn is_loaded(&self) -> bool {
        self.outbox.len() >= FRAMES || self.outbox.bytes() >= LOAD
    }

    /// Sends what waits, in order, as far as the kernel takes it. `zero` is CLOCK_MONOTONIC at time 0, ns; `now` is what it shows, None where
    /// it is to be read.
    pub(super) fn flush(&mut self, zero: u64, now: Option<u64>) {
        let clock = || now.unwrap_or_else(sys::now);
        if self.outbox.is_empty() || self.pause_until.is_some_and(|t| clock() < t) {
            return;
        }
        self.pause_until = None;
        let mut before = clock();
        while !self.outbox.is_empty() && self.pause_until.is_none() {
            let (frames, bytes) = self.outbox.waiting();
            let sent = self.packets.send(frames, bytes, zero);
            let after = clock();
            match sent {
                Ok(n) => {
                    self.account.sent(&frames[..n], before.saturating_sub(zero), after.saturating_sub(zero));
                    self.outbox.remove(n);
                }
                Err(e) => self.refused(&e, after, zero),
            }
            before = after;
        }
    }

    /// The first frame that waits was refused: it is tried again, unless that is hopeless.
    fn refused(&mut self, error: &io::Error, now: u64, zero: u64) {
        let errno = error.raw_os_error().unwrap_or(0);
        if errno == libc::EINTR {
            return;
        }
        let late = now.saturating_sub(zero + self.outbox.waiting().0[0].due.0);
        if matches!(errno, libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) && late < PATIENCE {
            self.account.retries += 1;
            self.pause_until = Some(now + PAUSE);
            return;
        }
        *self.account.refused.entry(errno).or_default() += 1;
        self.outbox.remove(1);
    }

    /// When sending is worth a try again, CLOCK_MONOTONIC, ns.
    pub(super) fn pause_until(&self) -> Option<u64> {
        self.pause_until
    }

    /// The account of what this port sent; the losses at its entrance concern the other direction.
    pub(super) fn report(&mut self) -> (DirectionReport, EntranceLosses) {
        let dropped = self.counters.drops().saturating_sub(self.drops_before);
        let losses = EntranceLosses { overflows: self.packets.overflows(), too_large: self.packets.too_large() };
        (self.account.report(dropped), losses)
    }

    /// Most frames sent with one call.
    pub(super) fn largest_batch(&self) -> u64 {
        self.account.largest_batch
    }
}

/// So many frames or bytes wait at most before they are sent: the first would only become late while more are collected.
const FRAMES: usize = 8;
const LOAD: usize = 128 << 10;

/// Frames that were lost before the emulator saw them.
pub(super) struct EntranceLosses {
    /// For want of room.
    pub overflows: u64,
    /// Because they were larger than the port expects.
    pub too_large: u64,
}

impl Account {
    /// Counts frames that one call sent between two moments, ns since zero. The call works on them one after the other, and what the
    /// receiving host does with a frame is a part of it, so each is taken to have left in the middle of its share of the time.
    fn sent(&mut self, frames: &[Waiting], before: u64, after: u64) {
        let n = frames.len() as u64;
        for (i, f) in (1..).zip(frames) {
            let left = before + (after - before) * (2 * i - 1) / (2 * n);
            let late_us = left.saturating_sub(f.due.0) / 1000;
            self.lateness.add_many(u32::try_from(late_us).unwrap_or(u32::MAX), u32::from(f.packets));
            self.released += u64::from(f.packets);
            self.bytes += (f.length - VNET_HEADER) as u64;
        }
        self.frames += n;
        self.largest_batch = self.largest_batch.max(n);
    }

    fn report(&self, device: u64) -> DirectionReport {
        let refused = self.refused.iter().map(|(&errno, &n)| (io::Error::from_raw_os_error(errno).to_string(), n)).collect();
        let unasked = Losses { entrance: 0, too_large: 0, no_room: self.overfull, device, refused };
        DirectionReport {
            lateness: (&self.lateness).into(),
            frames_in: 0,
            released: self.released,
            frames_out: self.frames,
            bytes_out: self.bytes,
            retries: self.retries,
            unasked,
        }
    }
}

/// Runs `work` in a network namespace, in a thread of its own: the calling one stays where it is, also where it could not return.
fn inside<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> Result<T, PortError> + Send) -> Result<T, PortError> {
    let there = || tcpscape_testbed::sys::enter(namespace).map_err(PortError::Namespace).and_then(|()| work());
    std::thread::scope(|scope| scope.spawn(there).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_call_leave_one_after_the_other() {
        let mut account = Account::default();
        let due = Time(1_000_000);
        let frames = [Waiting { at: 0, length: 110, due, packets: 2 }; 4];
        account.sent(&frames, 1_020_000, 1_060_000);
        assert_eq!((account.lateness.min(), account.lateness.max(), account.lateness.count()), (25, 55, 8));
        assert_eq!((account.released, account.frames, account.bytes), (8, 4, 400));
    }

    #[test]
    fn refusals_are_named() {
        let mut account = Account::default();
        account.refused.insert(libc::EINVAL, 3);
        let report = account.report(2);
        assert_eq!(report.unasked.refused["Invalid argument (os error 22)"], 3);
        assert_eq!(report.unasked.total(), 5);
    }
}
