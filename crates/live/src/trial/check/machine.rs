//! What the machine did while a trial ran: how busy its CPUs were and with what, how late a plain thread woke, whether the clock was set.
//!
//! A thread of its own looks every [`EVERY`]. Source: proc(5) (`/proc/stat`), clock_gettime(2), prctl(2).
//! How it differs from top(1): CPU time is judged in windows of half a second, so that a hog of a part of the trial is seen.

use serde::Serialize;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use tcpscape_base::Histogram;
use tcpscape_testbed::flows::Flow;
use tcpscape_testbed::sys;

use crate::trial::sys as clocks;

/// How often it looks, ns.
const EVERY: u64 = 50_000_000;
/// Looks in a window of CPU time.
const WINDOW: u64 = 10;
/// A window with less than this share of idle time is saturated.
const IDLE: f64 = 0.03;
/// Share of saturated windows that is flagged, and the least number of them: one alone may be another program's short job.
const SATURATED: f64 = 0.2;
const SATURATED_LEAST: usize = 2;
/// Share of the CPUs' time that the hypervisor gave to others and that is flagged.
const STOLEN: f64 = 0.05;
/// Share of the trial that an application's thread may have waited for a CPU before it is flagged.
const WAITED: f64 = 0.05;
/// How far the wall clock may move against the monotonic one, ns, beyond what reading them both takes: it is a step then. A clock that is slewed
/// moves both (clock_gettime(2)).
const STEP: u64 = 100_000;

/// A clock that is set, for a test: where the clock cannot be, its readings are shifted.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub struct ClockStep {
    /// When, ns after the trial's begin.
    pub at_ns: u64,
    /// By how much, ns.
    pub by_ns: i64,
}

/// What was seen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// CPUs that are on.
    pub cpus: usize,
    /// Share of their time without work.
    pub idle: f64,
    /// Share of their time that a hypervisor gave to others.
    pub steal: f64,
    /// Share of their time that this trial used.
    pub own: f64,
    /// Share of windows of half a second in which they were saturated.
    pub saturated: f64,
    /// Longest time that an application's thread was ready and waited for a CPU, as a share of the trial.
    pub waited: f64,
    /// How late a thread without priority woke from sleep, µs: median, 99th percentile and most.
    pub wake_late_us: [f64; 3],
    /// Largest step of the wall clock, ms.
    pub clock_step_ms: f64,
    /// Load averages over 1, 5 and 15 minutes at the end.
    pub load: String,
}

/// The thread that looks.
pub struct Monitor {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Machine>,
}

impl Monitor {
    /// Begins to look.
    pub fn start(step: Option<ClockStep>) -> std::io::Result<Monitor> {
        let over = Arc::new(AtomicBool::new(false));
        let theirs = over.clone();
        let thread = std::thread::Builder::new().name("monitor".into()).spawn(move || watch(&theirs, step))?;
        Ok(Monitor { over, thread })
    }

    /// What was seen until now. `flows`: the trial's, which have ended.
    pub fn finish(self, flows: &[Arc<Flow>], duration_ns: u64) -> Machine {
        self.over.store(true, Ordering::Release);
        let machine = self.thread.join().unwrap_or_default();
        let waited = flows.iter().flat_map(|f| f.cpu()).flatten().map(|cpu| cpu.waited).max().unwrap_or(0);
        Machine { waited: waited as f64 / duration_ns as f64, ..machine }
    }
}

fn watch(over: &AtomicBool, step: Option<ClockStep>) -> Machine {
    sys::timer_slack(1);
    let begin = sys::now();
    let first = Cpu::read();
    let (mut window, mut windows, mut full) = (first, 0usize, 0usize);
    let mut clock = Clock { step, begin, first: None, largest: 0 };
    let mut late = Histogram::default();
    let mut looks = 0;
    while !over.load(Ordering::Acquire) {
        clock.look();
        let due = begin + (looks + 1) * EVERY;
        sys::nap_until(due);
        late.add(u32::try_from(sys::now().saturating_sub(due) / 1000).unwrap_or(u32::MAX));
        // looks that were slept through are not made up for
        looks = ((sys::now() - begin) / EVERY).max(looks + 1);
        if looks % WINDOW == 0 {
            let now = Cpu::read();
            windows += 1;
            full += usize::from(now.since(&window).idle_share() < IDLE);
            window = now;
        }
    }
    clock.look();
    let spent = Cpu::read().since(&first);
    let elapsed = (sys::now() - begin).max(1);
    Machine {
        cpus: spent.cpus,
        idle: spent.idle_share(),
        steal: spent.share(spent.steal),
        own: tcpscape_testbed::sys::process_time() as f64 / (elapsed as f64 * spent.cpus.max(1) as f64),
        saturated: if full >= SATURATED_LEAST { full as f64 / windows as f64 } else { 0.0 },
        waited: 0.0,
        wake_late_us: [late.quantile(0.5), late.quantile(0.99), f64::from(late.max())],
        clock_step_ms: clock.largest as f64 / 1e6,
        load: fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').take(3).collect::<Vec<_>>().join(" "),
    }
}

