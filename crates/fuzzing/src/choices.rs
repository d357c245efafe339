//! Bytes as choices: each takes only the bytes it needs, and once there are none left every choice is the first.

use arbitrary::Unstructured;
use tcpscape_base::Stream;

/// Choices that bytes make.
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// The choices of these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices(Unstructured::new(bytes))
    }
    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        self.0.int_in_range(0..=n.saturating_sub(1)).unwrap_or(0)
    }
    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == n - 1
    }
    /// Any number.
    pub fn any(&mut self) -> u32 {
        self.0.arbitrary().unwrap_or(0)
    }
    /// Any number.
    pub fn any_u64(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }
    /// A number up to `most`, small ones as often as large ones.
    pub fn size(&mut self, most: u32) -> u32 {
        let bits = self.below(33 - most.leading_zeros());
        self.below(1 << bits.min(31)).min(most)
    }
    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }
}

/// `length` bytes drawn from a seed, for tests.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut stream = Stream::new(seed, "fuzzing");
    (0..length).map(|_| stream.next_u32() as u8).collect()
}
