//! A command of the user's in the namespaces, of which nothing survives: a process namespace of its own, a keeper outside.
//!
//! ```text
//! this process ─→ keeper (this program again, [`super::keeper`]) ─→ process 1 of the new process namespace ─→ the command
//! ```
//!
//! The keeper ends when this process does, process 1 dies with the keeper, and with process 1 the kernel kills whatever the command left.

use super::{keeper, names, realtime::Realtime, sys};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// What to run, and where.
#[derive(Debug)]
pub struct Program<'a> {
    command: Command,
    network: Option<BorrowedFd<'a>>,
    realtime: Realtime,
}

/// A command that runs; dropping it kills it and everything that it started.
#[derive(Debug)]
pub struct Child {
    keeper: std::process::Child,
    /// While it is open, the keeper and process 1 know that this process lives, and wants the command.
    alive: Option<UnixStream>,
}

impl<'a> Program<'a> {
    /// A command and its arguments; streams, directory and environment are this process's unless [`Program::command`] changes them.
    pub fn new(words: &[impl AsRef<OsStr>], realtime: Realtime) -> Program<'a> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(keeper::MODE).args(words).env_remove(keeper::ADMINISTERS);
        Program { command, network: None, realtime }
    }

    /// The network namespace to run in; without it, this thread's.
    pub fn within(mut self, network: BorrowedFd<'a>) -> Program<'a> {
        self.network = Some(network);
        self
    }

    /// Names of hosts that the command knows besides the machine's own, with their addresses.
    pub fn names(&mut self, names: &[(&str, &str)]) {
        self.command.env(names::HOSTS, names::value(names));
    }

    /// Resolvers of the command in place of the machine's: lines of resolv.conf(5).
    pub fn resolvers(&mut self, lines: &str) {
        self.command.env(names::RESOLVERS, lines);
    }

    /// The command may change the network of its namespace, whoever runs it.
    pub fn administers(&mut self) {
        self.command.env(keeper::ADMINISTERS, "1");
    }

    /// To set streams, directory and environment.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it.
    pub fn start(mut self) -> io::Result<Child> {
        let (watched, alive) = UnixStream::pair()?;
        let watched = OwnedFd::from(watched);
        let (pipe, network, limits) = (watched.as_raw_fd(), self.network.map(|n| n.as_raw_fd()), self.realtime.before);
        self.command.env(keeper::ALIVE, OsString::from(pipe.to_string()));
        let prepare = move || {
            if let Some(network) = network {
                // The descriptor is borrowed by `self`, which lives until the program runs.
                sys::enter_network_number(network)?;
            }
            tcpscape_testbed::sys::pass_on(pipe)?;
            // Another limit than before is no reason not to run.
            let _ = sys::set_limit(libc::RLIMIT_RTPRIO, limits);
            match sys::is_administrator() {
                true => sys::unshare(sys::PROCESSES | sys::MOUNTS).and_then(|()| sys::keep_administrator()),
                false => Ok(()),
            }
        };
        sys::before_exec(&mut self.command, prepare);
        Ok(Child { keeper: self.command.spawn()?, alive: Some(alive) })
    }
}

impl Child {
    /// Number of the keeper, which ends when the command has ended: for a pidfd to wait for it together with other things.
    pub fn id(&self) -> u32 {
        self.keeper.id()
    }

    /// Waits for the command's end; its exit status as a shell's: 128 and the number of a signal, 126 and 127 where it could not be run.
    pub fn wait(&mut self) -> io::Result<i32> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.keeper.wait()?;
        Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// The command's exit status where it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<i32>> {
        Ok(if self.keeper.try_wait()?.is_some() { Some(self.wait()?) } else { None })
    }

    /// Sends SIGTERM to the command.
    pub fn ask_to_end(&self) {
        sys::ask_to_end(self.id());
    }

    /// Tells from a thread of its own when the command has ended: calls `ended`, after which [`Child::wait`] does not block.
    pub fn when_ended(&self, ended: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let keeper = self.id();
        let wait = move || {
            // An error is that there is no such child any more.
            let _ = sys::await_end(keeper);
            ended();
        };
        std::thread::Builder::new().name("command".into()).spawn(wait).map(drop)
    }

    /// Has the command and everything that it started killed; [`Child::wait`] waits until they are.
    pub fn kill(&mut self) {
        self.alive = None;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        // There is nobody to tell of an error.
        let _ = self.keeper.wait();
    }
}
