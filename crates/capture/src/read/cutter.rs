//! A file cut into records, whichever of the two formats it has and however its bytes come; and what is said of a file that has neither.

use super::blocks::{self, Blocks};
use super::legacy::{self, Legacy};
use super::record::{Interface, Next, Record};
use super::Unreadable;

/// Cuts a file into records. What is kept is the begin of the record that is not whole yet.
#[derive(Debug, Default)]
pub struct Cutter {
    /// The format, once it is known.
    pub container: Container,
    /// Cutter so far.
    pub frames: u64,
    /// Bytes of them, headers and unknown blocks included.
    pub bytes: u64,
    /// Why nothing more is read: a sentence without its begin.
    pub end: Option<String>,
    /// The begin of a record whose end has not come yet.
    part: Vec<u8>,
    /// Bytes of an unknown block that are still to be passed over.
    pass: u64,
}

impl Cutter {
    /// Takes the next bytes of the file and hands on every record that is whole, with the interfaces so far.
    pub fn feed(&mut self, mut chunk: &[u8], sink: &mut impl FnMut(&Record<'_>, &[Interface])) -> Result<(), Unreadable> {
        while !chunk.is_empty() && self.end.is_none() {
            if self.pass > 0 {
                let n = self.pass.min(chunk.len() as u64);
                self.pass -= n;
                self.bytes += n;
                chunk = &chunk[n as usize..];
            } else if self.part.is_empty() {
                let taken = self.step(chunk, sink)?;
                if taken == 0 && self.end.is_none() {
                    self.part.extend_from_slice(chunk);
                    return Ok(());
                }
                chunk = &chunk[taken..];
            } else {
                chunk = self.complete(chunk, sink)?;
            }
        }
        Ok(())
    }

    /// What there is to say once there are no more bytes.
    pub fn finish(&mut self) -> Result<(), Unreadable> {
        if let Container::Start = self.container {
            return Err(match &self.end {
                None => refusal(&self.part),
                Some(why) => Unreadable {
                    problem: format!("is a capture whose begin is damaged: {why}"),
                    fix: "capture again: tcpdump -i any -w FILE tcp".to_owned(),
                },
            });
        }
        if self.end.is_none() && (!self.part.is_empty() || self.pass > 0) {
            self.end =
                Some(format!("the file ends in the middle of a record, after frame {}: it was cut or is still being written", self.frames));
        }
        self.container.expect_readable()
    }

    /// Adds what is missing to the part of a record, and reads it once it is whole; returns the bytes after it.
    fn complete<'a>(&mut self, chunk: &'a [u8], sink: &mut impl FnMut(&Record<'_>, &[Interface])) -> Result<&'a [u8], Unreadable> {
        let mut part = std::mem::take(&mut self.part);
        let missing = match self.container.next(&part)? {
            Next::Needs(total) => total.saturating_sub(part.len()).max(1),
            _ => 0,
        };
        let (more, rest) = chunk.split_at(missing.min(chunk.len()));
        part.extend_from_slice(more);
        let taken = self.step(&part, sink)?;
        if taken > 0 {
            part.clear();
            part.shrink_to(PART);
        }
        self.part = part;
        Ok(rest)
    }

    /// Reads all whole records at the begin of `bytes`; returns how many bytes they have, and all where nothing more can be read.
    fn step(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Record<'_>, &[Interface])) -> Result<usize, Unreadable> {
        let mut at = 0;
        while at < bytes.len() {
            let damage = match self.container.next(&bytes[at..])? {
                Next::Needs(_) => break,
                Next::Pass(length) => {
                    let here = length.min((bytes.len() - at) as u64);
                    self.pass = length - here;
                    at += here as usize;
                    continue;
                }
                Next::Damaged(problem) => problem,
                Next::Whole(length) => match self.container.read(&bytes[at..at + length]) {
                    Err(problem) => problem,
                    Ok(record) => {
                        at += length;
                        if let Some(record) = record {
                            self.frames += 1;
                            sink(&record, self.container.interfaces());
                        }
                        continue;
                    }
                },
            };
            self.bytes += at as u64;
            self.end = Some(format!("after frame {} (byte {}) {damage}", self.frames, self.bytes));
            return Ok(bytes.len());
        }
        self.bytes += at as u64;
        Ok(at)
    }
}

/// Bytes of room for the next record that are kept from one to another.
const PART: usize = 1 << 16;

/// The state of reading a file.
#[derive(Debug, Default)]
pub enum Container {
    /// Its first bytes have not come yet.
    #[default]
    Start,
    /// pcap.
    Legacy(Legacy),
    /// pcapng.
    Blocks(Blocks),
}

impl Container {
    /// What the bytes are. A file that is no capture is refused here.
    pub fn next(&self, bytes: &[u8]) -> Result<Next, Unreadable> {
        match self {
            Container::Legacy(file) => Ok(file.next(bytes)),
            Container::Blocks(file) => Ok(file.next(bytes)),
            Container::Start if bytes.len() < 4 => Ok(Next::Needs(4)),
            Container::Start if blocks::begins(bytes) => Ok(blocks::Blocks::default().next(bytes)),
            Container::Start if legacy::begins(bytes) => legacy::header(bytes),
            Container::Start if bytes.len() < HEAD => Ok(Next::Needs(HEAD)),
            Container::Start => Err(refusal(bytes)),
        }
    }

    /// Reads a whole record; None where it is no packet. An error is damage: a sentence without its begin.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Record<'a>>, String> {
        match self {
            Container::Legacy(file) => file.read(bytes).map(Some),
            Container::Blocks(file) => file.read(bytes),
            Container::Start if blocks::begins(bytes) => {
                let mut file = Blocks::default();
                file.read(bytes)?;
                *self = Container::Blocks(file);
                Ok(None)
            }
            Container::Start => {
                *self = Container::Legacy(Legacy::new(bytes)?);
                Ok(None)
            }
        }
    }

    /// `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self {
            Container::Blocks(_) => "pcapng",
            _ => "pcap",
        }
    }

    /// The interfaces so far.
    pub fn interfaces(&self) -> &[Interface] {
        match self {
            Container::Start => &[],
            Container::Legacy(file) => std::slice::from_ref(&file.interface),
            Container::Blocks(file) => &file.interfaces,
        }
    }

    /// Refuses a file all of whose packets have a link layer that nobody reads here.
    pub fn expect_readable(&self) -> Result<(), Unreadable> {
        let used = || self.interfaces().iter().filter(|i| i.frames > 0);
        let unread = used().find(|i| !i.link.is_read());
        match unread {
            Some(first) if used().all(|i| !i.link.is_read()) => Err(first.link.refusal()),
            _ => Ok(()),
        }
    }
}

