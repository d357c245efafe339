//! Tests of queues and paths, one program: each further one would be linked with all queues again.

mod description;
mod laws;
mod published;
mod schedule;

/// The examples of the registry, and more words.
fn words_and(more: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    tcpscape_path::REGISTRY.iter().map(|e| e.example).chain(more.iter().copied())
}
