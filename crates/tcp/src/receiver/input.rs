//! What a segment does: it is judged, its data are queued, what it shows is learnt, and it is acknowledged.
//!
//! Source: RFC 9293 §3.10.7.4, RFC 5681 §4.2, RFC 2883 §4; memory limits are observed (docs/models/tcp/receiver.md, "Full buffer").

use super::acceptance::{judge, Acceptance, Edges};
use super::ack::{AckDecision, Arrival, Limits, Situation};
use super::buffer::Buffer;
use super::handshake::Step;
use super::reassembly::{Joined, Queued};
use super::stream::Place;
use super::timestamps::clock;
use super::Receiver;
use tcpscape_base::{Flags, SackBlock, Segment, Time};

/// Segments shorter than this do not open the window.
const LEAST_TO_GROW: u32 = 128;
/// Segments acknowledged one by one after a congestion mark.
const QUICK_ACKS_ON_MARK: u32 = 2;

impl Receiver {
    // ---- handshake -------------------------------------------------------------------------------------------------

    /// A segment before the connection is open.
    #[cold]
    pub(super) fn on_handshake_segment(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        match self.handshake.step(s, self.timestamps, self.window.advertised()) {
            Step::Ignore => {}
            Step::Begin => {
                self.ecn.on_syn(s);
                self.timestamps.start(s.tsval);
                self.send_syn_ack(now);
            }
            Step::RepeatSynAck => {
                if self.limiter.allows(now, &self.jiffies) {
                    self.send_syn_ack(now);
                }
            }
            Step::Refuse => {
                if s.len > 0 || self.limiter.allows(now, &self.jiffies) {
                    self.send_handshake_ack(now);
                }
            }
            Step::Complete => self.establish(now, s, buffer),
        }
    }
    // The connection is open. The segment that opens it may bring data, but no round-trip time.
    fn establish(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        if s.seq <= 1 {
            self.timestamps.start(s.tsval);
        }
        let round_trip = self.handshake.complete(now);
        self.window.establish();
        self.sizing.establish(now, &self.window, self.stream.read(), self.kernel.rules());
        let mss = self.window.mss().min(self.mss);
        self.acks.establish(now, &self.jiffies, mss, self.window.advertised(), round_trip);
        if self.accepts(now, s) {
            let counted = self.ecn.on_first_segment(s, self.mss);
            self.on_marks(counted.packets, counted.at_once);
            self.on_data(now, s, buffer);
        }
    }

    // ---- acceptance ------------------------------------------------------------------------------------------------

    /// Whether a segment is acceptable; one that is not is answered here.
    #[inline]
    pub(super) fn accepts(&mut self, now: Time, s: &Segment) -> bool {
        let next = self.stream.next();
        let edges = Edges { last_ack: self.window.last_ack(), next, right: next + u64::from(self.window.left(next)) };
        let acceptance = judge(s, self.timestamps, edges);
        match acceptance {
            Acceptance::Acceptable | Acceptance::Reset => {
                if s.seq <= edges.last_ack {
                    self.timestamps.follow(s.tsval);
                }
            }
            Acceptance::Syn => self.send_limited_ack(now),
            Acceptance::OldTimestamp => {
                self.stats.dropped_paws += 1;
                self.refuse(now, s);
            }
            Acceptance::OutsideWindow => {
                self.stats.dropped_window += u64::from(s.end() > next && s.end() != s.seq);
                self.refuse(now, s);
            }
        }
        acceptance == Acceptance::Acceptable
    }
    // An ACK for a segment that is not acceptable, with a DSACK for what of it is old.
    #[cold]
    fn refuse(&mut self, now: Time, s: &Segment) {
        if s.end() == s.seq {
            return self.send_limited_ack(now);
        }
        self.stats.segments += 1;
        if let Some(old) = self.stream.old_part(s) {
            self.stats.duplicates += u64::from(old.1 == s.end());
            self.acks.on_trouble(&self.jiffies, self.window.advertised());
            self.sack.set_duplicate(Some(old));
        }
        self.send_ack(now);
    }
    fn send_limited_ack(&mut self, now: Time) {
        if self.limiter.allows(now, &self.jiffies) {
            self.send_ack(now);
        }
    }

    // ---- what an acceptable segment's header shows -----------------------------------------------------------------

    /// CWR, or a mark that is counted.
    #[inline]
    pub(super) fn read_ecn(&mut self, s: &Segment) {
        let counted = self.ecn.on_segment(s, self.mss);
        self.on_marks(counted.packets, counted.at_once);
    }
    #[inline]
    fn on_marks(&mut self, packets: u32, at_once: bool) {
        self.stats.ce_segments += u64::from(packets);
        if at_once {
            self.acks.send_at_once();
        }
    }
    /// The age of the timestamp that the segment echoes.
    #[inline]
    pub(super) fn read_echo(&mut self, now: Time, s: &Segment) {
        let age = clock(&self.jiffies, now).wrapping_sub(s.tsecr);
        let is_full = s.end() - s.seq >= u64::from(self.acks.segment());
        self.round_trip.on_echo(s.tsecr, age, is_full, self.store.unread() > 0, self.kernel.rules());
    }

