//! A clock that goes in steps, and the one timer that interrupts a host by it.
//!
//! What it is: all that reads the clock sees whole steps. One timer stands for all that wait: it is set to the earliest, from what the clock shows, but
//! not nearer than it can be. When it fires and the clock does not show that time yet, it is set again; what is due by what the clock shows then happens
//! together. A process that runs takes its time meanwhile.
//! Source: the segments of a kernel in virtual time (docs/models/exact.md, "The clock").

use super::node::Node;
use tcpscape_base::Time;
use tcpscape_plan::ClockPlan;

/// The clock of a trial.
pub(super) struct Clock {
    plan: ClockPlan,
    /// The time itself, ns.
    real: u64,
    /// The time for which the timer is set, and when it fires.
    set: Option<(Time, u64)>,
    /// Processes that run, and when each comes to its next event.
    running: Vec<(u64, Node)>,
}

/// What comes next.
pub(super) enum Step {
    /// The clock shows this now.
    Shows(Time),
    /// A process goes on.
    Runs(Node),
    /// Nothing waits.
    Nothing,
}

impl Clock {
    /// At the begin of a trial.
    pub fn new(plan: ClockPlan) -> Clock {
        Clock { plan, real: plan.phase_ns, set: None, running: Vec::new() }
    }

    /// What a process takes that was woken in write().
    pub fn wake_ns(&self) -> u64 {
        self.plan.wake_ns
    }

    /// What it shows.
    fn shows(&self, real: u64) -> Time {
        Time(real / self.plan.step_ns * self.plan.step_ns)
    }

    /// A process that runs comes to its next event so much later.
    pub fn run(&mut self, node: Node, after_ns: u64) {
        let due = self.real + after_ns;
        match self.running.iter_mut().find(|(_, n)| *n == node) {
            Some(known) => known.0 = known.0.min(due),
            None => self.running.push((due, node)),
        }
    }

    /// `node` runs no more.
    pub fn forget(&mut self, node: Node) {
        self.running.retain(|(_, n)| *n != node);
    }

    /// Moves on to the next event, when all that is due has happened; `earliest` is what waits for the clock.
    pub fn advance(&mut self, earliest: Option<Time>) -> Step {
        if self.set.map(|(t, _)| t) != earliest {
            self.set = earliest.map(|t| (t, self.fires(t)));
        }
        let process = self.running.iter().enumerate().min_by_key(|(_, (due, _))| *due).map(|(i, (due, _))| (i, *due));
        match (self.set, process) {
            (set, Some((i, due))) if set.map_or(true, |(_, fires)| due < fires) => {
                self.real = due;
                Step::Runs(self.running.swap_remove(i).1)
            }
            (Some((t, fires)), _) => {
                self.real = fires;
                self.set = (self.shows(fires) < t).then(|| (t, self.fires(t)));
                Step::Shows(self.shows(fires))
            }
            (None, _) => Step::Nothing,
        }
    }

    /// When a timer that is set for `t` now fires.
    fn fires(&self, t: Time) -> u64 {
        self.real + t.0.saturating_sub(self.shows(self.real).0).max(self.plan.timer_ns)
    }

    /// What it shows now.
    pub fn now(&self) -> Time {
        self.shows(self.real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: ClockPlan = ClockPlan { step_ns: 256, timer_ns: 500, wake_ns: 512, phase_ns: 0 };

    fn shows(clock: &mut Clock, earliest: u64) -> u64 {
        match clock.advance(Some(Time(earliest))) {
            Step::Shows(t) => t.0,
            _ => panic!("nothing but the timer waits"),
        }
    }

    /// docs/models/exact.md, "The clock": a timer for 1,000 ns fires at 1,000, where the clock shows 768, and again 500 ns later, where it shows 1,280.
    #[test]
    fn a_timer_that_comes_before_the_clock_shows_its_time_is_set_again() {
        let mut clock = Clock::new(PLAN);
        assert_eq!((shows(&mut clock, 1_000), shows(&mut clock, 1_000)), (768, 1_280));
        // Whole steps are on time.
        let mut clock = Clock::new(PLAN);
        assert_eq!(shows(&mut clock, 1_024), 1_024);
    }

    /// 100 ns of a step have passed at the begin: the timer fires at 1,100, where the clock shows the time for which it is set.
    #[test]
    fn a_trial_may_begin_within_a_step() {
        let mut clock = Clock::new(ClockPlan { phase_ns: 100, ..PLAN });
        assert_eq!(clock.now(), Time(0));
        assert_eq!(shows(&mut clock, 1_000), 1_024);
    }

    /// What is due 100 ns later than now waits for 500 ns.
    #[test]
    fn a_timer_is_not_set_nearer_than_it_can_be() {
        let mut clock = Clock::new(PLAN);
        assert_eq!(shows(&mut clock, 1_024), 1_024);
        assert_eq!(shows(&mut clock, 1_124), 1_280);
    }

    #[test]
    fn a_process_takes_its_time_whatever_waits_for_the_clock() {
        let mut clock = Clock::new(PLAN);
        clock.run(Node::Cpu, 256);
        assert!(matches!(clock.advance(Some(Time(200))), Step::Runs(Node::Cpu)));
        assert_eq!(clock.now(), Time(256));
        assert!(matches!(clock.advance(None), Step::Nothing));
        clock.run(Node::Cpu, 256);
        clock.forget(Node::Cpu);
        assert!(matches!(clock.advance(None), Step::Nothing));
    }
}
