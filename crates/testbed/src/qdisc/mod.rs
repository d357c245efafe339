//! Queue disciplines as the kernel is told of them: what tc(8) would send for the same words, and the statistics read back.
//!
//! | Question | File |
//! |---|---|
//! | netem's options | [`netem`] |
//! | tbf and htb, rate tables | [`shaper`] |
//! | red, choke, codel, fq_codel, pie, fq_pie | [`aqm`] |
//! | fq, sfq and cake | [`fair`] |
//! | how options become bytes | `options` |
//! | statistics | [`stats`] |
//!
//! Handles: a stage's own queue is `1:`, its child `2:`, and so on; a child hangs below `H:1` of its parent.
//! Source: tc(8), linux/pkt_sched.h, linux/rtnetlink.h; compared byte by byte with messages that tc 6.1 sent (tests/data/tc.json).
//! How it differs from tc: where a netem delay is no whole number of ticks of 64 ns, its nanoseconds follow in
//! `TCA_NETEM_LATENCY64`, so that the kernel keeps exactly what the scenario says.

pub mod aqm;
pub mod fair;
pub mod netem;
mod options;
pub mod shaper;
pub mod stats;

use crate::netlink::{Batch, Message, CHANGE, CREATE, REPLACE};
use netlink_packet_core::{DefaultNla, NLA_F_NESTED};
use netlink_packet_route::tc::{TcAttribute, TcHeader, TcMessage};
use options::Options;
use tcpscape_path::QdiscSpec;

/// The device's own queue. Linux: TC_H_ROOT.
pub const ROOT: u32 = 0xffff_ffff;
/// Attribute of these messages. Source: linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;

/// Where a queue is and whether it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the device.
    pub device: i32,
    /// The class that it hangs below, or [`ROOT`].
    pub parent: u32,
    /// Its own handle, `1:` is 0x10000.
    pub handle: u32,
    /// Whether it is to be made; otherwise it is there and changes.
    pub new: bool,
}

impl Place {
    /// The place of a stage's queue at `depth`: 0 is its own, 1 its child.
    pub fn at(device: i32, depth: usize, new: bool) -> Place {
        let handle = |depth: usize| (depth as u32 + 1) << 16;
        let parent = if depth == 0 { ROOT } else { handle(depth - 1) | 1 };
        Place { device, parent, handle: handle(depth), new }
    }
    fn header(self) -> TcHeader {
        TcHeader { index: self.device, handle: self.handle.into(), parent: self.parent.into(), ..TcHeader::default() }
    }
    fn flags(self) -> u16 {
        if self.new {
            CREATE
        } else {
            CHANGE
        }
    }
}

/// What a queue is given besides its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Seed of netem's random numbers; kernels before 6.6 have no such attribute and pass over it.
    pub seed: Option<u64>,
}

/// Adds the messages for a queue without its children. There are none for a queue that it does not [know](knows): the caller refuses it before.
pub fn encode(batch: &mut Batch, spec: &QdiscSpec, place: Place, extra: Extra) {
    messages(batch, spec, place, extra);
}

/// Adds the message that removes a device's queue with its children.
pub fn remove(batch: &mut Batch, device: i32) {
    let place = Place { device, parent: ROOT, handle: 0, new: false };
    batch.push(Message::DelQueueDiscipline(TcMessage::from_parts(place.header(), Vec::new())), CHANGE);
}

/// Whether the kernel can be told of a queue, its children apart.
pub fn knows(spec: &QdiscSpec) -> bool {
    messages(&mut Batch::new(), spec, Place::at(0, 0, true), Extra::default())
}

