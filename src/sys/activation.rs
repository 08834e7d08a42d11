//! Descriptors that the service manager passed, sd_listen_fds(3).

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use libsystemd::activation::receive_descriptors;

/// A descriptor and the name that the manager gave it.
pub type Passed = (OwnedFd, Option<String>);

/// Takes the passed descriptors, close-on-exec, with their names where LISTEN_FDNAMES gives them, and clears the variables, so that a second call finds
/// nothing. To be called from the main thread before there is another one: it changes the environment.
///
/// # Errors
/// In words: LISTEN_PID names another process, LISTEN_FDS counts descriptors that are not open, LISTEN_FDNAMES names another number of them.
pub fn take_descriptors() -> Result<Vec<Passed>, String> {
    let pid = std::env::var("LISTEN_PID").ok();
    if pid.as_deref().is_some_and(|pid| pid != std::process::id().to_string()) {
        return Err(format!(
            "LISTEN_PID is {}, this process is {}: the sockets were passed to another one",
            pid.unwrap_or_default().escape_default(),
            std::process::id()
        ));
    }
    let names = std::env::var("LISTEN_FDNAMES").ok();
    let descriptors = receive_descriptors(true).map_err(|error| format!("LISTEN_FDS: {error}"))?;
    let descriptors: Vec<OwnedFd> = descriptors
        .into_iter()
        .map(|descriptor| {
            // SAFETY: receive_descriptors has set FD_CLOEXEC on it, so it is open; the manager passed it to this process, and since
            // the variables are cleared now nobody takes it a second time.
            unsafe { OwnedFd::from_raw_fd(descriptor.into_raw_fd()) }
        })
        .collect();
    let Some(names) = names else {
        return Ok(descriptors.into_iter().map(|descriptor| (descriptor, None)).collect());
    };
    let names: Vec<String> = if descriptors.is_empty() {
        Vec::new()
    } else {
        names.split(':').map(str::to_owned).collect()
    };
    if names.len() != descriptors.len() {
        return Err(format!(
            "LISTEN_FDNAMES names {} descriptors, LISTEN_FDS counts {}",
            names.len(),
            descriptors.len()
        ));
    }
    Ok(descriptors.into_iter().zip(names.into_iter().map(Some)).collect())
}
