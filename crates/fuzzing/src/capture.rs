//! Target `capture`: files that claim to be captures, read and analysed.
//!
//! Bytes that begin like a capture are one as they are; others are choices, which make a file of connections and damage it. What must hold:
//! any pieces give the same packets and the same report; frames count up, and the time of an interface never runs backwards; every packet of
//! the file is read or counted by the reason why not; a refusal is one short line; the tables of the flows stay within their budget, with
//! columns of one length.

use crate::choices::Choices;
use std::collections::HashMap;
use tcpscape_base::{Column, Row, Time};
use tcpscape_capture::flow::{Analyzer, Budget, FlowRecord};
use tcpscape_capture::packet::Packet;
use tcpscape_capture::read::{ReadReport, Reader, Unreadable};

/// Most packets of a made file.
const MOST: u32 = 300;
/// Rows, connections, flows and outstanding segments: few, so that files of this size reach the bounds.
const BUDGET: Budget = Budget { rows: 64, connections: 4, flows: 6, outstanding: 32, events: 1 << 10, bytes: 1 << 20 };
/// Rows beyond the budget that a table may have while it is filled: rows are counted now and then.
const SLACK: usize = 5_000;
/// First bytes of captures.
const MAGICS: [[u8; 4]; 6] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
];

/// The target.
pub fn check(data: &[u8]) {
    let file = file(data);
    let whole = read(&file, usize::MAX);
    let pieces = read(&file, 1 + data.len() % 61);
    assert_eq!(whole, pieces, "pieces of a file give something else than the whole");
    match whole {
        Ok((packets, report)) => {
            check_packets(&packets, &report);
            check_flows(&packets);
        }
        Err(refusal) => {
            let line = refusal.to_string();
            assert!(line.len() < 300 && !line.contains('\n') && line.contains("; "), "{line}");
        }
    }
}

/// The capture that bytes are, or make.
pub fn file(data: &[u8]) -> Vec<u8> {
    if MAGICS.iter().any(|m| data.starts_with(m)) {
        data.to_vec()
    } else {
        made(&mut Choices::new(data))
    }
}

type Result = std::result::Result<(Vec<Packet>, ReadReport), Unreadable>;

fn read(file: &[u8], piece: usize) -> Result {
    let mut packets = Vec::new();
    let mut reader = Reader::new();
    for bytes in file.chunks(piece) {
        reader.feed(bytes, &mut |p| packets.push(*p))?;
    }
    Ok((packets, reader.finish()?))
}

fn check_packets(packets: &[Packet], report: &ReadReport) {
    assert_eq!(packets.len() as u64, report.packets);
    assert_eq!(report.frames, report.packets + report.skipped.values().sum::<u64>(), "every frame is read or counted: {report:?}");
    assert_eq!(report.is_whole, !report.notes.iter().any(|n| n.contains("not read to its end")), "{report:?}");
    let mut last: HashMap<u32, Time> = HashMap::new();
    let mut frame = 0;
    for p in packets {
        assert!(p.frame > frame && p.frame <= report.frames, "{p:?}");
        frame = p.frame;
        // Packets of the interface that a header of `any` names share its clock with the others of the file's interface.
        let before = last.insert(p.interface, p.at).unwrap_or_default();
        assert!(p.at >= before, "time runs backwards: {before:?}, {p:?}");
        assert!(p.len < p.size && usize::from(p.options.block_count) <= p.options.blocks.len(), "{p:?}");
    }
}

fn check_flows(packets: &[Packet]) {
    let mut analyzer = Analyzer::new(BUDGET);
    packets.iter().for_each(|p| analyzer.packet(p));
    let (flows, totals) = analyzer.finish();
    assert_eq!(totals.packets, packets.len() as u64);
    assert!(flows.len() <= BUDGET.flows, "{} flows", flows.len());
    flows.iter().for_each(check_flow);
    let rows: usize = flows.iter().map(|f| f.segments.len() + f.acks.len()).sum();
    assert!(rows <= BUDGET.rows + SLACK, "{rows} rows");
    assert!(flows.windows(2).all(|w| w[0].facts.bytes >= w[1].facts.bytes), "the flow with most bytes is not first");
}

fn check_flow(flow: &FlowRecord) {
    fn same_length<R: Row>(rows: &[R]) {
        for Column { name, kind, bytes } in R::columns(rows) {
            assert_eq!(bytes.len(), rows.len() * kind.size, "{name}");
        }
    }
    same_length(&flow.segments);
    same_length(&flow.acks);
    same_length(&flow.events);
    assert!(flow.limits.iter().all(|i| i.from <= i.to), "{:?}", flow.limits);
    assert!(flow.limits.windows(2).all(|w| w[0].to <= w[1].from), "{:?}", flow.limits);
    assert!(flow.facts.seconds >= 0.0 && flow.facts.goodput_mbps.map_or(true, f64::is_finite), "{:?}", flow.facts);
    assert!(flow.facts.json().is_object());
}

