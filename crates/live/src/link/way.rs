//! One direction of the link: its lanes, its account and its log.
//!
//! There is one lane, and after the path was replaced by one of another kind also those in which packets still wait.

use super::emit;
use super::frame::{Cargo, Frame};
use super::lane::{Due, Lane};
use super::log::{Fate, Log};
use super::segment::Numbers;
use super::totals::Meter;
use super::{LinkOptions, Totals};
use std::sync::Arc;
use tcpscape_base::{Duration, Flags, Packet, Segment, Stream, Time};
use tcpscape_path::schedule::Change;
use tcpscape_path::{Direction, Patch, PathSpec, QdiscSpec, ScheduledChange, SpecError, StageStats};

/// Most lanes whose packets still wait after their path was replaced; those of the oldest are lost then.
const MOST_RETIRED: usize = 8;

pub(crate) struct Way {
    direction: Direction,
    spec: PathSpec,
    options: LinkOptions,
    lane: Lane,
    retired: Vec<Lane>,
    /// How often the path was replaced by a new one.
    generation: u64,
    pub meter: Meter,
    pub log: Option<Log>,
    /// When the latest event happened.
    latest: Time,
    /// How long before an event the packets came that it depends on, where events are asked for ahead of time.
    foresight_ns: u64,
    /// Where a queue reads TCP segments.
    numbers: Option<Numbers>,
    /// A packet that has come out and waits to leave.
    ahead: Option<Due>,
    /// Which bits flip in damaged packets.
    bits: Stream,
}

impl Way {
    /// Empty. The specification must be valid.
    pub fn new(direction: Direction, spec: &PathSpec, options: &LinkOptions) -> Way {
        let mut way = Way {
            direction,
            spec: spec.clone(),
            options: options.clone(),
            lane: Lane::new(direction, spec, options.seed, options.whole),
            retired: Vec::new(),
            generation: 0,
            meter: Meter::default(),
            log: options.capture.map(Log::new),
            latest: Time::ZERO,
            foresight_ns: 0,
            numbers: None,
            ahead: None,
            bits: Stream::new(options.seed, &format!("{direction}/bits")),
        };
        if options.waits {
            way.lane.set_schedule(Time::ZERO, &[]);
        }
        way.prepare();
        way
    }

    /// What the lane's queues and the log need.
    fn prepare(&mut self) {
        self.foresight_ns = if self.options.ahead { self.spec.foresight_ns() } else { 0 };
        let filters = |q: &QdiscSpec| q.levels().any(|level| matches!(level, QdiscSpec::Cake(cake) if cake.ack_filter.is_some()));
        if self.numbers.is_none() && self.spec.stages.iter().any(|s| filters(&s.qdisc)) {
            self.numbers = Some(Numbers::default());
        }
        if self.log.is_some() {
            self.lane.track_drops();
        }
    }

    /// A frame has come; `flow` is the number of its flow.
    pub fn arrive(&mut self, at: Time, mut frame: Frame, flow: u32) {
        if let (Some(numbers), Some(inner)) = (&mut self.numbers, frame.ip.and_then(|ip| ip.inner)) {
            let segment = numbers.segment(flow, frame.packet(), inner, frame.ecn());
            frame.segments = segment.map(|s| Box::new([s, Segment { flags: s.flags.without(Flags::CWR), ..s }]));
        }
        let decided = Time(self.latest.0.saturating_sub(self.foresight_ns));
        self.meter.totals.belated += u64::from(at < decided);
        let at = at.max(decided);
        self.latest = at.max(self.latest);
        let (count, ecn, id) = (frame.count(), frame.ecn(), frame.number);
        let size = frame.size(0, count);
        self.meter.arrives(at, count, size);
        self.meter.totals.uncut += u64::from(frame.cut.is_none() && frame.header.gso_size > 0);
        let frame = Arc::new(frame);
        if let Some(log) = &mut self.log {
            log.arrives(at, flow, &frame);
        }
        let body = Cargo { frame, first: 0, count, arrived: at };
        self.lane.push(at, Packet { id, flow, hosts: 0, size, segs: count, ecn, edt: None, corrupt: false, body });
        self.note_drops();
    }

