//! The loop: arrivals into the link, departures out of it when they are due, sleep until the next one.
//!
//! One pass reads the clocks, takes in what has arrived, lets go what is due, and sends. Work in a pass is bounded, so neither direction
//! waits for the other. Departures are due at times that the link computed from arrivals, and the timer is set to absolute times: a pass
//! that comes late makes packets late, but not those after them.
//!
//! In virtual time a pass costs far more than a packet, so there are few: where the path's entrance is a constant delay, whatever leaves within it is
//! known now. A pass hands all of that to the ports, whose devices wait until it is due, and the thread sleeps meanwhile without regard to arrivals,
//! which have timestamps. A packet is decided on and leaves at the same times as with a pass for each.

use super::clocks::{Clocks, Reading};
use super::port::{Bound, Port};
use super::report::{Conditions, EmulatorReport};
use super::sys::{self, Bell};
use crate::link::Link;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use tcpscape_base::Time;
use tcpscape_path::Direction;
use tcpscape_testbed::poll::{Poll, Ready, Timer};

/// Most frames and bytes that a pass takes from one port, and most that it lets go.
const ARRIVALS: Bound = Bound { frames: 64, bytes: 512 << 10 };
const DEPARTURES: Bound = Bound { frames: 128, bytes: 1 << 20 };
/// A frame may come into the ring so long after its timestamp was taken, ns: interrupts come between.
const STAMPED_BEFORE: u64 = 200_000;
/// Longest sleep without regard to arrivals, ns, and the arrivals from which on it is shorter: they wait in the port's ring.
const MOST_AHEAD: u64 = 4_000_000;
const MANY: u64 = 128;

/// Numbers of what the loop waits for.
const PORTS: [u64; 2] = [0, 1];
const TIMER: u64 = 2;
const BELL: u64 = 3;
/// Each new event wakes once.
const EDGE: libc::c_int = libc::EPOLLIN | libc::EPOLLET;

/// Something to do between two passes.
pub(super) type Command = Box<dyn FnOnce(&mut Drive) + Send>;

/// A link, its ports and its clocks: what the emulator's thread works on.
pub(super) struct Drive {
    pub(super) link: Link,
    ports: [Port; 2],
    pub(super) stopping: bool,
    zero: u64,
    /// Time passes only while the thread sleeps.
    is_virtual: bool,
    clocks: Clocks,
    /// The clocks at the beginning of the pass.
    reading: Reading,
    /// The latest arrival of each direction, ns since zero.
    latest: [u64; 2],
    /// When nothing more was to be had from each port: what came after arrived after, ns since zero.
    emptied: [u64; 2],
    arrived: [u64; 2],
    /// Arrivals since the thread slept.
    fresh: u64,
    wakeups: u64,
    conditions: Conditions,
}

/// Descriptors to wait for.
pub(super) struct Waiter {
    /// Ports, timer and bell; then all but the ports.
    poll: Poll,
    deaf: Poll,
    timer: Timer,
    /// For when the timer is set, CLOCK_MONOTONIC, ns.
    set_for: Option<u64>,
    lead: Lead,
    _bell: Arc<Bell>,
}

impl Waiter {
    /// Waits for two ports, a timer and a bell.
    pub(super) fn new(ports: &[Port; 2], bell: Arc<Bell>) -> std::io::Result<Waiter> {
        let (poll, deaf, timer) = (Poll::new()?, Poll::new()?, Timer::new()?);
        for (port, number) in ports.iter().zip(PORTS) {
            poll.add(port.descriptor(), number, EDGE)?;
        }
        for each in [&poll, &deaf] {
            each.add(std::os::fd::AsFd::as_fd(&timer), TIMER, EDGE)?;
            each.add(std::os::fd::AsFd::as_fd(&*bell), BELL, EDGE)?;
        }
        Ok(Waiter { poll, deaf, timer, set_for: None, lead: Lead::default(), _bell: bell })
    }

    /// Waits until shortly before CLOCK_MONOTONIC shows `until`, as long before as it takes to wake, or until something happens. False
    /// if nothing was waited for, because that is now. `now`: None where the clock is to be read; `is_deaf`: nothing of the ports wakes.
    fn wait(&mut self, until: Option<u64>, now: Option<u64>, is_deaf: bool) -> bool {
        let Some(at) = self.lead.timer(until, now.unwrap_or_else(sys::now)) else { return false };
        if at != self.set_for {
            self.timer.set(at).expect("a timer of our own can be set");
            self.set_for = at;
        }
        let mut room = [Ready { events: 0, u64: 0 }; 8];
        let poll = if is_deaf { &self.deaf } else { &self.poll };
        let ready = poll.wait(&mut room).expect("descriptors of our own can be waited for");
        let events = ready.iter().fold(0, |bits, e| bits | 1 << e.u64);
        if events & 1 << TIMER != 0 {
            let due = self.set_for.take();
            if let Some(due) = due.filter(|_| events == 1 << TIMER && now.is_none()) {
                self.lead.woke(sys::now().saturating_sub(due));
            }
        }
        true
    }
}

