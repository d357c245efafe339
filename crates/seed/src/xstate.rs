//! `ptrace(2)` for kernels that know fewer registers than the CPU has.
//!
//! User-Mode Linux before 6.13 writes a process' vector registers with `PTRACE_SETREGSET` from a buffer of 2,696 bytes, all that AVX-512
//! needs. The host takes its whole XSAVE area or nothing (Linux: xstateregs_set()), and on a CPU with AMX that is 11,008 bytes: the
//! kernel would die at its first process, "ptrace set fp regs failed, errno = 14". What is missing is added here as zeros: those
//! registers are not in use, and the area's header says so (Intel SDM volume 1, 13.4.2: XSTATE_BV).
//!
//! The kernel reads these registers at each system call of a process and writes them back before the process goes on, mostly the same ones.
//! Writing them costs as much as the rest of a system call, so what a stopped process has already is not written again.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Processes whose registers are remembered.
const REMEMBERED: usize = 16;

type Ptrace = unsafe extern "C" fn(libc::c_uint, libc::pid_t, *mut libc::c_void, *mut libc::c_void) -> libc::c_long;

/// linux/elf.h.
const NT_X86_XSTATE: usize = 0x202;
/// Room for the XSAVE area, bytes; Intel's largest today is 11,008.
const ROOM: usize = 32_768;
/// The host's XSAVE area, bytes; 0 is not asked yet.
static AREA: AtomicUsize = AtomicUsize::new(0);
/// Not on the stack: the kernel's have 16 KiB.
static WHOLE: Room = Room(UnsafeCell::new([0; ROOM]));
static KNOWN: Known = Known(UnsafeCell::new([const { Registers { pid: 0, asked: 0, length: 0, bytes: [0; LONGEST] } }; REMEMBERED]));
static NEXT: OnceLock<Option<Ptrace>> = OnceLock::new();

/// Where the whole area is put together.
struct Room(UnsafeCell<[u8; ROOM]>);

// SAFETY: User-Mode Linux has one CPU, and it alone writes registers, from the loop that runs processes: never two calls at a time.
unsafe impl Sync for Room {}

/// Longest area that is remembered, bytes; the kernel's is 2,696.
const LONGEST: usize = 4096;

/// What a stopped process has in its vector registers; pid 0 is none.
struct Registers {
    pid: libc::pid_t,
    /// Bytes that were asked for; the host has `length` of them.
    asked: usize,
    length: usize,
    bytes: [u8; LONGEST],
}

/// Those of the processes that stopped last, by their pid.
struct Known(UnsafeCell<[Registers; REMEMBERED]>);

// SAFETY: as for `Room`.
unsafe impl Sync for Known {}

/// The place for what is known of a process.
///
/// # Safety
/// Never two calls at a time, and the result of one is not used after the next.
unsafe fn place(pid: libc::pid_t) -> &'static mut Registers {
    // SAFETY: the caller's promise.
    let all = unsafe { &mut *KNOWN.0.get() };
    &mut all[pid.unsigned_abs() as usize % REMEMBERED]
}

impl Registers {
    fn keep(&mut self, pid: libc::pid_t, asked: usize, registers: &[u8]) {
        self.pid = 0;
        if let Some(room) = self.bytes.get_mut(..registers.len()) {
            room.copy_from_slice(registers);
            (self.pid, self.asked, self.length) = (pid, asked, registers.len());
        }
    }

    /// Whether these are known to be a process' registers; the host ignores what is behind the ones that it has.
    fn are(&self, pid: libc::pid_t, registers: &[u8]) -> bool {
        self.pid == pid && self.asked == registers.len() && registers.starts_with(&self.bytes[..self.length])
    }

    fn forget(&mut self, pid: libc::pid_t) {
        if self.pid == pid {
            self.pid = 0;
        }
    }
}

/// Whether a process that is asked this stays stopped and keeps its vector registers.
fn leaves_alone(request: libc::c_uint) -> bool {
    matches!(request, libc::PTRACE_GETREGS | libc::PTRACE_SETREGS | libc::PTRACE_GETREGSET | libc::PTRACE_GETSIGINFO)
}

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
    let is_vectors = address as usize == NT_X86_XSTATE;
    if request == libc::PTRACE_GETREGSET && is_vectors {
        // SAFETY: the caller's promise, twice; then the kernel has filled as much of the buffer as it says; never two calls at a time.
        unsafe {
            let asked = bytes(data).len();
            let result = real(request, pid, address, data);
            if result == 0 {
                place(pid).keep(pid, asked, bytes(data));
            }
            return result;
        }
    }
    if request == libc::PTRACE_SETREGSET && is_vectors {
        // SAFETY: the caller's promise; never two calls at a time.
        let (registers, known) = unsafe { (bytes(data), place(pid)) };
        if known.are(pid, registers) {
            return 0;
        }
        known.forget(pid);
        // SAFETY: the caller's promise.
        return unsafe { set(real, pid, address, data) };
    }
    if !leaves_alone(request) {
        // SAFETY: never two calls at a time.
        unsafe { place(pid).forget(pid) };
    }
    // SAFETY: the caller's promise.
    unsafe { real(request, pid, address, data) }
}

/// The bytes of an iovec.
///
/// # Safety
/// `data` points to an iovec whose bytes live until the result is no longer used.
unsafe fn bytes<'a>(data: *const libc::c_void) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let vector = *data.cast::<libc::iovec>();
        std::slice::from_raw_parts(vector.iov_base.cast::<u8>(), vector.iov_len)
    }
}

/// Writes vector registers, filled up to the host's area.
///
/// # Safety
/// As for [`ptrace`].
unsafe fn set(real: Ptrace, pid: libc::pid_t, address: *mut libc::c_void, data: *mut libc::c_void) -> libc::c_long {
    let request = libc::PTRACE_SETREGSET;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Registers {
        Registers { pid: 0, asked: 0, length: 0, bytes: [0; LONGEST] }
    }

    #[test]
    fn registers_are_known_until_they_may_have_changed() {
        let mut known = nothing();
        known.keep(7, 4, &[1, 2, 3, 4]);
        assert!(known.are(7, &[1, 2, 3, 4]));
        assert!(!known.are(7, &[1, 2, 3, 5]) && !known.are(7, &[1, 2, 3]) && !known.are(8, &[1, 2, 3, 4]));
        known.forget(8);
        assert!(known.are(7, &[1, 2, 3, 4]), "another process ran");
        known.forget(7);
        assert!(!known.are(7, &[1, 2, 3, 4]), "it ran");
    }

    #[test]
    fn a_host_with_fewer_registers_ignores_the_rest() {
        let mut known = nothing();
        known.keep(7, 4, &[1, 2]);
        assert!(known.are(7, &[1, 2, 9, 9]) && !known.are(7, &[1, 3, 9, 9]));
    }

    #[test]
    fn what_has_no_room_is_not_known() {
        let mut known = nothing();
        known.keep(7, 4, &[1, 2, 3, 4]);
        known.keep(7, ROOM, &[0; ROOM]);
        assert!(!known.are(7, &[0; ROOM]) && !known.are(7, &[1, 2, 3, 4]));
    }
}
