//! The environment of a command: made from nothing, never inherited.

use std::collections::BTreeMap;

use crate::policy::spec::RunAs;

use super::{JobContext, JobError};

/// PATH of every command, see environ(7).
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `NAME=VALUE`, sorted by name. Later wins: the service's own variables, `env_set`, the caller's (which the policy let through);
/// but ROOTWRAP_UID and ROOTWRAP_REQUEST_ID are always the service's.
pub(super) fn build(
    run_as: &RunAs,
    context: &JobContext,
    env_set: &[(String, String)],
    caller: &[(Vec<u8>, Vec<u8>)],
) -> Result<Vec<Vec<u8>>, JobError> {
    let mut variables: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
    let (uid, own) = (context.caller_uid.to_string(), |text: &'static str| text.as_bytes());
    variables.insert(own("PATH"), own(PATH));
    variables.insert(own("HOME"), run_as.home.as_bytes());
    variables.insert(own("SHELL"), run_as.shell.as_bytes());
    variables.insert(own("USER"), run_as.user.as_bytes());
    variables.insert(own("LOGNAME"), run_as.user.as_bytes());
    if let Some(term) = context.term.as_deref().filter(|term| is_terminal_name(term)) {
        variables.insert(own("TERM"), term);
    }
    variables.extend(env_set.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    variables.extend(caller.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
    variables.insert(own("ROOTWRAP_UID"), uid.as_bytes());
    variables.insert(own("ROOTWRAP_REQUEST_ID"), context.request_id.as_bytes());
    variables.iter().map(|(name, value)| variable(name, value)).collect()
}

fn variable(name: &[u8], value: &[u8]) -> Result<Vec<u8>, JobError> {
    if name.is_empty() || name.contains(&b'=') || name.contains(&0) || value.contains(&0) {
        return Err(JobError::Malformed("a variable"));
    }
    Ok([name, b"=", value].concat())
}

/// terminfo looks the name up as a file: no `/`, no leading dot.
fn is_terminal_name(term: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(byte);
    (1..=64).contains(&term.len()) && term.iter().all(allowed) && !term.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_as() -> RunAs {
        RunAs {
            ids: None,
            user: "backup".into(),
            home: "/var/backups".into(),
            shell: "/usr/sbin/nologin".into(),
        }
    }

    fn context(term: Option<&[u8]>) -> JobContext {
        JobContext {
            caller_uid: 1000,
            request_id: "r1".into(),
            loginuid: None,
            term: term.map(<[u8]>::to_vec),
        }
    }

    fn pair(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
        (name.into(), value.into())
    }

    fn built(context: &JobContext, env_set: &[(&str, &str)], caller: &[(Vec<u8>, Vec<u8>)]) -> Vec<String> {
        let env_set: Vec<_> = env_set.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let all = build(&run_as(), context, &env_set, caller).unwrap();
        all.into_iter().map(|v| String::from_utf8(v).unwrap()).collect()
    }

    #[test]
    fn without_anything_asked_for_there_are_the_services_own_variables_only() {
        assert_eq!(
            built(&context(None), &[], &[]),
            [
                "HOME=/var/backups",
                "LOGNAME=backup",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "ROOTWRAP_REQUEST_ID=r1",
                "ROOTWRAP_UID=1000",
                "SHELL=/usr/sbin/nologin",
                "USER=backup",
            ]
        );
    }

    #[test]
    fn the_callers_value_wins_over_the_filters_but_never_over_who_it_is() {
        let all = built(
            &context(None),
            &[("LANG", "C"), ("A", "filter")],
            &[pair("A", "caller"), pair("ROOTWRAP_UID", "0")],
        );
        assert!(all.contains(&"A=caller".to_owned()) && all.contains(&"LANG=C".to_owned()));
        assert!(all.contains(&"ROOTWRAP_UID=1000".to_owned()) && !all.contains(&"A=filter".to_owned()));
    }

    #[test]
    fn a_terminal_name_that_is_a_path_is_left_out() {
        assert!(built(&context(Some(b"xterm-256color")), &[], &[]).contains(&"TERM=xterm-256color".to_owned()));
        for term in ["../../tmp/evil", ".x", "", "a b", &"x".repeat(65)] {
            let all = built(&context(Some(term.as_bytes())), &[], &[]);
            assert!(all.iter().all(|v| !v.starts_with("TERM=")), "{term}");
        }
    }

    #[test]
    fn what_would_be_two_variables_or_half_of_one_is_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0B=y")] {
            assert!(build(&run_as(), &context(None), &[], &[pair(name, value)]).is_err());
        }
    }
}
