//! One connection of the host under test: the model's sender and receiver as one endpoint, and what they say in packets of a script.
//!
//! The model's connections carry data one way: a sender that connects, a receiver that listens. A host of a script does both, so it has one of
//! each. What neither of them has is made here: the options of SYN and SYN-ACK; the end of the side that the model does not play in a handshake;
//! FIN, which is a byte of the stream whose segment loses it again on its way out; the number and window of the receiver on the sender's
//! segments (RFC 9293 §3.10.7.4). Source besides: RFC 7323 §1.3 (an option that only one side has is not used).

use crate::settings::Settings;
use crate::wire::{Packet, TcpOption};
use std::collections::{HashMap, VecDeque};
use tcpscape_base::{Duration, Ecn, Flags, Segment, Time};
use tcpscape_tcp::{cc, Feedback, Jiffies, Receiver, ReceiverConfig, Sender, SenderConfig};

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A SYN left.
    SynSent,
    /// A SYN came, a SYN-ACK left.
    SynReceived,
    /// Both have agreed.
    Open,
    /// It is over, by a reset or both FINs; nothing is left.
    Closed,
}

/// A packet that has left.
#[derive(Clone, Debug)]
pub(crate) struct Departed {
    pub at: Time,
    pub packet: Packet,
}

/// What the peer's SYN offers.
#[derive(Clone, Copy, Debug, Default)]
struct Offer {
    mss: u32,
    scale: Option<u8>,
    sack: bool,
    timestamps: bool,
}

impl Offer {
    fn of(p: &Packet) -> Offer {
        let mut offer = Offer { mss: DEFAULT_MSS, ..Offer::default() };
        for option in p.options() {
            match *option {
                TcpOption::Mss(mss) => offer.mss = mss.max(LEAST_MSS),
                TcpOption::WindowScale(shift) => offer.scale = Some(shift.min(14)),
                TcpOption::SackOk => offer.sack = true,
                TcpOption::Timestamps { .. } => offer.timestamps = true,
                _ => {}
            }
        }
        offer
    }
    /// What both have.
    fn and(self, own: Offer) -> Offer {
        Offer {
            mss: self.mss.min(own.mss),
            scale: self.scale.filter(|_| own.scale.is_some()),
            sack: self.sack && own.sack,
            timestamps: self.timestamps && own.timestamps,
        }
    }
    /// Payload of a full segment, bytes.
    fn payload(self) -> u32 {
        self.mss - if self.timestamps { TIMESTAMPS } else { 0 }
    }
}

/// The connection.
pub(crate) struct Endpoint {
    settings: Settings,
    clock: Jiffies,
    pub sender: Sender,
    pub receiver: Receiver,
    pub stage: Stage,
    /// Buffers that the application has asked for, bytes; 0 for none.
    buffers: Buffers,
    /// What both sides have, once both have said.
    agreed: Offer,
    /// When the SYN or SYN-ACK left first.
    began: Time,
    /// Sequence number of the own FIN, once it is written.
    pub fin: Option<u64>,
    /// Script's timestamps → those that left.
    echoes: HashMap<u32, u32>,
    /// Newest timestamp of the peer.
    tsval: u32,
    /// The peer asked for ECN, or agreed to it.
    pub ecn: bool,
    pub out: VecDeque<Departed>,
    /// Segments with data that came.
    pub data_segs_in: u64,
    /// The send buffer that the application has fixed, bytes.
    pub send_buffer: Option<u32>,
    /// Why the model has no answer, if there is none.
    pub refusal: Option<String>,
}

/// Sizes of buffers that an application asks for before a connection, bytes; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffers {
    pub send: u32,
    pub receive: u32,
    pub nodelay: bool,
    /// `TCP_MAXSEG`.
    pub segment: u32,
}

impl Endpoint {
    /// A socket that connects: its SYN leaves.
    pub fn connect(now: Time, settings: &Settings, buffers: Buffers) -> Result<Endpoint, String> {
        let own = own_offer(settings, buffers);
        let mut e = Endpoint::new(settings, buffers, own, Stage::SynSent, now, settings.ecn == 1)?;
        e.sender.connect(now, now);
        // The receiver's side of the handshake begins with the own SYN: its estimate of the round trip is that of the SYN.
        e.receiver.on_segment(now, &Segment { flags: Flags::SYN, tsval: 1, ..Segment::default() }, 0);
        e.collect(now);
        Ok(e)
    }