/// A file of connections; in one of three cases with damage.
fn made(c: &mut Choices<'_>) -> Vec<u8> {
    // Drawn first, since whatever is left of the bytes goes into packets.
    let damages: Vec<[u32; 3]> = if c.one_in(3) { (0..=c.below(4)).map(|_| [c.any(), c.below(4), c.any()]).collect() } else { Vec::new() };
    let mut file = File::new(c);
    let mut ends = [End::new(c), End::new(c), End::new(c)];
    let mut now = u64::from(c.any()) << c.below(30);
    for _ in 0..MOST {
        if c.is_empty() {
            break;
        }
        now = match c.below(40) {
            0 => c.any_u64(),
            1 => now.saturating_sub(u64::from(c.any())),
            _ => now.saturating_add(u64::from(c.size(1 << 30))),
        };
        let end = c.below(3) as usize;
        let packet = ends[end].packet(c, end as u8);
        file.packet(c, now, &packet);
    }
    damages.iter().for_each(|&[place, kind, value]| file.damage(place, kind, value));
    file.bytes
}

/// Both ends of a connection: how far each has got.
struct End {
    next: [u32; 2],
    is_v6: bool,
}

impl End {
    fn new(c: &mut Choices<'_>) -> End {
        // Near the wrap of sequence numbers in one of two cases.
        let first = |c: &mut Choices<'_>| if c.one_in(2) { u32::MAX - c.size(100_000) } else { c.any() };
        End { next: [first(c), first(c)], is_v6: c.one_in(3) }
    }

    /// The next IP packet of one of them: most carry on where the last one ended.
    fn packet(&mut self, c: &mut Choices<'_>, number: u8) -> Vec<u8> {
        let side = usize::from(c.one_in(3));
        let len = if c.one_in(3) { 0 } else { c.pick(&[1_448, 1, 100, 1_448, 14_480, 65_000]) };
        let jump = c.pick(&[0, 0, 0, 0, 0, 0, 1_448, 2_896, 0x8000_0000, u32::MAX, 0u32.wrapping_sub(1_448), 0u32.wrapping_sub(14_480)]);
        let seq = self.next[side].wrapping_add(jump);
        if jump != u32::MAX {
            self.next[side] = seq.wrapping_add(len);
        }
        let ack = self.next[1 - side].wrapping_sub(c.pick(&[0, 0, 0, 1_448, 14_480, 1, 0x7fff_ffff]));
        let flags = c.pick(&[0x10, 0x10, 0x18, 0x10, 0x02, 0x12, 0x11, 0x04, 0x14, 0x52, 0xd0, 0x00]);
        let options = options(c, ack, flags & 2 != 0);
        let mut tcp = Vec::new();
        let ports = if side == 0 { [40_000, 443 + u16::from(number)] } else { [443 + u16::from(number), 40_000] };
        ports.iter().for_each(|p| tcp.extend(p.to_be_bytes()));
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, flags]);
        tcp.extend((c.pick(&[0, 1, 501, 0xffff, 8_192]) as u16).to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        let total = tcp.len() + len as usize;
        tcp.resize(total.min(tcp.len() + 8), 0);
        self.ip(c, side as u8, total, &tcp)
    }

    fn ip(&self, c: &mut Choices<'_>, side: u8, total: usize, tcp: &[u8]) -> Vec<u8> {
        let (ecn, ttl) = (c.below(4) as u8, c.pick(&[64, 63, 1, 255]));
        let mut ip = if self.is_v6 {
            let mut ip = vec![0x60, ecn << 4, 0, 0];
            ip.extend((total as u16).to_be_bytes());
            ip.extend([6, ttl]);
            for last in [side, 1 - side] {
                ip.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            ip
        } else {
            let length = if c.one_in(20) { 0 } else { (total + 20).min(65_535) as u16 };
            let mut ip = vec![0x45, ecn];
            ip.extend(length.to_be_bytes());
            ip.extend((c.size(65_535) as u16).to_be_bytes());
            ip.extend([if c.one_in(20) { 0x20 } else { 0x40 }, 0, ttl, 6, 0, 0]);
            ip.extend([10, 0, 0, side, 10, 0, 0, 1 - side]);
            ip
        };
        ip.extend(tcp);
        ip
    }
}

