//! rtnetlink: messages with nested attributes, several in one `sendmsg`, errors with the kernel's own explanation, dumps.
//!
//! What it is: [`Batch`] builds requests, [`Socket`] sends them into the network namespace in which it was opened and
//! collects answers, [`attributes`] takes answers apart. A batch is acknowledged once, at its end: errors come in any case.
//! Source: netlink(7), rtnetlink(7), linux/netlink.h.
//! What it does not do: multicast groups, other families, resuming an interrupted dump.

use socket2::{Domain, Protocol, Type};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of `struct nlmsghdr` and of `struct nlattr`.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// Room for one answer, bytes: the kernel makes dumps fit, and an error repeats its request (here at most some 10 KiB).
const ROOM: usize = 64 << 10;
/// Sizes are rounded up to this. Linux: NLMSG_ALIGNTO, NLA_ALIGNTO.
const ALIGN: usize = 4;
/// Set in the type of an attribute that holds attributes. Linux: NLA_F_NESTED.
pub const NESTED: u16 = libc::NLA_F_NESTED as u16;

/// `flags` of a request that creates something new.
pub const CREATE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
/// `flags` of a request that makes something in the place of what is there.
pub const REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
/// `flags` of a request that changes what is there.
pub const CHANGE: u16 = 0;
/// `flags` of a request for everything of a kind.
const DUMP: u16 = libc::NLM_F_DUMP as u16;

/// What the kernel refused, or why it could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel's own explanation (extended acknowledgement) and its error number.
    #[error("{}", refusal(.text, .error))]
    Refused {
        /// Which message of the batch, from 0.
        message: usize,
        /// The explanation, empty when there is none.
        text: String,
        /// The error number.
        error: io::Error,
    },
    /// The socket failed.
    #[error("netlink: {0}")]
    Io(#[from] io::Error),
}

fn refusal(text: &str, error: &io::Error) -> String {
    match text {
        "" => error.to_string(),
        text => format!("{} ({error})", text.trim_end_matches('.')),
    }
}

/// Requests that travel together, in order.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// Where each message begins.
    starts: Vec<usize>,
}

/// An attribute whose end is still to come: see [`Batch::nest`].
#[derive(Debug)]
#[must_use]
pub struct Open(usize);

impl Batch {
    /// Nothing yet.
    pub fn new() -> Batch {
        Batch::default()
    }
    /// Whether it has no message.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
    /// Number of messages.
    pub fn len(&self) -> usize {
        self.starts.len()
    }
    /// Forgets the messages, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }
    /// Begins a message: its type, its flags besides `NLM_F_REQUEST`, and the family's header.
    pub fn message(&mut self, kind: u16, flags: u16, header: &[u8]) {
        self.pad();
        let start = self.bytes.len();
        self.starts.push(start);
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        self.bytes.extend([0; 8]);
        self.bytes.extend(header);
        self.measure();
    }
    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        let open = self.nest(kind);
        self.bytes.extend(value);
        self.end(open);
    }
    /// Adds a string, which ends with a NUL.
    pub fn put_str(&mut self, kind: u16, value: &str) {
        let open = self.nest(kind);
        self.bytes.extend(value.as_bytes());
        self.bytes.push(0);
        self.end(open);
    }
    /// Adds 32 bits.
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }
    /// Adds 64 bits.
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }
    /// Begins an attribute that holds others; [`Batch::end`] ends it. Some kinds want the bit [`NESTED`].
    pub fn nest(&mut self, kind: u16) -> Open {
        self.pad();
        let at = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        Open(at)
    }
    /// Bytes that stand before the attributes in a nest.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }
    /// Ends an attribute.
    pub fn end(&mut self, open: Open) {
        let length = u16::try_from(self.bytes.len() - open.0).expect("an attribute is below 64 KiB");
        self.bytes[open.0..open.0 + 2].copy_from_slice(&length.to_ne_bytes());
        self.measure();
    }
    /// The bytes of message `i`, header and all.
    pub fn bytes_of(&self, i: usize) -> &[u8] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[i]..end]
    }
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGN), 0);
    }
    /// Writes the length of the message that is being built.
    fn measure(&mut self) {
        if let Some(&start) = self.starts.last() {
            let length = (self.bytes.len() - start) as u32;
            self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        }
    }
    /// Numbers the messages from `first` and asks for an acknowledgement of the last.
    fn number(&mut self, first: u32) {
        for (i, &start) in self.starts.iter().enumerate() {
            self.bytes[start + 8..start + 12].copy_from_slice(&first.wrapping_add(i as u32).to_ne_bytes());
        }
        if let Some(&last) = self.starts.last() {
            let flags = u16_at(&self.bytes, last + 6) | libc::NLM_F_ACK as u16;
            self.bytes[last + 6..last + 8].copy_from_slice(&flags.to_ne_bytes());
        }
    }
}

