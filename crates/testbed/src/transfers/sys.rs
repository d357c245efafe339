//! Waiting for many sockets and for a time, and the kernel's word that all bytes of a connection are acknowledged.
//! Source: epoll(7), timerfd_create(2), Documentation/networking/timestamping.rst.

#![allow(unsafe_code)]

use crate::poll::{Poll, Ready, Timer};
use crate::sys::set_option;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The timer's token.
const TIMER: u64 = u64::MAX - 1;
/// Most events that one wait gives.
const EVENTS: usize = 256;

/// What of a socket is waited for; errors always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, or a connection to accept.
    Data,
    /// A connection that is made, and room to write.
    Room,
    /// Nothing else.
    Errors,
}

impl Interest {
    fn flags(self) -> libc::c_int {
        match self {
            Interest::Data => libc::EPOLLIN,
            Interest::Room => libc::EPOLLOUT,
            Interest::Errors => 0,
        }
    }
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Whose it is.
    pub token: u64,
    /// Whether there is something in its error queue, or the connection is gone.
    pub failed: bool,
}

/// Waits for sockets and for a time, which is met to the nanosecond that the kernel's timers have.
pub struct Poller {
    poll: Poll,
    timer: Timer,
    /// The time that the timer is set to.
    set: u64,
}

impl Poller {
    /// One that waits for nothing yet.
    pub fn new() -> io::Result<Poller> {
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        poll.add(timer.as_fd(), TIMER, libc::EPOLLIN)?;
        Ok(Poller { poll, timer, set: 0 })
    }

    /// Waits for a socket from now on, until it is closed.
    pub fn add(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.poll.add(socket, token, interest.flags())
    }

    /// Waits for something else of a socket.
    pub fn change(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.poll.change(socket, token, interest.flags())
    }

    /// Waits until a socket is ready or the monotonic clock shows `at`, ns; gives the sockets that are ready, and whether that time has come.
    pub fn wait_until(&mut self, at: u64, into: &mut Vec<Event>) -> io::Result<bool> {
        into.clear();
        // A timer that has run out stays ready.
        if std::mem::replace(&mut self.set, at) != at {
            self.timer.set((at > 0).then_some(at))?;
        }
        let mut room = [Ready { events: 0, u64: 0 }; EVENTS];
        let ready = self.poll.wait(&mut room)?;
        let failed = |flags: u32| flags & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
        into.extend(ready.iter().map(|&event| Event { token: event.u64, failed: failed(event.events) }));
        into.retain(|event| event.token != TIMER);
        Ok(into.len() < ready.len())
    }
}

/// Has the kernel tell, in the socket's error queue, when the last byte that is written next was acknowledged.
pub fn stamp_last_ack(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set_option(socket, libc::SO_TIMESTAMPING, flags as libc::c_int)
}

/// Empties the socket's error queue; false where it had nothing in it, so that the connection itself has failed.
pub fn take_stamps(socket: BorrowedFd<'_>) -> bool {
    let mut taken = false;
    loop {
        let mut control = [0u64; 32];
        // SAFETY: a header without data, and a control buffer that lives until the call returns.
        let n = unsafe {
            let mut m: libc::msghdr = std::mem::zeroed();
            (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
            libc::recvmsg(socket.as_raw_fd(), &mut m, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
        };
        if n < 0 {
            return taken;
        }
        taken = true;
    }
}
