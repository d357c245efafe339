//! rtnetlink: several requests in one `sendmsg`, errors with the kernel's own explanation, dumps.
//!
//! What it is: [`Batch`] collects messages of [`netlink_packet_route`], [`Socket`] sends them into the network namespace in which it was
//! opened and collects answers. A batch is acknowledged once, at its end: errors come in any case.
//! Source: netlink(7), rtnetlink(7), linux/netlink.h.
//! What it does not do: multicast groups, other families, resuming an interrupted dump.

use netlink_packet_core::{
    ErrorBuffer, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload, NlasIterator, NLA_HEADER_SIZE, NLMSG_DONE, NLMSG_ERROR,
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
};
pub use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_sys::{protocols::NETLINK_ROUTE, Socket as Raw};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Room for one answer, bytes: the kernel makes dumps fit.
const ROOM: usize = 64 << 10;
/// Sizes of messages are rounded up to this. Linux: NLMSG_ALIGNTO.
const ALIGN: usize = 4;
/// The attribute of an acknowledgement with the kernel's explanation. Linux: NLMSGERR_ATTR_MSG.
const EXPLANATION: u16 = 1;

/// `flags` of a request that creates something new.
pub const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// `flags` of a request that makes something in the place of what is there.
pub const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;
/// `flags` of a request that changes what is there.
pub const CHANGE: u16 = 0;

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
    /// Adds a message with its flags besides `NLM_F_REQUEST`.
    pub fn push(&mut self, message: Message, flags: u16) {
        let mut header = NetlinkHeader::default();
        header.flags = flags | NLM_F_REQUEST;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let start = self.bytes.len();
        self.starts.push(start);
        self.bytes.resize(start + message.buffer_len().next_multiple_of(ALIGN), 0);
        message.serialize(&mut self.bytes[start..]);
    }
    /// The bytes of message `i`, header and all.
    pub fn bytes_of(&self, i: usize) -> &[u8] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[i]..end]
    }
    /// Numbers the messages from `first` and adds `flags` to the last.
    fn number(&mut self, first: u32, flags: u16) {
        for (i, &start) in self.starts.iter().enumerate() {
            let mut header = NetlinkBuffer::new(&mut self.bytes[start..]);
            header.set_sequence_number(first.wrapping_add(i as u32));
            if i + 1 == self.starts.len() {
                header.set_flags(header.flags() | flags);
            }
        }
    }
}

/// A connection to the kernel's rtnetlink in the namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    socket: Raw,
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
        let socket = Raw::new(NETLINK_ROUTE)?;
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Socket { socket, sequence: 0, buffer: vec![0; ROOM], filled: 0 })
    }

    /// Sends a batch and waits until the kernel has done all of it; the first refusal is the error.
    pub fn request(&mut self, batch: &mut Batch) -> Result<(), NetlinkError> {
        if batch.is_empty() {
            return Ok(());
        }
        let first = self.send(batch, NLM_F_ACK)?;
        let mut refused = None;
        loop {
            self.fill()?;
            for m in messages(&self.buffer[..self.filled]) {
                let number = m.sequence_number().wrapping_sub(first) as usize;
                if m.message_type() != NLMSG_ERROR || number >= batch.len() {
                    continue;
                }
                if let Some(error) = verdict(&m, number) {
                    refused.get_or_insert(error);
                }
                if number + 1 == batch.len() {
                    return refused.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// Asks for everything of a kind; `each` gets each answer's family header and attributes.
    pub fn dump(&mut self, of: Message, mut each: impl FnMut(&[u8])) -> Result<(), NetlinkError> {
        let mut batch = Batch::new();
        batch.push(of, NLM_F_DUMP);
        let sequence = self.send(&mut batch, 0)?;
        loop {
            self.fill()?;
            for m in messages(&self.buffer[..self.filled]).filter(|m| m.sequence_number() == sequence) {
                match m.message_type() {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return verdict(&m, 0).map_or(Ok(()), Err),
                    _ => each(m.payload()),
                }
            }
        }
    }

    /// Numbers the batch and sends it; gives its first number.
    fn send(&mut self, batch: &mut Batch, flags: u16) -> io::Result<u32> {
        let first = self.sequence;
        batch.number(first, flags);
        self.sequence = first.wrapping_add(batch.len() as u32);
        self.socket.send(&batch.bytes, 0)?;
        Ok(first)
    }

    /// Takes in one datagram.
    fn fill(&mut self) -> io::Result<()> {
        self.filled = self.socket.recv(&mut &mut self.buffer[..], 0)?;
        Ok(())
    }
}

/// A message of the kernel's.
pub(crate) type Answer<'a> = NetlinkBuffer<&'a [u8]>;

/// The messages of a datagram.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let m = NetlinkBuffer::new_checked(bytes).ok()?;
        bytes = bytes.get((m.length() as usize).next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(m)
    })
}

/// What an acknowledgement of request `message` says; None if all is well.
pub(crate) fn verdict(m: &Answer<'_>, message: usize) -> Option<NetlinkError> {
    let payload = m.payload();
    let error = ErrorBuffer::new_checked(payload).ok()?;
    let errno = error.code()?.get();
    // what follows the request's header, which alone is repeated; see `set_cap_ack`
    let rest = error.payload().get(HEADER..).filter(|_| m.flags() & NLM_F_ACK_TLVS != 0).unwrap_or_default();
    let text = attribute(rest, EXPLANATION).map_or(String::new(), |t| text_of(t).to_owned());
    Some(NetlinkError::Refused { message, text, error: io::Error::from_raw_os_error(errno.abs()) })
}

/// The attributes in `bytes` up to the first damaged one: type without flags, and value.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|a| (a.kind(), &a.into_inner()[NLA_HEADER_SIZE..usize::from(a.length())]))
}

/// The value of one attribute.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|a| a.0 == kind).map(|a| a.1)
}

/// A string attribute without its NUL.
pub fn text_of(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or_default().trim_end_matches('\0')
}

/// 32 bits at `at`, 0 where the bytes are missing.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

/// 64 bits at `at`, 0 where the bytes are missing.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_route::link::LinkMessage;

    fn link() -> Message {
        Message::NewLink(LinkMessage::default())
    }

    #[test]
    fn only_the_last_message_of_a_batch_asks_for_an_acknowledgement() {
        let mut b = Batch::new();
        b.push(link(), CREATE);
        b.push(link(), CHANGE);
        b.number(41, NLM_F_ACK);
        let of = |i| NetlinkBuffer::new_checked(b.bytes_of(i)).unwrap();
        assert_eq!((of(0).flags(), of(1).flags()), (0x601, 0x5));
        assert_eq!((of(0).sequence_number(), of(1).sequence_number()), (41, 42));
        assert_eq!(b.bytes_of(0).len(), 32);
    }

    #[test]
    fn truncated_answers_end_quietly() {
        assert_eq!(messages(&[1, 2, 3]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 9]).count(), 0);
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0);
        assert_eq!(attributes(&[5, 0, 1, 0, 9]).collect::<Vec<_>>(), [(1, &[9][..])]);
    }

    #[test]
    fn the_kernel_explains_what_it_refuses() {
        let mut unknown = LinkMessage::default();
        unknown.header.index = 99_999;
        let mut batch = Batch::new();
        batch.push(Message::DelLink(unknown), 0);
        let error = Socket::open().unwrap().request(&mut batch).expect_err("there is no such device, or no privilege");
        assert!(matches!(&error, NetlinkError::Refused { message: 0, .. }), "{error}");
        let words = error.to_string();
        assert!(words.contains("No such device") || words.contains("not permitted"), "{words}");
    }
}
