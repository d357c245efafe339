//! Dynamic right-sizing: the receiver's own estimate of the round-trip time, and the buffer that follows the reader.
//!
//! Source: Fisk and Feng, *Dynamic Right-Sizing* (2001); the factors are observed (docs/models/tcp/receiver.md, "Autotuning").

use super::window::Window;
use tcpscape_base::{Kernel, Rules, Time};

/// What a socket buffer costs besides its payload and headers in the estimate of a segment's memory: 256 + 320 bytes.
const BUFFER_OVERHEAD: u32 = 576;
/// Steps in which that estimate is raised.
const MEMORY_STEP: usize = 128;
/// Segments that are supposed to have been read in the round trip before the first.
const FIRST_SEGMENTS: u32 = 10;
/// An echo as old as this is no echo of a clock in milliseconds.
const OLDEST_ECHO_MS: u32 = i32::MAX as u32 / 1_000;

/// The round-trip time as the receiver sees it.
#[derive(Default)]
pub(super) struct RoundTrip {
    /// Smoothed, in 1/8 µs; 0 before the first sample.
    smoothed: u32,
    /// The timestamp echo that came last.
    last_echo: u32,
    /// A window of data is on its way since then, and ends here.
    round: Option<(u64, Time)>,
}

/// How a sample was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    /// From the age of a timestamp echo.
    Echo,
    /// The same, while data wait for a reader that may be the reason for its age: no larger one counts.
    EchoUnread,
    /// From the time that a window of data took: an upper bound.
    Window,
}

impl RoundTrip {
    /// The estimate in 1/8 µs, 0 before the first sample.
    #[inline]
    pub fn smoothed(&self) -> u32 {
        self.smoothed
    }
    /// The estimate in µs, if there is one.
    #[inline]
    pub fn micros(&self) -> Option<u64> {
        (self.smoothed > 0).then_some(u64::from(self.smoothed >> 3))
    }

    // A smaller sample counts at once, a larger one by an eighth, and not at all as an upper bound.
    fn sample(&mut self, micros: u32, method: Method) {
        let (eighths, known) = (micros.saturating_mul(8), self.smoothed);
        self.smoothed = match method {
            _ if known == 0 => eighths,
            Method::Echo if eighths >= known => (known - known / 8).saturating_add(micros),
            Method::Echo | Method::EchoUnread | Method::Window => eighths.min(known),
        };
    }

    /// A segment echoes timestamp `echo`, which was sent `age_ms` ago; `is_full` when it is as long as the sender's others. Each echo is
    /// used once. An age below a millisecond counts as the rules say; `is_unread` when data wait to be read.
    #[inline]
    pub fn on_echo(&mut self, echo: u32, age_ms: u32, is_full: bool, is_unread: bool, rules: &Rules) {
        if echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let age_ms = age_ms.max(rules.least_echo_ms);
        if is_full && echo != 0 && age_ms > 0 && age_ms < OLDEST_ECHO_MS {
            let method = if is_unread && rules.skips_larger_unread { Method::EchoUnread } else { Method::Echo };
            self.sample(age_ms * 1_000, method);
        }
    }

    /// Everything before `next` has come while a window of `window` bytes was open: has a window of data passed?
    #[inline]
    pub fn on_data(&mut self, now: Time, next: u64, window: u32) {
        if let Some((end, since)) = self.round {
            if next < end {
                return;
            }
            let micros = (now.micros() - since.micros()) as u32;
            self.sample(micros.max(1), Method::Window);
        }
        self.round = Some((next + u64::from(window), now));
    }
}

/// What the application reads in a round trip, and the buffer that holds it.
pub(super) struct RightSizing {
    /// Room for headers in every buffer, bytes.
    header_area: u32,
    /// Most bytes that were read in a round trip.
    most: u32,
    round: Round,
}

/// What is queued after a read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    /// Bytes that are still to be read and count against what was.
    pub unread: u64,
    /// Bytes up to the end of what came beyond a gap, if there is to be room for them.
    pub ahead: u64,
}

/// A round trip in which the application reads.
#[derive(Clone, Copy, Default)]
struct Round {
    began: Time,
    /// The first byte that was to be read then.
    first: u64,
}

impl RightSizing {
    /// Nothing was read.
    pub fn new(kernel: &Kernel) -> RightSizing {
        RightSizing { header_area: kernel.max_tcp_header, most: 0, round: Round::default() }
    }
    /// The connection is open, and `read` is the first byte to be read.
    pub fn establish(&mut self, now: Time, window: &Window, read: u64, rules: &Rules) {
        self.round = Round { began: now, first: read };
        self.most = window.grown().min(window.advertised()).min(FIRST_SEGMENTS * (window.mss() + rules.supposed_options));
    }
    /// The window has a new ceiling: more than that was never read.
    pub fn limit(&mut self, window: u32) {
        self.most = self.most.min(window);
    }

