//! The forecast of charges for a whole table, from the payment index.

use chrono::NaiveDate;

use billing::Forecast;
use store::{Batch, DueList, DueSubscription, Table, TableError};

/// The number of entries of the payment index per request.
const PAGE_ROWS: usize = 1_000;

/// Returns the forecast of the charges in the first `shards` shards of `table` during the `months` months from `today`
/// on, with the policy of the table. A payment with an impossibly late payment date, which a clock that was ahead has
/// planned, is expected tomorrow or on its due date. Also returns one error for each unreadable entry of the payment
/// index and each unreadable subscription, which the forecast does not contain. Queries every entry of the payment
/// index (GSI-2) that is due in these months, and reads the subscriptions of these entries.
pub async fn forecast_charges(
    table: &Table,
    shards: u32,
    today: NaiveDate,
    months: u32,
) -> Result<(Forecast, Vec<TableError>), TableError> {
    let (mut forecast, policy) = (Forecast::new(today, months), table.policy());
    let on = forecast.first_day_after();
    let (mut unreadable, mut after) = (Vec::new(), None);
    loop {
        let DueList { rows, next } =
            table.get_due_and_postponed_by_date(Batch::Payments, shards, on, today, after, PAGE_ROWS).await?;
        for row in table.get_subscriptions_of_due_rows(rows).await? {
            match row {
                Ok(DueSubscription { subscription, .. }) => forecast.add(&subscription, &policy),
                Err(error) => unreadable.push(error),
            }
        }
        after = next;
        if after.is_none() {
            return Ok((forecast, unreadable));
        }
    }
}
