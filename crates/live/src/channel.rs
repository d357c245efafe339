//! The channel to the process that started this one: a job as the first line, control messages as further lines, answers as lines.
//!
//! ```text
//! in:   {"plan": …}                    the job, then {"change": …} and so on, as the mode understands them
//! out:  {"event": "ready", …}          as often as the mode likes, from any thread
//!       {"result": …}                  the last line, or
//!       {"error": "field: problem; fix"} what a user can correct, or {"panic": "…"} for a bug
//! ```
//!
//! Each line is one JSON document in UTF-8. Both descriptors are pipes or sockets, never a terminal.

use crate::spaces::{lifetime, Options, Spaces, SpacesError};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of a line that is read.
const LINE: usize = 256 << 20;
/// Bytes of one read.
const ROOM: usize = 64 << 10;

/// Both directions; clones are the same channel.
#[derive(Clone, Debug)]
pub struct Channel(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    input: File,
    /// What was read and not taken: the beginning of a line, or lines.
    unread: Mutex<Vec<u8>>,
    output: Mutex<File>,
}

impl AsFd for Channel {
    /// The input, for a poll before [`Channel::read`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.input.as_fd()
    }
}

impl Channel {
    /// A channel over two descriptors.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Channel {
        Channel(Arc::new(Ends { input: input.into(), unread: Mutex::default(), output: Mutex::new(output.into()) }))
    }

    /// The first line. An error is one line for whoever sent it.
    pub fn job(&self) -> Result<Value, String> {
        let mut unread = self.unread();
        let mut searched = 0;
        loop {
            if let Some(end) = unread[searched..].iter().position(|&b| b == b'\n') {
                let rest = unread.split_off(searched + end + 1);
                let line = std::mem::replace(&mut *unread, rest);
                return serde_json::from_slice(&line).map_err(|e| format!("job: it is no JSON document ({e}); send one as the first line"));
            }
            searched = unread.len();
            match self.fill(&mut unread) {
                Ok(true) => {}
                Ok(false) => return Err("job: the input ended before it; send one line of JSON".into()),
                Err(e) => return Err(format!("job: it cannot be read ({e}); send one line of JSON")),
            }
        }
    }

    /// The next control messages without their line ends; None when there will be no more. It blocks only where none has come
    /// yet: whoever polls must call it once before, for those that came together with the job ([`Channel::has_lines`]).
    pub fn read(&self) -> io::Result<Option<Vec<String>>> {
        let mut unread = self.unread();
        loop {
            if let Some(end) = unread.iter().rposition(|&b| b == b'\n') {
                let rest = unread.split_off(end + 1);
                let lines = std::mem::replace(&mut *unread, rest);
                return Ok(Some(String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect()));
            }
            if !self.fill(&mut unread)? {
                return Ok(None);
            }
        }
    }

    /// Whether [`Channel::read`] returns without waiting.
    pub fn has_lines(&self) -> bool {
        self.unread().contains(&b'\n')
    }

    /// Sends one line, from any thread. Where nobody reads any more, this process ends.
    pub fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = self.0.output.lock().unwrap_or_else(PoisonError::into_inner);
        if output.write_all(line.as_bytes()).is_err() {
            std::process::exit(1);
        }
    }

    /// Enters new namespaces; from now on this process ends with its input. To be called before there is a second thread.
    pub fn enter(&self, options: &Options) -> Result<Spaces, SpacesError> {
        let spaces = Spaces::enter(options)?;
        // The change of credentials may have undone it.
        lifetime::end_with_parent(None).map_err(|e| SpacesError::of("this process cannot be tied to its parent", e))?;
        let input = self.0.input.try_clone().map_err(|e| SpacesError::of("the input cannot be watched", e))?;
        lifetime::end_with_input(input).map_err(|e| SpacesError::of("the input cannot be watched", e))?;
        Ok(spaces)
    }

    fn unread(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads once; false at the end of the input.
    fn fill(&self, unread: &mut Vec<u8>) -> io::Result<bool> {
        if unread.len() > LINE {
            return Err(io::Error::other("a line of more than 256 MiB"));
        }
        let before = unread.len();
        unread.resize(before + ROOM, 0);
        let read = (&self.0.input).read(&mut unread[before..]);
        unread.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            read => Ok(read? > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn channel() -> (Channel, UnixStream, UnixStream) {
        let (input, theirs) = UnixStream::pair().expect("sockets");
        let (ours, output) = UnixStream::pair().expect("sockets");
        (Channel::new(input.into(), output.into()), theirs, ours)
    }

    #[test]
    fn the_first_line_is_the_job_and_the_others_are_messages() {
        let (channel, mut theirs, _ours) = channel();
        theirs.write_all(b"{\"seed\": 7}\n{\"a\": 1}\n{\"b\"").expect("room");
        assert_eq!(channel.job(), Ok(serde_json::json!({ "seed": 7 })));
        assert!(channel.has_lines());
        assert_eq!(channel.read().expect("lines"), Some(vec!["{\"a\": 1}".to_owned()]));
        assert!(!channel.has_lines());
        theirs.write_all(b": 2}\n").expect("room");
        drop(theirs);
        assert_eq!(channel.read().expect("lines"), Some(vec!["{\"b\": 2}".to_owned()]));
        assert_eq!(channel.read().expect("the end"), None);
    }

    #[test]
    fn a_long_job_arrives_in_pieces() {
        let (channel, mut theirs, _ours) = channel();
        let text = "x".repeat(1 << 20);
        let line = format!("\"{text}\"\n");
        let writer = std::thread::spawn(move || theirs.write_all(line.as_bytes()));
        assert_eq!(channel.job(), Ok(Value::String(text)));
        writer.join().expect("no panic").expect("written");
    }

    #[test]
    fn what_is_no_job_is_one_line() {
        let (channel, mut theirs, _ours) = channel();
        theirs.write_all(b"nonsense\n").expect("room");
        assert!(channel.job().expect_err("no JSON").starts_with("job: it is no JSON document"));
        drop(theirs);
        assert!(channel.job().expect_err("the end").contains("ended before it"));
    }

    #[test]
    fn answers_are_lines() {
        let (channel, _theirs, mut ours) = channel();
        channel.clone().send(&serde_json::json!({ "event": "a\nb" }));
        drop(channel);
        let mut text = String::new();
        ours.read_to_string(&mut text).expect("the answers");
        assert_eq!(text, "{\"event\":\"a\\nb\"}\n");
    }
}
