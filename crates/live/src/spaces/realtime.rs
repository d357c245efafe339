//! Leave to run threads with real-time priority, taken while this process still has the rights of whoever started it.
//!
//! In a user namespace of its own a process has no right over the machine's scheduler, whoever it was before. Two things
//! survive entering it: the limit RLIMIT_RTPRIO, up to which a thread may take any priority, and the priority that a thread
//! already has, which the threads that it starts inherit. So the limit is raised before entering; where that is refused
//! (CAP_SYS_NICE without CAP_SYS_RESOURCE, as in many containers), one thread keeps the priority and starts the others.
//! Source: sched(7), "Privileges and resource limits" and "Resetting scheduling policy for child processes"; capabilities(7).

use super::sys;
use serde::Serialize;
use std::io;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The real-time priority that is asked for: above every ordinary thread, below the kernel's own, and one above the lowest, which the
/// applications have where this program was started with it (`chrt -f 1`).
pub const PRIORITY: u64 = 2;

/// How far real-time priority is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Realtime {
    /// The highest priority that a thread may have; 0 is none.
    pub allowed: u64,
    /// The limits that were there before, soft and hard: programs that are started from here get them back.
    pub before: (u64, u64),
}

/// Work for the thread that has the priority: to start another thread.
type Start = Box<dyn FnOnce() + Send>;

/// The thread that keeps the priority, where one has to.
static KEEPER: OnceLock<Mutex<Sender<Start>>> = OnceLock::new();

/// What was had before entering.
pub(super) struct Permission {
    realtime: Realtime,
    /// Whether the calling thread has the priority now.
    held: bool,
    /// The priority that it had before; 0 for an ordinary thread.
    own: u64,
}

/// Asks for the permission; the calling thread is the only one, and is about to enter a user namespace.
pub(super) fn ask() -> Permission {
    let (before, own) = (sys::limit(libc::RLIMIT_RTPRIO).unwrap_or_default(), priority());
    let wanted = [(before.0.max(PRIORITY), before.1.max(PRIORITY)), (before.1, before.1)];
    // Without the right to raise the hard limit the soft one still may reach it.
    let _ = wanted.into_iter().find(|&limits| sys::set_limit(libc::RLIMIT_RTPRIO, limits).is_ok());
    let allowed = sys::limit(libc::RLIMIT_RTPRIO).map_or(0, |limits| limits.0.min(PRIORITY));
    let held = allowed < PRIORITY && sys::set_realtime(PRIORITY as i32).is_ok();
    Permission { realtime: Realtime { allowed: if held { PRIORITY } else { allowed }, before }, held, own }
}

impl Permission {
    /// Hands the priority from the calling thread, which gets back the one that it had, to a keeper; called inside the namespaces.
    pub(super) fn keep(self) -> io::Result<Realtime> {
        if self.held {
            let (sender, waiting) = channel::<Start>();
            Builder::new().name("realtime".into()).spawn(move || waiting.into_iter().for_each(|start| start()))?;
            sys::set_realtime(self.own as i32)?;
            let _ = KEEPER.set(Mutex::new(sender)); // a process enters once
        }
        Ok(self.realtime)
    }
}

/// Starts a thread that has real-time priority from its beginning where this is allowed; otherwise an ordinary one. It asks
/// [`priority`] which it is.
pub fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.to_owned());
    if let Some(keeper) = KEEPER.get() {
        let (answer, started) = channel();
        let start = move || drop(answer.send(builder.spawn(work)));
        let sent = keeper.lock().unwrap_or_else(PoisonError::into_inner).send(Box::new(start));
        return sent
            .ok()
            .and_then(|()| started.recv().ok())
            .unwrap_or_else(|| Err(io::Error::other("the keeper of the priority has ended")));
    }
    builder.spawn(move || {
        let allowed = sys::limit(libc::RLIMIT_RTPRIO).map_or(0, |limits| limits.0.min(PRIORITY));
        // Privileges may allow what the limit does not; without either the thread is an ordinary one.
        let _ = sys::set_realtime(PRIORITY as i32).or_else(|_| sys::set_realtime(allowed as i32));
        work()
    })
}

/// The calling thread's real-time priority; 0 for an ordinary thread.
pub fn priority() -> u64 {
    sys::realtime_priority()
}
