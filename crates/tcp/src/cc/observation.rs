//! What a congestion control shows of itself: the state that it is in, by name, and its own variables.
//!
//! Source: none; the names are those of the documents that describe each control. How it differs, not modelled: nothing known. Nobody asks unless a
//! plan wants a record of the controls, and asking changes nothing.

use std::borrow::Cow;

/// A name: of a variable or of a state.
pub type Name = Cow<'static, str>;

/// The value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A state, by its name.
    State(Name),
    /// A count or a flag: each change is worth a row of its own.
    Count(f64),
    /// A quantity, which is sampled; infinite where there is no bound.
    Number(f64),
}

/// The variables of a connection and its control at one moment, in an order that does not change.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// Names and values.
    pub values: Vec<(Name, Shown)>,
    /// Whether the control itself has shown anything.
    pub is_told: bool,
    /// The states that the control may be in, as far as it says.
    pub states: &'static [&'static str],
}

impl Observation {
    /// The state, and the states that there are.
    pub fn state(&mut self, name: &'static str, all: &'static [&'static str]) {
        self.states = all;
        self.show("state", Shown::State(name.into()));
    }

    /// A count or a flag.
    pub fn count(&mut self, name: &'static str, value: impl Into<f64>) {
        self.show(name, Shown::Count(value.into()));
    }

    /// A quantity.
    pub fn number(&mut self, name: &'static str, value: impl Into<f64>) {
        self.show(name, Shown::Number(value.into()));
    }

    /// A quantity of which `u32::MAX` means that there is no bound.
    pub fn bound(&mut self, name: &'static str, value: u32, scale: f64) {
        self.number(name, if value == u32::MAX { f64::INFINITY } else { f64::from(value) * scale });
    }

    /// A variable.
    pub fn show(&mut self, name: impl Into<Name>, value: Shown) {
        self.values.push((name.into(), value));
        self.is_told = true;
    }
}
