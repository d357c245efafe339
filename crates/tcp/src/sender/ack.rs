//! Taking ACKs in: PAWS, window update, SACK tagging, cleaning the retransmission queue, rate samples, and what follows.
//!
//! Source: RFC 9293 §3.10.7.4, RFC 2018 and RFC 2883 (SACK, DSACK), RFC 7323 (PAWS),
//! draft-cheng-iccrg-delivery-rate-estimation. Linux: `tcp_ack()`, `tcp_sacktag_write_queue()`, `tcp_clean_rtx_queue()`,
//! `tcp_rate_gen()`. How it differs: SACK ranges are applied segment by segment (what their buffers
//! then weigh: `memory.rs`).

use super::recovery::{sent_after, Rexmit};
use super::scoreboard::{APP_LIMITED, EVER_RETRANS, LOST, RETRANS, SACKED};
use super::*;
use crate::cc::{AckSample, InAck, PktsAcked, RateSample};
use tcpscape_base::{SackBlock, MAX_SACK_BLOCKS};

/// What an ACK did (`FLAG_*` of `tcp_input.c`).
pub(super) mod flag {
    pub const WIN_UPDATE: u32 = 0x02;
    pub const DATA_ACKED: u32 = 0x04;
    pub const RETRANS_DATA_ACKED: u32 = 0x08;
    pub const DATA_SACKED: u32 = 0x20;
    pub const ECE: u32 = 0x40;
    pub const LOST_RETRANS: u32 = 0x80;
    pub const SLOW_PATH: u32 = 0x100;
    pub const ORIG_SACK_ACKED: u32 = 0x200;
    pub const SND_UNA_ADVANCED: u32 = 0x400;
    pub const DSACKING_ACK: u32 = 0x800;
    pub const SET_XMIT_TIMER: u32 = 0x1000;
    pub const SACK_RENEGING: u32 = 0x2000;
    pub const ACK_MAYBE_DELAYED: u32 = 0x10000;
    pub const DSACK_TLP: u32 = 0x20000;
    /// Not a duplicate ACK.
    pub const NOT_DUP: u32 = WIN_UPDATE | DATA_ACKED;
    /// A reason to look twice.
    pub const CA_ALERT: u32 = DATA_SACKED | ECE | DSACKING_ACK;
    pub const FORWARD_PROGRESS: u32 = DATA_ACKED | DATA_SACKED;
}
use flag::*;

/// What tagging SACKed segments found (`struct tcp_sacktag_state`).
struct SackTag {
    flags: u32,
    /// Lowest newly SACKed sequence number below the highest SACK.
    reord: u64,
    first_us: u64,
    last_us: u64,
    delivered: u32,
    rate: RateSample,
    rate_end_seq: u64,
    /// `lost` when the sampled packet was sent.
    prior_lost: u32,
}

impl Sender {
    pub(super) fn on_ack_segment(&mut self, s: &Segment) {
        self.stats.segs_in += 1;
        if s.flags.has(Flags::SYN) {
            let ack = self.bare_ack(self.snd_nxt);
            self.out.push_back((ack, 0));
            return;
        }
        if self.paws_rejects(s) {
            self.stats.paws_rejected += 1;
            self.answer_unacceptable();
            return;
        }
        self.rcv_tsval = s.tsval;
        self.rcv_tsecr = s.tsecr;
        if self.on_ack(s) {
            // tcp_data_snd_check()
            self.push_pending();
            self.check_space();
        }
    }

    // RFC 7323 §5.3 with Linux's tolerance of one tick; an ACK that repeats the last one and does not open the window may be older
    // (tcp_paws_discard(), tcp_disordered_ack()).
    fn paws_rejects(&mut self, s: &Segment) -> bool {
        let older = self.ts_recent.wrapping_sub(s.tsval) as i32;
        if older <= 0 {
            self.ts_recent = s.tsval;
            return false;
        }
        // Ticks that a peer's timestamp clock may make in a second.
        let replay = if self.kernel.is_6_12() { 1_200 } else { 1_024 };
        let disordered = s.len == 0
            && s.ack == self.snd_una
            && s.wnd <= self.snd_wnd
            && s.wnd > 0
            && i64::from(older) <= (self.rto_jiffies * replay / u64::from(self.jiffies.hz())) as i64;
        older > 1 && !disordered
    }