/// A connection to the kernel's rtnetlink in the namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    socket: socket2::Socket,
    sequence: u32,
    buffer: Vec<u8>,
    /// Bytes of the buffer that the last answer filled.
    filled: usize,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Socket {
    /// Opens it in the calling thread's network namespace.
    pub fn open() -> io::Result<Socket> {
        let route = Protocol::from(libc::NETLINK_ROUTE);
        let socket = socket2::Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW.cloexec(), Some(route))?;
        call::explain_errors(&socket)?;
        Ok(Socket { socket, sequence: 0, buffer: vec![0; ROOM], filled: 0 })
    }

    /// Sends a batch and waits until the kernel has done all of it; the first refusal is the error.
    pub fn request(&mut self, batch: &mut Batch) -> Result<(), NetlinkError> {
        if batch.is_empty() {
            return Ok(());
        }
        let first = self.sequence;
        batch.number(first);
        self.sequence = first.wrapping_add(batch.len() as u32);
        self.socket.send(&batch.bytes)?;
        let mut refused = None;
        loop {
            self.fill()?;
            for m in messages(&self.buffer[..self.filled]) {
                let number = m.sequence.wrapping_sub(first) as usize;
                if m.kind != libc::NLMSG_ERROR as u16 || number >= batch.len() {
                    continue;
                }
                let (errno, text) = verdict(&m);
                if errno != 0 {
                    refused.get_or_insert(NetlinkError::Refused { message: number, text, error: io::Error::from_raw_os_error(errno) });
                }
                if number + 1 == batch.len() {
                    return refused.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// Asks for everything of a kind; `each` gets each answer's family header and attributes. `header` is the request's.
    pub fn dump(&mut self, kind: u16, header: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), NetlinkError> {
        let mut batch = Batch::new();
        batch.message(kind, DUMP, header);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        batch.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.socket.send(&batch.bytes)?;
        loop {
            self.fill()?;
            for m in messages(&self.buffer[..self.filled]).filter(|m| m.sequence == sequence) {
                if m.kind == libc::NLMSG_DONE as u16 {
                    return Ok(());
                }
                if m.kind == libc::NLMSG_ERROR as u16 {
                    let (errno, text) = verdict(&m);
                    return Err(NetlinkError::Refused { message: 0, text, error: io::Error::from_raw_os_error(errno) });
                }
                each(m.body);
            }
        }
    }

    /// Takes in one datagram.
    fn fill(&mut self) -> io::Result<()> {
        self.filled = (&self.socket).read(&mut self.buffer)?;
        Ok(())
    }
}

/// A new network namespace into which the calling thread moves. Linux: unshare(2).
pub fn new_namespace() -> io::Result<OwnedFd> {
    call::unshare_network()?;
    namespace()
}

/// The calling thread's network namespace. Linux: network_namespaces(7).
pub fn namespace() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/proc/thread-self/ns/net")?.into())
}

/// A message of an answer.
struct Answer<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes.get(..HEADER)?, 0) as usize;
        let whole = bytes.get(..length).filter(|_| length >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(Answer { kind: u16_at(whole, 4), flags: u16_at(whole, 6), sequence: u32_at(whole, 8), body: &whole[HEADER..] })
    })
}

