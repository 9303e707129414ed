//! The outcome of the import of one row, and the comparison of a row with the stored subscription.

use billing::{NewSubscription, Subscription};

use super::column::Column;
use super::rejects::Rejected;

/// The outcome of the import of one row.
pub(super) enum Outcome {
    /// The subscription was created, or in a dry run would be created.
    Created {
        subscription: Box<Subscription>,
        /// Whether the row may be the second subscription of its SKU.
        allow_second: bool,
    },
    /// The subscription exists with the same values.
    AlreadyThere,
    /// The subscription exists with other values.
    Differs(Vec<Rejected>),
    /// The row is invalid. Contains one entry for each invalid cell, or one for the whole row.
    Rejected(Vec<Rejected>),
}

/// The line number of a row in the file, and the outcome of its import.
pub(super) type LineOutcome = (u64, Outcome);

/// Returns the values of a subscription that come from the file. Each entry contains the column, the value, and whether
/// messages may show the value.
pub(super) fn file_values(subscription: &Subscription) -> [(Column, String, bool); 8] {
    let Subscription { sku, product_name, payment_day, price, payment_method, first_due_on, .. } = subscription;
    [
        (Column::Sku, sku.to_string(), true),
        (Column::ProductName, product_name.as_str().to_owned(), true),
        (Column::PaymentDay, payment_day.to_string(), true),
        (Column::Amount, price.decimal(), true),
        (Column::Currency, price.currency().to_string(), true),
        (Column::Customer, payment_method.customer.as_str().to_owned(), false),
        (Column::PaymentMethod, payment_method.payment_method.as_str().to_owned(), false),
        (Column::FirstPaymentDate, first_due_on.to_string(), true),
    ]
}

/// Compares the stored subscription with the subscription that the row on `line` would create.
pub(super) fn compare_with_stored(line: u64, stored: &Subscription, new: &NewSubscription) -> Outcome {
    let intended = Subscription {
        sku: new.sku.clone(),
        product_name: new.product_name.clone(),
        payment_day: new.payment_day,
        price: new.price,
        payment_method: new.payment_method.clone(),
        first_due_on: new.first_payment_on.unwrap_or(stored.first_due_on),
        ..stored.clone()
    };
    let different =
        file_values(stored).into_iter().zip(file_values(&intended)).filter(|(stored, intended)| stored != intended);
    let rejections: Vec<Rejected> = different
        .map(|((column, stored, is_public), (_, intended, _))| {
            if is_public {
                let reason = format!("differs: the table contains {stored}, which is not changed");
                Rejected::cell(line, column, &intended, reason)
            } else {
                let reason = "differs: the table contains another value, which is not changed";
                Rejected::private_cell(line, column, reason.to_owned())
            }
        })
        .collect();
    if rejections.is_empty() { Outcome::AlreadyThere } else { Outcome::Differs(rejections) }
}