    /// How far ahead what leaves is known, ns.
    pub fn foresight_ns(&self) -> u64 {
        if self.retired.is_empty() {
            self.foresight_ns
        } else {
            0
        }
    }

    /// When something happens.
    pub fn next_event(&self) -> Option<Time> {
        let inside = || self.lanes().filter_map(Lane::next_event).min();
        self.ahead.as_ref().map(|(due, _)| *due).or_else(inside)
    }

    /// The next packets that are due and leave together, and whether their bytes are written to `bytes`; otherwise they are those with
    /// which they came.
    pub fn depart(&mut self, now: Time, bytes: &mut Vec<u8>) -> Option<(Due, bool)> {
        loop {
            let (due, mut p) = self.ahead.take().or_else(|| self.pop(now))?;
            if p.corrupt {
                if self.damage(now, due, &p, bytes) {
                    return Some(((due, p), true));
                }
                continue;
            }
            let marked = emit::newly_marked(&p);
            self.leaves(now, due, &p, None);
            if self.options.merge {
                self.join(now, &mut p);
            }
            let changed = !emit::untouched(&p);
            if changed {
                emit::write(&p.body, marked, bytes);
            }
            return Some(((due, p), changed));
        }
    }

    /// Writes a damaged packet; false if the receiver could not see the damage, so that it is dropped.
    fn damage(&mut self, now: Time, due: Time, p: &Packet<Cargo>, bytes: &mut Vec<u8>) -> bool {
        emit::write(&p.body, emit::newly_marked(p), bytes);
        let bit = emit::damage(&p.body.frame, &mut self.bits, bytes);
        if bit.is_some() {
            self.leaves(now, due, p, bit);
        } else {
            self.meter.totals.drops_damaged += 1;
            self.note(p, Fate::Unseen { due });
        }
        bit.is_some()
    }

    /// Joins to a packet those that follow it in its super-packet and are due too.
    fn join(&mut self, now: Time, p: &mut Packet<Cargo>) {
        while p.body.frame.cut.is_some() && !p.body.is_whole() {
            let Some((due, next)) = self.pop(now) else { return };
            if !follows(p, &next) {
                self.ahead = Some((due, next));
                return;
            }
            self.leaves(now, due, &next, None);
            p.body.count += next.body.count;
        }
    }

    /// A packet leaves.
    fn leaves(&mut self, now: Time, due: Time, p: &Packet<Cargo>, damaged: Option<u32>) {
        self.meter.departs(due, p);
        self.note(p, Fate::Left { due, sent: now, marked: emit::newly_marked(p), damaged });
    }

    fn pop(&mut self, until: Time) -> Option<Due> {
        if self.retired.is_empty() {
            let due = self.lane.pop(until, &mut self.latest);
            self.note_drops();
            return due;
        }
        self.pop_any(until)
    }

    /// The next packet of any lane; empty ones go.
    fn pop_any(&mut self, until: Time) -> Option<Due> {
        let mut due = None;
        while due.is_none() {
            let next = |lane: &Lane| lane.next_event().unwrap_or(Time::MAX);
            let lane = self.retired.iter_mut().chain([&mut self.lane]).min_by_key(|lane| next(lane))?;
            let t = next(lane);
            if t > until {
                break;
            }
            due = lane.pop(t, &mut self.latest);
            self.note_drops();
        }
        let meter = &mut self.meter;
        self.retired.retain(|lane| {
            let empty = lane.held() == 0;
            if empty {
                meter.forget(lane.stats().iter().flatten());
            }
            !empty
        });
        due
    }

    /// Changes a queue that runs.
    pub fn change(&mut self, now: Time, stage: usize, depth: usize, patch: &Patch) -> Result<(), SpecError> {
        let change = ScheduledChange { stage, depth, change: Change::Set { at: now, set: *patch } };
        PathSpec { schedule: vec![change], ..self.spec.clone() }.validate()?;
        let now = self.not_before(now);
        self.lane.change(now, stage, depth, patch);
        self.note_drops();
        Ok(())
    }