    // RFC 9293 §3.10.7.4: an unacceptable segment is answered by an ACK; Linux does so twice a second at most
    // (tcp_send_dupack(), tcp_send_challenge_ack(); net.ipv4.tcp_invalid_ratelimit = 500 ms).
    fn answer_unacceptable(&mut self) {
        let now = self.jiffies.at(self.now);
        if self.answered.is_some_and(|t| now - t < self.jiffies.hz_over(2)) {
            return;
        }
        self.answered = Some(now);
        self.send_ack();
    }

    /// Linux: `tcp_ack()`; false when the ACK is not acceptable.
    fn on_ack(&mut self, s: &Segment) -> bool {
        let prior_una = self.snd_una;
        let mut tag = SackTag {
            flags: 0,
            reord: self.snd_nxt,
            first_us: 0,
            last_us: 0,
            delivered: 0,
            rate: RateSample { rtt_us: -1, ..RateSample::default() },
            rate_end_seq: 0,
            prior_lost: 0,
        };
        if s.ack < prior_una {
            return self.on_old_ack(s, &mut tag);
        }
        if s.ack > self.snd_nxt {
            return false;
        }
        let mut flags = 0;
        if s.ack > prior_una {
            flags |= SND_UNA_ADVANCED;
            self.retransmits = 0;
        }
        let (prior_packets, prior_fack) = (self.packets_out, self.highest_sack_seq());
        let (prior_delivered, prior_lost) = (self.delivered, self.lost);
        let was_reneg = self.is_sack_reneg;
        tag.rate.prior_in_flight = self.in_flight();
        flags |= self.slow_path(s) | self.update_window(s);
        if s.sacks().len() > 0 {
            flags |= self.tag_sacks(s, prior_una, &mut tag);
        }
        flags |= self.ecn_echo(s);
        self.count_delivered(tag.delivered, flags);
        self.probes_out = 0;
        let mut rexmit = Rexmit::None;
        if prior_packets == 0 {
            self.in_ack(flags);
            if flags & DSACKING_ACK != 0 {
                self.fastretrans_alert(prior_una, false, &mut flags, &mut rexmit);
            }
            self.ack_probe();
            if self.tlp_high_seq != 0 {
                self.process_tlp_ack(s.ack, flags);
            }
            return true;
        }
        flags |= self.clean_queue(prior_fack, prior_una, flags, &mut tag);
        if self.ecn.accurate.on {
            flags |= self.read_ace(s, self.delivered.wrapping_sub(prior_delivered));
        }
        self.rack_update_reo_wnd(tag.rate.prior_delivered);
        self.in_ack(flags);
        if self.tlp_high_seq != 0 {
            self.process_tlp_ack(s.ack, flags);
        }
        // tcp_ack_is_dubious()
        if flags & NOT_DUP == 0 || flags & CA_ALERT != 0 || self.ca_state != CaState::Open {
            let dupack = flags & (SND_UNA_ADVANCED | NOT_DUP | DSACKING_ACK) == 0;
            self.fastretrans_alert(prior_una, dupack, &mut flags, &mut rexmit);
        }
        if flags & SET_XMIT_TIMER != 0 {
            self.set_xmit_timer();
        }
        let delivered = self.delivered.wrapping_sub(prior_delivered);
        let lost = self.lost.wrapping_sub(prior_lost);
        tag.rate.is_ack_delayed = flags & ACK_MAYBE_DELAYED != 0;
        tag.rate.lost = self.lost.wrapping_sub(tag.prior_lost);
        self.rate_gen(delivered, lost, was_reneg, &mut tag.rate);
        self.cong_control(s.ack, delivered, flags, &tag.rate);
        self.xmit_recovery(rexmit);
        true
    }

