//! How a receiver may misbehave.

use serde::{Deserialize, Serialize};

/// How a receiver's TCP misbehaves (Savage, Cardwell, Wetherall, Anderson: TCP Congestion Control with a Misbehaving Receiver, CCR 1999; RFC 3540 §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// It acknowledges what has not arrived: everything up to the highest byte that has, without SACK blocks, so that losses are not seen.
    Optimistic,
    /// It divides each acknowledgement into eight of equal steps.
    Dividing,
    /// It does not echo congestion marks.
    Concealing,
}
