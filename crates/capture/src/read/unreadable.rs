//! The refusal of a file.

/// Why a file is not read at all: one line, for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct Unreadable {
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub fix: String,
}
