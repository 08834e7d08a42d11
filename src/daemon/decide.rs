//! One request put to the policy, with the questions that it raises answered.

use std::sync::Arc;

use super::facts::{Answers, Unanswered};
use super::peer::CallerIdentity;
use super::quota::Slot;
use super::service::{ActivePolicy, Service};
use crate::policy::{self, Denial, Explanation, Outcome, Permit, Request};
use crate::protocol::Error;
use crate::protocol::run::Wanted;

/// A request of a caller.
#[derive(Debug)]
pub struct Case<'a> {
    /// Who.
    pub caller: &'a CallerIdentity,
    /// What.
    pub wanted: &'a Wanted,
    /// A working directory was passed.
    pub has_cwd: bool,
    /// Standard input was passed.
    pub has_stdin: bool,
}

/// The decision.
#[derive(Debug)]
pub enum Decision {
    /// Leave to run it, and what was found out on the way.
    Allow(Box<Permit>, Answers),
    /// No.
    Deny(Denial),
}

impl Case<'_> {
    fn request(&self) -> Request<'_> {
        Request {
            subject: self.caller.subject(),
            argv: &self.wanted.argv,
            environment: &self.wanted.environment,
            has_cwd: self.has_cwd,
            has_stdin: self.has_stdin,
            filter: self.wanted.filter.as_deref(),
            profile: self.wanted.profile.as_deref(),
        }
    }

    /// Decides. Questions are only looked into while the caller holds `slot`, a running command's: each costs a process.
    ///
    /// # Errors
    /// Busy, or BadRequest for more questions than are answered.
    pub async fn decide(&self, service: &Service, active: &ActivePolicy, slot: &mut Option<Slot>) -> Result<Decision, Error> {
        let mut answers = Answers::default();
        loop {
            match policy::decide(&active.policy, &self.request(), &answers.facts) {
                Outcome::Allow(permit) => return Ok(Decision::Allow(permit, answers)),
                Outcome::Deny(denial) => return Ok(Decision::Deny(denial)),
                Outcome::Ask(questions) => self.find(service, &mut answers, questions, slot).await?,
            }
        }
    }

    /// Explains the decision.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub async fn explain(&self, service: &Service, active: &ActivePolicy) -> Result<Explanation, Error> {
        let mut answers = Answers::default();
        let mut slot = None;
        loop {
            let explanation = policy::explain(&active.policy, &self.request(), &answers.facts);
            match explanation.outcome {
                Outcome::Ask(questions) => self.find(service, &mut answers, questions, &mut slot).await?,
                _ => return Ok(explanation),
            }
        }
    }

    async fn find(
        &self,
        service: &Service,
        answers: &mut Answers,
        questions: Vec<policy::facts::Question>,
        slot: &mut Option<Slot>,
    ) -> Result<(), Error> {
        if slot.is_none() {
            *slot = Some(command_slot(service, self.caller)?);
        }
        let found = answers.find(questions, &service.launcher, self.caller.subject()).await;
        found.map_err(|Unanswered::TooMany| {
            let detail = "too many paths and processes in one command";
            service.bad_request(self.caller, "too-many-questions", detail.to_owned());
            Error::bad_request(detail)
        })
    }
}

/// A running command's place in the quota.
///
/// # Errors
/// Busy, recorded.
pub fn command_slot(service: &Service, caller: &CallerIdentity) -> Result<Slot, Error> {
    let slot = service.quota.command(caller.uid(), &service.settings());
    slot.map_err(|exceeded| service.busy(caller.shown(), exceeded))
}

/// The policy in force.
///
/// # Errors
/// PolicyUnavailable.
pub fn active(service: &Service) -> Result<Arc<ActivePolicy>, Error> {
    service.policy().ok_or(Error::PolicyUnavailable {})
}
