//! Settings of the kernel: in the hosts' namespaces, or, where a setting is the whole kernel's, from its first namespace.

use super::TestbedError;
use std::collections::BTreeMap;
use std::{fs, io};

/// How far settings may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole kernel: one that runs nothing else.
    Kernel,
    /// The network's own namespaces only; what would need more is named and left as it is.
    Namespaces,
}

/// Settings that a trial asks for: `net.ipv4.tcp_rmem` and its value.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Names and values.
    pub values: &'a BTreeMap<String, String>,
    /// How far they may reach.
    pub scope: Scope,
}

/// Settings of the whole kernel that a trial changed, with what they were.
#[derive(Debug, Default)]
pub struct Globals(Vec<(String, String)>);

/// `net.ipv4.tcp_rmem` → `/proc/sys/net/ipv4/tcp_rmem`.
fn file(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

impl<'a> Settings<'a> {
    /// Writes the settings into the calling thread's namespace; gives back those that cannot be made there.
    pub(super) fn write(&self) -> Result<Vec<&'a str>, TestbedError> {
        let mut elsewhere = Vec::new();
        for (name, value) in self.values {
            match put(name, value) {
                Ok(()) => {}
                Err(e) if is_not_here(&e) => elsewhere.push(name.as_str()),
                Err(error) => return Err(refused(name, value, &error)),
            }
        }
        Ok(elsewhere)
    }

    /// Writes settings of the whole kernel where the scope allows it, and says which are not as asked where not; the calling
    /// thread is in the kernel's first namespace, or in the first that this process knows.
    pub(super) fn write_elsewhere(&self, names: &[&str]) -> Result<(Globals, Vec<String>), TestbedError> {
        let wanted = names.iter().filter_map(|&name| Some((name, self.values.get(name)?)));
        let (mut globals, mut unset) = (Globals::default(), Vec::new());
        for (name, value) in wanted {
            let old = fs::read_to_string(file(name));
            if self.scope == Scope::Namespaces {
                unset.extend(left(name, value, old.ok().as_deref()));
                continue;
            }
            let old = old.map_err(|e| refused(name, value, &e))?;
            put(name, value).map_err(|e| refused(name, value, &e))?;
            globals.0.push((name.to_owned(), old.trim().to_owned()));
        }
        Ok((globals, unset))
    }
}

/// Says why a setting is not as asked, if it is not; `now` is its value where that can be read.
fn left(name: &str, value: &str, now: Option<&str>) -> Option<String> {
    match now {
        Some(now) if now.split_whitespace().eq(value.split_whitespace()) => None,
        Some(now) => Some(format!(
            "sysctl {name} = {value}: it cannot be set here and stays {}; as root of the machine: sysctl -w {name}=\"{value}\"",
            now.split_whitespace().collect::<Vec<_>>().join(" ")
        )),
        None => Some(format!("sysctl {name} = {value}: this kernel has no such setting, or only for the whole machine")),
    }
}

/// Keeps IPv6's own packets (router solicitations, multicast reports) off the path; many kernels have no IPv6 at all. Says why where that
/// was not possible: then such packets meet the path too, and take random numbers of its own.
pub fn without_ipv6() -> Option<String> {
    let error = put("net.ipv6.conf.default.disable_ipv6", "1").err()?;
    (error.kind() != io::ErrorKind::NotFound)
        .then(|| format!("IPv6 could not be switched off ({error}): its own packets cross the path beside the flows'"))
}

/// Whether a setting cannot be made from a namespace: it is not there, it is the whole machine's, or /proc/sys is mounted for reading only,
/// as containers have it.
pub fn is_not_here(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) || error.raw_os_error() == Some(libc::EROFS)
}

impl Globals {
    /// Whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Puts back what was; the calling thread is in the kernel's first namespace.
    pub fn restore(&self) {
        for (name, old) in self.0.iter().rev() {
            // A setting that could be written once can be written again; there is nobody to tell otherwise.
            let _ = put(name, old);
        }
    }
}

fn put(name: &str, value: &str) -> io::Result<()> {
    // No `fs::write`: it would create and truncate.
    io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(file(name))?, value.as_bytes())
}

fn refused(name: &str, value: &str, error: &io::Error) -> TestbedError {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "this kernel has no such setting".to_owned(),
        _ => error.to_string(),
    };
    TestbedError::Setting { name: name.to_owned(), value: value.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_named_with_its_value_and_the_fix() {
        assert_eq!(left("net.core.rmem_max", "7777777", Some("7777777\n")), None);
        assert_eq!(left("net.ipv4.tcp_rmem", "4096 131072 6291456", Some("4096\t131072\t6291456\n")), None);
        assert_eq!(
            left("net.core.rmem_max", "7777777", Some("212992\n")).as_deref(),
            Some("sysctl net.core.rmem_max = 7777777: it cannot be set here and stays 212992; as root of the machine: sysctl -w net.core.rmem_max=\"7777777\"")
        );
        assert!(left("net.ipv4.tcp_nonsense", "1", None).is_some_and(|s| s.contains("no such setting")));
    }

    #[test]
    fn containers_mount_the_settings_for_reading_only() {
        let refused = |errno| is_not_here(&io::Error::from_raw_os_error(errno));
        assert!([libc::EROFS, libc::EACCES, libc::EPERM, libc::ENOENT].into_iter().all(refused));
        assert!(!refused(libc::EINVAL), "a value that the kernel does not take is an error");
    }
}
