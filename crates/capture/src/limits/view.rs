//! What the sender knew when a segment left it, as it can be told from the place of capture.
//!
//! An ACK that passes the capture needs a time to the sender, and what the sender then sends needs a time back: together the *response
//! delay*, 0 at the sender itself. It is measured by the handshake (SYN-ACK to ACK) and by timestamps: a segment echoes the TSval of the
//! last ACK in order (RFC 7323 §4.3), so that it left after that ACK arrived. An ACK that a segment cannot have known waits here. Where both ends
//! send data, a packet beyond what the sender acknowledged last leaves its echo as it is, so that an older echo says nothing of that packet.

use super::{Ack, Data};
use std::collections::VecDeque;
use tcpscape_base::wire::ahead;

/// Most ACKs that wait, and most steps of the window's edge that are kept.
const MOST: usize = 4096;

/// A response delay below this is the sender's own, ns: the capture is at the sender.
const AT_SENDER: u64 = 400_000;

/// One of so many measurements must be that small where no handshake was seen: jitter makes a few small ones anywhere.
const NEAR_SHARE: u32 = 64;

/// The largest shift of a window (RFC 7323 §2.3).
const MOST_SHIFT: u32 = 14;

/// A repair that comes later than so many times the least response delay waited for something else.
const MOST_QUEUE: u64 = 8;

/// Segments that must follow an ACK more promptly than the handshake was answered, for that to be how this sender answers.
const PROMPT: u64 = 16;

/// Share of the segments that do, and how many times as many as would by chance.
const PROMPT_SHARE: f64 = 0.5;
const BEYOND_CHANCE: f64 = 5.0;

/// A time at which an ACK reached the sender, on the clock of the segments seen here, and its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) t: u64,
    pub(super) frame: u64,
}

/// Segments, and how many of them came sooner after an ACK than the answer to the handshake did.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    since: Option<u64>,
    acks: u64,
    segments: u64,
    prompt: u64,
    least: Option<u64>,
}

/// The sender's knowledge.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    waiting: VecDeque<Ack>,
    /// Response delay: least of all, and least of this and of the last period, ns.
    floor: Option<u64>,
    recent: [Option<u64>; 2],
    /// Whether the handshake's was that of the sender itself; without a handshake, how many of the others were, of how many.
    is_near: Option<bool>,
    small: [u32; 2],
    /// Of a sender that is here and has no timestamps: how promptly it answers.
    answers: Answers,
    /// Whether the path to here has no queue now.
    is_empty: bool,
    /// From the report of the last loss to its repair, ns.
    repair: u64,
    /// The ACK which first had the TSval that the sender echoes now.
    echoed: Option<(u32, u64)>,
    /// The window's scale, where the handshake was not seen.
    supposed_shift: Option<u32>,
    /// The window of the last ACK, if its scale is not known.
    unscaled: Option<u16>,
    /// The highest byte that the sender may have known to be acknowledged when the last segment left, where that scale is not known.
    may_know: u64,
    /// The last TSecr of a segment: only the first that has it left when its ACK came.
    last_echo: Option<u32>,
    /// Steps of the right edge that no segment has used up: edge and when it came.
    edges: VecDeque<(u64, Moment)>,
    pub(super) edge: u64,
    /// Bytes received, as far as the sender knew.
    pub(super) delivered: u64,
    /// First byte not acknowledged.
    pub(super) una: u64,
    /// The last ACK that acknowledged something, by SACK or otherwise, or moved the edge.
    pub(super) progress: Option<Moment>,
    /// The last packet with data: what the sender has to answer.
    pub(super) request: Option<Moment>,
    /// The last ACK that moved `una`, or reported bytes by SACK.
    pub(super) advance: Option<Moment>,
    /// Whether the edge is known (window scale seen).
    pub(super) knows_edge: bool,
}

impl View {
    /// Bytes of memory beside its own.
    pub(super) fn heap(&self) -> usize {
        self.waiting.capacity() * size_of::<Ack>() + self.edges.capacity() * size_of::<(u64, Moment)>()
    }
    /// The response delay now, ns; 0 until it is known.
    pub(super) fn response(&self) -> u64 {
        if self.is_near() || self.is_empty {
            return self.floor.unwrap_or(0);
        }
        let least = self.recent[0].into_iter().chain(self.recent[1]).min().or(self.floor).unwrap_or(0);
        least.max(self.repair)
    }

