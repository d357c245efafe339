//! A paced writer and a slow reader: applications that sleep between their writes or reads.
//!
//! Source: the published experiments' scripts. In virtual time they sleep in chains ([`crate::pause`]), in real time by nanosleep(2).

use super::{Clock, Flow, Sleeps};
use crate::pause::{Pauses, Then};
use crate::sys::{self, Batch};
use socket2::Socket;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use tcpscape_base::Duration;

impl Flow {
    /// Writes a chunk, sleeps chunk/rate, and again.
    pub(super) fn write_paced(&self, chunk: usize, clock: Clock) -> io::Result<()> {
        let gap = self.plan.gap().0;
        if self.options.sleeps == Sleeps::Plain {
            self.write_each(chunk, || sys::nap(gap));
            return Ok(());
        }
        self.write_all(chunk, chunk as u64);
        let mut pauses = Pauses::new(Then::Write(chunk))?;
        while !self.stopping() {
            let done = pauses.run(self.sender.as_fd(), || gap + self.oversleep(clock))?;
            self.sent.fetch_add(done.bytes, Ordering::AcqRel);
            if done.ended {
                break;
            }
        }
        Ok(())
    }

    /// Writes a chunk while it is time to, sleeps otherwise; with a rate also sleeps chunk/rate after each. A write that has begun ends in the pause,
    /// as a blocking write(2) does (docs/models/methods/traffic.md).
    pub(super) fn write_by_turns(&self, chunk: usize, clock: Clock) {
        let (begin, gap, turns) = (self.span().0, self.plan.gap().0, self.plan.app.turns());
        self.write_each(chunk, || {
            let ready = sys::now() + gap;
            let wake = ready + turns.and_then(|turns| turns.pause(Duration(ready - begin))).map_or(0, |pause| pause.0);
            if wake > ready || gap > 0 {
                sys::nap_until(wake + self.oversleep(clock) - clock.slack);
            }
        });
    }

    /// Writes a chunk, does what comes `after` it, and again, with a system call for each write, until it is told to stop or the connection ends.
    pub(super) fn write_each(&self, chunk: usize, after: impl Fn()) {
        let mut one = Batch::new(1, chunk);
        while !self.stopping() {
            match one.send(self.sender.as_fd(), 1) {
                Ok(n) => self.sent.fetch_add(n, Ordering::AcqRel),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            after();
        }
    }

    /// What a sleep lasts longer than asked, ns: the timer slack and scheduling noise (xorshift of the flow's own state).
    pub(super) fn oversleep(&self, clock: Clock) -> u64 {
        if clock.noise == 0 {
            return clock.slack;
        }
        let mut x = self.noise.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.noise.store(x, Ordering::Relaxed);
        clock.slack + x % clock.noise
    }

    /// Sleeps, reads, and again.
    pub(super) fn read_slowly(&self, socket: &Socket, size: usize, delay: u64, clock: Clock) -> io::Result<()> {
        if self.options.sleeps == Sleeps::Plain {
            self.sleep_and_read(socket, size, delay);
            return Ok(());
        }
        let mut pauses = Pauses::new(Then::Discard(size))?;
        loop {
            let done = pauses.run(socket.as_fd(), || delay + self.oversleep(clock))?;
            self.add_received(done.bytes);
            if done.ended {
                return Ok(());
            }
        }
    }

    /// The same with a system call for each sleep and each read.
    fn sleep_and_read(&self, socket: &Socket, size: usize, delay: u64) {
        let mut one = Batch::new(1, size);
        loop {
            sys::nap(delay);
            let Ok((n, more)) = one.discard(socket.as_fd()) else { return };
            self.add_received(n);
            if !more {
                return;
            }
        }
    }
}
