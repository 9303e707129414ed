//! The settings of a deployment that the oracle needs.

use billing::{OnResume, Policy};
use chrono::{Days, NaiveDate};

/// The billing settings of the simulated deployment. The oracle predicts payments, retries and reminders from them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BillingRules {
    pub policy: Policy,
    /// The numbers of days from each soft decline to the next try, in the order of the declines.
    gaps: Vec<u64>,
    /// The number of days from a reminder to the due date.
    lead: Days,
    /// Whether the last month that fell due during a pause is charged when the subscription resumes.
    pub is_charged_on_resume: bool,
}

impl BillingRules {
    /// Creates the oracle's rules for a deployment that has the billing settings `policy`.
    pub fn from_policy(policy: &Policy) -> Self {
        let gaps = policy.dunning.gaps().iter().copied().map(u64::from).collect();
        Self {
            gaps,
            lead: Days::new(policy.lead.days().into()),
            is_charged_on_resume: policy.on_resume == OnResume::Charge,
            policy: policy.clone(),
        }
    }

    /// Returns the number of days from the latest soft decline to the next try; `None` if there is no further try.
    /// `soft_declines` is the number of soft declines so far, at least 1.
    pub fn days_until_retry_after(&self, soft_declines: u32) -> Option<u64> {
        self.gaps.get(usize::try_from(soft_declines).ok()?.checked_sub(1)?).copied()
    }

    /// Returns the longest number of days from a soft decline to the next try.
    pub fn longest_gap(&self) -> u64 {
        self.gaps.iter().copied().max().unwrap_or(1)
    }

    /// Returns the date of the reminder for a payment due on `due`.
    pub fn reminder_date_before(&self, due: NaiveDate) -> NaiveDate {
        due - self.lead
    }
}
