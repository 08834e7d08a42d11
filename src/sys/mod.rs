//! System calls that need `unsafe`, each behind a safe function: descriptors in and out are owned or borrowed, no policy here.
#![allow(unsafe_code)]

#[cfg(feature = "daemon")]
pub mod activation;
#[cfg(feature = "tokio")]
pub mod async_fd;
#[cfg(feature = "daemon")]
pub mod cgroup;
#[cfg(feature = "daemon")]
pub mod descriptors;
#[cfg(feature = "daemon")]
pub mod impatient;
pub mod memfd;
pub mod passed;
pub mod peer;
#[cfg(feature = "daemon")]
pub mod pidfd;
#[cfg(feature = "daemon")]
pub mod process;
pub mod signal;
pub mod socket;
