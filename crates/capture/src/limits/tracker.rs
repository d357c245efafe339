//! From packets to gaps, from gaps to intervals.

use super::doubt::{Doubt, Doubts};
use super::intervals::{Interval, Intervals};
use super::view::{Moment, View};
use super::window::{Ending, Evidence, Gap, Habits};
use super::{Ack, Cause, Data, Handshake, Repeat};

/// Most gaps that wait for their window's end.
const MOST_GAPS: usize = 512;
/// Least length of a window, ns.
const LEAST_WINDOW: u64 = 20_000_000;
/// Largest, ns.
const MOST_WINDOW: u64 = 500_000_000;
/// Silence that is longer than most round trips, ns.
const LONG: u64 = 200_000_000;
/// The largest IP packet of an Ethernet, bytes.
const ETHERNET: u32 = 1_500;
/// A link that has a queue does not pause for so many times the mean time between segments.
const PAUSE: u64 = 8;
/// A segment left at an ACK if it came no later than this, ns, plus a share of the response delay.
const PROMPT: u64 = 50_000;
const PROMPT_SHARE: u64 = 16;

/// The last departure.
#[derive(Clone, Copy, Debug, Default)]
struct Departure {
    t: u64,
    frame: u64,
    is_drained: bool,
    is_tight: bool,
}

/// What governs the window beside the congestion control's own growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Episode {
    None,
    /// Until this byte is acknowledged.
    Recovery(u64),
    Timeout(u64),
}

/// Follows one direction of a connection.
#[derive(Clone, Debug)]
pub struct Tracker {
    view: View,
    begun: Option<Moment>,
    syn_ack: Option<u64>,
    last: Option<Departure>,
    nxt: u64,
    episode: Episode,
    /// Episodes that ended since the last departure: when.
    ended: Option<(u64, Cause)>,
    /// A segment under way to be timed: its end and when it passed.
    timed: Option<(u64, u64)>,
    rtt: u64,
    rtt_min: u64,
    /// When the sender got the last ACK.
    last_ack: u64,
    /// When the last data packet was seen, in or out of order.
    last_seen: Option<u64>,
    /// Mean time between data packets, ns; a pause counts as two of the shortest.
    usual_gap: u64,
    /// The highest acknowledgement number that passed, and when an ACK first repeated it: a loss was reported.
    reported: (u64, Option<u64>),
    window: Evidence,
    gaps: Vec<Gap>,
    most_gaps: usize,
    habits: Habits,
    doubts: Doubts,
    /// Whether the data's receiver opened the connection.
    is_accepted: bool,
    out: Intervals,
    closed: bool,
}

impl Tracker {
    /// Starts; keeps at most so many intervals.
    pub fn new(most_intervals: usize) -> Tracker {
        Tracker {
            view: View::default(),
            begun: None,
            syn_ack: None,
            last: None,
            nxt: 0,
            episode: Episode::None,
            ended: None,
            timed: None,
            rtt: 0,
            rtt_min: u64::MAX,
            last_ack: 0,
            last_seen: None,
            usual_gap: 0,
            reported: (0, None),
            window: Evidence::default(),
            gaps: Vec::new(),
            most_gaps: MOST_GAPS,
            habits: Habits::default(),
            doubts: Doubts::default(),
            is_accepted: false,
            out: Intervals::new(most_intervals),
            closed: false,
        }
    }

    /// Bytes of memory, its own included.
    pub fn memory(&self) -> usize {
        size_of::<Tracker>() + self.view.heap() + self.gaps.capacity() * size_of::<Gap>() + self.out.heap()
    }

    /// Keeps at most so many intervals from now on, and decides after so many gaps at the latest.
    pub fn bound(&mut self, most_intervals: usize, most_gaps: usize) {
        self.out.bound(most_intervals);
        self.most_gaps = most_gaps.min(MOST_GAPS);
    }

    /// The data's receiver opened the connection; said before the handshake's packets.
    pub fn accepted(&mut self) {
        self.is_accepted = true;
    }

    /// A packet of the handshake.
    pub fn handshake(&mut self, t: u64, frame: u64, packet: Handshake) {
        let begun = *self.begun.get_or_insert(Moment { t, frame });
        match packet {
            Handshake::Syn => {}
            Handshake::SynAck => self.syn_ack = Some(t),
            Handshake::Ack => self.established(t, frame, begun),
        }
    }