impl Machine {
    /// What may have changed the trial's result, one sentence each.
    pub fn flags(&self) -> Vec<String> {
        let percent = |share: f64| 100.0 * share;
        let mut flags = Vec::new();
        if self.saturated > SATURATED {
            let others = (1.0 - self.idle - self.own).max(0.0);
            flags.push(format!(
                "the CPUs had no idle time in {:.0} % of the trial: other programs took {:.0} % of them, this trial {:.0} %",
                percent(self.saturated),
                percent(others),
                percent(self.own)
            ));
        }
        if self.waited > WAITED {
            flags.push(format!("an application waited for a CPU during {:.0} % of the trial", percent(self.waited)));
        }
        if self.steal > STOLEN {
            flags.push(format!("the hypervisor gave {:.0} % of the CPUs' time to others", percent(self.steal)));
        }
        if self.clock_step_ms * 1e6 > STEP as f64 {
            flags.push(format!(
                "the clock was set by {:.3} ms while the trial ran; times of packets are of the wall clock",
                self.clock_step_ms
            ));
        }
        flags
    }
}

/// The wall clock against the monotonic one.
struct Clock {
    step: Option<ClockStep>,
    begin: u64,
    /// Their first difference and its uncertainty, ns.
    first: Option<(i64, u64)>,
    largest: u64,
}

impl Clock {
    fn look(&mut self) {
        let (mut offset, uncertain) = clocks::offset();
        if let Some(step) = self.step.filter(|s| sys::now().saturating_sub(self.begin) >= s.at_ns) {
            offset += step.by_ns;
        }
        let &mut (first, then) = self.first.get_or_insert((offset, uncertain));
        let moved = offset.abs_diff(first).saturating_sub(then + uncertain);
        self.largest = self.largest.max(moved);
    }
}

/// CPU time by kind, in ticks of /proc/stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cpu {
    total: u64,
    idle: u64,
    steal: u64,
    cpus: usize,
}

impl Cpu {
    fn read() -> Cpu {
        Cpu::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// `cpu user nice system idle iowait irq softirq steal …`: a guest's time is in `user` already.
    fn parse(text: &str) -> Cpu {
        let numbers = |line: &str| line.split_whitespace().skip(1).take(8).map(|n| n.parse().unwrap_or(0)).collect::<Vec<u64>>();
        let all = text.lines().find(|l| l.starts_with("cpu ")).map(numbers).unwrap_or_default();
        let cpus = text.lines().filter(|l| l.starts_with("cpu") && !l.starts_with("cpu ")).count();
        let at = |i: usize| all.get(i).copied().unwrap_or(0);
        Cpu { total: all.iter().sum(), idle: at(3) + at(4), steal: at(7), cpus }
    }

    fn since(self, before: &Cpu) -> Cpu {
        let less = |a: u64, b: u64| a.saturating_sub(b);
        Cpu { total: less(self.total, before.total), idle: less(self.idle, before.idle), steal: less(self.steal, before.steal), ..self }
    }

    fn share(&self, ticks: u64) -> f64 {
        if self.total > 0 {
            ticks as f64 / self.total as f64
        } else {
            0.0
        }
    }

    /// Where nothing is known, all of it.
    fn idle_share(&self) -> f64 {
        if self.total > 0 {
            self.share(self.idle)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_by_kind() {
        let text = "cpu  10 0 5 70 5 0 0 10 0 0\ncpu0 5 0 3 35 2 0 0 5 0 0\ncpu1 5 0 2 35 3 0 0 5 0 0\nintr 1\n";
        let cpu = Cpu::parse(text);
        assert_eq!(cpu, Cpu { total: 100, idle: 75, steal: 10, cpus: 2 });
        assert!((cpu.idle_share() - 0.75).abs() < 1e-12);
        assert!((Cpu::default().idle_share() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_clean_machine_is_not_flagged_and_each_trouble_is() {
        let clean = Machine { cpus: 2, idle: 0.5, saturated: 0.0, waited: 0.01, steal: 0.01, ..Machine::default() };
        assert_eq!(clean.flags(), [""; 0]);
        let flags = |m: Machine| m.flags().join("; ");
        assert!(flags(Machine { saturated: 0.5, own: 0.25, ..clean.clone() })
            .contains("no idle time in 50 % of the trial: other programs took 25 % of them, this trial 25 %"));
        assert!(flags(Machine { waited: 0.2, ..clean.clone() }).contains("waited for a CPU during 20 %"));
        assert!(flags(Machine { steal: 0.2, ..clean.clone() }).contains("gave 20 %"));
        assert!(flags(Machine { clock_step_ms: 10.0, ..clean }).contains("set by 10.000 ms"));
    }

    #[test]
    fn a_step_of_the_clock_is_seen_whatever_its_sign() {
        for by_ns in [10_000_000, -10_000_000, 3_600_000_000_000] {
            let mut clock = Clock { step: None, begin: sys::now(), first: None, largest: 0 };
            clock.look();
            assert!(clock.largest < STEP, "{}", clock.largest);
            clock.step = Some(ClockStep { at_ns: 0, by_ns });
            clock.look();
            assert!(clock.largest.abs_diff(by_ns.unsigned_abs()) < STEP, "{}", clock.largest);
        }
    }
}
