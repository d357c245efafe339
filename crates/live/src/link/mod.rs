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
//! | `flows`, `segment` | flow numbers, for queues of many flows; TCP segments, for CAKE's filter of ACKs |
//! | `way`, `lane` | a direction: its account, its changes; its pipes |
//! | `emit` | bytes that leave: cut, marked, damaged |
//! | `totals`, [`log`] | what went through: [`Totals`]; what became of each packet: [`Log`] |
//! | [`capture`] | the log with the frames, as pcapng |
//! | `caveats` | what a link cannot do: [`caveats()`] |

pub mod capture;
mod caveats;
mod checksum;
mod emit;
mod flows;
mod frame;
mod header;
mod lane;
pub mod log;
mod parse;
mod segment;
mod totals;
mod way;

use flows::{Flows, NO_FLOW};
use frame::{Cargo, Frame};
use tcpscape_base::{Duration, Packet, Time};
use tcpscape_path::{Direction, Patch, PathSpec, SpecError, StageStats};
use way::Way;

pub use caveats::caveats;
pub use header::{VnetHeader, VNET_HEADER};
pub use log::Log;
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
    /// Whether segments of one super-packet that follow one another and are due when the link is asked leave as one super-packet.
    pub merge: bool,
    /// Where super-packets are decided on as one packet.
    pub whole: Whole,
    /// Whether what becomes of each packet is kept, of at most [`log::MOST_PACKETS`] in each direction: how many bytes of frames are kept whole for
    /// [`capture::write_pcapng`], of further ones their headers.
    pub capture: Option<u64>,
    /// Whether departures are asked for ahead of time, up to [`Link::foresight`].
    pub ahead: bool,
    /// Whether the paths' schedules wait for [`Link::begin`]; otherwise they count from the link's zero.
    pub waits: bool,
}

/// The link. Times are counted from its zero, ns.
pub struct Link {
    ways: [Way; 2],
    flows: Flows,
    /// The packets that leave, and their bytes where they differ from those with which they came.
    leaving: Option<Packet<Cargo>>,
    bytes: Vec<u8>,
}

/// A frame that leaves.
#[derive(Debug)]
pub struct Departure<'a> {
    /// Which way.
    pub direction: Direction,
    /// When it should leave; of several packets the first's, which is due first.
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
        Ok(Link {
            ways: [Way::new(Direction::Forward, forward, options), Way::new(Direction::Reverse, reverse, options)],
            flows: Flows::default(),
            leaving: None,
            bytes: Vec::new(),
        })
    }

    /// How far ahead of the present everything that leaves is known, whatever comes meanwhile; zero unless [`LinkOptions::ahead`] is set.
    pub fn foresight(&self) -> Duration {
        Duration(self.ways.iter().map(Way::foresight_ns).min().unwrap_or(0))
    }

    /// A frame has come: ten bytes of `virtio_net_hdr`, then the packet. A time before an event that has already happened in its direction
    /// counts as that event's.
    pub fn arrive(&mut self, at: Time, direction: Direction, frame: &[u8]) {
        let way = &mut self.ways[direction.index()];
        let Some(frame) = Frame::new(frame, way.meter.totals.packets_in) else { return };
        let flow = frame.ip.map_or(NO_FLOW, |ip| self.flows.number(direction, &ip.ends));
        way.arrive(at, frame, flow);
    }

    /// When `depart` is worth calling: the past if something waits, `None` if nothing will happen without another frame.
    pub fn next_event(&self) -> Option<Time> {
        self.ways.iter().filter_map(Way::next_event).min()
    }

    /// The next frame that is due at or before `now`.
    pub fn depart(&mut self, now: Time) -> Option<Departure<'_>> {
        let next = |way: &Way| way.next_event().unwrap_or(Time::MAX);
        let first = if next(&self.ways[1]) < next(&self.ways[0]) { Direction::Reverse } else { Direction::Forward };
        // The event of the first may be one inside, after which nothing leaves.
        let depart = |d: Direction| Some((d, self.ways[d.index()].depart(now, &mut self.bytes)?));
        let (direction, ((due, p), changed)) = [first, first.back()].into_iter().find_map(depart)?;
        let (arrived, packets) = (p.body.arrived, p.body.count);
        let p = self.leaving.insert(p);
        let frame = if changed { &self.bytes[..] } else { &p.body.frame.bytes[..] };
        Some(Departure { direction, due, arrived, packets, frame })
    }

    /// The paths' schedules count from `at`, which may lie ahead; for a link that waits for it ([`LinkOptions::waits`]).
    pub fn begin(&mut self, at: Time) {
        self.ways.iter_mut().for_each(|way| way.begin(at));
    }

    /// Changes a queue that runs, as `tc qdisc change`: what waits keeps its due time. The error names the field and the fix.
    pub fn change(&mut self, now: Time, direction: Direction, stage: usize, depth: usize, patch: &Patch) -> Result<(), SpecError> {
        self.ways[direction.index()].change(now, stage, depth, patch)
    }

    /// Replaces a direction's path; the new one's schedule counts from `now`. Where a change suffices it is one, as in [`Link::change`], and
    /// ends an outage. Otherwise packets to come meet a new path with random numbers of its own, and those that wait leave by the old one,
    /// whose outages end.
    pub fn replace(&mut self, now: Time, direction: Direction, path: &PathSpec) -> Result<(), SpecError> {
        self.ways[direction.index()].replace(now, path)
    }

    /// The accounts of all queues, with what each holds now: of the sender's host, of the network, of the way back, as in the simulator's
    /// results. Of replaced paths only [`Link::totals`] tells.
    pub fn stats(&self) -> [Vec<StageStats>; 3] {
        let [host, network] = self.ways[0].stats();
        let [_, reverse] = self.ways[1].stats();
        [host, network, reverse]
    }

    /// What went through a direction.
    pub fn totals(&self, direction: Direction) -> Totals {
        self.ways[direction.index()].totals()
    }

    /// What became of the packets of a direction, where [`LinkOptions::capture`] is set.
    pub fn log(&self, direction: Direction) -> Option<&Log> {
        self.ways[direction.index()].log.as_ref()
    }
}

#[cfg(test)]
mod tests;
