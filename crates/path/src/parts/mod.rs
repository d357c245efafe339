//! Parts that several disciplines use and none owns.
//!
//! | Part | Used by |
//! |---|---|
//! | [`clock`]: the kernel's tick | red, pie, fq_pie |
//! | [`dist`]: distributions of delays | netem, jitter |
//! | [`drr`]: flows in turn | fq_codel, fq_pie |
//! | [`due`]: packets by due time | netem, jitter |
//! | [`pace`]: bytes as time at a rate | tbf, htb |

pub mod clock;
pub mod dist;
pub mod drr;
pub mod due;
pub mod pace;
