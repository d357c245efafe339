//! A server at the far end, which runs from before the command until after it.

use super::ports;
use crate::spaces::{self, Child, Program, Realtime};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at its sockets.
const LOOK: Duration = Duration::from_millis(10);
/// Last bytes kept of what it writes.
const KEPT: usize = 4096;

/// A server; dropping it ends it and everything that it started.
#[derive(Debug)]
pub struct Server {
    text: String,
    child: Child,
    output: Arc<Mutex<VecDeque<u8>>>,
}

impl Server {
    /// Starts `text`, a command line of the shell, in the namespace, and waits until a socket listens that did not before. An error is one
    /// line for the user.
    pub fn start(text: &str, namespace: BorrowedFd<'_>, realtime: Realtime, prepare: impl Fn(&mut Program)) -> Result<Server, String> {
        let fail = |e: io::Error| format!("serve: {text:?}: {e}; correct the command");
        let listening = || spaces::within(namespace, ports::listening).and_then(|ports| ports).map_err(fail);
        let before = listening()?;
        let mut server = Server::spawn(text, namespace, realtime, prepare).map_err(fail)?;
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if listening()?.difference(&before).next().is_some() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait().map_err(fail)? {
                thread::sleep(LOOK); // its last words may be on their way
                let last = server.last_line();
                return Err(format!("serve: {text:?} ended with status {status} before it listened{last}; correct the command"));
            }
            thread::sleep(LOOK);
        }
        let last = server.last_line();
        Err(format!("serve: {text:?} listened at no port within {} s{last}; correct the command", PATIENCE.as_secs()))
    }

    fn spawn(text: &str, namespace: BorrowedFd<'_>, realtime: Realtime, prepare: impl Fn(&mut Program)) -> io::Result<Server> {
        let (reader, writer) = UnixStream::pair()?;
        let mut shell = Program::new(&["/bin/sh", "-c", text], realtime).within(namespace);
        prepare(&mut shell);
        shell.command().stdin(Stdio::null()).stdout(OwnedFd::from(writer.try_clone()?)).stderr(OwnedFd::from(writer));
        let server = Server { text: text.to_owned(), child: shell.start()?, output: Arc::default() };
        server.keep(reader);
        Ok(server)
    }

    /// Why it ended, if it has, as a sentence.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten().filter(|&status| status != 0)?;
        Some(format!("the server {:?} ended with status {status}{}", self.text, self.last_line()))
    }

    /// Keeps the end of what the server writes, so that it never waits for a reader.
    fn keep(&self, mut reader: UnixStream) {
        let output = Arc::clone(&self.output);
        thread::spawn(move || {
            let mut part = [0u8; 1024];
            while let Ok(n @ 1..) = reader.read(&mut part) {
                let Ok(mut kept) = output.lock() else { return };
                kept.extend(&part[..n]);
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
            }
        });
    }

    /// `: ` and the last line that it wrote, where there is one.
    fn last_line(&self) -> String {
        let kept: Vec<u8> = self.output.lock().map(|kept| kept.iter().copied().collect()).unwrap_or_default();
        let text = String::from_utf8_lossy(&kept).into_owned();
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(|line| format!(": {line}")).unwrap_or_default()
    }
}
