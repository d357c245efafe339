//! From packets to gaps, from gaps to intervals.

use super::episodes::Episodes;
use super::full::FullSize;
use super::intervals::Interval;
use super::judge::{Doubt, Judge};
use super::times::{Opening, RoundTrips, Spacing};
use super::view::{Moment, View};
use super::window::{Ending, Gap};
use super::{Ack, Cause, Data, Handshake, Repeat};

/// Least length of a window, ns.
const LEAST_WINDOW: u64 = 20_000_000;
/// Largest, ns.
const MOST_WINDOW: u64 = 500_000_000;
/// Silence that is longer than most round trips, ns.
const LONG: u64 = 200_000_000;
/// The largest IP packet of an Ethernet, bytes.
const ETHERNET: u32 = 1_500;
/// A window of less than two segments is filled by halves (RFC 9293 §3.8.6.2.1): a segment that leaves more room than its own length was not cut.
const HALVES: u64 = 2;
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

/// Follows one direction of a connection.
#[derive(Clone, Debug)]
pub struct Tracker {
    view: View,
    opening: Opening,
    trips: RoundTrips,
    spacing: Spacing,
    full: FullSize,
    episodes: Episodes,
    judge: Judge,
    last: Option<Departure>,
    nxt: u64,
    /// When the sender got the last ACK.
    last_ack: u64,
    /// The highest acknowledgement number that passed.
    acked: u64,
    /// When an ACK first repeated it: a loss was reported.
    reported: Option<u64>,
    /// Where the data end that were under way, or waited in as large a flight, when options last made segments smaller.
    resized: u64,
    /// Most bytes that were sent and not acknowledged.
    most: u64,
    rest: Rest,
    closed: bool,
}

/// The last segment that was not full and ended a write.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    end: u64,
    /// When the sender learnt that it had arrived.
    acked: Option<u64>,
}

impl Tracker {
    /// Starts; keeps at most so many intervals.
    pub fn new(most_intervals: usize) -> Tracker {
        Tracker {
            view: View::default(),
            opening: Opening::default(),
            trips: RoundTrips::new(),
            spacing: Spacing::default(),
            full: FullSize::default(),
            episodes: Episodes::default(),
            judge: Judge::new(most_intervals),
            last: None,
            nxt: 0,
            last_ack: 0,
            acked: 0,
            reported: None,
            resized: 0,
            most: 0,
            rest: Rest::default(),
            closed: false,
        }
    }

    /// Bytes of memory, its own included.
    pub fn memory(&self) -> usize {
        size_of::<Tracker>() + self.view.heap() + self.judge.heap()
    }

    /// Keeps at most so many intervals from now on, and decides after so many gaps at the latest.
    pub fn bound(&mut self, most_intervals: usize, most_gaps: usize) {
        self.judge.bound(most_intervals, most_gaps);
    }

    /// The data's receiver opened the connection; said before the handshake's packets.
    pub fn accepted(&mut self) {
        self.opening.is_accepted = true;
    }

    /// A packet of the handshake.
    pub fn handshake(&mut self, t: u64, frame: u64, packet: Handshake) {
        let begun = self.opening.begin(t, frame);
        match packet {
            Handshake::Syn => {}
            Handshake::SynAck => self.opening.asked(t),
            Handshake::Ack => self.established(t, frame, begun),
        }
    }

    /// The opening end answers the SYN-ACK, with an ACK or, where that is not seen, with its first data.
    fn established(&mut self, t: u64, frame: u64, begun: Moment) {
        if let Some([accepted, answered]) = self.opening.answered(t) {
            // Each end answers once: a sender that was asked from the SYN to the SYN-ACK, one that opened the connection from that to its ACK.
            let is_accepted = self.opening.is_accepted;
            self.judge.doubts.is_far = is_accepted && accepted > answered.max(PROMPT);
            self.view.handshake(if is_accepted { accepted } else { answered });
        }
        if self.last.is_none() {
            self.judge.begin(begun..Moment { t, frame });
            self.last = Some(Departure { t, frame, is_drained: true, is_tight: false });
        }
    }

    /// A packet of the other direction.
    pub fn ack(&mut self, ack: &Ack) {
        self.trips.ack(ack, self.view.response());
        if ack.ack > self.acked {
            (self.acked, self.reported) = (ack.ack, None);
        }
        if ack.sacked > 0 || ack.ack == self.acked && ack.len == 0 && self.nxt > ack.ack {
            self.reported.get_or_insert(ack.t);
        }
        self.view.ack(ack);
    }

