//! A process without a C library: entry point and system calls of the quick client (`src/bin/rootwrap-quick.rs`), x86-64 only.
//!
//! Not part of the library: that program includes this file by its path. Each function is one system call with the arguments that the
//! program needs; errors are negative errno, as the kernel returns them.

use core::arch::{asm, global_asm};
use core::ffi::CStr;

// The kernel enters with argc, argv, NULL, environment, NULL on the stack (System V ABI, AMD64 supplement, 3.4.1); no frame below.
global_asm!(
    ".globl _start",
    "_start:",
    "xor %ebp, %ebp",
    "mov %rsp, %rdi",
    "and $-16, %rsp",
    "call {entry}",
    "ud2",
    entry = sym enter,
    options(att_syntax)
);

unsafe extern "C" fn enter(stack: *const usize) -> ! {
    // SAFETY: `stack` is the kernel's initial stack: argc, then argc pointers to strings and a null pointer, then the environment's
    // pointers and a null pointer. All of it lives and is not written to as long as the process does.
    let (argv, environment) = unsafe {
        let argc = *stack;
        let argv = stack.add(1).cast::<*const u8>();
        let environment = argv.add(argc + 1);
        let mut count = 0;
        while !(*environment.add(count)).is_null() {
            count += 1;
        }
        // With the null pointer that ends each, as execve(2) wants them.
        (
            core::slice::from_raw_parts(argv, argc + 1),
            core::slice::from_raw_parts(environment, count + 1),
        )
    };
    exit(super::run(&Strings(argv), &Strings(environment)))
}

/// Pointers to strings that end with a NUL byte and live for ever; the last pointer is null.
pub struct Strings(&'static [*const u8]);

impl Strings {
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len() - 1
    }

    /// One of them, without its NUL byte.
    pub fn get(&self, index: usize) -> Option<&'static [u8]> {
        let start = *self.0.get(index)?;
        if start.is_null() {
            return None;
        }
        // SAFETY: not null, so a string of the kernel's that ends with a NUL byte and is never written to, see `enter`.
        Some(unsafe { CStr::from_ptr(start.cast()) }.to_bytes())
    }
}

fn call(number: usize, arguments: [usize; 5]) -> isize {
    let result: isize;
    let [a, b, c, d, e] = arguments;
    // SAFETY: the system call convention of x86-64 Linux: these registers, rcx and r11 are lost. That the arguments are right, with
    // pointers to memory of the right size that lives through the call, is up to the functions below, the only callers.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// exit_group(2).
pub fn exit(status: u8) -> ! {
    loop {
        call(231, [usize::from(status), 0, 0, 0, 0]);
    }
}

/// execve(2) with the arguments as they are; comes back on errors.
pub fn exec(path: &CStr, arguments: &Strings, environment: &Strings) {
    execve(path, arguments.0, environment);
}

/// execve(2) with these words in place of the first argument, where all fit; comes back on errors.
pub fn exec_with(path: &CStr, words: &[&CStr], arguments: &Strings, environment: &Strings) {
    let mut argv = [core::ptr::null::<u8>(); 256];
    let all = words
        .iter()
        .map(|word| word.as_ptr().cast())
        .chain(arguments.0.iter().skip(1).copied());
    argv.iter_mut().zip(all).for_each(|(place, word)| *place = word);
    if words.len() + arguments.len() <= argv.len() {
        execve(path, &argv, environment);
    }
}

fn execve(path: &CStr, argv: &[*const u8], environment: &Strings) {
    call(
        59,
        [
            path.as_ptr() as usize,
            argv.as_ptr() as usize,
            environment.0.as_ptr() as usize,
            0,
            0,
        ],
    );
}

/// readlink(2) of /proc/self/exe; its length.
pub fn own_path(buffer: &mut [u8]) -> isize {
    call(
        89,
        [
            c"/proc/self/exe".as_ptr() as usize,
            buffer.as_mut_ptr() as usize,
            buffer.len(),
            0,
            0,
        ],
    )
}

/// fstat(2): st_mode and st_rdev.
pub fn status(fd: i32) -> Option<(u32, u64)> {
    let mut stat = [0_u64; 18];
    (call(5, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0]) == 0).then(|| (stat[3] as u32, stat[5]))
}

/// geteuid(2) and getegid(2), getpid(2).
pub fn identity() -> [u32; 3] {
    [39, 107, 108].map(|number| call(number, [0; 5]) as u32)
}

/// A connected AF_UNIX stream socket, close-on-exec; `path` is at most 107 bytes.
pub fn connect(path: &[u8]) -> Result<i32, isize> {
    let socket = call(41, [1, 1 | 0o2_000_000, 0, 0, 0]);
    if socket < 0 {
        return Err(socket);
    }
    let mut address = [0_u8; 110];
    address[0] = 1;
    for (place, byte) in address.iter_mut().skip(2).take(107).zip(path) {
        *place = *byte;
    }
    let connected = call(42, [socket as usize, address.as_ptr() as usize, 2 + path.len() + 1, 0, 0]);
    if connected < 0 { Err(connected) } else { Ok(socket as i32) }
}

