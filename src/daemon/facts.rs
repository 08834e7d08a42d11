//! The questions that a decision leans on, answered: by children with privilege, and for processes through a pidfd that is kept, so
//! that the process which was looked at is the one that is signalled.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::peer::unit_of;
use crate::launch::{Launcher, ProbeAnswer, ProbeJob};
use crate::policy::Subject;
use crate::policy::facts::{Facts, Question};

/// How long one answer may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// Questions of one request, at most. More paths than this in one command are refused.
const MAXIMUM: usize = 1024;

/// Why a request cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It raises more than 1,024 questions.
    TooMany,
}

/// The answers of one request.
#[derive(Debug, Default)]
pub struct Answers {
    /// For [`decide`](crate::policy::decide).
    pub facts: Facts,
    processes: HashMap<Question, OwnedFd>,
    asked: usize,
}

impl Answers {
    /// Finds the answers. Where one cannot be found it is no: what nobody can confirm is not so.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn find(&mut self, questions: Vec<Question>, launcher: &Launcher, subject: &Subject) -> Result<(), Unanswered> {
        self.asked = self.asked.saturating_add(questions.len().max(1));
        if self.asked > MAXIMUM {
            return Err(Unanswered::TooMany);
        }
        for question in questions {
            let answer = self.answer(&question, launcher, subject).await;
            self.facts.insert(question, answer);
        }
        Ok(())
    }

    /// The process that a question was about.
    #[must_use]
    pub fn process(&self, question: &Question) -> Option<&OwnedFd> {
        self.processes.get(question)
    }

    async fn answer(&mut self, question: &Question, launcher: &Launcher, subject: &Subject) -> bool {
        let probe = match question {
            Question::PathUnder { path, base, links_to, new } => Some(ProbeJob::PathUnder {
                path: path.clone(),
                base: bytes(base),
                links_to: links_to.iter().map(|path| bytes(path)).collect(),
                new: *new,
            }),
            Question::PidOf {
                pid,
                executables,
                same_unit,
            } => self.process_probe(question, *pid, executables, same_unit.then_some(subject)),
        };
        let Some(probe) = probe else {
            return false;
        };
        match launcher.probe(probe, DEADLINE).await {
            Ok(ProbeAnswer::Yes) => true,
            Ok(ProbeAnswer::No(why)) => {
                tracing::debug!("a probe says no: {why}");
                false
            }
            Ok(ProbeAnswer::Digest(_)) => false,
            Err(error) => {
                tracing::warn!("a probe failed: {error}");
                false
            }
        }
    }

    /// Opens the process first; everything after that is about the process that was opened.
    fn process_probe(&mut self, question: &Question, pid: u32, executables: &[PathBuf], unit_as: Option<&Subject>) -> Option<ProbeJob> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let pidfd = pidfd_open(number, PidfdFlags::empty()).ok()?;
        if let Some(subject) = unit_as {
            let unit = unit_of(pid, pidfd.as_fd())?;
            if subject.unit.as_ref() != Some(&unit) {
                return None;
            }
        }
        let probe = ProbeJob::PidOf {
            pidfd: pidfd.try_clone().ok()?,
            pid,
            executables: executables.iter().map(|path| bytes(path)).collect(),
        };
        self.processes.insert(question.clone(), pidfd);
        Some(probe)
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
