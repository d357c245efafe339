//! Names of hosts for one command: a file of its own in the place of `/etc/hosts`.
//!
//! In the command's mount namespace a file in memory is shown at the place; nothing else sees it, and nothing remains.

use super::sys;
use std::ffi::{OsStr, OsString};
use std::{fs, io};

/// The variable with the lines that process 1 adds, `10.77.1.3 far`.
pub(super) const HOSTS: &str = "TCPSCAPE_HOSTS";
/// The file of names. Source: hosts(5).
const PLACE: &str = "/etc/hosts";
/// Where a file system in memory is for a moment, over whatever is there; a file of it that is shown elsewhere stays when it goes.
const MOMENT: &str = "/tmp";

/// The value of [`HOSTS`] for names with their addresses.
pub(super) fn value(names: &[(&str, &str)]) -> OsString {
    names.iter().map(|(name, address)| format!("{address} {name}\n")).collect::<String>().into()
}

/// Adds the lines to the file of names that the calling process sees; its mount namespace must be its own. A machine without such a file
/// gets none.
pub(super) fn add(lines: &OsStr) -> io::Result<()> {
    let Ok(before) = fs::read_to_string(PLACE) else { return Ok(()) };
    sys::mount(c"tmpfs", c"/tmp")?;
    let file = format!("{MOMENT}/hosts");
    let text = format!("{}\n{}", before.trim_end(), lines.to_string_lossy());
    let shown = fs::write(&file, text).and_then(|()| sys::show_at(c"/tmp/hosts", c"/etc/hosts"));
    sys::unmount(c"/tmp")?;
    shown
}
