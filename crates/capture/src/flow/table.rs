//! Rows of bounded number: a table that is full keeps every second row, and from then on a row of twice as many.
//!
//! How it differs from a sample at random: the rows that stay are 2^k apart, so that differences between neighbours keep one meaning.

use tcpscape_base::table;

table! {
    /// A data segment, or super-packet, at its first transmission seen. Times are ns since the capture's first packet; 0 is none.
    row SegmentRow {
        /// When it was seen.
        t: u64,
        /// Its number in the capture.
        frame: u64,
        /// Its first byte, from 0 at the connection's first.
        seq: u64,
        /// When an ACK or SACK seen here first covered it, wholly or in part.
        acked: u64,
        /// From its only transmission to what covered it, ns; 0 where it was sent more than once (Karn's rule) or another's retransmission
        /// may have caused the ACK.
        rtt: u64,
        /// Bytes acknowledged and SACKed when it was sent.
        delivered: u64,
        /// When that number last grew.
        delivered_t: u64,
        /// How much later it came than a later segment: at this place if it filled a hole, else by the SACKs seen here.
        late: u64,
        /// From the first packet of the other end with the TSval that its TSecr echoes, ns; only of the first to echo it.
        echo: u64,
        /// Payload, bytes.
        len: u32,
        /// Bytes in flight after it: sent − acknowledged − SACKed − lost; at a receiver's or in the middle estimated by the echoed timestamps.
        flight: u32,
        /// Bytes in flight at the sender by the ACK whose TSval it echoes; 0 unknown.
        flight_by_echo: u32,
        /// Timestamp value.
        tsval: u32,
        /// Timestamp echo reply.
        tsecr: u32,
        /// IP identification.
        id: u16,
        /// Segments inside; more than 1 in a super-packet.
        segs: u16,
        /// Times seen.
        sends: u16,
        /// What became of it: see [`Fate`].
        fate: u8,
        /// 1 if CE was set.
        ce: u8,
        /// 1 if PSH was set.
        psh: u8,
    }
}

table! {
    /// A packet of the other end, which acknowledges the data.
    row AckRow {
        /// When it was seen.
        t: u64,
        /// Its number in the capture.
        frame: u64,
        /// The next byte that the receiver waits for, from 0 at the connection's first.
        ack: u64,
        /// Left edge of its first SACK block that is no DSACK (RFC 2018 §4: it holds the segment that caused the ACK); 0 without one.
        sack_left: u64,
        /// Its right edge.
        sack_right: u64,
        /// From the first data segment with the TSval that its TSecr echoes, ns; only of the first to echo it.
        echo: u64,
        /// Bytes that it is the first to SACK.
        sacked: u32,
        /// Bytes that it is the first to acknowledge, without what was SACKed before.
        newly: u32,
        /// Receive window, bytes; not scaled where the scale is unknown (`facts.window_scale`).
        window: u32,
        /// Timestamp value.
        tsval: u32,
        /// Timestamp echo reply.
        tsecr: u32,
        /// Bytes that its DSACK block reports as received twice.
        dsack: u32,
        /// Payload that it carries itself.
        len: u32,
        /// IP identification.
        id: u16,
        /// Packets of the receiver since the row before that have none, as they carry data and acknowledge nothing new; of a super-packet each part.
        beside: u16,
        /// 1 for a duplicate ACK (RFC 5681 §2).
        dup: u8,
        /// 1 if it came after an ACK that the receiver sent later.
        late: u8,
        /// 1 if ECE was set.
        ece: u8,
    }
}

table! {
    /// Something that happened to the data.
    row EventRow {
        /// When it showed.
        t: u64,
        /// The frame that shows it.
        frame: u64,
        /// First byte concerned.
        seq: u64,
        /// Its extent in time, ns: of a loss since the lost transmission, of a reordering how late, of an idle time or closed window how long.
        extent: u64,
        /// Bytes concerned.
        len: u32,
        /// Its extent in segments: how many later ones had come before.
        segments: u32,
        /// What it is: see [`Kind`].
        kind: u8,
        /// On which side of the capturing point: see [`Side`].
        side: u8,
    }
}