    /// A data segment.
    pub fn data(&mut self, d: &Data) {
        let d = &Data { mss: full_segment(d), ..*d };
        let d = &Data { mss: self.full.take(d), ..*d };
        let end = d.seq + u64::from(d.len);
        if let (Some(begun), None) = (self.opening.unanswered(), self.last) {
            self.established(d.t, d.frame, begun);
        }
        self.judge.doubts.data(d);
        self.view.pauses(self.spacing.data(d.t));
        self.learn(d);
        // A segment overtaken on its way here left before those already seen.
        let is_departure = end > self.nxt || d.repeat.is_some();
        if is_departure {
            if let Some(last) = self.last {
                self.look_back(d, last);
            }
            self.depart(d, end);
        }
        if self.judge.is_due(d.t, self.trips.smoothed.clamp(LEAST_WINDOW, MOST_WINDOW)) {
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
        self.judge.finish()
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
        let prompt = self.prompt();
        self.view.data(d, self.nxt, |view, at| {
            self.judge.covered(at.saturating_sub(self.last_ack).min(prompt));
            self.last_ack = self.last_ack.max(at);
            self.episodes.acknowledged(view.una, at);
            if view.una >= self.rest.end {
                self.rest.acked.get_or_insert(at);
            }
        });
    }

    /// Judges the gap before this segment by what ended it.
    fn look_back(&mut self, d: &Data, last: Departure) {
        let progress = self.view.progress.filter(|m| m.t + self.prompt() > last.t);
        let frames = [last.frame, progress.map_or(0, |m| m.frame), d.frame, 0];
        let Departure { is_drained, is_tight, .. } = last;
        let is_unsure = self.is_unsure(d, last);
        let is_answer = self.is_answer(last);
        if is_drained && !is_answer && self.nxt > 0 {
            self.judge.ran_out();
        }
        let mut gap = Gap { from: last.t, to: d.t, ending: Ending::Timer, is_drained, is_tight, is_unsure, frames };
        if self.is_hole(d, last) {
            return self.judge.add(Gap { ending: Ending::Known(Cause::Unknown), ..gap });
        }
        let closed_until = self.closed_until(d, last);
        if d.repeat == Some(Repeat::Timeout) {
            // What a full window keeps waits for the window, also where the timer repeats what may have arrived: the ACKs that open it are lost.
            let is_full = closed_until == Some(d.t) && !last.is_drained;
            gap.ending = Ending::Known(if is_full { Cause::ReceiveWindow } else { Cause::Timeout });
            return self.judge_later(gap);
        }
        if let Some(at) = closed_until {
            // Where more room came before the segment left, it waited for more still (RFC 9293 §3.8.6.2.1), unless it left for another reason.
            let is_asked = progress.is_some_and(|m| d.t <= m.t + self.prompt());
            let tolerance = self.prompt() + if self.view.is_near() { 0 } else { self.view.response() };
            let until = if is_asked || d.t <= at + tolerance { d.t } else { at };
            self.judge_later(Gap { to: until, ending: Ending::Known(Cause::ReceiveWindow), ..gap });
            gap.from = until;
        }
        gap.ending = match progress {
            _ if is_answer || self.is_rest_released(d, last) => Ending::Known(Cause::Application),
            Some(m) if d.t <= m.t + self.prompt() => Ending::Ack,
            Some(m) if !self.view.is_near() && !last.is_drained && d.t < m.t + self.view.response() / 2 => Ending::Timer,
            _ if self.view.una >= self.nxt && self.is_sure_of_idleness(d, last) => Ending::Known(Cause::Application),
            _ => Ending::Timer,
        };
        // Elsewhere gaps that no ACK ended are judged by what the segments look like; that nothing was under way rests on the ACKs that count.
        gap.is_unsure &= !is_answer && gap.ending == if self.view.is_near() { Ending::Timer } else { Ending::Known(Cause::Application) };
        self.judge_later(gap);
    }

    /// Whether all that was written had been sent, and the other end then sent data: a program that answers, and had nothing to say before.
    fn is_answer(&self, last: Departure) -> bool {
        last.is_drained && self.view.request.is_some_and(|m| m.t + self.prompt() > last.t)
    }

    /// Whether this is the rest of a write that waited for the ACK of the rest before it (Nagle's algorithm, RFC 9293 §3.7.4; of small segments alone:
    /// draft-minshall-nagle-01): all else had been sent.
    fn is_rest_released(&self, d: &Data, last: Departure) -> bool {
        let is_acked_now = self.rest.acked.is_some_and(|at| at > last.t && d.t <= at + self.prompt());
        self.view.is_near() && is_acked_now && self.ends_write(d)
    }

    /// Whether the departure may answer an ACK that does not count: at the sender one that came just before it, elsewhere any, unless after a silence
    /// that is none of the path's.
    fn is_unsure(&self, d: &Data, last: Departure) -> bool {
        self.judge.doubts.is_untimed && if self.view.is_near() { self.view.waits() } else { !self.is_silence(d, last) }
    }

    /// Where nothing shows the time from here to the sender and back, only a long silence is not that.
    fn is_sure_of_idleness(&self, d: &Data, last: Departure) -> bool {
        self.view.knows_response() || self.is_silence(d, last)
    }

    /// Whether the capture lacks what left meanwhile: data that it does not have were acknowledged, or more is missing than was ever under way.
    fn is_hole(&self, d: &Data, last: Departure) -> bool {
        let is_long = d.t - last.t.min(d.t) > LONG.max(self.trips.smoothed);
        is_long && self.nxt > 0 && (self.acked > self.nxt + 1 || d.seq > self.nxt + self.most)
    }

    fn is_silence(&self, d: &Data, last: Departure) -> bool {
        let gap = d.t - last.t.min(d.t);
        self.spacing.is_pause(gap) && gap > LONG.max(self.trips.smoothed.saturating_mul(4))
    }

    /// Until when the receiver's window had no room for the next segment, if it had none after the last departure.
    fn closed_until(&self, d: &Data, last: Departure) -> Option<u64> {
        // A segment that was cut to the window's room waited for more (RFC 9293 §3.8.6.2.1).
        let room = self.view.room(self.nxt).unwrap_or(0);
        let is_cut = d.mss.is_some_and(|mss| d.len < mss && room < u64::from(mss)) && room <= HALVES * u64::from(d.len);
        let need = u64::from(match (d.repeat.is_some() || is_cut, self.view.supposes()) {
            (true, _) => d.mss.unwrap_or(d.len),
            (_, true) => d.len.min(d.mss.unwrap_or(d.len)),
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
        let (within, rest) = self.episodes.cut(gap);
        within.into_iter().chain([rest]).for_each(|g| self.judge.add(g));
    }

    /// Whether a segment that is not full is so because no more was written.
    fn ends_write(&self, d: &Data) -> bool {
        let end = d.seq + u64::from(d.len);
        let is_cut = self.view.room(end).zip(d.mss).is_some_and(|(room, mss)| room < u64::from(mss) && room < HALVES * u64::from(d.len));
        // What was cut for segments of another size leaves rests.
        let is_rest = d.options > 0 || d.seq < self.resized;
        // The last segment of what was written has PSH (RFC 9293 §3.9.1.2, MUST-61).
        d.psh && d.mss.is_some_and(|mss| d.len % mss != 0) && !is_cut && !is_rest
    }

    fn depart(&mut self, d: &Data, end: u64) {
        let is_short = self.ends_write(d);
        if is_short && end > self.nxt {
            self.rest = Rest { end, acked: None };
        }
        if d.repeat.is_some_and(|repeat| self.episodes.repeats(repeat, self.nxt)) {
            if let (None, Some(reported)) = (d.tsecr, self.reported) {
                self.view.repaired(d.t.saturating_sub(reported));
            }
        }
        self.trips.depart(d, end > self.nxt);
        let before = self.nxt - self.view.delivered.min(self.nxt);
        self.nxt = self.nxt.max(end);
        self.most = self.most.max(self.nxt - self.view.una.min(self.nxt));
        if d.options > 0 {
            self.resized = self.resized.max(self.nxt + self.most);
        }
        self.view.fits(self.nxt);
        self.view.forget(self.nxt);
        self.judge.departed(d, before, self.nxt - self.view.delivered.min(self.nxt));
        let window = self.view.edge - self.view.una.min(self.view.edge);
        let need = u64::from(d.mss.unwrap_or(0)).min(window / HALVES) + window / 8;
        let is_tight = self.view.room(self.nxt).is_some_and(|room| room < need);
        self.last = Some(Departure { t: d.t, frame: d.frame, is_drained: is_short, is_tight });
    }

    fn close_window(&mut self, t: u64) {
        self.judge.close(t, self.trips.least, &self.view);
        self.view.rotate();
    }
}

/// Payload of a full segment; where only super-packets were seen, that of an Ethernet. None where it is unknown.
fn full_segment(d: &Data) -> Option<u32> {
    let headers = if d.tsval.is_some() { 52 } else { 40 };
    d.mss.or((d.len > ETHERNET).then_some(ETHERNET - headers))
}
