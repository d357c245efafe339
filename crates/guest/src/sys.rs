//! The system calls that only a machine's first process makes. The only room of this crate with `unsafe`.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tcpscape_testbed::sys::check;

/// Mounts `source` of type `kind` on `target`. Linux: mount(2).
pub fn mount(source: &str, target: &str, kind: &str, data: &str) -> io::Result<()> {
    mount_with(source, target, kind, data, 0)
}

/// As [`mount`], and nothing can be written there.
pub fn mount_read_only(source: &str, target: &str, kind: &str, data: &str) -> io::Result<()> {
    mount_with(source, target, kind, data, libc::MS_RDONLY)
}

fn mount_with(source: &str, target: &str, kind: &str, data: &str, flags: libc::c_ulong) -> io::Result<()> {
    let [source, target, kind, data] = [source, target, kind, data].map(text);
    let [source, target, kind, data] = [source?, target?, kind?, data?];
    // SAFETY: four NUL-terminated strings that live until the call returns.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) }).map(drop)
}

fn text(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(io::Error::other)
}

/// Makes a character device that everybody may read and write. Linux: mknod(2).
pub fn device(path: &str, major: u32, minor: u32) -> io::Result<()> {
    let path = text(path)?;
    // SAFETY: a NUL-terminated string that lives until the call returns.
    check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(major, minor)) }).map(drop)
}

/// A command that is to be started has `root` as its root directory, and `directory` in it as its working directory. Linux: chroot(2).
pub fn start_within(command: &mut Command, root: &str, directory: &Path) -> io::Result<()> {
    let (root, directory) = (text(root)?, text(&directory.to_string_lossy())?);
    let enter = move || {
        // SAFETY: NUL-terminated strings of the closure's own.
        check(unsafe { libc::chroot(root.as_ptr()) })?;
        // SAFETY: the same.
        check(unsafe { libc::chdir(directory.as_ptr()) }).map(drop)
    };
    // SAFETY: between fork and exec it makes two system calls, which neither allocate nor lock.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// Ends the guest. Linux: reboot(2).
pub fn power_off() {
    // SAFETY: no arguments but a constant.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}
