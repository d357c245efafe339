//! A network device's number, MTU, state and counters, in the calling thread's namespace. Source: rtnetlink(7), proc(5).

use std::fs::File;
use std::io::{self, Read, Seek};
use tcpscape_testbed::netlink::{NetlinkError, Socket};
use tcpscape_testbed::network::links;

fn io_error(error: NetlinkError) -> io::Error {
    match error {
        NetlinkError::Refused { error, .. } | NetlinkError::Io(error) => error,
    }
}

/// A device's number and MTU, bytes.
pub fn find(device: &str) -> io::Result<(i32, u32)> {
    let mut socket = Socket::open()?;
    let number = links::number(&mut socket, device).map_err(io_error)?;
    let mtu = links::mtu(&mut socket, device).map_err(io_error)?;
    number.zip(mtu).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// The counters of a namespace's devices, of the namespace in which it was opened.
pub struct Counters {
    file: File,
    device: String,
    text: String,
}

impl Counters {
    /// Opens those of `device`.
    pub fn open(device: &str) -> io::Result<Counters> {
        let file = File::open("/proc/thread-self/net/dev")?;
        Ok(Counters { file, device: device.to_owned(), text: String::new() })
    }

    /// Packets that the device dropped instead of transmitting them. Zero where the counters cannot be read.
    pub fn drops(&mut self) -> u64 {
        self.text.clear();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut self.text));
        read.map_or(0, |_| drops_of(&self.text, &self.device))
    }
}

/// The column `drop` of what a device transmits in the text of /proc/net/dev.
fn drops_of(text: &str, device: &str) -> u64 {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(device)?.strip_prefix(':'));
    line.and_then(|l| l.split_ascii_whitespace().nth(11)).and_then(|v| v.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_the_twelfth_column() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo\n  fwd1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n   fwd: 1 2 3 77 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(drops_of(text, "fwd"), 99);
        assert_eq!(drops_of(text, "rev"), 0);
    }

    #[test]
    fn loopback_is_number_one_and_a_device_that_is_missing_is_an_error() {
        let (number, mtu) = find("lo").unwrap();
        assert!(number == 1 && mtu > 1000);
        assert_eq!(find("nothing0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert!(Counters::open("lo").is_ok());
    }
}
