//! rootwrap as its users meet it: installed by `packaging/install` on a machine that systemd runs, asked by unprivileged
//! users, judged by its exit status, its effect on the machine and the records in the journal.
//!
//! Every test boots a machine of its own (`tests/box`), so they can run side by side. They need root.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, reason = "a test ends so when what it needs is missing")]

#[path = "../common/mod.rs"]
mod common;

mod activation;
mod bad_input;
mod caller;
mod client;
mod confinement;
mod ctl;
mod effects;
mod evidence;
mod package;
mod policy_life;
mod privileges;
mod records;
mod units;
mod varlink;

use common::Machine;

/// Lets alice set links up and see her command's own status; bob may do nothing.
const LINKS: &str = r#"
[callers]
users = ["alice"]

[[filter]]
name = "link-up"
command = "ip"
args = ["link", "set", { interface = true }, "up"]
capabilities = ["net_admin"]

[[filter]]
name = "own-status"
command = "cat"
args = ["/proc/self/status"]
capabilities = ["net_admin"]
"#;

/// A machine with the filters of [`LINKS`].
fn machine_with_links() -> Machine {
    let machine = Machine::boot();
    machine.filters(LINKS);
    machine.root(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]).ok();
    machine
}
