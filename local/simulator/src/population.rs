//! Sample subscriptions for a simulation.

use billing::{Account, Currency, MailStatus, NewSubscription, PaymentMethod, SubscriptionId};
use ulid::Ulid;

/// A subscription for a simulation, and its account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscriber {
    pub account: Account,
    pub subscription: NewSubscription,
}

/// Returns `count` sample subscriptions, three per account. The subscriptions have all payment days in turn, and four
/// currencies.
///
/// # Panics
/// Never: the generated values are valid.
pub fn generate_subscribers(count: u32) -> Vec<NewSubscriber> {
    let currencies = ["EUR", "USD", "JPY", "KWD"];
    let new_subscriber = |n: u32| -> Option<NewSubscriber> {
        let currency: Currency = currencies[usize::try_from(n).ok()? % currencies.len()].parse().ok()?;
        let name = format!("account-{:06}", n / 3);
        let account = Account {
            id: name.parse().ok()?,
            email: format!("{name}@example.com").parse().ok()?,
            name: format!("Customer {}", n / 3).parse().ok()?,
            locale: Default::default(),
            mail_status: MailStatus::default(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            erasure_requested_at: None,
            version: 1,
        };
        let subscription = NewSubscription {
            account: account.id.clone(),
            id: SubscriptionId::new(Ulid::nil()),
            external_id: None,
            sku: format!("plan-{}", n % 5).parse().ok()?,
            product_name: format!("Plan {n}").parse().ok()?,
            email: None,
            payment_day: i64::from(n % 31 + 1).try_into().ok()?,
            price: currency.price(500 + i64::from(n % 97) * 100).ok()?,
            payment_method: PaymentMethod {
                customer: format!("cus_{name}").parse().ok()?,
                payment_method: "pm_card_visa".parse().ok()?,
            },
            first_payment_on: None,
            allow_second: false,
        };
        Some(NewSubscriber { account, subscription })
    };
    (0..count).map(|n| new_subscriber(n).expect("the population is valid")).collect()
}
