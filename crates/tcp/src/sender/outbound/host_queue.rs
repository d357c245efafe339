//! What the sender's own host still holds of what TCP sent: TCP small queues, and retransmissions that would overtake their original.
//!
//! Source: observed behaviour of Linux 6.1 and 6.12 (docs/models/tcp/sender.md, "Small queues" and "Host queue"). How it differs: memory comes
//! back as frames leave, without the delay of an interrupt. Not modelled: queues shared with other hosts' traffic.

use std::collections::VecDeque;

/// A burst given to the host.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Nothing of it has left yet.
    whole: bool,
    /// Memory that it still holds, bytes.
    memory: u32,
    /// Bytes of its frames that have not left.
    frames: u32,
}

/// The bursts in the queues of the sender's host.
#[derive(Debug)]
pub(in crate::sender) struct HostQueue {
    /// The bursts from number `first` on.
    bursts: VecDeque<Held>,
    first: u32,
    /// Memory that they hold, bytes.
    memory: u64,
    /// Data wait until some of it is free.
    throttled: bool,
    /// The application's process is running, not an interrupt.
    in_process: bool,
    /// The burst that the last retransmission timeout sent.
    timeout_burst: Option<u32>,
}

impl HostQueue {
    /// An empty queue; bursts are numbered from 1.
    pub fn new() -> HostQueue {
        HostQueue { bursts: VecDeque::new(), first: 1, memory: 0, throttled: false, in_process: false, timeout_burst: None }
    }

    /// Memory held, bytes.
    #[inline]
    pub fn memory(&self) -> u64 {
        self.memory
    }
    /// Data wait until memory is free.
    #[inline]
    pub fn throttle(&mut self) {
        self.throttled = true;
    }
    /// Data wait no longer.
    pub fn release(&mut self) {
        self.throttled = false;
    }
    /// Whether data wait until memory is free.
    #[inline]
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }
    /// The application's process runs from here on.
    #[inline]
    pub fn enter_process(&mut self) {
        self.in_process = true;
    }
    /// The application's process has ended its call.
    #[inline]
    pub fn leave_process(&mut self) {
        self.in_process = false;
    }
    /// Whether the application's process is running, not an interrupt.
    #[inline]
    pub fn is_in_process(&self) -> bool {
        self.in_process
    }
    /// A retransmission timeout has sent this burst, or could send nothing.
    pub fn timeout_sent(&mut self, burst: Option<u32>) {
        self.timeout_burst = burst;
    }
    /// Whether a timeout has sent this burst; the answer is given once.
    pub fn take_timeout(&mut self, burst: u32) -> bool {
        self.timeout_burst.take_if(|b| *b == burst).is_some()
    }
    /// Whether nothing has left yet of `burst`.
    #[inline]
    pub fn holds(&self, burst: u32) -> bool {
        self.bursts.get(burst.wrapping_sub(self.first) as usize).is_some_and(|b| b.whole)
    }

    /// `burst` was given to the host: its frames have `frames` bytes and hold `memory`.
    pub fn give(&mut self, burst: u32, memory: u32, frames: u32) {
        // Numbers that were not given are nothing that is held.
        while self.first.wrapping_add(self.bursts.len() as u32) != burst {
            self.bursts.push_back(Held::default());
        }
        self.memory += u64::from(memory);
        self.bursts.push_back(Held { whole: true, memory, frames });
    }

    /// `bytes` of the frames of `burst` have left or were dropped; returns the memory that is free again, `None` if the burst is not known.
    pub fn depart(&mut self, burst: u32, bytes: u32) -> Option<u32> {
        let b = self.bursts.get_mut(burst.wrapping_sub(self.first) as usize)?;
        b.whole = false;
        let all = bytes >= b.frames;
        let freed = if all { b.memory } else { (u64::from(b.memory) * u64::from(bytes) / u64::from(b.frames)) as u32 };
        b.memory -= freed;
        b.frames = b.frames.saturating_sub(bytes);
        self.memory -= u64::from(freed);
        self.forget_departed();
        Some(freed)
    }

    fn forget_departed(&mut self) {
        while self.bursts.front().is_some_and(|b| !b.whole && b.memory == 0) {
            self.bursts.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// `burst` has not come to the host after all.
    pub fn take_back(&mut self, burst: u32) {
        if let Some(b) = self.bursts.get_mut(burst.wrapping_sub(self.first) as usize) {
            self.memory -= u64::from(b.memory);
            *b = Held::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_returns_in_proportion_to_the_frames_that_left() {
        let mut q = HostQueue::new();
        q.give(1, 4_000, 3_000);
        q.give(3, 1_000, 1_500);
        assert!(q.holds(1) && !q.holds(2) && q.holds(3) && q.memory() == 5_000);
        assert_eq!((q.depart(1, 1_500), q.holds(1), q.memory()), (Some(2_000), false, 3_000));
        assert_eq!(q.depart(1, 1_500), Some(2_000));
        assert_eq!((q.depart(1, 1), q.depart(9, 1)), (None, None));
        q.take_back(3);
        assert!(!q.holds(3) && q.memory() == 0);
    }
}
