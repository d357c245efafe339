//! The system calls that no safe library offers: one small function each. `unsafe` is only here, in
//! [`crate::poll`], [`crate::pause`], [`crate::ring`], [`crate::network::offload`] and [`crate::transfers`].

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a system call gave; of a negative status the error that it left. Linux: errno(3).
pub fn check(status: libc::c_int) -> io::Result<libc::c_int> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(status)
    }
}

/// A pipe: the end that is read and the one that is written; no program that is started inherits them. Linux: pipe2(2).
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the call has opened both, and nobody else has them.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }).into())
}

/// Lets programs started from here inherit a descriptor. Safe between fork and exec. Linux: fcntl(2).
pub fn pass_on(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) }).map(drop)
}

/// Moves the calling thread into a network namespace. Linux: setns(2).
pub fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the call.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// A new network namespace into which the calling thread moves. Linux: unshare(2).
pub fn new_namespace() -> io::Result<OwnedFd> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    namespace()
}

/// The calling thread's network namespace. Linux: network_namespaces(7).
pub fn namespace() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
}

/// How late the calling thread, and threads it starts from now on, may wake from a sleep, ns. Linux: prctl(2) PR_SET_TIMERSLACK.
pub fn timer_slack(ns: u64) {
    // SAFETY: integer arguments only; 0 would mean the default, so 1 stands for none.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns.max(1)) };
}

/// Lets this process open as many descriptors as a kernel allows at most, or as this one may. Linux: getrlimit(2) RLIMIT_NOFILE, fs.nr_open.
pub fn allow_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: MOST_DESCRIPTORS, rlim_max: MOST_DESCRIPTORS };
    // SAFETY: valid places for the limits.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0 || libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return;
        }
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// Most descriptors of a process where nobody has set fs.nr_open.
const MOST_DESCRIPTORS: libc::rlim_t = 1 << 20;

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the result.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// The monotonic clock, ns: in a guest, virtual time since its start.
pub fn now() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// The wall clock, ns: that of the stamps of packets.
pub fn wall() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread, ns.
pub fn thread_time() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, ns.
pub fn process_time() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// How long the calling thread has run and how long it was ready but waited for a processor, ns; None where the kernel does not tell.
/// Linux: Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
pub fn cpu_time() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = text.split_whitespace().map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

/// Sleeps for `ns`; an interrupted sleep is over.
pub fn nap(ns: u64) {
    // SAFETY: a valid time; no remainder is asked for.
    unsafe { libc::nanosleep(&timespec(ns), std::ptr::null_mut()) };
}

/// Sleeps until the clock of [`now`] shows `at`; an interrupted sleep is over.
pub fn nap_until(at: u64) {
    // SAFETY: a valid time; no remainder is asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &timespec(at), std::ptr::null_mut()) };
}

/// Waits until the clock of [`now`] shows `at`; true as soon as the peer has ended the connection or reset it. Linux: ppoll(2).
pub fn ends_before(socket: BorrowedFd<'_>, at: u64) -> bool {
    let mut watched = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    let left = timespec(at.saturating_sub(now()));
    // SAFETY: one descriptor and a valid time that live until the call returns; no signal mask.
    unsafe { libc::ppoll(&mut watched, 1, &left, std::ptr::null()) > 0 }
}

/// A handler that does nothing.
pub extern "C" fn nothing(_: libc::c_int) {}

/// Installs a handler, which must be safe in a signal; `flags`: how. Linux: sigaction(2).
pub fn on_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int), flags: libc::c_int) {
    // SAFETY: the struct is fully initialised, and the old one is not asked for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler as usize, flags);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Makes [`Thread::interrupt`] end a blocking call without restarting it, and a write to a closed connection an error.
pub fn prepare_signals() {
    on_signal(libc::SIGUSR1, nothing, 0);
    // SAFETY: constant arguments.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// A running thread that another one may interrupt.
#[derive(Debug)]
pub struct Thread {
    id: libc::pthread_t,
}

impl Thread {
    /// The calling thread.
    pub fn current() -> Thread {
        // SAFETY: no arguments.
        Thread { id: unsafe { libc::pthread_self() } }
    }

    /// Ends its blocking system call. The thread must not have been joined yet: `running` says so.
    pub fn interrupt(&self, running: &AtomicBool) {
        if running.load(Ordering::Acquire) {
            // SAFETY: the thread is running or at least not joined, its id is valid.
            unsafe { libc::pthread_kill(self.id, libc::SIGUSR1) };
        }
    }
}

/// Most messages in one [`Batch`]. Linux: UIO_MAXIOV.
const BATCH: usize = 1024;

/// Many equal reads or writes in one system call: the kernel does them one after the other, each as `read` or `write` would.
pub struct Batch {
    messages: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    _buffer: Vec<u8>,
}

impl Batch {
    /// `count` messages (at most 1024) of `size` bytes, all of the same zeros.
    pub fn new(count: usize, size: usize) -> Batch {
        let mut buffer = vec![0u8; size];
        let count = count.clamp(1, BATCH);
        let mut vectors = vec![libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: size }; count];
        let messages = (0..count)
            .map(|i| {
                // SAFETY: all-zero is a valid header; the vector's heap memory outlives it and never moves.
                let mut m: libc::mmsghdr = unsafe { std::mem::zeroed() };
                m.msg_hdr.msg_iov = &mut vectors[i];
                m.msg_hdr.msg_iovlen = 1;
                m
            })
            .collect();
        Batch { messages, _vectors: vectors, _buffer: buffer }
    }

    fn taken(&self, messages: usize) -> u64 {
        self.messages[..messages].iter().map(|m| u64::from(m.msg_len)).sum()
    }

    /// Writes up to `most` messages, blocking for room; bytes written. Linux: sendmmsg(2).
    pub fn send(&mut self, socket: BorrowedFd<'_>, most: usize) -> io::Result<u64> {
        let most = most.min(self.messages.len());
        // SAFETY: `most` valid headers whose buffers live in self.
        let n = check(unsafe { libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), most as u32, libc::MSG_NOSIGNAL) })?;
        Ok(self.taken(n as usize))
    }

    /// Reads until all messages are done, blocking for data, without copying (`MSG_TRUNC` on TCP discards). Bytes read, and
    /// whether the stream goes on. Linux: recvmmsg(2), tcp(7).
    pub fn discard(&mut self, socket: BorrowedFd<'_>) -> io::Result<(u64, bool)> {
        self.receive(socket, libc::MSG_TRUNC)
    }

    /// The same, but blocks for the first message only and ends where there are no more data.
    pub fn discard_ready(&mut self, socket: BorrowedFd<'_>) -> io::Result<(u64, bool)> {
        self.receive(socket, libc::MSG_TRUNC | libc::MSG_WAITFORONE)
    }

    fn receive(&mut self, socket: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<(u64, bool)> {
        let (fd, all) = (socket.as_raw_fd(), self.messages.len());
        // SAFETY: valid headers whose buffers live in self; no timeout.
        let n = check(unsafe { libc::recvmmsg(fd, self.messages.as_mut_ptr(), all as u32, flags as _, std::ptr::null_mut()) })? as usize;
        Ok((self.taken(n), n > 0 && self.messages[n - 1].msg_len > 0))
    }
}

