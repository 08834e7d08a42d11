//! What a command holds, read from the command itself.

use crate::common::Machine;
use crate::machine_with_links;

fn line(status: &str, name: &str) -> String {
    let value = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    value.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

#[test]
fn given_a_filter_with_one_capability_then_the_command_of_root_has_that_one_and_no_way_to_another() {
    let machine = machine_with_links();
    let status = machine.alice(["rootwrap", "cat", "/proc/self/status"]).ok();
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(line(&status, set), "0000000000001000", "{set}: CAP_NET_ADMIN is bit 12");
    }
    assert_eq!(line(&status, "Uid"), "0\t0\t0\t0");
    assert_eq!(line(&status, "Gid"), "0\t0\t0\t0");
    assert_eq!(line(&status, "NoNewPrivs"), "1");
    assert_eq!(
        line(&status, "Seccomp"),
        "0",
        "the service's own seccomp filter is not its commands'"
    );
    for set in ["SigBlk", "SigIgn"] {
        assert_eq!(line(&status, set), "0000000000000000", "{set}");
    }
}

#[test]
fn given_setuid_and_file_capability_programs_then_a_command_gains_nothing_by_them() {
    let machine = Machine::boot();
    machine
        .sh(
            "root",
            "cp /usr/bin/cat /usr/local/bin/setuid-cat && chmod 4755 /usr/local/bin/setuid-cat &&
             cp /usr/bin/cat /usr/local/bin/filecap-cat && setcap cap_sys_admin,cap_net_raw+p /usr/local/bin/filecap-cat",
        )
        .ok();
    let filter = |name: &str, more: &str| {
        format!(
            "[[filter]]\nname = \"{name}\"\ncommand = \"nice\"\n{more}\nrun_as = {{ user = \"nobody\" }}\ncapabilities = [\"net_admin\"]\n"
        )
    };
    machine.filters(&format!(
        "[callers]\nusers = [\"alice\"]\n{}{}",
        filter("kept-down", "args = [{ one_of = [\"/usr/local/bin/setuid-cat\", \"/usr/local/bin/filecap-cat\"] }, \"/proc/self/status\"]"),
        filter(
            "not-kept-down",
            "args = [\"-n\", \"0\", { one_of = [\"/usr/local/bin/setuid-cat\", \"/usr/local/bin/filecap-cat\"] }, \"/proc/self/status\"]\nno_new_privs = false"
        ),
    ));
    for program in ["/usr/local/bin/setuid-cat", "/usr/local/bin/filecap-cat"] {
        for options in [&[][..], &["-n", "0"]] {
            let argv = [&["rootwrap", "nice"], options, &[program, "/proc/self/status"]].concat();
            let status = machine.alice(argv).ok();
            for set in ["CapPrm", "CapEff", "CapBnd"] {
                let bits = u64::from_str_radix(&line(&status, set), 16).expect("hexadecimal");
                assert_eq!(
                    bits & !(1 << 12),
                    0,
                    "{program} {options:?} has more than net_admin in {set}: {bits:x}"
                );
            }
        }
    }
}