    // Whether the ACK misses the header prediction of tcp_rcv_established(): nothing said but an ACK number, which may be the old one,
    // and no older timestamp.
    #[inline]
    fn slow_path(&self, s: &Segment) -> u32 {
        let predicted = s.wnd == self.snd_wnd && s.nsack == 0 && s.flags.0 & Flags::ECE.0 == 0 && s.tsval == self.ts_recent;
        if predicted {
            0
        } else {
            SLOW_PATH
        }
    }

    // Linux: tcp_in_ack_event()
    #[inline]
    fn in_ack(&mut self, flags: u32) {
        if self.wants_in_ack {
            let a = InAck { slow_path: flags & SLOW_PATH != 0, win_update: flags & WIN_UPDATE != 0, ece: flags & ECE != 0 };
            let v = self.view();
            self.cc.in_ack(&v, &mut self.w, a);
        }
    }

    // An ACK older than the newest, still young enough for its SACK blocks (`old_ack` in tcp_ack()).
    fn on_old_ack(&mut self, s: &Segment, tag: &mut SackTag) -> bool {
        let reach = u64::from(self.max_window).min(self.bytes_acked());
        if s.ack < self.snd_una - reach {
            self.answer_unacceptable();
            return false;
        }
        if s.sacks().len() == 0 {
            return true;
        }
        let una = self.snd_una;
        let mut flags = self.tag_sacks(s, una, tag);
        let mut rexmit = Rexmit::None;
        self.fastretrans_alert(una, false, &mut flags, &mut rexmit);
        self.xmit_recovery(rexmit);
        true
    }

    // RFC 9293 §3.10.7.4; Linux: tcp_ack_update_window().
    fn update_window(&mut self, s: &Segment) -> u32 {
        let mut flags = 0;
        if s.ack > self.snd_una || s.wnd > self.snd_wnd || s.wnd == 0 {
            flags |= WIN_UPDATE;
            if self.snd_wnd != s.wnd {
                self.snd_wnd = s.wnd;
                if !self.unsent.is_empty() {
                    self.slow_start_after_idle_check();
                }
                if s.wnd > self.max_window {
                    self.max_window = s.wnd;
                    self.stats.max_rwnd = s.wnd;
                }
            }
        }
        self.snd_una = s.ack;
        flags
    }

    /// Linux: `tcp_sacktag_write_queue()`.
    fn tag_sacks(&mut self, s: &Segment, prior_una: u64, tag: &mut SackTag) -> u32 {
        let mut blocks = [(0u64, 0u64); MAX_SACK_BLOCKS];
        let mut n = 0;
        for b in s.sacks() {
            blocks[n] = b;
            n += 1;
        }
        let dsack = self.check_dsack(s.ack, &blocks[..n], prior_una, tag);
        if self.packets_out > 0 && s.ack + u64::from(self.max_window) >= prior_una {
            if dsack && blocks[0].1 > prior_una {
                self.tag_duplicate(blocks[0], tag);
            }
            let usable = |&(start, end): &SackBlock| start < end && end <= self.snd_nxt && start > self.snd_una;
            let mut k = 0;
            for i in usize::from(dsack)..n {
                if usable(&blocks[i]) {
                    blocks[k] = blocks[i];
                    k += 1;
                }
            }
            blocks[..k].sort_unstable();
            for b in &blocks[..k] {
                self.tag_range(*b, tag);
            }
            if self.ca_state != CaState::Loss || self.undo_marker != 0 {
                self.check_reordering(tag.reord);
            }
        }
        tag.flags
    }

