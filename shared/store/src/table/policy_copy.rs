//! A process's copy of the stored policy.

use std::sync::{Arc, PoisonError, RwLock};

use billing::Policy;
use chrono::{DateTime, Utc};
use config::{ConfiguredPolicy, PolicyDifference, variable_of_setting};

/// The log message for each setting of the policy whose variable differs from the table. `embedded_metrics` counts it.
pub const POLICY_DIFFERS_MESSAGE: &str = "a variable differs from the policy of the table, which is used";

/// A copy of the stored policy, which all clones of a [`Table`](crate::table::payments_table::Table) share.
#[derive(Clone, Debug)]
pub(crate) struct PolicyCopy {
    pub(crate) configured: Arc<ConfiguredPolicy>,
    read: Arc<RwLock<PolicyInUse>>,
}

/// The policy that is used now.
#[derive(Clone, Debug)]
pub(crate) struct PolicyInUse {
    pub(crate) policy: Arc<Policy>,
    /// Whether the policy is that of the table. Otherwise it is that of the configuration.
    pub(crate) is_stored: bool,
    /// When the policy was read; `None` if it must be read again.
    pub(crate) read_at: Option<DateTime<Utc>>,
}

impl PolicyCopy {
    /// Creates the copy with the policy of the configuration, until the stored policy is read.
    pub fn new(configured: ConfiguredPolicy) -> Self {
        let policy = Arc::new(configured.policy.clone());
        let read = Arc::new(RwLock::new(PolicyInUse { policy, is_stored: false, read_at: None }));
        Self { configured: Arc::new(configured), read }
    }

    /// Returns a copy that does not change with this copy.
    pub fn detached(&self) -> Self {
        Self { configured: self.configured.clone(), read: Arc::new(RwLock::new(self.read())) }
    }

    /// Returns the policy that is used now.
    pub fn read(&self) -> PolicyInUse {
        self.read.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the copy with the stored `policy`. Logs each variable that differs from it, if the process reads this
    /// policy for the first time.
    pub fn replace(&self, policy: &Policy, read_at: Option<DateTime<Utc>>) {
        let before = self.read();
        if !before.is_stored || *before.policy != *policy {
            for PolicyDifference { setting, given, stored } in self.configured.differences_from(policy) {
                let variable = variable_of_setting(setting).name;
                tracing::warn!(variable, given, stored, "{POLICY_DIFFERS_MESSAGE}");
            }
        }
        let read = PolicyInUse { policy: Arc::new(policy.clone()), is_stored: true, read_at };
        *self.read.write().unwrap_or_else(PoisonError::into_inner) = read;
    }
}
