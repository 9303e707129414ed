//! Loads the rows of a file into a table, for the demo and the simulation.

use chrono::NaiveDate;
use shared::ambient::Ambient;
use shared::billing::{NewSubscription, SubscriptionId};
use shared::config::Config;
use shared::table::{Created, Table};

use crate::Failure;
use crate::import_file::Row;

/// Creates the accounts and subscriptions of `rows`, on the day `eve`.
///
/// # Errors
/// [`Failure`]: a row that cannot begin on that day.
pub async fn load(
    table: &Table,
    config: &Config,
    rows: Vec<Row>,
    eve: NaiveDate,
    ambient: &dyn Ambient,
) -> Result<(), Failure> {
    let settings = table.init_settings(&config.initial_settings(ambient)).await?;
    for row in rows {
        let account = row.new_account(ambient.now());
        table.put_account(&account).await?;
        let new = NewSubscription {
            account: row.account.clone(),
            id: SubscriptionId::new(ambient.ulid()),
            sku: row.sku,
            product_name: row.product_name,
            email: None,
            payment_day: row.payment_day,
            price: row.price,
            payment_method: row.payment_method,
            first_payment_on: row.first_payment_on,
        };
        let shard = settings.shard_of(&row.account);
        let subscription = new.begin(shard, config.policy.lead, eve, ambient.now()).map_err(|refusal| {
            Failure::Refused(format!("{}: first_payment_date {refusal}", row.external_id.as_str()))
        })?;
        match table.create_subscription(&subscription, None).await? {
            Created::Created => {}
            other => return Err(Failure::Refused(format!("{}: {other:?}", row.external_id.as_str()))),
        }
    }
    Ok(())
}
