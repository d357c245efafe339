//! Packet scripts: senders that one thing holds, as a capture beside them or far away shows it.

use super::*;

const MS: u64 = 1_000_000;
const MSS: u32 = 1_448;
const FULL: u64 = MSS as u64;

/// A packet of a script.
enum Packet {
    Data(Data),
    Ack(Ack),
}

/// A script: packets and when the capture sees them.
struct Script {
    rtt: u64,
    /// Between the sender and the place of capture, one way, ns.
    away: u64,
    /// Whether packets have timestamps.
    is_timed: bool,
    /// Whether the receiver opened the connection.
    is_accepted: bool,
    /// What the handshake's answer takes longer than the path, ns.
    slow: u64,
    /// By how many ACKs what a segment echoes is behind: those that lie beyond what the sender had acknowledged, where the other end sends data too.
    behind: usize,
    packets: Vec<(u64, Packet)>,
}

impl Script {
    /// A connection whose handshake takes `rtt` ms, seen `away` ns from its sender.
    fn new(rtt: u64, away: u64) -> Script {
        Script { rtt: rtt * MS, away, is_timed: true, is_accepted: false, slow: 0, behind: 0, packets: Vec::new() }
    }

    /// The sender sends at `t`.
    fn send(&mut self, t: u64, seq: u64, len: u32, repeat: Option<Repeat>) {
        let psh = len % MSS != 0;
        self.packets.push((t + self.away, Packet::Data(Data { seq, len, mss: Some(MSS), psh, repeat, ..Data::default() })));
    }

    /// An ACK reaches the sender at `t`.
    fn ack(&mut self, t: u64, ack: u64, window: u64, sacked: u32) {
        let delivered = ack + u64::from(sacked);
        self.packets.push((t - self.away, Packet::Ack(Ack { ack, edge: Some(ack + window), sacked, delivered, ..Ack::default() })));
    }

    /// TSval of a packet that is seen at `t`, in ticks of 1 ms.
    fn tsval(&self, t: u64) -> Option<u32> {
        self.is_timed.then_some(1 + (t / MS) as u32)
    }

    /// The TSval that a segment seen at `t` echoes: of the last ACK that had reached its sender.
    fn echo(&self, t: u64) -> Option<u32> {
        let before = &self.packets[..self.packets.partition_point(|p| p.0 + 2 * self.away <= t)];
        before.iter().rev().filter(|p| matches!(p.1, Packet::Ack(_))).nth(self.behind).and_then(|p| self.tsval(p.0))
    }

    /// What a tracker makes of it; frame 4 is the first after the handshake.
    fn run(self) -> Vec<Interval> {
        self.judged().0
    }

    fn judged(mut self) -> (Vec<Interval>, Option<Doubt>) {
        let mut tracker = Tracker::new(1_000);
        let (begun, here) = if self.is_accepted { (0, self.rtt / 2 - self.away) } else { (self.away, self.away) };
        if self.is_accepted {
            tracker.accepted();
        }
        tracker.handshake(begun, 1, Handshake::Syn);
        tracker.handshake(begun + self.rtt - 2 * here, 2, Handshake::SynAck);
        tracker.handshake(begun + self.rtt + self.slow, 3, Handshake::Ack);
        self.packets.sort_by_key(|p| p.0);
        for (frame, (t, packet)) in (4..).zip(&self.packets) {
            match packet {
                Packet::Data(d) => tracker.data(&Data { t: *t, frame, tsval: self.tsval(*t), tsecr: self.echo(*t), ..*d }),
                Packet::Ack(a) => tracker.ack(&Ack { t: *t, frame, tsval: self.tsval(*t), is_beyond: self.behind > 0, ..*a }),
            }
        }
        let (all, doubt) = tracker.finish(self.packets.last().map_or(0, |p| p.0));
        assert!(all.windows(2).all(|w| w[0].to <= w[1].from), "{all:?}");
        (all, doubt)
    }

    /// Share of the time after the handshake that `cause` has.
    fn share(self, cause: Cause) -> f64 {
        share(&self.run(), cause)
    }

    /// Share of the time that is unknown, and why.
    fn doubted(self) -> (f64, Option<Doubt>) {
        let (all, doubt) = self.judged();
        (share(&all, Cause::Unknown), doubt)
    }
}

