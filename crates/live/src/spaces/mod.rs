//! Namespaces that vanish with this process.
