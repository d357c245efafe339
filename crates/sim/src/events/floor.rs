//! The floor of the benchmark: what events cost with nothing behind them.

use super::{Events, Node, Phase};
use tcpscape_base::Time;

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

/// Seconds that `events` events take with nothing behind them, for the nodes of one flow: the floor of the benchmark.
pub fn floor(events: u64) -> f64 {
    const NODES: u32 = 8;
    let mut e = Events::new(NODES as usize);
    (0..NODES).for_each(|i| e.want(Idle(i), Time(u64::from(i))));
    let start = std::time::Instant::now();
    for i in 0..events {
        let (t, node) = e.pop(Time::MAX).expect("every node wants more");
        e.want(node, Time(t.0 + 1_000 + (i & 63)));
    }
    start.elapsed().as_secs_f64()
}
