//! `rootwrapctl` as a process on policies in temporary directories; the documents agree with the programs.

mod check;
mod docs;
mod explain;
mod man;
mod workspace;
