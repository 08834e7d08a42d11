//! What reading a policy needs to know of the machine.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::Settings;
use super::accounts::Accounts;
use super::command::Executables;
use super::trusted::walk::Owners;
use crate::policy::spec::RunAs;

/// Names, settings and strictness of one load.
pub(crate) struct World<'a> {
    pub accounts: Accounts,
    pub settings: &'a Settings,
    pub owners: Owners,
    pub executables: RefCell<Executables>,
    shared: RefCell<HashSet<Arc<RunAs>>>,
}

impl<'a> World<'a> {
    pub fn new(accounts: Accounts, settings: &'a Settings, owners: Owners) -> Self {
        Self {
            accounts,
            settings,
            owners,
            executables: RefCell::default(),
            shared: RefCell::default(),
        }
    }

    /// One copy of each distinct `run_as`.
    pub fn share(&self, run_as: RunAs) -> Arc<RunAs> {
        let mut shared = self.shared.borrow_mut();
        if let Some(known) = shared.get(&run_as) {
            return Arc::clone(known);
        }
        let new = Arc::new(run_as);
        shared.insert(Arc::clone(&new));
        new
    }
}