    /// Replaces the path; its schedule counts from now.
    pub fn replace(&mut self, now: Time, spec: &PathSpec) -> Result<(), SpecError> {
        spec.validate()?;
        let now = self.not_before(now);
        match self.spec.changes_to(spec) {
            Some(changes) => {
                self.lane.unblock(now);
                changes.iter().for_each(|(stage, depth, patch)| self.lane.change(now, *stage, *depth, patch));
            }
            None => self.renew(now, spec),
        }
        self.spec = spec.clone();
        self.prepare();
        self.note_drops();
        self.begin(now);
        Ok(())
    }

    /// The schedule counts from `at`, or from the latest event where that is later.
    pub fn begin(&mut self, at: Time) {
        let begin = Duration(at.max(self.latest).0);
        let schedule: Vec<_> = self.spec.schedule.iter().map(|change| change.later(begin)).collect();
        self.lane.set_schedule(self.latest, &schedule);
    }

    /// A new lane for packets to come; the old one keeps what waits in it.
    fn renew(&mut self, now: Time, spec: &PathSpec) {
        self.generation += 1;
        let seed = self.options.seed.wrapping_add(self.generation);
        let bare = PathSpec { schedule: Vec::new(), ..spec.clone() };
        let mut old = std::mem::replace(&mut self.lane, Lane::new(self.direction, &bare, seed, self.options.whole));
        old.set_schedule(now, &[]);
        old.unblock(now);
        self.retired.push(old);
        if self.retired.len() > MOST_RETIRED {
            let lane = self.retired.remove(0);
            self.meter.totals.drops_replaced += lane.held();
            self.meter.forget(lane.stats().iter().flatten());
        }
    }

    /// When a change that comes now is made: time never runs back.
    fn not_before(&mut self, now: Time) -> Time {
        self.latest = now.max(self.latest);
        self.latest
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.retired.iter().chain([&self.lane])
    }

    /// The name of a stage's queue.
    pub fn queue_name(&self, stage: usize) -> &'static str {
        self.spec.stages.get(stage).map_or("queue", |s| s.qdisc.name())
    }

    /// The accounts of the queues of this direction, of the sender's host and of the network.
    pub fn stats(&self) -> [Vec<StageStats>; 2] {
        self.lane.stats()
    }

    /// What went through.
    pub fn totals(&self) -> Totals {
        let held = self.lanes().map(Lane::held).sum::<u64>() + self.ahead.iter().map(|(_, p)| u64::from(p.body.count)).sum::<u64>();
        let bytes = self.lanes().map(Lane::bytes_held).sum::<u64>() + self.ahead.iter().map(|(_, p)| u64::from(p.body.size())).sum::<u64>();
        let queues: Vec<StageStats> = self.lanes().flat_map(|lane| lane.stats().into_iter().flatten()).collect();
        self.meter.report(held, bytes, queues.iter())
    }

    fn note(&mut self, p: &Packet<Cargo>, fate: Fate) {
        if let Some(log) = &mut self.log {
            log.add(p.body.number(), p.body.count, fate);
        }
    }

    /// Writes down what the queues have dropped.
    fn note_drops(&mut self) {
        let Some(log) = &mut self.log else { return };
        for lane in self.retired.iter_mut().chain([&mut self.lane]) {
            lane.drain_drops(|d| log.add(d.id, d.segs, Fate::Dropped { at: d.at, stage: d.stage, cause: d.cause }));
        }
    }
}

/// Whether `next` leaves in one super-packet with `p`.
fn follows(p: &Packet<Cargo>, next: &Packet<Cargo>) -> bool {
    Arc::ptr_eq(&p.body.frame, &next.body.frame)
        && next.body.first == p.body.first + p.body.count
        && p.ecn == next.ecn
        && !p.corrupt
        && !next.corrupt
}
