//! The packets at one place of a network, as a pcap file (draft-ietf-opsawg-pcap: nanosecond timestamps, LINKTYPE_RAW).

use crate::sys;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Magic number of a pcap file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets without a link header.
const LINKTYPE_RAW: u32 = 101;
/// Bytes kept of a packet: every header that TCP has.
const SNAPLEN: usize = 160;
/// How often waiting packets are taken, ns: the kernel stamps them when they pass.
const EVERY: u64 = 10_000_000;
/// Packets taken by one system call.
const AT_ONCE: usize = 256;

/// A running recorder.
pub struct Recorder {
    stop: Arc<AtomicBool>,
    handle: JoinHandle<io::Result<()>>,
}

impl Recorder {
    /// Records the calling thread's namespace, or one of its devices, to `path`; timestamps count from `zero` on the monotonic clock, ns.
    pub fn start(path: &Path, device: Option<&CStr>, zero: u64) -> io::Result<Recorder> {
        let socket = sys::packet_socket(device)?;
        let mut file = BufWriter::new(File::create(path)?);
        for word in [MAGIC, 2 | 4 << 16, 0, 0, SNAPLEN as u32, LINKTYPE_RAW] {
            file.write_all(&word.to_le_bytes())?;
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let begin = wall + zero.saturating_sub(sys::now());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let handle = std::thread::spawn(move || {
            let mut packets = sys::Packets::<SNAPLEN>::new(AT_ONCE);
            loop {
                let is_last = stopped.load(Ordering::Acquire);
                let mut count = 0;
                for (seen, bytes) in packets.take(socket.as_fd()) {
                    count += 1;
                    if !matches!(bytes.first(), Some(b) if b >> 4 == 4) {
                        continue; // ARP
                    }
                    let t = seen.at.saturating_sub(begin);
                    for word in [(t / 1_000_000_000) as u32, (t % 1_000_000_000) as u32, bytes.len() as u32, seen.length as u32] {
                        file.write_all(&word.to_le_bytes())?;
                    }
                    file.write_all(bytes)?;
                }
                if count == 0 && is_last {
                    return file.flush();
                }
                if count < AT_ONCE {
                    sys::nap(EVERY);
                }
            }
        });
        Ok(Recorder { stop, handle })
    }

    /// Ends the recording when all that was seen is written; a caveat where the file could not be written.
    pub fn finish(self) -> Option<String> {
        self.stop.store(true, Ordering::Release);
        match self.handle.join() {
            Ok(Ok(())) => None,
            Ok(Err(e)) => Some(format!("pcap: the file is incomplete: {e}")),
            Err(_) => Some("pcap: the recorder died; the file is incomplete".to_owned()),
        }
    }
}