    /// The opening end answers the SYN-ACK, with an ACK or, where that is not seen, with its first data.
    fn established(&mut self, t: u64, frame: u64, begun: Moment) {
        if let Some(asked) = self.syn_ack.take() {
            let delay = t - asked.min(t);
            // The opener's answer stands for the sender's; an accepting sender has shown its own, from the SYN to the SYN-ACK.
            self.doubts.is_far = self.is_accepted && asked - begun.t.min(asked) > delay.max(PROMPT);
            self.view.handshake(delay);
        }
        if self.last.is_none() {
            self.out.push(begun.t, t, Cause::Handshake, [begun.frame, frame, 0, 0]);
            self.last = Some(Departure { t, frame, is_drained: true, is_tight: false });
            self.window.from = t;
        }
    }

    /// A packet of the other direction.
    pub fn ack(&mut self, ack: &Ack) {
        if let Some((_, sent)) = self.timed.filter(|(end, _)| ack.ack >= *end) {
            self.timed = None;
            let sample = ack.t - sent + self.view.response();
            self.rtt = if self.rtt == 0 { sample } else { self.rtt - self.rtt / 8 + sample / 8 };
            self.rtt_min = self.rtt_min.min(sample);
        }
        if ack.ack > self.reported.0 {
            self.reported = (ack.ack, None);
        }
        if ack.sacked > 0 || ack.ack == self.reported.0 && ack.len == 0 && self.nxt > ack.ack {
            self.reported.1.get_or_insert(ack.t);
        }
        self.view.ack(ack);
    }

    /// A data segment.
    pub fn data(&mut self, d: &Data) {
        let d = &Data { mss: full_segment(d), ..*d };
        let end = d.seq + u64::from(d.len);
        if let (Some(begun), Some(_), None) = (self.begun, self.syn_ack, self.last) {
            self.established(d.t, d.frame, begun);
        }
        let gap = d.t - self.last_seen.unwrap_or(d.t).min(d.t);
        self.last_seen = Some(d.t);
        self.doubts.data(d);
        self.view.pauses(gap > PAUSE * self.usual_gap);
        let counted = gap.min(2 * PAUSE * self.usual_gap.max(1_000));
        self.usual_gap = self.usual_gap - self.usual_gap / 32 + counted / 32;
        self.learn(d);
        // A segment overtaken on its way here left before those already seen.
        let is_departure = end > self.nxt || d.repeat.is_some();
        if is_departure {
            if let Some(last) = self.last {
                self.look_back(d, last);
            }
            self.depart(d, end);
        }
        if d.t >= self.window.from + self.window_length() || self.gaps.len() >= self.most_gaps {
            self.close_window(d.t);
        }
    }

    /// The sender of the data closes.
    pub fn ended(&mut self, _t: u64, _frame: u64) {
        self.closed = true;
    }

    /// What held the flow, and why that is not known for a part of the time; `t` is the time of its last packet.
    pub fn finish(mut self, t: u64) -> (Vec<Interval>, Option<Doubt>) {
        self.conclude(t);
        (self.out.finish(), self.doubts.longest())
    }

    fn conclude(&mut self, t: u64) {
        if let (Some(last), false) = (self.last, self.closed) {
            if t > last.t {
                let ending = Ending::Known(Cause::Application);
                let frames = [last.frame, 0, 0, 0];
                self.judge_later(Gap { from: last.t, to: t, ending, is_drained: true, is_tight: false, is_unsure: false, frames });
            }
        }
        self.close_window(t);
    }

    /// Applies the ACKs that the sender knew, and ends episodes.
    fn learn(&mut self, d: &Data) {
        let (mut episode, mut ended, mut covered, mut last_ack) = (self.episode, self.ended, 0, self.last_ack);
        let prompt = self.prompt();
        self.view.data(d, |view, at| {
            covered += at.saturating_sub(last_ack).min(prompt);
            last_ack = last_ack.max(at);
            let (over, cause) = match episode {
                Episode::None => return,
                Episode::Timeout(point) => (view.una >= point, Cause::Timeout),
                Episode::Recovery(point) => (view.una >= point, Cause::Recovery),
            };
            if over {
                episode = Episode::None;
                ended = Some((at, cause));
            }
        });
        (self.episode, self.ended) = (episode, ended);
        self.window.covered += covered;
        self.last_ack = last_ack;
    }