    // RFC 2883 §4; Linux: tcp_check_dsack(), tcp_dsack_seen().
    fn check_dsack(&mut self, ack: u64, blocks: &[SackBlock], prior_una: u64, tag: &mut SackTag) -> bool {
        let (start, end) = blocks[0];
        let inside_second = blocks.len() > 1 && end <= blocks[1].1 && start >= blocks[1].0;
        if !(start < ack || inside_second) || start >= end || end - start > u64::from(self.max_window) {
            return false;
        }
        let mut segs = 1;
        if end - start > u64::from(self.mss) {
            segs = (end - start).div_ceil(u64::from(self.mss)) as u32;
        } else if self.tlp_high_seq != 0 && self.tlp_high_seq == end {
            tag.flags |= DSACK_TLP;
        }
        self.stats.dsack_dups += u64::from(segs);
        // Duplicates that this side never sent twice are the network's.
        if self.stats.dsack_dups > self.stats.retransmits {
            return false;
        }
        if self.stats.reord_seen > 0 && tag.flags & DSACK_TLP == 0 {
            self.rack.dsack_seen = true;
        }
        tag.flags |= DSACKING_ACK;
        tag.delivered += segs;
        if self.undo_marker != 0 && self.undo_retrans > 0 && end <= prior_una && end > self.undo_marker {
            self.undo_retrans = (self.undo_retrans - segs as i32).max(0);
        }
        true
    }

    /// A DSACK inside the window: what it covers arrived twice (`tcp_sacktag_one()` with `dup_sack`).
    fn tag_duplicate(&mut self, (start, end): SackBlock, tag: &mut SackTag) {
        let mut id = self.board.lower_bound(start);
        while self.board.contains(id) && self.board.get(id).end() <= end {
            let s = *self.board.get(id);
            if s.has(RETRANS | EVER_RETRANS) {
                if self.undo_marker != 0 && self.undo_retrans > 0 && s.end() > self.undo_marker {
                    self.undo_retrans -= 1;
                }
                if s.has(SACKED) {
                    tag.reord = tag.reord.min(s.seq);
                }
            }
            if !s.has(SACKED) && s.end() > self.snd_una {
                self.tag_segment(id, tag);
            }
            if self.board.get(id).has(RETRANS) {
                self.board.get_mut(id).flags &= !RETRANS;
                self.retrans_out -= 1;
            }
            id = id.wrapping_add(1);
        }
    }

    fn tag_range(&mut self, (start, end): SackBlock, tag: &mut SackTag) {
        let mut id = self.board.lower_bound(start);
        loop {
            if !self.board.contains(id) {
                return;
            }
            id = self.board.next_unsacked(id);
            if !self.board.contains(id) || self.board.get(id).end() > end {
                return;
            }
            self.tag_segment(id, tag);
            id = id.wrapping_add(1);
        }
    }

    /// A segment is SACKed for the first time (`tcp_sacktag_one()`).
    fn tag_segment(&mut self, id: u32, tag: &mut SackTag) {
        let s = *self.board.get(id);
        self.rack_advance(s.flags, s.end(), s.xmit_us());
        if s.has(RETRANS) {
            // Not marked lost: the retransmission is believed to be still in flight.
            if s.has(LOST) {
                self.board.get_mut(id).flags &= !(LOST | RETRANS);
                self.lost_out -= 1;
                self.retrans_out -= 1;
            }
        } else {
            if !s.has(EVER_RETRANS) {
                if s.seq < self.highest_sack_seq() {
                    tag.reord = tag.reord.min(s.seq);
                }
                if s.end() <= self.high_seq {
                    tag.flags |= ORIG_SACK_ACKED;
                }
                if tag.first_us == 0 {
                    tag.first_us = s.xmit_us();
                }
                tag.last_us = s.xmit_us();
            }
            if s.has(LOST) {
                self.board.get_mut(id).flags &= !LOST;
                self.lost_out -= 1;
            }
        }
        tag.flags |= DATA_SACKED;
        tag.delivered += 1;
        self.board.set_sacked(id);
        self.cut_sacked(id);
        // Before the count grows, highest_sack is meaningless if nothing was SACKed.
        self.highest_sack = if self.sacked_out == 0 { s.end() } else { self.highest_sack.max(s.end()) };
        self.sacked_out += 1;
        self.rate_skb_delivered(id, tag);
        self.board.get_mut(id).tx_delivered_mstamp = 0;
    }