fn share(all: &[Interval], cause: Cause) -> f64 {
    let time = |is: &dyn Fn(Cause) -> bool| all.iter().filter(|i| is(i.cause)).map(|i| i.to - i.from).sum::<u64>() as f64;
    time(&|c| c == cause) / time(&|c| c != Cause::Handshake)
}

/// A window of 20 segments, each ACK of two releases two: 40 ms round trip. `window` is the receiver's.
fn window_limited(window: u64, away: u64) -> Script {
    let mut s = Script::new(40, away);
    for k in 0..20 {
        s.send(50 * MS, k * FULL, MSS, None);
    }
    for k in 1..1_000 {
        let t = 90 * MS + k * 4 * MS;
        s.ack(t, 2 * k * FULL, window, 0);
        s.send(t + 10_000, (2 * k + 18) * FULL, MSS, None);
        s.send(t + 10_000, (2 * k + 19) * FULL, MSS, None);
    }
    s
}

/// Chunks of 5,000 bytes each 7 ms on the same path, acknowledged after 40 ms.
fn chunks(away: u64) -> Script {
    let mut s = Script::new(40, away);
    for k in 0..600 {
        let t = 50 * MS + k * 7 * MS;
        for part in 0..3 {
            s.send(t, k * 5_000 + part * FULL, MSS, None);
        }
        s.send(t, k * 5_000 + 3 * FULL, 656, None);
        s.ack(t + 40 * MS + 300_000, (k + 1) * 5_000, 1 << 20, 0);
    }
    s
}

#[test]
fn acks_that_release_segments_show_the_congestion_window() {
    assert!(window_limited(1 << 20, 0).share(Cause::CongestionWindow) > 0.98);
    assert!(window_limited(1 << 20, 5 * MS).share(Cause::CongestionWindow) > 0.98);
}

#[test]
fn an_older_echo_hides_no_ack_beyond_what_the_sender_had_acknowledged_itself() {
    for away in [0, 5 * MS] {
        let both_ways = Script { behind: 1, ..window_limited(1 << 20, away) };
        assert!(both_ways.share(Cause::CongestionWindow) > 0.98, "{away}");
    }
}

#[test]
fn segments_that_sack_blocks_make_smaller_end_no_writes() {
    for away in [0, 5 * MS] {
        let mut s = window_limited(1 << 20, away);
        // Two blocks in every other segment, and rests of what was cut before.
        let sizes = [(MSS - 20, 20), (MSS, 0), (MSS - 20, 20), (400, 0)];
        let (mut end, mut acked) = (0, 0);
        for (k, (_, packet)) in s.packets.iter_mut().enumerate() {
            match packet {
                Packet::Data(d) => {
                    let (len, options) = sizes[k % sizes.len()];
                    *d = Data { seq: end, len, options, psh: true, ..*d };
                    end += u64::from(len);
                }
                Packet::Ack(a) => {
                    acked = end.saturating_sub(18 * FULL).max(acked);
                    *a = Ack { ack: acked, edge: Some(acked + (1 << 20)), delivered: acked, ..*a };
                }
            }
        }
        assert!(s.share(Cause::CongestionWindow) > 0.95, "{away}");
    }
}

#[test]
fn larger_bursts_than_a_pacer_sends_are_the_applications() {
    let timed = |segments: u64, every: u64| {
        let mut s = Script::new(40, 0);
        let per_s = 1_000 * MS / every;
        for k in 0..3 * per_s {
            let t = 50 * MS + k * every;
            (0..segments).for_each(|part| s.send(t, (k * segments + part) * FULL, MSS, None));
            s.ack(t + 40 * MS + every / 3, (k + 1) * segments * FULL, 1 << 20, 0);
        }
        s
    };
    assert!(timed(7, 10 * MS).share(Cause::Application) > 0.95, "the end of each write waits for the next");
    assert!(timed(8, 50 * MS).share(Cause::Application) > 0.95, "one write in a round trip");
    assert!(timed(2, 3 * MS).share(Cause::Pacing) > 0.95);
    assert!(timed(8, MS).share(Cause::Pacing) > 0.95, "what a pacer carries in a millisecond");
}

