//! Impairments: small machines that judge one packet at a time. netem asks them in the kernel's order and does the holding.

pub mod corrupt;
mod crandom;
pub mod duplicate;
pub mod jitter;
pub mod loss;
pub mod reorder;

pub use crandom::Crandom;