    /// Whether anything has measured the response delay.
    pub(super) fn knows_response(&self) -> bool {
        self.floor.is_some()
    }

    /// Whether the capture is at the sender, so that an ACK seen is an ACK known.
    pub(super) fn is_near(&self) -> bool {
        let [small, all] = self.small;
        self.is_near.unwrap_or(small > all / NEAR_SHARE)
    }

    /// Takes the time from the report of a loss to its repair: without timestamps what else shows the queue between here and the sender?
    pub(super) fn repaired(&mut self, delay: u64) {
        self.repair = delay.min(self.floor.unwrap_or(0).saturating_mul(MOST_QUEUE));
    }

    /// Takes that of the handshake, which no queue and no waiting application lengthens.
    pub(super) fn handshake(&mut self, delay: u64) {
        self.is_near = Some(delay < AT_SENDER);
        self.measured(delay);
    }

    /// The least response delay so far.
    pub(super) fn floor(&self) -> Option<u64> {
        self.floor
    }

    /// Takes a measurement of the response delay.
    pub(super) fn measured(&mut self, delay: u64) {
        self.small[0] += u32::from(delay < AT_SENDER);
        self.small[1] = self.small[1].saturating_add(1);
        self.floor = Some(self.floor.map_or(delay, |f| f.min(delay)));
        self.recent[0] = Some(self.recent[0].map_or(delay, |f| f.min(delay)));
    }

    /// A period ends: measurements before the last one no longer count.
    pub(super) fn rotate(&mut self) {
        if self.recent[0].is_some() {
            self.recent = [None, self.recent[0]];
        }
    }

    /// Takes a segment that left `age` after an ACK, sooner than the handshake was answered. A process that had to wake may have been late then: where
    /// most segments come so soon after an ACK, far more than by chance, the sender answers as promptly as that.
    fn prompted(&mut self, t: u64, age: u64) {
        let (Some(floor), true) = (self.floor, self.is_near == Some(true)) else { return };
        let a = &mut self.answers;
        a.prompt += 1;
        a.least = Some(a.least.map_or(age, |least| least.min(age)));
        let elapsed = t.saturating_sub(a.since.unwrap_or(t)).max(1);
        let by_chance = a.acks as f64 * floor as f64 / elapsed as f64;
        let share = a.prompt as f64 / a.segments.max(1) as f64;
        if a.prompt >= PROMPT && share > PROMPT_SHARE && share > BEYOND_CHANCE * by_chance {
            let least = a.least.unwrap_or(age);
            self.answers = Answers::default();
            self.measured(least);
        }
    }

    /// An ACK passes.
    pub(super) fn ack(&mut self, ack: &Ack) {
        self.answers.acks += 1;
        if self.waiting.len() == MOST {
            if let Some(oldest) = self.waiting.pop_front() {
                self.take(&oldest);
            }
        }
        self.waiting.push_back(*ack);
    }

    /// Says whether the next segment comes after a pause of the link that it comes from: then no queue lengthens its response.
    pub(super) fn pauses(&mut self, is_pause: bool) {
        self.is_empty = is_pause;
    }

    /// A segment passes: applies every ACK that the sender knew when it sent it, handing each to `seen`; everything before `nxt` had been sent.
    pub(super) fn data(&mut self, d: &Data, nxt: u64, mut seen: impl FnMut(&View, u64)) {
        self.answers.segments += 1;
        self.answers.since.get_or_insert(d.t);
        while let Some(first) = self.waiting.front().copied() {
            let age = d.t.saturating_sub(first.t);
            let stamps = d.tsecr.zip(first.tsval);
            let is_newer = stamps.is_some_and(|(echo, value)| ahead(echo, value) > 0);
            // A segment acknowledges all that its sender has, unless it lacks some of it.
            let is_ahead = !self.is_near() && d.options == 0 && first.end > d.ack;
            if is_newer && (!first.is_beyond || is_ahead) {
                break;
            }
            let stamps = stamps.filter(|_| !is_newer);
            let is_new = |value: u32| self.echoed.map_or(true, |(v, _)| ahead(v, value) > 0);
            let first_echo = stamps.map(|(_, value)| value).filter(|&value| is_new(value));
            let end = d.seq + u64::from(d.len);
            let is_certain = first_echo.is_some()
                || stamps.is_some_and(|(echo, value)| ahead(value, echo) > 0)
                || first.edge.is_some_and(|edge| edge >= end) && self.edge < end && self.knows_edge;
            if !is_certain && age < self.response() {
                if d.tsval.is_none() {
                    self.prompted(d.t, age);
                }
                break;
            }
            if let Some(value) = first_echo {
                self.echoed = Some((value, first.t));
            }
            self.waiting.pop_front();
            let at = self.take(&first);
            seen(self, at);
        }
        if self.unscaled.is_some() {
            // Of the ACKs of one tick of the receiver's clock the echo does not say which had come.
            let may_count = |a: &&Ack| a.tsval.zip(d.tsecr).is_some_and(|(value, echo)| ahead(echo, value) <= 0);
            self.may_know = self.waiting.iter().take_while(may_count).map(|a| a.ack).fold(self.una, u64::max);
        }
        if let (Some(echo), Some((v, t))) = (d.tsecr.filter(|_| d.tsecr != self.last_echo), self.echoed) {
            self.last_echo = d.tsecr;
            // Of a sender that had nothing under way the time since the ACK may be a silence of its application: it can but lower the least.
            let delay = d.t - t.min(d.t);
            let may_be_silence = self.una >= nxt && self.floor.is_some_and(|f| delay >= f);
            if v == echo && d.repeat.is_none() && !self.is_empty && !may_be_silence {
                self.measured(delay);
            }
        }
    }

