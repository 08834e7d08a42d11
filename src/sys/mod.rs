//! System calls that need `unsafe`, each behind a safe function: descriptors in and out are owned or borrowed, no policy here.
#![allow(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod async_fd;
pub mod peer;
pub mod socket;
