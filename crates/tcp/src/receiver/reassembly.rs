//! Data that is waiting: out-of-order buffers, the SACK blocks that describe them, and the queue of in-order segments.
//!
//! Source: RFC 2018, RFC 2883; Linux: `tcp_data_queue_ofo()`, `tcp_sack_new_ofo_skb()`, `tcp_sack_remove()`,
//! `tcp_ofo_queue()`, `tcp_prune_ofo_queue()`, `tcp_try_coalesce()`.

use std::collections::{BTreeMap, VecDeque};
use tcpscape_base::SackBlock;

/// SACK blocks that are remembered (`TCP_NUM_SACKS`).
const NUM_SACKS: usize = 4;

/// Page fragments that one socket buffer can hold (`MAX_SKB_FRAGS`): neighbours are merged up to it.
const MAX_FRAGS: u32 = 17;

/// One socket buffer: data, memory, and page fragments.
#[derive(Clone, Copy, Default)]
pub(super) struct Buffer {
    pub len: u32,
    pub truesize: u32,
    pub frags: u32,
}

/// The in-order queue (`sk_receive_queue`): reading frees memory buffer by buffer.
#[derive(Default)]
pub(super) struct Queue {
    buffers: VecDeque<Buffer>,
    /// Bytes of the first buffer that have been read already.
    eaten: u32,
    /// Bytes to read.
    pub bytes: u64,
}

impl Queue {
    /// Appends a buffer of which `overhead` is saved if it can be merged with the last one; returns the memory it takes.
    /// Linux: tcp_try_coalesce()
    #[inline]
    pub fn push(&mut self, b: Buffer, overhead: u32) -> u32 {
        self.bytes += u64::from(b.len);
        if let Some(tail) = self.buffers.back_mut() {
            if tail.frags + b.frags <= MAX_FRAGS {
                let cost = b.truesize.saturating_sub(overhead);
                tail.len += b.len;
                tail.truesize += cost;
                tail.frags += b.frags;
                return cost;
            }
        }
        self.buffers.push_back(b);
        b.truesize
    }
    /// Takes up to `max` bytes; returns (bytes of the first buffer among them, all bytes, memory freed, buffers touched).
    pub fn take(&mut self, max: u64) -> (u64, u64, u64, u32) {
        let (mut first, mut taken, mut freed, mut touched) = (0, 0, 0, 0);
        while let Some(b) = self.buffers.front() {
            let (want, head) = (max - taken, u64::from(b.len - self.eaten));
            touched += u32::from(want > 0);
            if first == 0 {
                first = head.min(want);
            }
            if want < head {
                self.eaten += want as u32;
                taken = max;
                break;
            }
            taken += head;
            freed += u64::from(b.truesize);
            self.eaten = 0;
            self.buffers.pop_front();
        }
        self.bytes -= taken;
        (first, taken, freed, touched)
    }
    /// Copies the payload together into pages where that saves memory; returns (before, after). Linux: tcp_collapse()
    pub fn collapse(&mut self, bloated: impl Fn(u64, u64) -> bool) -> (u64, u64) {
        let before: u64 = self.buffers.iter().map(|b| u64::from(b.truesize)).sum();
        if self.bytes == 0 || !bloated(self.bytes, before) {
            return (before, before);
        }
        let (mut left, mut after) = (std::mem::take(&mut self.bytes), 0);
        self.buffers.clear();
        self.eaten = 0;
        while left > 0 {
            let len = left.min(u64::from(PAGE_PAYLOAD)) as u32;
            after += u64::from(self.push(Buffer { len, truesize: PAGE_TRUESIZE, frags: MAX_FRAGS }, 0));
            left -= u64::from(len);
        }
        (before, after)
    }
}

/// Payload of a one-page buffer: 4096 − `struct skb_shared_info`.
pub(super) const PAGE_PAYLOAD: u32 = 3_776;
/// Its truesize: a page and `struct sk_buff`.
pub(super) const PAGE_TRUESIZE: u32 = 4_352;

/// A buffer out of order; its key is where it begins.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub end: u64,
    pub truesize: u32,
    pub frags: u32,
}

