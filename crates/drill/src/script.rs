//! A script as data: options, and events with their times.

use crate::wire::Packet;
use std::fmt;

/// Microseconds of a script's clock.
pub type Micros = i64;

/// What is wrong with a script: its line, the problem and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong; the fix behind a semicolon.
    pub problem: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.problem.split_whitespace().collect();
        write!(f, "{}: {}", self.line, words.join(" "))
    }
}

/// A script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Lines `--key=value`: line, key, value.
    pub options: Vec<(usize, String, String)>,
    /// What happens, in the order of the text.
    pub events: Vec<Event>,
}

/// When an event is to happen. A range is `from..=to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Where it stands, without a time: the commands before and after all events.
    Untimed,
    /// `0.1`, `0.1~0.2`: since the script began.
    At(Micros, Option<Micros>),
    /// `+0.1`, `+0.1~+0.2`: after the event before.
    After(Micros, Option<Micros>),
    /// `*`: at any time.
    Any,
}

/// A line of a script that happens.
#[derive(Clone, Debug)]
pub struct Event {
    /// Line, from 1.
    pub line: usize,
    /// When it happens.
    pub when: When,
    /// `0.1...0.2 read(…)`: when the call, which blocks, returns; counted as `when` is.
    pub ends: Option<Micros>,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// `<`: a packet comes.
    Inbound(Packet),
    /// `>`: a packet is to leave.
    Outbound(Packet),
    /// A packet of something else than TCP over IP, by its protocol.
    Foreign(String),
    /// A system call.
    Call(Call),
    /// `` `…` ``: a command of the shell.
    Shell(String),
    /// `%{ … }%`: statements about `tcp_info`.
    Code(String),
}

/// A system call with what it is to return.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments as they are written.
    pub args: Vec<String>,
    /// What it returns; none where any will do.
    pub returns: Option<i64>,
    /// `EAGAIN` behind a result of -1.
    pub errno: Option<String>,
    /// The whole call as it is written.
    pub text: String,
}

impl Call {
    /// Argument `index` as a number, if it is one.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.args.get(index).and_then(|a| number(a))
    }
    /// Argument `index`, `[8]` included, as a number.
    pub fn boxed(&self, index: usize) -> Option<i64> {
        let text = self.args.get(index)?.trim();
        number(text.strip_prefix('[')?.strip_suffix(']')?)
    }
    /// Argument `index`, or nothing.
    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", |a| a.trim())
    }
}

/// A decimal or hexadecimal number.
pub fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