    /// Takes what is acknowledged off the queue (`tcp_clean_rtx_queue()`); returns further flags.
    fn clean_queue(&mut self, prior_fack: u64, prior_una: u64, prior_flags: u32, tag: &mut SackTag) -> u32 {
        let mut flags = 0;
        let (mut first_us, mut last_us, mut reord, mut pkts) = (0, 0, self.snd_nxt, 0);
        let (prior_sacked, mut whole) = (self.sacked_out, true);
        while let Some(&s) = self.board.front() {
            if s.end() > self.snd_una {
                if s.seq < self.snd_una {
                    // Part of a segment: it stays, shorter (the kernel does so when it splits a super-packet on the way).
                    let cut = (self.snd_una - s.seq) as u32;
                    self.board.trim_front(cut);
                    self.free(cut, false);
                    whole = false;
                }
                break;
            }
            let id = self.board.base();
            if s.has(RETRANS | EVER_RETRANS) {
                if s.has(RETRANS) {
                    self.retrans_out -= 1;
                }
                flags |= RETRANS_DATA_ACKED;
            } else if !s.has(SACKED) {
                last_us = s.xmit_us();
                if pkts == 0 || first_us == 0 {
                    first_us = last_us;
                }
                reord = reord.min(s.seq);
                if s.end() <= self.high_seq {
                    flags |= ORIG_SACK_ACKED;
                }
            }
            if s.has(SACKED) {
                self.sacked_out -= 1;
            } else {
                self.count_delivered(1, prior_flags);
                let spurious = s.has(RETRANS | EVER_RETRANS) && self.ecr_before(Self::ts_of(s.xmit_ns));
                if !spurious {
                    self.rack_advance(s.flags, s.end(), s.xmit_us());
                }
            }
            if s.has(LOST) {
                self.lost_out -= 1;
            }
            self.packets_out -= 1;
            pkts += 1;
            self.rate_skb_delivered(id, tag);
            flags |= DATA_ACKED;
            self.board.pop_front();
            let goes_on = self.board.begin_at_front();
            self.free(s.len, !goes_on);
        }
        if self.board.front().is_some_and(|s| s.has(SACKED)) {
            flags |= SACK_RENEGING;
        }
        let now = self.now_us();
        let (mut seq_rtt, mut ca_rtt) = (-1i64, -1i64);
        if first_us != 0 && flags & RETRANS_DATA_ACKED == 0 {
            seq_rtt = now.saturating_sub(first_us) as i64;
            ca_rtt = now.saturating_sub(last_us) as i64;
            if pkts == 1
                && whole
                && prior_sacked == 0
                && self.snd_una - prior_una < u64::from(self.mss)
                && tag.rate.prior_delivered.wrapping_add(1) == self.delivered
                && (flags | prior_flags) & CA_ALERT == 0
            {
                flags |= ACK_MAYBE_DELAYED;
            }
        }
        let mut sack_rtt = -1;
        if tag.first_us != 0 {
            sack_rtt = now.saturating_sub(tag.first_us) as i64;
            ca_rtt = now.saturating_sub(tag.last_us) as i64;
        }
        let updated = self.ack_update_rtt(flags, seq_rtt, sack_rtt, ca_rtt, tag);
        if flags & DATA_ACKED != 0 {
            flags |= SET_XMIT_TIMER;
            if reord < prior_fack {
                self.check_reordering(reord);
            }
        } else if updated && sack_rtt >= 0 && self.board.front().is_some_and(|s| sack_rtt > now as i64 - s.xmit_us() as i64) {
            flags |= SET_XMIT_TIMER;
        }
        let a = PktsAcked {
            pkts_acked: pkts,
            rtt_us: tag.rate.rtt_us,
            in_flight: self.mss.wrapping_mul(self.delivered.wrapping_sub(tag.rate.prior_delivered)),
        };
        let v = self.view();
        self.cc.pkts_acked(&v, &mut self.w, &a);
        flags
    }

