//! The variables of the policy. A new table gets the policy that they contain; afterwards only the stored policy counts
//! ([`billing::Policy`]).

use std::fmt::{self, Display, Formatter};

use billing::{Policy, PolicySetting};

use super::variable::ReadingFunction;
use super::variable::ReadingFunction::{Api, Payments, Reminders};
use super::{ConfigError, Env, EnvVariable};
use crate::variables;

/// The functions that create a table's settings.
const CREATORS: &[ReadingFunction] = &[Api, Reminders, Payments];

variables! {
    TIME_ZONE = EnvVariable::new(CREATORS, "DUEDAY_TIME_ZONE", "ZONE", PolicySetting::TimeZone.description())
        .default("UTC").rare_flag("time-zone");
    REMINDER_LEAD_DAYS = EnvVariable::new(CREATORS, "DUEDAY_REMINDER_LEAD_DAYS", "DAYS",
        PolicySetting::ReminderLeadDays.description())
        .in_range(0, billing::LeadDays::MAX_DAYS).default("7").rare_flag("reminder-lead-days");
    RETRY_GAPS = EnvVariable::new(CREATORS, "DUEDAY_RETRY_GAPS", "GAPS", PolicySetting::RetryGaps.description())
        .default("1,2,2,2").rare_flag("retry-gaps");
    AFTER_LAST_RETRY = EnvVariable::new(CREATORS, "DUEDAY_AFTER_LAST_RETRY", "STATUS",
        PolicySetting::AfterLastRetry.description())
        .default("unpaid").rare_flag("after-last-retry");
    CATCH_UP = EnvVariable::new(CREATORS, "DUEDAY_CATCH_UP", "WHICH", PolicySetting::CatchUp.description())
        .default("each").rare_flag("catch-up");
    RESUME = EnvVariable::new(CREATORS, "DUEDAY_RESUME", "WHICH", PolicySetting::Resume.description())
        .default("charge").rare_flag("resume");
    AFTER_WON_DISPUTE = EnvVariable::new(CREATORS, "DUEDAY_AFTER_WON_DISPUTE", "WHICH",
        PolicySetting::AfterWonDispute.description())
        .default("waive").rare_flag("after-won-dispute");
    RECEIPT_DAYS = EnvVariable::new(CREATORS, "DUEDAY_RECEIPT_DAYS", "DAYS", PolicySetting::ReceiptDays.description())
        .in_range(1, 3_650).default("190").rare_flag("receipt-days");
    ACTION_DAYS = EnvVariable::new(CREATORS, "DUEDAY_ACTION_DAYS", "DAYS", PolicySetting::ActionDays.description())
        .in_range(1, 3_650).default("730").rare_flag("action-days");
}

/// Returns the variable that contains the initial value of `setting`.
pub const fn variable_of_setting(setting: PolicySetting) -> &'static EnvVariable {
    match setting {
        PolicySetting::TimeZone => &TIME_ZONE,
        PolicySetting::ReminderLeadDays => &REMINDER_LEAD_DAYS,
        PolicySetting::RetryGaps => &RETRY_GAPS,
        PolicySetting::AfterLastRetry => &AFTER_LAST_RETRY,
        PolicySetting::CatchUp => &CATCH_UP,
        PolicySetting::Resume => &RESUME,
        PolicySetting::AfterWonDispute => &AFTER_WON_DISPUTE,
        PolicySetting::ReceiptDays => &RECEIPT_DAYS,
        PolicySetting::ActionDays => &ACTION_DAYS,
    }
}

/// The policy in the variables of a function or a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConfiguredPolicy {
    /// The policy of a new table. A setting whose variable is not set, or not valid, has its default.
    pub policy: Policy,
    /// The texts of the variables that are set.
    given: Vec<(PolicySetting, String)>,
    /// The first variable that is not valid; `None` if all are valid.
    invalid: Option<ConfigError>,
}

/// A setting whose variable contains another value than the stored policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyDifference {
    pub setting: PolicySetting,
    /// The value in the variable or the flag.
    pub given: String,
    /// The value in the table, which is used.
    pub stored: String,
}

impl Display for PolicyDifference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { setting, given, stored } = self;
        write!(f, "{} contains {given}, but the table has {stored}, which is used", variable_of_setting(*setting).name)
    }
}

impl ConfiguredPolicy {
    /// Reads the policy from `env`. A variable that is not valid is no error here, because only a table without a policy
    /// needs the variables ([`ConfiguredPolicy::valid_policy`]).
    pub fn read(env: Env<'_>) -> Self {
        let mut configured = Self::default();
        for setting in Policy::setting_names() {
            let variable = variable_of_setting(setting);
            let Some(text) = env.get(variable) else { continue };
            let text = match configured.policy.set_setting(setting, &text) {
                Ok(()) => configured.policy.value_text(setting),
                Err(error) => {
                    let invalid = ConfigError::Invalid { name: variable.name, reason: error.reason };
                    configured.invalid.get_or_insert(invalid);
                    text
                }
            };
            configured.given.push((setting, text));
        }
        configured
    }

    /// Returns the policy of the variables.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable that is not valid.
    pub fn valid_policy(&self) -> Result<&Policy, ConfigError> {
        self.invalid.clone().map_or(Ok(&self.policy), Err)
    }

    /// Returns the settings whose variables differ from the policy `stored`. A variable that is not set differs from
    /// nothing.
    pub fn differences_from(&self, stored: &Policy) -> Vec<PolicyDifference> {
        let difference = |(setting, given): &(PolicySetting, String)| PolicyDifference {
            setting: *setting,
            given: given.clone(),
            stored: stored.value_text(*setting),
        };
        self.given.iter().map(difference).filter(|difference| difference.given != difference.stored).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_a_variable_with_the_same_default_and_a_flag_with_the_same_name() {
        let default = Policy::default();
        for setting in Policy::setting_names() {
            let variable = variable_of_setting(setting);
            assert_eq!(variable.default, Some(default.value_text(setting).as_str()), "{setting}");
            let (crate::CommandFlag::Common(flag) | crate::CommandFlag::Rare(flag)) = variable.flag.unwrap();
            assert_eq!(flag, setting.to_string());
            assert_eq!(variable.name, format!("DUEDAY_{}", flag.to_uppercase().replace('-', "_")));
        }
    }

    #[test]
    fn only_a_variable_that_is_set_differs_from_the_stored_policy() {
        let read = |zone: &'static str| {
            ConfiguredPolicy::read(Env(&move |name| (name == "DUEDAY_TIME_ZONE").then(|| zone.to_owned())))
        };
        let berlin = read("Europe/Berlin");
        let mut stored = berlin.policy.clone();
        assert_eq!(berlin.differences_from(&stored), []);
        stored.set_setting(PolicySetting::CatchUp, "latest").unwrap();
        assert_eq!(berlin.differences_from(&stored), [], "the variable of catch-up is not set");
        let given = PolicyDifference {
            setting: PolicySetting::TimeZone,
            given: "Pacific/Kiritimati".to_owned(),
            stored: "Europe/Berlin".to_owned(),
        };
        assert_eq!(read("Pacific/Kiritimati").differences_from(&stored), [given]);
        let invalid = read("Mars");
        assert_eq!(invalid.differences_from(&stored)[0].given, "Mars");
        let error = "DUEDAY_TIME_ZONE must be an IANA time zone like Europe/Berlin, not \"Mars\"";
        assert_eq!(invalid.valid_policy().unwrap_err().to_string(), error);
        assert_eq!(read("Asia/Tokyo").valid_policy().map(|policy| policy.zone.name()), Ok("Asia/Tokyo"));
    }
}
