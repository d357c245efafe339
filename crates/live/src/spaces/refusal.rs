//! Why namespaces cannot be had, and what an administrator can do about it.
//!
//! The kernel answers with an error number alone; which of its settings is behind it is read from `/proc/sys`.
//! Source: user_namespaces(7), namespaces(7) (`/proc/sys/user`), Debian's `kernel.unprivileged_userns_clone`, Ubuntu's
//! `kernel.apparmor_restrict_unprivileged_userns`.

use std::{fs, io};

/// What was refused, why, and what helps: one line.
#[derive(Debug, thiserror::Error)]
#[error("{problem}; {fix}")]
pub struct SpacesError {
    /// What cannot be had, and which setting is behind it.
    pub problem: String,
    /// A command, or another way.
    pub fix: String,
}

impl SpacesError {
    /// An error that no setting explains.
    pub fn of(what: &str, error: io::Error) -> SpacesError {
        SpacesError { problem: format!("{what}: {error}"), fix: "use --engine model".into() }
    }
}

/// A setting that forbids user namespaces: its name, the value that forbids, and one that allows.
struct Setting {
    name: &'static str,
    forbids: fn(&str) -> bool,
    allows: &'static str,
    why: &'static str,
}

const SETTINGS: [Setting; 3] = [
    Setting {
        name: "kernel.unprivileged_userns_clone",
        forbids: |v| v == "0",
        allows: "1",
        why: "users without privileges may not make user namespaces",
    },
    Setting { name: "user.max_user_namespaces", forbids: |v| v == "0", allows: "10000", why: "no user namespaces are allowed" },
    Setting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbids: |v| v != "0",
        allows: "0",
        why: "AppArmor takes the rights away from user namespaces of programs without a profile",
    },
];

/// The value of a setting; None where the kernel has no such one.
fn value(name: &str) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?.trim().to_owned())
}

/// The setting that forbids user namespaces here, as problem and fix; None where none does.
pub fn blocking_setting() -> Option<SpacesError> {
    SETTINGS.iter().find_map(|s| {
        let value = value(s.name).filter(|v| (s.forbids)(v))?;
        Some(SpacesError {
            problem: format!("{} = {value}: {}", s.name, s.why),
            fix: format!("sudo sysctl -w {}={}, or run as root with +root", s.name, s.allows),
        })
    })
}

/// The refusal of a user namespace.
pub(super) fn of_user_namespace(error: io::Error) -> SpacesError {
    if let Some(blocked) = blocking_setting() {
        return blocked;
    }
    let problem = match error.raw_os_error() {
        Some(libc::EINVAL) => "this kernel has no user namespaces (CONFIG_USER_NS)".into(),
        Some(libc::ENOSPC | libc::EUSERS) => "user namespaces are used up (user.max_user_namespaces) or nested too deeply".into(),
        Some(libc::EPERM) => "user namespaces are not permitted here (a container's seccomp profile, or a chroot)".into(),
        _ => format!("a user namespace cannot be made: {error}"),
    };
    SpacesError { problem, fix: "run as root with +root, or use --engine model".into() }
}

/// The refusal of the map of users and groups.
pub(super) fn of_map(error: io::Error) -> SpacesError {
    blocking_setting().unwrap_or_else(|| SpacesError {
        problem: format!("users cannot be mapped into the user namespace: {error}"),
        fix: "run as root with +root, or use --engine model".into(),
    })
}

/// The refusal of a network namespace.
pub(super) fn of_network_namespace(error: io::Error, root: bool) -> SpacesError {
    match error.raw_os_error() {
        Some(libc::EPERM) if root => SpacesError {
            problem: "network namespaces without a user namespace need CAP_SYS_ADMIN".into(),
            fix: "run as root, or leave +root out".into(),
        },
        Some(libc::EPERM) => of_map(error),
        Some(libc::ENOSPC) => SpacesError {
            problem: "network namespaces are used up (user.max_net_namespaces)".into(),
            fix: "sudo sysctl -w user.max_net_namespaces=10000".into(),
        },
        _ => SpacesError::of("a network namespace cannot be made", error),
    }
}
