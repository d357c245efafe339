//! Entries that come next, in their order: what one page of the calendar brought, sorted once, and what is asked for in the meantime.

use super::{time_of, Key};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tcpscape_base::Time;

/// Most entries of the short list.
const SHORT: usize = 32;
/// As many or more entries are for the calendar.
const FEW: usize = 16;

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
        self.len < FEW && self.page.len() < FEW
    }

    /// An entry of a page; once all are added, they are to be sorted. There is nothing else of a page when its first is added.
    #[inline]
    pub fn add(&mut self, key: Key) {
        self.page.push(key);
    }

    /// The page is complete.
    #[inline]
    pub fn sort(&mut self) {
        if self.page.len() > 1 {
            self.page.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Adds an entry.
    #[inline]
    pub fn insert(&mut self, key: Key) {
        if self.len == SHORT || !self.rest.is_empty() {
            return self.insert_among_many(key);
        }
        self.insert_short(key);
    }

    #[inline(always)]
    fn insert_short(&mut self, key: Key) {
        let mut place = self.len;
        while place > 0 && self.short[place - 1] < key {
            self.short[place] = self.short[place - 1];
            place -= 1;
        }
        self.short[place] = key;
        self.len += 1;
    }

    #[inline(never)]
    fn insert_among_many(&mut self, key: Key) {
        if self.rest.peek().is_some_and(|first| first.0 < key) {
            return self.rest.push(Reverse(key));
        }
        if self.len == SHORT {
            // The later half goes.
            self.rest.extend(self.short[..SHORT / 2].iter().copied().map(Reverse));
            self.short.copy_within(SHORT / 2.., 0);
            self.len -= SHORT / 2;
            return self.insert(key);
        }
        self.insert_short(key);
    }

    /// Takes the earliest entry, if it is not after `until`.
    #[inline]
    pub fn take(&mut self, until: Time) -> Option<Key> {
        if self.len == 0 && !self.rest.is_empty() {
            self.refill();
        }
        let page = self.page.last().copied().unwrap_or(Key::MAX);
        let short = if self.len > 0 { self.short[self.len - 1] } else { Key::MAX };
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
