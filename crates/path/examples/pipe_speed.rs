//! What a packet costs in a stage: `cargo run --release -p tcpscape-path --example pipe_speed`.

use std::time::Instant;
use tcpscape_base::{Packet, Segment, Time};
use tcpscape_path::{parse_tc, PathSpec, Pipe};

/// Pushes packets `gap` ns apart and pops what is out, event by event, as a simulator does.
fn run(stages: &[&str], gap: u64, packets: u64) -> f64 {
    let spec = PathSpec::of(stages.iter().map(|w| parse_tc(w).expect("words")));
    let mut pipe: Pipe<Segment> = Pipe::new(&spec, 1, "forward");
    let body = Segment { len: 1448, ..Default::default() };
    let (start, mut out) = (Instant::now(), 0u64);
    for i in 0..packets {
        let now = Time(i * gap);
        while let Some(t) = pipe.next_event().filter(|&t| t <= now) {
            while pipe.pop(t).is_some() {
                out += 1;
            }
        }
        pipe.push(now, Packet { id: i, size: 1514, segs: 1, body, ..Default::default() });
    }
    assert!(out > 0);
    start.elapsed().as_nanos() as f64 / packets as f64
}

/// The least of nine runs: what the machine does when nobody disturbs it.
fn best(stages: &[&str], gap: u64) -> f64 {
    (0..9).map(|_| run(stages, gap, 200_000)).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("{:<72} {:>9} {:>9} {:>9}", "stages (ns per packet at …)", "1Mbit/s", "100Mbit/s", "10Gbit/s");
    for stages in [
        &["pfifo limit 1000"][..],
        &["netem delay 25ms limit 1000000"],
        &["netem delay 25ms loss 1% limit 1000000"],
        &["netem delay 25ms 8ms distribution normal limit 1000000"],
        &["netem delay 25ms 8ms distribution normal loss 0.1% limit 1000000", "tbf rate 20gbit burst 60560 limit 625000"],
        &["tbf rate 20gbit burst 6056 limit 62500"],
        &["netem delay 5ms rate 20gbit limit 1000000"],
        &["jitter delay 25ms 8ms order clamp limit 1000000"],
        &["jitter delay 25ms 8ms order correlated limit 1000000"],
    ] {
        let cost: Vec<f64> = [12_112_000, 121_120, 1_211].iter().map(|&gap| best(stages, gap)).collect();
        println!("{:<72} {:>9.1} {:>9.1} {:>9.1}", stages.join(" | "), cost[0], cost[1], cost[2]);
    }
}
