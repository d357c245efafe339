//! A client of a service and its server on a connection's real sockets.
//!
//! What it is: the client that the model runs too ([`tcpscape_plan::requests`]), on the receiver's socket; the server on the sender's is the
//! [`super::player`]'s. Source: docs/models/methods/traffic.md. How it differs from the model: requests are data of the kernel's own TCP, which
//! repeats lost ones.

use super::player::READS;
use super::{Clock, Flow};
use crate::sys::{self, Batch};
use socket2::Socket;
use std::os::fd::AsFd;
use tcpscape_base::Time;
use tcpscape_plan::player::Next;
use tcpscape_plan::requests::Requests;
use tcpscape_plan::results::ResponseSummary;

impl Flow {
    /// The client: asks, reads the answer and waits until the connection ends.
    pub(super) fn request(&self, socket: &Socket, mut requests: Requests, clock: Clock) -> ResponseSummary {
        let now = || Time(sys::now().saturating_sub(clock.zero));
        let (_, stop) = self.plan.span(clock.end);
        let mut many = Batch::new(READS, self.plan.read.size as usize);
        loop {
            let goes_on = match requests.next(now()) {
                // nothing follows but the end, and a sleep would not see that
                Next::Wait(until) if until >= stop => many.discard(socket.as_fd()).is_ok_and(|(_, more)| more),
                Next::Wait(until) => {
                    sys::nap_until(clock.zero + until.0 + self.oversleep(clock) - clock.slack);
                    true
                }
                Next::Request(bytes) => {
                    let complete = self.ask(socket, bytes) && self.download(socket, bytes, &mut many);
                    if complete {
                        requests.on_answer(now());
                    }
                    complete
                }
            };
            if !goes_on {
                return requests.summary();
            }
        }
    }
}
