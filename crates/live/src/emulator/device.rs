//! A network device's number, MTU, state and counters, in the calling thread's namespace. Source: netdevice(7), proc(5).

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tcpscape_testbed::netlink::{Batch, NetlinkError, Socket};
use tcpscape_testbed::network::links;
use tcpscape_testbed::qdisc;

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A request about a device; an error names it.
pub fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.is_empty() || device.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{device:?} is no name of a network device")));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Carries out a request of netdevice(7).
fn ask(device: &str, command: libc::Ioctl) -> io::Result<libc::ifreq> {
    // SAFETY: a fresh descriptor that nobody else owns.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        check(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    let mut request = request(device)?;
    // SAFETY: a request that names a device; the kernel reads and writes within it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut request) })?;
    Ok(request)
}

/// Its number.
pub fn index(device: &str) -> io::Result<i32> {
    let answer = ask(device, libc::SIOCGIFINDEX as libc::Ioctl)?;
    // SAFETY: this request fills this field.
    Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
}

/// Its MTU, bytes.
pub fn mtu(device: &str) -> io::Result<usize> {
    let answer = ask(device, libc::SIOCGIFMTU as libc::Ioctl)?;
    // SAFETY: this request fills this field.
    Ok(unsafe { answer.ifr_ifru.ifru_mtu }.max(0) as usize)
}

/// Gives it an MTU (bytes), room for so many packets that wait and no queue discipline, and brings it up. By netlink: the older calls
/// want capabilities outside of user namespaces.
pub fn set_up(device: &str, mtu: u32, packets: u32) -> io::Result<()> {
    let number = index(device)?;
    let mut batch = Batch::new();
    links::up_with(&mut batch, number, mtu, packets);
    qdisc::none(&mut batch, number);
    Socket::open()?.request(&mut batch).map_err(|e| match e {
        NetlinkError::Refused { error, .. } | NetlinkError::Io(error) => error,
    })
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

    /// Packets that the device dropped: (received, transmitted). Zero where the counters cannot be read.
    pub fn drops(&mut self) -> (u64, u64) {
        self.text.clear();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut self.text));
        read.map_or((0, 0), |_| drops_of(&self.text, &self.device))
    }
}

/// The columns `drop` of a device in the text of /proc/net/dev.
fn drops_of(text: &str, device: &str) -> (u64, u64) {
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix(device)?.strip_prefix(':'));
    let column = |i| line.and_then(|l| l.split_ascii_whitespace().nth(i)).and_then(|v| v.parse().ok()).unwrap_or(0);
    (column(3), column(11))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_the_fourth_and_the_twelfth_column() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo\n  fwd1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n   fwd: 1 2 3 77 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(drops_of(text, "fwd"), (77, 99));
        assert_eq!(drops_of(text, "rev"), (0, 0));
    }

    #[test]
    fn loopback_has_number_one_and_a_name_that_is_too_long_is_refused() {
        assert_eq!(index("lo").unwrap(), 1);
        assert!(mtu("lo").unwrap() > 1000);
        assert!(index("a-name-that-is-too-long").unwrap_err().to_string().contains("no name"));
        assert!(Counters::open("lo").is_ok());
    }
}
