//! netem's judges: small machines that decide about one packet at a time. netem asks them in turn and does the holding.

pub mod chance;
pub mod loss;
