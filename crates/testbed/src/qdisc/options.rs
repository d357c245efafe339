//! The options of a queue as bytes: a fixed structure where its kind has one, then attributes. Source: linux/pkt_sched.h, netlink(7).
//!
//! What it is: the writer for what [`netlink_packet_route`] has no types for; each attribute is the crate's generic one.

use netlink_packet_core::{DefaultNla, Emitable};

/// A queue's `TCA_OPTIONS`, or an attribute in it that is put together from parts.
#[derive(Debug, Default)]
pub struct Options(Vec<u8>);

impl Options {
    /// Adds bytes that are no attribute.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
    /// Adds 32-bit numbers that are no attributes, one after the other, as in most of the kernel's structures.
    pub fn words<const N: usize>(&mut self, numbers: [u32; N]) {
        numbers.iter().for_each(|n| self.raw(&n.to_ne_bytes()));
    }
    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let start = self.0.len();
        self.0.resize(start + attribute.buffer_len(), 0);
        attribute.emit(&mut self.0[start..]);
    }
    /// Adds an attribute of 32 bits.
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }
    /// Adds an attribute of 64 bits.
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }
    /// Adds an attribute that `fill` puts together; some kinds want the bit `NLA_F_NESTED`.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Options)) {
        let mut inside = Options::default();
        fill(&mut inside);
        self.put(kind, &inside.0);
    }
    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_but_not_measured_so() {
        let mut o = Options::default();
        o.words([7]);
        o.nest(2 | 0x8000, |o| o.put(3, &[1, 2, 3, 4, 5]));
        o.put(4, &[9]);
        let nested: [u8; 16] = [16, 0, 2, 0x80, 9, 0, 3, 0, 1, 2, 3, 4, 5, 0, 0, 0];
        let last: [u8; 8] = [5, 0, 4, 0, 9, 0, 0, 0];
        assert_eq!(o.into_bytes(), [&7u32.to_ne_bytes()[..], &nested, &last].concat());
    }
}
