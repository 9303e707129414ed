//! The charge total of a day: the number and sums of its charges, stored for each shard and updated during the day. The
//! limits on charges apply to the charges of all runs of a day together.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use chrono::NaiveDate;

use crate::items::keep_attributes;
use crate::keys;
use crate::table::batch::Batch;
use crate::table::payments_table::Table;
use billing::{ChargeTotal, Currency, Money, MoneySums};
use dynamo::PrefixQuery;
use dynamo::{Item, Paging, TableError};
use dynamo::{UpdateItemOutcome, key_of_item, n};

/// The prefix of the names of the attributes that contain the charged sum in one currency, such as `SumEUR`.
const SUM_PREFIX: &str = "Sum";
/// The attribute with the number of charges.
const CHARGES: &str = "Charges";
/// A condition that is always true, because the item of a charge total has no version. `build_update` requires a
/// condition.
const ALWAYS_TRUE: &str = "attribute_not_exists(#Version)";

impl Table {
    /// Adds `charged` to the charge total of `shard` on the day `on`. Sends one UpdateItem request. If the response is
    /// lost and the SDK retries the request, the amount may be added twice. The limits are then reached too early,
    /// never too late.
    pub async fn add_to_charge_total(
        &self,
        on: NaiveDate,
        shard: u32,
        charged: &ChargeTotal,
    ) -> Result<(), TableError> {
        let sums: Vec<(Currency, i64)> = charged.sums().iter().map(|sum| (sum.currency(), sum.minor())).collect();
        let added: Vec<String> =
            sums.iter().map(|(currency, _)| format!(", #{SUM_PREFIX}{currency} :{currency}")).collect();
        let update = format!("SET #TTL = :ttl ADD #Charges :charges{}", added.concat());
        let expires_at = on.and_time(chrono::NaiveTime::MIN).and_utc() + self.receipt_retention();
        let mut values = HashMap::from([
            (":ttl".to_owned(), n(expires_at.timestamp())),
            (":charges".to_owned(), n(charged.charges())),
        ]);
        values.extend(sums.into_iter().map(|(currency, minor)| (format!(":{currency}"), n(minor))));
        let key = keys::key_of_charge_total(on, shard);
        match self.send_update(self.build_update(key.clone(), &update, ALWAYS_TRUE, values), ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(()),
            UpdateItemOutcome::ConditionFailed(_) => {
                Err(TableError::unreadable(key, "it has a version, so it is not the charge total of a day"))
            }
        }
    }

    /// Returns the current charge total of the day `on`: the sum of the totals of all shards. Sends a Query with `PK =
    /// RUN#payments#<date> AND begins_with(SK, "CHARGED#")`.
    pub async fn get_charge_total(&self, on: NaiveDate) -> Result<ChargeTotal, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_runs(Batch::Payments, on), keys::CHARGE_TOTALS);
        let mut total = ChargeTotal::default();
        self.list_items(&list, &Paging::all())
            .await?
            .items
            .iter()
            .for_each(|item| total.add_all(&read_charge_total(item)));
        Ok(total)
    }
}

/// Returns the attributes of `item`, the charge total of a shard, that this program stores.
///
/// # Errors
/// [`TableError::Unreadable`] if the number of charges or a sum cannot be read.
pub(crate) fn check_charge_total(item: &Item) -> Result<Item, TableError> {
    let is_currency = |name: &str| name.strip_prefix(SUM_PREFIX).is_some_and(|text| text.parse::<Currency>().is_ok());
    let expected = keep_attributes(item, |name| name == CHARGES || is_currency(name));
    let is_number = |name: &String| expected[name].as_n().is_ok_and(|number| number.parse::<i64>().is_ok());
    let unreadable = |reason: String| TableError::unreadable(key_of_item(item), reason);
    if !expected.contains_key(CHARGES) {
        return Err(unreadable(format!("its attribute {CHARGES} is missing")));
    }
    let is_attribute = |name: &&String| *name != "PK" && *name != "SK";
    match expected.keys().filter(is_attribute).find(|name| !is_number(name)) {
        Some(name) => Err(unreadable(format!("its attribute {name} is no number"))),
        None => Ok(expected),
    }
}

/// Reads the charge total of one shard. Attributes that cannot be read are ignored.
fn read_charge_total(item: &Item) -> ChargeTotal {
    fn parse_number<T: std::str::FromStr>(value: &AttributeValue) -> Option<T> {
        value.as_n().ok()?.parse().ok()
    }
    let sums = item.iter().filter_map(|(name, value)| {
        let currency: Currency = name.strip_prefix(SUM_PREFIX)?.parse().ok()?;
        Some(Money::new(parse_number(value)?, currency))
    });
    ChargeTotal::new(item.get(CHARGES).and_then(parse_number).unwrap_or(0), sums.collect::<MoneySums>())
}
