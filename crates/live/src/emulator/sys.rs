//! The system calls of the emulator that no safe library of ours offers: clocks, waiting, priority, memory. One small function each.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

fn owned(status: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a descriptor that a call has just made, and nobody else owns.
    check(status).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the result.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns.
pub fn monotonic() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns: the clock of the kernel's receive timestamps.
pub fn wall() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread, ns.
pub fn thread_cpu() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How late the calling thread may wake from a sleep, ns; 0 with real-time priority.
pub fn timer_slack() -> u64 {
    // SAFETY: integer arguments only.
    unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }.max(0) as u64
}

/// Keeps the process's memory from being paged out, as far as it is touched, where there is no limit to that: with a limit, later
/// mappings (stacks of threads, captures) would fail as soon as it is reached. Linux: mlockall(2), getrlimit(2).
pub fn lock_memory() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the result.
    check(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) })?;
    if limit.rlim_cur != libc::RLIM_INFINITY {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    // SAFETY: constant flags.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) }).map(drop)
}

/// A timer of CLOCK_MONOTONIC. Linux: timerfd_create(2).
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    pub fn new() -> io::Result<Timer> {
        // SAFETY: constant arguments.
        owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) }).map(Timer)
    }
    /// Makes it expire when CLOCK_MONOTONIC shows `at`, ns; a time that has passed expires at once, None never.
    pub fn set(&self, at: Option<u64>) -> io::Result<()> {
        // An all-zero time would disarm it.
        let at = at.map_or(0, |t| t.max(1));
        let value = libc::timespec { tv_sec: (at / 1_000_000_000) as libc::time_t, tv_nsec: (at % 1_000_000_000) as libc::c_long };
        let new = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: a valid time; the old one is not asked for.
        check(unsafe { libc::timerfd_settime(self.0.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &new, std::ptr::null_mut()) }).map(drop)
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Wakes a thread that waits for it. Linux: eventfd(2).
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: constant arguments.
        owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }).map(Bell)
    }
    /// Rings it.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes, as eventfd wants them. Its counter cannot be full.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A set of descriptors to wait for, edge-triggered: each new event wakes once. Linux: epoll(7).
pub struct Poll(OwnedFd);

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a constant argument.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Poll)
    }
    /// Adds a descriptor under a number below 64; it must live as long as the set.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: number };
        // SAFETY: a valid event that the kernel copies.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) }).map(drop)
    }
    /// Waits for events: the bit of each number. None after a signal.
    pub fn wait(&self) -> io::Result<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
        // SAFETY: room for as many events as are asked for.
        let n = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as libc::c_int, -1) };
        match check(n) {
            Ok(n) => Ok(events[..n as usize].iter().fold(0, |bits, e| bits | 1 << e.u64)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(e) => Err(e),
        }
    }
}
