//! What the applications of a flow do, beyond writing and reading as fast as they can: a paced writer, one that writes by turns, a slow reader; a client
//! (a video player, or that of a service) and its server.
//!
//! The client is the one that the model runs too ([`tcpscape_plan::requests`]), on the receiver's socket, the server is on the sender's. A request is a
//! message of [`REQUEST_BYTES`], whose first eight bytes say how many bytes the answer has; the answer is as many, in writes of the flow's chunk.
//! Source: the published experiments' scripts; docs/models/methods/player.md, docs/models/methods/traffic.md. How it differs from the model: requests are
//! data of the kernel's own TCP, which repeats lost ones. In virtual time applications sleep in chains ([`crate::pause`]), in real time by nanosleep(2).

use super::{Clock, Flow, Sleeps};
use crate::pause::{Pauses, Then};
use crate::sys::{self, Batch};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use tcpscape_base::{Duration, Time};
use tcpscape_plan::player::{Next, REQUEST_BYTES};
use tcpscape_plan::requests::Client;

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

/// Most reads in one system call.
const READS: usize = 64;

impl Flow {
    /// The server: answers one request after the other until it is told to stop or the connection ends.
    pub(super) fn serve(&self, chunk: usize) {
        let mut request = [0; REQUEST_BYTES as usize];
        while self.take_request(&mut request) {
            let (size, _) = request.split_at(8);
            self.write_all(chunk, u64::from_le_bytes(size.try_into().expect("eight bytes")));
        }
    }

    /// Reads a whole request; false at the end.
    fn take_request(&self, request: &mut [u8]) -> bool {
        let mut filled = 0;
        while filled < request.len() && !self.stopping() {
            match (&self.sender).read(&mut request[filled..]) {
                Ok(0) => return false,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        filled == request.len()
    }

    /// The client: asks, reads the answers and waits until the connection ends.
    pub(super) fn converse(&self, socket: &Socket, mut client: Client, clock: Clock) {
        let now = || Time(sys::now().saturating_sub(clock.zero));
        let mut many = Batch::new(READS, self.plan.read.size as usize);
        loop {
            let goes_on = match client.next(now()) {
                Next::Wait(until) => self.wait(socket, &client, until, &mut many, clock),
                Next::Request(bytes) => {
                    let complete = self.ask(socket, bytes) && self.download(socket, bytes, &mut many);
                    if complete {
                        client.on_answer(now());
                    }
                    complete
                }
            };
            if !goes_on {
                break;
            }
        }
        let end = self.span().1;
        let end = if end > 0 { Time(end.saturating_sub(clock.zero)) } else { now() };
        let _ = client.player(end).map(|viewed| self.viewed.set(viewed));
        let _ = client.responses().map(|answered| self.answered.set(answered));
    }

    /// Waits for the next request; false where the connection ends before.
    fn wait(&self, socket: &Socket, client: &Client, until: Time, many: &mut Batch, clock: Clock) -> bool {
        let (_, stop) = self.plan.span(clock.end);
        let at = || clock.zero + until.0 + self.oversleep(clock) - clock.slack;
        match client {
            Client::Player(_) => !sys::ends_before(socket.as_fd(), at()),
            // Nothing follows but the end, and a sleep would not see that.
            Client::Requests(_) if until >= stop => many.discard(socket.as_fd()).is_ok_and(|(_, more)| more),
            Client::Requests(_) => {
                sys::nap_until(at());
                true
            }
        }
    }

    fn ask(&self, mut socket: &Socket, bytes: u64) -> bool {
        let mut request = [0; REQUEST_BYTES as usize];
        request[..8].copy_from_slice(&bytes.to_le_bytes());
        socket.write_all(&request).is_ok()
    }

    /// Reads so many bytes; false if the connection ends before.
    fn download(&self, socket: &Socket, bytes: u64, many: &mut Batch) -> bool {
        let mut left = bytes;
        while left > 0 {
            let Ok((n, more)) = many.discard_ready(socket.as_fd()) else { return false };
            self.add_received(n);
            left = left.saturating_sub(n);
            if !more && left > 0 {
                return false;
            }
        }
        true
    }
}
