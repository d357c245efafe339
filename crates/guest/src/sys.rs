//! The system calls that only a machine's first process makes. The only room of this crate with `unsafe`.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;

/// Mounts `source` of type `kind` on `target`. Linux: mount(2).
pub fn mount(source: &str, target: &str, kind: &str, data: &str) -> io::Result<()> {
    let [source, target, kind, data] = [source, target, kind, data].map(|s| CString::new(s).expect("no NUL in a path"));
    // SAFETY: four NUL-terminated strings that live until the call returns.
    let status = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, data.as_ptr().cast()) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ends the guest. Linux: reboot(2).
pub fn power_off() {
    // SAFETY: no arguments but a constant.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
}