/// The uid of SO_PEERCRED, see unix(7).
pub fn peer_uid(socket: i32) -> Option<u32> {
    let mut credentials = [0_u32; 3];
    let mut length = 12_u32;
    let got = call(
        55,
        [
            socket as usize,
            1,
            17,
            credentials.as_mut_ptr() as usize,
            (&raw mut length) as usize,
        ],
    );
    (got == 0).then_some(credentials[1])
}

/// The owner of a socket's file, from stat(2).
pub fn owner(path: &CStr) -> Option<u32> {
    let mut stat = [0_u64; 18];
    (call(4, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0]) == 0).then(|| (stat[3] >> 32) as u32)
}

/// sendmsg(2) with descriptors (SCM_RIGHTS) and our effective ids (SCM_CREDENTIALS), see unix(7).
pub fn send(socket: i32, bytes: &[u8], descriptors: &[u32], [pid, uid, gid]: [u32; 3]) -> isize {
    // Two control messages of 32 bytes each: length, level and type, data; SOL_SOCKET is 1.
    let mut control = [0_u32; 16];
    control[..8].copy_from_slice(&[28, 0, 1, 2, pid, uid, gid, 0]);
    let mut length = 32;
    if !descriptors.is_empty() && descriptors.len() <= 4 {
        control[8..12].copy_from_slice(&[16 + 4 * descriptors.len() as u32, 0, 1, 1]);
        control[12..12 + descriptors.len()].copy_from_slice(descriptors);
        length = 64;
    }
    let vector = [bytes.as_ptr() as usize, bytes.len()];
    let header = [0, 0, vector.as_ptr() as usize, 1, control.as_ptr() as usize, length, 0];
    const MSG_NOSIGNAL: usize = 0x4000;
    call(46, [socket as usize, header.as_ptr() as usize, MSG_NOSIGNAL, 0, 0])
}

/// recv(2), with MSG_PEEK where `peek`.
pub fn receive(socket: i32, buffer: &mut [u8], peek: bool) -> isize {
    call(
        45,
        [
            socket as usize,
            buffer.as_mut_ptr() as usize,
            buffer.len(),
            usize::from(peek) * 2,
            0,
        ],
    )
}

/// Whether this process ignores a signal; rt_sigaction(2).
pub fn is_ignored(signal: u32) -> bool {
    let mut action = [0_usize; 4];
    call(13, [signal as usize, 0, action.as_mut_ptr() as usize, 8, 0]);
    action[0] == 1
}

/// Blocks these signals (bit N - 1 is signal N); rt_sigprocmask(2). Then a signalfd(2), close-on-exec, that tells when one waits.
pub fn signals(mask: u64) -> isize {
    call(14, [0, (&raw const mask) as usize, 0, 8, 0]);
    call(289, [usize::MAX, (&raw const mask) as usize, 8, 0o2_000_000, 0])
}

/// Waits until one of both can be read; poll(2). Returns which.
pub fn wait(fds: [i32; 2]) -> [bool; 2] {
    // struct pollfd: descriptor, then events and revents in one word; POLLIN is 1.
    let mut polled = [fds[0] as u32, 1, fds[1] as u32, 1];
    call(7, [polled.as_mut_ptr() as usize, 2, usize::MAX, 0, 0]);
    [polled[1] >> 16 != 0, polled[3] >> 16 != 0]
}

/// Lets a descriptor be inherited; fcntl(2), F_SETFD.
pub fn keep_on_exec(fd: i32) {
    call(72, [fd as usize, 2, 0, 0, 0]);
}

/// write(2) to standard error.
pub fn complain(text: &str) {
    call(1, [2, text.as_ptr() as usize, text.len(), 0, 0]);
}

// What the compiler may call where there is no C library.

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the compiler's contract: both have `count` bytes and do not overlap. The direction flag is clear (ABI).
    unsafe { asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags)) };
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
    // SAFETY: the compiler's contract: `to` has `count` bytes. The direction flag is clear (ABI).
    unsafe { asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte as u8, options(nostack, preserves_flags)) };
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    for index in 0..count {
        // SAFETY: the compiler's contract: both have `count` bytes. Volatile, or this loop would be made a call of itself.
        if unsafe { one.add(index).read_volatile() != other.add(index).read_volatile() } {
            return 1;
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
    for index in 0..count {
        // SAFETY: as in `bcmp`.
        let (a, b) = unsafe { (one.add(index).read_volatile(), other.add(index).read_volatile()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(start: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the compiler's contract: a NUL byte ends it. Volatile as in `bcmp`.
    while unsafe { start.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}
