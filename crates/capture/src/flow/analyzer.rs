//! The table of connections, within a budget of memory.
//!
//! A connection is found by its ends. When there are too many, those that ended or were silent for longest are concluded; when there are too
//! many rows, the tables that hold most keep every second one.

use super::connection::Connection;
use super::facts;
use super::record::FlowRecord;
use crate::packet::{Endpoint, Packet};
use serde::Serialize;
use std::collections::HashMap;

/// How much is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rows of segments and of ACKs, in all flows together.
    pub rows: usize,
    /// Connections under way.
    pub connections: usize,
    /// Records handed on; of more, those with most bytes.
    pub flows: usize,
    /// Outstanding segments, in all flows together.
    pub outstanding: usize,
}

impl Default for Budget {
    /// About 100 MB.
    fn default() -> Self {
        Budget { rows: 1 << 19, connections: 1 << 13, flows: 1 << 13, outstanding: 1 << 18 }
    }
}

/// What was seen as a whole.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Connections.
    pub connections: u64,
    /// Of them, those concluded early because too many were under way.
    pub evicted: u64,
    /// Directions with data that are not handed on, since too many had more bytes.
    pub left_out: u64,
    /// Their bytes.
    pub left_out_bytes: u64,
    /// Packets seen again on their way through the capturing machine.
    pub forwarded: u64,
}

/// Connections by their ends, the smaller first.
type Key = (Endpoint, Endpoint);

/// Makes records of packets.
pub struct Analyzer {
    budget: Budget,
    live: Vec<Connection>,
    places: HashMap<Key, usize>,
    last: Option<(Key, usize)>,
    done: Vec<FlowRecord>,
    totals: Totals,
    begin: Option<u64>,
    now: u64,
    /// Rows of connections under way at the last count, and packets since.
    since_count: usize,
    rows: usize,
}

impl Analyzer {
    /// Starts with no packets.
    pub fn new(budget: Budget) -> Analyzer {
        Analyzer {
            budget,
            live: Vec::new(),
            places: HashMap::new(),
            last: None,
            done: Vec::new(),
            totals: Totals::default(),
            begin: None,
            now: 0,
            since_count: 0,
            rows: 0,
        }
    }

    /// Takes the capture's next packet.
    pub fn packet(&mut self, p: &Packet) {
        let begin = *self.begin.get_or_insert(p.at.0);
        // Interfaces of one capture may be out of step; time never goes back here.
        self.now = self.now.max(p.at.0.saturating_sub(begin));
        self.totals.packets += 1;
        let t = self.now;
        let i = self.find(p, t);
        let most = (self.budget.outstanding / self.live.len().max(1)).clamp(64, 1 << 15);
        self.live[i].packet(p, t, most);
        self.since_count += 2;
        if self.rows + self.since_count > self.budget.rows {
            self.thin();
        }
    }

    fn find(&mut self, p: &Packet, t: u64) -> usize {
        let key = if p.from <= p.to { (p.from, p.to) } else { (p.to, p.from) };
        let known = match self.last {
            Some((last, i)) if last == key => Some(i),
            _ => self.places.get(&key).copied(),
        };
        if let Some(i) = known {
            self.last = Some((key, i));
            if !self.live[i].is_over(p, t) {
                return i;
            }
            let over = std::mem::replace(&mut self.live[i], Connection::new(p, t));
            self.totals.connections += 1;
            self.conclude(over);
            return i;
        }
        if self.live.len() >= self.budget.connections {
            self.evict();
        }
        self.totals.connections += 1;
        let i = self.live.len();
        self.live.push(Connection::new(p, t));
        self.places.insert(key, i);
        self.last = Some((key, i));
        i
    }

    /// Concludes an eighth of the connections: those that ended, then those that were silent for longest.
    fn evict(&mut self) {
        let mut live = std::mem::take(&mut self.live);
        let n = (live.len() / 8).max(1);
        live.select_nth_unstable_by_key(n - 1, |c| (c.ended.is_none(), c.span.1));
        for c in live.drain(..n) {
            self.totals.evicted += u64::from(c.ended.is_none());
            self.conclude(c);
        }
        self.live = live;
        self.last = None;
        self.places.clear();
        for (i, c) in self.live.iter().enumerate() {
            let [a, b] = c.ends;
            self.places.insert(if a <= b { (a, b) } else { (b, a) }, i);
        }
    }

    fn conclude(&mut self, c: Connection) {
        self.totals.forwarded += c.forwarded.count;
        facts::records(c, &mut self.done);
        if self.done.len() > 2 * self.budget.flows {
            self.choose();
        }
    }

    /// Keeps the records with most bytes.
    fn choose(&mut self) {
        self.done.sort_by_key(|r| std::cmp::Reverse(r.facts.bytes));
        for r in self.done.drain(self.budget.flows.min(self.done.len())..) {
            self.totals.left_out += 1;
            self.totals.left_out_bytes += r.facts.bytes;
        }
    }

    /// Halves the tables with most rows until a quarter of the budget is free.
    fn thin(&mut self) {
        self.since_count = 0;
        loop {
            let under_way = self.live.iter().flat_map(|c| &c.directions).flat_map(|d| [d.segments.len(), d.acks.len()]);
            let concluded = self.done.iter().flat_map(|r| [r.segments.len(), r.acks.len()]);
            let (mut sum, mut most) = (0, 0);
            under_way.chain(concluded).for_each(|n| (sum, most) = (sum + n, most.max(n)));
            self.rows = sum;
            if sum <= self.budget.rows / 4 * 3 || most < 2 {
                return;
            }
            self.halve(most.div_ceil(2).max(2));
        }
    }

    fn halve(&mut self, from: usize) {
        for d in self.live.iter_mut().flat_map(|c| &mut c.directions) {
            if d.segments.len() >= from {
                d.segments.halve();
            }
            if d.acks.len() >= from {
                d.acks.halve();
            }
        }
        for r in &mut self.done {
            if r.segments.len() >= from {
                halve(&mut r.segments);
                r.facts.segment_stride *= 2;
            }
            if r.acks.len() >= from {
                halve(&mut r.acks);
                r.facts.ack_stride *= 2;
            }
        }
    }

    /// What was seen as a whole, so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// One record for each direction that carries data, most bytes first, and the totals.
    pub fn finish(mut self) -> (Vec<FlowRecord>, Totals) {
        for c in std::mem::take(&mut self.live) {
            self.conclude(c);
        }
        self.choose();
        (self.done, self.totals)
    }
}

fn halve<T>(rows: &mut Vec<T>) {
    let mut i = 0;
    rows.retain(|_| {
        i += 1;
        i & 1 == 1
    });
    rows.shrink_to_fit();
}
