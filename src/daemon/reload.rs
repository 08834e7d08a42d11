//! Loading the policy: at start and on reload. A load replaces everything or nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::notify;
use super::service::{ActivePolicy, Service};
use crate::audit::{Caller, Event};
use crate::cli::rootwrapd::Arguments;
use crate::config::{self, Diagnostic, Loaded, Settings, Source};
use crate::policy::counted;
use crate::protocol::io_rootwrap::ReloadReply;

/// Where the settings and filters are.
#[derive(Clone, Debug)]
pub struct Files {
    config: PathBuf,
    filters: Vec<PathBuf>,
}

impl Files {
    /// As the command line says.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self {
            config: arguments.config.clone(),
            filters: arguments.filters.clone(),
        }
    }

    /// The settings alone; defaults where the files are at fault: the load that follows says so.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings::load(&self.config, true).unwrap_or_default()
    }

    fn load(&self) -> Result<(Settings, Loaded), Vec<Diagnostic>> {
        let (settings, mut warnings) = Settings::load_with_warnings(&self.config, true)?;
        let directories = if self.filters.is_empty() {
            &settings.filter_dirs
        } else {
            &self.filters
        };
        let source = Source {
            directories: directories.clone(),
            files: Vec::new(),
            check_owners: true,
        };
        let mut loaded = config::load(&source, &settings)?;
        warnings.append(&mut loaded.warnings);
        loaded.warnings = warnings;
        Ok((settings, loaded))
    }
}

/// A policy that was put in force.
#[derive(Debug)]
pub struct InForce {
    /// It.
    pub active: Arc<ActivePolicy>,
    /// Diagnostics that are no errors, rendered.
    pub warnings: Vec<String>,
}

/// Loads the policy and puts it in force, without holding up the event loop; `caller`: who asked, `None` for SIGHUP and at start.
/// A failure is recorded.
///
/// # Errors
/// All that is wrong, rendered. What was in force stays.
pub async fn load(service: &Service, files: &Files, caller: Option<&Arc<Caller>>) -> Result<InForce, Vec<String>> {
    let _one_at_a_time = service.loading.lock().await;
    let files = files.clone();
    let loaded = tokio::task::spawn_blocking(move || files.load()).await;
    let rendered = match loaded {
        Ok(Ok((settings, loaded))) => return Ok(put_in_force(service, settings, loaded)),
        Ok(Err(diagnostics)) => diagnostics.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("the load ended early: {error}")],
    };
    record_failure(service, &rendered, caller);
    service.set_policy_errors(rendered.clone());
    Err(rendered)
}

fn put_in_force(service: &Service, settings: Settings, loaded: Loaded) -> InForce {
    let active = Arc::new(ActivePolicy {
        hash: hexadecimal(loaded.policy.hash()),
        policy: loaded.policy,
        since: Instant::now(),
    });
    service.put_in_force(Arc::clone(&active), settings);
    InForce {
        active,
        warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
    }
}

fn record_failure(service: &Service, rendered: &[String], caller: Option<&Arc<Caller>>) {
    service.sink.post(&Event::ReloadFailed {
        caller: caller.cloned(),
        policy: service.policy().map(|active| active.hash.clone()),
        errors: rendered.len(),
        detail: rendered.join("\n"),
    });
}

/// A load while the service runs, as the service manager and the journal see it.
///
/// # Errors
/// As [`load`].
pub async fn reload(service: &Service, files: &Files, caller: Option<&Arc<Caller>>) -> Result<ReloadReply, Vec<String>> {
    notify::reloading();
    let loaded = load(service, files, caller).await;
    notify::ready(&status(service));
    let InForce { active, warnings } = loaded?;
    service.sink.post(&Event::Reloaded {
        caller: caller.cloned(),
        policy: active.hash.clone(),
        filters: active.policy.len(),
        warnings: warnings.len(),
    });
    Ok(ReloadReply {
        policy_hash: active.hash.clone(),
        filters: active.policy.len() as u64,
        warnings,
    })
}

/// The line that `systemctl status` shows.
#[must_use]
pub fn status(service: &Service) -> String {
    let errors = service.policy_errors().len();
    match service.policy() {
        Some(active) if errors == 0 => format!("{} in force", counted(active.policy.len(), "filter")),
        Some(active) => format!(
            "{} in force; the files on disk have {} and are not: run rootwrapctl check",
            counted(active.policy.len(), "filter"),
            counted(errors, "error")
        ),
        None => format!(
            "No valid policy ({}), every request is refused: run rootwrapctl check, then reload",
            counted(errors, "error")
        ),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
