//! Commands act on the machine itself, not on a view of it.

use std::process::Stdio;

use crate::common::Machine;

const ADMIN: &str = r#"
[callers]
users = ["alice"]

[[filter]]
name = "netns"
command = "ip"
args = ["netns", "add", { regex = '[a-z]+' }]
capabilities = ["sys_admin"]

[[filter]]
name = "mount"
command = "mount"
args = ["-t", "tmpfs", "none", "/mnt"]
capabilities = ["sys_admin"]

[[filter]]
name = "dnsmasq"
command = "dnsmasq"
args = ["--keep-in-foreground", "--user=dnsmasq", "--conf-file=/dev/null", "--port=0", "--interface=lo", "--bind-interfaces", "--dhcp-range=127.0.0.10,127.0.0.20", "--dhcp-leasefile=/run/leases", "--pid-file=/run/dnsmasq-test.pid"]
capabilities = ["chown", "net_admin", "net_bind_service", "net_raw", "setgid", "setuid"]
"#;

fn machine() -> Machine {
    let machine = Machine::boot();
    machine.filters(ADMIN);
    machine
}

#[test]
fn given_a_network_namespace_or_a_mount_made_through_rootwrap_then_the_machine_has_it() {
    let machine = machine();
    machine.alice(["rootwrap", "ip", "netns", "add", "blue"]).ok();
    machine.root(["ip", "netns", "exec", "blue", "ip", "link", "show", "lo"]).ok();
    machine.alice(["rootwrap", "mount", "-t", "tmpfs", "none", "/mnt"]).ok();
    assert_eq!(machine.root(["findmnt", "-n", "-o", "FSTYPE", "/mnt"]).ok().trim(), "tmpfs");
}

#[test]
fn given_a_daemon_that_gives_up_its_privileges_itself_then_it_starts_and_has_given_them_up() {
    let machine = machine();
    let mut client = machine.command("alice", ["rootwrap", "dnsmasq"].into_iter().chain(arguments()));
    let mut client = client
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spawn");
    let pid = machine.sh(
        "root",
        "for i in $(seq 200); do [ -s /run/dnsmasq-test.pid ] && exec cat /run/dnsmasq-test.pid; sleep 0.05; done; exit 1",
    );
    if pid.code() != 0 {
        client.kill().expect("kill");
        panic!("dnsmasq did not start: {:?}", client.wait_with_output());
    }
    let pid = pid.ok();
    let status = machine.root(["cat", &format!("/proc/{}/status", pid.trim())]).ok();
    let uid = machine.root(["id", "-u", "dnsmasq"]).ok();
    assert!(status.contains(&format!("Uid:\t{0}\t{0}\t{0}\t{0}", uid.trim())), "{status}");
    // dnsmasq keeps net_admin, net_raw and net_bind_service for DHCP, and loses what it used to become another user.
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:\t")).expect("CapEff");
    let effective = u64::from_str_radix(effective, 16).expect("hexadecimal");
    assert_eq!(effective & !((1 << 10) | (1 << 12) | (1 << 13)), 0, "{effective:x}");
    client.kill().expect("kill");
    client.wait().expect("wait");
}

fn arguments() -> impl Iterator<Item = &'static str> {
    let list = ADMIN
        .lines()
        .find(|line| line.contains("--keep-in-foreground"))
        .expect("the filter");
    list.split('"').filter(|part| part.starts_with("--"))
}
