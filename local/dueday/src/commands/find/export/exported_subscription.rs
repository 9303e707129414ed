//! A subscription in an export, with what an import into another table needs.

use api::SubscriptionView;
use billing::{Account, EmailAddress, Label, Locale, Subscription, SubscriptionStatus};
use chrono::NaiveDate;
use serde::Serialize;

/// A subscription with what an import needs: the data of its account, which are null if the account does not exist, and
/// the obstacle to an import.
#[derive(Serialize)]
pub(super) struct ExportedSubscription {
    #[serde(flatten)]
    subscription: SubscriptionView,
    account_email: Option<EmailAddress>,
    account_name: Option<Label>,
    account_locale: Option<Locale>,
    import_obstacle: Option<&'static str>,
}

impl ExportedSubscription {
    /// Creates the entry of `subscription`, which is exported on `today`.
    pub(super) fn new(subscription: Subscription, account: Option<Account>, today: NaiveDate) -> Self {
        Self {
            import_obstacle: import_obstacle(&subscription, today),
            subscription: subscription.into(),
            account_email: account.as_ref().map(|account| account.email.clone()),
            account_name: account.as_ref().map(|account| account.name.clone()),
            account_locale: account.map(|account| account.locale),
        }
    }
}

/// Returns why another table must not charge `subscription` as an import on `today` or later would create it; `None` if it
/// may. A status in which no import creates a subscription is in a column of its own.
fn import_obstacle(subscription: &Subscription, today: NaiveDate) -> Option<&'static str> {
    match subscription {
        Subscription { attempt: Some(_), .. } => Some("a payment is in progress"),
        Subscription { open_findings: 1.., .. } => Some("a payment without a receipt is not resolved"),
        Subscription { disputed_at: Some(_), .. } => Some("the payment method is disputed"),
        Subscription { waiting_terms, .. } if !waiting_terms.is_empty() => {
            Some("a new price or payment day applies from a later month")
        }
        Subscription { status: SubscriptionStatus::Paused, due_on, .. } if *due_on < today => {
            Some("a month fell due during the pause, and is charged or waived when the subscription is resumed")
        }
        Subscription { status: SubscriptionStatus::Active, due_on, .. } if *due_on < today => Some("a payment is owed"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use billing::{PaymentDay, SubscriptionTerms};
    use testkit::sample_subscription;

    use super::*;

    #[test]
    fn import_obstacle_is_what_the_first_table_must_settle() {
        let active = sample_subscription(10, "2026-03-01".parse().unwrap());
        let later = SubscriptionTerms {
            from: "2026-04".parse().unwrap(),
            payment_day: PaymentDay::try_from(5).unwrap(),
            price: active.price,
        };
        let due_on: NaiveDate = "2026-03-10".parse().unwrap();
        let paused = active.pause("2026-03-01".parse().unwrap()).unwrap();
        for (subscription, today, obstacle) in [
            (active.clone(), due_on, None),
            (paused.clone(), due_on, None),
            (active.clone(), due_on.succ_opt().unwrap(), Some("a payment is owed")),
            (
                paused,
                due_on.succ_opt().unwrap(),
                Some("a month fell due during the pause, and is charged or waived when the subscription is resumed"),
            ),
            (
                Subscription { open_findings: 1, ..active.clone() },
                due_on,
                Some("a payment without a receipt is not resolved"),
            ),
            (
                Subscription { disputed_at: Some(active.created_at), ..active.clone() },
                due_on,
                Some("the payment method is disputed"),
            ),
            (
                Subscription { waiting_terms: vec![later], ..active.clone() },
                due_on,
                Some("a new price or payment day applies from a later month"),
            ),
        ] {
            assert_eq!(import_obstacle(&subscription, today), obstacle);
        }
    }
}