    /// Whether the sender may know an ACK that does not count yet.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When the sender got leave to send up to `end`: the ACK whose window first reached so far.
    pub(super) fn leave(&self, end: u64) -> Option<Moment> {
        let first = self.edges.partition_point(|(edge, _)| *edge < end);
        self.edges.get(first).map(|(_, m)| *m)
    }

    /// The edge of an ACK whose window's scale was not seen: the least scale with which everything sent fitted.
    fn supposed_edge(&self, a: &Ack) -> u64 {
        self.supposed_shift.map_or(0, |shift| a.ack + (u64::from(a.window.unwrap_or(0)) << shift))
    }

    /// Everything up to `nxt` was sent, so that the window's scale must allow for it beyond what the sender may have known, where it was not seen. Only
    /// a flow that the receiver's window holds fills what this supposes.
    pub(super) fn fits(&mut self, nxt: u64) {
        let Some(window) = self.unscaled.filter(|&window| window > 0).map(u64::from) else { return };
        let least = (0..=MOST_SHIFT).find(|shift| self.may_know.max(self.una) + (window << shift) >= nxt);
        if least > self.supposed_shift {
            self.supposed_shift = least;
            self.edges.clear();
            self.edge = 0;
            self.knows_edge = false;
        }
    }

    /// Whether the window's scale is supposed.
    pub(super) fn supposes(&self) -> bool {
        self.supposed_shift.is_some()
    }

    /// Forgets the steps of the edge that do not reach beyond `nxt`, except the last.
    pub(super) fn forget(&mut self, nxt: u64) {
        while self.edges.front().is_some_and(|(edge, _)| *edge <= nxt) {
            self.edges.pop_front();
        }
    }

    /// Bytes that the receiver's window has beyond `nxt`; none where it is not known.
    pub(super) fn room(&self, nxt: u64) -> Option<u64> {
        self.knows_edge.then(|| self.edge.saturating_sub(nxt))
    }

    /// Applies an ACK; when it reached the sender, on the segments' clock.
    fn take(&mut self, a: &Ack) -> u64 {
        let at = Moment { t: a.t + self.response(), frame: a.frame };
        self.unscaled = if a.edge.is_some() { None } else { a.window };
        let edge = a.edge.unwrap_or_else(|| self.supposed_edge(a));
        // A repeated ACK reports a segment that came out of order, also where the capture cut its SACK option off.
        let is_repeated = a.ack == self.una && a.len == 0 && edge <= self.edge;
        let moved = a.ack > self.una || a.sacked > 0 || is_repeated;
        self.una = self.una.max(a.ack);
        self.delivered = self.delivered.max(a.delivered).max(a.ack);
        let opened = edge > self.edge;
        if opened {
            // The first window that is seen was there before.
            let at = if self.knows_edge { at } else { Moment { t: 0, ..at } };
            self.knows_edge = true;
            self.edge = edge;
            if self.edges.len() == MOST {
                self.edges.pop_back();
            }
            self.edges.push_back((edge, at));
        }
        if moved {
            self.advance = Some(at);
        }
        if a.len > 0 {
            self.request = Some(at);
        }
        if moved || opened {
            self.progress = Some(at);
        }
        at.t
    }
}
