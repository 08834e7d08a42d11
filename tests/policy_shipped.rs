//! The shipped filters against command lines that turn the same programs to something else.
#![cfg(feature = "daemon")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::PathBuf;

use rootwrap::config::{self, Settings, Source};
use rootwrap::policy::facts::Facts;
use rootwrap::policy::{Outcome, Request, Subject, decide};

/// Options that run programs, read scripts, load code, leave the subject or hide in another spelling; a word a space, `~` a space in a word.
const HOSTILE: &str = "
ip -batch /tmp/x
ip -b /tmp/x
ip -b- link set eth0 up
ip -force -batch -
ip -n x netns exec y sh
ip -netns x link set eth0 up
ip -nx link set eth0 up
ip n e x sh
ip netns exec x sh
ip netns add x
ip netns attach x 1
ip netns pids x
ip vrf exec x sh
ip -details link set eth0 up
ip -c=always link set eth0 up
ip -- link set eth0 up
ip link
ip link set
ip link set up
ip l s eth0 up
ip link set dev eth0 up up
ip link set dev eth0 up down
ip link set dev eth0 netns 1
ip link set dev eth0 netns /proc/1/ns/net
ip link set dev eth0 xdp object /tmp/x.o
ip link set dev eth0 xdpgeneric obj /tmp/x.o
ip link set dev eth0 master br0
ip link set dev eth0 name lo
ip link set dev eth0 address 02:00:00:00:00:01
ip link set dev eth0 promisc on
ip link set dev eth0 mtu 1400 up
ip link set dev eth0 mtu +1400
ip link set dev eth0 mtu 0x578
ip link set dev eth0 mtu 01400
ip link set dev eth0 mtu -1
ip link set dev eth0 mtu 1400~up
ip link set dev eth0~up
ip link set dev -batch up
ip link set -batch up
ip link set dev ../eth0 up
ip link set dev eth0/x up
ip link set dev abcdefghijklmnop up
ip link set group default up
ip link add v0 type veth
ip link del eth0
ip addr add 192.0.2.1/24 dev eth0 label x
ip addr add 192.0.2.1/024 dev eth0
ip addr add 192.0.2.1/33 dev eth0
ip addr add 192.0.2/24 dev eth0
ip addr add fe80::1%eth0/64 dev eth0
ip addr add all dev eth0
ip addr flush dev eth0
ip addr restore
ip addr save
ip address change 192.0.2.1/24 dev eth0
ip route add default via 192.0.2.1 table 5
ip route add default encap bpf in obj /tmp/x.o
ip route add default via 192.0.2.1/24
ip route add unreachable 192.0.2.0/24
ip route flush all
ip route restore
ip route save
ip -4 -6 route add default
ip -46 route add default
ip rule add from all table 5
ip tuntap add dev t0 mode tap
ip xfrm state
ip mptcp monitor
ip monitor all file /tmp/x
ip help
/tmp/ip link set eth0 up
./ip link set eth0 up
ping example.org
ping -c 0 example.org
ping -c 11 example.org
ping -c3 example.org
ping -c 3 -c 3 example.org
ping -c 3 -f example.org
ping -c 3 -i 0 example.org
ping -c 3 -I eth0 example.org
ping -c 3 -m 1 example.org
ping -c 3 -p ff example.org
ping -c 3 -s 65507 example.org
ping -nc 3 example.org
ping -c 3 -- example.org
ping -c 3 -4
ping -c 3 -W 0 example.org
ping -c 3 127.1
ping -c 3 0x7f000001
ping -c 3 example.org -f
ping -c 3 -x.example.org
ping -c 3 example.org~-f
env LD_PRELOAD=/tmp/x.so ip link set eth0 up
env PATH=/tmp ping -c 1 example.org
env -i ip link set eth0 up
env ip link set eth0 up
sh -c ip~link~set~eth0~up
";

fn shipped() -> config::Loaded {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("filters");
    let source = Source {
        directories: vec![directory],
        files: Vec::new(),
        check_owners: false,
    };
    config::load(&source, &Settings::default()).unwrap()
}

#[test]
fn given_hostile_command_lines_then_no_shipped_filter_allows_one() {
    let loaded = shipped();
    let lines: Vec<&str> = HOSTILE.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.len() >= 60);
    let mut endings = vec!["", "\n"];
    endings.push("\u{a0}");
    for file in 0..u32::try_from(loaded.policy.files().len()).unwrap() {
        let subject = Subject {
            assumed_by_file: Some(file),
            ..Subject::default()
        };
        for line in &lines {
            for ending in &endings {
                let mut argv: Vec<Vec<u8>> = line.split(' ').map(|word| word.replace('~', " ").into_bytes()).collect();
                argv.last_mut().unwrap().extend_from_slice(ending.as_bytes());
                let request = Request {
                    subject: &subject,
                    argv: &argv,
                    environment: &[],
                    has_cwd: false,
                    has_stdin: false,
                    filter: None,
                    profile: None,
                };
                let outcome = decide(&loaded.policy, &request, &Facts::lexical());
                assert!(matches!(outcome, Outcome::Deny(_)), "{line}{ending:?} is allowed");
            }
        }
    }
}

#[test]
fn given_no_filters_then_nothing_at_all_is_allowed() {
    let empty = rootwrap::policy::Policy::default();
    let subject = Subject::default();
    for test in shipped().tests {
        let request = Request {
            subject: &subject,
            argv: &test.argv,
            environment: &test.environment,
            has_cwd: test.has_cwd,
            has_stdin: false,
            filter: None,
            profile: None,
        };
        assert!(
            matches!(decide(&empty, &request, &Facts::lexical()), Outcome::Deny(_)),
            "{:?}",
            test.argv
        );
    }
}
