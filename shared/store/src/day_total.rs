//! What was charged on a day, by shard: counted as the day goes on, so that its ceilings are the day's and not a run's.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use chrono::NaiveDate;

use super::{Item, Paging, Table, TableError, keys};
use billing::{Currency, Day, Money, Sums};
use dynamo::List;
use dynamo::{UpdateAnswer, n};

/// The attribute of a currency's sum begins so.
const SUM: &str = "Sum";
/// Always true: a tally has no version.
const ANY: &str = "attribute_not_exists(#Version)";

impl Table {
    /// Counts what was `charged` in `shard` on the day `on`. UpdateItem. When its answer is lost it may be counted twice: the
    /// ceilings are reached too early then, never too late.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn add_charged(&self, on: NaiveDate, shard: u32, charged: &Day) -> Result<(), TableError> {
        let sums: Vec<(Currency, i64)> = charged.sums().iter().map(|sum| (sum.currency(), sum.minor())).collect();
        let added: Vec<String> = sums.iter().map(|(currency, _)| format!(", #{SUM}{currency} :{currency}")).collect();
        let update = format!("SET #TTL = :ttl ADD #Charges :charges{}", added.concat());
        let expires_at = on.and_time(chrono::NaiveTime::MIN).and_utc() + self.receipts_kept;
        let mut values = HashMap::from([
            (":ttl".to_owned(), n(expires_at.timestamp())),
            (":charges".to_owned(), n(charged.charges())),
        ]);
        values.extend(sums.into_iter().map(|(currency, minor)| (format!(":{currency}"), n(minor))));
        let key = keys::charged(on, shard);
        match self.update(self.update_of(key.clone(), &update, ANY, values), ReturnValue::None).await? {
            UpdateAnswer::Done(_) => Ok(()),
            UpdateAnswer::Refused(_) => Err(TableError::unreadable(key, "it is no tally")),
        }
    }

    /// What was charged on the day `on` so far, in all shards. Query `PK = RUN#payments#<date> AND begins_with(SK,
    /// "CHARGED#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_charged(&self, on: NaiveDate) -> Result<Day, TableError> {
        let list = List::of(keys::runs(super::Batch::Payments, on), keys::CHARGED);
        let mut day = Day::default();
        self.list(&list, &Paging::all()).await?.items.iter().for_each(|item| day.add_all(&tally(item)));
        Ok(day)
    }
}

fn tally(item: &Item) -> Day {
    fn number<T: std::str::FromStr>(value: &AttributeValue) -> Option<T> {
        value.as_n().ok()?.parse().ok()
    }
    let sums = item.iter().filter_map(|(name, value)| {
        let currency: Currency = name.strip_prefix(SUM)?.parse().ok()?;
        Some(Money::new(number(value)?, currency))
    });
    Day::of(item.get("Charges").and_then(number).unwrap_or(0), sums.collect::<Sums>())
}
