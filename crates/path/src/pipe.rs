//! One direction of a path at run time.
//!
//! Whoever owns the clock calls [`Pipe::push`], [`Pipe::pop`] and [`Pipe::next_event`]. Events inside happen at their own
//! times, in order, even if the owner comes late: a packet that leaves stage 0 at t enters stage 1 at t.

use crate::discipline::{check_accounts, segments, AnyQdisc, Body, Child, Dropped, Freed, Patch, StageStats};
use crate::schedule::{Runner, ScheduledChange};
use crate::spec::{PathSpec, StageSpec};
use crate::values::Host;
use std::collections::VecDeque;
use tcpscape_base::{Packet, Time};

struct Stage<B> {
    queue: AnyQdisc<B>,
    /// When it is worth a look.
    next: Time,
    /// An outage: nothing leaves.
    blocked: bool,
    at: Host,
}

impl<B> Stage<B> {
    fn change(&mut self, t: Time, depth: usize, patch: &Patch) {
        self.blocked = patch.outage.unwrap_or(self.blocked);
        self.queue.change(t, depth, patch);
        self.next = if self.blocked { Time::MAX } else { self.queue.next_event().max(t) };
    }
}

/// One direction of a path.
pub struct Pipe<B> {
    stages: Vec<Stage<B>>,
    schedule: Vec<Runner>,
    schedule_next: Time,
    /// What has come out, with the time.
    out: VecDeque<(Time, Packet<B>)>,
    /// The earliest event inside.
    next: Time,
    holds_sender: bool,
    /// What is due happens when its owner calls, not at its own time.
    waits_for_owner: bool,
    /// Whether departures from the first stage are reported: somebody drains them.
    track: bool,
    freed: Freed,
}

impl<B: Body> Pipe<B> {
    /// An empty direction. The specification must have passed [`PathSpec::validate`].
    pub fn new(spec: &PathSpec, seed: u64, direction: &str) -> Pipe<B> {
        let stage = |(i, s): (usize, &StageSpec)| Stage {
            queue: s.qdisc.build(seed, &format!("{direction}/{i}")),
            next: Time::MAX,
            blocked: false,
            at: s.at,
        };
        let stages: Vec<Stage<B>> = spec.stages.iter().enumerate().map(stage).collect();
        let holds_sender = stages.first().is_some_and(|s| !s.queue.orphans());
        let schedule: Vec<Runner> = spec.schedule.iter().map(Runner::new).collect();
        let mut p = Pipe {
            stages,
            schedule,
            schedule_next: Time::MAX,
            out: VecDeque::new(),
            next: Time::MAX,
            holds_sender,
            waits_for_owner: false,
            track: false,
            freed: Freed::default(),
        };
        p.reschedule();
        p
    }

    /// A packet enters at `now`; false when the first queue has no room for it.
    #[inline]
    pub fn push(&mut self, now: Time, p: Packet<B>) -> bool {
        if self.next <= now {
            self.run(now);
        }
        let taken = self.feed(0, now, p);
        self.settle();
        taken
    }

    /// A packet enters at `now` as the segments that it is made of, as a device without offloads lets it.
    #[inline]
    pub fn push_segments(&mut self, now: Time, p: Packet<B>) {
        if p.segs <= 1 {
            self.push(now, p);
        } else {
            segments(&p).for_each(|part| _ = self.push(now, part));
        }
    }

    /// A packet enters at `now`, `whole` or as the segments that it is made of; false where the first queue has no room for a whole one.
    #[inline]
    pub fn enter(&mut self, now: Time, p: Packet<B>, whole: bool) -> bool {
        if whole {
            return self.push(now, p);
        }
        self.push_segments(now, p);
        true
    }

    /// The next packet that has come out at or before `now`.
    #[inline(always)] // a packet is large: it is not to be passed on and on
    pub fn pop(&mut self, now: Time) -> Option<Packet<B>> {
        loop {
            if !self.out.is_empty() {
                return self.out.pop_front().map(|o| o.1);
            }
            if self.next > now {
                return None;
            }
            if let Some(p) = self.step(self.happens(now)) {
                return Some(p);
            }
        }
    }

