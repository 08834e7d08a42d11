//! Every verb but Run: who may, and the answer. The table is exhaustive: a new verb without an entry does not compile.

use std::sync::Arc;
use std::time::Duration;

use super::decide::{self, Case};
use super::executables;
use super::jobs::{ConnectionId, NotSignalled};
use super::peer::CallerIdentity;
use super::reload::{self, Files};
use super::service::Service;
use crate::audit::Event;
use crate::explained;
use crate::policy::{Action, Permit, list};
use crate::protocol::io_rootwrap::{Explain, ExplainReply, Filter, ListFiltersReply, Privileges, ReloadReply, Signal, StatusReply};
use crate::protocol::org_varlink_service::{Description, Info};
use crate::protocol::{Error, Method, Reply};

/// Who may call a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody: it tells nothing that is not public.
    Anybody,
    /// Anybody, and the policy decides about the command.
    Policy,
    /// Anybody, about what is the caller's own: its filters, its commands, its numbers. (Root sees all users' numbers.)
    Own,
    /// Root.
    Root,
}

/// The one table of authorisation.
#[must_use]
pub fn access(method: &Method) -> Access {
    match method {
        Method::GetInfo | Method::GetInterfaceDescription(_) => Access::Anybody,
        Method::Run(_) => Access::Policy,
        Method::Explain(_) | Method::ListFilters | Method::Signal(_) | Method::GetStatus => Access::Own,
        Method::Reload => Access::Root,
    }
}

/// Whether this caller may call it at all; a refusal is recorded.
///
/// # Errors
/// PermissionDenied.
pub fn authorize(service: &Service, caller: &CallerIdentity, method: &Method) -> Result<(), Error> {
    if !may(access(method), caller.uid()) {
        let event = Event::Denied {
            caller: Arc::clone(caller.shown()),
            command: None,
            reason: "not-root",
            detail: "only root may make the service load its policy again".into(),
        };
        service.denied(caller, &event);
        return Err(Error::PermissionDenied {});
    }
    Ok(())
}

fn may(access: Access, uid: u32) -> bool {
    match access {
        Access::Anybody | Access::Policy | Access::Own => true,
        Access::Root => uid == 0,
    }
}

/// Answers a call of any method but Run.
///
/// # Errors
/// The error to reply with.
pub async fn answer(
    service: &Service,
    files: &Files,
    caller: &Arc<CallerIdentity>,
    connection: ConnectionId,
    method: Method,
) -> Result<Reply, Error> {
    match method {
        Method::GetInfo => success(&Info::own()),
        Method::GetInterfaceDescription(interface) => success(&Description::of(&interface)?),
        Method::Signal(request) => signal(service, caller, connection, &request),
        Method::Explain(request) => success(&explain(service, caller, &request).await?),
        Method::ListFilters => success(&list_filters(service, caller)?),
        Method::Reload => success(&reload_policy(service, files, caller).await?),
        Method::GetStatus => success(&status(service, caller)),
        Method::Run(_) => Err(Error::bad_request("Run is not answered here")),
    }
}

/// Signals a command of the caller's own. What is refused is recorded.
///
/// # Errors
/// NoSuchCommand: also for another caller's, so that ids tell nothing.
pub fn signal(service: &Service, caller: &CallerIdentity, connection: ConnectionId, request: &Signal) -> Result<Reply, Error> {
    match service.jobs.signal(&request.id, caller, connection, request.signal) {
        Ok(()) => Ok(Reply::default()),
        Err(why) => {
            if why == NotSignalled::Foreign {
                let event = Event::Denied {
                    caller: Arc::clone(caller.shown()),
                    command: None,
                    reason: "foreign-command",
                    detail: format!("signal {} to a command of another caller", request.signal),
                };
                service.denied(caller, &event);
            }
            Err(Error::NoSuchCommand { id: request.id.clone() })
        }
    }
}

fn success(parameters: &impl serde::Serialize) -> Result<Reply, Error> {
    Reply::success(parameters).map_err(|error| Error::bad_request(error.to_string()))
}

async fn explain(service: &Service, caller: &CallerIdentity, request: &Explain) -> Result<ExplainReply, Error> {
    let active = decide::active(service)?;
    let case = Case {
        caller,
        wanted: &request.wanted,
        has_cwd: request.has_cwd,
        has_stdin: request.has_stdin,
    };
    let explanation = case.explain(service, &active).await?;
    Ok(explained::reply(explanation, |permit| executable(service, permit)))
}

fn executable(service: &Service, permit: &Permit) -> Option<String> {
    let Action::Execute { candidates, .. } = permit.action() else {
        return None;
    };
    let found = executables::first(&service.executables, candidates).ok()?;
    Some(found.path().to_string_lossy().into_owned())
}

fn list_filters(service: &Service, caller: &CallerIdentity) -> Result<ListFiltersReply, Error> {
    let active = decide::active(service)?;
    let filters = list(&active.policy, caller.subject()).map(|listed| Filter {
        name: listed.name,
        source: listed.source,
        command: vec![listed.command],
        arguments: listed.pattern,
        privileges: Privileges {
            run_as: listed.run_as,
            capabilities: listed.capabilities.into_iter().map(str::to_owned).collect(),
        },
        inner_only: listed.inner_only,
    });
    Ok(ListFiltersReply {
        filters: filters.collect(),
    })
}

async fn reload_policy(service: &Service, files: &Files, caller: &CallerIdentity) -> Result<ReloadReply, Error> {
    let loaded = reload::reload(service, files, Some(caller.shown())).await;
    loaded.map_err(|diagnostics| Error::ReloadFailed { diagnostics })
}

fn status(service: &Service, caller: &CallerIdentity) -> StatusReply {
    let active = service.policy();
    let (counters, callers) = service.quota.status(caller.uid());
    StatusReply {
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        uptime_usec: microseconds(service.started.elapsed()),
        policy_hash: active.as_ref().map(|active| active.hash.clone()),
        policy_age_usec: active.as_ref().map(|active| microseconds(active.since.elapsed())),
        filters: active.map_or(0, |active| active.policy.len() as u64),
        policy_errors: if caller.uid() == 0 {
            service.policy_errors().to_vec()
        } else {
            Vec::new()
        },
        draining: service.is_stopping(),
        counters,
        callers,
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_its_access_and_only_root_reloads() {
        let signal = Signal {
            id: String::new(),
            signal: 1,
        };
        let verbs = [
            (Method::GetInfo, Access::Anybody),
            (Method::GetInterfaceDescription(String::new()), Access::Anybody),
            (Method::Run(Box::default()), Access::Policy),
            (Method::Signal(signal), Access::Own),
            (Method::Explain(Explain::default()), Access::Own),
            (Method::ListFilters, Access::Own),
            (Method::GetStatus, Access::Own),
            (Method::Reload, Access::Root),
        ];
        for (method, expected) in verbs {
            assert_eq!(access(&method), expected, "{method:?}");
            assert!(may(expected, 0));
            assert_eq!(may(expected, 1000), expected != Access::Root, "{method:?}");
        }
    }
}
