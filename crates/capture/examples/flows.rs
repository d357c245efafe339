//! Prints the facts of every flow of a capture, one JSON object a line, and what was read.
//!
//! `cargo run --release -p tcpscape-capture --example flows FILE`

use std::io::Read;
use tcpscape_capture::flow::{Analyzer, Budget};
use tcpscape_capture::read::Reader;

fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let mut file = std::fs::File::open(path).expect("a readable file");
    let (mut reader, mut analyzer) = (Reader::new(), Analyzer::new(Budget::default()));
    let begin = std::time::Instant::now();
    let mut chunk = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut chunk).expect("a readable file");
        if n == 0 {
            break;
        }
        reader.feed(&chunk[..n], &mut |p| analyzer.packet(p)).unwrap_or_else(|e| panic!("{e}"));
    }
    let report = reader.finish().unwrap_or_else(|e| panic!("{e}"));
    let (flows, totals) = analyzer.finish();
    let seconds = begin.elapsed().as_secs_f64();
    for f in &flows {
        println!("{}:{} > {}:{} {}", f.from.address, f.from.port, f.to.address, f.to.port, f.facts.json());
    }
    eprintln!("{} frames, {totals:?}, {:.2} million packets/s", report.frames, totals.packets as f64 / seconds / 1e6);
}
