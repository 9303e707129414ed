//! The forecast of a whole table, read from the payment index.

use chrono::NaiveDate;

use billing::Forecast;
use store::{Batch, DueList, Table, TableError};

/// Entries read at once.
const PAGE_ROWS: usize = 1_000;

/// What will be charged in shards 0 to `shards` of `table` in the `months` from `today` on; and the entries that cannot be
/// read, which are not counted. Query GSI-2, every entry of it.
///
/// # Errors
/// [`TableError`].
pub async fn forecast(
    table: &Table,
    shards: u32,
    today: NaiveDate,
    months: u32,
) -> Result<(Forecast, Vec<TableError>), TableError> {
    let mut forecast = Forecast::new(today, months);
    let (mut unreadable, mut after) = (Vec::new(), None);
    loop {
        let DueList { rows, next } =
            table.get_due_by_date(Batch::Payments, shards, forecast.until(), after, PAGE_ROWS).await?;
        for row in rows {
            match row.due {
                Ok(due) => {
                    if due.will_be_charged()
                        && let Some(course) = due.course
                    {
                        forecast.add(course, due.on);
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
