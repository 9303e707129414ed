//! The settings that the oracle judges by.

use billing::{OnResume, Policy};
use chrono::{Days, NaiveDate};

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
        let gaps = policy.dunning.gaps().iter().copied().map(u64::from).collect();
        Self {
            gaps,
            lead: Days::new(policy.lead.days().into()),
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
