//! Distributions of delays: netem's tables, from their mathematical definition.
//!
//! A table has 4096 entries in units of 1/8192 standard deviation, so that `table[random % 4096] · σ / 8192` is a draw.
//! Facts of the tables that tc loads (`normal.dist`, `pareto.dist`, `paretonormal.dist`), which a test compares when
//! tc is installed:
//! - normal: the quantile of (4k + ½)/16384, taken down to a grid of 5·10⁻⁵ σ, cut to 16 bits (so −4σ is the least);
//! - pareto: shape 3; of (1 − k/4096)^(−1/3), less its mean 3/2, scaled by 4/3, cut at 32767;
//! - paretonormal: a quarter of the normal entry (uncut) and three quarters of the Pareto entry, towards zero.

use crate::values::Dist;
use std::sync::OnceLock;

/// Entries of a table.
pub const ENTRIES: usize = 4096;
/// One standard deviation in a table.
pub const SCALE: i64 = 8192;
/// Probability steps behind the normal table: four an entry.
const STEPS: f64 = 16_384.0;
/// Grid of the normal table, σ.
const GRID: f64 = 0.000_05;

/// A distribution table.
pub type Table = [i16; ENTRIES];

/// The table of a distribution; uniform has none.
pub fn table(d: Dist) -> Option<&'static Table> {
    static TABLES: [OnceLock<Box<Table>>; 3] = [const { OnceLock::new() }; 3];
    let (cell, entry): (_, fn(f64, i64) -> i64) = match d {
        Dist::Uniform => return None,
        Dist::Normal => (&TABLES[0], |_, normal| normal),
        Dist::Pareto => (&TABLES[1], |k, _| pareto(k)),
        Dist::ParetoNormal => (&TABLES[2], |k, normal| (normal + 3 * pareto(k)) / 4),
    };
    Some(cell.get_or_init(|| {
        let mut t = Box::new([0i16; ENTRIES]);
        let mut x = -4.1;
        for (k, out) in t.iter_mut().enumerate() {
            let normal = if d == Dist::Pareto { 0 } else { normal(k as f64, &mut x) };
            *out = entry(k as f64, normal).clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16;
        }
        t
    }))
}

/// Standard deviation of netem's draws, in units of the spread that it is told: of the table's entries, or of the even distribution.
pub fn deviation(d: Dist) -> f64 {
    table(d).map_or(1.0 / 3f64.sqrt(), |t| {
        let moment = |power: i32| t.iter().map(|&v| (f64::from(v) / SCALE as f64).powi(power)).sum::<f64>() / ENTRIES as f64;
        (moment(2) - moment(1).powi(2)).sqrt()
    })
}

/// netem's draw of a delay: mean `mu`, spread `sigma` (both ns), from 32 random bits. Without a table it is even over the 2σ from μ − σ on.
#[inline]
pub fn sample(mu: i64, sigma: i32, rnd: u32, table: Option<&Table>) -> i64 {
    let spread = i64::from(sigma);
    match table {
        _ if sigma == 0 => mu,
        None => mu - spread + i64::from(rnd % (2 * sigma as u32)),
        Some(table) => mu + rounded(spread * i64::from(table[rnd as usize % ENTRIES]), SCALE),
    }
}

/// A quotient rounded to the nearest whole number, half away from zero; `by` is positive and even.
#[inline]
fn rounded(n: i64, by: i64) -> i64 {
    (n + n.signum() * (by / 2)) / by
}

/// The Pareto entry, cut.
fn pareto(k: f64) -> i64 {
    let x = (1.0 - k / ENTRIES as f64).cbrt().recip();
    (((x - 1.5) * (4.0 / 3.0) * SCALE as f64).round_ties_even() as i64).min(i64::from(i16::MAX))
}

/// The normal entry, uncut. `x` is where the last one was found: quantiles only grow.
fn normal(k: f64, x: &mut f64) -> i64 {
    let target = (4.0 * k + 0.5) / STEPS;
    for _ in 0..60 {
        let (p, density) = phi(*x);
        let step = (target - p) / density;
        // Newton from the left; the step is bounded where the density is small.
        *x += step.clamp(-0.1, 0.1);
        if step.abs() < 1e-13 {
            break;
        }
    }
    let at = |j: f64| j * GRID - 10.0;
    let mut j = ((*x + 10.0) / GRID).floor();
    while phi(at(j + 1.0)).0 <= target {
        j += 1.0;
    }
    while phi(at(j)).0 > target {
        j -= 1.0;
    }
    (at(j) * SCALE as f64).round_ties_even() as i64
}