/// Options that TCP has, at most 40 bytes of them.
fn options(c: &mut Choices<'_>, ack: u32, is_syn: bool) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    if is_syn {
        out.extend([2, 4, 5, 0xb4, 4, 2, 1, 3, 3, c.below(20) as u8, 1, 1]);
    }
    if !c.one_in(3) {
        out.extend([1, 1, 8, 10]);
        out.extend(c.size(u32::MAX).to_be_bytes());
        out.extend(c.size(u32::MAX).to_be_bytes());
    }
    if c.one_in(3) && out.len() <= 12 {
        let blocks = 1 + c.below(3);
        out.extend([1, 1, 5, 2 + 8 * blocks as u8]);
        for _ in 0..blocks {
            let left = ack.wrapping_add(c.pick(&[1_448, 2_896, 0, 0u32.wrapping_sub(1_448), 0x4000_0000]));
            out.extend(left.to_be_bytes());
            out.extend(left.wrapping_add(c.pick(&[1_448, 14_480, 0, u32::MAX])).to_be_bytes());
        }
    }
    if c.one_in(20) {
        out.extend([c.any() as u8, c.any() as u8, 0, 0]);
    }
    out.truncate(40);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A file that is being written.
struct File {
    bytes: Vec<u8>,
    is_big: bool,
    is_blocks: bool,
    link: u16,
    snap: u32,
}

impl File {
    fn new(c: &mut Choices<'_>) -> File {
        let link = if c.one_in(20) { 127 } else { c.pick(&[101, 1, 113, 276, 0, 228]) };
        let mut file =
            File { bytes: Vec::new(), is_big: c.one_in(2), is_blocks: c.one_in(2), link, snap: c.pick(&[65_535, 65_535, 128, 96, 60]) };
        if file.is_blocks {
            file.section(c);
        } else {
            file.u32(c.pick(&[0xa1b2_c3d4, 0xa1b2_3c4d]));
            [0x0004_0002, 0, 0, 65_535, u32::from(link)].iter().for_each(|&v| file.u32(v));
        }
        file
    }

    fn section(&mut self, c: &mut Choices<'_>) {
        self.block(0x0a0d_0d0a, |f| [0x1a2b_3c4d, 1, u32::MAX, u32::MAX].iter().for_each(|&v| f.u32(v)));
        for _ in 0..2 {
            let (link, resolution) = (u32::from(self.link), c.pick(&[9, 6, 3, 12, 0x80 | 20, 0]));
            self.block(1, |f| {
                f.u32(link);
                f.u32(0);
                f.u32(if f.is_big { 0x0009_0001 } else { 0x0001_0009 });
                f.bytes.extend([resolution, 0, 0, 0]);
                f.u32(0);
            });
        }
    }

    fn packet(&mut self, c: &mut Choices<'_>, units: u64, ip: &[u8]) {
        let mut bytes = vec![
            0u8;
            match self.link {
                1 => 12,
                113 => 14,
                _ => 0,
            }
        ];
        match self.link {
            1 | 113 => bytes.extend(if ip[0] >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] }),
            276 => {
                bytes.extend(if ip[0] >> 4 == 6 { [0x86, 0xdd] } else { [0x08, 0x00] });
                bytes.extend([0, 0, 0, 0, 0, c.below(3) as u8]);
                bytes.resize(20, 0);
            }
            0 => bytes.extend([if ip[0] >> 4 == 6 { 10 } else { 2 }, 0, 0, 0]),
            _ => {}
        }
        bytes.extend(ip);
        let original = bytes.len() as u32 + c.size(70_000);
        bytes.truncate(self.snap as usize);
        if !self.is_blocks {
            [(units >> 32) as u32, units as u32, bytes.len() as u32, original].iter().for_each(|&v| self.u32(v));
            self.bytes.extend(bytes);
            return;
        }
        if c.one_in(30) {
            self.is_big ^= true;
            self.section(c);
        }
        let interface = u32::from(c.one_in(4));
        self.block(6, |f| {
            [interface, (units >> 32) as u32, units as u32, bytes.len() as u32, original].iter().for_each(|&v| f.u32(v));
            f.bytes.extend(&bytes);
        });
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut File)) {
        self.u32(kind);
        let at = self.bytes.len();
        self.u32(0);
        body(self);
        self.bytes.resize(at - 4 + (self.bytes.len() - at + 4).next_multiple_of(4), 0);
        let length = (self.bytes.len() - at + 8) as u32;
        self.u32(length);
        let end = self.bytes.len();
        self.bytes.copy_within(end - 4..end, at);
    }

    fn u32(&mut self, v: u32) {
        self.bytes.extend(if self.is_big { v.to_be_bytes() } else { v.to_le_bytes() });
    }

    fn damage(&mut self, place: u32, kind: u32, value: u32) {
        if self.bytes.is_empty() {
            return;
        }
        let at = place as usize % self.bytes.len();
        let more = value as usize >> 8;
        match kind {
            0 => self.bytes.truncate(at.max(4)),
            1 => self.bytes[at] ^= 1 << (value & 7),
            2 => self.bytes[at..].iter_mut().take(1 + more % 4).for_each(|b| *b = value as u8),
            _ => drop(self.bytes.drain(at..(at + 1 + more % 40).min(self.bytes.len()))),
        }
    }
}
