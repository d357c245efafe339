//! Values back into tc's words.

use tcpscape_base::{Duration, Rate};

/// The largest unit that keeps the number whole.
pub fn rate(r: Rate) -> String {
    unit(r.0, &[(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")], "bit")
}

/// The largest unit that keeps the number whole.
pub fn time(d: Duration) -> String {
    unit(d.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

fn unit(n: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| n % size == 0 && n > 0) {
        Some((size, name)) => format!("{}{name}", n / size),
        None => format!("{n}{smallest}"),
    }
}
