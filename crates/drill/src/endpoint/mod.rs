//! One connection of the host under test: the model's sender and receiver as one endpoint, and what they say in packets of a script.
//!
//! The model's connections carry data one way: a sender that connects, a receiver that listens. A host of a script does both, so it has one of
//! each. What neither of them has is made here: the options of SYN and SYN-ACK; the end of the side that the model does not play in a handshake;
//! FIN, which is a byte of the stream whose segment loses it again on its way out; the number and window of the receiver on the sender's
//! segments. `offer.rs` is what both SYNs say, `arrive.rs` and `leave.rs` are the two directions; here are time and the application.

mod arrive;
mod leave;
mod offer;

use crate::settings::Settings;
use crate::wire::Packet;
pub(crate) use offer::Buffers;
use offer::{Offer, HEADERS, TIMESTAMPS};
use std::collections::{HashMap, VecDeque};
use tcpscape_base::{Duration, Flags, Segment, Time};
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

impl Endpoint {
    /// A socket that connects: its SYN leaves.
    pub fn connect(now: Time, settings: &Settings, buffers: Buffers) -> Result<Endpoint, String> {
        let own = Offer::own(settings, buffers);
        let mut e = Endpoint::new(settings, buffers, own, Stage::SynSent, now, settings.ecn == 1)?;
        e.sender.connect(now, now);
        // The receiver's side of the handshake begins with the own SYN: its estimate of the round trip is that of the SYN.
        e.receiver.on_segment(now, &Segment { flags: Flags::SYN, tsval: 1, ..Segment::default() }, 0);
        e.collect(now);
        Ok(e)
    }

    /// A socket that listens: a SYN came, the SYN-ACK leaves.
    pub fn accept(now: Time, settings: &Settings, buffers: Buffers, syn: &Packet) -> Result<Endpoint, String> {
        let own = Offer::own(settings, buffers);
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
            feedback: Feedback::of(&*control),
            misbehaves: None,
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

    // ---- what the application does ------------------------------------------------------------------------------------

    /// Writes `bytes`, or goes on with a write of which a part was taken; returns how many there was room for.
    pub fn write(&mut self, now: Time, bytes: u64, continues: bool) -> u64 {
        let written = if continues { self.sender.continue_write(now, bytes) } else { self.sender.write(now, bytes) };
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
        Offer::own(&self.settings, self.buffers).mss
    }
    /// Payload of a full segment, bytes.
    pub fn payload(&self) -> u32 {
        self.agreed.payload()
    }
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