/// Out-of-order data and the SACK option.
#[derive(Default)]
pub(super) struct Reassembly {
    /// Buffers by their start (`out_of_order_queue`). They may overlap; a merge leaves the overlap for later.
    pieces: BTreeMap<u64, Piece>,
    /// SACK blocks, most recently changed first.
    sacks: [SackBlock; NUM_SACKS],
    nsacks: usize,
    /// Segments up to this length are copied into their buffer's head ([`crate::Kernel::head_room`]).
    head_room: u32,
    /// The duplicate to report in the next ACK (RFC 2883).
    pub dsack: Option<SackBlock>,
}

/// Widens `b` by `with` if they touch. Linux: tcp_sack_extend()
fn extend(b: &mut SackBlock, with: SackBlock) -> bool {
    let touches = with.0 <= b.1 && b.0 <= with.1;
    if touches {
        *b = (b.0.min(with.0), b.1.max(with.1));
    }
    touches
}

impl Reassembly {
    /// Nothing queued; segments up to `head_room` bytes cost no more than their buffer's head.
    pub fn new(head_room: u32) -> Reassembly {
        Reassembly { head_room, ..Reassembly::default() }
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
    /// The SACK blocks, most recent first.
    #[inline]
    pub fn sacks(&self) -> &[SackBlock] {
        &self.sacks[..self.nsacks]
    }
    /// Adds a duplicate to the DSACK of the next ACK. Linux: tcp_dsack_extend()
    pub fn extend_dsack(&mut self, b: SackBlock) {
        match &mut self.dsack {
            Some(d) => {
                extend(d, b);
            }
            None => self.dsack = Some(b),
        }
    }

    /// Queues a segment and notes what of it was there already; returns the change of memory and whether it was merged
    /// with the buffer before it, or `None` when nothing of it was new. Linux: tcp_data_queue_ofo()
    pub fn insert(&mut self, seq: u64, end: u64, b: Buffer, overhead: u32) -> Option<(i64, bool)> {
        let mut delta = i64::from(b.truesize);
        if let Some((&start, p)) = self.pieces.range_mut(..=seq).next_back() {
            if p.end > seq {
                if p.end >= end {
                    self.dsack = Some((seq, end));
                    return None;
                }
                if start < seq {
                    self.dsack = Some((seq, p.end));
                } else {
                    delta -= i64::from(p.truesize); // a longer segment takes its place
                    let old = (start, p.end);
                    self.extend_dsack(old);
                }
            } else if p.end == seq && p.frags + b.frags <= MAX_FRAGS {
                let cost = b.truesize.saturating_sub(overhead);
                *p = Piece { end, truesize: p.truesize + cost, frags: p.frags + b.frags };
                return Some((i64::from(cost), true));
            }
        }
        let mut new = Piece { end, truesize: b.truesize, frags: b.frags };
        if b.len <= self.head_room {
            new = Piece { end, truesize: overhead.min(b.truesize), frags: MAX_FRAGS };
            delta -= i64::from(b.truesize - new.truesize);
        }
        self.pieces.insert(seq, new);
        while let Some((&start, &p)) = self.pieces.range(seq + 1..end).next() {
            self.extend_dsack((start, p.end.min(end)));
            if end < p.end {
                break;
            }
            self.pieces.remove(&start);
            delta -= i64::from(p.truesize);
        }
        Some((delta, false))
    }

    /// Finds the SACK block that a new segment continues, widens it and returns its place, or the number of blocks when
    /// there is none. From the third place on, an ACK held back must be sent before [`Self::promote`].
    pub fn touch(&mut self, seq: u64, end: u64) -> (usize, bool) {
        for i in 0..self.nsacks {
            if extend(&mut self.sacks[i], (seq, end)) {
                return (i, true);
            }
        }
        (self.nsacks, false)
    }
    /// Moves the block touched to the front, or makes a new one there, forgetting the last of four.
    /// Linux: tcp_sack_new_ofo_skb(), tcp_sack_maybe_coalesce(); RFC 2018 §4
    pub fn promote(&mut self, (mut i, known): (usize, bool), seq: u64, end: u64) {
        if known {
            self.sacks[..=i].rotate_right(1);
            let mut k = 1;
            while k < self.nsacks {
                let b = self.sacks[k];
                if extend(&mut self.sacks[0], b) {
                    self.sacks[k..self.nsacks].rotate_left(1);
                    self.nsacks -= 1;
                } else {
                    k += 1;
                }
            }
            return;
        }
        if i == NUM_SACKS {
            i -= 1;
        } else {
            self.nsacks += 1;
        }
        self.sacks[..=i].rotate_right(1);
        self.sacks[0] = (seq, end);
    }
    /// The window's left edge moved: blocks below it go. Linux: tcp_sack_remove()
    pub fn remove_sacks(&mut self, rcv_nxt: u64) {
        if self.pieces.is_empty() {
            self.nsacks = 0;
            return;
        }
        let mut kept = 0;
        for i in 0..self.nsacks {
            if self.sacks[i].0 > rcv_nxt {
                self.sacks[kept] = self.sacks[i];
                kept += 1;
            }
        }
        self.nsacks = kept;
    }

    /// Takes the first buffer if it begins at or below `rcv_nxt`; what lies below `dsack_high` came twice.
    /// Linux: tcp_ofo_queue()
    pub fn pop(&mut self, rcv_nxt: u64, dsack_high: u64) -> Option<Piece> {
        let first = self.pieces.first_entry().filter(|e| *e.key() <= rcv_nxt)?;
        let (start, p) = first.remove_entry();
        if start < dsack_high {
            self.extend_dsack((start, p.end.min(dsack_high)));
        }
        Some(p)
    }

    /// Drops `memory` bytes' worth of buffers from the far end, none that begins at or below `keep`; returns (memory freed,
    /// buffers dropped). Linux: tcp_prune_ofo_queue()
    pub fn trim(&mut self, memory: u64, keep: u64) -> (u64, u64) {
        let (mut freed, mut dropped) = (0, 0);
        while freed < memory {
            let Some(last) = self.pieces.last_entry().filter(|e| *e.key() > keep) else { break };
            freed += u64::from(last.remove().truesize);
            dropped += 1;
        }
        (freed, dropped)
    }
    /// Forgets the SACK state; the data stays. Linux: tcp_sack_reset()
    pub fn reset_sacks(&mut self) {
        self.nsacks = 0;
        self.dsack = None;
    }
    /// Drops everything; returns the memory freed.
    pub fn clear(&mut self) -> u64 {
        self.reset_sacks();
        std::mem::take(&mut self.pieces).values().map(|p| u64::from(p.truesize)).sum()
    }
    /// Copies the payload of contiguous buffers together where that saves memory; returns the memory freed.
    /// Linux: tcp_collapse_ofo_queue()
    pub fn collapse(&mut self, bloated: impl Fn(u64, u64) -> bool) -> u64 {
        let (mut freed, mut at) = (0, 0);
        while let Some((&start, _)) = self.pieces.range(at..).next() {
            let (mut end, mut memory, mut n) = (start, 0, 0u32);
            for (&s, p) in self.pieces.range(start..) {
                if n > 0 && s > end {
                    break;
                }
                (end, memory, n) = (end.max(p.end), memory + u64::from(p.truesize), n + 1);
            }
            at = end;
            let after = (end - start).div_ceil(u64::from(PAGE_PAYLOAD)) * u64::from(PAGE_TRUESIZE);
            if n < 2 || after >= memory || !bloated(end - start, memory) {
                continue;
            }
            freed += memory - after;
            let keys: Vec<u64> = self.pieces.range(start..end).map(|(&s, _)| s).collect();
            for k in keys {
                self.pieces.remove(&k);
            }
            for s in (start..end).step_by(PAGE_PAYLOAD as usize) {
                let p = Piece { end: end.min(s + u64::from(PAGE_PAYLOAD)), truesize: PAGE_TRUESIZE, frags: MAX_FRAGS };
                self.pieces.insert(s, p);
            }
        }
        freed
    }
}
