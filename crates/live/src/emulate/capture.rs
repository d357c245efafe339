//! The packets as a pcapng file, with what the path decided about each (`link::capture`).

use crate::emulator::sys;
use crate::link::{capture, Link};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that can be written, for the end.
pub struct Capture {
    path: PathBuf,
    file: File,
}

impl Capture {
    /// Creates the file before anything runs. An error is one line for the user.
    pub fn create(path: &Path) -> Result<Capture, String> {
        let file = File::create(path).map_err(|e| format!("pcap: {}: {e}; choose a place that can be written", path.display()))?;
        Ok(Capture { path: path.to_owned(), file })
    }

    /// Writes the packets; what is missing of them, as sentences. `zero`: the link's zero by CLOCK_MONOTONIC, ns.
    pub fn write(self, link: &Link, zero: u64, command: &[String]) -> Result<Option<String>, String> {
        let program = concat!("tcpscape ", env!("CARGO_PKG_VERSION"));
        let comment = format!("tcpscape emulate -- {}", command.join(" "));
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
        let zero = wall.saturating_sub(sys::now().saturating_sub(zero));
        let mut out = BufWriter::new(&self.file);
        let about = capture::About { program, comment: &comment, zero };
        let written = capture::write_pcapng(&mut out, link, &about).and_then(|()| out.flush());
        written.map_err(|e| format!("pcap: {}: {e}; choose a place with room", self.path.display()))?;
        Ok(capture::missing(link))
    }
}
