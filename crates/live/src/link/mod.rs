//! The emulated link without a clock or a socket: frames in, the decisions of the path, frames out.
//!
//! What it is: each direction is the simulator's [`tcpscape_path::Pipe`] with the same random streams, so that the n-th packet meets the same
//! loss, delay and order for the same seed. What travels are ranges of real frames.
//!
//! ```text
//! arrive(at, frame) → frame (header, parse) → lane (pipes: sender's host, network) → depart(now): joined or cut again (emit) → bytes
//! ```
//!
//! A super-packet (segmentation offload) comes whole, and each packet of MTU size inside is decided on by itself; those that leave together
//! leave as one super-packet again, where that is wanted.
//!
//! | Module | What it is |
//! |---|---|
//! | `header`, `parse`, `checksum` | `virtio_net_hdr`; where a packet's parts are; Internet checksum |
//! | `frame` | a frame as it came, and ranges of its segments |
//! | `flows` | flow numbers, for queues of many flows |
//! | `lane` | the pipes of a direction |
//! | `emit` | bytes that leave: cut, marked, damaged |
//! | `totals` | [`Totals`], what went through |

mod checksum;
mod emit;
mod flows;
mod frame;
mod header;
mod lane;
mod parse;
mod totals;

use flows::{Flows, NO_FLOW};
use frame::{Cargo, Frame};
use lane::{Due, Lane};
use std::sync::Arc;
use tcpscape_base::{Packet, Stream, Time};
use tcpscape_path::{Direction, PathSpec, SpecError, StageStats};

pub use header::{VnetHeader, VNET_HEADER};
pub use parse::Layer;
pub use totals::Totals;

/// Where super-packets are decided on as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whole {
    /// Nowhere: each packet of MTU size inside is decided on by itself.
    #[default]
    Nowhere,
    /// At the sender's own host, as the simulator and Linux do without offloads at the device.
    AtHost,
    /// On the whole path, as the simulator does with offloads.
    Everywhere,
}

/// What a link is besides its path.
#[derive(Clone, Debug, Default)]
pub struct LinkOptions {
    /// Seed of the random streams.
    pub seed: u64,
    /// What frames begin with.
    pub layer: Layer,
    /// Whether segments of one super-packet that are due at the same time leave as one super-packet.
    pub merge: bool,
    /// Where super-packets are decided on as one packet.
    pub whole: Whole,
    /// Whether decisions are kept.
    pub log: bool,
}

/// The link. Times are counted from its zero, ns.
pub struct Link {
    ways: [Way; 2],
    flows: Flows,
    options: LinkOptions,
    /// The packet that leaves, and its bytes where they differ from those with which it came.
    leaving: Option<Packet<Cargo>>,
    bytes: Vec<u8>,
}

/// One direction with its account.
struct Way {
    lane: Lane,
    meter: totals::Meter,
    /// When the latest event happened.
    latest: Time,
    /// A packet that has come out and waits to leave.
    ahead: Option<Due>,
    /// Which bits flip in damaged packets.
    bits: Stream,
}

/// A frame that leaves.
#[derive(Debug)]
pub struct Departure<'a> {
    /// Which way.
    pub direction: Direction,
    /// When it should leave.
    pub due: Time,
    /// When it came.
    pub arrived: Time,
    /// Packets of MTU size in it.
    pub packets: u16,
    /// `virtio_net_hdr` and packet.
    pub frame: &'a [u8],
}

impl Link {
    /// An empty link. Fails with the field and the fix where a path cannot run.
    pub fn new(forward: &PathSpec, reverse: &PathSpec, options: &LinkOptions) -> Result<Link, SpecError> {
        forward.validate()?;
        reverse.validate()?;
        let way = |direction: Direction, spec: &PathSpec| Way {
            lane: Lane::new(direction, spec, options.seed, options.whole),
            meter: totals::Meter::default(),
            latest: Time::ZERO,
            ahead: None,
            bits: Stream::new(options.seed, &format!("{direction}/bits")),
        };
        Ok(Link {
            ways: [way(Direction::Forward, forward), way(Direction::Reverse, reverse)],
            flows: Flows::default(),
            options: options.clone(),
            leaving: None,
            bytes: Vec::new(),
        })
    }

