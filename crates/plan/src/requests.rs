//! The receiving application as a client of a service: it asks, reads the answer, and asks again. A machine without input and output: the model's
//! clients and those of real sockets both run it, as they run a player ([`Client`]).

use crate::plan::{App, FlowPlan};
use crate::player::{Next, Player, PlayerSummary};
use crate::results::{ResponseSummary, RttSummary};
use crate::transfers::rounded_us;
use tcpscape_base::{Duration, Histogram, Time};

/// When the next request follows.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// So long after an answer.
    Think(Duration),
    /// At each multiple of it since `start`, or as soon as the answer before is there.
    Every { period: Duration, start: Time },
}

/// A client, and how long its requests took.
#[derive(Debug)]
pub struct Requests {
    bytes: u64,
    pace: Pace,
    /// When it may ask next, and since when it waits for an answer.
    due: Time,
    asked: Time,
    /// Requests written.
    count: u64,
    times: Histogram,
}

impl Requests {
    /// The client of a flow whose application answers requests.
    pub fn of(plan: &FlowPlan) -> Option<Requests> {
        let App::Respond { response, think_ns, every_ns, .. } = plan.app else { return None };
        let pace = match every_ns {
            0 => Pace::Think(Duration(think_ns)),
            _ => Pace::Every { period: Duration(every_ns), start: Time(plan.start_ns) },
        };
        Some(Requests { bytes: response, pace, due: Time::ZERO, asked: Time::ZERO, count: 0, times: Histogram::default() })
    }

    /// What it does at `now`, when no answer is under way.
    pub fn next(&mut self, now: Time) -> Next {
        if now < self.due {
            return Next::Wait(self.due);
        }
        self.count += 1;
        self.asked = now;
        Next::Request(self.bytes)
    }

    /// The last byte of the answer was read.
    pub fn on_answer(&mut self, now: Time) {
        self.times.add(rounded_us(now.since(self.asked)));
        self.due = match self.pace {
            Pace::Think(pause) => now + pause,
            Pace::Every { period, start } => Time(start.0.saturating_add(period.0.saturating_mul(self.count))),
        };
    }

    /// Its results.
    pub fn summary(&self) -> ResponseSummary {
        ResponseSummary { count: self.times.count(), time_ms: RttSummary::of(&self.times) }
    }
}

/// The client of a flow whose receiver asks: what decides when, and for how much.
#[derive(Debug)]
pub enum Client {
    /// A video player.
    Player(Box<Player>),
    /// A client of a service.
    Requests(Requests),
}

impl Client {
    /// That of a flow; none where its receiver only reads.
    pub fn of(plan: &FlowPlan) -> Option<Client> {
        match &plan.player {
            Some(player) => Some(Client::Player(Box::new(Player::new(player)))),
            None => Requests::of(plan).map(Client::Requests),
        }
    }

    /// What it does at `now`, when no answer is under way.
    pub fn next(&mut self, now: Time) -> Next {
        match self {
            Client::Player(player) => player.next(now),
            Client::Requests(requests) => requests.next(now),
        }
    }

    /// The last byte of the answer was read.
    pub fn on_answer(&mut self, now: Time) {
        match self {
            Client::Player(player) => player.on_segment_complete(now),
            Client::Requests(requests) => requests.on_answer(now),
        }
    }

    /// What the viewer of a player has seen by `end`.
    pub fn player(&self, end: Time) -> Option<PlayerSummary> {
        match self {
            Client::Player(player) => Some(player.summary(end)),
            Client::Requests(_) => None,
        }
    }

    /// How long requests took that were answered in full; none of a player.
    pub fn responses(&self) -> Option<ResponseSummary> {
        match self {
            Client::Player(_) => None,
            Client::Requests(requests) => Some(requests.summary()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn client(fields: &str) -> Requests {
        let flow = format!(r#"{{"cca": "cubic", "start_ns": 5000000, "app": {{"kind": "respond", "response": 1000, {fields}}}}}"#);
        Requests::of(&serde_json::from_str(&flow).unwrap()).unwrap()
    }

    #[test]
    fn a_client_thinks_after_each_answer() {
        let mut c = client(r#""think_ns": 30000000"#);
        assert_eq!(c.next(ms(7)), Next::Request(1_000));
        c.on_answer(ms(27));
        assert_eq!(c.next(ms(27)), Next::Wait(ms(57)));
        assert_eq!(c.next(ms(57)), Next::Request(1_000));
        let s = c.summary();
        assert_eq!((s.count, s.time_ms.max), (1, 20.0));
    }

    /// Every 100 ms since 5 ms. The second answer takes until 240 ms: the third request follows at once, the fourth at 305 ms.
    #[test]
    fn a_client_keeps_its_clock() {
        let mut c = client(r#""every_ns": 100000000"#);
        let mut ask = |now, answered| {
            assert_eq!(c.next(ms(now)), Next::Request(1_000));
            c.on_answer(ms(answered));
            c.next(ms(answered).max(ms(0)))
        };
        assert_eq!(ask(20, 60), Next::Wait(ms(105)));
        assert_eq!(ask(105, 240), Next::Request(1_000));
        c.on_answer(ms(260));
        assert_eq!(c.next(ms(260)), Next::Wait(ms(305)));
    }
}