#[test]
fn rests_that_wait_for_the_ack_of_the_rest_before_are_the_applications() {
    let mut s = Script::new(57, 0);
    // 12,000 bytes each 50 ms. What is left of a segment waits until the last such rest is acknowledged, or fills with the next write.
    let (mut seq, mut rest, mut free) = (0, 0, 0);
    for k in 2..300 {
        let t = k * 50 * MS;
        let (full, mut left) = ((rest + 12_000) / FULL, (rest + 12_000) % FULL);
        (0..full).for_each(|part| s.send(t, seq + part * FULL, MSS, None));
        seq += full * FULL;
        s.ack(t + 57 * MS + 100_000, seq, 1 << 20, 0);
        if left > 0 && free < t + 50 * MS {
            s.send(free.max(t), seq, left as u32, None);
            (seq, free, left) = (seq + left, free.max(t) + 57 * MS, 0);
            s.ack(free, seq, 1 << 20, 0);
        }
        rest = left;
    }
    let application = s.share(Cause::Application);
    assert!(application > 0.95, "{application}");
}

#[test]
fn what_a_capture_lacks_for_a_time_has_no_cause() {
    for away in [0, 5 * MS] {
        let mut s = window_limited(1 << 20, away);
        s.send(60 * MS, 0, MSS, Some(Repeat::Fast)); // a repair that ends unseen
        s.packets.retain(|p| !(80 * MS..2_080 * MS).contains(&p.0));
        let (unknown, doubt) = s.doubted();
        assert!((0.48..0.52).contains(&unknown), "{away}: {unknown}");
        assert_eq!(doubt, Some(Doubt::PacketsMissing));
    }
}

#[test]
fn at_a_receiver_that_opened_the_connection_the_senders_waits_are_told_apart_by_timestamps_alone() {
    let opened = |script: Script| Script { is_accepted: true, ..script };
    for seen in [window_limited(1 << 20, 20 * MS), chunks(20 * MS)] {
        let (unknown, doubt) = opened(Script { is_timed: false, ..seen }).doubted();
        assert!(unknown > 0.9 && doubt == Some(Doubt::FarFromSender), "{unknown} {doubt:?}");
    }
    assert_eq!(opened(chunks(0)).doubted(), (0.0, None), "the same connection at its sender");
    // Timestamps show which ACK a segment answers, and the SYN-ACK how late answers are here.
    for away in [0, 5 * MS, 20 * MS] {
        let application = |script: Script| script.share(Cause::Application);
        assert!(opened(window_limited(1 << 20, away)).share(Cause::CongestionWindow) > 0.98, "{away}");
        assert!(application(opened(chunks(away))) > application(chunks(away)) - 0.01, "{away}");
    }
}

/// Answers of three segments and a rest, each to a request that follows the one before at once: the request comes with the ACK.
fn dialogue(away: u64, request: u32) -> Script {
    let mut s = Script::new(40, away);
    let answer = 3 * FULL + 656;
    for k in 0..60 {
        let t = 50 * MS + k * 41 * MS;
        s.ack(t, k * answer, 1 << 20, 0);
        if let Some((_, Packet::Ack(ack))) = s.packets.last_mut() {
            ack.len = request;
        }
        for part in 0..3 {
            s.send(t + 20_000, k * answer + part * FULL, MSS, None);
        }
        s.send(t + 20_000, k * answer + 3 * FULL, 656, None);
    }
    s
}

#[test]
fn what_answers_a_request_waited_for_it_and_for_no_room_in_a_buffer() {
    for away in [0, 5 * MS, 20 * MS] {
        for is_timed in [true, false] {
            let seen = |request| Script { is_timed, ..dialogue(away, request) };
            assert!(seen(517).share(Cause::Application) > 0.97, "{away} {is_timed}");
        }
    }
    assert!(dialogue(0, 0).share(Cause::SendBuffer) > 0.9, "the same without data in the ACKs is a writer who waits for them");
}

