//! A client (a video player, or that of a service) and its server on a connection's real sockets.
//!
//! What they are: the client that the model runs too ([`tcpscape_plan::requests`]), on the receiver's socket, and a server on the sender's. A request is a
//! message of [`REQUEST_BYTES`], whose first eight bytes say how many bytes the answer has; the answer is as many, in writes of the flow's chunk.
//! Source: docs/models/methods/player.md, docs/models/methods/traffic.md. How it differs from the model: requests are data of the kernel's own TCP, which repeats lost ones.

use super::{Clock, Flow};
use crate::sys::{self, Batch};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use tcpscape_base::Time;
use tcpscape_plan::player::{Next, REQUEST_BYTES};
use tcpscape_plan::requests::Client;

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
