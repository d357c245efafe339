//! The system calls of namespaces and lifetimes that no safe library offers: one small function each.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use tcpscape_testbed::sys::{check, nothing, on_signal};

/// Kinds of namespaces, as [`unshare`] takes them. Linux: namespaces(7).
pub const USER: libc::c_int = libc::CLONE_NEWUSER;
pub const NETWORK: libc::c_int = libc::CLONE_NEWNET;
pub const PROCESSES: libc::c_int = libc::CLONE_NEWPID;
pub const MOUNTS: libc::c_int = libc::CLONE_NEWNS;

/// Puts the calling thread into new namespaces; with [`USER`] it must be the only one of its process. Linux: unshare(2).
pub fn unshare(kinds: libc::c_int) -> io::Result<()> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::unshare(kinds) }).map(drop)
}

/// Moves the calling thread into a network namespace, given by the number of a descriptor that stays open until then: for the time
/// between fork and exec. Linux: setns(2).
pub fn enter_network_number(namespace: RawFd) -> io::Result<()> {
    // SAFETY: integer arguments only; a number that is no namespace is refused.
    check(unsafe { libc::setns(namespace, libc::CLONE_NEWNET) }).map(drop)
}

/// The kernel kills this process when the thread that started it ends. Linux: prctl(2) PR_SET_PDEATHSIG.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Effective user and group.
pub fn identity() -> (u32, u32) {
    // SAFETY: no arguments; they cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Takes over an inherited descriptor, which programs started from here will not inherit. Linux: fcntl(2).
pub fn inherited(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: setting a flag needs only a number; one that is not open is refused.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and was given to this process to own.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Whether every writer of a pipe, or the other end of a socket, is closed. `wait`: until it is. Linux: poll(2).
pub fn is_hung_up(descriptor: BorrowedFd<'_>, wait: bool) -> bool {
    let mut watched = libc::pollfd { fd: descriptor.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one descriptor that lives until the call returns.
    let ready = unsafe { libc::poll(&mut watched, 1, if wait { -1 } else { 0 }) };
    ready > 0 && watched.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Waits until one of two is hung up: which are. Linux: poll(2).
pub fn wait_for_hang_up(descriptors: [BorrowedFd<'_>; 2]) -> [bool; 2] {
    let mut watched = descriptors.map(|d| libc::pollfd { fd: d.as_raw_fd(), events: 0, revents: 0 });
    loop {
        // SAFETY: two descriptors that live until the call returns.
        if unsafe { libc::poll(watched.as_mut_ptr(), 2, -1) } > 0 {
            return watched.map(|w| w.revents != 0);
        }
    }
}

/// Soft and hard limit of a resource. Linux: getrlimit(2).
pub fn limit(resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the result.
    check(unsafe { libc::getrlimit(resource, &mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Sets both limits of a resource. Safe between fork and exec. Linux: setrlimit(2).
pub fn set_limit(resource: libc::__rlimit_resource_t, (soft, hard): (u64, u64)) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: a valid struct that lives until the call returns.
    check(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}

/// Gives the calling thread a real-time priority, or makes it an ordinary one with 0. Linux: sched(7), SCHED_FIFO.
pub fn set_realtime(priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = if priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    // SAFETY: a valid struct that lives until the call returns; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) }).map(drop)
}

/// The calling thread's real-time priority, 0 for an ordinary one.
pub fn realtime_priority() -> u64 {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid place for the result; 0 is the calling thread.
    let known = check(unsafe { libc::sched_getparam(0, &mut parameters) });
    known.map_or(0, |_| parameters.sched_priority.max(0) as u64)
}

/// Signals of a terminal do nothing to this process, and their usual thing to programs started from it: a handler is reset by
/// exec, an ignored signal would stay ignored. Linux: signal(7).
pub fn outlive_terminal() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGHUP] {
        on_signal(signal, nothing, libc::SA_RESTART);
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`, `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`. Source: linux/capability.h.
const CAPABILITY_VERSION: u32 = 0x2008_0522;
const SYS_ADMIN: u32 = 21;
const NET_ADMIN: u32 = 12;

/// `struct __user_cap_header_struct` and two of `struct __user_cap_data_struct`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn capabilities() -> io::Result<[CapabilityData; 2]> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: a header and room for the two structs that version 3 writes.
    check(unsafe { libc::syscall(libc::SYS_capget, &mut header, data.as_mut_ptr()) } as libc::c_int)?;
    Ok(data)
}

/// Whether the calling thread may administer its user namespace. Linux: capabilities(7).
pub fn is_administrator() -> bool {
    capabilities().is_ok_and(|data| data[0].effective & 1 << SYS_ADMIN != 0)
}

/// The next program keeps CAP_SYS_ADMIN and CAP_NET_ADMIN of the user namespace, whoever runs it. Safe between fork and exec.
/// Linux: capabilities(7), ambient set.
pub fn keep_administrator() -> io::Result<()> {
    let mut data = capabilities()?;
    data[0].inheritable |= 1 << SYS_ADMIN | 1 << NET_ADMIN;
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    // SAFETY: a header and the two structs that version 3 reads.
    check(unsafe { libc::syscall(libc::SYS_capset, &mut header, data.as_ptr()) } as libc::c_int)?;
    [SYS_ADMIN, NET_ADMIN].into_iter().try_for_each(|capability| {
        // SAFETY: integer arguments only.
        check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(capability), 0, 0) }).map(drop)
    })
}

/// The next program has no capability that its user would not have. Safe between fork and exec. Linux: capabilities(7).
pub fn drop_ambient() -> io::Result<()> {
    // SAFETY: integer arguments only.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }).map(drop)
}

/// Mounts a file system of the kernel's own, `proc` on `/proc`. Linux: mount(2).
pub fn mount(kind: &CStr, target: &CStr) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: NUL-terminated strings that live until the call returns; no data.
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }).map(drop)
}

/// Shows a file at the place of another one. Linux: mount(2) MS_BIND.
pub fn show_at(file: &CStr, place: &CStr) -> io::Result<()> {
    // SAFETY: NUL-terminated strings; no data.
    check(unsafe { libc::mount(file.as_ptr(), place.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null()) }).map(drop)
}

/// Takes a mount away; what uses it keeps it. Linux: umount2(2) MNT_DETACH.
pub fn unmount(target: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-terminated string.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Keeps mounts made from now on in the calling thread's mount namespace. Linux: mount_namespaces(7).
pub fn keep_mounts_here() -> io::Result<()> {
    let flags = libc::MS_REC | libc::MS_SLAVE;
    // SAFETY: a NUL-terminated string that lives until the call returns.
    check(unsafe { libc::mount(std::ptr::null(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()) }).map(drop)
}

/// The process to which [`pass_on_termination`] passes the signal, and whether it came before there was one.
static HEIR: AtomicI32 = AtomicI32::new(0);
static IS_WAITING: AtomicBool = AtomicBool::new(false);

extern "C" fn pass_on_signal(signal: libc::c_int) {
    match HEIR.load(Ordering::SeqCst) {
        0 => IS_WAITING.store(true, Ordering::SeqCst),
        // SAFETY: integer arguments only; safe in a handler.
        heir => drop(unsafe { libc::kill(heir, signal) }),
    }
}

/// SIGTERM does nothing to this process from now on but to be kept for [`pass_on_termination`]; a fork inherits that.
/// Linux: signal(7).
pub fn keep_termination() {
    on_signal(libc::SIGTERM, pass_on_signal, libc::SA_RESTART);
}

/// SIGTERM is sent on to a child, also one that came before. Linux: kill(2).
pub fn pass_on_termination(child: libc::pid_t) {
    HEIR.store(child, Ordering::SeqCst);
    if IS_WAITING.swap(false, Ordering::SeqCst) {
        ask_to_end(child as u32);
    }
}

/// Sends SIGTERM to a child that nobody has waited for. Linux: kill(2).
pub fn ask_to_end(child: u32) {
    // SAFETY: integer arguments only.
    unsafe { libc::kill(child as libc::pid_t, libc::SIGTERM) };
}

/// Kills a child that nobody has waited for. Linux: kill(2).
pub fn kill(child: libc::pid_t) {
    // SAFETY: integer arguments only.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Waits for the end of a child, which can still be waited for afterwards. Linux: waitid(2) WNOWAIT.
pub fn await_end(child: u32) -> io::Result<()> {
    loop {
        // SAFETY: an all-zero struct is valid, and the call writes it.
        let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: a valid place for the result.
        match check(unsafe { libc::waitid(libc::P_PID, child, &mut about, libc::WEXITED | libc::WNOWAIT) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended.map(drop),
        }
    }
}

/// Who a fork returned to.
pub enum Forked {
    /// The new process.
    Child,
    /// The old one, with the new one's number.
    Parent(libc::pid_t),
}

/// A copy of this process, which must have one thread only. Linux: fork(2).
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the callers have one thread, so the child's memory is consistent.
    Ok(match check(unsafe { libc::fork() })? {
        0 => Forked::Child,
        child => Forked::Parent(child),
    })
}

/// Waits for the end of a child, or of any with -1: its number and its exit status, 128 and the signal for one that was killed.
/// Linux: waitpid(2), exit statuses as a shell's.
pub fn wait_for(child: libc::pid_t) -> io::Result<(libc::pid_t, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: a valid place for the status.
        match check(unsafe { libc::waitpid(child, &mut status, 0) }) {
            Ok(pid) if libc::WIFEXITED(status) => return Ok((pid, libc::WEXITSTATUS(status))),
            Ok(pid) => return Ok((pid, 128 + libc::WTERMSIG(status))),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Runs `prepare` in a started program's process between fork and exec. It must only make system calls: this process may have
/// several threads, and the copy has only one of them.
pub(super) fn before_exec(command: &mut std::process::Command, prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the two callers in this module make system calls of this file only, which neither allocate nor lock.
    unsafe { command.pre_exec(prepare) };
}
