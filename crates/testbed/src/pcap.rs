//! The packets at one place of a network, as a pcap file (draft-ietf-opsawg-pcap: nanosecond timestamps, LINKTYPE_RAW).

use crate::sys::{self, Thread};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Magic number of a pcap file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Packets without a link header.
const LINKTYPE_RAW: u32 = 101;
/// Bytes kept of a packet: every header that TCP has.
const SNAPLEN: usize = 160;
/// How long the recorder waits for its last packets, ns.
const LAST: u64 = 1_000_000;

/// A running recorder.
pub struct Recorder {
    stop: Arc<AtomicBool>,
    running: Arc<AtomicBool>,
    thread: Arc<OnceLock<Thread>>,
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
        let (stop, running, thread) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)), Arc::new(OnceLock::new()));
        let (stopped, runs, publish) = (stop.clone(), running.clone(), thread.clone());
        let handle = std::thread::spawn(move || {
            let _ = publish.set(Thread::current());
            let mut bytes = [0u8; SNAPLEN];
            let mut record = || -> io::Result<()> {
                while !stopped.load(Ordering::Acquire) {
                    let Some(seen) = sys::next_packet(socket.as_fd(), &mut bytes) else { continue };
                    if bytes[0] >> 4 != 4 {
                        continue; // ARP
                    }
                    let (t, kept) = (seen.at.saturating_sub(begin), seen.length.min(SNAPLEN));
                    for word in [(t / 1_000_000_000) as u32, (t % 1_000_000_000) as u32, kept as u32, seen.length as u32] {
                        file.write_all(&word.to_le_bytes())?;
                    }
                    file.write_all(&bytes[..kept])?;
                }
                file.flush()
            };
            let outcome = record();
            runs.store(false, Ordering::Release);
            outcome
        });
        Ok(Recorder { stop, running, thread, handle })
    }

    /// Ends the recording; a caveat where the file could not be written.
    pub fn finish(self) -> io::Result<Option<String>> {
        self.stop.store(true, Ordering::Release);
        while self.running.load(Ordering::Acquire) {
            if let Some(t) = self.thread.get() {
                t.interrupt(&self.running);
            }
            sys::nap(LAST);
        }
        match self.handle.join() {
            Ok(Ok(())) => Ok(None),
            Ok(Err(e)) => Ok(Some(format!("pcap: the file is incomplete: {e}"))),
            Err(_) => Ok(Some("pcap: the recorder died; the file is incomplete".to_owned())),
        }
    }
}