    /// A socket that listens: a SYN came, the SYN-ACK leaves.
    pub fn accept(now: Time, settings: &Settings, buffers: Buffers, syn: &Packet) -> Result<Endpoint, String> {
        let own = own_offer(settings, buffers);
        let agreed = Offer::of(syn).and(own);
        let asks = syn.flags.has(Flags::ECE.with(Flags::CWR));
        let ecn = asks && (1..=2).contains(&settings.ecn);
        let mut e = Endpoint::new(settings, buffers, agreed, Stage::SynReceived, now, ecn)?;
        e.sender.connect(now, now);
        let segment = e.syn_for_receiver(syn);
        e.receiver.on_segment(now, &segment, 0);
        e.collect(now);
        Ok(e)
    }

    fn new(settings: &Settings, buffers: Buffers, agreed: Offer, stage: Stage, now: Time, ecn: bool) -> Result<Endpoint, String> {
        let clock = Jiffies::new(settings.kernel.hz, Duration::ZERO);
        let control = cc::make(&settings.control, 0).ok_or("congestion control: unknown")?;
        let receiver = Receiver::new(&ReceiverConfig {
            kernel: settings.kernel,
            jiffies: clock,
            mss: agreed.payload(),
            // The receiver's window is made of segments with timestamps.
            advmss: settings.mtu - HEADERS + if agreed.timestamps { 0 } else { TIMESTAMPS },
            rcvbuf: buffers.receive,
            sack: agreed.sack,
            gro: true,
            feedback: Feedback::of(&*control),
        });
        let sender = make_sender(settings, clock, buffers, agreed, ecn)?;
        Ok(Endpoint {
            settings: settings.clone(),
            clock,
            sender,
            receiver,
            stage,
            buffers,
            agreed,
            began: now,
            fin: None,
            echoes: HashMap::new(),
            tsval: 0,
            ecn,
            out: VecDeque::new(),
            data_segs_in: 0,
            send_buffer: None,
            refusal: None,
        })
    }

    // ---- time ---------------------------------------------------------------------------------------------------------

