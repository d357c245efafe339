//! A capture written again with comments on its packets, for Wireshark: every frame keeps its number and its time.
//!
//! Source: draft-ietf-opsawg-pcapng §4.3 (`opt_comment`), RFC 791 (header checksum), RFC 1624 (incremental update of a checksum).
//! What is left out: comments, names and statistics of the capture that was read; with `headers_only` payload, and all bytes of what is not
//! TCP; with pseudonyms also the names of interfaces, and link-layer addresses are 0. Ports and everything else in headers stay.

use crate::pcapng::{self, LinkType, PacketDirection, Seen};
use crate::read::cutter::Cutter;
use crate::read::decode::{read_ip, Ip};
use crate::read::record::{Interface, Record};
use crate::read::Unreadable;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use tcpscape_base::wire::changed;

/// Most addresses that get a pseudonym of their own; all others share the last one.
pub const MOST_ADDRESSES: usize = 1 << 16;

/// Addresses in the order in which they were first seen → addresses of the ranges for benchmarks (RFC 2544) and documentation (RFC 3849).
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    known: HashMap<IpAddr, IpAddr>,
}

impl Pseudonyms {
    /// Those that were given already.
    pub fn new(known: impl IntoIterator<Item = (IpAddr, IpAddr)>) -> Pseudonyms {
        Pseudonyms { known: known.into_iter().collect() }
    }

    /// The pseudonym of an address: always the same.
    pub fn of(&mut self, address: IpAddr) -> IpAddr {
        let next = self.known.len().min(MOST_ADDRESSES) as u32 + 1;
        if let Some(&pseudonym) = self.known.get(&address) {
            return pseudonym;
        }
        let pseudonym = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(V4_BASE + next)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(V6_BASE + u128::from(next))),
        };
        if self.known.len() < MOST_ADDRESSES {
            self.known.insert(address, pseudonym);
        }
        pseudonym
    }
}

/// 198.18.0.0, the range for benchmarks, which has room for 131,072 addresses.
const V4_BASE: u32 = 0xc612_0000;
/// 2001:db8::, the range for documentation.
const V6_BASE: u128 = 0x2001_0db8 << 96;

/// Writes a capture again.
pub struct Annotator {
    records: Cutter,
    copy: Copier,
}

/// What is written, apart from what is read.
struct Copier {
    file: pcapng::Writer<Vec<u8>>,
    /// Interfaces of the capture → those of the file.
    interfaces: HashMap<u32, u32>,
    comments: BTreeMap<u64, String>,
    pseudonyms: Option<Pseudonyms>,
    headers_only: bool,
    frame: u64,
    bytes: Vec<u8>,
}

impl Annotator {
    /// A writer of these comments by frame. With pseudonyms payload is left out whatever `headers_only` says, since it may hold addresses.
    pub fn new(program: &str, comments: BTreeMap<u64, String>, pseudonyms: Option<Pseudonyms>, headers_only: bool) -> Annotator {
        let file = pcapng::Writer::new(Vec::new(), program, "").unwrap_or_else(|_| unreachable!("memory takes everything"));
        let headers_only = headers_only || pseudonyms.is_some();
        let copy = Copier { file, interfaces: HashMap::new(), comments, pseudonyms, headers_only, frame: 0, bytes: Vec::new() };
        Annotator { records: Cutter::default(), copy }
    }

    /// Takes the next bytes of the capture, and gives the next ones of the file.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let copy = &mut self.copy;
        self.records.feed(chunk, &mut |record, interfaces| copy.record(record, interfaces))?;
        Ok(std::mem::take(self.copy.file.out()))
    }

    /// Whether the rest of the capture cannot be read.
    pub fn is_over(&self) -> bool {
        self.records.end.is_some()
    }

    /// The last bytes of the file, once the capture has no more.
    pub fn finish(mut self) -> Result<Vec<u8>, Unreadable> {
        self.records.finish()?;
        Ok(std::mem::take(self.copy.file.out()))
    }
}

