//! What a kernel's queues do, found by short measurements, never by their mere presence.
//!
//! | Question | File |
//! |---|---|
//! | Where is it measured? | [`range`]: two hosts, one link, small datagrams |
//! | Does netem do what it is told? | [`netem`] |
//! | Which queues are there? | [`kinds`] |

pub mod kinds;
pub mod netem;
pub mod range;
