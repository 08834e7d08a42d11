//! What rootwrapd gives up once the launcher runs: everything but CAP_KILL, and the system calls that a service which only decides,
//! records and signals has no use for.
//!
//! The unit's sandboxing directives cannot do this: commands would inherit them. The launcher, started before, keeps what it needs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use caps::{CapSet, Capability, CapsHashSet};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};

/// Confines the process. Call while there is one thread.
///
/// # Errors
/// Any step that fails: the service must not run with more than it says.
pub fn apply() -> Result<()> {
    limits().context("resource limits")?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).context("PR_SET_DUMPABLE")?;
    keep_cap_kill().context("capabilities")?;
    rustix::thread::set_no_new_privs(true).context("PR_SET_NO_NEW_PRIVS")?;
    for filter in filters()? {
        seccompiler::apply_filter(&filter).context("seccomp")?;
    }
    Ok(())
}

/// No core dumps (they would hold callers' secrets), and as many descriptors as the unit allows.
fn limits() -> Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    let mut files = rustix::process::getrlimit(Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(Resource::Nofile, files)?;
    Ok(())
}

/// The bounding set first: dropping from it needs CAP_SETPCAP. By number, because the kernel may know more than the library.
fn keep_cap_kill() -> Result<()> {
    for number in 0..64_u8 {
        if number == Capability::CAP_KILL.index() {
            continue;
        }
        // EINVAL: beyond the kernel's last one.
        match rustix::thread::remove_capability_from_bounding_set(rustix::thread::CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error).context("bounding set"),
        }
    }
    let kill = CapsHashSet::from([Capability::CAP_KILL]);
    caps::clear(None, CapSet::Ambient)?;
    caps::set(None, CapSet::Effective, &kill)?;
    caps::set(None, CapSet::Permitted, &kill)?;
    caps::clear(None, CapSet::Inheritable)?;
    Ok(())
}

/// Refused with EPERM. What is not here is either needed or harmless with CAP_KILL alone.
const DENIED: &[libc::c_long] = &[
    // Other programs and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The file system's layout.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    // Namespaces and identity.
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_personality,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_lookup_dcookie,
    // Keyrings.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Would carry out other calls unseen by a filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Those that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_mknod,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_kexec_file_load,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Set in the numbers of the x32 calls, which reach the same kernel functions past a filter that only knows the native numbers.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

/// Two filters, because one filter has one answer: EPERM, and ENOSYS for clone3(2), whose flags a filter cannot read; the C library
/// then makes its threads with clone(2).
fn filters() -> Result<[BpfProgram; 2]> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().chain(DENIED_HERE).map(|number| (*number, Vec::new())).collect();
    denied.insert(libc::SYS_clone, vec![no_thread()?]);
    denied.insert(libc::SYS_socket, vec![no_usual_family()?]);
    #[cfg(target_arch = "x86_64")]
    {
        let natives: Vec<i64> = denied.keys().copied().collect();
        // 512 to 547 are the calls that x32 has on its own, execve and ptrace among them.
        denied.extend(natives.into_iter().chain(512..=547).map(|number| (number | X32, Vec::new())));
    }
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([compile(denied, libc::EPERM)?, compile(missing, libc::ENOSYS)?])
}

/// clone(2) that makes no thread: a process, or one in other namespaces.
fn no_thread() -> Result<SeccompRule> {
    let thread = libc::CLONE_THREAD.unsigned_abs().into();
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(thread), 0)?;
    Ok(SeccompRule::new(vec![condition])?)
}

/// Families of socket(2) that the journal, the service manager and look-ups of names may need.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// socket(2) of any other family: packets, the kernel's ciphers, and much that is seldom looked at.
fn no_usual_family() -> Result<SeccompRule> {
    let other_than =
        |family: &libc::c_int| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family.unsigned_abs().into());
    let conditions = FAMILIES.iter().map(other_than).collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn compile(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType};

    #[test]
    fn the_filters_compile_for_this_machine() {
        for filter in filters().unwrap() {
            assert!(!filter.is_empty());
        }
    }

    // What the confined process has and has not is asserted on the running service: tests/daemon.rs.
    #[test]
    fn given_a_thread_with_the_filters_then_threads_can_be_made_and_programs_and_namespaces_cannot() {
        std::thread::spawn(|| {
            rustix::thread::set_no_new_privs(true).unwrap();
            filters()
                .unwrap()
                .iter()
                .for_each(|filter| seccompiler::apply_filter(filter).unwrap());
            std::thread::spawn(|| ()).join().unwrap();
            assert!(std::process::Command::new("/bin/true").status().is_err());
            let error = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap_err();
            assert_eq!(error, nix::errno::Errno::EPERM);
            for (family, refused) in [
                (AddressFamily::from_raw(38), true),
                (AddressFamily::PACKET, true),
                (AddressFamily::UNIX, false),
            ] {
                let socket = rustix::net::socket(family, SocketType::DGRAM, None);
                assert_eq!(socket.err() == Some(rustix::io::Errno::PERM), refused, "{family:?}");
            }
            // The raw call: the C library would have all threads of the test make it.
            assert_eq!(rustix::thread::set_thread_groups(&[]).unwrap_err(), rustix::io::Errno::PERM);
        })
        .join()
        .unwrap();
    }
}
