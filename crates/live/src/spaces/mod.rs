//! Namespaces that vanish with this process, and nothing else of the machine.
//!
//! ```text
//! Spaces::enter   real-time limit ─→ new user namespace (this user alone, or all for root) ─→ new network namespace
//! Program::start                     keeper ─→ process 1 of new process and mount namespaces ─→ the user's command
//! ```
//!
//! | Question | File |
//! |---|---|
//! | Why may this user not? | [`refusal`] |
//! | How does it end? | [`lifetime`] |
//! | A command of the user's | [`program`], and the inside of its namespaces in [`keeper`] |
//! | The names `near` and `far` | `names` |
//! | Real-time priority | [`realtime`] |
//!
//! What it is: namespaces without names. Nothing is mounted or written where others see it, so after SIGKILL there is nothing
//! to remove. Source: namespaces(7), user_namespaces(7), network_namespaces(7), pid_namespaces(7).

pub mod keeper;
pub mod lifetime;
mod names;
pub mod program;
pub mod realtime;
pub mod refusal;
mod sys;

pub use program::{Child, Program};
pub use realtime::Realtime;
pub use refusal::SpacesError;
pub use sys::{identity, inherited, limit, outlive_terminal};

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use sys::Forked;

/// Settings of a network namespace whose sockets are all this process's: connections of a killed process give up after a second, not
/// after minutes. Until then they would keep the namespace, because nobody answers any more. Linux: tcp(7), `tcp_orphan_retries`.
pub const BRIEF: [(&str, &str); 2] = [("net.ipv4.tcp_orphan_retries", "1"), ("net.ipv4.tcp_fin_timeout", "1")];

/// What kind of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// No user namespace: only root may, and its rights over the machine stay.
    pub root: bool,
}

/// This process is in namespaces of its own: in a network namespace with a loopback device that is down, and nothing else.
#[derive(Debug)]
pub struct Spaces {
    realtime: Realtime,
}

impl Spaces {
    /// Moves this process, which must have one thread, into new namespaces. Users and groups keep their numbers.
    ///
    /// Threads with real-time priority come from [`realtime::spawn`] afterwards, where this process was allowed them before.
    /// Capabilities over the new namespaces last until the process executes another program.
    pub fn enter(options: &Options) -> Result<Spaces, SpacesError> {
        let permission = realtime::ask();
        if !options.root {
            enter_user_namespace()?;
        }
        sys::unshare(sys::NETWORK).map_err(|e| refusal::of_network_namespace(e, options.root))?;
        let realtime = permission.keep().map_err(|e| SpacesError::of("the thread for real-time priority", e))?;
        Ok(Spaces { realtime })
    }

    /// How far real-time priority is allowed.
    pub fn realtime(&self) -> Realtime {
        self.realtime
    }
}

/// Runs `work` with the calling thread in a network namespace, and returns it to where it was.
pub fn within<T>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T) -> io::Result<T> {
    let here = current()?;
    tcpscape_testbed::sys::enter(namespace)?;
    let done = work();
    tcpscape_testbed::sys::enter(here.as_fd())?;
    Ok(done)
}

/// The calling thread's network namespace.
fn current() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// The users and groups of the whole machine. Source: user_namespaces(7); the last number is no user.
const EVERYBODY: &str = "0 0 4294967295";

/// Enters a new user namespace in which users and groups have the same numbers as outside: everybody's for root where it
/// may, otherwise only this process's own, and nobody may then change supplementary groups.
fn enter_user_namespace() -> Result<(), SpacesError> {
    let (user, group) = sys::identity();
    // Only a process outside may map everybody: one that waits until this one has entered.
    let helper = if user == 0 { map_from_outside().ok() } else { None };
    sys::unshare(sys::USER).map_err(refusal::of_user_namespace)?;
    if helper.is_some_and(Helper::map) {
        return Ok(());
    }
    let map = |file: &str, content: &str| fs::write(format!("/proc/self/{file}"), content).map_err(refusal::of_map);
    map("setgroups", "deny")?;
    map("uid_map", &format!("{user} {user} 1"))?;
    map("gid_map", &format!("{group} {group} 1"))
}

/// A process that maps everybody when it is told to.
struct Helper {
    process: libc::pid_t,
    tell: UnixStream,
}

fn map_from_outside() -> io::Result<Helper> {
    let (told, tell) = UnixStream::pair()?;
    let parent = std::process::id();
    match sys::fork()? {
        Forked::Parent(process) => Ok(Helper { process, tell }),
        Forked::Child => {
            drop(tell);
            // An end without a word means that there is nothing to map.
            let is_told = (&told).read_exact(&mut [0]).is_ok();
            let map = |file: &str| fs::write(format!("/proc/{parent}/{file}"), EVERYBODY).is_ok();
            std::process::exit(i32::from(!(is_told && map("uid_map") && map("gid_map"))))
        }
    }
}

impl Helper {
    /// Tells it, and waits for it: whether it mapped everybody.
    fn map(mut self) -> bool {
        self.tell.write_all(&[1]).is_ok() && sys::wait_for(self.process).is_ok_and(|(_, status)| status == 0)
    }
}