/// What became of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fate {
    /// Delivered in order.
    InOrder = 0,
    /// Delivered after a later one.
    Reordered = 1,
    /// Lost, and repeated.
    Lost = 2,
    /// Delivered, and repeated needlessly.
    Spurious = 3,
    /// The capture does not show it.
    Unknown = 4,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A retransmission that ACKs caused.
    FastRetransmission = 1,
    /// A retransmission by the timeout.
    Timeout = 2,
    /// A tail loss probe (RFC 8985 §7) that repeats data.
    TailProbe = 3,
    /// A retransmission of what had arrived, or would.
    Spurious = 4,
    /// A transmission that did not arrive.
    Loss = 5,
    /// A segment that came after a later one.
    Reordering = 6,
    /// A copy that the network made.
    Duplicate = 7,
    /// A segment outside of the window.
    OutOfWindow = 8,
    /// The receive window closed.
    ZeroWindow = 9,
    /// A probe of the closed window.
    WindowProbe = 10,
    /// The receive window opened again.
    WindowOpened = 11,
    /// A data packet with CE.
    Ce = 12,
    /// A keep-alive.
    KeepAlive = 13,
    /// Nothing in flight and nothing sent for a while.
    Idle = 14,
    /// A retransmission after a timeout, in slow start.
    AfterTimeout = 15,
    /// Bytes that were acknowledged and that the capture does not hold.
    NotCaptured = 16,
    /// An ACK that came after a later one.
    ReorderedAck = 17,
    /// A segment that the receiver discards: it had echoed a newer timestamp before (PAWS, RFC 7323 §5.3).
    Discarded = 18,
    /// Bytes that were acknowledged before the capture has them.
    CapturedLate = 19,
}

/// On which side of the capturing point something happened to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// Neither, or unknown.
    #[default]
    Unknown = 0,
    /// Between the data's sender and here.
    Before = 1,
    /// Between here and the data's receiver.
    After = 2,
}

/// Rows, of which every 2^k-th is kept.
#[derive(Debug)]
pub struct Thinned<R> {
    rows: Vec<R>,
    /// Rows offered so far; the next one's number.
    offered: u64,
    shift: u32,
}

impl<R> Default for Thinned<R> {
    fn default() -> Self {
        Thinned { rows: Vec::new(), offered: 0, shift: 0 }
    }
}

impl<R> Thinned<R> {
    /// Offers a row, which is made if it is kept: [`Thinned::get`] finds it by its number.
    pub fn offer(&mut self, row: impl FnOnce() -> R) {
        if self.offered & ((1 << self.shift) - 1) == 0 {
            self.rows.push(row());
        }
        self.offered += 1;
    }
    /// The row of this number, if it is kept.
    pub fn get(&mut self, n: u64) -> Option<&mut R> {
        if n & ((1 << self.shift) - 1) != 0 {
            return None;
        }
        self.rows.get_mut((n >> self.shift) as usize)
    }
    /// Number of the row that comes next.
    pub fn offered(&self) -> u64 {
        self.offered
    }
    /// Keeps half of the rows.
    pub fn halve(&mut self) {
        self.shift += 1;
        halve(&mut self.rows);
    }
    /// Rows kept.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// One of so many rows is kept.
    pub fn stride(&self) -> u64 {
        1 << self.shift
    }
    /// The kept rows.
    #[cfg(test)]
    pub fn rows(&self) -> &[R] {
        &self.rows
    }
    /// The kept rows, handed on.
    pub fn into_rows(self) -> Vec<R> {
        self.rows
    }
    /// The kept rows, to correct them.
    pub fn rows_mut(&mut self) -> &mut [R] {
        &mut self.rows
    }
}

/// Keeps the first of every two rows, and gives back the memory of the others.
pub fn halve<R>(rows: &mut Vec<R>) {
    let mut i = 0;
    rows.retain(|_| {
        i += 1;
        i & 1 == 1
    });
    rows.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_row_stays_and_is_found_by_its_number() {
        let mut t = Thinned::default();
        (0..10u32).for_each(|i| {
            assert_eq!(t.offered(), u64::from(i));
            t.offer(|| i);
        });
        t.halve();
        assert_eq!((t.rows(), t.stride()), (&[0, 2, 4, 6, 8][..], 2));
        (10..16).for_each(|i| t.offer(|| i));
        assert_eq!(t.rows(), [0, 2, 4, 6, 8, 10, 12, 14]);
        t.halve();
        assert_eq!(t.rows(), [0, 4, 8, 12]);
        assert_eq!((t.get(12).copied(), t.get(13).copied(), t.get(10).copied()), (Some(12), None, None));
    }
}
