//! Waiting for many sockets and for a time, and the kernel's word that all bytes of a connection are acknowledged.
//! Source: epoll(7), timerfd_create(2), Documentation/networking/timestamping.rst.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The timer's token.
const TIMER: u64 = u64::MAX - 1;
/// Most events that one wait gives.
const EVENTS: usize = 256;

fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

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
    fn flags(self) -> u32 {
        let flags = match self {
            Interest::Data => libc::EPOLLIN,
            Interest::Room => libc::EPOLLOUT,
            Interest::Errors => 0,
        };
        flags as u32
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
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The time that the timer is set to.
    set: u64,
}

impl Poller {
    /// One that waits for nothing yet.
    pub fn new() -> io::Result<Poller> {
        // SAFETY: fresh descriptors that nobody else owns.
        let (epoll, timer) = unsafe {
            let epoll = OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?);
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            (epoll, OwnedFd::from_raw_fd(check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?))
        };
        let poller = Poller { epoll, timer, set: 0 };
        poller.control(libc::EPOLL_CTL_ADD, poller.timer.as_raw_fd(), TIMER, Interest::Data)?;
        Ok(poller)
    }

    /// Waits for a socket from now on, until it is closed.
    pub fn add(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket.as_raw_fd(), token, interest)
    }

    /// Waits for something else of a socket.
    pub fn change(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket.as_raw_fd(), token, interest)
    }

    fn control(&self, operation: libc::c_int, fd: libc::c_int, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.flags(), u64: token };
        // SAFETY: open descriptors, and an event that lives until the call returns.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) }).map(drop)
    }

    /// Waits until a socket is ready or the monotonic clock shows `at`, ns; gives the sockets that are ready, and whether that time has come.
    pub fn wait_until(&mut self, at: u64, into: &mut Vec<Event>) -> io::Result<bool> {
        into.clear();
        self.set(at)?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: room for the events.
        let n = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS as libc::c_int, -1) };
        let ready = match check(n) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
            n => &events[..n.unwrap_or(0) as usize],
        };
        let failed = |flags: u32| flags & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
        into.extend(ready.iter().map(|&event| Event { token: event.u64, failed: failed(event.events) }));
        into.retain(|event| event.token != TIMER);
        Ok(into.len() < ready.len())
    }

    /// Sets the timer, where it is not set so. One that has run out stays ready.
    fn set(&mut self, at: u64) -> io::Result<()> {
        if std::mem::replace(&mut self.set, at) == at {
            return Ok(());
        }
        let value = libc::timespec { tv_sec: (at / 1_000_000_000) as libc::time_t, tv_nsec: (at % 1_000_000_000) as libc::c_long };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: a valid time.
        check(unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &once, std::ptr::null_mut()) }).map(drop)
    }
}

/// Has the kernel tell, in the socket's error queue, when the last byte that is written next was acknowledged.
pub fn stamp_last_ack(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let length = size_of_val(&flags) as libc::socklen_t;
    // SAFETY: the option takes one int, which lives until the call returns.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, (&raw const flags).cast(), length) })
        .map(drop)
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