fn messages(batch: &mut Batch, spec: &QdiscSpec, place: Place, extra: Extra) -> bool {
    match spec {
        QdiscSpec::Netem(s) => queue(batch, "netem", place, |o| netem::options(o, s, place.new, extra)),
        QdiscSpec::Tbf(s) => queue(batch, "tbf", place, |o| shaper::tbf(o, s)),
        QdiscSpec::Htb(s) => htb(batch, s, place),
        QdiscSpec::Pfifo(s) => queue(batch, "pfifo", place, |o| o.words([clamp(s.limit)])),
        QdiscSpec::Bfifo(s) => queue(batch, "bfifo", place, |o| o.words([clamp(s.limit)])),
        QdiscSpec::Red(s) => queue(batch, "red", place, |o| aqm::red(o, s)),
        QdiscSpec::Choke(s) => queue(batch, "choke", place, |o| aqm::choke(o, s)),
        QdiscSpec::Codel(s) => queue(batch, "codel", place, |o| aqm::codel(o, s)),
        QdiscSpec::FqCodel(s) => queue(batch, "fq_codel", place, |o| aqm::fq_codel(o, s)),
        QdiscSpec::Pie(s) => queue(batch, "pie", place, |o| aqm::pie(o, s)),
        QdiscSpec::FqPie(s) => queue(batch, "fq_pie", place, |o| aqm::fq_pie(o, s)),
        QdiscSpec::PfifoHeadDrop(s) => queue(batch, "pfifo_head_drop", place, |o| o.words([clamp(s.limit)])),
        QdiscSpec::Sfq(s) => queue(batch, "sfq", place, |o| fair::sfq(o, s)),
        QdiscSpec::Cake(s) => queue(batch, "cake", place, |o| fair::cake(o, s)),
        QdiscSpec::Fq(s) => queue(batch, "fq", place, |o| fair::fq(o, s)),
        _ => return false,
    }
    true
}

/// htb's queue, which has no parameters that matter, and its class `H:1`, which has them all.
fn htb(batch: &mut Batch, spec: &tcpscape_path::queue::HtbSpec, place: Place) {
    if place.new {
        queue(batch, "htb", place, shaper::htb_queue);
    }
    let class = Place { parent: place.handle, handle: place.handle | 1, ..place };
    batch.push(Message::NewTrafficClass(message("htb", class, |o| shaper::htb_class(o, spec))), class.flags());
}

/// Adds the message about a queue; `fill` makes its options.
fn queue(batch: &mut Batch, kind: &str, place: Place, fill: impl FnOnce(&mut Options)) {
    batch.push(Message::NewQueueDiscipline(message(kind, place, fill)), place.flags());
}

fn message(kind: &str, place: Place, fill: impl FnOnce(&mut Options)) -> TcMessage {
    let mut options = Options::default();
    fill(&mut options);
    // The queues that came last are read strictly, and tc says so of them alone.
    let strict = if kind == "fq_pie" { NLA_F_NESTED } else { 0 };
    let options = DefaultNla::new(TCA_OPTIONS | strict, options.into_bytes());
    TcMessage::from_parts(place.header(), vec![TcAttribute::Kind(kind.to_owned()), TcAttribute::Other(options)])
}

/// Takes a device's own queue away: packets go straight to the device.
pub fn none(batch: &mut Batch, device: i32) {
    let place = Place { device, parent: ROOT, handle: 0, new: true };
    let message = TcMessage::from_parts(place.header(), vec![TcAttribute::Kind("noqueue".to_owned())]);
    batch.push(Message::NewQueueDiscipline(message), REPLACE);
}

/// What plug does. Source: linux/pkt_sched.h (`TCQ_PLUG_*`).
const PLUG_BUFFER: u32 = 0;
const PLUG_RELEASE_INDEFINITE: u32 = 2;
const PLUG_LIMIT: u32 = 3;

/// Adds an open gate that holds at most `limit` bytes.
pub fn new_gate(batch: &mut Batch, place: Place, limit: u64) {
    plug(batch, place, PLUG_LIMIT, limit);
    gate(batch, Place { new: false, ..place }, false);
}

/// Closes a gate, or opens it: then what it holds leaves at once.
pub fn gate(batch: &mut Batch, place: Place, closed: bool) {
    plug(batch, place, if closed { PLUG_BUFFER } else { PLUG_RELEASE_INDEFINITE }, 0);
}

/// Another limit for a gate, B.
pub fn gate_limit(batch: &mut Batch, place: Place, limit: u64) {
    plug(batch, place, PLUG_LIMIT, limit);
}

/// `struct tc_plug_qopt`.
fn plug(batch: &mut Batch, place: Place, action: u32, limit: u64) {
    queue(batch, "plug", place, |o| o.words([action, clamp(limit)]));
}

/// 32 bits, or all ones for more.
fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The scheduler's clock: a tick is 64 ns, and tc counts in whole microseconds before. Source: /proc/net/psched, `000003e8 00000040`.
pub const TICK: u64 = 64;

/// Ticks of whole microseconds, rounded down; all ones for more than fits.
fn ticks(micros: u64) -> u32 {
    clamp((u128::from(micros) * 1000 / u128::from(TICK)).try_into().unwrap_or(u64::MAX))
}
