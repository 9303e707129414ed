//! The payments table, with which the function compares the events.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Money, Receipt, Refund, RefundStatus};
use dynamo::{Entity, TIME_TO_LIVE};
use emulator::Engine;
use store::{PaymentsSchema, Table};
use ulid::Ulid;

/// A time in the future, in seconds since 1970, at which the items expire.
const EXPIRES: i64 = 4_102_444_800;

/// Creates the payments table.
pub async fn create(engine: &Engine) {
    Table::new(engine.client(), "dueday").create_if_absent().await.unwrap();
}

/// Writes `entity` to the payments table.
pub async fn put(engine: &Engine, entity: &impl Entity<PaymentsSchema>) {
    let mut item = entity.to_item();
    item.insert(TIME_TO_LIVE.to_owned(), AttributeValue::N(EXPIRES.to_string()));
    engine.client().put_item().table_name("dueday").set_item(Some(item)).send().await.unwrap();
}

/// Deletes `entity` from the payments table.
pub async fn delete(engine: &Engine, entity: &impl Entity<PaymentsSchema>) {
    let key = entity.key().attributes();
    engine.client().delete_item().table_name("dueday").set_key(Some(key)).send().await.unwrap();
}

/// Returns the receipt of the payment in the sample event `events/sqs-paid.json`.
pub fn sample_receipt() -> Receipt {
    let amount = Money::new(1299, "EUR".parse().unwrap());
    Receipt {
        account: "acme".parse().unwrap(),
        subscription: "01JNA80W00TQ2XNPH2HZ8S6CKN".parse().unwrap(),
        sku: "gold".parse().unwrap(),
        product_name: "Gold plan".parse().unwrap(),
        email: None,
        due_on: "2027-01-31".parse().unwrap(),
        amount,
        payment: "pi_3Oq".parse().unwrap(),
        customer: None,
        card: None,
        processed_at: "2027-01-31T06:00:02.123Z".parse().unwrap(),
        refunded: Money::new(0, amount.currency()),
        refunded_at: None,
        reversal: None,
    }
}

/// Returns a refund of the whole payment of `receipt`.
pub fn refund_of(receipt: &Receipt) -> Refund {
    Refund {
        id: Ulid::from_parts(1, 1),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        amount: receipt.amount,
        requested: None,
        status: RefundStatus::Succeeded,
        gateway_refund: None,
        code: None,
        created_at: receipt.processed_at,
        leased_until: receipt.processed_at,
        settled_at: Some(receipt.processed_at),
        expires: EXPIRES,
        version: 1,
    }
}