    /// The application has read everything before `read`: once in a round trip, if that was more than in any before, the buffer is made
    /// to hold twice as much and room for growth.
    pub fn on_read(&mut self, now: Time, read: u64, waiting: Waiting, round_trip: &RoundTrip, rules: &Rules, window: &mut Window) {
        let age = now.micros() - self.round.began.micros();
        if round_trip.micros().map_or(true, |rtt| age < rtt) {
            return;
        }
        let over = std::mem::replace(&mut self.round, Round { began: now, first: read });
        let bytes = (read - over.first).saturating_sub(waiting.unread) as u32;
        let before = self.most;
        self.most = before.max(bytes);
        if bytes > before {
            self.provide(before, waiting.ahead, rules, window);
        }
    }
    /// Data came beyond a gap, and end so many bytes after the next one expected: the buffer is made to hold them too.
    pub fn on_gap(&self, ahead: u64, rules: &Rules, window: &mut Window) {
        self.provide(self.most, ahead, rules, window);
    }
    // Makes room for what a sender may send whose most in a round trip was `before`, and for what is queued beyond a gap.
    fn provide(&self, before: u32, ahead: u64, rules: &Rules, window: &mut Window) {
        if !window.capacity().is_fixed() {
            let wanted = self.wanted(before, window.mss(), rules) + ahead;
            window.enlarge(self.memory(wanted, window));
        }
    }

    // What a buffer is to hold, the most before being `before`: twice what was read, some segments, and twice as much again as this has grown.
    fn wanted(&self, before: u32, mss: u32, rules: &Rules) -> u64 {
        let steady = 2 * u64::from(self.most) + rules.spare_segments * u64::from(mss);
        steady + 2 * (steady * u64::from(self.most - before) / u64::from(before.max(1)))
    }

