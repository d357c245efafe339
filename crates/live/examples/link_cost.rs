//! What a packet costs in the emulated link, without its input and output: `cargo run --release -p tcpscape-live --example link_cost`.
//!
//! Frames arrive at 1 Gbit/s and leave when they are due; the least of seven runs, beside copying the same bytes once.

use etherparse::PacketBuilder;
use std::hint::black_box;
use std::time::Instant;
use tcpscape_base::Time;
use tcpscape_live::link::{Link, LinkOptions, VnetHeader};
use tcpscape_path::{parse_tc, Direction, PathSpec};

const MSS: usize = 1_448;
/// Time of a full frame at 1 Gbit/s, ns.
const FRAME: u64 = 12_112;
const SEGMENTS: u64 = 200_000;

/// A frame of so many full segments.
fn frame(segments: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let tcp = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 77, 1, 2], [10, 77, 1, 3], 64).tcp(40_000, 5_001, 9, 64_000);
    let tcp = tcp.ack(1).options_raw(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]).expect("timestamps");
    tcp.write(&mut packet, &vec![7; MSS * segments]).expect("a packet");
    let gso = VnetHeader { flags: 1, gso_type: 1, hdr_len: 66, gso_size: MSS as u16, csum_start: 34, csum_offset: 16 };
    let header = if segments > 1 { gso } else { VnetHeader::default() };
    [&header.bytes()[..], &packet].concat()
}

/// Nanoseconds for a segment.
fn run(words: &str, segments: usize, options: &LinkOptions) -> f64 {
    let spec = PathSpec::of([parse_tc(words).expect("words")]);
    let mut link = Link::new(&spec, &PathSpec::default(), options).expect("a path");
    let (frame, frames) = (frame(segments), SEGMENTS / segments as u64);
    let (start, mut bytes) = (Instant::now(), 0);
    for n in 0..frames {
        let now = Time(n * FRAME * segments as u64);
        while let Some(d) = link.depart(now) {
            bytes += black_box(d.frame).len();
        }
        link.arrive(now, Direction::Forward, &frame);
    }
    assert!(bytes > 0);
    start.elapsed().as_nanos() as f64 / (frames * segments as u64) as f64
}

/// Nanoseconds for copying a segment's bytes.
fn copy(segments: usize) -> f64 {
    let (frame, frames) = (frame(segments), SEGMENTS / segments as u64);
    let start = Instant::now();
    for _ in 0..frames {
        black_box(black_box(&frame).to_vec());
    }
    start.elapsed().as_nanos() as f64 / (frames * segments as u64) as f64
}

fn best(measure: impl Fn() -> f64) -> f64 {
    (0..7).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let (plain, merge) = (LinkOptions::default(), LinkOptions { merge: true, ..LinkOptions::default() });
    let logged = LinkOptions { capture: Some(0), ..merge.clone() };
    let captured = LinkOptions { capture: Some(1 << 28), ..merge.clone() };
    println!("{:<64} {:>8} {:>10} {:>10}", "", "ns", "of a core", "times a");
    println!("{:<64} {:>8} {:>10} {:>10}", "path", "/segment", "at 1 Gbit/s", "copy");
    for (what, words, segments, options) in [
        ("MTU frames", "netem delay 25ms limit 100000", 1, &plain),
        ("64 KB, leave whole", "netem delay 25ms limit 100000", 44, &merge),
        ("64 KB, leave cut", "netem delay 25ms limit 100000", 44, &plain),
        ("64 KB, leave whole but for 1 %", "netem delay 25ms loss 1% limit 100000", 44, &merge),
        ("64 KB, each its own delay", "netem delay 25ms 8ms distribution normal limit 100000", 44, &merge),
        ("64 KB, through a bottleneck", "tbf rate 2gbit burst 60560 limit 6250000", 44, &merge),
        ("64 KB, leave whole, with a log of headers", "netem delay 25ms limit 100000", 44, &logged),
        ("64 KB, leave whole, kept for a capture", "netem delay 25ms limit 100000", 44, &captured),
    ] {
        let (cost, copy) = (best(|| run(words, segments, options)), best(|| copy(segments)));
        let name = format!("{what}: {words}");
        println!("{name:<64.64} {cost:>8.0} {:>9.2} % {:>10.1}", cost / FRAME as f64 * 100.0, cost / copy);
    }
}
