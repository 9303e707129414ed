//! Corrections of one month by an operator: another price for the owed month, or a month that will not be charged
//! because the merchant waives it or the customer has paid it elsewhere.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::waived_period::WaivedReason;
use crate::settings::policy::LeadDays;
use crate::settlement::settle::Settlement;
use crate::settlement::settle::{end_billing_period, waive_periods};
use crate::subscriptions::refusal::ChangeRefusal;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;

impl Subscription {
    /// Corrects the price of the owed month to `minor` minor units, and of all later months that have the same price.
    /// After a rejection, the corrected payment becomes payable in the next run of the payment batch; otherwise, it is
    /// charged when it was planned: a retry on its day, and a further month on the day after the last payment.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is paused or cancelled
    /// - [`ChangeRefusal::Paying`] if an attempt is open
    /// - [`ChangeRefusal::NothingOwed`] if no payment is owed: a price change applies to the next payment
    /// - [`ChangeRefusal::Ends`] if the subscription ends on its due date
    /// - [`ChangeRefusal::Amount`] if the amount is not a valid price
    pub fn correct_price(&self, minor: i64, today: NaiveDate) -> Result<Subscription, ChangeRefusal> {
        self.refuse_correction("corrected")?;
        if self.is_ending() {
            return Err(ChangeRefusal::Ends { on: self.due_on });
        }
        if self.due_on > today {
            return Err(ChangeRefusal::NothingOwed { due_on: self.due_on });
        }
        let price = self.price.currency().price(minor)?;
        let mut corrected = Subscription { price, rejections: 0, ..self.clone() };
        for terms in corrected.waiting_terms.iter_mut().filter(|terms| terms.price == self.price) {
            terms.price = price;
        }
        if self.status == SubscriptionStatus::Active && self.rejections > 0 {
            corrected.next_payment_on = Some(today);
        }
        Ok(corrected)
    }

    /// Waives the earliest month that is neither paid nor waived, for `reason`. `month` must be this month: the caller
    /// names it, so that a repeated request does not waive the next month. The subscription becomes active, as after a
    /// payment of the month. `later_findings` is the number of open findings about payments of later months, which
    /// prevent no waiver: a restored table may lack a waived month before a paid one.
    ///
    /// # Errors
    /// - [`ChangeRefusal::Status`] if the subscription is paused or cancelled
    /// - [`ChangeRefusal::Paying`] if an attempt is open
    /// - [`ChangeRefusal::OpenFinding`] if the gateway has a payment of the month about which a person must decide
    /// - [`ChangeRefusal::Ends`] if the subscription ends on its due date
    /// - [`ChangeRefusal::OtherMonth`] if `month` is not the earliest month that is neither paid nor waived
    pub fn waive_month(
        &self,
        month: Period,
        reason: WaivedReason,
        later_findings: u32,
        lead: LeadDays,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Result<Settlement, ChangeRefusal> {
        self.refuse_correction("waived")?;
        let due = self.due_period();
        if self.is_ending() {
            return Err(ChangeRefusal::Ends { on: self.due_on });
        }
        if month != due {
            return Err(ChangeRefusal::OtherMonth { month, due });
        }
        if self.open_findings > later_findings {
            return Err(ChangeRefusal::OpenFinding { due_on: self.due_on });
        }
        let waived_month = waive_periods(self, month, month.next(), reason, now);
        let (next, waived_later) = end_billing_period(self, self.due_on, lead, today, now);
        Ok(Settlement { waived: waived_month.into_iter().chain(waived_later).collect(), ..next.into() })
    }

    /// Refuses a correction of a subscription that is not charged, or during an open attempt. `action` completes the
    /// error text "cannot be ...".
    fn refuse_correction(&self, action: &'static str) -> Result<(), ChangeRefusal> {
        self.refuse_if_status_in(&[SubscriptionStatus::Paused, SubscriptionStatus::Cancelled], action)?;
        match &self.attempt {
            Some(attempt) => Err(ChangeRefusal::Paying { due_on: attempt.due_on, action }),
            None => Ok(()),
        }
    }
}
