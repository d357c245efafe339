//! The packets at one place of a network, as a pcap file (draft-ietf-opsawg-pcap: nanosecond timestamps, LINKTYPE_RAW).

use crate::poll::{Poll, Ready, Timer};
use crate::ring::{Copied, Ring, HANDED_OVER};
use crate::sys;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Magic number of a pcap file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets without a link header.
const LINKTYPE_RAW: u32 = 101;
/// Bytes kept of a packet: every header that TCP has.
const SNAPLEN: usize = 160;
/// What the recorder waits for: packets, and the end.
const PACKETS: u64 = 0;
const END: u64 = 1;

/// A running recorder.
pub struct Recorder {
    end: Arc<Timer>,
    handle: JoinHandle<io::Result<u32>>,
}

impl Recorder {
    /// Records the calling thread's namespace, or one of its devices, to `path`; timestamps count from `zero` on the monotonic clock, ns.
    pub fn start(path: &Path, device: Option<&CStr>, zero: u64) -> io::Result<Recorder> {
        let mut file = BufWriter::new(File::create(path)?);
        for word in [MAGIC, 2 | 4 << 16, 0, 0, SNAPLEN as u32, LINKTYPE_RAW] {
            file.write_all(&word.to_le_bytes())?;
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let begin = wall + zero.saturating_sub(sys::now());
        let (poll, end) = (Poll::new()?, Arc::new(Timer::new()?));
        let mut ring = Ring::new(device, SNAPLEN)?;
        poll.add(ring.as_fd(), PACKETS, libc::EPOLLIN)?;
        poll.add((*end).as_fd(), END, libc::EPOLLIN)?;
        let handle = std::thread::spawn(move || {
            let mut write = |packet: Copied<'_>| write(&mut file, packet, begin);
            loop {
                let is_last = poll.wait(&mut [Ready { events: 0, u64: 0 }; 2])?.iter().any(|ready| ready.u64 == END);
                while ring.take(&mut write)? {}
                if is_last {
                    break;
                }
            }
            file.flush().map(|()| ring.lost())
        });
        Ok(Recorder { end, handle })
    }

    /// Ends the recording when all that was seen is written; a caveat where something is missing in the file.
    pub fn finish(self) -> Option<String> {
        sys::nap(2 * HANDED_OVER);
        if let Err(e) = self.end.set(Some(0)) {
            return Some(format!("pcap: the recorder does not end: {e}"));
        }
        match self.handle.join() {
            Ok(Ok(0)) => None,
            Ok(Ok(lost)) => Some(format!("pcap: {lost} packets came faster than they were written and are missing in the file")),
            Ok(Err(e)) => Some(format!("pcap: the file is incomplete: {e}")),
            Err(_) => Some("pcap: the recorder died; the file is incomplete".to_owned()),
        }
    }
}

/// Writes a packet with its time since `begin`; what is no IPv4 (ARP) is left out.
fn write(file: &mut impl Write, packet: Copied<'_>, begin: u64) -> io::Result<()> {
    if !matches!(packet.bytes.first(), Some(b) if b >> 4 == 4) {
        return Ok(());
    }
    let t = packet.at.saturating_sub(begin);
    for word in [(t / 1_000_000_000) as u32, (t % 1_000_000_000) as u32, packet.bytes.len() as u32, packet.length as u32] {
        file.write_all(&word.to_le_bytes())?;
    }
    file.write_all(packet.bytes)
}