    // RFC 6298 §3 (Karn), RFC 7323 §4.1; Linux: tcp_ack_update_rtt().
    fn ack_update_rtt(&mut self, flags: u32, mut seq_rtt: i64, sack_rtt: i64, mut ca_rtt: i64, tag: &mut SackTag) -> bool {
        if seq_rtt < 0 {
            seq_rtt = sack_rtt;
        }
        if seq_rtt < 0 && self.rcv_tsecr != 0 && flags & DATA_ACKED != 0 {
            let ms = self.tsval().wrapping_sub(self.rcv_tsecr).max(1);
            seq_rtt = i64::from(ms) * 1_000;
            ca_rtt = seq_rtt;
        }
        tag.rate.rtt_us = ca_rtt;
        if seq_rtt < 0 {
            return false;
        }
        self.take_rtt_sample(seq_rtt as u32, ca_rtt.max(0) as u32, flags & ACK_MAYBE_DELAYED != 0);
        true
    }

    // draft-cheng-iccrg-delivery-rate-estimation §3.3; Linux: tcp_rate_skb_delivered().
    #[inline]
    fn rate_skb_delivered(&mut self, id: u32, tag: &mut SackTag) {
        let s = self.board.get(id);
        if s.tx_delivered_mstamp == 0 {
            return;
        }
        let sent = s.xmit_us();
        if tag.rate.prior_delivered == 0 || sent_after(sent, self.first_tx_mstamp, s.end(), tag.rate_end_seq) {
            tag.rate.prior_delivered = s.tx_delivered;
            tag.rate.prior_mstamp = s.tx_delivered_mstamp;
            tag.rate.tx_in_flight = s.tx_in_flight();
            tag.prior_lost = s.tx_lost;
            tag.rate.is_app_limited = s.has(APP_LIMITED);
            tag.rate.is_retrans = s.has(RETRANS | EVER_RETRANS);
            tag.rate_end_seq = s.end();
            tag.rate.interval_us = sent.saturating_sub(s.tx_first_mstamp) as i64;
            self.first_tx_mstamp = sent;
        }
    }

    // Linux: tcp_rate_gen().
    fn rate_gen(&mut self, delivered: u32, lost: u32, reneg: bool, rs: &mut RateSample) {
        if self.app_limited != 0 && (self.app_limited.wrapping_sub(self.delivered) as i32) < 0 {
            self.app_limited = 0;
        }
        if delivered > 0 {
            self.delivered_mstamp = self.now_us();
        }
        rs.acked_sacked = delivered;
        rs.losses = lost;
        if rs.prior_mstamp == 0 || reneg {
            rs.delivered = -1;
            rs.interval_us = -1;
            return;
        }
        rs.delivered = self.delivered.wrapping_sub(rs.prior_delivered) as i32;
        let ack_us = self.now_us().saturating_sub(rs.prior_mstamp) as i64;
        rs.interval_us = rs.interval_us.max(ack_us);
        if rs.interval_us < i64::from(self.min_rtt()) {
            rs.interval_us = -1;
            return;
        }
        if !rs.is_app_limited
            || rs.delivered as u64 * u64::from(self.rate_interval_us) >= u64::from(self.rate_delivered) * rs.interval_us as u64
        {
            self.rate_delivered = rs.delivered as u32;
            self.rate_interval_us = rs.interval_us as u32;
        }
    }

    /// `tcp_cong_control()`.
    fn cong_control(&mut self, ack: u64, acked: u32, flags: u32, rs: &RateSample) {
        if !self.owns_window && self.in_cwnd_reduction() {
            self.cwnd_reduction(acked, rs.losses, flags);
        } else {
            // tcp_may_raise_cwnd(): with much reordering any delivery counts, otherwise only what is in order.
            let progress = if self.reordering > REORDERING { flags & FORWARD_PROGRESS } else { flags & DATA_ACKED };
            if self.owns_window || progress != 0 {
                let v = self.view();
                let sample = AckSample { acked, ack, may_raise: progress != 0, rate: *rs };
                self.cc.on_ack(&v, &mut self.w, &sample);
                if std::mem::take(&mut self.w.enter_cwr) {
                    self.enter_cwr();
                }
            }
            if progress != 0 && !self.owns_window {
                self.cwnd_stamp = self.jiffies.at(self.now);
            }
        }
        self.update_pacing_rate();
    }
}
