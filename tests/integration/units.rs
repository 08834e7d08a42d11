//! The shipped unit files.

use std::fs;
use std::path::Path;

use crate::common::Machine;
use crate::common::stage::TREE;

/// Would give commands a view of the machine instead of the machine, or what they could not shed.
const FORBIDDEN: &[&str] = &[
    // A mount namespace: mounts and network namespaces made by commands would not be the machine's.
    "BindPaths",
    "BindReadOnlyPaths",
    "DynamicUser",
    "ExecPaths",
    "ExtensionDirectories",
    "ExtensionImages",
    "InaccessiblePaths",
    "LogNamespace",
    "MountAPIVFS",
    "MountFlags",
    "MountImages",
    "NoExecPaths",
    "PrivateBPF",
    "PrivateDevices",
    "PrivateIPC",
    "PrivateMounts",
    "PrivateTmp",
    "ProcSubset",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProtectSystem",
    "ReadOnlyPaths",
    "ReadWritePaths",
    "RootDirectory",
    "RootImage",
    "TemporaryFileSystem",
    // Other namespaces.
    "NetworkNamespacePath",
    "IPCNamespacePath",
    "PrivateNetwork",
    "PrivatePIDs",
    "PrivateUsers",
    "ProtectHostname",
    // Inherited by commands, which cannot shed it.
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
    "ProtectClock",
    "RestrictAddressFamilies",
    "RestrictFileSystems",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SecureBits",
    "SystemCallArchitectures",
    "SystemCallErrorNumber",
    "SystemCallFilter",
    "SystemCallLog",
    "AppArmorProfile",
    "SELinuxContext",
    "SmackProcessLabel",
    // BPF programs on the service's cgroup, in which commands run.
    "DeviceAllow",
    "DevicePolicy",
    "IPAddressAllow",
    "IPAddressDeny",
    "IPEgressFilterPath",
    "IPIngressFilterPath",
    "RestrictNetworkInterfaces",
    "SocketBindAllow",
    "SocketBindDeny",
    // Another user than root.
    "Group",
    "SupplementaryGroups",
    "User",
];

fn unit(name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(Path::new(TREE).join("systemd").join(name)).expect("the unit");
    let settings = text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
    settings
        .map(|line| {
            line.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .expect("KEY=VALUE")
        })
        .collect()
}

#[test]
fn given_the_shipped_service_then_no_directive_is_set_that_its_commands_would_suffer_from() {
    for name in ["rootwrap.service", "rootwrap.socket"] {
        for (key, _) in unit(name) {
            assert!(!FORBIDDEN.contains(&key.as_str()), "{name} sets {key}");
        }
    }
}

#[test]
fn given_the_shipped_units_then_what_the_service_relies_on_is_set() {
    let set = |name: &str, key: &str, value: &str| {
        assert!(unit(name).contains(&(key.to_owned(), value.to_owned())), "{name}: {key}={value}");
    };
    for (key, value) in [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("Requires", "rootwrap.socket"),
        ("After", "rootwrap.socket"),
        ("StartLimitIntervalSec", "0"),
        ("Restart", "on-failure"),
        ("RestartSec", "1s"),
        ("KillMode", "mixed"),
        ("Delegate", "yes"),
        ("OOMPolicy", "continue"),
        ("TasksMax", "infinity"),
        ("LogRateLimitIntervalSec", "0"),
        ("ExecReload", "/usr/bin/rootwrapctl reload"),
    ] {
        set("rootwrap.service", key, value);
    }
    for (key, value) in [("SocketMode", "0666"), ("PassCredentials", "yes"), ("TriggerLimitIntervalSec", "0")] {
        set("rootwrap.socket", key, value);
    }
    assert!(unit("rootwrap.service").iter().any(|(key, _)| key == "WatchdogSec"));
}

#[test]
fn given_the_pages_that_the_units_refer_to_then_they_are_in_the_package() {
    for name in ["rootwrap.service", "rootwrap.socket"] {
        let pages = unit(name)
            .into_iter()
            .filter(|(key, _)| key == "Documentation")
            .flat_map(|(_, value)| {
                value
                    .split(' ')
                    .map(|page| page.strip_prefix("man:").expect("a manual page").replace('(', ".").replace(')', ""))
                    .collect::<Vec<_>>()
            });
        for page in pages {
            assert!(
                Path::new(TREE).join("packaging/man").join(&page).exists(),
                "{name} refers to {page}"
            );
        }
    }
}

#[test]
fn given_the_installed_units_then_systemd_finds_nothing_to_complain_about() {
    let machine = Machine::boot();
    let outcome = machine
        .root(["systemd-analyze", "verify", "--man=no", "rootwrap.socket", "rootwrap.service"])
        .expect(0);
    assert_eq!(outcome.stderr, "");
    for tool in ["systemd-sysusers", "systemd-tmpfiles"] {
        let kind = tool.trim_start_matches("systemd-");
        let create = if kind == "tmpfiles" { "--create" } else { "--" };
        let outcome = machine.root([tool, create, &format!("/usr/lib/{kind}.d/rootwrap.conf")]).expect(0);
        assert!(!outcome.stderr.contains("rootwrap.conf:"), "{}", outcome.stderr);
    }
    assert_eq!(machine.root(["stat", "-c", "%U %a", "/run/rootwrap/filters.d"]).ok(), "root 755\n");
}
