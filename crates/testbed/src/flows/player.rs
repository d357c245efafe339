//! A video player and its server on a connection's real sockets.
//!
//! What they are: the player that the model runs too ([`tcpscape_plan::player`]), on the receiver's socket, and a server on the sender's. A request is a
//! message of [`REQUEST_BYTES`], whose first eight bytes say how many bytes the answer has; the answer is as many, in writes of the flow's chunk.
//! Source: docs/models/methods/player.md. How it differs from the model: requests are data of the kernel's own TCP, which repeats lost ones.

use super::{Clock, Flow};
use crate::sys::{self, Batch};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use tcpscape_base::Time;
use tcpscape_plan::player::{Next, Player, PlayerPlan, PlayerSummary, REQUEST_BYTES};

/// Most reads in one system call.
pub(super) const READS: usize = 64;

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

    /// The player: asks, reads and waits until the connection ends.
    pub(super) fn play(&self, socket: &Socket, plan: &PlayerPlan, clock: Clock) -> PlayerSummary {
        let now = || Time(sys::now().saturating_sub(clock.zero));
        let (mut player, mut many) = (Player::new(plan), Batch::new(READS, self.plan.read.size as usize));
        loop {
            let goes_on = match player.next(now()) {
                Next::Wait(until) => !sys::ends_before(socket.as_fd(), clock.zero + until.0 + self.oversleep(clock) - clock.slack),
                Next::Request(bytes) => {
                    let complete = self.ask(socket, bytes) && self.download(socket, bytes, &mut many);
                    if complete {
                        player.on_segment_complete(now());
                    }
                    complete
                }
            };
            if !goes_on {
                let end = self.span().1;
                return player.summary(if end > 0 { Time(end.saturating_sub(clock.zero)) } else { now() });
            }
        }
    }

    pub(super) fn ask(&self, mut socket: &Socket, bytes: u64) -> bool {
        let mut request = [0; REQUEST_BYTES as usize];
        request[..8].copy_from_slice(&bytes.to_le_bytes());
        socket.write_all(&request).is_ok()
    }

    /// Reads so many bytes; false if the connection ends before.
    pub(super) fn download(&self, socket: &Socket, bytes: u64, many: &mut Batch) -> bool {
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
