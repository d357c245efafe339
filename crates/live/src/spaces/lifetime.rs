//! This process ends with the one that started it, and everything that it started ends with it.
//!
//! Three ways lead there, of which any one suffices: the kernel kills it when the thread that started it ends; `main` checks
//! that this thread was still there when that was arranged; and a thread of its own waits for the hang-up of its input. The
//! kernel then closes the descriptors that hold the namespaces, and with the last one takes down what is in them.
//! Source: prctl(2) PR_SET_PDEATHSIG, poll(2) POLLHUP.

use super::sys;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// What a mode may still do after the hang-up: to take leave of programs and write its last lines, which nobody reads.
const GRACE: Duration = Duration::from_secs(1);

/// Ends this process with its parent from now on. `parent`: the number of the process that started it, where that is known.
///
/// A change of credentials makes the kernel forget the arrangement, so it is made again after that.
pub fn end_with_parent(parent: Option<u32>) -> io::Result<()> {
    sys::die_with_parent()?;
    match parent {
        Some(parent) if parent != std::os::unix::process::parent_id() => {
            Err(io::Error::other("the process that started it has ended already"))
        }
        _ => Ok(()),
    }
}

/// Starts the thread that ends this process after the hang-up of `input`, a pipe or a socket.
pub fn end_with_input(input: impl AsFd + Send + 'static) -> io::Result<()> {
    let watch = move || {
        while !sys::is_hung_up(input.as_fd(), true) {}
        std::thread::sleep(GRACE);
        std::process::exit(1);
    };
    std::thread::Builder::new().name("hang-up".into()).spawn(watch).map(drop)
}
