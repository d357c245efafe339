//! Where the capture was taken, as its packets show it.
//!
//! Method: the path is cut into two parts, from here to the data's sender and back, and from here to its receiver and back. Their times show in
//! the handshake (SYN-ACK → ACK, SYN → SYN-ACK), in the timestamps' echoes and in the ACKs. A part that takes next to no time is no path:
//! the capture was taken at that end. A path's evidence overrules it: what was lost or reordered before it was seen was not seen at its sender.

use super::direction::Direction;
use super::rtt::Times;
use serde::Serialize;

/// A part is no path below this share of the round trip.
const SHARE: f64 = 0.05;
/// A part below this takes no time, ns: what a host itself takes to answer.
const HOST: u64 = 300_000;
/// Of the answers, this quantile stands for those that did not wait.
const LOW: f64 = 0.05;
/// Echoes needed.
const SAMPLES: u64 = 5;

/// A place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// At the data's sender.
    Sender,
    /// At its receiver.
    Receiver,
    /// Between the two.
    Middle,
    /// The packets do not show it.
    Unknown,
}

/// The place of a capture, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Vantage {
    /// The place.
    #[serde(rename = "vantage")]
    pub place: Place,
    /// From 0 to 1.
    #[serde(rename = "vantage_confidence")]
    pub confidence: f64,
    /// What it rests on.
    #[serde(rename = "vantage_evidence")]
    pub evidence: &'static str,
    /// From here to the sender and back, ms.
    pub sender_part_ms: Option<f64>,
    /// From here to the receiver and back, ms.
    pub receiver_part_ms: Option<f64>,
}

/// The parts of the path by the handshake: to the sender and back, to the receiver and back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// To the sender and back, ns.
    pub sender: Option<u64>,
    /// To the receiver and back, ns.
    pub receiver: Option<u64>,
}

/// Judges the place for the data of one direction.
pub fn judge(d: &Direction, handshake: Parts) -> Vantage {
    let low = |times: &Times| (times.count() >= SAMPLES).then(|| times.quantile(LOW)).flatten();
    // The handshake is one sample, of ends that answer at once; later answers may wait for data or for more of it, or a delay may be cut off at 0.
    let most = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) if is_near(b, a + b) => Some(a),
        (a, b) => a.into_iter().chain(b).min(),
    };
    let (quick_up, quick_down) = (low(d.data.upstream()), low(d.acks.rtt()));
    let (up, down) = (most(handshake.sender, quick_up), most(handshake.receiver, quick_down));
    // A handshake that waited in others' queue makes the round trip too long, of which a part would then be too small a share.
    let total = quick_up.into_iter().chain(up).min().unwrap_or(0) + quick_down.into_iter().chain(down).min().unwrap_or(0);
    let ms = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e6);
    let (place, confidence, evidence) = place(d, up, down, total, handshake.sender.is_some() && handshake.receiver.is_some());
    Vantage { place, confidence, evidence, sender_part_ms: ms(up), receiver_part_ms: ms(down) }
}

/// Whether a part of a round trip of `total` is no path.
fn is_near(part: u64, total: u64) -> bool {
    part < HOST || (part as f64) < SHARE * total as f64
}

fn place(d: &Direction, up: Option<u64>, down: Option<u64>, total: u64, by_handshake: bool) -> (Place, f64, &'static str) {
    let counts = &d.log.counts;
    let before = counts.losses_before + counts.reordered_before;
    let after = counts.losses - counts.losses_before.min(counts.losses);
    let (Some(up), Some(down)) = (up, down) else {
        return match (up, down) {
            (_, Some(down)) if before > 0 && after == 0 && down < HOST => {
                (Place::Receiver, 0.9, "data was lost or reordered before it came here, and is answered at once")
            }
            (_, Some(down)) if before == 0 && after > 0 && down >= HOST => (Place::Sender, 0.9, "what was lost had been seen here"),
            _ if before > 0 && after > 0 => (Place::Middle, 0.9, "losses on both sides"),
            _ => (Place::Unknown, 0.0, "neither handshake nor timestamps show the parts of the path"),
        };
    };
    let near = |part: u64| is_near(part, total);
    let sure = if by_handshake { 0.99 } else { 0.95 };
    match (near(up), near(down)) {
        (true, true) => match (before > 0, after > 0) {
            (true, false) => (Place::Receiver, 0.8, "a short path; data was lost or reordered before it came here"),
            (false, true) => (Place::Sender, 0.8, "a short path; what was lost had been seen here"),
            _ => (Place::Unknown, 0.0, "the path is too short for its parts to be told apart"),
        },
        // Of what was lost later, the first transmissions that the capture lacks seem lost before it.
        (true, false) if before > 0 && counts.not_captured_bytes > 0 && before <= after => {
            (Place::Sender, 0.7, "the sender answers at once; the capture lacks data, so that some of it seems lost before it came here")
        }
        (true, false) if before > 0 => (Place::Middle, 0.8, "the sender is near, but data was lost or reordered before it came here"),
        (true, false) => (Place::Sender, sure, "the sender answers at once, the receiver a round trip later"),
        (false, true) if after > 0 => (Place::Receiver, 0.7, "the receiver answers at once, though some data was lost after it was seen"),
        (false, true) => (Place::Receiver, sure, "the receiver answers at once, the sender a round trip later"),
        (false, false) if by_handshake || before > 0 => (Place::Middle, sure, "both ends answer later"),
        (false, false) => (Place::Middle, 0.6, "both ends answer later, unless it is the application that pauses"),
    }
}
