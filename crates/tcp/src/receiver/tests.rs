//! Packet scripts.