#[test]
fn a_window_below_one_segment_holds_no_small_writes() {
    // Of the loopback device: segments of 65,483 bytes, and Linux's first window of 43,690.
    let mut s = Script::new(1, 0);
    for k in 0..100 {
        s.send(50 * MS + k * 200 * MS, k * 17, 17, None);
        s.ack(51 * MS + k * 200 * MS, (k + 1) * 17, 43_690, 0);
    }
    for (_, packet) in &mut s.packets {
        if let Packet::Data(d) = packet {
            (d.mss, d.psh) = (Some(65_483), true);
        }
    }
    assert!(s.share(Cause::Application) > 0.97);
}

#[test]
fn silences_of_an_application_do_not_count_as_the_way_to_the_sender() {
    for (away, is_accepted) in [(0, false), (0, true), (5 * MS, false), (5 * MS, true), (20 * MS, false), (20 * MS, true)] {
        let mut s = Script { is_accepted, ..Script::new(40, away) };
        for k in 0..200 {
            s.send(50 * MS + k * 189 * MS, k * 1_000, 1_000, None);
            s.ack(90 * MS + k * 189 * MS, (k + 1) * 1_000, 1 << 20, 0);
        }
        assert!(s.share(Cause::Application) > 0.97, "{away} {is_accepted}");
    }
}

#[test]
fn without_timestamps_a_few_microseconds_of_the_handshake_decide_nothing() {
    let untimed = |script: Script| Script { is_timed: false, ..script };
    // The handshake's answer took longer than the segments', and so many of them come so soon after an ACK that it is no chance.
    assert!(Script { slow: 14_000, ..untimed(window_limited(1 << 20, 0)) }.share(Cause::CongestionWindow) > 0.9);
    // Where ACKs are as near to each other as the answer took, an ACK is always just before: nothing shows which one.
    let mut dense = Script { slow: 14_000, ..untimed(Script::new(1, 0)) };
    for k in 0..200 {
        dense.send(2 * MS, k * FULL, MSS, None);
    }
    for k in 1..20_000 {
        dense.ack(3 * MS + k * 10_000, 2 * k * FULL, 1 << 20, 0);
        dense.send(3 * MS + k * 10_000 + 5_000, (2 * k + 198) * FULL, MSS, None);
        dense.send(3 * MS + k * 10_000 + 5_000, (2 * k + 199) * FULL, MSS, None);
    }
    let wrong = dense.share(Cause::Application);
    assert!(wrong < 0.1, "{wrong}");
    assert!(untimed(window_limited(1 << 20, 0)).share(Cause::CongestionWindow) > 0.98);
    // No ACK comes just before these writes.
    assert!(untimed(chunks(0)).share(Cause::Application) > 0.97);
    // Away from the sender writes show by their segments; a pause that may be the path's is nobody's.
    assert!(untimed(chunks(5 * MS)).share(Cause::Application) > 0.97);
    let pauses = |every: u64| {
        let mut s = Script::new(40, 5 * MS);
        for k in 0..50 {
            s.send(50 * MS + k * every, k * FULL, MSS, None);
            s.ack(90 * MS + k * every, (k + 1) * FULL, 1 << 20, 0);
        }
        s
    };
    assert!(untimed(pauses(100 * MS)).doubted().0 > 0.95);
}

#[test]
fn segments_that_a_path_keeps_below_the_mss_are_not_what_is_left_of_a_write() {
    let smaller = |mut s: Script, psh: bool| {
        for (_, packet) in &mut s.packets {
            if let Packet::Data(d) = packet {
                (d.len, d.psh) = (MSS - 100, psh);
            }
        }
        s
    };
    for away in [0, 5 * MS] {
        assert!(smaller(window_limited(1 << 20, away), false).share(Cause::CongestionWindow) > 0.98, "{away}");
    }
    assert!(smaller(window_limited(1 << 20, 0), true).share(Cause::CongestionWindow) < 0.1, "writes of that size");
    // Writes of 5,000 bytes in segments of 1,200: three full ones and the rest.
    let mut s = chunks(0);
    for (_, packet) in &mut s.packets {
        if let Packet::Data(d) = packet {
            let part = d.seq % 5_000 / FULL;
            (d.seq, d.len, d.psh) = (d.seq - part * (FULL - 1_300), if part == 3 { 1_100 } else { 1_300 }, part == 3);
        }
    }
    assert!(s.share(Cause::Application) > 0.95);
}

