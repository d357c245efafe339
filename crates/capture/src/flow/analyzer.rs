//! The table of connections, within a budget of memory.
//!
//! A connection is found by its ends. When there are too many, those that ended or were silent for longest are concluded; when there are too
//! many rows, the tables that hold most keep every second one.

use super::connection::Connection;
use super::direction::Direction;
use super::log::EVENTS;
use super::record::{self, Attempt, FlowRecord};
use super::table::halve;
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
    /// Rows of events, and as many intervals, in all flows together.
    pub events: usize,
    /// Bytes that connections under way may take beside their rows: with more, those that were silent for longest are concluded.
    pub bytes: usize,
}

impl Default for Budget {
    /// About 100 MB.
    fn default() -> Self {
        Budget { rows: 1 << 19, connections: 1 << 13, flows: 1 << 13, outstanding: 1 << 18, events: 1 << 18, bytes: 100 << 20 }
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
    /// Connections that were asked for and not established: of these nothing answered,
    pub unanswered: u64,
    /// of these a reset was the only answer,
    pub refused: u64,
    /// and these were answered, and the answer was not acknowledged.
    pub half_open: u64,
    /// The one of them with most SYNs.
    pub attempt: Option<Attempt>,
}

/// Packets between two looks at what connections hold.
const EVERY: u64 = 1 << 14;
/// Events, and intervals, that every direction may have.
const LEAST: usize = 16;

/// Gaps over which every direction is judged as a whole.
const LEAST_GAPS: usize = 64;
/// A connection under way takes about as much memory as so many rows.
const CONNECTION_ROWS: usize = 192;

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
    /// Most events of a direction of a new connection.
    share: usize,
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
            share: EVENTS,
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
        // A little less than a power of two, to which the queues' memory grows.
        let share = (self.budget.outstanding / self.live.len().max(1)).clamp(64, 1 << 15);
        let most = (1 << share.ilog2()) - 8;
        self.live[i].packet(p, t, most);
        if self.totals.packets % EVERY == 0 {
            self.bound();
        }
        self.since_count += 2;
        if self.rows + self.since_count > self.rows_most() {
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
            let over = std::mem::replace(&mut self.live[i], Connection::new(p, t, self.share));
            self.totals.connections += 1;
            self.conclude(over);
            return i;
        }
        if self.live.len() >= self.budget.connections {
            self.evict();
        }
        self.totals.connections += 1;
        let i = self.live.len();
        self.live.push(Connection::new(p, t, self.share));
        self.places.insert(key, i);
        self.last = Some((key, i));
        i
    }

    /// Concludes an eighth of the connections: those that ended, then those that were silent for longest.
    fn evict(&mut self) {
        let mut live = std::mem::take(&mut self.live);
        let n = (live.len() / 8).max(1);
        live.select_nth_unstable_by_key(n - 1, |c| (c.ended.is_none(), c.span.end));
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
        if let Some(attempt) = record::attempt(&c) {
            self.attempted(attempt);
        }
        record::records(c, &mut self.done);
        if self.done.len() > 2 * self.budget.flows {
            self.choose();
        }
    }

    fn attempted(&mut self, attempt: Attempt) {
        match (attempt.answers, attempt.is_reset) {
            (0, false) => self.totals.unanswered += 1,
            (0, true) => self.totals.refused += 1,
            _ => self.totals.half_open += 1,
        }
        if self.totals.attempt.map_or(true, |most| attempt.syns > most.syns) {
            self.totals.attempt = Some(attempt);
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

    /// Events and intervals of the records so far.
    fn concluded(&self) -> (usize, usize) {
        self.done.iter().fold((0, 0), |(events, intervals), r| (events + r.events.len(), intervals + r.limits.len()))
    }

    /// Shares out what is left of the budget of events and intervals, and of the memory.
    fn bound(&mut self) {
        let directions = 2 * self.live.len().max(1);
        let (mut events, mut intervals) = self.concluded();
        if events.max(intervals) > self.budget.events / 2 {
            let most = (self.budget.events / 2 / self.done.len().max(1)).max(LEAST);
            self.done.iter_mut().for_each(|r| r.cut(most));
            (events, intervals) = self.concluded();
        }
        events += self.live.iter().flat_map(|c| &c.directions).map(|d| d.log.events()).sum::<usize>();
        // Where there is room, one direction may have much more than its share of the whole.
        let more = self.budget.events.saturating_sub(events) / directions;
        let most = self.budget.events.saturating_sub(intervals) / directions;
        let gaps = (self.budget.outstanding / directions).max(LEAST_GAPS);
        for c in &mut self.live {
            let held = c.directions.iter().map(|d| d.log.events()).max().unwrap_or(0);
            c.bound((held + more).max(LEAST), most.max(LEAST), gaps);
        }
        self.share = more.max(LEAST);
        while self.live.len() > 1 && self.live.iter().map(Connection::memory).sum::<usize>() > self.budget.bytes {
            self.evict();
        }
    }

    /// Rows that all flows together may have: fewer where many connections take memory themselves.
    fn rows_most(&self) -> usize {
        self.budget.rows.saturating_sub(self.live.len() * CONNECTION_ROWS).max(self.budget.rows / 4)
    }

    /// Halves the tables with most rows until a quarter of the budget is free.
    fn thin(&mut self) {
        self.since_count = 0;
        loop {
            let under_way = self.live.iter().flat_map(|c| &c.directions).flat_map(|d| [d.log.segments.len(), d.log.acks.len()]);
            let concluded = self.done.iter().flat_map(|r| [r.segments.len(), r.acks.len()]);
            let (mut sum, mut most) = (0, 0);
            under_way.chain(concluded).for_each(|n| (sum, most) = (sum + n, most.max(n)));
            self.rows = sum;
            if sum <= self.rows_most() / 4 * 3 || most < 2 {
                return;
            }
            self.halve(most.div_ceil(2).max(2));
        }
    }

    fn halve(&mut self, from: usize) {
        for Direction { log, .. } in self.live.iter_mut().flat_map(|c| &mut c.directions) {
            if log.segments.len() >= from {
                log.segments.halve();
            }
            if log.acks.len() >= from {
                log.acks.halve();
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