    /// When `pop` is worth calling: the past if something is out, `None` if nothing will happen without a push.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match self.out.front() {
            Some((t, _)) => Some(*t),
            None if self.next == Time::MAX => None,
            None => Some(self.next),
        }
    }

    /// Lets everything happen that is due at or before `now`, without taking anything out.
    pub fn advance(&mut self, now: Time) {
        if self.next <= now {
            self.run(now);
        }
    }

    /// Changes a queue now, as a change of the schedule would at this time: what waits keeps its due time. The change must fit the path
    /// ([`PathSpec::validate`]); one of a stage that does not exist does nothing.
    pub fn change(&mut self, now: Time, stage: usize, depth: usize, patch: &Patch) {
        self.advance(now);
        if let Some(stage) = self.stages.get_mut(stage) {
            stage.change(now, depth, patch);
        }
        self.settle();
    }

    /// Replaces what is left of the schedule. No change may be before the latest event, and all must have passed [`PathSpec::validate`].
    pub fn set_schedule(&mut self, schedule: &[ScheduledChange]) {
        self.schedule = schedule.iter().map(Runner::new).collect();
        self.reschedule();
    }

    /// What is due happens when its owner calls from now on: the path looks at a clock that its owner keeps.
    pub fn wait_for_owner(&mut self) {
        self.waits_for_owner = true;
    }

    /// Whether packets count against their sender's queue limit until they have left the first stage (TSQ): so where its
    /// queue does not orphan them. netem with a delay or a rate does.
    #[inline]
    pub fn holds_sender(&self) -> bool {
        self.holds_sender
    }

    /// Reports departures from the first stage from now on; whoever asks for it must drain them, or they pile up.
    pub fn track_departures(&mut self) {
        self.track = true;
    }

    /// The packets (flow, size, id) that have left the first stage, sent or dropped, since the last call; none unless departures
    /// are tracked.
    #[inline]
    pub fn drain_released(&mut self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        self.freed.list.drain(..)
    }
    /// How many packets `drain_released` would give.
    #[inline]
    pub fn released(&self) -> usize {
        self.freed.list.len()
    }

    /// Writes down from now on what any queue drops; whoever asks for it must drain it.
    pub fn track_drops(&mut self) {
        self.freed.watch = true;
    }
    /// What was dropped since the last call, in the order in which it was, but what a change of a limit let go of; nothing unless drops are
    /// tracked.
    pub fn drain_drops(&mut self) -> impl Iterator<Item = Dropped> + '_ {
        self.freed.drops.drain(..)
    }

    /// Packets and bytes held by a stage.
    #[inline]
    pub fn backlog(&self, stage: usize) -> (u64, u64) {
        self.stages.get(stage).map_or((0, 0), |s| (s.queue.packets(), s.queue.bytes()))
    }
    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }
    /// Packets inside, those that are out but not popped included.
    pub fn held(&self) -> u64 {
        self.stages.iter().map(|s| s.queue.packets()).sum::<u64>() + self.untaken()
    }
    /// Packets that are out but not popped.
    pub fn untaken(&self) -> u64 {
        self.out.len() as u64
    }

    /// The account of every queue, stage by stage, children after their parents.
    pub fn stats(&self) -> Vec<StageStats> {
        let mut all = Vec::new();
        for (i, s) in self.stages.iter().enumerate() {
            let from = all.len();
            s.queue.report(&mut all);
            for r in &mut all[from..] {
                r.stage = i;
                r.at = s.at;
            }
        }
        all
    }

    /// Checks that no packet and no byte is missing in the accounts, for tests and fuzz targets; the error names the queue and the law.
    pub fn check_accounts(&self) -> Result<(), String> {
        let queues = self.stats();
        for q in queues.iter().filter(|q| q.depth == 0) {
            let held = self.backlog(q.stage);
            if held != (q.backlog_packets, q.backlog_bytes) {
                return Err(format!("stage {} ({}): it holds {held:?}, its account says otherwise; {q:?}", q.stage, q.name));
            }
        }
        check_accounts(&queues)
    }

    /// Puts a packet into stage `i`, or out. What may pass a stage at once does, before the next packet comes.
    #[inline]
    fn feed(&mut self, i: usize, now: Time, p: Packet<B>) -> bool {
        let Some(stage) = self.stages.get_mut(i) else {
            self.out.push_back((now, p));
            return true;
        };
        self.freed.begin(self.track && i == 0, i, now);
        let taken = stage.queue.enqueue(now, p, &mut self.freed);
        if !stage.blocked {
            stage.next = stage.queue.next_event().max(now);
            if stage.next == now {
                self.drain(i, now);
            }
        }
        taken
    }

    /// Takes what may leave stage `i` now, and looks when there will be more.
    #[inline(always)] // a packet is large: it is not to be passed on and on
    fn take(&mut self, i: usize, now: Time) -> Option<Packet<B>> {
        let stage = &mut self.stages[i];
        self.freed.begin(self.track && i == 0, i, now);
        let mut taken = stage.queue.dequeue(now, &mut self.freed);
        // A queue that has nothing now cannot ask for now again.
        let mut earliest = Time(now.0 + 1);
        if let Some(p) = &mut taken {
            self.freed.note(p);
            // The next host knows nothing of it.
            p.edt = None;
            earliest = now;
        }
        stage.next = stage.queue.next_event().max(earliest);
        taken
    }

    /// Moves on what may leave stage `i` now.
    #[inline(never)]
    fn drain(&mut self, i: usize, now: Time) {
        while self.stages[i].next <= now {
            if let Some(p) = self.take(i, now) {
                self.feed(i + 1, now, p);
            }
        }
    }

    /// Lets one thing happen that is due at `t`; gives a packet that comes out of the last stage.
    #[inline(always)]
    fn step(&mut self, t: Time) -> Option<Packet<B>> {
        if self.stages.len() != 1 || self.schedule_next <= t {
            return self.step_among_many(t);
        }
        // The commonest pipe: its next event is that of its only stage.
        let came_out = self.take(0, t);
        self.settle();
        came_out
    }

    /// The same where there are changes or several stages.
    #[inline(never)]
    fn step_among_many(&mut self, t: Time) -> Option<Packet<B>> {
        let mut came_out = None;
        if self.schedule_next <= t {
            self.act(t);
        } else if let Some(i) = self.stages.iter().position(|s| s.next <= t) {
            if i + 1 == self.stages.len() {
                came_out = self.take(i, t);
            } else {
                self.drain(i, t);
            }
        }
        self.settle();
        came_out
    }

    /// When the next thing happens that is due by `now`.
    #[inline]
    fn happens(&self, now: Time) -> Time {
        if self.waits_for_owner {
            now
        } else {
            self.next
        }
    }

    /// Everything that is due at or before `now`, at its own time.
    #[inline(never)]
    fn run(&mut self, now: Time) {
        while self.next <= now {
            let t = self.happens(now);
            if let Some(p) = self.step(t) {
                self.out.push_back((t, p));
            }
        }
    }

    /// Makes the scheduled changes of time `t`.
    fn act(&mut self, t: Time) {
        for k in 0..self.schedule.len() {
            let r = &mut self.schedule[k];
            if r.next > t {
                continue;
            }
            let (i, depth) = (r.change.stage, r.change.depth);
            let stage = &mut self.stages[i];
            let patch = r.act(&stage.queue.current(depth));
            stage.change(t, depth, &patch);
        }
        self.reschedule();
    }

    fn reschedule(&mut self) {
        self.schedule_next = self.schedule.iter().map(|r| r.next).min().unwrap_or(Time::MAX);
        self.settle();
    }

    #[inline]
    fn settle(&mut self) {
        self.next = match &self.stages[..] {
            [only] => only.next.min(self.schedule_next),
            all => all.iter().fold(self.schedule_next, |t, s| t.min(s.next)),
        };
    }
}