/// How long it takes from the timer until the thread runs: so long before a packet is due the timer is set, and what is left until then
/// the loop spends with looking for arrivals. Of the recent times it is the lower quartile, so that this is short. Packets that follow
/// each other more closely are slept for without it: looking all the time would take the CPU from everything else.
#[derive(Debug, Default)]
struct Lead {
    ns: u64,
    /// The moment for which the thread has been woken.
    woken_for: Option<u64>,
}

impl Lead {
    /// Most that it may be, ns, and by how much a time above or below it moves it: one to three keeps a quarter of the times below.
    const MOST: u64 = 50_000;
    const UP: u64 = 100;
    const DOWN: u64 = 300;

    /// For when to set the timer (not at all is one answer) so that the thread runs at `until`; None if it should not sleep.
    fn timer(&mut self, until: Option<u64>, now: u64) -> Option<Option<u64>> {
        let Some(until) = until else { return Some(None) };
        let early = until.saturating_sub(self.ns);
        let awake = until <= now || early <= now && self.woken_for == Some(until);
        if awake {
            return None;
        }
        self.woken_for = Some(until);
        Some(Some(if early > now { early } else { until }))
    }

    /// The thread ran so long after the timer, ns.
    fn woke(&mut self, after: u64) {
        self.ns = if after > self.ns { (self.ns + Lead::UP).min(Lead::MOST) } else { self.ns.saturating_sub(Lead::DOWN) };
    }
}

fn read_clocks() -> Reading {
    Reading { before: sys::now(), wall: sys::wall(), after: sys::now() }
}

/// The next reading where both clocks go alike and time stands still.
fn read_clock(last: Reading) -> Reading {
    let now = sys::now();
    Reading { before: now, wall: last.wall + (now - last.after), after: now }
}

impl Drive {
    pub(super) fn new(link: Link, ports: [Port; 2], zero: u64, is_virtual: bool, conditions: Conditions) -> Drive {
        let reading = read_clocks();
        let clocks = Clocks::new(zero, reading);
        Drive {
            link,
            ports,
            stopping: false,
            zero,
            is_virtual,
            clocks,
            reading,
            latest: [0; 2],
            emptied: [0; 2],
            arrived: [0; 2],
            fresh: 0,
            wakeups: 0,
            conditions,
        }
    }

    /// Now, ns since zero; 0 before it.
    pub(super) fn now(&self) -> Time {
        Time(sys::now().saturating_sub(self.zero))
    }

