//! Makes the random numbers of a User-Mode Linux kernel a function of a seed, so that a trial can be repeated bit for bit; and lets
//! kernels run on CPUs that are newer than they are.
//!
//! What it is: a library that the virtual engine preloads (`LD_PRELOAD`) into the `linux` process. The kernel seeds its random
//! number generator from the host's `getrandom`; where `TCPSCAPE_SEED` is set, this one answers with the stream of splitmix64 (Steele,
//! Lea, Flood 2014) that begins there. Its memory must lie at the same addresses in every run as well, so the program is started
//! once more without address randomisation before it begins. How it differs from the real thing: no secrets. The kernel itself
//! stays as it is. Newer CPUs: see `xstate`.

#![allow(unsafe_code)]

mod xstate;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The stream; none where no seed was given.
static STATE: OnceLock<Option<AtomicU64>> = OnceLock::new();
/// splitmix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn next(state: &AtomicU64) -> u64 {
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn seed() -> Option<u64> {
    std::env::var("TCPSCAPE_SEED").ok()?.parse().ok()
}

/// `getrandom(2)` with numbers that follow from the seed; the host's where there is none.
///
/// # Safety
/// `buffer` must have room for `length` bytes, as for the function of libc.
#[no_mangle]
pub unsafe extern "C" fn getrandom(buffer: *mut libc::c_void, length: libc::size_t, flags: libc::c_uint) -> libc::ssize_t {
    let Some(state) = STATE.get_or_init(|| seed().map(AtomicU64::new)) else {
        // SAFETY: the caller's promise.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) } as libc::ssize_t;
    };
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&next(state).to_le_bytes()[..chunk.len()]);
    }
    length as libc::ssize_t
}

/// Linux: personality(2), linux/personality.h.
const QUERY: libc::c_ulong = 0xffff_ffff;
const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x004_0000;

type Start = extern "C" fn(libc::c_int, *const *const libc::c_char, *const *const libc::c_char);

#[used]
#[link_section = ".init_array"]
static START: Start = start;

/// Runs before the program: starts it again without address randomisation. Where that is not allowed it goes on as it is.
extern "C" fn start(_count: libc::c_int, words: *const *const libc::c_char, environment: *const *const libc::c_char) {
    if seed().is_none() {
        return;
    }
    // SAFETY: the dynamic loader hands over the program's own arguments and environment; exec keeps none of this process.
    unsafe {
        let now = libc::personality(QUERY);
        let wanted = now as libc::c_ulong | ADDR_NO_RANDOMIZE;
        if now >= 0 && now as libc::c_ulong & ADDR_NO_RANDOMIZE == 0 && libc::personality(wanted) >= 0 {
            libc::execve(c"/proc/self/exe".as_ptr(), words, environment);
        }
    }
}
