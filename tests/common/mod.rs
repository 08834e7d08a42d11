//! What tests under a booted systemd share: a disposable machine ([`Machine`]), the package staged for it ([`stage`]),
//! its journal ([`journal`]).
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test target uses a part")]

pub mod journal;
pub mod machine;
pub mod stage;

pub use journal::Record;
pub use machine::Machine;
