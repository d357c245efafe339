//! The CPU of the sending host: its applications take turns.
//!
//! A process keeps the CPU until it blocks or sleeps. Of those that wait, the one that was woken last runs first, as the least served one.

use super::node::{Node, Part};
use super::Engine;

/// Who runs, and who waits for it.
pub(super) struct Cpu {
    running: Option<usize>,
    /// Applications that wait, the last one first.
    waiting: Vec<usize>,
    /// Whether an application waits, for each.
    waits: Vec<bool>,
    /// Whether there are several, or will be.
    is_shared: bool,
}

impl Cpu {
    /// For so many applications; `others`: more will come.
    pub fn new(applications: usize, others: bool) -> Cpu {
        Cpu { running: None, waiting: Vec::new(), waits: vec![false; applications], is_shared: others || applications > 1 }
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

    /// Whether application `i` has the CPU: it kept it, or nobody shares it.
    #[inline]
    fn belongs_to(&self, i: usize) -> bool {
        !self.is_shared || self.running == Some(i)
    }

    /// Application `i` waits for the CPU, if it does not already.
    fn wait(&mut self, i: usize) {
        if !std::mem::replace(&mut self.waits[i], true) {
            self.waiting.push(i);
        }
    }

    /// The application that runs next, if the CPU is free.
    fn next(&mut self) -> Option<usize> {
        if self.running.is_some() {
            return None;
        }
        let i = self.waiting.pop()?;
        self.waits[i] = false;
        Some(i)
    }

    /// Application `i` has run; `keeps`: it goes on at once. True if the CPU is free and wanted.
    #[inline]
    fn ran(&mut self, i: usize, keeps: bool) -> bool {
        self.running = keeps.then_some(i);
        !keeps && !self.waiting.is_empty()
    }
}

impl Engine<'_> {
    /// A sending application wants to run.
    pub(super) fn write(&mut self, i: usize) {
        if self.cpu.belongs_to(i) {
            return self.run_writer(i);
        }
        self.cpu.wait(i);
        self.events.want(Node::Cpu, self.now);
    }

    /// The CPU is free for one of those that wait.
    pub(super) fn schedule(&mut self) {
        if let Some(i) = self.cpu.next() {
            self.run_writer(i);
        }
    }

    fn run_writer(&mut self, i: usize) {
        let next = self.flows[i].write(self.now, self.costs);
        let keeps = next.is_some_and(|t| t <= self.now + self.costs.write);
        if let Some(t) = next {
            self.want_application(Node::Flow(i as u32, Part::Writer), t, keeps);
        }
        if self.cpu.ran(i, keeps) {
            self.events.want(Node::Cpu, self.now);
        }
        self.flush_sender(i);
        self.tell_departures();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_woken_runs_first_and_keeps_the_cpu() {
        let mut cpu = Cpu::new(3, false);
        [0, 2, 1, 2].into_iter().for_each(|i| cpu.wait(i));
        assert_eq!(cpu.next(), Some(1));
        assert!(!cpu.ran(1, true) && cpu.belongs_to(1));
        assert_eq!(cpu.next(), None);
        assert!(cpu.ran(1, false));
        assert_eq!((cpu.next(), cpu.next(), cpu.next()), (Some(2), Some(0), None));
    }

    #[test]
    fn an_application_that_is_gone_leaves_the_cpu_to_those_that_wait() {
        let mut cpu = Cpu::new(1, true);
        cpu.grow(3);
        [0, 1, 2].into_iter().for_each(|i| cpu.wait(i));
        assert_eq!(cpu.next(), Some(2));
        assert!(!cpu.ran(2, true) && !cpu.forget(0) && cpu.forget(2));
        assert_eq!((cpu.next(), cpu.next()), (Some(1), None));
    }

    #[test]
    fn a_lonely_application_never_waits() {
        assert!(Cpu::new(1, false).belongs_to(0) && !Cpu::new(2, false).belongs_to(0) && !Cpu::new(1, true).belongs_to(0));
    }
}
