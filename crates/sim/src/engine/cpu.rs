//! The CPU of the sending applications and that of the receiving ones: they take turns, on whichever host they are.
//!
//! A process keeps the CPU until it blocks or sleeps. Of writers that wait, the one that was woken last runs first, as the least served one; of readers the
//! one that was woken first (docs/models/methods/engine.md, "Readers take turns").

use super::node::{Node, Part};
use super::{Engine, LINGER};
use std::collections::VecDeque;

/// Who runs, and who waits for it.
pub(super) struct Cpu {
    running: Option<usize>,
    /// Applications that wait, in the order in which they were woken.
    waiting: VecDeque<usize>,
    /// Whether an application waits, for each.
    waits: Vec<bool>,
    /// Whether they wait for each other.
    is_shared: bool,
}

impl Cpu {
    /// One for so many applications; `others`: more will come.
    pub fn new(applications: usize, others: bool) -> Cpu {
        Cpu { running: None, waiting: VecDeque::new(), waits: vec![false; applications], is_shared: others || applications > 1 }
    }
    /// One for each application: none waits.
    pub fn for_each(applications: usize) -> Cpu {
        Cpu { is_shared: false, ..Cpu::new(applications, false) }
    }

    /// There are so many applications now.
    pub fn grow(&mut self, applications: usize) {
        self.waits.resize(applications, false);
    }

    /// Application `i` is no more. True if the CPU is free and wanted.
    pub fn forget(&mut self, i: usize) -> bool {
        if std::mem::take(&mut self.waits[i]) {
            self.waiting.retain(|&waits| waits != i);
        }
        self.running = self.running.filter(|&runs| runs != i);
        self.running.is_none() && !self.waiting.is_empty()
    }

    /// Whether applications wait for each other.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }
    /// Whether application `i` has the CPU: it kept it, or nobody shares it.
    #[inline]
    pub fn belongs_to(&self, i: usize) -> bool {
        !self.is_shared || self.running == Some(i)
    }

    /// The application that had it last and did not give it up. A reader may have found nothing since.
    pub fn running(&self) -> Option<usize> {
        self.running
    }
    /// Whether an application waits.
    pub fn is_wanted(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Application `i` waits for the CPU, if it does not already.
    pub fn wait(&mut self, i: usize) {
        if !std::mem::replace(&mut self.waits[i], true) {
            self.waiting.push_back(i);
        }
    }

    /// The application that runs next, if the CPU is free: the one that `takes` takes of those that wait.
    fn next(&mut self, takes: impl Fn(&mut VecDeque<usize>) -> Option<usize>) -> Option<usize> {
        if self.running.is_some() {
            return None;
        }
        let i = takes(&mut self.waiting)?;
        self.waits[i] = false;
        Some(i)
    }

    /// Whoever had it has given it up.
    pub fn release(&mut self) {
        self.running = None;
    }
    /// Application `i` has run; `keeps`: it goes on at once. True if the CPU is free and wanted.
    #[inline]
    pub fn ran(&mut self, i: usize, keeps: bool) -> bool {
        self.running = keeps.then_some(i);
        !keeps && !self.waiting.is_empty()
    }
}

impl Engine<'_> {
    /// A sending application wants to run.
    pub(super) fn write(&mut self, i: usize) {
        if self.writers.belongs_to(i) {
            return self.run_writer(i);
        }
        self.writers.wait(i);
        self.events.want(Node::Cpu, self.now);
    }

    /// The CPUs are free for one of those that wait.
    pub(super) fn schedule(&mut self) {
        if let Some(i) = self.writers.next(VecDeque::pop_back) {
            self.run_writer(i);
        }
        if let Some(i) = self.readers.next(VecDeque::pop_front) {
            self.run_reader(i);
        }
    }

    /// A sending application runs, and goes on as long as nothing else happens: while a thousand of them fill their buffers most writes follow each other.
    fn run_writer(&mut self, i: usize) {
        let node = Node::Flow(i as u32, Part::Writer);
        loop {
            let next = self.flows[i].write(self.now, self.costs);
            let keeps = next.is_some_and(|t| t <= self.now + self.costs.write);
            // What it sends does not end a connection that has more to write, and nothing but its next write asks for its node.
            let is_simple = keeps && self.clock.is_none() && !self.flows[i].is_written() && !self.events.is_queued(node);
            let turn = next.filter(|_| is_simple).map(|t| (t.max(self.now), self.events.reserve()));
            if let Some(t) = next.filter(|_| turn.is_none()) {
                self.want_application(node, t, keeps);
            }
            if self.writers.ran(i, keeps) {
                self.events.want(Node::Cpu, self.now);
            }
            self.flush_sender(i);
            self.tell_departures();
            let Some((t, turn)) = turn else { return };
            let others = self.next_reader.is_some() || self.readers.is_wanted() || !self.events.has_nothing_until(t);
            if others || t > self.end + LINGER {
                return self.events.want_in_turn(node, t, turn);
            }
            self.now = t;
            self.observer.event();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_woken_runs_first_and_keeps_the_cpu() {
        let mut cpu = Cpu::new(3, false);
        [0, 2, 1, 2].into_iter().for_each(|i| cpu.wait(i));
        assert_eq!(cpu.next(VecDeque::pop_back), Some(1));
        assert!(!cpu.ran(1, true) && cpu.belongs_to(1));
        assert_eq!(cpu.next(VecDeque::pop_back), None);
        assert!(cpu.ran(1, false));
        assert_eq!((cpu.next(VecDeque::pop_back), cpu.next(VecDeque::pop_back), cpu.next(VecDeque::pop_back)), (Some(2), Some(0), None));
    }

    #[test]
    fn readers_run_in_the_order_in_which_they_were_woken() {
        let mut cpu = Cpu::new(3, false);
        [0, 2, 1, 2].into_iter().for_each(|i| cpu.wait(i));
        assert_eq!(cpu.next(VecDeque::pop_front), Some(0));
        assert!(!cpu.ran(0, true));
        assert_eq!((cpu.next(VecDeque::pop_front), cpu.running()), (None, Some(0)));
        assert!(cpu.ran(0, false));
        assert_eq!((cpu.next(VecDeque::pop_front), cpu.next(VecDeque::pop_front), cpu.next(VecDeque::pop_front)), (Some(2), Some(1), None));
    }

    #[test]
    fn an_application_that_is_gone_leaves_the_cpu_to_those_that_wait() {
        let mut cpu = Cpu::new(1, true);
        cpu.grow(3);
        [0, 1, 2].into_iter().for_each(|i| cpu.wait(i));
        assert_eq!(cpu.next(VecDeque::pop_back), Some(2));
        assert!(!cpu.ran(2, true) && !cpu.forget(0) && cpu.forget(2));
        assert_eq!((cpu.next(VecDeque::pop_back), cpu.next(VecDeque::pop_back)), (Some(1), None));
    }

    #[test]
    fn a_lonely_application_never_waits() {
        assert!(Cpu::new(1, false).belongs_to(0) && !Cpu::new(2, false).belongs_to(0) && !Cpu::new(1, true).belongs_to(0));
        assert!(Cpu::for_each(2).belongs_to(0) && Cpu::for_each(2).belongs_to(1));
    }
}