impl Copier {
    fn record(&mut self, record: &Record<'_>, interfaces: &[Interface]) {
        self.frame += 1;
        let interface = self.interface(record, interfaces);
        self.bytes.clear();
        match layout(record) {
            Some(layout) => {
                let kept = if self.headers_only { layout.headers_end() } else { record.bytes.len() };
                self.bytes.extend_from_slice(&record.bytes[..kept.min(record.bytes.len())]);
                if let Some(pseudonyms) = &mut self.pseudonyms {
                    layout.rename(&mut self.bytes, pseudonyms);
                }
            }
            None if self.headers_only => {}
            None => self.bytes.extend_from_slice(record.bytes),
        }
        let comment = self.comments.remove(&self.frame).unwrap_or_default();
        let seen = Seen {
            interface,
            at: record.stamp,
            direction: PacketDirection::Unknown,
            length: record.original.max(self.bytes.len() as u32),
            bytes: &self.bytes,
            comment: &comment,
        };
        self.file.packet(&seen).unwrap_or_else(|_| unreachable!("memory takes everything"));
    }

    /// The file's interface for a record, described before its first packet.
    fn interface(&mut self, record: &Record<'_>, interfaces: &[Interface]) -> u32 {
        if let Some(&number) = self.interfaces.get(&record.interface) {
            return number;
        }
        let number = self.interfaces.len() as u32;
        let name = interfaces.get(record.interface as usize).map_or("", |i| i.name.as_str());
        let name = if self.pseudonyms.is_some() { "" } else { name };
        let described = self.file.interface(LinkType::Other(record.link.0), name, "", u32::MAX);
        described.unwrap_or_else(|_| unreachable!("memory takes everything"));
        self.interfaces.insert(record.interface, number);
        number
    }
}

/// Where the headers of a TCP packet are.
struct Layout<'a> {
    /// Bytes of the link layer.
    link: usize,
    /// Those of them that are addresses.
    addresses: Range<usize>,
    ip: Ip<'a>,
}

fn layout<'a>(record: &Record<'a>) -> Option<Layout<'a>> {
    let (payload, _) = record.link.payload(record.bytes).ok()?;
    let link = record.bytes.len() - payload.len();
    let ip = read_ip(payload, record.original.saturating_sub(link as u32)).ok()?;
    Some(Layout { link, addresses: record.link.addresses(), ip })
}

impl Layout<'_> {
    /// Where TCP begins.
    fn tcp(&self) -> usize {
        self.link + (self.ip.size - self.ip.rest) as usize
    }

    /// Where payload begins, if it was captured.
    fn headers_end(&self) -> usize {
        let header = self.ip.tcp.get(12).map_or(20, |offset| usize::from(offset >> 4) * 4);
        self.tcp() + header.max(20).min(self.ip.tcp.len())
    }

    /// Replaces the addresses, with checksums that stay right where they were right.
    fn rename(&self, bytes: &mut [u8], pseudonyms: &mut Pseudonyms) {
        let tcp = self.tcp();
        bytes[self.addresses.clone()].fill(0);
        let new = [self.ip.from, self.ip.to].map(|a| pseudonyms.of(a));
        let (at, old, new) = match (self.ip.from, self.ip.to, new) {
            (IpAddr::V4(from), IpAddr::V4(to), [IpAddr::V4(a), IpAddr::V4(b)]) => {
                (12, [from.octets(), to.octets()].concat(), [a.octets(), b.octets()].concat())
            }
            (IpAddr::V6(from), IpAddr::V6(to), [IpAddr::V6(a), IpAddr::V6(b)]) => {
                (8, [from.octets(), to.octets()].concat(), [a.octets(), b.octets()].concat())
            }
            _ => return,
        };
        bytes[self.link + at..][..new.len()].copy_from_slice(&new);
        if at == 12 {
            update(&mut bytes[self.link + 10..], &old, &new);
        }
        if let Some(checksum) = bytes.get_mut(tcp + 16..tcp + 18) {
            update(checksum, &old, &new);
        }
    }
}

/// The checksum after words were replaced. RFC 1624 §3
fn update(checksum: &mut [u8], old: &[u8], new: &[u8]) {
    let word = |w: &[u8]| u16::from_be_bytes([w[0], w[1]]);
    let pairs = old.chunks_exact(2).zip(new.chunks_exact(2));
    let updated = pairs.fold(word(checksum), |check, (m, n)| changed(check, word(m), word(n)));
    checksum[..2].copy_from_slice(&updated.to_be_bytes());
}
