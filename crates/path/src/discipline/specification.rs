//! A discipline as a specification: read from tc's words, printed back, checked, described, and made into a machine.

use super::description::Description;
use super::qdisc::{AnyQdisc, Body};
use crate::values::SpecError;
use crate::words::{TcError, Words};

/// What the table asks of each discipline's specification. The specification is also what JSON carries, so it implements serde's traits.
pub trait Discipline: Sized {
    /// tc's name for it.
    const NAME: &'static str;
    /// A short example, which the tests use too.
    const EXAMPLE: &'static str;
    /// The fields of a [`super::Patch`] that a schedule may change.
    const CHANGES: &'static [&'static str] = &[];

    /// Reads the words after the name.
    fn parse(w: &mut Words<'_>) -> Result<Self, TcError>;
    /// Canonical words, the name first, which [`Discipline::parse`] reads back to the same value.
    fn words(&self) -> String;
    /// Says what is wrong with it.
    fn validate(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Says what is wrong with it where another of its kind stands above or below it.
    fn validate_among_its_kind(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Whether these words (the name first) only announce the same discipline, which follows after the next `;`.
    fn announces(_words: &[&str]) -> bool {
        false
    }
    /// What it does to packets, its child left out.
    fn describe(&self) -> Description {
        Description::of(Self::NAME)
    }
    /// The queue that packets wait in below it where its words name no child; `None` where they wait in itself.
    fn describe_own_queue(&self) -> Option<Description> {
        None
    }
    /// Whether a TCP on the same host leaves its pacing to it.
    fn paces(&self) -> bool {
        false
    }
    /// An empty machine, its children included. Its random streams are `name/purpose`.
    fn machine<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B>;
}

/// A queue below another, as far as the specification of its parent must know it. The table of disciplines implements this, so that no
/// parent knows the table.
pub trait Child: Sized {
    /// tc's name for it.
    fn name(&self) -> &'static str;
    /// What it does to packets, its own children left out.
    fn describe_alone(&self) -> Description;
    /// Its machine, its own children included; `name` is the parent's.
    fn build<B: Body>(&self, seed: u64, name: &str) -> AnyQdisc<B>;
    /// A FIFO of so many packets, which some parents have where no child is given.
    fn pfifo(packets: u64) -> Self;
    /// A FIFO of so many bytes.
    fn bfifo(bytes: u64) -> Self;
}

/// Reads and checks the words of one discipline as the table does.
#[cfg(test)]
pub(crate) fn try_spec<D: Discipline>(text: &str) -> Result<D, TcError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[0], D::NAME);
    let spec = D::parse(&mut Words::new(D::NAME, &words[1..]))?;
    spec.validate().map_err(|e| TcError(e.to_string()))?;
    Ok(spec)
}
/// The same for words that are right.
#[cfg(test)]
pub(crate) fn spec<D: Discipline>(text: &str) -> D {
    try_spec(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}
