//! What every reader and writer of packets shares: the Internet checksum, the options of a TCP header, numbers modulo 2³².
//!
//! Source: RFC 1071 (sum), RFC 1624 (change of a word), RFC 9293 §3.1 (options) and §3.4 (arithmetic modulo 2³²).

/// One's complement sum of 16-bit words, folded, from `start`; an odd last byte counts as the upper half of one.
pub fn sum(bytes: &[u8], start: u16) -> u16 {
    // Eight bytes at a time; the carries add up in the upper half.
    let mut total = u64::from(start);
    let mut chunks = bytes.chunks_exact(8);
    for c in &mut chunks {
        let v = u64::from_be_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
        total += (v >> 32) + (v & 0xffff_ffff);
    }
    for c in chunks.remainder().chunks(2) {
        total += u64::from(c[0]) << 8 | c.get(1).map_or(0, |&b| u64::from(b));
    }
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The checksum in a header after one of its words has changed (RFC 1624, equation 3).
pub fn changed(checksum: u16, old: u16, new: u16) -> u16 {
    !add(add(!checksum, !old), new)
}

fn add(a: u16, b: u16) -> u16 {
    let (s, carry) = a.overflowing_add(b);
    s + u16::from(carry)
}

/// The options of a TCP header: kind and value of each but padding, until their end. A length below 2, or beyond the bytes, is damage or the end of
/// what was captured; what follows is unknown.
#[inline]
pub fn options(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || loop {
        match *bytes {
            [] | [0, ..] => return None,
            [1, ref rest @ ..] => bytes = rest,
            [kind, ref rest @ ..] => {
                let length = usize::from(*rest.first()?);
                let value = bytes.get(2..length)?;
                bytes = &bytes[length..];
                return Some((kind, value));
            }
        }
    })
}

/// How far the number `to` is ahead of `from`, which is less than half of all numbers; negative where it is behind.
#[inline]
pub fn ahead(from: u32, to: u32) -> i64 {
    i64::from(to.wrapping_sub(from) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 §3: 0001 f203 f4f5 f6f7 add up to ddf2.
    #[test]
    fn the_sum_is_that_of_the_rfc_in_parts_too() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(sum(&bytes, 0), 0xddf2);
        assert_eq!(sum(&bytes[2..], sum(&bytes[..2], 0)), 0xddf2);
        assert_eq!(sum(&[0xff, 0xff, 0x01], 0), 0x0100);
    }

    #[test]
    fn options_end_at_their_end_or_where_a_length_is_wrong() {
        let kinds = |bytes: &[u8]| options(bytes).map(|(kind, value)| (kind, value.len())).collect::<Vec<_>>();
        assert_eq!(kinds(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 4, 2, 0, 3]), [(8, 8), (4, 0)]);
        assert_eq!(kinds(&[4, 2, 8, 10, 0]), [(4, 0)]);
        assert_eq!(kinds(&[4, 2, 3, 1, 4, 2]), [(4, 0)]);
        assert_eq!(kinds(&[4, 2, 3]), [(4, 0)]);
    }

    #[test]
    fn numbers_continue_over_the_wrap() {
        assert_eq!([ahead(0xffff_ff00, 0x100), ahead(0x100, 0xffff_ff00), ahead(7, 7)], [0x200, -0x200, 0]);
    }
}
