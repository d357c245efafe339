//! `--reach`: a port of the far end that is a port of this host's loopback.
//!
//! TCP ends here: the far end's kernel answers the command, and what arrives is copied into a connection to the host's port. The path is
//! therefore between the command and the far end, as it is for a server that runs there.

use super::host::Host;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Most connections of one port at a time; a further one is reset.
const MOST: usize = 400;
/// How long no connection is taken after one could not be.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A port of the far end and the port of the host's loopback that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Port of the far end.
    pub far: u16,
    /// Port of this host.
    pub host: u16,
}

/// Listens at a port of the calling thread's network namespace, and serves its connections on threads of their own until the process ends.
pub fn serve(reach: Reach, host: &Arc<Host>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, reach.far))?;
    let host = Arc::clone(host);
    let open = Arc::new(AtomicUsize::new(0));
    thread::Builder::new().name(format!("reach-{}", reach.far)).spawn(move || {
        for connection in listener.incoming() {
            // No descriptor is free, or the peer has gone already.
            let Ok(connection) = connection else {
                thread::sleep(ACCEPT_PAUSE);
                continue;
            };
            let (host, open) = (Arc::clone(&host), Arc::clone(&open));
            if open.fetch_add(1, Ordering::Relaxed) >= MOST {
                open.fetch_sub(1, Ordering::Relaxed);
                reset(&connection);
                continue;
            }
            let counted = Arc::clone(&open);
            let started = thread::Builder::new().spawn(move || {
                match host.connect(reach.host) {
                    Ok(other) => join(&connection, &other),
                    Err(_) => reset(&connection),
                }
                counted.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })?;
    Ok(())
}

/// Copies both ways until both have ended.
fn join(near: &TcpStream, far: &TcpStream) {
    let _ = near.set_nodelay(true);
    let _ = far.set_nodelay(true);
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, || copy(near, far)) {
        Ok(_) => copy(far, near),
        // This machine lets us have no more threads.
        Err(_) => [near, far].into_iter().for_each(reset),
    });
}

/// Copies until the end of `from`, which `to` is told; an error ends both.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let copied = io::copy(&mut from, &mut to).and_then(|_| to.flush());
    match copied {
        Ok(()) => drop(to.shutdown(Shutdown::Write)),
        Err(_) => {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    }
}

/// Ends a connection as a port does at which nobody listens.
fn reset(connection: &TcpStream) {
    let _ = socket2::SockRef::from(connection).set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn both_ways_are_copied_to_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pair = || {
            let one = TcpStream::connect(address).unwrap();
            (one, listener.accept().unwrap().0)
        };
        let ((mut client, near), (far, mut server)) = (pair(), pair());
        let relay = thread::spawn(move || join(&near, &far));
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question");
        server.write_all(&vec![b'x'; 300_000]).unwrap();
        drop(server);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 300_000);
        relay.join().unwrap();
    }
}
