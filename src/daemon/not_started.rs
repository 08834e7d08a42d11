//! Why an allowed command did not start: for the journal and for the caller.

use crate::launch::{JobError, LaunchError, Step};
use crate::protocol::Error;

/// Why an allowed command did not start.
#[derive(Debug)]
pub struct NotStarted {
    /// The step that failed, or what else happened, as in ROOTWRAP_REASON.
    pub step: String,
    /// The kernel's reason.
    pub errno: Option<i32>,
    /// What the caller is told.
    pub error: Error,
}

impl NotStarted {
    /// A step and the kernel's reason.
    pub fn new(step: impl Into<String>, errno: i32) -> Self {
        let step = step.into();
        Self {
            error: Error::LaunchFailed { step: step.clone(), errno },
            errno: Some(errno),
            step,
        }
    }

    /// No pipe or file could be made for the command.
    pub fn descriptors(error: std::io::Error) -> Self {
        Self::new("descriptors", error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Permit and job do not fit.
    pub fn job(error: JobError) -> Self {
        match error {
            JobError::TooLarge => Self {
                step: "too-large".into(),
                errno: Some(libc::E2BIG),
                error: Error::bad_request(error.to_string()),
            },
            other => {
                tracing::error!("no job can be made of a permit: {other}");
                Self::new("prepare", libc::EINVAL)
            }
        }
    }

    /// The launcher's or the child's answer.
    pub fn launch(error: LaunchError) -> Self {
        match error {
            LaunchError::Step { step, errno } => Self::new(step_name(step), errno),
            LaunchError::Fork { errno } => Self::new("fork", errno),
            LaunchError::TimedOut => Self::new("fork", libc::ETIMEDOUT),
            LaunchError::LauncherGone => Self::new("launcher", libc::ESRCH),
            LaunchError::OutcomeUnknown => Self {
                step: "outcome-unknown".into(),
                errno: None,
                error: Error::OutcomeUnknown {
                    message: error.to_string(),
                },
            },
        }
    }
}

/// `BoundingSet` as `bounding-set`.
fn step_name(step: Step) -> String {
    let mut name = String::new();
    for character in format!("{step:?}").chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_in_words() {
        assert_eq!(step_name(Step::BoundingSet), "bounding-set");
        assert_eq!(step_name(Step::NoNewPrivs), "no-new-privs");
        assert_eq!(step_name(Step::Exec), "exec");
    }
}
