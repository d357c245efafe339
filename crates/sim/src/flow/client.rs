//! The receiving application as a client: it asks, as a video player for segments or of a service that answers requests, and reads what comes.
//!
//! What it is: the machine of [`crate::player`], or that of [`crate::requests`], on a connection. A request is one packet on the way back, with its delay, queues and losses, and
//! acknowledges what has come, as a message on the same connection does. Source: RFC 6298 §2 and §5 (when a request is sent again; 200 ms more
//! than the RTT at least, as Linux has it). How it differs: the client's RTT is measured from request to first byte of the answer. Does not model:
//! the client's congestion window and tail loss probe, time that the server thinks.

use super::Costs;
use tcpscape_base::{Duration, Stream, Time};
use tcpscape_plan::player::{Next, REQUEST_BYTES};
use tcpscape_plan::requests::Client as Asker;
use tcpscape_plan::FlowPlan;
use tcpscape_tcp::Receiver;

/// Timeout before the RTT is known (RFC 6298 §2.1).
const INITIAL: Duration = Duration::secs(1);
/// Least that a timeout exceeds the smoothed RTT by. Linux: TCP_RTO_MIN
const LEAST_MARGIN: Duration = Duration::millis(200);
/// Longest timeout. Linux: TCP_RTO_MAX
const LONGEST: Duration = Duration::secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The connection is not open; the SYN came then.
    Closed(Time),
    /// Sees at that time whether to ask.
    Idle(Time),
    /// Asked at `at`, and sends the request again at `again`.
    Asked { at: Time, again: Time },
    /// The answer has begun to come.
    Reading,
}

/// Who asks, and what its connection still owes it.
pub(super) struct Client {
    pub asker: Asker,
    state: State,
    timeout: Timeout,
    /// Bytes of the last request's answer, and the bytes of the stream that end it.
    bytes: u64,
    end: u64,
}

impl Client {
    /// The client of a flow; none where its receiver only reads.
    pub fn of(plan: &FlowPlan) -> Option<Client> {
        let asker = Asker::of(plan)?;
        Some(Client { asker, state: State::Closed(Time::ZERO), timeout: Timeout::default(), bytes: 0, end: 0 })
    }

    /// The SYN has come.
    pub fn on_syn(&mut self, now: Time) {
        if let State::Closed(_) = self.state {
            self.state = State::Closed(now);
        }
    }

    /// The connection is open: it begins, if it has not.
    pub fn on_open(&mut self, now: Time) {
        if let State::Closed(syn) = self.state {
            self.timeout.sample(now.since(syn));
            self.state = State::Idle(now);
        }
    }

    /// Bytes of the answer to the request that is under way.
    pub fn asked_bytes(&self) -> u64 {
        self.bytes
    }

    /// When it wants to run, whatever is read.
    pub fn due(&self) -> Option<Time> {
        match self.state {
            State::Idle(t) | State::Asked { again: t, .. } => Some(t),
            State::Closed(_) | State::Reading => None,
        }
    }

    /// It runs, having read so many bytes of the stream.
    pub fn run(&mut self, now: Time, costs: Costs, read: u64, receiver: &mut Receiver, noise: &mut Stream) {
        if let State::Asked { at, again } = self.state {
            if read > self.end - self.bytes {
                self.timeout.sample(now.since(at));
                self.state = State::Reading;
            } else if now >= again {
                self.timeout.double();
                receiver.rewrite(now, REQUEST_BYTES);
                self.state = State::Asked { at, again: now + self.timeout.get() };
            }
        }
        if self.state == State::Reading && read >= self.end {
            self.asker.on_answer(now);
            self.state = State::Idle(now);
        }
        if matches!(self.state, State::Idle(t) if t <= now) {
            self.ask(now, costs, receiver, noise);
        }
    }

    /// Decides what comes next: a request, or a sleep.
    fn ask(&mut self, now: Time, costs: Costs, receiver: &mut Receiver, noise: &mut Stream) {
        self.state = match self.asker.next(now) {
            Next::Wait(until) => State::Idle(until + costs.oversleep(noise)),
            Next::Request(bytes) => {
                (self.bytes, self.end) = (bytes, self.end + bytes);
                receiver.write(now, REQUEST_BYTES);
                State::Asked { at: now, again: now + self.timeout.get() }
            }
        };
    }
}

/// The client's retransmission timeout.
#[derive(Clone, Copy, Debug, Default)]
struct Timeout {
    /// Smoothed RTT and its deviation; none before the first sample.
    rtt: Option<(Duration, Duration)>,
    doublings: u32,
}

impl Timeout {
    /// RFC 6298 §2.2 and §2.3. A request that was sent again gives no sample (§3), but ends the doubling.
    fn sample(&mut self, rtt: Duration) {
        if std::mem::take(&mut self.doublings) > 0 {
            return;
        }
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smooth, deviation)) => {
                let error = Duration(smooth.0.abs_diff(rtt.0));
                ((smooth * 7 + rtt) / 8, (deviation * 3 + error) / 4)
            }
        });
    }
    /// RFC 6298 §5.5.
    fn double(&mut self) {
        self.doublings += 1;
    }
    fn get(&self) -> Duration {
        let plain = self.rtt.map_or(INITIAL, |(smooth, deviation)| smooth + (deviation * 4).max(LEAST_MARGIN));
        (plain * (1 << self.doublings.min(16))).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First 100 ms: 100 + max(4 · 50, 200) = 300 ms, doubled 600. Then a request that was repeated: no sample, no doubling. Then 180 ms:
    /// smoothed 110, deviation (3 · 50 + 80) / 4 = 57.5, so 110 + 230 = 340 ms.
    #[test]
    fn the_timeout_is_that_of_the_rfc() {
        let ms = Duration::millis;
        let mut t = Timeout::default();
        assert_eq!(t.get(), ms(1_000));
        t.sample(ms(100));
        assert_eq!(t.get(), ms(300));
        t.double();
        assert_eq!(t.get(), ms(600));
        t.sample(ms(900));
        assert_eq!(t.get(), ms(300));
        t.sample(ms(180));
        assert_eq!(t.get(), ms(340));
    }
}