/// The standard normal distribution function and its density, by the series x + x³/3 + x⁵/(3·5) + … (Marsaglia 2004).
fn phi(x: f64) -> (f64, f64) {
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0.5 + sum * density, density)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(t: &Table) -> i64 {
        t.iter().map(|&v| i64::from(v)).sum()
    }
    /// FNV-1a over the little-endian entries.
    fn hash(t: &Table) -> u64 {
        t.iter().flat_map(|v| v.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    #[test]
    fn known_entries() {
        let n = table(Dist::Normal).unwrap();
        assert_eq!((n[0], n[1], n[2], n[4095]), (-32768, -28307, -26871, 28858));
        assert_eq!(n[2044..2052], [-20, -15, -9, -5, 0, 5, 11, 16]);
        let p = table(Dist::Pareto).unwrap();
        assert_eq!((p[0], p[1], p[4095]), (-5461, -5460, 32767));
        let m = table(Dist::ParetoNormal).unwrap();
        assert_eq!((m[0], m[1], m[4095]), (-12305, -11171, 31789));
        assert_eq!([sum(n), sum(p), sum(m)], [-26_163, -1_123_786, -848_968]);
        assert_eq!(table(Dist::Uniform), None);
    }

    #[test]
    fn checksums_of_the_tables() {
        let h = [Dist::Normal, Dist::Pareto, Dist::ParetoNormal].map(|d| hash(table(d).unwrap()));
        assert_eq!(h, [4_546_818_543_588_717_496, 2_350_348_201_318_947_322, 5_083_695_130_547_186_937]);
    }

    /// Compares every entry with tc's own files; without iproute2 there is nothing to compare with.
    #[test]
    fn equal_to_tcs_files_where_installed() {
        for d in [Dist::Normal, Dist::Pareto, Dist::ParetoNormal] {
            let dirs = ["/usr/lib/x86_64-linux-gnu/tc", "/usr/lib/tc", "/usr/lib64/tc", "/usr/share/tc", "/usr/lib/aarch64-linux-gnu/tc"];
            let Some(text) = dirs.iter().find_map(|p| std::fs::read_to_string(format!("{p}/{}.dist", d.name())).ok()) else {
                tcpscape_base::skip(format!("no {}.dist on this machine (iproute2 is not installed)", d.name()));
                continue;
            };
            let file: Vec<i16> =
                text.lines().filter(|l| !l.starts_with('#')).flat_map(str::split_whitespace).map(|w| w.parse().unwrap()).collect();
            assert_eq!(file, table(d).unwrap().as_slice(), "{}", d.name());
        }
    }

    /// The deviations are those of many draws.
    #[test]
    fn deviations_are_those_of_the_draws() {
        for d in [Dist::Uniform, Dist::Normal, Dist::Pareto, Dist::ParetoNormal] {
            let draws: Vec<f64> =
                (0..65_536u32).map(|k| sample(0, 1_000_000, k.wrapping_mul(2_654_435_761), table(d)) as f64 / 1e6).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let spread = (draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
            assert!((spread - deviation(d)).abs() < 0.002, "{}: {spread} {}", d.name(), deviation(d));
        }
    }

    #[test]
    fn quotients_are_rounded_half_away_from_zero() {
        assert_eq!([-12_288, -4_097, -4_096, -4_095, 0, 4_095, 4_096, 12_288].map(|n| rounded(n, SCALE)), [-2, -1, -1, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn a_draw_is_sigma_times_the_entry() {
        // entry 4095 of normal: 28858/8192 = 3.5227 σ; 8 ms · 3.5227 = 28.1816 ms
        let t = table(Dist::Normal);
        assert_eq!(sample(25_000_000, 8_000_000, 4095, t), 25_000_000 + (8_000_000i64 * 28_858 + 4096) / 8192);
        // entry 0: −4 σ, below zero
        assert_eq!(sample(25_000_000, 8_000_000, 4096, t), 25_000_000 - 32_000_000);
        // uniform: 0 and 2σ−1 are the ends
        assert_eq!((sample(1000, 100, 0, None), sample(1000, 100, 199, None), sample(1000, 100, 200, None)), (900, 1099, 900));
    }
}
