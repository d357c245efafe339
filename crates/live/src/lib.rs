//! The live engine's program: this machine's own kernel in network namespaces, and an emulated link between them.
//!
//! ```text
//! Python: job ─→ main ─→ spaces (user and network namespaces) ─→ trial | emulate | probe
//!                                     sender ── veth ── emulator (link) ── veth ── receiver
//! ```
//!
//! | Module | What it is |
//! |---|---|
//! | [`channel`] | the job, control messages and results as lines of JSON |
//! | [`link`] | the emulated link without a clock or a socket: frames in, the path's decisions, frames out |
//! | [`emulator`] | drives a link by the wall clock, with packets of real devices |
//! | [`spaces`] | namespaces that vanish with this process |
//! | [`trial`] | one trial of the live engine |
//! | [`emulate`] | the mode of `tcpscape emulate`: a command behind the path |
//! | [`probe`] | what this machine's kernel allows, found by trying it |
//! | [`sockets`] | the sockets of this program's own namespace, sampled for a diagnosis |

pub mod channel;
pub mod emulate;
pub mod emulator;
pub mod link;
pub mod probe;
pub mod sockets;
pub mod spaces;
pub mod trial;
