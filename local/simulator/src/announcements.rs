//! The check that what mails and lists say about the next payments is what happens. On every seventh day, the outlook of
//! each subscription is kept. At the end, it is compared with the payments in the gateway's ledger.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use billing::{PaymentReason, PlannedPayment};
use chrono::{Datelike as _, NaiveDate};
use chrono_tz::Tz;
use store::{Table, TableError};

use crate::stored_items::{SubscriptionName, display_name};
use crate::table_contents::{LedgerCharge, TableContents};

/// The number of days between two outlooks. Its multiples are all days of a month in turn.
const DAYS_BETWEEN_OUTLOOKS: i32 = 7;

/// The next payments of a subscription, as they were announced on a day.
struct AnnouncedPayments {
    subscription: SubscriptionName,
    on: NaiveDate,
    payments: Vec<PlannedPayment>,
}

/// The announced payments of a simulation in which no person changes a subscription.
#[derive(Default)]
pub struct PaymentAnnouncements(Vec<AnnouncedPayments>);

impl PaymentAnnouncements {
    /// Keeps what is announced on the day `today`, before its runs, for each subscription in `table`.
    ///
    /// # Errors
    /// [`TableError`] if the table or a subscription cannot be read.
    pub async fn add_day(&mut self, table: &Table, today: NaiveDate) -> Result<(), TableError> {
        if today.num_days_from_ce() % DAYS_BETWEEN_OUTLOOKS != 0 {
            return Ok(());
        }
        let (policy, mut unreadable) = (table.policy(), None);
        let keep = |read: Result<billing::Subscription, TableError>| {
            match read {
                Ok(subscription) => self.0.push(AnnouncedPayments {
                    subscription: (subscription.account.to_string(), subscription.id.to_string()),
                    on: today,
                    payments: subscription.outlook(&policy, today).payments,
                }),
                Err(error) => unreadable = Some(error),
            }
            ControlFlow::Continue(())
        };
        table.scan_subscriptions(keep).await?;
        unreadable.map_or(Ok(()), Err)
    }

    /// Returns the announced payments that were not made as announced, and the payments that were not announced, up to the
    /// day `last`. The days are days in `zone`. An announcement holds until an attempt of the subscription fails.
    pub fn find_differences(&self, contents: &TableContents, last: NaiveDate, zone: Tz) -> Vec<String> {
        let day = |at: chrono::DateTime<chrono::Utc>| at.with_timezone(&zone).date_naive();
        let mut charges: BTreeMap<&SubscriptionName, Vec<&LedgerCharge>> = BTreeMap::new();
        for charge in &contents.charges {
            charges.entry(&charge.subscription).or_default().push(charge);
        }
        let mut failures: BTreeMap<&SubscriptionName, Vec<NaiveDate>> = BTreeMap::new();
        for attempt in &contents.attempts {
            failures.entry(&attempt.subscription).or_default().push(day(attempt.at));
        }
        let mut differences = Vec::new();
        for AnnouncedPayments { subscription, on, payments } in &self.0 {
            let failed = failures.get(subscription).into_iter().flatten().filter(|failed| *failed >= on).min();
            let until = failed.map_or(last, |failed| failed.pred_opt().unwrap_or(*failed)).min(last);
            let made: Vec<_> = charges.get(subscription).into_iter().flatten().collect();
            let is_made_as_announced = |payment: &PlannedPayment, charge: &LedgerCharge| {
                let days = payment.payment_on..=payment.latest_on;
                (charge.due, charge.amount) == (payment.due_on, payment.amount.minor())
                    && days.contains(&day(charge.created_at))
            };
            // The attempt of a payment in progress began earlier.
            let is_to_be_made =
                |payment: &&PlannedPayment| payment.latest_on <= until && payment.reason != PaymentReason::InProgress;
            let missing = payments.iter().filter(is_to_be_made);
            let missing = missing.filter(|payment| !made.iter().any(|charge| is_made_as_announced(payment, charge)));
            let name = display_name(subscription);
            differences.extend(missing.map(|PlannedPayment { due_on, payment_on, amount, .. }| {
                format!("{name}: on {on}, {amount} was announced for {payment_on}, due on {due_on}, and not charged so")
            }));
            let end = payments.last().map_or(*on, |payment| payment.latest_on).min(until);
            let unannounced =
                made.iter().filter(|charge| *on <= day(charge.created_at) && day(charge.created_at) <= end);
            let unannounced =
                unannounced.filter(|charge| !payments.iter().any(|payment| is_made_as_announced(payment, charge)));
            differences.extend(unannounced.map(|charge| {
                format!("{name}: on {on}, the payment {} for {} was not announced so", charge.payment, charge.due)
            }));
        }
        differences
    }
}