    // ---- data ------------------------------------------------------------------------------------------------------

    /// The data of an acceptable segment, which occupies a buffer.
    #[inline]
    pub(super) fn on_data(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        if s.seq == s.end() {
            return;
        }
        self.stats.segments += 1;
        self.sack.set_duplicate(self.stream.old_part(s));
        let arrival = match self.stream.place(s, self.window.left(self.stream.next())) {
            Place::Next => self.take_in_order(now, s, buffer),
            Place::Ahead => self.take_ahead(now, s, buffer),
            Place::Old => Arrival::Old,
            Place::Outside => Arrival::Outside,
        };
        self.count(arrival);
        self.acks.on_arrival(arrival, &self.jiffies, self.window.advertised());
        if self.acks.is_owed() {
            self.acknowledge(now);
        }
    }
    #[inline]
    fn count(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::InOrder { .. } | Arrival::Ahead { .. } => {}
            Arrival::Old => self.stats.duplicates += 1,
            Arrival::Outside => self.stats.dropped_window += 1,
            Arrival::NoMemory => self.stats.dropped_memory += 1,
        }
    }
    // Sends the ACK that is owed, or lets it wait.
    #[inline]
    fn acknowledge(&mut self, now: Time) {
        let next = self.stream.next();
        let is_second = next - self.window.last_ack() > u64::from(self.acks.segment())
            && (next == self.stream.read() || self.offer() >= self.window.advertised());
        let situation = Situation {
            is_second,
            has_gap: self.store.has_gap(),
            sack: self.sack.is_permitted(),
            next,
            round_trip: self.round_trip.smoothed(),
            limits: Limits::of(&self.kernel),
        };
        if self.acks.decide(now, &self.jiffies, &situation) == AckDecision::Now {
            self.send_ack(now);
        }
    }

    // ---- data in order ---------------------------------------------------------------------------------------------

    #[inline]
    fn take_in_order(&mut self, now: Time, s: &Segment, buffer: &Buffer) -> Arrival {
        if s.len > 0 && !self.admits(s.seq) {
            return Arrival::NoMemory;
        }
        let extent = self.stream.note_reordering(s.seq, s.end());
        self.stats.max_reorder_extent = self.stats.max_reorder_extent.max(extent);
        let fin = s.flags.has(Flags::FIN);
        self.deliver((s.seq, s.end()), fin, buffer);
        if s.len > 0 {
            self.learn(now, s, buffer);
        }
        if fin {
            self.finish();
        }
        let completes = fin || (self.store.has_gap() && self.join());
        if self.store.has_gap() {
            self.sack.acknowledge(self.stream.next());
        } else {
            self.sack.forget_blocks();
        }
        Arrival::InOrder { completes }
    }
    // Whether a segment in order is taken. 6.1 takes it unasked where nothing else waits to be read; 6.12 answers a lack of memory with a
    // closed window, whether the segment is taken or not.
    #[inline]
    fn admits(&mut self, seq: u64) -> bool {
        let is_alone = self.store.unread() == 0;
        if !self.kernel.rules().closes_without_memory {
            return is_alone || self.has_memory(seq);
        }
        let has_memory = self.has_memory(seq);
        if !has_memory {
            self.acks.close_window();
        }
        has_memory || is_alone
    }
    // Everything up to `end` is in order now, by a buffer that has `start..end`.
    #[inline]
    fn deliver(&mut self, (start, end): SackBlock, fin: bool, buffer: &Buffer) {
        let has_old = start < self.stream.next();
        let new = self.stream.advance(end, fin);
        self.stats.bytes += u64::from(new);
        if new > 0 {
            self.store.append(Buffer { len: new, ..*buffer }, has_old);
        }
    }
    // What data in order show: segment size, round trip, rhythm, congestion; and the window that they open.
    #[inline]
    fn learn(&mut self, now: Time, s: &Segment, buffer: &Buffer) {
        let window = self.window.advertised();
        self.measure(s, buffer);
        self.round_trip.on_data(now, self.stream.next(), window);
        self.acks.on_data(now, &self.jiffies, window);
        self.read_mark(now, s);
        if s.len >= LEAST_TO_GROW {
            self.grow(s.len, self.store.memory_when_merged(s.len, buffer.memory));
        }
    }
    // Buffers beyond the gap that have become in order. Returns whether none is left.
    fn join(&mut self) -> bool {
        let gap_end = self.stream.next();
        while let Some(Joined { start, end, buffer }) = self.store.take_joined(self.stream.next()) {
            if start < gap_end {
                self.sack.extend_duplicate((start, end.min(gap_end)));
            }
            if end <= self.stream.next() {
                continue;
            }
            let fin = self.stream.is_last(end);
            self.deliver((start, end), fin, &buffer);
            if fin {
                self.finish();
                break;
            }
        }
        !self.store.has_gap()
    }

    // The stream has ended: what lies beyond its end is dropped, and nothing is reported any more.
    fn finish(&mut self) {
        self.store.drop_ahead();
        self.sack.forget();
    }

    // ---- data beyond a gap -----------------------------------------------------------------------------------------

    fn take_ahead(&mut self, now: Time, s: &Segment, buffer: &Buffer) -> Arrival {
        let (start, end) = (s.seq, s.end());
        self.read_mark(now, s);
        if !self.has_memory(start) {
            return Arrival::NoMemory;
        }
        if self.kernel.rules().measures_out_of_order {
            self.measure(s, buffer);
        }
        self.stats.ooo_segments += 1;
        if s.flags.has(Flags::FIN) {
            self.stream.ends_at(end);
        }
        let extent = self.stream.note_reordering(start, end);
        self.stats.max_reorder_extent = self.stats.max_reorder_extent.max(extent);
        let insertion = self.store.insert(start, end, *buffer);
        self.sack.set_duplicate(insertion.duplicate);
        let acknowledged = self.sack.is_permitted() && self.report(now, (start, end));
        // A merged segment counts before the window grows, another one after it.
        match insertion.queued {
            Queued::Nothing => self.stats.duplicates += 1,
            Queued::Merged(cost) => {
                self.store.charge(i64::from(cost));
                self.grow_ahead(s.len, self.store.memory_when_merged(s.len, buffer.memory));
            }
            Queued::Alone(change) => {
                self.grow_ahead(s.len, buffer.memory);
                self.store.charge(change);
            }
        }
        if self.kernel.rules().autotunes_for_gaps {
            self.sizing.on_gap(self.ahead(), self.kernel.rules(), &mut self.window);
        }
        Arrival::Ahead { acknowledged }
    }
    // The bytes `range` are reported first in the SACK option. If that pushes a block out, an ACK that was held back goes before: returns
    // whether one did.
    fn report(&mut self, now: Time, range: SackBlock) -> bool {
        let place = self.sack.widen(range);
        let acknowledged = self.sack.crowds_out(place) && self.acks.release_compressed();
        if acknowledged {
            self.send_ack(now);
        }
        self.sack.bring_forward(place, range);
        acknowledged
    }
    fn grow_ahead(&mut self, len: u32, memory: u32) {
        if self.sack.is_permitted() {
            self.grow(len, memory);
        }
    }

    // ---- what data show, in order or not ---------------------------------------------------------------------------

    // The sender's segment size, and what its payload costs in memory.
    #[inline]
    fn measure(&mut self, s: &Segment, buffer: &Buffer) {
        let len = s.len.min(self.mss);
        let is_new_size = len > self.acks.segment();
        if is_new_size && self.window.capacity().is_measured() && self.window.measure(s.len, buffer.memory) {
            self.sizing.limit(self.window.ceiling());
        }
        self.acks.measure(s, len, self.window.mss());
    }
    // Whether it carries a congestion mark.
    #[inline]
    fn read_mark(&mut self, now: Time, s: &Segment) {
        if !self.ecn.echoes() {
            return;
        }
        let report = self.ecn.on_data(s, self.stream.next(), self.acks.is_delayed());
        self.stats.ce_segments += u64::from(report.marked);
        if let Some(early) = report.before {
            self.send_early_ack(now, early);
        }
        if report.at_once {
            self.acks.send_at_once();
        }
        if report.hurry {
            self.acks.hurry(&self.jiffies, self.window.advertised(), QUICK_ACKS_ON_MARK);
        }
    }
    // Opens the window for data of `len` bytes in `memory`.
    #[inline]
    fn grow(&mut self, len: u32, memory: u32) {
        if self.window.grow(self.store.memory(), len, memory, self.acks.segment()) {
            self.acks.on_growth();
        }
    }

    // ---- memory ----------------------------------------------------------------------------------------------------

    // Whether there is memory for a segment that begins at `seq`, made by force if need be.
    #[inline]
    fn has_memory(&mut self, seq: u64) -> bool {
        self.is_within_buffer() || self.prune(seq)
    }
    #[inline]
    fn is_within_buffer(&self) -> bool {
        self.store.memory() <= u64::from(self.window.capacity().buffer())
    }
    // Enlarges the buffer if it may be; otherwise packs what is queued, then drops what waits beyond the gap.
    #[cold]
    fn prune(&mut self, seq: u64) -> bool {
        self.acks.end_quick();
        self.window.squeeze(self.store.memory());
        if self.is_within_buffer() {
            return true;
        }
        let capacity = *self.window.capacity();
        self.store.compact(|bytes, memory| capacity.window_of(memory as i64) > bytes as i64);
        // 6.6 and later spare what lies below the segment that wants in.
        let spare = if capacity.is_measured() { seq } else { 0 };
        let dropped = self.store.cut(capacity.buffer(), spare);
        if dropped > 0 {
            self.stats.pruned += dropped;
            self.sack.forget();
        }
        self.is_within_buffer()
    }
}