/// `struct tcp_info` as bytes, as much of it as the kernel knows. Linux: tcp(7) TCP_INFO.
pub fn tcp_info(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    let mut len = into.len() as libc::socklen_t;
    // SAFETY: a buffer and its length.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, into.as_mut_ptr().cast(), &mut len) })?;
    Ok(len as usize)
}

fn queue_length(socket: BorrowedFd<'_>, request: libc::Ioctl) -> u64 {
    let mut n: libc::c_int = 0;
    // SAFETY: the ioctl writes one int.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), request, &mut n) };
    if status < 0 {
        0
    } else {
        n.max(0) as u64
    }
}

/// Bytes written and not acknowledged. Linux: tcp(7) SIOCOUTQ.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> u64 {
    queue_length(socket, libc::TIOCOUTQ)
}

/// Bytes received in order and not read. Linux: tcp(7) SIOCINQ.
pub fn unread(socket: BorrowedFd<'_>) -> u64 {
    queue_length(socket, libc::FIONREAD)
}

/// One of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// For data that came.
    Receive,
    /// For data to be sent.
    Send,
}

/// Sets a buffer to `size` bytes beyond the machine's limits; leaves it as it is where this process may not. Linux: socket(7).
pub fn force_buffer(socket: BorrowedFd<'_>, buffer: Buffer, size: u32) {
    let option = if buffer == Buffer::Receive { libc::SO_RCVBUFFORCE } else { libc::SO_SNDBUFFORCE };
    let _ = set_option(socket, option, libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX));
}

/// Sets an option of a socket's own level (SOL_SOCKET) that takes one int. Linux: setsockopt(2).
pub fn set_option(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let int = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option takes one int, which lives until the call returns.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), int) }).map(drop)
}

/// Binds a packet socket to the device of this number. Linux: packet(7).
pub fn see_device(socket: BorrowedFd<'_>, number: i32) -> io::Result<()> {
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = number;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: an address and its size.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}

/// Has the kernel stamp what a socket receives, for [`next_packet`]. Linux: socket(7) SO_TIMESTAMPNS.
pub fn stamp(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SO_TIMESTAMPNS, 1)
}

/// A packet that a socket received.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Wall-clock time, ns.
    pub at: u64,
    /// Its length, bytes, of which the buffer holds the beginning.
    pub length: usize,
}

/// Takes one packet, blocking; None once interrupted.
pub fn next_packet(socket: BorrowedFd<'_>, into: &mut [u8]) -> Option<Seen> {
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = Control::default();
    // SAFETY: the header points at buffers that live until the call returns.
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        (m.msg_iov, m.msg_iovlen) = (&mut vector, 1);
        (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        let n = libc::recvmsg(socket.as_raw_fd(), &mut m, libc::MSG_TRUNC);
        (n >= 0).then(|| Seen { at: stamp_of(&m), length: n as usize })
    }
}

/// Room for control messages.
type Control = [u64; 16];

/// The kernel's timestamp of a received message, ns; 0 without.
///
/// # Safety
/// The header is one that recvmsg(2) or recvmmsg(2) filled, and its control buffer still lives.
unsafe fn stamp_of(m: &libc::msghdr) -> u64 {
    // SAFETY: as the caller promises; libc's macros walk the messages.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(m);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_TIMESTAMPNS {
                let t = libc::CMSG_DATA(c).cast::<libc::timespec>().read_unaligned();
                return t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64;
            }
            c = libc::CMSG_NXTHDR(m, c);
        }
    }
    0
}

/// Ends a connection with a RST, as closing it without lingering does, but keeps the descriptor. Linux: connect(2) AF_UNSPEC.
pub fn disconnect(socket: BorrowedFd<'_>) {
    // SAFETY: an all-zero address of the given length; AF_UNSPEC is 0.
    unsafe {
        let nowhere: libc::sockaddr = std::mem::zeroed();
        libc::connect(socket.as_raw_fd(), &nowhere, size_of::<libc::sockaddr>() as libc::socklen_t);
    }
}

/// Has the kernel tell, in the socket's error queue, when the last byte that is written next was acknowledged. Linux: Documentation/networking/timestamping.rst.
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
