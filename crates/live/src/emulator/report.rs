//! What the emulator did to the packets that nobody asked for: lateness, losses, what it cost. And which of it is worth a warning.

use super::clocks::ClockStep;
use serde::Serialize;
use std::collections::BTreeMap;
use tcpscape_base::Histogram;
use tcpscape_path::Direction;

/// How late packets left, µs: from the moment when they were due until the kernel had them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median.
    pub p50_us: f64,
    /// 99 % left no later than this.
    pub p99_us: f64,
    /// 99.9 % left no later than this.
    pub p999_us: f64,
    /// The latest.
    pub max_us: f64,
    /// Mean.
    pub mean_us: f64,
}

impl From<&Histogram> for Lateness {
    fn from(h: &Histogram) -> Lateness {
        if h.count() == 0 {
            return Lateness::default();
        }
        let q = |q| h.quantile(q);
        Lateness { p50_us: q(0.5), p99_us: q(0.99), p999_us: q(0.999), max_us: f64::from(h.max()), mean_us: h.mean() }
    }
}

/// Frames that were lost although the path did not ask for it, by place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Losses {
    /// At the entrance: the ring of AF_PACKET was full.
    pub entrance: u64,
    /// At the entrance: super-packets, on a port that was opened for packets of the MTU.
    pub too_large: u64,
    /// In the emulator: too much waited to be sent.
    pub no_room: u64,
    /// By the device that sends.
    pub device: u64,
    /// By the kernel when it was to send them: its reason, and how many.
    pub refused: BTreeMap<String, u64>,
}

impl Losses {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.entrance + self.too_large + self.no_room + self.device + self.refused.values().sum::<u64>()
    }
}

/// One direction's account.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DirectionReport {
    /// How late packets left.
    pub lateness: Lateness,
    /// Frames that arrived; a super-packet is one.
    pub frames_in: u64,
    /// Packets of MTU size that left, of which lateness is a statistic.
    pub released: u64,
    /// Frames that left.
    pub frames_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// How often the kernel had no room for a frame and got it again later.
    pub retries: u64,
    /// Frames that were lost and should not have been.
    pub unasked: Losses,
}

/// Under which conditions the thread ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// Whether real-time priority was asked for.
    pub asked: bool,
    /// The real-time priority that it had; 0 is ordinary priority.
    pub realtime: u64,
    /// Whether memory is kept from being paged out.
    pub memory_locked: bool,
    /// How late a sleep may end, ns.
    pub timer_slack_ns: u64,
}

/// The emulator's account of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EmulatorReport {
    /// From its zero until now, s.
    pub seconds: f64,
    /// From the sender's side to the receiver's.
    pub forward: DirectionReport,
    /// And back.
    pub reverse: DirectionReport,
    /// CPU time of the emulator's thread, s. What the receiving hosts' kernel does with a packet often runs within the call that sends
    /// it, and counts too.
    pub cpu_s: f64,
    /// CPU time as a part of the time.
    pub cpu_share: f64,
    /// How often it woke.
    pub wakeups: u64,
    /// Most frames that one call sent.
    pub largest_batch: u64,
    /// Under which conditions it ran.
    pub conditions: Conditions,
    /// Steps of the wall clock, the first 32 of them.
    pub clock_steps: Vec<ClockStep>,
    /// How many steps there were.
    pub clock_stepped: u64,
}

/// Lateness of the 99 % above this is flagged, µs, or above this part of the path's delay.
const LATE_US: f64 = 1000.0;
const LATE_PART: f64 = 0.02;
/// A thread that is busy for more than this part of the time has no reserve.
const BUSY: f64 = 0.9;

