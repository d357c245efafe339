//! The mode with sockets of this process on loopback.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Runs the mode on the sockets to `port` while `meanwhile` does something; the lines and the result.
fn watched(port: u16, duration_ms: u64, meanwhile: impl FnOnce(&mut UnixStream) + Send) -> (Vec<Value>, Value) {
    let (input, mut theirs) = UnixStream::pair().expect("sockets");
    let (mut ours, output) = UnixStream::pair().expect("sockets");
    let channel = Channel::new(input.into(), output.into());
    let port = json!({ "port": { "side": "remote", "from": port, "to": port } });
    let job = json!({ "duration_ns": duration_ms * 1_000_000, "states": 0xffe, "condition": port, "most": 10 });
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        ours.read_to_string(&mut text).expect("lines");
        text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect::<Vec<Value>>()
    });
    let result = std::thread::scope(|s| {
        s.spawn(|| meanwhile(&mut theirs));
        run(job, &channel).expect("no privilege is needed")
    });
    // The thread that waits for requests has the channel, too.
    drop((channel, theirs));
    (reader.join().expect("no panic"), result)
}

fn values(line: &Value, name: &str) -> Vec<f64> {
    let bytes = BASE64_STANDARD.decode(line["columns"][name].as_str().unwrap_or_default()).expect("base64");
    bytes.chunks(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
}

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    (ours, listener.accept().expect("its other end").0)
}

#[test]
fn a_sender_that_ends_between_two_samples_is_told_with_its_last_counters() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = listener.local_addr().expect("bound").port();
    let (idle, _idle) = pair(&listener);
    let (lines, result) = watched(port, 60_000, |requests| {
        std::thread::sleep(Duration::from_millis(100));
        let (mut ours, mut theirs) = pair(&listener);
        ours.write_all(&[1; 30_000]).expect("room");
        theirs.read_exact(&mut [0; 30_000]).expect("data");
        drop((ours, theirs));
        std::thread::sleep(Duration::from_millis(300));
        requests.write_all(b"{\"stop\": true}\n").expect("room");
    });
    let sockets: Vec<&Value> = lines.iter().filter(|l| l["event"] == "socket").collect();
    assert_eq!(sockets.len(), 1, "{result}");
    let acked = values(sockets[0], "bytes_acked");
    assert!((30_000.0..30_003.0).contains(acked.last().expect("a sample")), "{acked:?}");
    assert_eq!(values(sockets[0], "t_s").len(), acked.len());
    assert!(sockets[0]["ended_s"].as_f64().expect("it ended") > 0.05);
    assert_eq!((&result["idle"], &result["carrying"]), (&json!(1), &json!(1)));
    drop(idle);
}

#[test]
fn a_line_ends_it_early() {
    let began = Instant::now();
    let (_, result) = watched(1, 60_000, |theirs| theirs.write_all(b"{\"stop\": true}\n").expect("room"));
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(result["seen"], 0);
}

#[test]
fn what_is_unknown_in_a_job_is_refused() {
    let (input, _theirs) = UnixStream::pair().expect("sockets");
    let (_ours, output) = UnixStream::pair().expect("sockets");
    let error = run(json!({ "duration": 1 }), &Channel::new(input.into(), output.into())).expect_err("not a job");
    assert!(error.starts_with("job: "), "{error}");
}