    /// When [`Endpoint::on_timer`] wants to be called.
    pub fn next_event(&self) -> Option<Time> {
        if self.stage == Stage::Closed {
            return None;
        }
        match (self.sender.next_event(), self.receiver.next_event().filter(|_| self.stage != Stage::SynSent)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// A timer has come.
    pub fn on_timer(&mut self, now: Time) {
        if self.sender.next_event().is_some_and(|t| t <= now) {
            self.sender.on_timer(now);
        }
        if self.stage != Stage::SynSent && self.receiver.next_event().is_some_and(|t| t <= now) {
            self.receiver.on_timer(now);
        }
        self.collect(now);
    }

    // ---- packets that come --------------------------------------------------------------------------------------------

    /// A packet of the peer.
    pub fn on_packet(&mut self, now: Time, p: &Packet) {
        let syn = p.flags.has(Flags::SYN);
        match self.stage {
            Stage::SynSent if p.flags.has(Flags::RST) => self.stage = Stage::Closed,
            Stage::SynSent if syn && !p.flags.has(Flags::ACK) => self.refusal = Some("a simultaneous open".into()),
            Stage::SynSent if syn && p.ack == Some(1) => self.on_syn_ack(now, p),
            Stage::SynSent => self.refusal = Some("a segment that is no answer to the SYN".into()),
            Stage::SynReceived if syn => {
                let segment = self.syn_for_receiver(p);
                self.receiver.on_segment(now, &segment, 0);
            }
            Stage::SynReceived if p.flags.has(Flags::RST) => self.stage = Stage::Closed,
            Stage::SynReceived => self.on_third(now, p),
            Stage::Open => self.on_segment(now, p),
            Stage::Closed => self.reset_for(now, p),
        }
        self.collect(now);
    }

    /// The SYN-ACK: what was not known when the SYN left is known now, so that a sender with the right segment size takes the place of the one
    /// that sent it, with the same past.
    fn on_syn_ack(&mut self, now: Time, p: &Packet) {
        self.agreed = Offer::of(p).and(own_offer(&self.settings, self.buffers));
        let ecn = self.settings.ecn == 1;
        self.ecn = ecn && p.flags.has(Flags::ECE) && !p.flags.has(Flags::CWR);
        let Ok(sender) = make_sender(&self.settings, self.clock, self.buffers, self.agreed, ecn) else { return };
        self.sender = sender;
        self.sender.connect(self.began, self.began);
        while self.sender.next_event().is_some_and(|t| t <= now) {
            let due = self.sender.next_event().unwrap_or(now);
            self.sender.on_timer(due);
        }
        while self.sender.poll_transmit().is_some() {}
        let s = self.segment(p);
        self.sender.on_segment(now, &s);
        let mut ack = Segment { seq: 1, flags: Flags::ACK, ack: 1, tsval: s.tsval.max(1), ..Segment::default() };
        if !self.agreed.timestamps {
            ack.tsval = 1;
        }
        self.receiver.on_segment(now, &ack, 0);
        while self.receiver.poll_transmit(now).is_some() {}
        self.stage = Stage::Open;
    }

    /// What answers the SYN-ACK: the connection is open on both sides of the model.
    fn on_third(&mut self, now: Time, p: &Packet) {
        if !p.flags.has(Flags::ACK) {
            return;
        }
        if p.ack != Some(1) {
            self.refusal = Some("an ACK of what was not sent, during the handshake".into());
            return;
        }
        let s = self.segment(p);
        self.receiver.on_segment(now, &self.for_receiver(s), 0);
        if !self.receiver.is_open() {
            return;
        }
        let flags = Flags::SYN.with(Flags::ACK).with(if self.ecn { Flags::ECE } else { Flags::default() });
        self.sender.on_segment(now, &Segment { seq: 0, len: 0, flags, ..s });
        while self.sender.poll_transmit().is_some() {}
        self.data_segs_in += u64::from(s.len > 0);
        self.stage = Stage::Open;
    }

    fn on_segment(&mut self, now: Time, p: &Packet) {
        if p.flags.has(Flags::RST) {
            if p.seq == self.receiver.rcv_nxt() {
                self.stage = Stage::Closed;
            }
            return;
        }
        if !p.flags.has(Flags::ACK) && !p.flags.has(Flags::SYN) {
            return; // RFC 9293 §3.10.7.4: "if the ACK bit is off, drop the segment"
        }
        if p.ack.is_some_and(|ack| ack > self.sender.snd_nxt()) {
            // RFC 5961 §5: it acknowledges what was not sent; it is dropped and answered.
            let seq = self.sender.snd_nxt();
            return self.leave_data(now, now, &Segment { seq, flags: Flags::ACK, ..Segment::default() }, None);
        }
        let s = self.segment(p);
        let is_duplicate = s.len == 0 && s.ack == self.sender.bytes_acked() + 1 && self.sender.snd_nxt() > s.ack && s.nsack == 0;
        if is_duplicate && !self.agreed.sack && s.wnd == self.sender.info().rwnd && !s.flags.has(Flags::FIN) {
            self.refusal = Some("a duplicate ACK without SACK: the model's sender repairs by SACK alone".into());
            return;
        }
        self.data_segs_in += u64::from(s.len > 0);
        if s.seq <= self.receiver.rcv_nxt() + u64::from(self.receiver.window()) && !s.flags.has(Flags::SYN) {
            self.sender.on_segment(now, &s);
        }
        self.receiver.on_segment(now, &self.for_receiver(s), 0);
    }

    /// RFC 9293 §3.10.7.1: a segment for a connection that is not there is answered by a reset.
    fn reset_for(&mut self, now: Time, p: &Packet) {
        if p.flags.has(Flags::RST) {
            return;
        }
        let flags = if p.flags.has(Flags::ACK) { Flags::RST } else { Flags::RST.with(Flags::ACK) };
        let (seq, ack) = match p.ack.filter(|_| p.flags.has(Flags::ACK)) {
            Some(ack) => (ack, None),
            None => (0, Some(p.seq + u64::from(p.len) + u64::from(p.flags.has(Flags::SYN)))),
        };
        self.leave(now, Packet { flags, seq, ack, win: Some(0), ecn: Some(Ecn::NotEct), options: Some(Vec::new()), ..Packet::default() });
    }

    /// A reset leaves, and the connection is gone (RFC 9293 §3.10.4, §3.6.1).
    pub fn abort(&mut self, now: Time, in_answer: Option<&Packet>) {
        self.stage = Stage::Closed;
        if let Some(p) = in_answer {
            return self.reset_for(now, p);
        }
        let (seq, ack) = (self.sender.snd_nxt(), Some(self.receiver.rcv_nxt()));
        let options = self.stamped(self.echo(), now);
        let packet =
            Packet { flags: Flags::RST.with(Flags::ACK), seq, ack, ecn: Some(Ecn::NotEct), options: Some(options), ..Packet::default() };
        self.leave(now, packet);
    }

    // ---- what the application does ------------------------------------------------------------------------------------

    /// Writes `bytes`; returns how many there was room for.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        let written = self.sender.write(now, bytes);
        self.collect(now);
        written
    }
    /// Reads up to `bytes`; returns how many there were.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let read = self.receiver.read(now, bytes);
        self.collect(now);
        read
    }
    /// The own side ends: a FIN follows what was written.
    pub fn finish(&mut self, now: Time, written: u64) {
        if self.fin.is_some() || self.stage != Stage::Open {
            return;
        }
        self.fin = Some(1 + written);
        self.sender.finish(now);
        self.collect(now);
    }
    /// Sets `SO_SNDBUF`.
    pub fn set_send_buffer(&mut self, bytes: u32) {
        self.send_buffer = Some(self.sender.set_send_buffer(bytes));
    }
    /// Sets `TCP_NODELAY`: what waits for an ACK may go.
    pub fn set_nodelay(&mut self, now: Time) {
        self.sender.set_nodelay();
        self.sender.write(now, 0);
        self.collect(now);
    }
    /// Whether the own FIN was acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.fin.is_some_and(|fin| self.sender.bytes_acked() >= fin)
    }
    /// The options that both sides have: timestamps, SACK, window scale.
    pub fn has(&self) -> (bool, bool, bool) {
        (self.agreed.timestamps, self.agreed.sack, self.agreed.scale.is_some())
    }
    /// Window scales: the peer's, the own.
    pub fn scales(&self) -> (u8, u8) {
        (self.agreed.scale.unwrap_or(0), self.own_scale())
    }
    /// The segment size that the own SYN announces, bytes.
    pub fn own_mss(&self) -> u32 {
        own_offer(&self.settings, self.buffers).mss
    }
    /// Payload of a full segment, bytes.
    pub fn payload(&self) -> u32 {
        self.agreed.payload()
    }

    // ---- segments and packets -----------------------------------------------------------------------------------------

    /// The segment of a packet that came, for the sender.
    fn segment(&mut self, p: &Packet) -> Segment {
        let is_syn = p.flags.has(Flags::SYN);
        let scale = if is_syn { 0 } else { self.agreed.scale.unwrap_or(0) };
        let mut s = Segment {
            seq: p.seq,
            len: p.len,
            ack: p.ack.unwrap_or(0),
            wnd: p.win.unwrap_or(0) << scale,
            flags: p.flags,
            ecn: p.ecn.unwrap_or_default(),
            ..Segment::default()
        };
        if self.agreed.timestamps {
            // A segment without the option says nothing of time (RFC 7323 §3.2).
            let (val, ecr) = p.timestamps().unwrap_or((self.tsval, 0));
            self.tsval = val;
            (s.tsval, s.tsecr) = (val, self.live_echo(ecr));
        }
        if self.agreed.sack {
            let blocks = p.options().iter().find_map(|o| match o {
                TcpOption::Sacks(blocks) => Some(blocks.as_slice()),
                _ => None,
            });
            blocks.unwrap_or_default().iter().for_each(|&block| s.push_sack(block));
        }
        s
    }

    /// The same for the receiver, whose clock of timestamps is another one.
    fn for_receiver(&self, s: Segment) -> Segment {
        let ahead = (self.clock.since_tick(Time::ZERO) / 1_000_000) as u32 + RECEIVER_CLOCK;
        Segment { tsecr: if s.tsecr == 0 { 0 } else { s.tsecr.wrapping_add(ahead).wrapping_sub(1) }, ..s }
    }

    fn syn_for_receiver(&mut self, syn: &Packet) -> Segment {
        let asks = Flags::ECE.with(Flags::CWR).with(Flags::AE);
        let s = self.segment(syn);
        let flags = if self.ecn { s.flags.without(Flags::AE) } else { s.flags.without(asks) };
        Segment { flags, ack: 0, ..s }
    }

    /// The timestamp that left for the one that a script's peer echoes.
    fn live_echo(&self, echo: u32) -> u32 {
        if echo == 0 {
            return 0;
        }
        let nearest = || self.echoes.iter().min_by_key(|(&script, _)| script.abs_diff(echo));
        match self.echoes.get(&echo) {
            Some(&live) => live,
            None => nearest().map_or(echo, |(&script, &live)| live.wrapping_add(echo.wrapping_sub(script))),
        }
    }
    /// A packet with this timestamp in the script left with that one.
    pub fn learn_timestamp(&mut self, script: u32, live: u32) {
        self.echoes.entry(script).or_insert(live);
    }

    /// Takes what the machines have to send and lets it leave.
    fn collect(&mut self, now: Time) {
        let mut acks: VecDeque<Segment> = std::iter::from_fn(|| self.receiver.poll_transmit(now)).collect();
        let sent: Vec<(Segment, Time)> =
            std::iter::from_fn(|| self.sender.poll_transmit()).map(|t| (t.segment, t.departure.max(now))).collect();
        match self.stage {
            Stage::SynSent => sent.iter().for_each(|(s, _)| self.leave_syn(now, s)),
            Stage::SynReceived => acks.iter().for_each(|s| self.leave_syn(now, s)),
            Stage::Closed => {}
            Stage::Open => {
                let carries_data = sent.iter().any(|(s, _)| s.len > 0);
                let last = if carries_data { acks.pop_back() } else { None };
                let answered = !acks.is_empty();
                acks.iter().for_each(|a| self.leave_ack(now, self.sender.snd_nxt(), a));
                for (s, departure) in &sent {
                    // Both machines answer a segment that is not acceptable; one answer leaves.
                    if s.len == 0 && answered && s.seq > self.sender.bytes_acked() {
                        continue;
                    }
                    self.leave_data(now, *departure, s, last.as_ref());
                }
            }
        }
    }

    fn leave_syn(&mut self, now: Time, s: &Segment) {
        let is_syn = s.flags.has(Flags::SYN);
        if !is_syn {
            return self.leave_ack(now, 1, s);
        }
        let own = Offer { mss: self.own_mss(), ..self.agreed };
        let mut options = vec![TcpOption::Mss(own.mss)];
        let stamps = TcpOption::Timestamps { val: stamp(now), ecr: if self.stage == Stage::SynSent { 0 } else { s.tsecr } };
        if own.sack {
            options.push(TcpOption::SackOk);
        }
        if own.timestamps {
            options.push(stamps);
        }
        if own.scale.is_some() {
            options.push(TcpOption::WindowScale(self.receiver.wscale()));
        }
        let win = if self.stage == Stage::SynSent { self.receiver.window().min(MOST_WINDOW) } else { s.wnd };
        let ack = s.flags.has(Flags::ACK).then_some(s.ack);
        let packet =
            Packet { flags: s.flags, seq: s.seq, ack, win: Some(win), ecn: Some(s.ecn), options: Some(options), ..Packet::default() };
        self.leave(now, packet);
    }

    fn leave_ack(&mut self, now: Time, seq: u64, a: &Segment) {
        let packet = self.packet(now, &Segment { seq, len: 0, ..*a }, a);
        self.leave(now, packet);
    }

    /// A segment of the sender leaves at `departure`; `ack`, or what the receiver says now, is what it acknowledges.
    fn leave_data(&mut self, now: Time, departure: Time, s: &Segment, ack: Option<&Segment>) {
        let own = match ack {
            Some(a) => *a,
            None => {
                self.receiver.write(now, 0);
                self.receiver.poll_transmit(now).unwrap_or_default()
            }
        };
        let echoes = own.flags.without(Flags::ACK.with(Flags::PSH));
        let packet = self.packet(departure, &Segment { flags: s.flags.with(echoes), ..*s }, &own);
        self.leave(departure, packet);
    }

    /// A packet of the bytes of `s`, with the acknowledgement of `a`.
    fn packet(&mut self, now: Time, s: &Segment, a: &Segment) -> Packet {
        let (mut flags, mut len) = (s.flags, s.len);
        if len > 0 && self.fin.is_some_and(|fin| s.seq + u64::from(len) == fin + 1) {
            len -= 1;
            flags = flags.with(Flags::FIN);
            if len == 0 {
                flags = flags.without(Flags::PSH);
            }
        }
        let mut options = self.stamped(a.tsecr, now);
        let blocks: Vec<(u64, u64)> = a.sacks().collect();
        if !blocks.is_empty() {
            options.push(TcpOption::Sacks(blocks));
        }
        let win = (a.wnd >> self.own_scale()).min(MOST_WINDOW);
        Packet { flags, seq: s.seq, len, ack: Some(a.ack), win: Some(win), ecn: Some(s.ecn), options: Some(options), ..Packet::default() }
    }

    fn stamped(&self, ecr: u32, now: Time) -> Vec<TcpOption> {
        let stamps = TcpOption::Timestamps { val: stamp(now), ecr };
        if self.agreed.timestamps {
            vec![stamps]
        } else {
            Vec::new()
        }
    }
    fn echo(&self) -> u32 {
        self.tsval
    }
    fn own_scale(&self) -> u8 {
        self.agreed.scale.map_or(0, |_| self.receiver.wscale())
    }

    /// A packet leaves, not before those that wait in the host's queue.
    fn leave(&mut self, now: Time, packet: Packet) {
        let now = self.out.back().map_or(now, |last| last.at.max(now));
        let cut = if self.settings.offload { 0 } else { self.agreed.payload() };
        if cut == 0 || packet.len <= cut {
            return self.out.push_back(Departed { at: now, packet });
        }
        let mut start = 0;
        while start < packet.len {
            let len = cut.min(packet.len - start);
            let is_last = start + len == packet.len;
            let flags = if is_last { packet.flags } else { packet.flags.without(Flags::PSH.with(Flags::FIN)) };
            self.out.push_back(Departed { at: now, packet: Packet { seq: packet.seq + u64::from(start), len, flags, ..packet.clone() } });
            start += len;
        }
    }
}

