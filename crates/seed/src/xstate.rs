//! `ptrace(2)` for kernels that know fewer registers than the CPU has.
//!
//! User-Mode Linux before 6.13 writes a process' vector registers with `PTRACE_SETREGSET` from a buffer of 2,696 bytes, all that AVX-512
//! needs. The host takes its whole XSAVE area or nothing (Linux: xstateregs_set()), and on a CPU with AMX that is 11,008 bytes: the
//! kernel would die at its first process, "ptrace set fp regs failed, errno = 14". What is missing is added here as zeros: those
//! registers are not in use, and the area's header says so (Intel SDM volume 1, 13.4.2: XSTATE_BV).

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

type Ptrace = unsafe extern "C" fn(libc::c_uint, libc::pid_t, *mut libc::c_void, *mut libc::c_void) -> libc::c_long;

/// linux/elf.h.
const NT_X86_XSTATE: usize = 0x202;
/// Room for the XSAVE area, bytes; Intel's largest today is 11,008.
const ROOM: usize = 32_768;
/// The host's XSAVE area, bytes; 0 is not asked yet.
static AREA: AtomicUsize = AtomicUsize::new(0);
/// Not on the stack: the kernel's have 16 KiB.
static WHOLE: Room = Room(UnsafeCell::new([0; ROOM]));
static NEXT: OnceLock<Option<Ptrace>> = OnceLock::new();

/// Where the whole area is put together.
struct Room(UnsafeCell<[u8; ROOM]>);

// SAFETY: User-Mode Linux has one CPU, and it alone writes registers, from the loop that runs processes: never two calls at a time.
unsafe impl Sync for Room {}

/// libc's own.
fn next() -> Option<Ptrace> {
    *NEXT.get_or_init(|| {
        // SAFETY: the symbol, where there is one, is libc's ptrace, whose variadic arguments travel in registers like these.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<Ptrace>>(libc::dlsym(libc::RTLD_NEXT, c"ptrace".as_ptr())) }
    })
}

/// `ptrace(2)`; a set of vector registers that is shorter than the host's is filled up.
///
/// # Safety
/// As for the function of libc.
#[no_mangle]
pub unsafe extern "C" fn ptrace(
    request: libc::c_uint,
    pid: libc::pid_t,
    address: *mut libc::c_void,
    data: *mut libc::c_void,
) -> libc::c_long {
    let Some(real) = next() else {
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    };
    if request != libc::PTRACE_SETREGSET || address as usize != NT_X86_XSTATE {
        // SAFETY: the caller's promise.
        return unsafe { real(request, pid, address, data) };
    }
    // SAFETY: never two calls at a time.
    let whole = unsafe { &mut *WHOLE.0.get() };
    // SAFETY: the caller's promise: data points to an iovec.
    let said = unsafe { *data.cast::<libc::iovec>() };
    // SAFETY: the buffer outlives the call.
    let area = unsafe { area(real, pid, whole) };
    if said.iov_len >= area {
        // SAFETY: the caller's promise.
        return unsafe { real(request, pid, address, data) };
    }
    // SAFETY: the caller's promise: iov_base has iov_len bytes, fewer than the area and so than the room.
    unsafe { std::ptr::copy_nonoverlapping(said.iov_base.cast::<u8>(), whole.as_mut_ptr(), said.iov_len) };
    whole[said.iov_len..area].fill(0);
    let mut filled = libc::iovec { iov_base: whole.as_mut_ptr().cast(), iov_len: area };
    // SAFETY: an iovec of the area's length.
    unsafe { real(request, pid, address, std::ptr::from_mut(&mut filled).cast()) }
}

/// The length of the host's XSAVE area, asked once; 0 where it cannot be told.
///
/// # Safety
/// `pid` is a process that the caller traces, stopped.
unsafe fn area(real: Ptrace, pid: libc::pid_t, room: &mut [u8; ROOM]) -> usize {
    let known = AREA.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let mut asked = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: ROOM };
    // SAFETY: an iovec of the room's length.
    let got = unsafe { real(libc::PTRACE_GETREGSET, pid, NT_X86_XSTATE as *mut libc::c_void, std::ptr::from_mut(&mut asked).cast()) };
    if got < 0 {
        return 0;
    }
    AREA.store(asked.iov_len, Ordering::Relaxed);
    asked.iov_len
}
