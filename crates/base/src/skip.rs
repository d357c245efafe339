//! A test that this machine cannot run.

/// Says on the standard output why a test does nothing. With `TCPSCAPE_MUST_RUN=1`, which CI sets where the machine can run every test, it panics.
pub fn skip(why: impl std::fmt::Display) {
    assert!(std::env::var("TCPSCAPE_MUST_RUN").as_deref() != Ok("1"), "a test that must run is skipped: {why}");
    println!("skipped: {why}");
}
