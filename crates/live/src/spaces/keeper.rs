//! The inside of a command's namespaces: this program again, with the mode `keep`, as the keeper and as process 1.
//!
//! Process 1 mounts `/proc` anew where that is allowed, so that `ps` and `$$` agree; it starts the command without the
//! capabilities over the namespaces that mounting takes ([`ADMINISTERS`] is the exception), collects ended processes, and ends with the command.
//! The keeper outlives the program that started it for a moment: it sees the hang-up of their pipe, kills process 1, and lets
//! connections that are left without a process give up at once ([`BRIEF`]), which would keep the network namespace for minutes.
//! Source: pid_namespaces(7), signal(7): process 1 gets no signal from inside that it has no handler for.

use super::names;
use super::sys::{self, Forked};
use super::BRIEF;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Name of the mode.
pub const MODE: &str = "keep";
/// The variable with the number of the pipe that hangs up when the program that started the keeper ends.
pub const ALIVE: &str = "TCPSCAPE_ALIVE";
/// The variable of a command that keeps the capabilities over its namespaces.
pub const ADMINISTERS: &str = "TCPSCAPE_ADMINISTERS";
/// Exit statuses of a command that cannot be run, and of one that is not there, as a shell's.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Runs the command and returns its exit status, in a process with one thread.
pub fn keep(words: &[OsString]) -> i32 {
    match kept(words) {
        Ok(status) => status,
        Err(e) => {
            eprintln!("tcpscape: the command cannot be kept: {e}");
            CANNOT_RUN
        }
    }
}

fn kept(words: &[OsString]) -> io::Result<i32> {
    let alive = std::env::var(ALIVE).ok().and_then(|n| n.parse().ok()).ok_or_else(|| io::Error::other("nobody started it"))?;
    let alive = sys::inherited(alive)?;
    std::env::remove_var(ALIVE);
    sys::outlive_terminal();
    sys::keep_termination();
    let (its, held) = UnixStream::pair()?;
    match sys::fork()? {
        Forked::Parent(child) => {
            drop(held);
            sys::pass_on_termination(child);
            let status = guard(alive, its, child)?;
            for (name, value) in BRIEF {
                // What cannot be set makes the namespace last a minute longer.
                let _ = fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value);
            }
            Ok(status)
        }
        Forked::Child => {
            let status = end_with(&alive).and_then(|()| first(words)).unwrap_or_else(|e| {
                eprintln!("tcpscape: the command cannot be run: {e}");
                CANNOT_RUN
            });
            std::process::exit(status)
        }
    }
}

/// Waits for the end of the child, which hangs up `its`, and kills it at the hang-up of `alive`: its exit status.
fn guard(alive: OwnedFd, its: UnixStream, child: libc::pid_t) -> io::Result<i32> {
    // No thread can be started here: its process namespace would be another one than its children's.
    if sys::wait_for_hang_up([alive.as_fd(), its.as_fd()])[0] {
        sys::kill(child);
    }
    Ok(sys::wait_for(child)?.1)
}

/// This process dies with the one that started it, and has already if that was gone before this was arranged.
fn end_with(alive: &OwnedFd) -> io::Result<()> {
    sys::die_with_parent()?;
    match sys::is_hung_up(alive.as_fd(), false) {
        true => Err(io::Error::other("the program that started it has ended")),
        false => Ok(()),
    }
}

/// Process 1, where there is a new process namespace: the command's exit status.
fn first(words: &[OsString]) -> io::Result<i32> {
    let names = names::take();
    // Where it is not allowed, as in many containers, the old mounts show the processes and devices from outside.
    if std::process::id() == 1 && sys::keep_mounts_here().is_ok() {
        let _ = sys::mount(c"proc", c"/proc");
        let _ = sys::mount(c"sysfs", c"/sys");
        // Without it the ends have their addresses alone.
        let _ = names::show(&names);
    }
    let Some((program, arguments)) = words.split_first() else { return Err(io::Error::other("it is empty")) };
    let mut command = Command::new(program);
    command.args(arguments);
    if std::env::var_os(ADMINISTERS).is_none() {
        sys::before_exec(&mut command, sys::drop_ambient);
    }
    command.env_remove(ADMINISTERS);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            eprintln!("tcpscape: {}: {e}", program.to_string_lossy());
            return Ok(if e.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN });
        }
    };
    let pid = child.id() as libc::pid_t;
    sys::pass_on_termination(pid);
    loop {
        let (ended, status) = sys::wait_for(-1)?;
        if ended == pid {
            return Ok(status);
        }
    }
}
