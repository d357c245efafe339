//! Settings of the kernel: in the hosts' namespaces, or, where a setting is the whole kernel's, from its first namespace.

use super::TestbedError;
use std::collections::BTreeMap;
use std::{fs, io};

/// Settings of the whole kernel that a trial changed, with what they were.
#[derive(Debug, Default)]
pub struct Globals(Vec<(String, String)>);

/// `net.ipv4.tcp_rmem` → `/proc/sys/net/ipv4/tcp_rmem`.
fn file(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// Writes the settings into the calling thread's namespace; gives back those that do not exist there.
pub fn write(settings: &BTreeMap<String, String>) -> Result<Vec<&str>, TestbedError> {
    let mut elsewhere = Vec::new();
    for (name, value) in settings {
        match put(name, value) {
            Ok(()) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => elsewhere.push(name.as_str()),
            Err(error) => return Err(refused(name, value, &error)),
        }
    }
    Ok(elsewhere)
}

/// Keeps IPv6's own packets (router solicitations, multicast reports) off the path; many kernels have no IPv6 at all.
pub fn without_ipv6() {
    let _ = put("net.ipv6.conf.default.disable_ipv6", "1");
}

/// Writes settings of the whole kernel; the calling thread is in its first namespace.
pub fn write_globals(names: &[&str], settings: &BTreeMap<String, String>) -> Result<Globals, TestbedError> {
    let mut globals = Globals::default();
    for &name in names {
        let Some(value) = settings.get(name) else { continue };
        let old = fs::read_to_string(file(name)).map_err(|e| refused(name, value, &e))?;
        put(name, value).map_err(|e| refused(name, value, &e))?;
        globals.0.push((name.to_owned(), old.trim().to_owned()));
    }
    Ok(globals)
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
