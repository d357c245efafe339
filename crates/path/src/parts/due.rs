//! Packets in order of their due times.
//!
//! Packets that come with the latest due time, all of them where the delay is constant, go into a plain list. Only those
//! due before the list's end go into a heap of small keys over a slab. No packet of the heap is due after the list's end,
//! so the end of the list is always the latest.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tcpscape_base::{Packet, Time};

/// A packet that waits.
#[derive(Clone, Debug)]
pub struct Held<B> {
    /// When it is due; signed, because a negative delay reaches back before the start.
    pub due: i64,
    /// When it came.
    pub arrived: Time,
    /// Its number among the packets that came.
    pub ticket: u64,
    /// The packet.
    pub packet: Packet<B>,
}

/// The queue.
#[derive(Debug)]
pub struct Due<B> {
    line: VecDeque<Held<B>>,
    /// Due time, then insertion, then place in the slab, in one number.
    heap: BinaryHeap<Reverse<u128>>,
    slab: Vec<Option<Held<B>>>,
    free: Vec<u32>,
    inserted: u64,
}

const SLOT_BITS: u32 = 24;

impl<B> Default for Due<B> {
    fn default() -> Due<B> {
        Due { line: VecDeque::new(), heap: BinaryHeap::new(), slab: Vec::new(), free: Vec::new(), inserted: 0 }
    }
}

impl<B> Due<B> {
    /// Packets held.
    #[inline]
    pub fn len(&self) -> usize {
        self.line.len() + self.heap.len()
    }
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
    /// The latest due time held.
    #[inline]
    pub fn last_due(&self) -> Option<i64> {
        self.line.back().map(|h| h.due)
    }
    /// The earliest due time held.
    #[inline]
    pub fn first_due(&self) -> Option<i64> {
        let line = self.line.front()?.due;
        Some(self.heap.peek().map_or(line, |k| due_of(k.0).min(line)))
    }
    /// Adds a packet.
    #[inline(always)]
    pub fn push(&mut self, h: Held<B>) {
        if self.last_due().map_or(true, |last| h.due >= last) {
            return self.line.push_back(h);
        }
        self.push_early(h);
    }
    /// Adds a packet that is due before the end of the line.
    fn push_early(&mut self, h: Held<B>) {
        let due = h.due;
        let slot = match self.free.pop() {
            Some(s) => {
                self.slab[s as usize] = Some(h);
                s
            }
            None => {
                self.slab.push(Some(h));
                self.slab.len() as u32 - 1
            }
        };
        assert!(slot < 1 << SLOT_BITS, "more than 16 million packets wait out of order");
        self.inserted += 1;
        // Flipping the sign bit makes signed times compare as unsigned.
        let time = u128::from(due as u64 ^ (1 << 63)) << 64;
        self.heap.push(Reverse(time | u128::from(self.inserted) << SLOT_BITS | u128::from(slot)));
    }
    /// Takes the packet with the earliest due time, if that is not after `t`.
    #[inline(always)]
    pub fn pop_due(&mut self, t: i64) -> Option<Held<B>> {
        if self.first_due()? > t {
            return None;
        }
        self.pop()
    }
    /// Takes the packet with the earliest due time; at a tie, the list's.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Held<B>> {
        let line = self.line.front()?.due;
        match self.heap.peek() {
            Some(k) if due_of(k.0) < line => self.pop_early(),
            _ => self.line.pop_front(),
        }
    }
    /// Takes the heap's first.
    fn pop_early(&mut self) -> Option<Held<B>> {
        let slot = self.heap.pop()?.0 as u32 & ((1 << SLOT_BITS) - 1);
        self.free.push(slot);
        if self.heap.is_empty() {
            return self.tidy(slot);
        }
        self.slab[slot as usize].take()
    }
    /// Gives memory back after a burst, once nothing is out of order.
    #[cold]
    fn tidy(&mut self, slot: u32) -> Option<Held<B>> {
        let h = self.slab[slot as usize].take();
        if self.slab.len() > 1024 {
            self.slab = Vec::new();
            self.free = Vec::new();
        }
        h
    }
}

#[inline]
fn due_of(key: u128) -> i64 {
    ((key >> 64) as u64 ^ (1 << 63)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Stream;

    fn held(due: i64, body: u32) -> Held<u32> {
        Held { due, arrived: Time::ZERO, ticket: 0, packet: Packet { body, ..Default::default() } }
    }

    #[test]
    fn comes_out_by_due_time_and_then_by_insertion() {
        let (mut q, mut s, mut model) = (Due::default(), Stream::new(1, "t"), vec![]);
        for i in 0..5_000u32 {
            let due = i64::from(s.below(700)) - 300 + i64::from(i / 10);
            q.push(held(due, i));
            model.push((due, i));
            if i % 3 == 0 {
                let got = q.pop().unwrap();
                let best = model.iter().map(|m| m.0).min().unwrap();
                assert_eq!(got.due, best);
                model.retain(|m| m.1 != got.packet.body);
            }
            assert_eq!(q.len(), model.len());
            assert_eq!(q.last_due(), model.iter().map(|m| m.0).max());
            assert_eq!(q.first_due(), model.iter().map(|m| m.0).min());
        }
        let mut last = i64::MIN;
        while let Some(h) = q.pop() {
            assert!(h.due >= last);
            last = h.due;
        }
        assert!(q.is_empty());
        assert_eq!(q.len() as u32, 0);
    }

    #[test]
    fn equal_due_times_keep_their_order() {
        let mut q = Due::default();
        q.push(held(50, 0));
        (1..5).for_each(|i| q.push(held(20, i)));
        let order: Vec<u32> = std::iter::from_fn(|| q.pop()).map(|h| h.packet.body).collect();
        assert_eq!(order, [1, 2, 3, 4, 0]);
    }
}