    /// Judges the gap before this segment by what ended it.
    fn look_back(&mut self, d: &Data, last: Departure) {
        let progress = self.view.progress.filter(|m| m.t + self.prompt() > last.t);
        let frames = [last.frame, progress.map_or(0, |m| m.frame), d.frame, 0];
        let Departure { is_drained, is_tight, .. } = last;
        let is_unsure = self.is_unsure(d, last);
        let mut gap = Gap { from: last.t, to: d.t, ending: Ending::Timer, is_drained, is_tight, is_unsure, frames };
        if d.repeat == Some(Repeat::Timeout) {
            gap.ending = Ending::Known(Cause::Timeout);
            return self.judge_later(gap);
        }
        if let Some(at) = self.closed_until(d, last) {
            // Where more room came before the segment left, it waited for more still (RFC 9293 §3.8.6.2.1), unless it left for another reason.
            let is_asked = progress.is_some_and(|m| d.t <= m.t + self.prompt());
            let tolerance = self.prompt() + if self.view.is_near() { 0 } else { self.view.response() };
            let until = if is_asked || d.t <= at + tolerance { d.t } else { at };
            self.judge_later(Gap { to: until, ending: Ending::Known(Cause::ReceiveWindow), ..gap });
            gap.from = until;
        }
        gap.ending = match progress {
            Some(m) if d.t <= m.t + self.prompt() => Ending::Ack,
            Some(m) if !self.view.is_near() && !last.is_drained && d.t < m.t + self.view.response() / 2 => Ending::Timer,
            _ if self.view.una >= self.nxt && self.is_sure_of_idleness(d, last) => Ending::Known(Cause::Application),
            _ => Ending::Timer,
        };
        // Elsewhere gaps that no ACK ended are judged by what the segments look like; that nothing was under way rests on the ACKs that count.
        gap.is_unsure &= gap.ending == if self.view.is_near() { Ending::Timer } else { Ending::Known(Cause::Application) };
        self.judge_later(gap);
    }

    /// Whether the departure may answer an ACK that does not count: at the sender one that came just before it, elsewhere any, unless after a silence
    /// that is none of the path's.
    fn is_unsure(&self, d: &Data, last: Departure) -> bool {
        self.doubts.is_untimed && if self.view.is_near() { self.view.waits() } else { !self.is_silence(d, last) }
    }

    /// Where nothing shows the time from here to the sender and back, only a long silence is not that.
    fn is_sure_of_idleness(&self, d: &Data, last: Departure) -> bool {
        self.view.knows_response() || self.is_silence(d, last)
    }

    fn is_silence(&self, d: &Data, last: Departure) -> bool {
        let gap = d.t - last.t.min(d.t);
        gap > PAUSE * self.usual_gap && gap > LONG.max(self.rtt.saturating_mul(4))
    }

    /// Until when the receiver's window had no room for the next segment, if it had none after the last departure.
    fn closed_until(&self, d: &Data, last: Departure) -> Option<u64> {
        // A segment that was cut to the window's room waited for more (RFC 9293 §3.8.6.2.1).
        let room = self.view.room(self.nxt).unwrap_or(0);
        let is_cut = d.len < d.mss && room < u64::from(d.mss);
        let need = u64::from(match (d.repeat.is_some() || is_cut, self.view.supposes()) {
            (true, _) if d.mss > 0 => d.mss,
            (_, true) if d.mss > 0 => d.len.min(d.mss),
            _ => d.len,
        });
        if !self.view.knows_edge || d.t <= last.t + self.prompt() {
            return None;
        }
        match self.view.leave(self.nxt + need) {
            Some(m) => (m.t > last.t + self.prompt()).then_some(m.t.min(d.t)),
            None => Some(d.t),
        }
    }

    fn prompt(&self) -> u64 {
        PROMPT + self.view.floor().unwrap_or(0) / PROMPT_SHARE
    }

