//! The system calls that only a machine's first process makes. The only room of this crate with `unsafe`.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use tcpscape_testbed::sys::check;

/// Mounts `source` of type `kind` on `target`. Linux: mount(2).
pub fn mount(source: &str, target: &str, kind: &str, data: &str) -> io::Result<()> {
    let [source, target, kind, data] = [source, target, kind, data].map(|s| CString::new(s).expect("no NUL in a path"));
    // SAFETY: four NUL-terminated strings that live until the call returns.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, data.as_ptr().cast()) }).map(drop)
}

/// Ends the guest. Linux: reboot(2).
pub fn power_off() {
    // SAFETY: no arguments but a constant.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}
