//! Waiting for descriptors and for a time. Source: epoll(7), timerfd_create(2).

#![allow(unsafe_code)]

use crate::sys::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A timer of the monotonic clock.
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    pub fn new() -> io::Result<Timer> {
        // SAFETY: constant arguments; a descriptor that the call has just made, and nobody else owns.
        check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) })
            .map(|fd| Timer(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
    /// Makes it expire when the clock shows `at`, ns; a time that has passed expires at once, None never.
    pub fn set(&self, at: Option<u64>) -> io::Result<()> {
        // An all-zero time would disarm it.
        let value = crate::sys::timespec(at.map_or(0, |t| t.max(1)));
        let new = libc::itimerspec { it_interval: crate::sys::timespec(0), it_value: value };
        // SAFETY: a valid time; the old one is not asked for.
        check(unsafe { libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &new, std::ptr::null_mut()) }).map(drop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Descriptors to wait for.
pub struct Poll(OwnedFd);

/// What a wait gives: epoll's flags, and the token under which the descriptor was added.
pub type Ready = libc::epoll_event;

impl Poll {
    /// None.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a constant argument; a descriptor that the call has just made, and nobody else owns.
        check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(|fd| Poll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
    /// Adds a descriptor, until it is closed.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, flags)
    }
    /// Waits for something else of a descriptor.
    pub fn change(&self, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, flags)
    }
    fn control(&self, operation: libc::c_int, fd: BorrowedFd<'_>, token: u64, flags: libc::c_int) -> io::Result<()> {
        let mut event = Ready { events: flags as u32, u64: token };
        // SAFETY: open descriptors, and an event that lives until the call returns.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd.as_raw_fd(), &mut event) }).map(drop)
    }
    /// Waits, and gives what is ready, at most as many as there is room for; none after a signal.
    pub fn wait<'a>(&self, room: &'a mut [Ready]) -> io::Result<&'a [Ready]> {
        // SAFETY: room for as many events as are asked for.
        match check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), room.as_mut_ptr(), room.len() as libc::c_int, -1) }) {
            Ok(n) => Ok(&room[..n as usize]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            Err(e) => Err(e),
        }
    }
}

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
