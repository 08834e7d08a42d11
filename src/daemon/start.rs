//! The order of the start. Everything up to the runtime happens in the main thread while there is no other: the environment is
//! changed, the launcher must be the child of this thread, and what the process gives up it gives up for all threads to come.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use super::peer::OverflowIds;
use super::serve::{Prepared, serve};
use super::{cgroup, confine, diagnostics, listen};
use crate::audit;
use crate::cli::rootwrapd::Arguments;
use crate::launch::LauncherProcess;

/// Inode of the initial user namespace: PROC_USER_INIT_INO of the kernel's include/linux/proc_ns.h.
const INITIAL_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// The daemon's main function; returns its exit status.
#[must_use]
pub fn main() -> ExitCode {
    match start(Arguments::parse()) {
        Ok(status) => status,
        Err(error) => {
            // Before the journal is there, and beside it: systemd puts stderr there too.
            eprintln!("rootwrapd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: Arguments) -> Result<ExitCode> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "must be started as root: it gives up all it does not need by itself"
    );
    refuse_user_namespace(arguments.allow_userns)?;
    let overflow = OverflowIds::read().context("/proc/sys/kernel/overflowuid and overflowgid")?;
    let listeners = listen::acquire(&arguments)?;
    let journal = audit::open().context("socket for the journal")?;
    let cgroup = cgroup::enter_daemon().context("cannot divide the unit's cgroup")?;
    let launcher = launcher_path(&arguments)?;
    let launcher = LauncherProcess::start(&launcher).with_context(|| format!("{}", launcher.display()))?;
    confine::apply().context("cannot give up privileges")?;
    diagnostics::install();
    if let Err(why) = &cgroup {
        tracing::warn!("{why}: commands get no cgroups of their own (the unit needs Delegate=yes)");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .context("runtime")?;
    let served = runtime.block_on(serve(Prepared {
        arguments,
        listeners,
        journal,
        cgroup: cgroup.ok(),
        launcher,
        overflow,
    }));
    // A load that is still going on is of no interest any more.
    runtime.shutdown_background();
    served
}

/// In a user namespace an unprivileged user of the host can be root, and all users that are not mapped look alike.
fn refuse_user_namespace(allowed: bool) -> Result<()> {
    let namespace = std::fs::metadata("/proc/self/ns/user").context("/proc/self/ns/user")?;
    ensure!(
        allowed || namespace.ino() == INITIAL_USER_NAMESPACE,
        "this is not the initial user namespace, where callers' ids can be trusted; --allow-userns starts all the same"
    );
    Ok(())
}

fn launcher_path(arguments: &Arguments) -> Result<PathBuf> {
    match &arguments.launcher {
        Some(path) => Ok(path.clone()),
        None => Ok(std::env::current_exe()
            .context("/proc/self/exe")?
            .with_file_name("rootwrap-launcher")),
    }
}
