//! What events cost with nothing behind them, for the nodes of one flow: `floor EVENTS` prints seconds. The floor of `benches/performance.py`.

use tcpscape_base::Time;
use tcpscape_sim::events::{Events, Node, Phase};

/// A node of the benchmark, which has no work behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Idle(u32);

impl Node for Idle {
    fn index(self) -> u32 {
        self.0
    }
    fn from_index(index: u32) -> Idle {
        Idle(index)
    }
    fn phase(self) -> Phase {
        Phase::Network
    }
}

fn main() {
    const NODES: u32 = 8;
    let events: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).expect("EVENTS");
    let mut e = Events::new(NODES as usize);
    (0..NODES).for_each(|i| e.want(Idle(i), Time(u64::from(i))));
    let start = std::time::Instant::now();
    for i in 0..events {
        let (t, node) = e.pop(Time::MAX).expect("every node wants more");
        e.want(node, Time(t.0 + 1_000 + (i & 63)));
    }
    println!("{}", start.elapsed().as_secs_f64());
}
