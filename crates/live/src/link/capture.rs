//! The emulator's view as a capture: each packet where it came and where it left, with what was decided about it as a comment.
//!
//! Source: draft-ietf-opsawg-pcapng (`opt_comment`). Interface 0 is the emulator's on the sender's side, interface 1 that on the receiver's.
//! Super-packets appear cut to MTU size, as they were decided on, each with its comment. Bytes are those of the frames; a transport
//! checksum that the sender left to its device is as incomplete as the emulator saw it. Of a packet that came when the budget for whole
//! frames was used up the headers are kept.
//! What it does not model: what is on the wires between the emulator and the hosts.

use super::emit;
use super::frame::{Cargo, Frame};
use super::header::VNET_HEADER;
use super::log::{Fate, Log, MOST_PACKETS};
use super::Link;
use std::io::{self, Write};
use std::sync::Arc;
use tcpscape_base::{Duration, Time};
use tcpscape_capture::pcapng::{LinkType, PacketDirection, Seen, Writer};
use tcpscape_path::Direction;

/// Largest packet: what a super-packet that is not cut may have.
const SNAPLEN: u32 = 1 << 18;

/// What a capture tells besides its packets.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Which program made it.
    pub program: &'a str,
    /// A comment on the whole file.
    pub comment: &'a str,
    /// The link's zero in ns since 1970.
    pub zero: u64,
}

/// A line of the capture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    at: Time,
    direction: Direction,
    /// The packet's number.
    number: u64,
    /// The number of the event, where it left.
    event: Option<usize>,
}

/// Writes the packets of a link that kept them ([`super::LinkOptions::capture`]).
pub fn write_pcapng<W: Write>(out: W, link: &Link, about: &About<'_>) -> io::Result<()> {
    let mut file = Writer::new(out, about.program, about.comment)?;
    file.interface(LinkType::Ethernet, "sender", "the emulator's device on the sender's side", SNAPLEN)?;
    file.interface(LinkType::Ethernet, "receiver", "the emulator's device on the receiver's side", SNAPLEN)?;
    let mut lines = Vec::new();
    let mut fates = [Vec::new(), Vec::new()];
    for direction in Direction::BOTH {
        let Some(log) = link.log(direction) else { continue };
        lines.extend((0u64..).zip(&log.packets).map(|(number, p)| Line { at: p.at, direction, number, event: None }));
        lines.extend(log.events.iter().enumerate().filter_map(|(i, e)| match e.fate {
            Fate::Left { sent, .. } => Some(Line { at: sent, direction, number: e.number, event: Some(i) }),
            _ => None,
        }));
        fates[direction.index()] = by_packet(log);
    }
    lines.sort_unstable();
    let mut bytes = Vec::new();
    for line in lines {
        let way = &link.ways[line.direction.index()];
        let Some(log) = &way.log else { continue };
        let comment = match line.event {
            None => arrived(log, &fates[line.direction.index()], line.number, line.direction, |stage| way.queue_name(stage)),
            Some(event) => left(&log.events[event].fate, line.number),
        };
        let Some(length) = frame(log, &line, &mut bytes) else { continue };
        let at = Time(about.zero.saturating_add(line.at.0));
        let (interface, direction) = side(&line);
        file.packet(&Seen { interface, at, direction, length, bytes: &bytes[VNET_HEADER..], comment: &comment })?;
    }
    file.finish()
}

/// Says that packets are missing in the capture, where some are.
pub fn missing(link: &Link) -> Option<String> {
    let beyond: u64 = Direction::BOTH.iter().filter_map(|&d| link.log(d)).map(|log| log.beyond).sum();
    (beyond > 0).then(|| format!("the capture has the first {MOST_PACKETS} packets of each direction; {beyond} further ones are not in it"))
}

/// Interface and direction of a line.
fn side(line: &Line) -> (u32, PacketDirection) {
    match (line.direction, line.event) {
        (Direction::Forward, None) => (0, PacketDirection::Inbound),
        (Direction::Forward, Some(_)) => (1, PacketDirection::Outbound),
        (Direction::Reverse, None) => (1, PacketDirection::Inbound),
        (Direction::Reverse, Some(_)) => (0, PacketDirection::Outbound),
    }
}

/// The numbers of each packet's events: (packet, event), in order.
fn by_packet(log: &Log) -> Vec<(u64, usize)> {
    let mut all: Vec<(u64, usize)> = log.events.iter().enumerate().map(|(i, e)| (e.number, i)).collect();
    all.sort_unstable();
    all
}

/// The packet of a line as it came, or as it left; its whole length. `None` where its frame was not kept.
fn frame(log: &Log, line: &Line, out: &mut Vec<u8>) -> Option<u32> {
    let number = line.number;
    let place = log.frames.partition_point(|f| f.number <= number).checked_sub(1)?;
    let frame = &log.frames[place];
    let first = u16::try_from(number - frame.number).ok().filter(|n| *n < frame.count())?;
    let cargo = Cargo { frame: Arc::clone(frame), first, count: 1, arrived: Time::ZERO };
    let (marked, damaged) = match line.event.map(|event| log.events[event].fate) {
        Some(Fate::Left { marked, damaged, .. }) => (marked, damaged),
        _ => (false, None),
    };
    emit::write(&cargo, marked, out);
    if let Some(bit) = damaged {
        emit::complete(out);
        emit::flip(bit, out);
    }
    Some(length(frame, &cargo))
}

fn length(frame: &Frame, cargo: &Cargo) -> u32 {
    let headers = frame.cut.map_or(0, |cut| cut.headers);
    match frame.cut {
        Some(_) => (headers + frame.payload(cargo.first, 1).len()) as u32,
        None => frame.len as u32,
    }
}

/// What became of a packet, for where it came.
fn arrived(log: &Log, fates: &[(u64, usize)], number: u64, direction: Direction, queue: impl Fn(usize) -> &'static str) -> String {
    let came = log.packets[number as usize].at;
    let from = fates.partition_point(|f| f.0 < number);
    let mine = fates[from..].iter().take_while(|f| f.0 == number);
    let told: Vec<String> = mine
        .map(|(_, event)| match log.events[*event].fate {
            Fate::Dropped { at, stage, cause } => {
                let (queue, after) = (queue(stage), later(came, at));
                format!("dropped: {queue} {} at {direction} stage {stage}, after {after}", cause.name())
            }
            Fate::Left { due, sent, marked, damaged } => {
                let more = [(marked, ", marked CE"), (damaged.is_some(), ", a bit flipped")];
                let more: String = more.into_iter().filter(|m| m.0).map(|m| m.1).collect();
                format!("due +{}, sent +{}{more}", later(came, due), later(came, sent))
            }
            Fate::Unseen { due } => format!("dropped: damaged where no checksum would tell, after {}", later(came, due)),
        })
        .collect();
    let told = if told.is_empty() { "still inside at the end".to_owned() } else { told.join("; copy: ") };
    format!("{direction} packet {number}: {told}")
}

/// How late a packet left, for where it did.
fn left(fate: &Fate, number: u64) -> String {
    match fate {
        Fate::Left { due, sent, .. } => format!("packet {number}, {:.3} ms late", sent.since(*due).0 as f64 / 1e6),
        _ => format!("packet {number}"),
    }
}

fn later(from: Time, to: Time) -> String {
    let Duration(ns) = to.since(from);
    format!("{:.3} ms", ns as f64 / 1e6)
}
