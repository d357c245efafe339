//! Which sockets a user wants: conditions on the two ends, as Python's side parsed them.

use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// A condition on a socket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// Each of these holds.
    All(Vec<Condition>),
    /// One of these holds.
    Any(Vec<Condition>),
    /// This does not hold.
    Not(Box<Condition>),
    /// An end's address begins with the first bits of this one.
    Address {
        /// Which end.
        side: Side,
        /// The address.
        address: IpAddr,
        /// How many bits.
        prefix: u8,
    },
    /// An end's port is one of these, both included.
    Port {
        /// Which end.
        side: Side,
        /// The lowest.
        from: u16,
        /// The highest.
        to: u16,
    },
}

/// An end of a connection, seen from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// This end.
    Local,
    /// The other.
    Remote,
}

impl Condition {
    /// Whether a connection meets it.
    pub fn holds(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let end = |side: &Side| if *side == Side::Local { local } else { remote };
        match self {
            Condition::All(each) => each.iter().all(|c| c.holds(local, remote)),
            Condition::Any(each) => each.iter().any(|c| c.holds(local, remote)),
            Condition::Not(inner) => !inner.holds(local, remote),
            Condition::Address { side, address, prefix } => begins_with(end(side).ip(), *address, u32::from(*prefix)),
            Condition::Port { side, from, to } => (*from..=*to).contains(&end(side).port()),
        }
    }
}

/// Whether both addresses are of one family and their first `bits` are equal.
fn begins_with(address: IpAddr, prefix: IpAddr, bits: u32) -> bool {
    match (address, prefix) {
        (IpAddr::V4(a), IpAddr::V4(p)) => (a.to_bits() ^ p.to_bits()).leading_zeros() >= bits,
        (IpAddr::V6(a), IpAddr::V6(p)) => (a.to_bits() ^ p.to_bits()).leading_zeros() >= bits,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, local: &str, remote: &str) -> bool {
        let condition: Condition = serde_json::from_str(condition).expect("a condition");
        condition.holds(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn conditions_hold_of_the_end_that_they_name() {
        let of = |text| holds(text, "10.0.0.1:5201", "192.0.2.7:443");
        assert!(of(r#"{"port": {"side": "remote", "from": 443, "to": 443}}"#));
        assert!(!of(r#"{"port": {"side": "local", "from": 0, "to": 5200}}"#));
        assert!(of(r#"{"address": {"side": "remote", "address": "192.0.2.0", "prefix": 29}}"#));
        assert!(!of(r#"{"address": {"side": "remote", "address": "192.0.2.0", "prefix": 30}}"#));
        assert!(!of(r#"{"address": {"side": "remote", "address": "::", "prefix": 0}}"#));
        assert!(of(r#"{"not": {"address": {"side": "local", "address": "192.0.2.7", "prefix": 32}}}"#));
        assert!(of(r#"{"all": []}"#) && !of(r#"{"any": []}"#));
        assert!(holds(r#"{"address": {"side": "local", "address": "fe80::", "prefix": 10}}"#, "[fe80::1]:1", "[::1]:2"));
    }
}
