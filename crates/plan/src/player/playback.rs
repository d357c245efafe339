//! What the viewer sees: the buffer is filled by segments and emptied by playback.
//!
//! Source: Yin et al., SIGCOMM 2015, equations 1 to 4.

use tcpscape_base::{Duration, Time};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing was asked for yet.
    #[default]
    Idle,
    /// Waits for the first picture since then.
    Starting(Time),
    Playing,
    /// Stopped since then, with nothing to play.
    Stalled(Time),
}

/// The buffer and what has been played.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Playback {
    state: State,
    /// Media in the buffer at `at`.
    level: Duration,
    at: Time,
    startup: Option<Duration>,
    played: Duration,
    stalls: u64,
    stalled: Duration,
}

impl Playback {
    /// The first request leaves; later ones change nothing.
    pub fn begin(&mut self, now: Time) {
        if self.state == State::Idle {
            self.state = State::Starting(now);
        }
    }

    /// Plays until `now`. A buffer that is empty at this very moment is no stall yet.
    pub fn advance(&mut self, now: Time) {
        let passed = now.since(self.at);
        self.at = now;
        if self.state != State::Playing {
            return;
        }
        let played = passed.min(self.level);
        self.played = self.played + played;
        self.level = self.level - played;
        if passed > played {
            self.stalls += 1;
            self.state = State::Stalled(Time(now.0 - (passed - played).0));
        }
    }

    /// A segment is there: playback begins, goes on or resumes.
    pub fn add(&mut self, now: Time, media: Duration) {
        self.advance(now);
        self.level = self.level + media;
        match self.state {
            State::Starting(since) => self.startup = Some(now.since(since)),
            State::Stalled(since) => self.stalled = self.stalled + now.since(since),
            State::Idle | State::Playing => {}
        }
        self.state = State::Playing;
    }

    /// Media in the buffer.
    pub fn level(&self) -> Duration {
        self.level
    }
    /// From the first request to the first picture; `None` before that.
    pub fn startup(&self) -> Option<Duration> {
        self.startup
    }
    /// How long it has been waiting for the first picture at `now`: since the trial's begin where it never asked.
    pub fn waited(&self, now: Time) -> Duration {
        match self.state {
            State::Starting(since) => now.since(since),
            State::Idle => now.since(Time::ZERO),
            State::Playing | State::Stalled(_) => Duration::ZERO,
        }
    }
    /// Media played.
    pub fn played(&self) -> Duration {
        self.played
    }
    /// Stops after the start.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }
    /// Time stopped by `now`.
    pub fn stalled(&self, now: Time) -> Duration {
        match self.state {
            State::Stalled(since) => self.stalled + now.since(since),
            _ => self.stalled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Asked at 1 s, 4 s of media at 1.5 s: they last until 5.5 s. The next come at 7 s: one stall of 1.5 s. At 9 s there are 2 s left.
    #[test]
    fn media_last_as_long_as_they_are() {
        let mut p = Playback::default();
        p.begin(at(1_000));
        p.add(at(1_500), Duration::secs(4));
        assert_eq!(p.startup(), Some(Duration(500_000_000)));
        p.add(at(7_000), Duration::secs(4));
        p.advance(at(9_000));
        assert_eq!(
            (p.stalls(), p.stalled(at(9_000)), p.played(), p.level()),
            (1, Duration(1_500_000_000), Duration::secs(6), Duration::secs(2))
        );
    }

    #[test]
    fn a_segment_that_comes_as_the_last_frame_is_shown_is_in_time() {
        let mut p = Playback::default();
        p.begin(at(0));
        p.add(at(0), Duration::secs(4));
        p.add(at(4_000), Duration::secs(4));
        assert_eq!((p.stalls(), p.level()), (0, Duration::secs(4)));
    }

    #[test]
    fn a_stall_lasts_until_the_end_and_a_start_may_never_come() {
        let mut p = Playback::default();
        p.begin(at(500));
        p.advance(at(3_000));
        assert_eq!((p.startup(), p.waited(at(3_000)), p.stalled(at(3_000))), (None, Duration(2_500_000_000), Duration::ZERO));
        p.add(at(3_000), Duration::secs(1));
        p.advance(at(10_000));
        assert_eq!((p.stalls(), p.stalled(at(10_000)), p.waited(at(10_000))), (1, Duration::secs(6), Duration::ZERO));
    }
}
