//! A file cut into records, however its bytes come.

use super::container::Container;
use super::record::{Interface, Next, Record};
use super::Unreadable;

/// Cuts a file into records. What is kept is the begin of the record that is not whole yet.
#[derive(Debug, Default)]
pub struct Records {
    /// The format, once it is known.
    pub container: Container,
    /// Records so far.
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

impl Records {
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
                None => super::container::refusal(&self.part),
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
