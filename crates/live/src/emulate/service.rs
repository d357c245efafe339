//! A program that runs from before the command until after it: a server, which must listen, or what sets a router. Linux: proc_pid_net(5), `net/tcp` and `net/udp`.

use super::places;
use crate::spaces::{self, Child, Program, Realtime};
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tcpscape_testbed::sys::pipe;

/// How long it may take until it listens, and how long a router's command may run before the command starts.
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_secs(1);
/// Between two looks at its sockets.
const LOOK: Duration = Duration::from_millis(10);
/// Last bytes kept of what it writes.
const KEPT: usize = 4096;

/// When a program has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// When a socket of its host listens that did not before: a server.
    Listening,
    /// When it has ended or has run for a second; it may change its host's devices: the router's command.
    Settled,
}

impl Start {
    /// The option that it is of, and what a caveat calls it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Start::Listening => ("serve", "the server"),
            Start::Settled => ("router-command", "the router's command"),
        }
    }
}

/// Such a program; dropping it ends it and everything that it started.
#[derive(Debug)]
pub struct Service {
    how: Start,
    text: String,
    child: Child,
    output: Arc<Mutex<VecDeque<u8>>>,
}

impl Service {
    /// Starts `text`, a command line of the shell, in the namespace, and waits until it has started. An error is one line for the user.
    pub fn start(
        how: Start,
        text: &str,
        namespace: BorrowedFd<'_>,
        realtime: Realtime,
        prepare: impl Fn(&mut Program),
    ) -> Result<Service, String> {
        let option = how.names().0;
        let fail = |e: io::Error| format!("{option}: {text:?}: {e}; correct the command");
        let listening = || spaces::within(namespace, listening_ports).and_then(|ports| ports).map_err(fail);
        let before = listening()?;
        let mut service = Service::spawn(how, text, namespace, realtime, prepare).map_err(fail)?;
        let began = Instant::now();
        while began.elapsed() < if how == Start::Listening { PATIENCE } else { SETTLING } {
            if how == Start::Listening && listening()?.difference(&before).next().is_some() {
                return Ok(service);
            }
            match (how, service.child.try_wait().map_err(fail)?) {
                (Start::Settled, Some(0)) => return Ok(service),
                (_, Some(status)) => {
                    thread::sleep(LOOK); // its last words may be on their way
                    let before = if how == Start::Listening { " before it listened" } else { "" };
                    return Err(format!(
                        "{option}: {text:?} ended with status {status}{before}{}; correct the command",
                        service.last_line()
                    ));
                }
                (_, None) => thread::sleep(LOOK),
            }
        }
        match how {
            Start::Settled => Ok(service),
            Start::Listening => {
                let last = service.last_line();
                Err(format!("{option}: {text:?} listened at no port within {} s{last}; correct the command", PATIENCE.as_secs()))
            }
        }
    }

    fn spawn(how: Start, text: &str, namespace: BorrowedFd<'_>, realtime: Realtime, prepare: impl Fn(&mut Program)) -> io::Result<Service> {
        let (reader, writer) = pipe()?; // no socket: programs open /dev/stderr
        let mut shell = Program::new(&["/bin/sh", "-c", text], realtime).within(namespace);
        prepare(&mut shell);
        if how == Start::Settled {
            places::name_devices(&mut shell);
            shell.administers();
        }
        shell.command().stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let service = Service { how, text: text.to_owned(), child: shell.start()?, output: Arc::default() };
        service.keep(reader.into());
        Ok(service)
    }

    /// Why it ended, if it has, as a sentence.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten().filter(|&status| status != 0)?;
        Some(format!("{} {:?} ended with status {status}{}", self.how.names().1, self.text, self.last_line()))
    }

    /// Keeps the end of what the service writes, so that it never waits for a reader.
    fn keep(&self, mut reader: File) {
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

/// The tables, and the state in which a socket of the table waits for clients: LISTEN, and of UDP the state of a socket that is not connected.
const TABLES: [(&str, &str); 4] = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];

/// The ports at which sockets of the calling thread's network namespace wait for clients, each with its table.
fn listening_ports() -> io::Result<BTreeSet<(&'static str, u16)>> {
    let mut ports = BTreeSet::new();
    for (table, state) in TABLES {
        match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            Ok(text) => ports.extend(parse(&text, state).map(|port| (table, port))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {} // a kernel without IPv6
            Err(e) => return Err(e),
        }
    }
    Ok(ports)
}

fn parse<'a>(table: &'a str, state: &'a str) -> impl Iterator<Item = u16> + 'a {
    table.lines().skip(1).filter_map(move |line| {
        let mut words = line.split_whitespace().skip(1);
        let port = words.next()?.rsplit_once(':')?.1;
        let is_waiting = words.nth(1)? == state;
        is_waiting.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                     0: 00000000:1F40 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100007F:0016 0100007F:9999 01 00000000:00000000\n";
        assert_eq!(parse(table, "0A").collect::<Vec<_>>(), [8000]);
        assert_eq!(parse("", "0A").count(), 0);
    }

    #[test]
    fn a_socket_of_this_process_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listening_ports().unwrap().contains(&("tcp", listener.local_addr().unwrap().port())));
    }
}
