//! Prints what a packet of a capture costs: reading it, and reading and analysing it, in ns of this process's own CPU time (Linux's
//! `/proc/self/schedstat`). Usage: `packet_cost FILE [REPETITIONS]`.

use tcpscape_capture::flow::{Analyzer, Budget};
use tcpscape_capture::read::Reader;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = std::fs::read(arguments.next().expect("a capture")).expect("a file that can be read");
    let repetitions: u32 = arguments.next().map_or(5, |n| n.parse().expect("a number"));
    let (mut reading, mut both, mut packets) = (u64::MAX, u64::MAX, 0);
    for _ in 0..repetitions {
        let begin = now();
        let mut reader = Reader::new();
        let mut bytes = 0;
        file.chunks(1 << 20).for_each(|c| reader.feed(c, &mut |p| bytes += u64::from(p.len)).expect("a capture"));
        packets = reader.finish().expect("a capture").packets;
        std::hint::black_box(bytes);
        reading = reading.min(now() - begin);
        let begin = now();
        let (mut reader, mut analyzer) = (Reader::new(), Analyzer::new(Budget::default()));
        file.chunks(1 << 20).for_each(|c| reader.feed(c, &mut |p| analyzer.packet(p)).expect("a capture"));
        std::hint::black_box(analyzer.finish());
        both = both.min(now() - begin);
    }
    let each = |ns: u64| ns as f64 / packets as f64;
    println!("{packets} packets: {:.0} ns each to read, {:.0} ns to read and analyse; fastest of {repetitions}", each(reading), each(both));
}

/// CPU time of this process, ns.
fn now() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
}
