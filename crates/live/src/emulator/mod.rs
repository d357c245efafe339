//! Drives a [`crate::link`] by the wall clock, with packets of real devices.
