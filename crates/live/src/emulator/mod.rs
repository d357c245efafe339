//! Drives a [`crate::link`] by the wall clock, with packets of real devices.
//!
//! ```text
//! sender's device ─→ port ─→ link.arrive … link.depart ─→ port ─→ receiver's device      (and the same back)
//!                             one thread: epoll, timer, commands
//! ```
//!
//! | Module | What it is |
//! |---|---|
//! | [`port`] | a device's frames in and out, and what was lost there |
//! | [`packet`] | its socket: AF_PACKET |
//! | `outbox` | frames that wait to be sent |
//! | `drive` | the loop |
//! | [`clocks`] | receive timestamps as times of the emulator; steps of the wall clock |
//! | [`report`] | lateness, losses, cost, and which of it deserves a warning |
//! | [`sys`] | clocks, waiting, priority, memory |
//! | [`device`] | a device's number, MTU, counters |
//!
//! Begin reading at [`Emulator::start`], then `drive`. What it does not do: namespaces and devices, which are the caller's.

pub mod clocks;
pub mod device;
mod drive;
mod outbox;
pub mod packet;
pub mod port;
pub mod report;
pub mod sys;

pub use clocks::ClockStep;
pub use port::{Port, PortError};
pub use report::{Conditions, DirectionReport, EmulatorReport, Lateness, Losses};

use crate::link::{Link, Totals};
use crate::spaces::realtime;
use drive::{Command, Drive, Waiter};
use std::io;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use sys::Bell;
use tcpscape_base::Time;
use tcpscape_path::Direction;

/// How an emulator runs.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// Whether its thread asks for real-time priority and locked memory. A refusal is no error: the report says it.
    pub realtime: bool,
    /// CLOCK_MONOTONIC at time 0, ns; None is the start.
    pub zero: Option<u64>,
    /// Whether time passes only while the thread sleeps, as in a guest's virtual time. It then reads the clock once for each pass (a system call
    /// there, which takes virtual time) and sleeps until packets are due, without waking before.
    pub is_virtual: bool,
}

impl Default for EmulatorOptions {
    fn default() -> EmulatorOptions {
        EmulatorOptions { realtime: true, zero: None, is_virtual: false }
    }
}

/// What has happened until a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The moment, since the emulator's zero.
    pub at: Time,
    /// The emulator's account of itself.
    pub emulator: EmulatorReport,
    /// What went through the link, forward and reverse.
    pub totals: [Totals; 2],
}

/// Starts emulators.
pub struct Emulator;

/// An emulator's thread. Dropping it ends the thread.
pub struct Running {
    commands: Option<Sender<Command>>,
    bell: Arc<Bell>,
    zero: u64,
    thread: Option<JoinHandle<(EmulatorReport, Link)>>,
}

impl Emulator {
    /// Starts a thread that carries frames between the sender's side, `ports[0]`, and the receiver's, `ports[1]`, as `link` decides.
    pub fn start(link: Link, ports: [Port; 2], options: &EmulatorOptions) -> io::Result<Running> {
        let bell = Arc::new(Bell::new()?);
        let waiter = Waiter::new(&ports, bell.clone())?;
        let zero = options.zero.unwrap_or_else(sys::now);
        let (realtime, is_virtual) = (options.realtime, options.is_virtual);
        let (commands, inbox) = channel::<Command>();
        let work = move || {
            let mut drive = Drive::new(link, ports, zero, is_virtual, prepare(realtime));
            drive.run(waiter, &inbox);
            (drive.report(), drive.link)
        };
        let thread =
            if realtime { realtime::spawn("emulator", work) } else { std::thread::Builder::new().name("emulator".into()).spawn(work) };
        let thread = Some(thread?);
        Ok(Running { commands: Some(commands), bell, zero, thread })
    }
}

/// Prepares the calling thread for waking in time, and says how far that is allowed.
fn prepare(realtime: bool) -> Conditions {
    tcpscape_testbed::sys::timer_slack(1);
    Conditions {
        asked: realtime,
        realtime: realtime::priority(),
        memory_locked: realtime && sys::lock_memory().is_ok(),
        timer_slack_ns: sys::timer_slack(),
    }
}

impl Running {
    /// CLOCK_MONOTONIC at time 0, ns.
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Does something with the link between two packets, at the emulator's time, and waits for the outcome. None if the thread has ended.
    pub fn with<T: Send + 'static>(&self, work: impl FnOnce(Time, &mut Link) -> T + Send + 'static) -> Option<T> {
        self.ask(move |drive| work(drive.now(), &mut drive.link))
    }

    /// The accounts so far. None if the thread has ended.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.ask(|drive| {
            let (at, totals) = (drive.now(), Direction::BOTH.map(|d| drive.link.totals(d)));
            Snapshot { at, emulator: drive.report(), totals }
        })
    }

    fn ask<T: Send + 'static>(&self, work: impl FnOnce(&mut Drive) -> T + Send + 'static) -> Option<T> {
        let (answer, result) = channel();
        // Nobody waits for the answer any more if this fails.
        let command: Command = Box::new(move |drive| drop(answer.send(work(drive))));
        self.commands.as_ref()?.send(command).ok()?;
        self.bell.ring();
        result.recv().ok()
    }

    /// Ends it: the account, and the link with its own. Frames under way are discarded.
    pub fn stop(mut self) -> (EmulatorReport, Link) {
        self.ask(|drive| drive.stopping = true);
        let thread = self.thread.take().expect("a thread that nobody has joined");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.commands.take());
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to do about it here.
            let _ = thread.join();
        }
    }
}
