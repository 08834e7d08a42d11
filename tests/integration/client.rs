//! The client command under what its callers do to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::common::Machine;
use crate::{LINKS, machine_with_links};

/// Reports every signal that it receives, each on a line.
const REPORTER: &str = r#"#!/usr/bin/python3 -u
import signal
for name in ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"]:
    signal.signal(getattr(signal, name), lambda number, _: print(signal.Signals(number).name))
import os
print("ready", os.getpid())
while True:
    signal.pause()
"#;

fn next_line(child: &mut Child, output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("read");
    assert!(!line.is_empty(), "the client ended: {:?}", child.wait());
    line.trim_end().to_owned()
}

#[test]
fn given_a_running_command_when_the_client_is_signalled_then_the_command_is() {
    let machine = Machine::boot();
    machine.write("/usr/local/bin/reporter", REPORTER);
    machine.root(["chmod", "755", "/usr/local/bin/reporter"]).ok();
    machine.filters(
        "[callers]\nusers = [\"alice\"]\n[[filter]]\nname = \"reporter\"\ncommand = \"/usr/local/bin/reporter\"\nargs = []\ncapabilities = []\n",
    );
    // A shell that stays the client's parent and signals it on demand. Without `set -m` it would have it ignore SIGINT.
    let script = r#"set -m; rootwrap reporter & client=$!; while read -r name; do kill -s "$name" $client; done; wait $client"#;
    let mut shell = machine.command("alice", ["bash", "-c", script]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("spawn");
    let mut orders = shell.stdin.take().expect("stdin");
    let mut output = BufReader::new(shell.stdout.take().expect("stdout"));
    let ready = next_line(&mut shell, &mut output);
    let command: u32 = ready.strip_prefix("ready ").expect("ready").parse().expect("a pid");

    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"] {
        writeln!(orders, "{name}").expect("write");
        assert_eq!(next_line(&mut shell, &mut output), format!("SIG{name}"));
    }
    writeln!(orders, "TSTP").expect("write");
    machine
        .sh("root", &format!("until grep -q '^State:.T' /proc/{command}/status; do :; done"))
        .ok();
    writeln!(orders, "CONT").expect("write");
    machine
        .sh("root", &format!("until grep -q '^State:.S' /proc/{command}/status; do :; done"))
        .ok();
    // Nobody can take the command from its caller: it ends with the client.
    writeln!(orders, "KILL").expect("write");
    drop(orders);
    assert_eq!(shell.wait().expect("wait").code(), Some(137));
    machine.sh("root", &format!("while [ -e /proc/{command} ]; do :; done")).ok();
}

#[test]
fn given_no_new_privs_or_no_groups_at_all_then_the_client_works() {
    let machine = machine_with_links();
    machine
        .alice(["setpriv", "--no-new-privs", "rootwrap", "ip", "link", "set", "v0", "up"])
        .ok();
    machine
        .sh(
            "root",
            "exec setpriv --reuid alice --regid 65533 --clear-groups -- rootwrap cat /proc/self/status",
        )
        .ok();
}

#[test]
fn given_a_command_that_fails_or_is_killed_then_the_client_exits_as_it_did() {
    let machine = Machine::boot();
    machine.filters(
        r#"
[callers]
users = ["alice"]
[[filter]]
name = "sh"
command = "sh"
args = ["-c", { one_of = ["exit 7", "kill -TERM $$", "cat >&2"] }]
capabilities = []
[[filter]]
name = "slow"
command = "sleep"
args = ["1000"]
capabilities = []
"#,
    );
    machine.alice(["rootwrap", "sh", "-c", "exit 7"]).expect(7);
    assert_eq!(machine.alice(["rootwrap", "sh", "-c", "kill -TERM $$"]).code(), 128 + 15);
    assert_eq!(machine.sh("alice", "echo through | rootwrap sh -c 'cat >&2'").stderr, "through\n");
    machine.alice(["rootwrap", "--timeout", "0.2", "sleep", "1000"]).expect(124);
    machine.alice(["rootwrap", "--bogus", "ip"]).expect(125);
    machine.alice(["rootwrap", "no-such-command"]).expect(126);
    machine
        .alice(["env", "ROOTWRAP_SOCKET=/run/no-such.sock", "rootwrap", "ip"])
        .expect(125);
}