    /// A frame has come: ten bytes of `virtio_net_hdr`, then the packet. A time before an event that has already happened in its direction
    /// counts as that event's.
    pub fn arrive(&mut self, at: Time, direction: Direction, frame: &[u8]) {
        let way = &mut self.ways[direction.index()];
        let Some(frame) = Frame::new(self.options.layer, frame, way.meter.totals.packets_in) else { return };
        let flow = frame.ip.map_or(NO_FLOW, |ip| self.flows.number(direction, &ip.ends));
        let at = way.not_before_the_latest(at);
        let (count, ecn) = (frame.count(), frame.ecn());
        let size = frame.size(0, count);
        way.meter.arrives(at, count, size);
        way.meter.totals.uncut += u64::from(frame.cut.is_none() && frame.header.gso_size > 0);
        let (id, body) = (frame.number, Cargo { frame: Arc::new(frame), first: 0, count, arrived: at });
        way.lane.push(at, Packet { id, flow, size, segs: count, ecn, edt: Time::ZERO, corrupt: false, body });
    }

    /// When `depart` is worth calling: the past if something waits, `None` if nothing will happen without another frame.
    pub fn next_event(&self) -> Option<Time> {
        self.ways.iter().filter_map(Way::next_event).min()
    }

    /// The next frame that is due at or before `now`.
    pub fn depart(&mut self, now: Time) -> Option<Departure<'_>> {
        loop {
            let next = |w: &Way| w.next_event().unwrap_or(Time::MAX);
            let direction = if next(&self.ways[1]) < next(&self.ways[0]) { Direction::Reverse } else { Direction::Forward };
            // The other direction's event may be one inside, from which nothing leaves.
            let (direction, (due, p)) =
                [direction, direction.back()].into_iter().find_map(|d| Some((d, self.ways[d.index()].depart(now, self.options.merge)?)))?;
            let way = &mut self.ways[direction.index()];
            let plain = emit::untouched(&p);
            if !plain && !emit::write(&p, &mut way.bits, &mut self.bytes) {
                way.meter.totals.drops_damaged += 1;
                continue;
            }
            way.meter.departs(due, &p);
            let (arrived, packets) = (p.body.arrived, p.body.count);
            let p = self.leaving.insert(p);
            let frame = if plain { &p.body.frame.bytes[..] } else { &self.bytes[..] };
            return Some(Departure { direction, due, arrived, packets, frame });
        }
    }

    /// The accounts of all queues, with what each holds now: of the sender's host, of the network, of the way back, as in the simulator's
    /// results.
    pub fn stats(&self) -> [Vec<StageStats>; 3] {
        let [host, network] = self.ways[0].lane.stats();
        let [_, reverse] = self.ways[1].lane.stats();
        [host, network, reverse]
    }

    /// What went through a direction.
    pub fn totals(&self, direction: Direction) -> Totals {
        let way = &self.ways[direction.index()];
        let held = way.lane.held() + u64::from(way.ahead.is_some());
        way.meter.report(held, way.lane.stats().iter().flatten())
    }
}

impl Way {
    fn not_before_the_latest(&mut self, at: Time) -> Time {
        self.meter.totals.belated += u64::from(at < self.latest);
        self.latest = at.max(self.latest);
        self.latest
    }

    fn next_event(&self) -> Option<Time> {
        self.ahead.as_ref().map(|(due, _)| *due).or_else(|| self.lane.next_event())
    }

    /// The next packet that is due; with `merge`, joined by those that follow it in its super-packet and are due at the same time.
    fn depart(&mut self, now: Time, merge: bool) -> Option<Due> {
        let (due, mut p) = self.ahead.take().or_else(|| self.lane.pop(now, &mut self.latest))?;
        while merge && p.body.frame.cut.is_some() && !p.body.is_whole() {
            let Some(next) = self.lane.pop(due, &mut self.latest) else { break };
            if next.0 == due && follows(&p, &next.1) {
                p.body.count += next.1.body.count;
            } else {
                self.ahead = Some(next);
                break;
            }
        }
        Some((due, p))
    }
}

/// Whether `next` leaves in one super-packet with `p`.
fn follows(p: &Packet<Cargo>, next: &Packet<Cargo>) -> bool {
    Arc::ptr_eq(&p.body.frame, &next.body.frame)
        && next.body.first == p.body.first + p.body.count
        && p.ecn == next.ecn
        && !p.corrupt
        && !next.corrupt
}

#[cfg(test)]
mod tests;
