//! Filters for tests.

use std::sync::Arc;
use std::time::Duration;

use super::spec::*;

/// A filter for everybody, run as root without capabilities.
pub(super) fn filter(name: &str, command: &str, args: Vec<Element>) -> FilterSpec {
    FilterSpec {
        name: name.to_owned(),
        span: Span::default(),
        line: 1,
        callers: Arc::new(Callers {
            users: vec![UserRule::Any],
            ..Callers::default()
        }),
        command: CommandSpec {
            spelled: vec![command.to_owned()],
            candidates: vec![command.into()],
            span: Span::default(),
        },
        args,
        execution: execution(),
        message: None,
        inner_only: false,
        max_concurrent: None,
    }
}

fn execution() -> Execution {
    Execution {
        run_as: Arc::new(RunAs {
            ids: Some(Ids {
                uid: 0,
                gid: 0,
                groups: Vec::new(),
            }),
            user: "root".to_owned(),
            home: "/root".to_owned(),
            shell: "/bin/sh".to_owned(),
        }),
        capabilities: Capabilities::Set(0),
        no_new_privs: true,
        env_allow: Vec::new(),
        env_set: Vec::new(),
        cwd: Cwd::Path("/".into()),
        stdin: Stdin::Caller,
        umask: 0o022,
        nice: 0,
        oom_score: 0,
        nofile: None,
        timeout: None,
        kill_after: Duration::from_secs(5),
        on_disconnect: OnDisconnect::Kill,
        placement: Placement::Own,
        sha256: None,
    }
}
