//! TCP headers, as far as they were captured.
//!
//! Source: RFC 9293 §3.1 and §3.2, RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 9768 (the ninth flag).

use super::Skipped;
use crate::packet::{Options, MOST_BLOCKS};
use tcpscape_base::{wire, Flags};

/// What a header says.
#[derive(Debug)]
pub struct Header {
    /// Ports of source and destination.
    pub ports: [u16; 2],
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; 0 without the ACK flag.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Window field.
    pub window: u16,
    /// Bytes of payload.
    pub len: u32,
    /// Options.
    pub options: Options,
}

/// Bytes without which a header is of no use: up to the window.
const LEAST: usize = 16;
/// Bytes without options.
const FIXED: usize = 20;
/// Largest shift of a window (RFC 7323 §2.3).
const LARGEST_SHIFT: u8 = 14;

/// Reads the header at the begin of a segment of `total` bytes.
#[inline]
pub fn read(bytes: &[u8], total: u32) -> Result<Header, Skipped> {
    let Some(fixed) = bytes.first_chunk::<LEAST>() else {
        return Err(if (total as usize) < FIXED { Skipped::Damaged } else { Skipped::Cut });
    };
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let length = usize::from(fixed[12] >> 4) * 4;
    let len = total.checked_sub(length as u32).filter(|_| length >= FIXED).ok_or(Skipped::Damaged)?;
    let flags = Flags((fixed[13] & !Flags::AE.0) | ((fixed[12] & 1) * Flags::AE.0));
    let known = bytes.get(FIXED..length.min(bytes.len())).unwrap_or_default();
    let mut options = read_options(known, flags.has(Flags::SYN));
    options.is_cut |= bytes.len() < length;
    Ok(Header {
        ports: [half(0), half(2)],
        seq: word(4),
        ack: if flags.has(Flags::ACK) { word(8) } else { 0 },
        flags,
        window: half(14),
        len,
        options,
    })
}

#[inline]
fn read_options(mut bytes: &[u8], is_syn: bool) -> Options {
    let mut options = Options::default();
    // What Linux writes on every segment after the handshake: NOP NOP timestamps.
    if let [1, 1, 8, 10, value @ ..] = bytes {
        if let Some((value, rest)) = value.split_first_chunk::<8>() {
            options.timestamps = Some((word(value, 0), word(value, 4)));
            bytes = rest;
        }
    }
    wire::options(bytes).for_each(|(kind, value)| read_option(kind, value, is_syn, &mut options));
    options
}

fn read_option(kind: u8, value: &[u8], is_syn: bool, options: &mut Options) {
    match (kind, value) {
        (2, &[high, low]) if is_syn => options.mss = Some(u16::from_be_bytes([high, low])),
        (3, &[shift]) if is_syn => options.window_scale = Some(shift.min(LARGEST_SHIFT)),
        (4, []) if is_syn => options.sack_permitted = true,
        (5, edges) => {
            for (block, edges) in options.blocks.iter_mut().zip(edges.chunks_exact(8)) {
                *block = (word(edges, 0), word(edges, 4));
            }
            options.block_count = (edges.len() / 8).min(MOST_BLOCKS) as u8;
        }
        (8, value) if value.len() == 8 => options.timestamps = Some((word(value, 0), word(value, 4))),
        _ => {}
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
