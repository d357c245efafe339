//! What the programs have in common: a server that writes for as long as its client reads, and a client that reads for some seconds.
//!
//! ```text
//! PROGRAM serve CONTROL          the far end, with the congestion control that sends
//! PROGRAM get HOST SECONDS       downloads, and writes {"bytes":…,"seconds":…,"mbps":…}
//! ```

use std::error::Error;
use std::future::Future;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::time::{Duration, Instant};
use std::{env, process};

/// What a program's parts return.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// UDP port of the server.
pub const PORT: u16 = 4433;
/// Name in its certificate.
pub const NAME: &str = "far";
/// Files with its certificate and key, PEM, beside what was built.
pub const CERTIFICATE: &str = concat!(env!("OUT_DIR"), "/certificate.pem");
pub const KEY: &str = concat!(env!("OUT_DIR"), "/key.pem");
/// Application protocol.
pub const PROTOCOL: &[u8] = b"transfer";
/// Bytes that a receiver allows and a sender keeps: more than a path of `benches/quic.py` holds, so that nothing but the control limits the flow.
pub const WINDOW: u32 = 32 << 20;
/// Bytes of UDP in the largest packet of an Ethernet path with IPv4.
pub const DATAGRAM: usize = 1472;
/// What is sent, again and again.
pub static PART: [u8; 64 << 10] = [0; 64 << 10];

/// What a program is asked to be.
pub enum Role {
    /// The far end, with this control.
    Serve(String),
    /// The near end: the server's address and for how long.
    Get(SocketAddr, Duration),
}

/// Reads the command line; ends the process with a line where it is wrong.
pub fn role() -> Role {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", control] => Role::Serve(control.to_owned()),
        ["get", host, seconds] => {
            let address = (host, PORT).to_socket_addrs().ok().and_then(|mut each| each.find(SocketAddr::is_ipv4));
            match (address, seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())) {
                (Some(address), Some(time)) => Role::Get(address, time),
                _ => refuse(&format!("{host} has no IPv4 address, or {seconds} is no number of seconds; write for example: get far 10")),
            }
        }
        _ => refuse("write: serve CONTROL, or: get HOST SECONDS"),
    }
}

/// A program of a stack whose two roles are asynchronous: runs the one that it is asked to be, in this thread.
pub fn run(serve: impl AsyncFnOnce(&str) -> Outcome, get: impl AsyncFnOnce(SocketAddr, Duration) -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match role() {
            Role::Serve(control) => serve(&control).await,
            Role::Get(address, time) => get(address, time).await,
        }
    })
}

/// Sends to a client in a task of its own, until the client closes the connection, which is an error of the stream.
pub fn serve_client(send: impl Future<Output = Outcome> + Send + 'static) {
    tokio::spawn(async move { drop(send.await) });
}

/// Reads parts of a stream that never ends for a time, and reports how many bytes they had. `next`: the bytes of the next part, None at an error.
pub async fn read_for(time: Duration, mut next: impl AsyncFnMut() -> Option<usize>) {
    let (began, mut bytes) = (Instant::now(), 0);
    let read = async {
        while let Some(size) = next().await {
            bytes += size as u64;
        }
    };
    let _ = tokio::time::timeout(time, read).await;
    report(bytes, began.elapsed());
}

/// Ends the process with an error in a line.
pub fn refuse(problem: &str) -> ! {
    eprintln!("error: {problem}");
    process::exit(2)
}

/// Any address and this port.
pub fn any(port: u16) -> SocketAddr {
    SocketAddrV4::new([0, 0, 0, 0].into(), port).into()
}

/// Writes the client's result.
pub fn report(bytes: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    println!("{{\"bytes\": {bytes}, \"seconds\": {seconds:.6}, \"mbps\": {:.6}}}", bytes as f64 * 8e-6 / seconds);
}
