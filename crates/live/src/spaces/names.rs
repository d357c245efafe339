//! Names of hosts and resolvers for one command: files of its own in the place of `/etc/hosts` and `/etc/resolv.conf`.
//!
//! In the command's mount namespace files in memory are shown at the places; nothing else sees them, and nothing remains.

use super::sys;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::{fs, io};

/// The variable with the lines that process 1 adds to the names, `10.77.1.3 far`.
pub(super) const HOSTS: &str = "TCPSCAPE_HOSTS";
/// The variable with the lines that process 1 shows in place of the resolvers, `nameserver 10.0.2.3`.
pub(super) const RESOLVERS: &str = "TCPSCAPE_RESOLVERS";
/// The files, and where a file system in memory is for a moment, over whatever is there; files of it that are shown elsewhere stay when it
/// goes. Source: hosts(5), resolv.conf(5).
const FILES: [(&str, &CStr, &CStr); 2] = [(HOSTS, c"/etc/hosts", c"/tmp/hosts"), (RESOLVERS, c"/etc/resolv.conf", c"/tmp/resolv.conf")];
const MOMENT: &CStr = c"/tmp";

/// The value of [`HOSTS`] for names with their addresses.
pub(super) fn value(names: &[(&str, &str)]) -> OsString {
    names.iter().map(|(name, address)| format!("{address} {name}\n")).collect::<String>().into()
}

/// What is to be shown, taken out of the environment.
pub(super) fn take() -> Vec<(usize, OsString)> {
    let taken = FILES.iter().enumerate().filter_map(|(i, (variable, ..))| {
        let text = std::env::var_os(variable)?;
        std::env::remove_var(variable);
        Some((i, text))
    });
    taken.collect()
}

/// Shows the calling process its own files; its mount namespace must be its own. A place without a file is left as it is.
pub(super) fn show(texts: &[(usize, OsString)]) -> io::Result<()> {
    let before = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let there = |(i, _): &&(usize, OsString)| fs::metadata(OsStr::from_bytes(FILES[*i].1.to_bytes())).is_ok();
    let texts: Vec<_> = texts.iter().filter(there).collect();
    sys::mount(c"tmpfs", MOMENT)?;
    let shown = texts.into_iter().try_for_each(|(i, text)| {
        let (variable, place, file) = FILES[*i];
        let text = text.to_string_lossy();
        let shown = if variable == HOSTS { with_ours(&before, &text) } else { text.into_owned() };
        fs::write(OsStr::from_bytes(file.to_bytes()), shown)?;
        sys::show_at(file, place)
    });
    sys::unmount(MOMENT)?;
    shown
}

/// The machine's lines of hosts(5) with ours behind them; a name of ours is taken out of the machine's, of which a program would get both addresses.
fn with_ours(machine: &str, ours: &str) -> String {
    let own: Vec<&str> = ours.lines().flat_map(|line| line.split_whitespace().skip(1)).collect();
    let kept = machine.lines().filter_map(|line| {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let others: Vec<&str> = words.iter().copied().filter(|word| !own.contains(word)).collect();
        match others.len() {
            n if n == words.len() => Some(line.to_owned()),
            0 | 1 => None,
            _ => Some(others.join(" ")),
        }
    });
    kept.map(|line| line + "\n").collect::<String>() + ours
}

#[cfg(test)]
mod tests {
    use super::with_ours;

    #[test]
    fn a_name_of_ours_has_our_address_alone() {
        let machine = "127.0.0.1 localhost\n127.0.1.1 vm cdn # this machine\n\n::1 cdn\n10.0.0.9 db\n";
        let shown = with_ours(machine, "10.77.1.3 far\n10.77.1.4 cdn\n");
        assert_eq!(shown, "127.0.0.1 localhost\n127.0.1.1 vm\n\n10.0.0.9 db\n10.77.1.3 far\n10.77.1.4 cdn\n");
    }
}
