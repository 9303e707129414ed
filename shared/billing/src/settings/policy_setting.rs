//! The settings of a merchant's [`Policy`] by name. The table stores the policy as a map of these names and texts.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use crate::settings::dunning::DunningError;
use crate::settings::policy::{LeadDays, Policy};

/// The allowed numbers of days for which records are stored.
const ALLOWED_STORED_DAYS: RangeInclusive<u32> = 1..=3_650;

/// The name of one setting of a [`Policy`], such as `time-zone`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum PolicySetting {
    TimeZone,
    ReminderLeadDays,
    RetryGaps,
    AfterLastRetry,
    CatchUp,
    Resume,
    AfterWonDispute,
    ReceiptDays,
    ActionDays,
}

/// The error for a text that is not an allowed value of a setting.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{setting} {reason}")]
pub struct PolicyError {
    pub setting: PolicySetting,
    /// What is allowed, and the refused text: `must be each or latest, not "all"`.
    pub reason: String,
}

/// The reason why a time zone cannot be set now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("today is {today} in {zone}, but a run has begun on {latest}: set the time zone when {latest} has begun there")]
pub struct TimeZoneRefusal {
    pub zone: Tz,
    /// Today in the new time zone.
    pub today: NaiveDate,
    /// The day of the latest run, in the time zone of that time.
    pub latest: NaiveDate,
}

impl PolicySetting {
    /// Returns the description of the setting, for operators.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TimeZone => "The billing time zone, an IANA name",
            Self::ReminderLeadDays => "Days from the reminder to the due date",
            Self::RetryGaps => "Days from each soft decline to the next try",
            Self::AfterLastRetry => "Status of a subscription after the last retry was declined: unpaid or cancelled",
            Self::CatchUp => "After an outage that missed several months: charge each of them, or only the latest",
            Self::Resume => {
                "After a pause: charge the last payment that fell due during the pause, or wait for the next due date"
            }
            Self::AfterWonDispute => {
                "After a won dispute: waive the payments that fell due during the dispute, or charge them"
            }
            Self::ReceiptDays => "Days for which receipts, other payment records and run records are stored",
            Self::ActionDays => "Days for which the entries of the action log are stored",
        }
    }
}

impl Policy {
    /// Returns the names of all settings.
    pub fn setting_names() -> impl Iterator<Item = PolicySetting> {
        PolicySetting::iter()
    }

    /// Returns the value of `setting` as the text that [`Policy::set_setting`] reads.
    ///
    /// ```
    /// use billing::{Policy, PolicySetting};
    /// let mut policy = Policy::default();
    /// policy.set_setting(PolicySetting::RetryGaps, "3,9,15")?;
    /// assert_eq!(policy.value_text(PolicySetting::RetryGaps), "3,9,15");
    /// assert!(policy.set_setting(PolicySetting::TimeZone, "Mars/Olympus").is_err());
    /// # Ok::<(), billing::PolicyError>(())
    /// ```
    pub fn value_text(&self, setting: PolicySetting) -> String {
        match setting {
            PolicySetting::TimeZone => self.zone.name().to_owned(),
            PolicySetting::ReminderLeadDays => self.lead.days().to_string(),
            PolicySetting::RetryGaps => self.dunning.to_string(),
            PolicySetting::AfterLastRetry => self.after_last_retry.to_string(),
            PolicySetting::CatchUp => self.catch_up.to_string(),
            PolicySetting::Resume => self.on_resume.to_string(),
            PolicySetting::AfterWonDispute => self.after_won_dispute.to_string(),
            PolicySetting::ReceiptDays => self.receipt_days.to_string(),
            PolicySetting::ActionDays => self.action_days.to_string(),
        }
    }