#[test]
fn the_same_releases_at_the_windows_edge_show_the_receive_window() {
    assert!(window_limited(20 * FULL, 0).share(Cause::ReceiveWindow) > 0.97);
    assert!(window_limited(20 * FULL, 5 * MS).share(Cause::ReceiveWindow) > 0.9);
}

#[test]
fn chunks_without_relation_to_acks_show_the_application() {
    assert!(chunks(0).share(Cause::Application) > 0.97);
    assert!(chunks(5 * MS).share(Cause::Application) > 0.97);
}

#[test]
fn chunks_that_acks_release_show_the_send_buffer() {
    let mut s = Script::new(40, 0);
    let mut nxt = 0;
    for k in 0..100 {
        let t = 50 * MS + k * 40 * MS;
        if k > 0 {
            s.ack(t, nxt, 1 << 20, 0);
        }
        for _ in 0..4 {
            s.send(t + 20_000, nxt, MSS, None);
            s.send(t + 20_000, nxt + FULL, 600, None);
            nxt += FULL + 600;
        }
    }
    assert!(s.share(Cause::SendBuffer) > 0.97);
}

#[test]
fn full_segments_by_a_timer_show_pacing_and_a_long_pause_the_application() {
    let mut s = Script::new(40, 0);
    let (mut acked, mut paused) = (0, 0);
    for k in 0..3_000u64 {
        paused += if k == 1_500 { 500 * MS } else { 0 };
        let t = 50 * MS + k * 1_130_000 + paused;
        s.send(t, k * FULL, MSS, None);
        if k >= 35 && k % 2 == 1 {
            acked = (k - 34) * FULL;
            s.ack(t + 400_000, acked, 1 << 20, 0);
        }
    }
    assert!(acked > 0);
    let end = s.packets[s.packets.len() - 1].0;
    let all = s.run();
    let time = |c: Cause| all.iter().filter(|i| i.cause == c).map(|i| i.to - i.from).sum::<u64>();
    assert!(time(Cause::Pacing) > 95 * (end - 50 * MS - 500 * MS) / 100, "{all:?}");
    assert!((500 * MS..520 * MS).contains(&time(Cause::Application)), "{all:?}");
}

#[test]
fn silence_after_everything_is_acknowledged_is_the_application_with_the_frames_around_it() {
    let mut s = Script::new(40, 0);
    s.send(50 * MS, 0, MSS, None);
    s.ack(90 * MS, FULL, 1 << 20, 0);
    s.send(1_000 * MS, FULL, MSS, None);
    s.ack(1_040 * MS, 2 * FULL, 1 << 20, 0);
    let all = s.run();
    let idle = all.iter().find(|i| i.cause == Cause::Application).copied().expect("the silence");
    assert_eq!((idle.from, idle.frames[0]), (40 * MS, 3), "from the handshake on: {all:?}");
    assert!(idle.to == 1_000 * MS || idle.to == 1_040 * MS, "{all:?}");
}

#[test]
fn a_closed_window_is_the_receivers_until_it_opens() {
    let mut s = Script::new(40, 0);
    for k in 0..10 {
        s.send(50 * MS, k * FULL, MSS, None);
    }
    s.ack(90 * MS, 10 * FULL, 0, 0);
    s.ack(700 * MS, 10 * FULL, 10 * FULL, 0);
    for k in 10..20 {
        s.send(700 * MS + 10_000, k * FULL, MSS, None);
    }
    s.ack(741 * MS, 20 * FULL, 10 * FULL, 0);
    let all = s.run();
    let closed = all.iter().find(|i| i.cause == Cause::ReceiveWindow).copied().expect("closed");
    assert_eq!((closed.from, closed.to), (50 * MS, 700 * MS + 10_000));
}

