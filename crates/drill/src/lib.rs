//! packetdrill's scripts against the model's own sender and receiver, in virtual time.
//!
//! `parse` reads the language, `run` carries a script out. A host has one connection ([`endpoint`]: a sender and a receiver of `tcpscape_tcp` as one
//! endpoint), which its application's calls drive (`host.rs`); `run.rs` is the clock, the events and the comparison of packets. What a connection of
//! the model cannot express ends a script as *not applicable*, with the reason (`scope.rs`, `settings.rs`), never as passed.
//!
//! Source: packetdrill's published syntax reference, the paper (Cardwell et al., USENIX ATC 2013), observed scripts. Its sources were not read.

mod endpoint;
mod host;
mod info;
mod lexer;
mod parser;
mod run;
mod scope;
mod script;
mod settings;
mod wire;

pub use parser::parse;
pub use run::{run, Failure, Outcome, Report, Snapshot};
pub use script::{Action, Call, Event, Micros, Script, ScriptError, When};
pub use settings::Ignored;
pub use wire::{Packet, TcpOption};
