//! The system calls of the steps, as a trait: the order of the steps is tested without privilege.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;

/// What the steps do to the calling process. One method is one thing that can fail.
pub(super) trait Privileged {
    /// setsid(2): no controlling terminal.
    fn new_session(&mut self) -> io::Result<()>;
    /// A new anonymous session keyring.
    fn new_session_keyring(&mut self) -> io::Result<()>;
    /// Default dispositions, nothing blocked.
    fn reset_signals(&mut self) -> io::Result<()>;
    /// These become 0, 1 and 2 (none: /dev/null); all others are closed by exec.
    fn place_descriptors(&mut self, stdio: [Option<BorrowedFd<'_>>; 3]) -> io::Result<()>;
    /// umask(2).
    fn set_umask(&mut self, umask: u32) -> io::Result<()>;
    /// SCHED_OTHER, I/O priority, memory policy, all CPUs, timer slack, execution domain.
    fn reset_scheduling(&mut self) -> io::Result<()>;
    /// setpriority(2).
    fn set_nice(&mut self, nice: i32) -> io::Result<()>;
    /// /proc/self/oom_score_adj.
    fn set_oom_score(&mut self, score: i32) -> io::Result<()>;
    /// All limits of setrlimit(2) as of a fresh login.
    fn reset_limits(&mut self) -> io::Result<()>;
    /// RLIMIT_NOFILE, both limits.
    fn set_nofile(&mut self, limit: u64) -> io::Result<()>;
    /// EKEYREJECTED where the contents of the file differ.
    fn check_digest(&mut self, executable: BorrowedFd<'_>, expected: &[u8; 32]) -> io::Result<()>;
    /// /proc/self/loginuid.
    fn set_loginuid(&mut self, loginuid: u32) -> io::Result<()>;
    /// chdir(2).
    fn change_directory(&mut self, path: &CStr) -> io::Result<()>;
    /// fchdir(2).
    fn change_directory_to(&mut self, directory: BorrowedFd<'_>) -> io::Result<()>;
    /// The bounding set keeps at most these.
    fn limit_bounding_set(&mut self, to: u64) -> io::Result<()>;
    /// Exactly SECBIT_NOROOT and SECBIT_NOROOT_LOCKED.
    fn set_securebits(&mut self) -> io::Result<()>;
    /// PR_SET_KEEPCAPS; exec clears it.
    fn keep_capabilities(&mut self) -> io::Result<()>;
    /// setgroups(2).
    fn set_groups(&mut self, groups: &[u32]) -> io::Result<()>;
    /// setresgid(2).
    fn set_gid(&mut self, gid: u32) -> io::Result<()>;
    /// setresuid(2).
    fn set_uid(&mut self, uid: u32) -> io::Result<()>;
    /// The permitted set.
    fn permitted_capabilities(&mut self) -> io::Result<u64>;
    /// capset(2): permitted and effective are the first, inheritable is the second.
    fn set_capabilities(&mut self, permitted: u64, inheritable: u64) -> io::Result<()>;
    /// The ambient set is exactly this.
    fn set_ambient(&mut self, set: u64) -> io::Result<()>;
    /// PR_SET_NO_NEW_PRIVS.
    fn set_no_new_privs(&mut self) -> io::Result<()>;
    /// ESTALE where the path does not lead to the file of the descriptor (any more).
    fn check_executable(&mut self, path: &CStr, executable: BorrowedFd<'_>) -> io::Result<()>;
    /// Tells rootwrapd that exec comes next.
    fn announce(&mut self) -> io::Result<()>;
    /// exec: comes back on failure only.
    fn execute(&mut self, program: Program<'_>, argv: &[CString], environment: &[CString]) -> io::Error;
}

/// What is executed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program<'a> {
    /// execve(2) of a path.
    Path(&'a CStr),
    /// execveat(2) of the file itself, whatever its path leads to now.
    Descriptor(BorrowedFd<'a>),
}