#[test]
fn recovery_lasts_until_what_was_sent_at_its_begin_is_acknowledged() {
    let mut s = Script::new(40, 0);
    for k in 0..20 {
        s.send(50 * MS + k * MS, k * FULL, MSS, None);
    }
    for k in 0..3 {
        s.ack((90 + k) * MS, 0, 1 << 20, MSS * (k as u32 + 1));
    }
    s.send(92 * MS + 5_000, 0, MSS, Some(Repeat::Fast));
    for k in 20..30 {
        s.ack((75 + k) * MS, 0, 1 << 20, MSS * (k as u32 - 15));
        s.send((75 + k) * MS + 5_000, k * FULL, MSS, None);
    }
    s.ack(132 * MS, 20 * FULL, 1 << 20, 0);
    s.send(132 * MS + 5_000, 30 * FULL, MSS, None);
    let all = s.run();
    let repair = all.iter().find(|i| i.cause == Cause::Recovery).copied().expect("recovery");
    assert_eq!((repair.from, repair.to), (92 * MS + 5_000, 132 * MS), "{all:?}");
}

#[test]
fn the_silence_before_a_timeout_is_the_timeouts() {
    let mut s = Script::new(40, 0);
    for k in 0..10 {
        s.send(50 * MS, k * FULL, MSS, None);
    }
    s.send(290 * MS, 0, MSS, Some(Repeat::Timeout));
    s.ack(330 * MS, FULL, 1 << 20, 0);
    s.send(330 * MS + 5_000, FULL, MSS, Some(Repeat::Timeout));
    s.ack(370 * MS, 10 * FULL, 1 << 20, 0);
    s.send(370 * MS + 5_000, 10 * FULL, MSS, None);
    let all = s.run();
    let silence = all.iter().find(|i| i.cause == Cause::Timeout).copied().expect("timeout");
    assert_eq!((silence.from, silence.to), (50 * MS, 370 * MS), "{all:?}");
}

#[test]
fn what_a_full_window_keeps_waits_for_the_window_though_its_ack_is_lost_and_the_timer_repeats() {
    for away in [0, 5 * MS] {
        let mut s = Script::new(40, away);
        for k in 0..30 {
            let (t, nxt) = (50 * MS + k * 400 * MS, 10 * k * FULL);
            (0..10).for_each(|i| s.send(t, nxt + i * FULL, MSS, None));
            // The ACK that takes all ten and opens the window is lost; that of the repetition comes.
            s.send(t + 250 * MS, nxt, MSS, Some(Repeat::Timeout));
            s.ack(t + 399 * MS, nxt + 10 * FULL, 10 * FULL, 0);
        }
        assert!(s.share(Cause::ReceiveWindow) > 0.9, "{away}");
    }
}

#[test]
fn of_the_acks_of_one_tick_each_may_have_opened_a_window_whose_scale_is_supposed() {
    // At a receiver, in mid-connection: two ACKs in each tick release four segments, which fill the window of 20 and echo that tick.
    let mut tracker = Tracker::new(1_000);
    for k in 1..600u64 {
        for part in 1..=2 {
            let (t, ack) = (k * 8 * MS + part * MS / 10, (4 * (k - 1) + 2 * part) * FULL);
            tracker.ack(&Ack { t, ack, delivered: ack, window: Some(20 * MSS as u16), tsval: Some(1 + 8 * k as u32), ..Ack::default() });
        }
        let tsecr = k.checked_sub(4).map(|k| 1 + 8 * k as u32);
        for part in 0..4 {
            let (t, seq) = (k * 8 * MS + MS, (4 * k + part) * FULL);
            tracker.data(&Data { t, seq, len: MSS, mss: Some(MSS), tsval: Some(t as u32), tsecr, ..Data::default() });
        }
    }
    let held = share(&tracker.finish(4_800 * MS).0, Cause::ReceiveWindow);
    assert!(held > 0.9, "{held}");
}

#[test]
fn what_is_kept_does_not_grow_with_the_packets() {
    let mut s = Script::new(40, 0);
    for k in 0..200_000u64 {
        s.send(50 * MS + k * 10 * MS, k * FULL, MSS, (k % 7 == 0).then_some(Repeat::Fast));
        if k % 3 == 0 {
            s.ack(50 * MS + k * 10 * MS + 5 * MS, k * FULL, (k % 50) * FULL, 0);
        }
    }
    let end = s.packets.iter().map(|p| p.0).max();
    let all = s.run();
    assert!(all.len() <= 1_000);
    assert_eq!(all.last().map(|i| i.to), end);
}
