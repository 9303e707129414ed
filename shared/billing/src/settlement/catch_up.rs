//! Catch-up after an outage: decides which months are charged if several months fell due during the outage.

use chrono::{DateTime, NaiveDate, Utc};

use crate::records::waived_period::WaivedReason;
use crate::settings::policy::CatchUp;
use crate::settlement::settle::Settlement;
use crate::settlement::settle::waive_periods;
use crate::subscriptions::subscription::{Subscription, SubscriptionStatus};
use crate::values::calendar::Period;

impl CatchUp {
    /// Returns the change that must be stored before `subscription` is charged on `today`: the due date moves to the
    /// latest owed month, and the older months are waived. Returns `None` if nothing must change, in these cases:
    /// - Each month is charged ([`CatchUp::Each`]).
    /// - At most one month is owed.
    /// - The subscription is not active, for example because the payment of the oldest month was declined.
    /// - The subscription has an open attempt.
    pub fn waive_months_of_outage(
        self,
        subscription: &Subscription,
        today: NaiveDate,
        now: DateTime<Utc>,
    ) -> Option<Settlement> {
        let is_missed = subscription.status == SubscriptionStatus::Active && subscription.attempt.is_none();
        if self == CatchUp::Each || !is_missed {
            return None;
        }
        let last = Period::from_day(subscription.last_due_by(today)?);
        let latest = subscription.cancel_from.map_or(last, |from| from.previous().min(last));
        let oldest = subscription.due_period();
        if latest <= oldest {
            return None;
        }
        let waived = waive_periods(subscription, oldest, latest, WaivedReason::Outage, now);
        let mut next = subscription.clone();
        next.move_to_period(latest);
        next.next_payment_on = Some(next.due_on);
        Some(Settlement { waived, ..next.into() })
    }
}
