//! Queue disciplines as the kernel is told of them: what tc(8) would send for the same words, and the statistics read back.
//!
//! | Question | File |
//! |---|---|
//! | netem's options | [`netem`] |
//! | tbf and htb, rate tables | [`shaper`] |
//! | red, choke, codel, fq_codel, pie, fq_pie | [`aqm`] |
//! | fq, sfq and cake | [`fair`] |
//! | statistics | [`stats`] |
//!
//! Handles: a stage's own queue is `1:`, its child `2:`, and so on; a child hangs below `H:1` of its parent.
//! Source: tc(8), linux/pkt_sched.h, linux/rtnetlink.h; compared byte by byte with messages that tc 6.1 sent (tests/data/tc.json).
//! How it differs from tc: where a netem delay is no whole number of ticks of 64 ns, its nanoseconds follow in
//! `TCA_NETEM_LATENCY64`, so that the kernel keeps exactly what the scenario says.

pub mod aqm;
pub mod fair;
pub mod netem;
pub mod shaper;
pub mod stats;

use crate::netlink::{Batch, CHANGE, CREATE, NESTED, REPLACE};
use tcpscape_path::QdiscSpec;

/// Message types. Source: linux/rtnetlink.h.
pub const RTM_NEWQDISC: u16 = 36;
/// Removes a queue.
const RTM_DELQDISC: u16 = 37;
/// Everything about queues.
pub const RTM_GETQDISC: u16 = 38;
/// A class of a queue.
pub const RTM_NEWTCLASS: u16 = 40;
/// The device's own queue. Linux: TC_H_ROOT.
pub const ROOT: u32 = 0xffff_ffff;
/// Attributes of these messages.
const TCA_KIND: u16 = 1;
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
    batch.message(RTM_DELQDISC, CHANGE, &header(Place { device, parent: ROOT, handle: 0, new: false }));
}

/// Whether the kernel can be told of a queue, its children apart.
pub fn knows(spec: &QdiscSpec) -> bool {
    messages(&mut Batch::new(), spec, Place::at(0, 0, true), Extra::default())
}

fn messages(batch: &mut Batch, spec: &QdiscSpec, place: Place, extra: Extra) -> bool {
    match spec {
        QdiscSpec::Netem(s) => begin(batch, "netem", place, |b| netem::options(b, s, place.new, extra)),
        QdiscSpec::Tbf(s) => begin(batch, "tbf", place, |b| shaper::tbf(b, s)),
        QdiscSpec::Htb(s) => htb(batch, s, place),
        QdiscSpec::Pfifo(s) => begin(batch, "pfifo", place, |b| b.raw(&limit(s.limit))),
        QdiscSpec::Bfifo(s) => begin(batch, "bfifo", place, |b| b.raw(&limit(s.limit))),
        QdiscSpec::Red(s) => begin(batch, "red", place, |b| aqm::red(b, s)),
        QdiscSpec::Choke(s) => begin(batch, "choke", place, |b| aqm::choke(b, s)),
        QdiscSpec::Codel(s) => begin(batch, "codel", place, |b| aqm::codel(b, s)),
        QdiscSpec::FqCodel(s) => begin(batch, "fq_codel", place, |b| aqm::fq_codel(b, s)),
        QdiscSpec::Pie(s) => begin(batch, "pie", place, |b| aqm::pie(b, s)),
        QdiscSpec::FqPie(s) => begin(batch, "fq_pie", place, |b| aqm::fq_pie(b, s)),
        QdiscSpec::PfifoHeadDrop(s) => begin(batch, "pfifo_head_drop", place, |b| b.raw(&limit(s.limit))),
        QdiscSpec::Sfq(s) => begin(batch, "sfq", place, |b| fair::sfq(b, s)),
        QdiscSpec::Cake(s) => begin(batch, "cake", place, |b| fair::cake(b, s)),
        QdiscSpec::Fq(s) => begin(batch, "fq", place, |b| fair::fq(b, s)),
        _ => return false,
    }
    true
}

/// htb's queue, which has no parameters that matter, and its class `H:1`, which has them all.
fn htb(batch: &mut Batch, spec: &tcpscape_path::queue::HtbSpec, place: Place) {
    if place.new {
        begin(batch, "htb", place, shaper::htb_queue);
    }
    let class = Place { parent: place.handle, handle: place.handle | 1, ..place };
    batch.message(RTM_NEWTCLASS, class.flags(), &header(class));
    finish(batch, "htb", |b| shaper::htb_class(b, spec));
}

/// A message about a queue; `options` fills its `TCA_OPTIONS`.
fn begin(batch: &mut Batch, kind: &str, place: Place, options: impl FnOnce(&mut Batch)) {
    batch.message(RTM_NEWQDISC, place.flags(), &header(place));
    finish(batch, kind, options);
}

fn finish(batch: &mut Batch, kind: &str, options: impl FnOnce(&mut Batch)) {
    batch.put_str(TCA_KIND, kind);
    // The queues that came last are read strictly, and tc says so of them alone.
    let strict = if kind == "fq_pie" { NESTED } else { 0 };
    let open = batch.nest(TCA_OPTIONS | strict);
    options(batch);
    batch.end(open);
}

/// Takes a device's own queue away: packets go straight to the device.
pub fn none(batch: &mut Batch, device: i32) {
    batch.message(RTM_NEWQDISC, REPLACE, &header(Place { device, parent: ROOT, handle: 0, new: true }));
    batch.put_str(TCA_KIND, "noqueue");
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
    begin(batch, "plug", place, |b| words(b, [action, clamp(limit)]));
}

/// `struct tcmsg`.
pub fn header(place: Place) -> [u8; 20] {
    let mut h = [0; 20];
    h[4..8].copy_from_slice(&place.device.to_ne_bytes());
    h[8..12].copy_from_slice(&place.handle.to_ne_bytes());
    h[12..16].copy_from_slice(&place.parent.to_ne_bytes());
    h
}

/// `struct tc_fifo_qopt`.
fn limit(limit: u64) -> [u8; 4] {
    clamp(limit).to_ne_bytes()
}

/// 32 bits, or all ones for more.
fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// 32-bit numbers one after the other, as in most of the kernel's option structures.
fn words<const N: usize>(batch: &mut Batch, numbers: [u32; N]) {
    for n in numbers {
        batch.raw(&n.to_ne_bytes());
    }
}

/// The scheduler's clock: a tick is 64 ns, and tc counts in whole microseconds before. Source: /proc/net/psched, `000003e8 00000040`.
pub const TICK: u64 = 64;

/// Ticks of whole microseconds, rounded down; all ones for more than fits.
fn ticks(micros: u64) -> u32 {
    clamp((u128::from(micros) * 1000 / u128::from(TICK)).try_into().unwrap_or(u64::MAX))
}
