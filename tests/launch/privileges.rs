//! One capability works, and no other can be had again.

use rootwrap::policy::spec::Execution;

use crate::support::*;

#[test]
fn root_with_net_admin_configures_links_and_without_it_does_not() {
    with_launcher(1, async |launcher, _| {
        let argv = ["/usr/sbin/ip", "link", "set", "dev", "lo", "up"];
        let (exit, said) = start(launcher, &root_with(NET_ADMIN), &argv).await.finish().await;
        assert_eq!((exit.code, said.as_str()), (Some(0), ""));
        for execution in [root_with(0), root_with(NET_RAW), nobody_with(0)] {
            let (exit, said) = start(launcher, &execution, &argv).await.finish().await;
            assert_eq!(exit.code, Some(2), "{said}");
            assert!(said.contains("Operation not permitted"), "{said}");
        }
        let (exit, _) = start(launcher, &nobody_with(NET_ADMIN), &argv).await.finish().await;
        assert_eq!(exit.code, Some(0), "a plain user with the capability");
    });
}

#[test]
fn root_with_net_admin_has_no_other_power_of_root() {
    with_launcher(1, async |launcher, _| {
        let directory = TrustedDirectory::new();
        let file = directory.copy("/bin/true", "file", 0o600);
        let execution = root_with(NET_ADMIN);
        for argv in [
            &["/bin/chown", "1", &file][..],
            &["/usr/sbin/chroot", "/", "/bin/true"],
            &["/bin/mount", "-t", "tmpfs", "none", "/mnt"],
            &["/usr/bin/setpriv", "--reuid=1", "--clear-groups", "/bin/true"],
            &["/usr/bin/nice", "-n", "-5", "/bin/cat", "/proc/1/environ"],
        ] {
            let (exit, said) = start(launcher, &execution, argv).await.finish().await;
            assert_ne!(exit.code, Some(0), "{argv:?}: {said}");
        }
    });
}

#[test]
fn neither_setuid_nor_file_capabilities_nor_uid_changes_give_anything_back() {
    let directory = TrustedDirectory::new();
    let setuid = directory.copy("/bin/cat", "setuid-cat", 0o4755);
    let capable = directory.copy("/bin/cat", "capable-cat", 0o755);
    tool(&["/usr/sbin/setcap", "cap_sys_admin,cap_net_admin,cap_chown+eip", &capable]);
    let partly = directory.copy("/bin/cat", "raw-cat", 0o755);
    tool(&["/usr/sbin/setcap", "cap_net_raw+ep", &partly]);
    with_launcher(1, async |launcher, _| {
        for no_new_privs in [true, false] {
            for of in [
                root_with(0),
                root_with(NET_RAW),
                nobody_with(0),
                nobody_with(NET_RAW),
                nobody_with(NET_RAW | CHOWN),
            ] {
                let execution = Execution { no_new_privs, ..of };
                let rootwrap::policy::spec::Capabilities::Set(allowed) = execution.capabilities else {
                    panic!("a set")
                };
                for program in [&setuid, &capable, &partly] {
                    let argv = ["/bin/sh", "-c", &format!("exec {program} /proc/self/status")];
                    let (exit, status) = start(launcher, &execution, &argv).await.finish().await;
                    if exit.code != Some(0) {
                        // The kernel does not execute a file whose capabilities it cannot give.
                        assert!(status.contains("not permitted"), "{status}");
                        continue;
                    }
                    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                        let has = u64::from_str_radix(field(&status, set), 16).unwrap();
                        assert_eq!(has & !allowed, 0, "{program} as {:?}: {set}", execution.run_as.user);
                    }
                }
            }
        }
    });
}

#[test]
fn a_program_that_drops_privileges_itself_still_can_and_then_has_none() {
    let setuid = 1 << 7;
    let setgid = 1 << 6;
    with_launcher(1, async |launcher, _| {
        let argv = [
            "/usr/bin/setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "/bin/cat",
            "/proc/self/status",
        ];
        let status = output(launcher, &root_with(setuid | setgid | NET_ADMIN), &argv).await;
        assert_eq!(field(&status, "Uid"), "65534\t65534\t65534\t65534");
        for set in ["CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(&status, set), "0000000000000000", "{set}");
        }
    });
}