    /// Puts a gap, cut at the end of an episode, into the window.
    fn judge_later(&mut self, gap: Gap) {
        let mut gap = gap;
        if let Some((at, cause)) = self.ended.take() {
            let at = at.clamp(gap.from, gap.to);
            let ending = if gap.is_drained && cause == Cause::Recovery { gap.ending } else { in_episode(gap.ending, cause) };
            self.add(Gap { to: at, ending, ..gap });
            gap.from = at;
        } else {
            match self.episode {
                Episode::Recovery(_) if gap.is_drained => {}
                Episode::Recovery(_) => gap.ending = in_episode(gap.ending, Cause::Recovery),
                Episode::Timeout(_) => gap.ending = in_episode(gap.ending, Cause::Timeout),
                Episode::None => {}
            }
        }
        self.add(gap);
    }

    fn add(&mut self, gap: Gap) {
        if gap.to > gap.from {
            self.window.tight += if gap.is_tight { gap.to - gap.from } else { 0 };
            self.gaps.push(gap);
        }
    }

    fn depart(&mut self, d: &Data, end: u64) {
        let is_cut = self.view.room(end).is_some_and(|room| room < u64::from(d.mss));
        let is_short = d.mss > 0 && d.len % d.mss != 0 && !is_cut;
        match d.repeat {
            Some(Repeat::Timeout) => self.episode = Episode::Timeout(self.nxt),
            Some(Repeat::Fast) if self.episode == Episode::None => {
                self.episode = Episode::Recovery(self.nxt);
                if let (0, Some(reported)) = (d.tsecr, self.reported.1) {
                    self.view.repaired(d.t.saturating_sub(reported));
                }
            }
            _ => {}
        }
        if d.repeat.is_some() {
            self.timed = None;
        } else if self.timed.is_none() && end > self.nxt {
            self.timed = Some((end, d.t));
        }
        let w = &mut self.window;
        let before = self.nxt - self.view.delivered.min(self.nxt);
        self.nxt = self.nxt.max(end);
        self.view.fits(self.nxt);
        self.view.forget(self.nxt);
        let flight = self.nxt - self.view.delivered.min(self.nxt);
        w.flight_min = if w.segments == 0 { before } else { w.flight_min.min(before) };
        w.flight_max = w.flight_max.max(flight);
        w.segments += 1;
        w.bytes += u64::from(d.len);
        w.short += u32::from(is_short);
        let is_tight =
            self.view.room(self.nxt).is_some_and(|room| room < u64::from(d.mss) + (self.view.edge - self.view.una.min(self.view.edge)) / 8);
        self.last = Some(Departure { t: d.t, frame: d.frame, is_drained: is_short, is_tight });
    }

    fn window_length(&self) -> u64 {
        self.rtt.clamp(LEAST_WINDOW, MOST_WINDOW)
    }

    /// Decides on the gaps of the window and begins the next one.
    fn close_window(&mut self, t: u64) {
        self.window.to = t;
        self.window.rtt_min = self.rtt_min;
        self.habits.learn(&self.gaps, &self.window);
        let is_near = self.view.is_near();
        for g in self.gaps.drain(..) {
            let cause = if is_near { self.habits.cause_near(&g, &self.window) } else { self.habits.cause_far(&g, self.view.supposes()) };
            let is_idle = g.ending == Ending::Known(Cause::Application);
            self.out.push(g.from, g.to, self.doubts.judged(cause, &g, is_idle), g.frames);
        }
        self.view.rotate();
        self.window = Evidence { from: t, ..Evidence::default() };
    }
}

/// Payload of a full segment; where only super-packets were seen, that of an Ethernet. 0 unknown.
fn full_segment(d: &Data) -> u32 {
    match (d.mss, d.len > ETHERNET) {
        (0, true) if d.tsval != 0 => ETHERNET - 52,
        (0, true) => ETHERNET - 40,
        (mss, _) => mss,
    }
}

/// Within an episode the receive window still holds what it holds; the rest is the episode's.
fn in_episode(ending: Ending, cause: Cause) -> Ending {
    match ending {
        Ending::Known(Cause::ReceiveWindow | Cause::Timeout) => ending,
        _ => Ending::Known(cause),
    }
}
