//! Sleeps that a read or a write follows, again and again, without leaving the kernel in between.
//!
//! What it is: the loop of a paced writer (write, sleep) or a slow reader (sleep, read) as one chain of linked io_uring
//! operations: a poll of a descriptor that never becomes ready with an IORING_OP_LINK_TIMEOUT that ends it (the sleep: a plain
//! IORING_OP_TIMEOUT would wake the waiting thread each time), then IORING_OP_SEND or IORING_OP_RECV. Source: io_uring(7),
//! io_uring_linked_requests(7). Why: in User-Mode Linux a system call costs some 30 µs of real time, most of it in ptrace;
//! 2,000 of them a simulated second would cost more than everything the kernel does. How it differs from nanosleep(2) and
//! send(2): the timer slack is added to the sleep, since the ring's timers have none; a write that finds no room waits by
//! polling, as a non-blocking program would.

#![allow(unsafe_code)]

use crate::sys::check;
use io_uring::types::{Fd, Timespec};
use io_uring::{opcode, squeue, IoUring};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Sleeps in one chain.
const PAIRS: usize = 256;
/// Operations for each sleep.
const STEPS: usize = 3;
/// Marks the completion of a sleep.
const SLEEP: u64 = u64::MAX;

/// What follows each sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Write so many bytes, all of them.
    Write(usize),
    /// Read up to so many bytes and throw them away.
    Discard(usize),
}

/// A ring with the memory that its operations point at.
pub struct Pauses {
    ring: IoUring,
    /// An event that never happens.
    never: OwnedFd,
    sleeps: Vec<Timespec>,
    buffer: Vec<u8>,
    then: Then,
}

/// How a chain ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Bytes written or read.
    pub bytes: u64,
    /// The stream is at its end, or the connection is gone.
    pub ended: bool,
}

impl Pauses {
    /// A ring of its own.
    pub fn new(then: Then) -> io::Result<Pauses> {
        let size = match then {
            Then::Write(n) => n,
            Then::Discard(_) => 1,
        };
        // SAFETY: a fresh descriptor that nobody else owns.
        let never = unsafe { OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC))?) };
        let ring = IoUring::new((STEPS * PAIRS).next_power_of_two() as u32)?;
        Ok(Pauses { ring, never, sleeps: vec![Timespec::new(); PAIRS], buffer: vec![0; size], then })
    }

    /// Runs one chain; each sleep lasts what `sleep` says, ns. A signal ends it early: what was begun then goes on only until
    /// the ring is dropped.
    pub fn run(&mut self, socket: BorrowedFd<'_>, mut sleep: impl FnMut() -> u64) -> io::Result<Done> {
        let fd = Fd(socket.as_raw_fd());
        for i in 0..PAIRS {
            let ns = sleep();
            self.sleeps[i] = Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
            // hard links: that the poll was ended is no failure
            let hard = squeue::Flags::IO_HARDLINK;
            let wait = opcode::PollAdd::new(Fd(self.never.as_raw_fd()), libc::POLLIN as u32).build().flags(hard).user_data(SLEEP);
            let wake = opcode::LinkTimeout::new(&self.sleeps[i]).build().flags(hard).user_data(SLEEP);
            let act = match self.then {
                Then::Write(n) => {
                    opcode::Send::new(fd, self.buffer.as_ptr(), n as u32).flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL).build()
                }
                Then::Discard(n) => opcode::Recv::new(fd, self.buffer.as_mut_ptr(), n as u32).flags(libc::MSG_TRUNC).build(),
            };
            let act = act.user_data(i as u64);
            let act = if i + 1 < PAIRS { act.flags(squeue::Flags::IO_LINK) } else { act };
            // SAFETY: times and buffer live in self and stay where they are until the ring is dropped; with MSG_TRUNC a TCP
            // socket writes nothing to the buffer.
            unsafe { self.ring.submission().push_multiple(&[wait, wake, act]) }.map_err(io::Error::other)?;
        }
        let waited = self.ring.submit_and_wait(STEPS * PAIRS);
        let mut done = Done::default();
        for c in self.ring.completion() {
            if c.user_data() == SLEEP || c.result() == -libc::ECANCELED {
                continue;
            }
            match c.result() {
                0 if self.then != Then::Write(0) => done.ended = true,
                n if n < 0 => done.ended = true,
                n => done.bytes += n as u64,
            }
        }
        match waited {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            _ => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::time::Instant;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let a = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (a, listener.accept().expect("accepted").0)
    }

    #[test]
    fn a_chain_sleeps_before_each_write_and_each_read() {
        let (a, b) = pair();
        let begin = Instant::now();
        let mut writer = Pauses::new(Then::Write(100)).expect("io_uring");
        let done = writer.run(a.as_fd(), || 100_000).expect("a chain");
        assert_eq!((done.bytes, done.ended), (100 * PAIRS as u64, false));
        assert!(begin.elapsed().as_micros() >= 100 * PAIRS as u128);
        let begin = Instant::now();
        let mut reader = Pauses::new(Then::Discard(100)).expect("io_uring");
        let done = reader.run(b.as_fd(), || 100_000).expect("a chain");
        assert_eq!((done.bytes, done.ended), (100 * PAIRS as u64, false));
        assert!(begin.elapsed().as_micros() >= 100 * PAIRS as u128);
    }

    #[test]
    fn the_end_of_the_stream_ends_a_reader() {
        let (a, b) = pair();
        drop(a);
        let done = Pauses::new(Then::Discard(100)).expect("io_uring").run(b.as_fd(), || 1000).expect("a chain");
        assert!(done.ended);
        assert_eq!(done.bytes, 0);
    }
}