    /// Sets `setting` to the value in `text`.
    ///
    /// # Errors
    /// [`PolicyError`], with the allowed values, if `text` is not one of them. In this case, the policy is not changed.
    pub fn set_setting(&mut self, setting: PolicySetting, text: &str) -> Result<(), PolicyError> {
        let invalid = |reason: String| PolicyError { setting, reason };
        let number = |range: &RangeInclusive<u32>| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let (least, largest) = (range.start(), range.end());
            number.ok_or_else(|| invalid(format!("must be a whole number from {least} to {largest}, not {text:?}")))
        };
        let choice = |allowed: &str| invalid(format!("must be {allowed}, not {text:?}"));
        match setting {
            PolicySetting::TimeZone => {
                self.zone = text.parse().map_err(|_| choice("an IANA time zone like Europe/Berlin"))?;
            }
            PolicySetting::ReminderLeadDays => {
                self.lead = LeadDays::new(number(&(0..=LeadDays::MAX_DAYS))?).unwrap_or_default();
            }
            PolicySetting::RetryGaps => {
                self.dunning = text.parse().map_err(|error: DunningError| invalid(error.to_string()))?;
            }
            PolicySetting::AfterLastRetry => {
                self.after_last_retry = text.parse().map_err(|_| choice("unpaid or cancelled"))?;
            }
            PolicySetting::CatchUp => self.catch_up = text.parse().map_err(|_| choice("each or latest"))?,
            PolicySetting::Resume => self.on_resume = text.parse().map_err(|_| choice("charge or wait"))?,
            PolicySetting::AfterWonDispute => {
                self.after_won_dispute = text.parse().map_err(|_| choice("waive or charge"))?;
            }
            PolicySetting::ReceiptDays => self.receipt_days = number(&ALLOWED_STORED_DAYS)?,
            PolicySetting::ActionDays => self.action_days = number(&ALLOWED_STORED_DAYS)?,
        }
        Ok(())
    }
}

/// The policy as the table stores it: the text of each setting by its name. A text that cannot be read is kept until
/// [`StoredPolicy::with_setting`] replaces it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredPolicy(BTreeMap<String, String>);

impl From<&Policy> for StoredPolicy {
    /// Stores all settings, so that another default of a later version does not change a stored policy.
    fn from(policy: &Policy) -> Self {
        Self(PolicySetting::iter().map(|setting| (setting.to_string(), policy.value_text(setting))).collect())
    }
}