    // The memory of so many bytes.
    fn memory(&self, wanted: u64, window: &Window) -> u64 {
        if window.capacity().is_measured() {
            window.capacity().memory_for(wanted)
        } else {
            wanted / u64::from(window.mss()) * self.segment_memory(window)
        }
    }
    // The memory of one segment: payload, header area and buffer, or more, in steps, if its window would not hold the payload.
    fn segment_memory(&self, window: &Window) -> u64 {
        let least = i64::from(window.mss() + self.header_area + BUFFER_OVERHEAD);
        let holds = |memory: &i64| window.capacity().window_of(*memory) >= i64::from(window.mss());
        (least..).step_by(MEMORY_STEP).find(holds).unwrap_or(least) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn window(kernel: &Kernel) -> Window {
        let mut w = Window::new(kernel, 0, 1_460);
        w.establish();
        w
    }
    /// A receiver that knows a round-trip time of 50 ms.
    fn fifty_ms() -> RoundTrip {
        let mut rtt = RoundTrip::default();
        rtt.on_echo(7, 50, true, false, Kernel::V6_1.rules());
        rtt
    }

    #[test]
    fn a_smaller_round_trip_counts_at_once_and_a_larger_one_by_an_eighth() {
        let mut rtt = fifty_ms();
        rtt.on_echo(8, 58, true, false, Kernel::V6_1.rules());
        assert_eq!(rtt.micros(), Some(51_000));
        rtt.on_echo(9, 40, true, false, Kernel::V6_1.rules());
        assert_eq!(rtt.micros(), Some(40_000));
        rtt.on_echo(9, 10, true, false, Kernel::V6_1.rules());
        assert_eq!(rtt.micros(), Some(40_000), "an echo is used once");
        rtt.on_echo(10, 10, false, false, Kernel::V6_1.rules());
        assert_eq!(rtt.micros(), Some(40_000), "a short segment may have waited for its sender");
    }

    /// While data wait to be read, 6.18 takes a larger sample for the reader's delay, and a smaller one still counts.
    #[test]
    fn a_larger_round_trip_does_not_count_while_data_wait() {
        for (kernel, micros) in [(Kernel::V6_12, 51_000), (Kernel::V6_18, 50_000)] {
            let mut rtt = fifty_ms();
            rtt.on_echo(8, 58, true, true, kernel.rules());
            assert_eq!(rtt.micros(), Some(micros));
            rtt.on_echo(9, 40, true, true, kernel.rules());
            assert_eq!(rtt.micros(), Some(40_000));
        }
    }

    /// An echo that no honest peer sends: half an hour, twice.
    #[test]
    fn an_absurd_age_is_bounded() {
        let mut rtt = RoundTrip::default();
        for echo in 1..4 {
            rtt.on_echo(echo, OLDEST_ECHO_MS - 1, true, false, Kernel::V6_1.rules());
        }
        assert_eq!(rtt.smoothed(), u32::MAX);
    }

    /// Before 6.12 an echo within its millisecond counts as 1 ms.
    #[test]
    fn an_echo_within_its_millisecond() {
        for (kernel, micros) in [(Kernel::V6_12, None), (Kernel::V6_1, Some(1_000))] {
            let mut rtt = RoundTrip::default();
            rtt.on_echo(7, 0, true, false, kernel.rules());
            assert_eq!(rtt.micros(), micros);
        }
    }

    /// Fisk and Feng, §3.2: the time in which a window of data comes is an upper bound of the round-trip time.
    #[test]
    fn a_window_of_data_bounds_the_round_trip() {
        let mut rtt = RoundTrip::default();
        rtt.on_data(Time(0), 1, 10_000);
        rtt.on_data(Time(20 * MS), 10_000, 10_000);
        assert_eq!(rtt.micros(), None);
        rtt.on_data(Time(30 * MS), 10_001, 10_000);
        rtt.on_data(Time(70 * MS), 20_001, 10_000);
        assert_eq!(rtt.micros(), Some(30_000), "the second took 40 ms, which says nothing");
    }

    #[test]
    fn growth_counts_twice_and_is_rounded_down_before() {
        let wanted = |bytes| RightSizing { most: bytes, ..RightSizing::new(&Kernel::V6_1) }.wanted(10_000, 1_000, Kernel::V6_1.rules());
        // Nothing more than before: twice 10,000 and 16 segments. Half as much again: 46,000, and twice a half of that.
        assert_eq!([wanted(10_000), wanted(15_000)], [36_000, 92_000]);
        // A ten-thousandth of 36,002 is 3, which counts as 6.
        assert_eq!(wanted(10_001), 36_002 + 6);
    }

    #[test]
    fn the_buffer_is_counted_in_segments() {
        // 1,448 + header area + 576, raised by 128 until half of it holds 1,448: 2,984 or 2,920 for each segment of twice what was read,
        // plus 16 segments, plus twice the growth.
        for (max_tcp_header, memory) in [(320, 2_984), (256, 2_920)] {
            let kernel = Kernel { max_tcp_header, ..Kernel::V6_1 };
            let (mut w, mut sizing) = (window(&kernel), RightSizing::new(&kernel));
            sizing.establish(Time(0), &w, 0, kernel.rules());
            sizing.on_read(Time(49 * MS), 20 * 1_448, Waiting::default(), &fifty_ms(), kernel.rules(), &mut w);
            assert_eq!(w.capacity().buffer(), 131_072, "a round trip has not passed");
            sizing.on_read(Time(50 * MS), 20 * 1_448, Waiting::default(), &fifty_ms(), kernel.rules(), &mut w);
            assert_eq!(w.capacity().buffer(), (2 * 20 + 16) * 3 * memory);
        }
    }

    /// Kernel: the window stays at 105,856 in 6.6.87 while a segment waits to be read, at 107,264 in 6.12.117 (60 Mbit/s, 50 ms).
    #[test]
    fn in_6_6_the_segments_supposed_to_have_been_read_have_their_options() {
        for (kernel, memory, ceiling) in [(Kernel::V6_6, 2_344, 107_189), (Kernel::V6_12, 2_408, 108_597)] {
            let (mut w, mut sizing) = (window(&kernel), RightSizing::new(&kernel));
            sizing.establish(Time::ZERO, &w, 1, kernel.rules());
            w.measure(1_448, memory);
            sizing.on_read(Time(50 * MS), 19_777, Waiting::default(), &fifty_ms(), kernel.rules(), &mut w);
            assert_eq!(w.ceiling(), ceiling);
        }
    }

    #[test]
    fn what_still_waits_counts_against_what_was_read() {
        let (mut w, mut sizing) = (window(&Kernel::V6_12), RightSizing::new(&Kernel::V6_12));
        sizing.establish(Time::ZERO, &w, 1, Kernel::V6_12.rules());
        let buffer = w.capacity().buffer();
        sizing.on_read(Time(50 * MS), 60_001, Waiting { unread: 50_000, ahead: 0 }, &fifty_ms(), Kernel::V6_12.rules(), &mut w);
        assert_eq!(w.capacity().buffer(), buffer);
        sizing.on_read(Time(100 * MS), 120_001, Waiting::default(), &fifty_ms(), Kernel::V6_12.rules(), &mut w);
        assert!(w.capacity().buffer() > buffer);
    }
}
