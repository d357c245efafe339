//! Tests of whole trials, one program: each further one would be linked with the whole model again.

mod accounts;
mod bbr3;
mod behaviour;
mod determinism;
mod golden;
mod media;
mod misbehaving;
mod prague;
mod topology;
mod traffic;