impl StoredPolicy {
    /// Reads the policy. A setting that is absent, because an earlier version stored the policy, has its default. A name
    /// that this version does not know belongs to a later version, and is ignored.
    ///
    /// # Errors
    /// [`PolicyError`] for the first setting that cannot be read.
    pub fn read(&self) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        for (name, text) in &self.0 {
            if let Ok(setting) = name.parse() {
                policy.set_setting(setting, text)?;
            }
        }
        Ok(policy)
    }

    /// Returns the stored text of `setting`, even if it cannot be read; the text of its default if it is absent.
    pub fn value_text(&self, setting: PolicySetting) -> String {
        self.0.get(<&str>::from(setting)).cloned().unwrap_or_else(|| Policy::default().value_text(setting))
    }

    /// Returns the time zone; `None` if its text cannot be read.
    pub fn zone(&self) -> Option<Tz> {
        self.value_text(PolicySetting::TimeZone).parse().ok()
    }

    /// Checks at the time `now` that this policy may replace the policy `before`: in a new time zone, today must not be
    /// earlier than `latest_run`, the day of the latest run. That day is done, and would come again.
    ///
    /// # Errors
    /// [`TimeZoneRefusal`] if today would be earlier.
    pub fn check_replaces(
        &self,
        before: &StoredPolicy,
        latest_run: Option<NaiveDate>,
        now: DateTime<Utc>,
    ) -> Result<(), TimeZoneRefusal> {
        let (Some(zone), Some(latest)) = (self.zone(), latest_run) else { return Ok(()) };
        let today = now.with_timezone(&zone).date_naive();
        if today < latest && before.zone() != Some(zone) {
            return Err(TimeZoneRefusal { zone, today, latest });
        }
        Ok(())
    }

    /// Returns the same policy with the value in `text` for `setting`.
    ///
    /// # Errors
    /// [`PolicyError`], with the allowed values, if `text` is not one of them.
    pub fn with_setting(&self, setting: PolicySetting, text: &str) -> Result<Self, PolicyError> {
        let mut checked = Policy::default();
        checked.set_setting(setting, text)?;
        let mut changed = self.clone();
        changed.0.insert(setting.to_string(), checked.value_text(setting));
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the settings of `policy` that do not have their defaults.
    fn changed_settings(policy: &Policy) -> Vec<PolicySetting> {
        let is_changed =
            |setting: &PolicySetting| policy.value_text(*setting) != Policy::default().value_text(*setting);
        PolicySetting::iter().filter(is_changed).collect()
    }

    #[test]
    fn each_setting_is_set_from_text_and_shown_as_the_same_text() {
        let changed = [
            ("time-zone", "Pacific/Kiritimati"),
            ("reminder-lead-days", "0"),
            ("retry-gaps", "3,9,15"),
            ("after-last-retry", "cancelled"),
            ("catch-up", "latest"),
            ("resume", "wait"),
            ("after-won-dispute", "charge"),
            ("receipt-days", "3650"),
            ("action-days", "1"),
        ];
        assert_eq!(changed.len(), PolicySetting::iter().count());
        let mut policy = Policy::default();
        for (name, text) in changed {
            let setting: PolicySetting = name.parse().unwrap();
            policy.set_setting(setting, text).unwrap();
            assert_eq!((setting.to_string(), policy.value_text(setting)), (name.to_owned(), text.to_owned()));
        }
        assert_eq!(changed_settings(&policy).len(), changed.len());
        let stored = StoredPolicy::from(&policy);
        assert_eq!(stored.0, changed.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
        assert_eq!(stored.read(), Ok(policy));
    }

    #[test]
    fn stored_policy_of_another_version_is_read() {
        let stored = |texts: &[(&str, &str)]| -> StoredPolicy {
            StoredPolicy(texts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect())
        };
        let earlier = stored(&[("time-zone", "Europe/Berlin"), ("of-a-later-version", "x")]);
        let policy = earlier.read().unwrap();
        assert_eq!(changed_settings(&policy), [PolicySetting::TimeZone]);
        let changed = earlier.with_setting(PolicySetting::CatchUp, "latest").unwrap();
        assert_eq!(
            changed,
            stored(&[("time-zone", "Europe/Berlin"), ("of-a-later-version", "x"), ("catch-up", "latest")])
        );
    }

    #[test]
    fn text_that_cannot_be_read_is_replaced() {
        let unreadable = StoredPolicy([("catch-up".to_owned(), "all".to_owned())].into());
        assert_eq!(unreadable.read().unwrap_err().to_string(), "catch-up must be each or latest, not \"all\"");
        assert_eq!(unreadable.value_text(PolicySetting::CatchUp), "all");
        assert_eq!(unreadable.with_setting(PolicySetting::CatchUp, "each").unwrap().read(), Ok(Policy::default()));
    }

    #[test]
    fn day_of_the_latest_run_does_not_come_again_in_a_new_time_zone() {
        let in_zone =
            |zone: &str| StoredPolicy::from(&Policy::default()).with_setting(PolicySetting::TimeZone, zone).unwrap();
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        // The columns are: the present zone, the new zone, the latest run, now, and whether the change is allowed.
        for (before, after, latest, now, is_allowed) in [
            ("UTC", "Pacific/Kiritimati", "2027-03-10T06:00:00Z", "2027-03-10T07:00:00Z", true),
            ("UTC", "America/New_York", "2027-03-10T04:00:00Z", "2027-03-10T04:30:00Z", false),
            ("UTC", "America/New_York", "2027-03-10T04:00:00Z", "2027-03-10T05:00:00Z", true),
            ("Pacific/Kiritimati", "Pacific/Honolulu", "2027-03-10T06:00:00Z", "2027-03-10T09:59:00Z", false),
            ("Pacific/Kiritimati", "Pacific/Honolulu", "2027-03-10T06:00:00Z", "2027-03-10T10:00:00Z", true),
        ] {
            let latest = at(latest).with_timezone(&in_zone(before).zone().unwrap()).date_naive();
            let checked = in_zone(after).check_replaces(&in_zone(before), Some(latest), at(now));
            assert_eq!(checked.is_ok(), is_allowed, "{before} {after} {now}: {checked:?}");
        }
        assert_eq!(
            in_zone("America/New_York").check_replaces(&in_zone("UTC"), None, at("2027-03-10T04:30:00Z")),
            Ok(())
        );
    }

    #[test]
    fn refused_text_changes_nothing() {
        for (name, text) in [
            ("time-zone", "Mars/Olympus"),
            ("reminder-lead-days", "28"),
            ("retry-gaps", "0,1"),
            ("after-last-retry", "give_up"),
            ("catch-up", "all"),
            ("resume", "later"),
            ("after-won-dispute", "owe"),
            ("receipt-days", "0"),
            ("action-days", "3651"),
        ] {
            let mut policy = Policy::default();
            let error = policy.set_setting(name.parse().unwrap(), text).unwrap_err();
            assert!(error.reason.contains(&format!("{text:?}")), "{error}");
            assert_eq!(policy, Policy::default(), "{error}");
        }
    }
}