/// What the host's own SYN offers.
fn own_offer(settings: &Settings, buffers: Buffers) -> Offer {
    let most = settings.mtu - HEADERS;
    let mss = if buffers.segment > 0 { buffers.segment.clamp(LEAST_MSS, most) } else { most };
    Offer { mss, scale: settings.window_scaling.then_some(0), sack: settings.sack, timestamps: settings.timestamps }
}

fn make_sender(settings: &Settings, clock: Jiffies, buffers: Buffers, agreed: Offer, ecn: bool) -> Result<Sender, String> {
    Ok(Sender::new(SenderConfig {
        kernel: settings.kernel,
        jiffies: clock,
        mss: agreed.payload(),
        sndbuf: buffers.send,
        gso: true, // without offloads super-packets are cut as they leave
        nodelay: buffers.nodelay,
        ecn,
        tsq: false,
        watch_host: false,
        bare_host: false,
        fq: settings.fq,
        tuning: settings.tuning,
        congestion: cc::make(&settings.control, 0).ok_or("congestion control: unknown")?,
    }))
}

/// The clock of outgoing timestamps: milliseconds, never 0.
pub(crate) fn stamp(now: Time) -> u32 {
    (now.0 / 1_000_000) as u32 + 1
}

/// Bytes of IPv4's and TCP's headers.
const HEADERS: u32 = 40;
/// Bytes of the timestamp option with its padding.
const TIMESTAMPS: u32 = 12;
/// Of a SYN without the option (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// No smaller segment size is believed, bytes.
const LEAST_MSS: u32 = 48;
/// The largest window that the header's field holds.
const MOST_WINDOW: u32 = 65_535;
/// How far the receiver's clock of timestamps is ahead of the sender's, besides the phase of its ticks, ms.
const RECEIVER_CLOCK: u32 = 1_000_000;