impl EmulatorReport {
    /// The account of a direction.
    pub fn direction(&self, direction: Direction) -> &DirectionReport {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    /// What a user should know before trusting the result: one line each, none if all is well. `delay_ns` is the path's delay, forward and
    /// reverse; a direction without delay is judged by 1 ms alone.
    pub fn flags(&self, delay_ns: [u64; 2]) -> Vec<String> {
        let late = Direction::BOTH.into_iter().filter_map(|d| self.late(d, delay_ns[d.index()]));
        let lost = Direction::BOTH.into_iter().filter_map(|d| self.lost(d));
        let steps = self.clock_steps.first().map(|first| {
            let (n, by) = (self.clock_stepped, first.by_s);
            format!("the wall clock was set {n} times during the trial, first by {by:+.3} s; delays are those of the monotonic clock")
        });
        let busy = (self.cpu_share > BUSY).then(|| {
            let share = self.cpu_share * 100.0;
            format!("the emulator was busy for {share:.0} % of the time: the rate is above what this machine carries")
        });
        late.chain(lost).chain(steps).chain(busy).collect()
    }

    fn late(&self, direction: Direction, delay_ns: u64) -> Option<String> {
        let account = self.direction(direction);
        let part = delay_ns as f64 * 1e-3 * LATE_PART;
        let limit = if delay_ns == 0 { LATE_US } else { part.min(LATE_US) };
        let Lateness { p50_us, p99_us, max_us, .. } = account.lateness;
        let realtime = match (self.conditions.realtime, self.conditions.asked) {
            (1.., _) => "",
            (0, false) => "; real-time priority was not asked for",
            (0, true) => "; real-time priority is not allowed here",
        };
        (account.released > 0 && p99_us > limit).then(|| {
            format!(
                "the emulator released {direction} packets late: median {p50_us:.0} µs, 99 % within {p99_us:.0} µs (limit {limit:.0} µs), \
                 at most {max_us:.0} µs{realtime}"
            )
        })
    }

    fn lost(&self, direction: Direction) -> Option<String> {
        let unasked = &self.direction(direction).unasked;
        let places = [
            (unasked.entrance, "before the emulator"),
            (unasked.too_large, "as super-packets where none should be"),
            (unasked.no_room, "in it"),
            (unasked.device, "by the device that sends"),
        ];
        let places = places.into_iter().map(|(n, place)| (n, place.to_owned()));
        let refused = unasked.refused.iter().map(|(why, &n)| (n, format!("refused by the kernel: {why}")));
        let list: Vec<String> = places.chain(refused).filter(|p| p.0 > 0).map(|(n, place)| format!("{n} {place}")).collect();
        (!list.is_empty()).then(|| format!("{} {direction} packets were lost that nobody asked for: {}", unasked.total(), list.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(p99_us: f64) -> EmulatorReport {
        let lateness = Lateness { p50_us: 30.0, p99_us, p999_us: p99_us, max_us: p99_us, mean_us: 30.0 };
        let forward = DirectionReport { lateness, released: 100, ..DirectionReport::default() };
        EmulatorReport { forward, ..EmulatorReport::default() }
    }

    #[test]
    fn two_per_cent_of_the_delay_or_one_millisecond() {
        let ms = 1_000_000;
        assert!(late(499.0).flags([25 * ms, 25 * ms]).is_empty());
        assert!(late(501.0).flags([25 * ms, 25 * ms])[0].contains("99 % within 501 µs (limit 500 µs)"));
        assert!(late(999.0).flags([500 * ms, 0]).is_empty());
        assert_eq!(late(1001.0).flags([500 * ms, 0]).len(), 1);
        assert!(late(999.0).flags([0, 0]).is_empty());
        assert_eq!(late(1001.0).flags([0, 0]).len(), 1);
    }

    #[test]
    fn what_was_lost_is_said_with_its_place() {
        let mut report = late(10.0);
        report.reverse.unasked.entrance = 3;
        report.reverse.unasked.refused.insert("Invalid argument (os error 22)".into(), 2);
        let flags = report.flags([0, 0]);
        assert_eq!(
            flags,
            ["5 reverse packets were lost that nobody asked for: 3 before the emulator, 2 refused by the kernel: Invalid argument (os error 22)"]
        );
    }

    #[test]
    fn steps_and_saturation_are_flagged() {
        let mut report = late(10.0);
        report.clock_steps.push(ClockStep { at_s: 1.0, by_s: -3600.0 });
        report.clock_stepped = 1;
        report.cpu_share = 0.97;
        let flags = report.flags([0, 0]);
        assert!(flags[0].contains("-3600.000 s") && flags[1].contains("97 %"));
    }
}
