//! The settings that the oracle judges by.

use chrono::{Days, NaiveDate};
use shared::billing::{OnResume, Policy};

/// A deployment's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    pub policy: Policy,
    /// Days from each soft decline to the next try.
    gaps: Vec<u64>,
    lead: Days,
    /// On resuming, the last month that fell due in the pause is charged.
    pub is_charged_on_resume: bool,
}

impl Rules {
    /// The rules of a deployment with this policy.
    pub fn of(policy: &Policy) -> Self {
        let gaps = (1..).map_while(|failed| policy.dunning.gap_days(failed)).map(u64::from).collect();
        let some_day = NaiveDate::from_ymd_opt(2000, 6, 30).unwrap_or_default();
        let lead = (some_day - policy.lead.before(some_day)).num_days();
        Self {
            gaps,
            lead: Days::new(lead.try_into().unwrap_or_default()),
            is_charged_on_resume: policy.on_resume == OnResume::Charge,
            policy: policy.clone(),
        }
    }

    /// Days from the so-manieth decline to the next try.
    pub fn gap_after(&self, failed: u32) -> Option<u64> {
        self.gaps.get(usize::try_from(failed).ok()?.checked_sub(1)?).copied()
    }

    /// When to remind of a payment.
    pub fn reminder_before(&self, due: NaiveDate) -> NaiveDate {
        due - self.lead
    }
}
