//! The loop: arrivals into the link, departures out of it when they are due, sleep until the next one.
//!
//! One pass reads the clocks, takes in what has arrived, lets go what is due, and sends. Work in a pass is bounded, so neither direction
//! waits for the other. Departures are due at times that the link computed from arrivals, and the timer is set to absolute times: a pass
//! that comes late makes packets late, but not those after them.

use super::clocks::{Clocks, Reading};
use super::port::Port;
use super::report::{Conditions, EmulatorReport};
use super::sys::{self, Bell, Poll, Timer};
use crate::link::Link;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::Arc;
use tcpscape_base::Time;
use tcpscape_path::Direction;

/// Most frames that a pass takes from one port, and most that it lets go.
const ARRIVALS: usize = 64;
const DEPARTURES: usize = 256;

/// Numbers of what the loop waits for.
const PORTS: [u64; 2] = [0, 1];
const TIMER: u64 = 2;
const BELL: u64 = 3;

/// Something to do between two passes.
pub(super) type Command = Box<dyn FnOnce(&mut Drive) + Send>;

/// A link, its ports and its clocks: what the emulator's thread works on.
pub(super) struct Drive {
    pub(super) link: Link,
    ports: [Port; 2],
    pub(super) stopping: bool,
    zero: u64,
    clocks: Clocks,
    /// Until when each direction is decided, ns since zero: nothing may arrive before.
    decided: [u64; 2],
    arrived: [u64; 2],
    wakeups: u64,
    conditions: Conditions,
}

/// Descriptors to wait for.
pub(super) struct Waiter {
    poll: Poll,
    timer: Timer,
    /// For when the timer is set, CLOCK_MONOTONIC, ns.
    set_for: Option<u64>,
    _bell: Arc<Bell>,
}

impl Waiter {
    /// Waits for two ports, a timer and a bell.
    pub(super) fn new(ports: &[Port; 2], bell: Arc<Bell>) -> std::io::Result<Waiter> {
        let (poll, timer) = (Poll::new()?, Timer::new()?);
        for (port, number) in ports.iter().zip(PORTS) {
            poll.add(port.descriptor(), number)?;
        }
        poll.add(std::os::fd::AsFd::as_fd(&timer), TIMER)?;
        poll.add(std::os::fd::AsFd::as_fd(&*bell), BELL)?;
        Ok(Waiter { poll, timer, set_for: None, _bell: bell })
    }

    /// Waits until CLOCK_MONOTONIC shows `until`, or until something happens.
    fn wait(&mut self, until: Option<u64>) {
        if until != self.set_for {
            self.timer.set(until).expect("a timer of our own can be set");
            self.set_for = until;
        }
        let events = self.poll.wait().expect("descriptors of our own can be waited for");
        if events & 1 << TIMER != 0 {
            self.set_for = None;
        }
    }
}

fn read_clocks() -> Reading {
    Reading { before: sys::monotonic(), wall: sys::wall(), after: sys::monotonic() }
}

impl Drive {
    pub(super) fn new(link: Link, ports: [Port; 2], zero: u64, conditions: Conditions) -> Drive {
        let clocks = Clocks::new(zero, read_clocks());
        Drive { link, ports, stopping: false, zero, clocks, decided: [0; 2], arrived: [0; 2], wakeups: 0, conditions }
    }

    /// Now, ns since zero; 0 before it.
    pub(super) fn now(&self) -> Time {
        Time(sys::monotonic().saturating_sub(self.zero))
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
            let until = self.next_work();
            if until.is_some_and(|t| t <= sys::monotonic()) {
                continue;
            }
            waiter.wait(until);
            self.wakeups += 1;
        }
    }

    /// When there is something to do without an arrival, CLOCK_MONOTONIC, ns.
    fn next_work(&self) -> Option<u64> {
        let due = self.link.next_event().map(|t| t.0.saturating_add(self.zero));
        let pauses = self.ports.iter().filter_map(Port::pause_until);
        pauses.chain(due).min()
    }

    /// Takes in what has arrived and sends what is due; true if there may be more at once.
    fn pass(&mut self) -> bool {
        let reading = read_clocks();
        self.clocks.look(reading);
        let now = reading.after.saturating_sub(self.zero);
        let mut more = false;
        for direction in Direction::BOTH {
            more |= self.take_in(direction, now);
        }
        more |= self.let_go(now);
        for port in &mut self.ports {
            port.flush(self.zero);
        }
        more
    }

    /// Frames of a direction into the link; true if there may be more.
    fn take_in(&mut self, direction: Direction, now: u64) -> bool {
        let Drive { link, ports, zero, clocks, decided, .. } = self;
        let decided = &mut decided[direction.index()];
        let mut now = now;
        let n = ports[direction.index()].receive(ARRIVALS, |arrival| {
            let mut at = clocks.arrival(arrival.stamp, *decided, now);
            if at == now {
                // It may have arrived since the pass began.
                now = sys::monotonic().saturating_sub(*zero);
                at = clocks.arrival(arrival.stamp, *decided, now);
            }
            *decided = (*decided).max(at);
            link.arrive(Time(*decided), direction, arrival.frame);
        });
        self.arrived[direction.index()] += n as u64;
        n == ARRIVALS
    }

    /// Frames that are due into the ports; true if there may be more.
    fn let_go(&mut self, now: u64) -> bool {
        for _ in 0..DEPARTURES {
            let Some(departure) = self.link.depart(Time(now)) else {
                self.decided.iter_mut().for_each(|d| *d = (*d).max(now));
                return false;
            };
            // What goes forward leaves at the receiver's side.
            let port = &mut self.ports[departure.direction.back().index()];
            port.queue(departure.due, departure.packets, departure.frame);
            if port.is_loaded() {
                port.flush(self.zero);
            }
        }
        self.decided.iter_mut().for_each(|d| *d = (*d).max(now));
        true
    }

    /// The account so far.
    pub(super) fn report(&mut self) -> EmulatorReport {
        let seconds = self.now().secs_f64();
        let cpu_s = sys::thread_cpu() as f64 * 1e-9;
        let largest_batch = self.ports.iter().map(Port::largest_batch).max().unwrap_or(0);
        let [(mut reverse, forward_losses), (mut forward, reverse_losses)] = self.ports.each_mut().map(Port::report);
        forward.unasked.entrance = forward_losses.0;
        reverse.unasked.entrance = reverse_losses.0;
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
