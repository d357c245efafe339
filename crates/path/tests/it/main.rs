//! Tests of queues and paths, one program: each further one would be linked with all queues again.

mod description;
mod laws;
mod published;
mod schedule;
