//! The forecast of charges for a whole table, from the payment index.

use chrono::NaiveDate;

use billing::Forecast;
use store::{Batch, DueList, Table, TableError};

/// The number of entries of the payment index per request.
const PAGE_ROWS: usize = 1_000;

/// Returns the forecast of the charges in the first `shards` shards of `table` during the `months` months from `today`
/// on. A payment with an impossibly late payment date, which a clock that was ahead has planned, is expected tomorrow
/// or on its due date. Also returns one error for each unreadable entry of the payment index, which the forecast does
/// not contain. Queries every entry of the payment index (GSI-2) that is due in these months.
pub async fn forecast(
    table: &Table,
    shards: u32,
    today: NaiveDate,
    months: u32,
) -> Result<(Forecast, Vec<TableError>), TableError> {
    let mut forecast = Forecast::new(today, months);
    let range = (forecast.first_day_after(), today);
    let (mut unreadable, mut after) = (Vec::new(), None);
    loop {
        let DueList { rows, next } =
            table.get_due_and_postponed_by_date(Batch::Payments, shards, range, after, PAGE_ROWS).await?;
        for row in rows {
            match row.due {
                Ok(due) => {
                    if due.will_be_charged()
                        && let Some(payment_schedule) = due.payment_schedule
                    {
                        let payment_on = payment_schedule.expected_payment_on(due.on, today);
                        forecast.add(payment_schedule, payment_on);
                    }
                }
                Err(error) => unreadable.push(error),
            }
        }
        after = next;
        if after.is_none() {
            return Ok((forecast, unreadable));
        }
    }
}