    /// Works until a command ends it, or until nobody is left who could.
    pub(super) fn run(&mut self, mut waiter: Waiter, commands: &Receiver<Command>) {
        while !self.stopping {
            match commands.try_recv() {
                Ok(command) => {
                    command(self);
                    continue;
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {}
            }
            if self.pass() {
                continue;
            }
            let rest = self.rest();
            let until = rest.or_else(|| self.next_work());
            self.fresh = 0;
            self.wakeups += u64::from(waiter.wait(until, self.known(), rest.is_some()));
        }
    }

    /// How far ahead of the pass everything that leaves is known, ns.
    fn foresight(&self) -> u64 {
        if self.ports.iter().all(Port::is_timed) {
            self.link.foresight().0.min(MOST_AHEAD)
        } else {
            0
        }
    }

    /// Until when arrivals may wait, CLOCK_MONOTONIC, ns: after some have come, others are likely to follow. None where they may not.
    fn rest(&self) -> Option<u64> {
        let rest = self.foresight() * MANY / self.fresh.max(MANY);
        let is_due = self.ports.iter().any(|port| port.pause_until().is_some());
        (rest > 0 && self.fresh > 0 && !is_due).then(|| self.reading.after + rest)
    }

    /// CLOCK_MONOTONIC where it still shows what it did when the pass began, ns.
    fn known(&self) -> Option<u64> {
        self.is_virtual.then_some(self.reading.after)
    }

    /// When there is something to do without an arrival, CLOCK_MONOTONIC, ns.
    fn next_work(&self) -> Option<u64> {
        let due = self.link.next_event().map(|t| t.0.saturating_add(self.zero));
        let pauses = self.ports.iter().filter_map(Port::pause_until);
        pauses.chain(due).min()
    }

    /// Takes in what has arrived and sends what is due; true if there may be more at once.
    fn pass(&mut self) -> bool {
        let reading = if self.is_virtual { read_clock(self.reading) } else { read_clocks() };
        self.reading = reading;
        self.clocks.look(reading);
        let now = reading.after.saturating_sub(self.zero);
        let mut more = false;
        for direction in Direction::BOTH {
            more |= self.take_in(direction, now);
        }
        more |= self.let_go(now);
        let now = self.known();
        for port in &mut self.ports {
            port.flush(self.zero, now);
        }
        more
    }

    /// Frames of a direction into the link; true if there may be more.
    fn take_in(&mut self, direction: Direction, now: u64) -> bool {
        let i = direction.index();
        let Drive { link, ports, zero, is_virtual, clocks, latest, emptied, .. } = self;
        let floor = emptied[i].saturating_sub(STAMPED_BEFORE);
        let mut until = now;
        let (n, more) = ports[i].receive(ARRIVALS, |arrival| {
            let mut at = clocks.arrival(arrival.stamp, floor.max(latest[i]), until);
            if at == until && !*is_virtual {
                // It may have arrived since the pass began.
                until = sys::now().saturating_sub(*zero);
                at = clocks.arrival(arrival.stamp, floor.max(latest[i]), until);
            }
            latest[i] = at;
            link.arrive(Time(at), direction, arrival.frame);
        });
        if !more {
            emptied[i] = now;
        }
        self.arrived[i] += n;
        self.fresh += n;
        more
    }

    /// Frames that are due into the ports; true if there may be more.
    fn let_go(&mut self, now: u64) -> bool {
        let (mut left, known) = (DEPARTURES, self.known());
        let horizon = now + self.foresight();
        while left.allows_more() {
            // What is ahead leaves at its own time, as if the pass were then.
            let Some(next) = self.link.next_event().filter(|t| t.0 <= horizon) else { return false };
            let Some(departure) = self.link.depart(next.max(Time(now))) else { continue };
            left.take(departure.frame.len());
            // What goes forward leaves at the receiver's side.
            let port = &mut self.ports[departure.direction.back().index()];
            port.queue(departure.due, departure.packets, departure.frame);
            if port.is_loaded() {
                port.flush(self.zero, known);
            }
        }
        true
    }

    /// The account so far.
    pub(super) fn report(&mut self) -> EmulatorReport {
        let seconds = self.now().secs_f64();
        let cpu_s = sys::thread_time() as f64 * 1e-9;
        let largest_batch = self.ports.iter().map(Port::largest_batch).max().unwrap_or(0);
        let [(mut reverse, forward_losses), (mut forward, reverse_losses)] = self.ports.each_mut().map(Port::report);
        for (way, losses) in [(&mut forward, forward_losses), (&mut reverse, reverse_losses)] {
            (way.unasked.entrance, way.unasked.too_large) = (losses.overflows, losses.too_large);
        }
        [forward.frames_in, reverse.frames_in] = self.arrived;
        let (steps, clock_stepped) = self.clocks.steps();
        EmulatorReport {
            seconds,
            forward,
            reverse,
            cpu_s,
            cpu_share: if seconds > 0.0 { cpu_s / seconds } else { 0.0 },
            wakeups: self.wakeups,
            largest_batch,
            conditions: self.conditions.clone(),
            clock_steps: steps.to_vec(),
            clock_stepped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_wake_ups_is_faster_than_the_lead() {
        let mut lead = Lead::default();
        // 20 to 60 µs, evenly.
        (0..40_000u64).for_each(|i| lead.woke(20_000 + i * 7919 % 40_000));
        assert!((25_000..35_000).contains(&lead.ns), "{lead:?}");
        (0..40_000).for_each(|_| lead.woke(900_000));
        assert_eq!(lead.ns, Lead::MOST);
    }

    #[test]
    fn only_a_thread_that_was_woken_early_looks_instead_of_sleeping() {
        let mut lead = Lead { ns: 20_000, woken_for: None };
        assert_eq!(lead.timer(None, 0), Some(None));
        assert_eq!(lead.timer(Some(100_000), 0), Some(Some(80_000)));
        // Woken at 85 µs: it looks until 100 µs, and then has work.
        assert_eq!(lead.timer(Some(100_000), 85_000), None);
        assert_eq!(lead.timer(Some(100_000), 100_000), None);
        // The next packet is 12 µs away: that is slept for.
        assert_eq!(lead.timer(Some(112_000), 101_000), Some(Some(112_000)));
    }
}