/// Error number (0 is an acknowledgement) and explanation of a `NLMSG_ERROR`. Linux: netlink(7), NETLINK_EXT_ACK.
fn verdict(m: &Answer<'_>) -> (i32, String) {
    /// `NLM_F_CAPPED`, `NLM_F_ACK_TLVS`, `NLMSGERR_ATTR_MSG`. Source: linux/netlink.h.
    const CAPPED: u16 = 0x100;
    const ACK_TLVS: u16 = 0x200;
    const MSG: u16 = 1;
    let Some(code) = m.body.get(..4) else { return (libc::EPROTO, String::new()) };
    let errno = -(u32_at(code, 0) as i32);
    // After the code comes the request, its payload only in an error that is not capped.
    let repeated = match m.body.get(4..8) {
        Some(length) if errno != 0 && m.flags & CAPPED == 0 => u32_at(length, 0) as usize,
        _ => HEADER,
    };
    let rest = m.body.get(4 + repeated.next_multiple_of(ALIGN)..).filter(|_| m.flags & ACK_TLVS != 0).unwrap_or_default();
    let text = attribute(rest, MSG).map_or(String::new(), |t| text_of(t).to_owned());
    (errno, text)
}

/// The attributes in `bytes`: type without flags, and value.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes.get(..ATTRIBUTE)?, 0));
        let kind = u16_at(bytes, 2) & libc::NLA_TYPE_MASK as u16;
        let value = bytes.get(ATTRIBUTE..length)?;
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of one attribute.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|a| a.0 == kind).map(|a| a.1)
}

/// A string attribute without its NUL.
pub fn text_of(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or_default().trim_end_matches('\0')
}

/// 16 bits at `at`; the bytes must be there.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// 32 bits at `at`, 0 where the bytes are missing.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

/// 64 bits at `at`, 0 where the bytes are missing.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

/// The two system calls that no safe library offers.
#[allow(unsafe_code)]
mod call {
    use super::*;

    fn check(status: libc::c_int) -> io::Result<()> {
        if status < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Asks for explanations with errors. Linux: netlink(7), NETLINK_EXT_ACK.
    pub fn explain_errors(socket: &socket2::Socket) -> io::Result<()> {
        let (on, size): (libc::c_int, _) = (1, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the option takes one int, which lives until the call returns.
        check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, (&raw const on).cast(), size) })
    }

    /// Puts the calling thread into a new network namespace. Linux: unshare(2).
    pub fn unshare_network() -> io::Result<()> {
        // SAFETY: integer arguments only.
        check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_a_nest_is_padded_and_measured() {
        let mut b = Batch::new();
        b.message(36, CREATE, &[7; 4]);
        b.put_str(1, "tbf1");
        let open = b.nest(2);
        b.put_u32(3, 0x0102_0304);
        b.end(open);
        let m = b.bytes_of(0);
        assert_eq!(u32_at(m, 0) as usize, m.len());
        // 16 header + 4 family + (4 + 5, padded to 12) + 4 nest + 8
        assert_eq!(m.len(), 16 + 4 + 12 + 4 + 8);
        let all: Vec<_> = attributes(&m[20..]).collect();
        assert_eq!((all[0].0, text_of(all[0].1)), (1, "tbf1"));
        assert_eq!(attribute(all[1].1, 3), Some(&0x0102_0304u32.to_ne_bytes()[..]));
        assert_eq!(u16_at(m, 6), 0x601);
    }

    #[test]
    fn only_the_last_message_of_a_batch_asks_for_an_acknowledgement() {
        let mut b = Batch::new();
        b.message(16, CREATE, &[]);
        b.message(20, CHANGE, &[]);
        b.number(41);
        let flags = |i| u16_at(b.bytes_of(i), 6);
        assert_eq!((flags(0), flags(1)), (0x601, 0x5));
        assert_eq!((u32_at(b.bytes_of(0), 8), u32_at(b.bytes_of(1), 8)), (41, 42));
    }

    #[test]
    fn truncated_answers_end_quietly() {
        assert_eq!(messages(&[1, 2, 3]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 9]).count(), 0);
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0);
    }
}