#[test]
fn given_fifty_callers_at_once_then_each_command_has_its_three_descriptors_and_no_other() {
    let machine = Machine::boot();
    machine.filters(&format!(
        "{LINKS}\n[[filter]]\nname = \"descriptors\"\ncommand = \"ls\"\nargs = [\"-l\", \"/proc/self/fd\"]\ncapabilities = []\n"
    ));
    let script = "for i in $(seq 50); do rootwrap ls -l /proc/self/fd >/tmp/fds.$i & done; wait; cat /tmp/fds.*";
    let lists = machine.sh("alice", script).ok();
    let mut numbers: Vec<&str> = lists
        .lines()
        .filter_map(|line| line.split_once(" -> ")?.0.rsplit(' ').next())
        .collect();
    numbers.sort_unstable();
    // `ls` itself opens the directory that it lists: descriptor 3 shows that no lower one is free, and none other is there.
    let expected: Vec<&str> = ["0", "1", "2", "3"].iter().flat_map(|number| [*number; 50]).collect();
    assert_eq!(numbers, expected, "{lists}");
}

/// What is installed as `rootwrap` is the quick client, which does plain calls itself and becomes the full one for all others.
#[test]
fn given_any_call_then_the_quick_client_does_as_the_full_one() {
    let machine = Machine::boot();
    machine.filters(
        r#"
[callers]
users = ["alice"]
[[filter]]
name = "sh"
command = "sh"
args = ["-c", { regex = '(?s).*', dash = true }, { repeat = { regex = '(?s).*', dash = true }, min = 0 }]
capabilities = []
"#,
    );
    let calls = [
        "CLIENT sh -c 'exit 0'",
        "CLIENT sh -c 'exit 255' </dev/null",
        "CLIENT sh -c 'echo out; echo err >&2; exit 7' x",
        "echo in | CLIENT sh -c 'cat; readlink /proc/self/fd/0 | cut -c1-4'",
        "CLIENT sh -c 'readlink /proc/self/fd/0' </dev/null",
        "CLIENT sh -c 'for a; do echo \"<$a>\"; done' x \"a 'b' c\" '' '{\"exitCode\":3}' 'ü' $(printf 'x%.0s' $(seq 5000))",
        "CLIENT sh -c 'for a; do echo \"<$a>\"; done' $(seq 1000)",
        "CLIENT sh -c 'kill -TERM $$'; echo $?",
        "CLIENT sh -c 'echo $#' x <&- ",
        "CLIENT sh -c 'exit 0' >&-",
        "CLIENT ls /; CLIENT --bogus sh; CLIENT -- sh -c 'exit 4'; CLIENT",
        "CLIENT --timeout 1ms sh -c 'sleep 60'",
        "ROOTWRAP_SOCKET=/nonexistent CLIENT sh -c 'exit 0'",
        "unshare -Ur CLIENT sh -c 'id -u'",
    ];
    for call in calls {
        let [quick, full] = ["rootwrap", "/usr/libexec/rootwrap/rootwrap-client"].map(|client| {
            let script = call.replace("CLIENT", client);
            let output = machine.command("alice", ["bash", "-c", script.as_str()]).output().expect("bash");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), text(&output.stdout), text(&output.stderr))
        });
        assert_eq!(quick, full, "{call}");
    }
    let sizes = machine
        .root(["stat", "-c", "%s", "/usr/bin/rootwrap", "/usr/libexec/rootwrap/rootwrap-client"])
        .ok();
    let sizes: Vec<u64> = sizes.lines().map(|size| size.parse().expect("a size")).collect();
    assert!(
        sizes[0] < 65_536 && sizes[0] < sizes[1],
        "the quick client is not what is installed: {sizes:?}"
    );
}