/// Says what a file is that is no capture.
pub fn refusal(bytes: &[u8]) -> Unreadable {
    let (problem, fix) = OTHERS.iter().find(|(magic, _, _)| bytes.starts_with(magic)).map_or_else(|| unknown(bytes), |o| (o.1, o.2));
    Unreadable { problem: problem.to_owned(), fix: fix.to_owned() }
}

fn unknown(bytes: &[u8]) -> (&'static str, &'static str) {
    let head = &bytes[..bytes.len().min(HEAD)];
    match head.iter().find(|b| !b.is_ascii_whitespace()) {
        None if head.is_empty() => ("is empty", "capture again: tcpdump -i any -w FILE tcp"),
        _ if head.len() < 4 || blocks::begins(head) || legacy::begins(head) => {
            ("is too short for a capture", "capture again: tcpdump -i any -w FILE tcp")
        }
        Some(b'{' | b'[') => {
            ("is JSON, not a capture", "give the packets (tcpdump -w FILE); a browser's .har has requests, and no packets")
        }
        _ if head.iter().all(|&b| b == 9 || b == 10 || b == 13 || (32..127).contains(&b) || b >= 128) => {
            ("is text, not a capture", "capture with tcpdump -w FILE; what tcpdump prints does not have enough in it")
        }
        _ => (
            "is neither pcap nor pcapng",
            "give what tcpdump -w, dumpcap or Wireshark wrote; of another capture program convert it: editcap FILE out.pcapng",
        ),
    }
}

/// First bytes by which a file that is no capture is told: all of them, so that its pieces do not matter.
const HEAD: usize = 512;
const CONVERT: &str = "convert it: editcap FILE out.pcapng";
/// First bytes of other files: what they are, and what to do.
const OTHERS: [(&[u8], &str, &str); 7] = [
    (b"snoop\0\0\0", "is a capture of snoop, which is not read", CONVERT),
    (b"GMBU", "is a capture of Network Monitor, which is not read", CONVERT),
    (b"BZh", "is compressed with bzip2", "unpack it: bunzip2 FILE"),
    (b"\xfd7zXZ\0", "is compressed with xz", "unpack it: unxz FILE"),
    (b"PK\x03\x04", "is a zip archive", "unpack it: unzip FILE"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4", "unpack it: lz4 -d FILE"),
    (b"PAR1", "is Parquet, not a capture", "give the packets (tcpdump -w FILE)"),
];
