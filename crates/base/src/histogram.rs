//! Quantiles of a stream of times in constant memory.

/// Counts of times in logarithmic buckets, 64 to an octave: quantiles within 0.8 % in constant memory.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    octaves: Vec<Option<Box<[u32; 64]>>>,
    n: u64,
    sum: u64,
    min: u32,
    max: u32,
}

impl Histogram {
    /// Counts a sample of `us` µs.
    pub fn add(&mut self, us: u32) {
        self.add_many(us, 1);
    }
    /// Counts `n` samples of `us` µs.
    #[inline]
    pub fn add_many(&mut self, us: u32, n: u32) {
        if n == 0 {
            return;
        }
        let v = u64::from(us) + 64;
        let oct = (v.ilog2() - 6) as usize;
        let sub = ((v >> oct) & 63) as usize;
        match self.octaves.get_mut(oct) {
            Some(Some(counts)) => counts[sub] += n,
            _ => self.first_of_octave(oct)[sub] += n,
        }
        self.min = if self.n == 0 { us } else { self.min.min(us) };
        self.max = self.max.max(us);
        self.n += u64::from(n);
        self.sum += u64::from(us) * u64::from(n);
    }
    #[cold]
    fn first_of_octave(&mut self, oct: usize) -> &mut [u32; 64] {
        if self.octaves.len() <= oct {
            self.octaves.resize(oct + 1, None);
        }
        self.octaves[oct].get_or_insert_with(|| Box::new([0; 64]))
    }
    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.n
    }
    /// Mean, µs; NaN without samples.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.n as f64
    }
    /// Smallest sample, µs.
    pub fn min(&self) -> u32 {
        self.min
    }
    /// Largest sample, µs.
    pub fn max(&self) -> u32 {
        self.max
    }
    /// The `q` quantile, µs (middle of its bucket, within the extremes); NaN without samples.
    pub fn quantile(&self, q: f64) -> f64 {
        if self.n == 0 {
            return f64::NAN;
        }
        let want = (q * self.n as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (oct, b) in self.octaves.iter().enumerate() {
            let Some(b) = b else { continue };
            for (sub, &c) in b.iter().enumerate() {
                seen += u64::from(c);
                if seen >= want {
                    let low = ((64 + sub as u64) << oct) - 64;
                    let mid = low as f64 + ((1u64 << oct) - 1) as f64 / 2.0;
                    return mid.clamp(f64::from(self.min), f64::from(self.max));
                }
            }
        }
        f64::from(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close() {
        let mut h = Histogram::default();
        (1..=10_000u32).for_each(|i| h.add(i * 10));
        assert!((h.quantile(0.5) / 50_000.0 - 1.0).abs() < 0.01);
        assert!((h.quantile(0.99) / 99_000.0 - 1.0).abs() < 0.01);
        assert_eq!((h.min(), h.max()), (10, 100_000));
    }
}
