//! Entries that come next, in their order: what one page of the calendar brought, sorted once, and what is asked for in the meantime.

use super::{time_of, Key};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpscape_base::Time;

/// Most entries of the short list, a power of two.
const SHORT: usize = 32;
/// As many or more entries are for the calendar.
pub(super) const FEW: usize = 16;

/// The entries that come next.
#[derive(Debug)]
pub(super) struct Near {
    /// A page's, the first at the end.
    page: Vec<Key>,
    /// What was asked for since, the first at the end: `len` entries.
    short: [Key; SHORT],
    len: usize,
    /// What has no room there and comes after all that has.
    rest: BinaryHeap<Reverse<Key>>,
}

impl Default for Near {
    fn default() -> Near {
        Near { page: Vec::new(), short: [0; SHORT], len: 0, rest: BinaryHeap::new() }
    }
}

impl Near {
    /// Entries in it.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.page.len() + self.len + self.rest.len()
    }

    /// Whether few entries are in it.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.len + self.page.len() < FEW
    }

    /// Whether all entries are after `t`, as far as the first ones tell.
    #[inline]
    pub fn is_after(&self, t: Time) -> bool {
        let short = if self.len > 0 { time_of(self.short[(self.len - 1) % SHORT]) > t } else { self.rest.is_empty() };
        short && self.page.last().map_or(true, |&key| time_of(key) > t)
    }

    /// An entry of a page; once all are added, they are to be sorted. There is nothing else of a page when its first is added.
    #[inline]
    pub fn add(&mut self, key: Key) {
        self.page.push(key);
    }

    /// The page is complete.
    #[inline]
    pub fn sort(&mut self) {
        if self.len == 0 && self.page.len() <= SHORT / 4 {
            while let Some(key) = self.page.pop() {
                self.insert(key);
            }
        }
        self.page.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Adds an entry.
    #[inline(always)]
    pub fn insert(&mut self, key: Key) {
        if self.len == SHORT || !self.rest.is_empty() {
            return self.insert_among_many(key);
        }
        self.insert_short(key);
    }

    #[inline(always)]
    fn insert_short(&mut self, key: Key) {
        // The remainder is a place in the list for the compiler too.
        let mut place = self.len;
        while place > 0 {
            let before = self.short[(place - 1) % SHORT];
            if before > key {
                break;
            }
            self.short[place % SHORT] = before;
            place -= 1;
        }
        self.short[place % SHORT] = key;
        self.len += 1;
    }

    #[inline(never)]
    fn insert_among_many(&mut self, key: Key) {
        if self.len == SHORT {
            // The later half goes.
            self.rest.extend(self.short[..SHORT / 2].iter().copied().map(Reverse));
            self.short.copy_within(SHORT / 2.., 0);
            self.len = SHORT / 2;
        }
        if self.rest.peek().is_some_and(|first| first.0 < key) {
            return self.rest.push(Reverse(key));
        }
        self.insert_short(key);
    }

    /// Takes the earliest entry, if it is not after `until`.
    #[inline(always)]
    pub fn take(&mut self, until: Time) -> Option<Key> {
        if !self.page.is_empty() || self.len == 0 {
            return self.take_among_many(until);
        }
        let first = self.short[(self.len - 1) % SHORT];
        if time_of(first) > until {
            return None;
        }
        self.len -= 1;
        Some(first)
    }

    #[inline(never)]
    fn take_among_many(&mut self, until: Time) -> Option<Key> {
        if self.len == 0 && !self.rest.is_empty() {
            self.refill();
        }
        let page = self.page.last().copied().unwrap_or(Key::MAX);
        let short = if self.len > 0 { self.short[(self.len - 1) % SHORT] } else { Key::MAX };
        let first = page.min(short);
        if first == Key::MAX || time_of(first) > until {
            return None;
        }
        if first == short {
            self.len -= 1;
        } else {
            self.page.pop();
        }
        Some(first)
    }

    /// Takes the first entries of the rest into the short list.
    #[cold]
    fn refill(&mut self) {
        while self.len < SHORT / 2 {
            let Some(Reverse(key)) = self.rest.pop() else { break };
            self.short[self.len] = key;
            self.len += 1;
        }
        self.short[..self.len].reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpscape_base::Stream;

    /// Many entries, of pages and asked for, come in their order, also where the short list is full again and again.
    #[test]
    fn entries_come_in_order_however_many_there_are() {
        let (mut near, mut s, mut waiting) = (Near::default(), Stream::new(1, "near"), Vec::new());
        let mut taken = 0;
        for round in 0..2_000u64 {
            if near.len() == 0 {
                (0..s.below(100)).for_each(|_| {
                    let key = Key::from(s.next_u64());
                    near.add(key);
                    waiting.push(key);
                });
                near.sort();
            }
            for _ in 0..s.below(if round % 50 < 10 { 30 } else { 3 }) {
                let key = Key::from(s.next_u64());
                near.insert(key);
                waiting.push(key);
            }
            for _ in 0..s.below(8) {
                waiting.sort_unstable_by(|a, b| b.cmp(a));
                let first = near.take(Time::MAX);
                taken += usize::from(first.is_some());
                assert_eq!(first, waiting.pop());
            }
            assert_eq!(near.len(), waiting.len());
        }
        assert!(taken > 5_000, "{taken}");
    }
}
