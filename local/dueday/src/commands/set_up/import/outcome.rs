//! The outcome of the import of one row, and the comparison of a row with the stored subscription.

use billing::{EmailAddress, Period, Subscription};

use super::column::ImportColumn;
use super::rejects::Rejected;
use super::row::ImportRow;

/// The outcome of the import of one row.
pub(super) enum RowImportOutcome {
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
pub(super) type LineOutcome = (u64, RowImportOutcome);

/// Returns the values of a subscription that come from the file. Each entry contains the column, the value, and whether
/// messages may show the value.
pub(super) fn values_from_file(subscription: &Subscription) -> [(ImportColumn, String, bool); 11] {
    let cancel_on = subscription.cancels_on().map(|on| on.to_string()).unwrap_or_default();
    let own_email = subscription.email.as_ref().map(|email: &EmailAddress| email.as_str().to_owned());
    let Subscription { sku, product_name, payment_day, price, payment_method, first_due_on, .. } = subscription;
    [
        (ImportColumn::Sku, sku.to_string(), true),
        (ImportColumn::ProductName, product_name.as_str().to_owned(), true),
        (ImportColumn::PaymentDay, payment_day.to_string(), true),
        (ImportColumn::Amount, price.decimal(), true),
        (ImportColumn::Currency, price.currency().to_string(), true),
        (ImportColumn::Customer, payment_method.customer.as_str().to_owned(), false),
        (ImportColumn::PaymentMethod, payment_method.payment_method.as_str().to_owned(), false),
        (ImportColumn::FirstPaymentDate, first_due_on.to_string(), true),
        (ImportColumn::OwnEmail, own_email.unwrap_or_default(), false),
        (ImportColumn::Status, subscription.status.to_string(), true),
        (ImportColumn::CancelDate, cancel_on, true),
    ]
}

/// Compares the stored subscription with `row`, which is on `line`. Blank optional cells are not compared. The first
/// payment date may also be the current due date, which an export contains.
pub(super) fn compare_with_stored(line: u64, stored: &Subscription, row: &ImportRow) -> RowImportOutcome {
    let intended = Subscription {
        sku: row.sku.clone(),
        product_name: row.product_name.clone(),
        email: row.own_email.clone().or_else(|| stored.email.clone()),
        payment_day: row.payment_day,
        price: row.price,
        payment_method: row.payment_method.clone(),
        first_due_on: row.first_payment_on.filter(|on| *on != stored.due_on).unwrap_or(stored.first_due_on),
        status: row.status.unwrap_or(stored.status),
        cancel_from: row.cancel_on.map(Period::from_day).or(stored.cancel_from),
        ..stored.clone()
    };
    let different = values_from_file(stored)
        .into_iter()
        .zip(values_from_file(&intended))
        .filter(|(stored, intended)| stored != intended);
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
    if rejections.is_empty() { RowImportOutcome::AlreadyThere } else { RowImportOutcome::Differs(rejections) }
}
