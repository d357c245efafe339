//! A packet as a script writes it: read from the text, printed, and compared.
//!
//! Source: the notation of tcpdump as packetdrill's documentation describes it; RFC 9293 §3.1, RFC 7323, RFC 2018, RFC 9768 (options).

use std::fmt;
use tcpscape_base::{Ecn, Flags};

/// A TCP option. Padding is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Maximum segment size.
    Mss(u32),
    /// SACK permitted.
    SackOk,
    /// Timestamps.
    Timestamps {
        /// TSval.
        val: u32,
        /// TSecr.
        ecr: u32,
    },
    /// Window scale.
    WindowScale(u8),
    /// SACK blocks.
    Sacks(Vec<(u64, u64)>),
    /// Any other, by its text.
    Other(String),
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpOption::Mss(mss) => write!(f, "mss {mss}"),
            TcpOption::SackOk => f.write_str("sackOK"),
            TcpOption::Timestamps { val, ecr } => write!(f, "TS val {val} ecr {ecr}"),
            TcpOption::WindowScale(shift) => write!(f, "wscale {shift}"),
            TcpOption::Sacks(blocks) => {
                let blocks: Vec<String> = blocks.iter().map(|(start, end)| format!("{start}:{end}")).collect();
                write!(f, "sack {}", blocks.join(" "))
            }
            TcpOption::Other(text) => f.write_str(text),
        }
    }
}

/// A TCP packet of a script. Sequence numbers count from the SYN of their side, which is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Flags of the header.
    pub flags: Flags,
    /// URG is set: urgent data.
    pub urgent: bool,
    /// First sequence number.
    pub seq: u64,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: Option<u64>,
    /// Window as the header has it, not scaled; none where any will do.
    pub win: Option<u32>,
    /// ECN field of IP; none where any will do.
    pub ecn: Option<Ecn>,
    /// Something of the IP header that the model does not have, by its text.
    pub ip: Option<String>,
    /// Options; none where any will do.
    pub options: Option<Vec<TcpOption>>,
}

/// Letters of flags in the order in which they are written.
const LETTERS: [(char, Flags); 8] = [
    ('F', Flags::FIN),
    ('S', Flags::SYN),
    ('R', Flags::RST),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('A', Flags::AE),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
];

/// The flag of a letter.
pub fn flag(letter: char) -> Option<Flags> {
    LETTERS.iter().find(|l| l.0 == letter).map(|l| l.1)
}

/// How a script writes an ECN field.
pub fn ecn_word(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "noecn",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

impl Packet {
    /// The timestamps, if there are any.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options().iter().find_map(|o| match *o {
            TcpOption::Timestamps { val, ecr } => Some((val, ecr)),
            _ => None,
        })
    }
    /// The options that are written.
    pub fn options(&self) -> &[TcpOption] {
        self.options.as_deref().unwrap_or_default()
    }

    /// What left behind it belongs to it: a longer packet with the flags of its parts, but PSH of the last one alone, as the tool has it (observed).
    pub fn append(&mut self, next: &Packet) {
        self.len += next.len;
        self.flags = self.flags.without(Flags::PSH).with(next.flags);
        (self.ack, self.win) = (next.ack, next.win);
    }

    /// What of `actual`, which left, differs from this packet, which was expected; none if it is as expected. Timestamp values are left aside.
    pub fn difference(&self, actual: &Packet) -> Option<&'static str> {
        if self.flags != actual.flags {
            return Some("flags");
        }
        if self.seq != actual.seq {
            return Some("sequence number");
        }
        if self.len != actual.len {
            return Some("length");
        }
        if self.ack.is_some_and(|ack| self.flags.has(Flags::ACK) && actual.ack != Some(ack)) {
            return Some("acknowledgement number");
        }
        if self.win.is_some_and(|win| actual.win != Some(win)) {
            return Some("window");
        }
        if self.ecn.is_some_and(|ecn| actual.ecn != Some(ecn)) {
            return Some("ECN field");
        }
        self.options.as_ref().and_then(|_| self.different_option(actual))
    }

    fn different_option(&self, actual: &Packet) -> Option<&'static str> {
        let (expected, actual) = (self.options(), actual.options());
        let differs = |a: &TcpOption, b: &TcpOption| match (a, b) {
            (TcpOption::Timestamps { ecr: x, .. }, TcpOption::Timestamps { ecr: y, .. }) => x != y,
            _ => a != b,
        };
        let same = expected.len() == actual.len() && !expected.iter().zip(actual).any(|(a, b)| differs(a, b));
        (!same).then_some("options")
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ecn) = self.ecn.filter(|&ecn| ecn != Ecn::NotEct) {
            write!(f, "[{}] ", ecn_word(ecn))?;
        }
        let letters: String = LETTERS.iter().filter(|l| self.flags.has(l.1)).map(|l| l.0).collect();
        write!(f, "{} ", if letters.is_empty() { "-" } else { &letters })?;
        write!(f, "{}:{}({})", self.seq, self.seq + u64::from(self.len), self.len)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        if let Some(win) = self.win {
            write!(f, " win {win}")?;
        }
        let options: Vec<String> = self.options().iter().map(TcpOption::to_string).collect();
        if options.is_empty() {
            return Ok(());
        }
        write!(f, " <{}>", options.join(","))
    }
}
