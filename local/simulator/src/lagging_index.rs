//! Simulates the indexes of the table with the delays of eventual consistency. For at most five minutes after a write,
//! a query may return a deleted or outdated row, or miss a new row. A query may also end a list page at any row.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use store::SCHEMA;

use crate::json::{read_number_attribute, read_text_attribute};

/// The maximum time from a write to the table until the write is visible in the indexes.
pub const MAX_LAG: TimeDelta = TimeDelta::minutes(5);

/// The sort position of an index row: (number of the index in `SCHEMA`, shard, date, `PK`, `SK`).
type IndexPosition = (usize, u32, String, String, String);
/// The identity of an index row: (number of the index in `SCHEMA`, `PK`, `SK`).
type RowId = (usize, String, String);

/// Both indexes of the table: the reminder index and the payment index. Each write becomes visible to queries after a
/// random delay.
pub struct LaggingIndex {
    rng: ChaCha8Rng,
    /// Whether every write is visible immediately and every list page is full.
    is_consistent: bool,
    /// The index rows that a query can return now.
    visible: BTreeMap<IndexPosition, Value>,
    /// The sort position of each visible row.
    positions: HashMap<RowId, IndexPosition>,
    /// The writes that are not visible yet, ordered by the instant at which they become visible, and then by the number
    /// of the write. The value `None` removes the row.
    pending: BTreeMap<(DateTime<Utc>, u64), (RowId, Option<Value>)>,
    /// The last write of each row, and the instant at which this write becomes visible. The value `None` removes the
    /// row.
    latest: HashMap<RowId, (DateTime<Utc>, Option<Value>)>,
    /// The number of index writes so far. Each write gets the next number.
    write_count: u64,
}

impl LaggingIndex {
    /// Creates empty indexes without delays. `seed` decides the delays after [`Self::set_consistent`] was called with
    /// false.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            is_consistent: true,
            visible: BTreeMap::new(),
            positions: HashMap::new(),
            pending: BTreeMap::new(),
            latest: HashMap::new(),
            write_count: 0,
        }
    }

    /// Sets whether every write is visible immediately and every list page is full.
    pub fn set_consistent(&mut self, is_consistent: bool) {
        self.is_consistent = is_consistent;
    }

    /// Records a write at `now` to the item with this key. `item` is the item after the write; `None` if the write
    /// deleted the item.
    pub fn record_write(&mut self, now: DateTime<Utc>, (pk, sk): &(String, String), item: Option<&Value>) {
        for (index, projection) in SCHEMA.indexes.iter().enumerate() {
            let row = (index, pk.clone(), sk.clone());
            let image = item.and_then(|item| {
                create_index_row(item, projection.keys.sort.0, projection.attributes.unwrap_or_default())
            });
            let before = self.latest.get(&row);
            if before.is_some_and(|(_, before)| *before == image) || (before.is_none() && image.is_none()) {
                continue;
            }
            let not_before = before.map_or(now, |(shown_at, _)| *shown_at);
            let shown_at = not_before.max(now + self.random_lag());
            self.latest.insert(row.clone(), (shown_at, image.clone()));
            self.write_count += 1;
            self.pending.insert((shown_at, self.write_count), (row, image));
        }
    }

    /// Returns the delay after which a write becomes visible; zero for most writes.
    fn random_lag(&mut self) -> TimeDelta {
        if self.is_consistent {
            return TimeDelta::zero();
        }
        match self.rng.random_range(0..20) {
            0..14 => TimeDelta::zero(),
            14..19 => TimeDelta::seconds(self.rng.random_range(0..20)),
            _ => TimeDelta::seconds(self.rng.random_range(20..MAX_LAG.num_seconds())),
        }
    }

    /// Returns the response to the DynamoDB query `request`. The request must ask one of the indexes for the rows of
    /// one shard up to a date. Returns `None` for any other request; the DynamoDB engine must respond to that request.
    pub fn query(&mut self, now: DateTime<Utc>, request: &Value) -> Option<Value> {
        let name = request.get("IndexName")?.as_str()?;
        let index = SCHEMA.indexes.iter().position(|projection| projection.name == name)?;
        let date = SCHEMA.indexes[index].keys.sort.0;
        let expected_condition = format!("#Shard = :shard AND #{date} <= :today");
        let is_supported = request.get("KeyConditionExpression")?.as_str()? == expected_condition
            && request.get("FilterExpression").is_none()
            && request.get("ScanIndexForward").is_none_or(|forward| forward == true);
        if !is_supported {
            return None;
        }
        self.apply_due_writes_to_index(now);
        let values = request.get("ExpressionAttributeValues")?;
        let (shard, last): (u32, &str) =
            (read_number_attribute(values, ":shard")?, read_text_attribute(values, ":today")?);
        let start = request.get("ExclusiveStartKey").filter(|key| !key.is_null());
        let after = match start {
            Some(key) => (
                index,
                shard,
                read_text_attribute(key, date)?.to_owned(),
                read_text_attribute(key, "PK")?.to_owned(),
                read_text_attribute(key, "SK")?.to_owned(),
            ),
            None => (index, shard, String::new(), String::new(), String::new()),
        };
        let limit = request.get("Limit").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let rest = self.visible.range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
        let rest = rest.take_while(|((i, s, on, ..), _)| (*i, *s) == (index, shard) && on.as_str() <= last);
        let rest: Vec<&Value> = rest.map(|(_, row)| row).collect();
        let whole = rest.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        let (shown, has_more) = random_page_length(&mut self.rng, self.is_consistent, whole, rest.len());
        let items: Vec<Value> = rest[..shown].iter().map(|row| (*row).clone()).collect();
        let mut response = json!({"Count": items.len(), "ScannedCount": items.len()});
        if has_more {
            response["LastEvaluatedKey"] = match (items.last(), start, rest.first()) {
                (Some(last), ..) => last_evaluated_key(last, date),
                (None, Some(start), _) => start.clone(),
                (None, None, first) => {
                    // The first list page is empty, so no row has the key that `LastEvaluatedKey` must contain. The
                    // response contains an invented key instead: it has the date of the first row, and its position is
                    // before this row.
                    let on = first.and_then(|row| read_text_attribute(row, date)).unwrap_or(last);
                    json!({"PK": {"S": "ACC#"}, "SK": {"S": "SUB#"}, "Shard": {"N": shard.to_string()}, date: {"S": on}})
                }
            };
        }
        response["Items"] = Value::Array(items);
        Some(response)
    }

    /// Makes each pending write visible whose delay has ended by `now`.
    fn apply_due_writes_to_index(&mut self, now: DateTime<Utc>) {
        while let Some(entry) = self.pending.first_entry().filter(|entry| entry.key().0 <= now) {
            let (row, image) = entry.remove();
            if let Some(position) = self.positions.remove(&row) {
                self.visible.remove(&position);
            }
            let date = SCHEMA.indexes[row.0].keys.sort.0;
            let position = image.as_ref().and_then(|image| {
                Some((
                    row.0,
                    read_number_attribute(image, "Shard")?,
                    read_text_attribute(image, date)?.to_owned(),
                    row.1.clone(),
                    row.2.clone(),
                ))
            });
            if let (Some(position), Some(image)) = (position, image) {
                self.positions.insert(row, position.clone());
                self.visible.insert(position, image);
            }
        }
    }
}

/// Chooses the number of rows of a list page. `whole` is the number of rows of a full page, and `left` the number of
/// all remaining rows. Returns the number of rows on the page, and whether the response states that another page
/// follows.
fn random_page_length(rng: &mut ChaCha8Rng, is_consistent: bool, whole: usize, left: usize) -> (usize, bool) {
    if is_consistent {
        return (whole, left > whole);
    }
    let shown = match rng.random_range(0..20) {
        0 => 0,
        1..4 => rng.random_range(0..=whole),
        _ => whole,
    };
    (shown, left > shown || rng.random_ratio(1, 10))
}

/// Returns the row of `item` in the index that is sorted by the attribute `date`. The row contains the keys and the
/// projected `attributes`. Returns `None` if the item lacks the attribute `date` or the shard, so that the index does
/// not contain the item.
fn create_index_row(item: &Value, date: &str, attributes: &[&str]) -> Option<Value> {
    let names = ["PK", "SK", "Shard", date].into_iter().chain(attributes.iter().copied());
    read_text_attribute(item, date)?;
    item.get("Shard")?;
    Some(Value::Object(
        names.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect::<Map<_, _>>(),
    ))
}

/// Returns the `LastEvaluatedKey` of a list page that ends with `row`.
fn last_evaluated_key(row: &Value, date: &str) -> Value {
    let part = |name: &str| row.get(name).cloned().unwrap_or_default();
    json!({"PK": part("PK"), "SK": part("SK"), "Shard": part("Shard"), date: part(date)})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the key of the test item with the number `name`.
    fn test_item_key(name: usize) -> (String, String) {
        ("ACC#a".to_owned(), format!("SUB#{name:02}"))
    }

    /// Returns the test item with the number `name`, whose next payment date is `next`.
    fn create_test_item(name: usize, next: &str) -> Value {
        let (pk, sk) = test_item_key(name);
        json!({"PK": {"S": pk}, "SK": {"S": sk}, "Shard": {"N": "0"}, "NextPaymentDate": {"S": next}})
    }

    /// Reads all list pages of due rows, and returns the sort keys of their rows.
    fn read_sort_keys_of_due_rows(index: &mut LaggingIndex, now: DateTime<Utc>) -> Vec<String> {
        let (mut found, mut start) = (Vec::new(), Value::Null);
        loop {
            let request = json!({
                "IndexName": "GSI-2", "Limit": 3, "ExclusiveStartKey": start,
                "KeyConditionExpression": "#Shard = :shard AND #NextPaymentDate <= :today",
                "ExpressionAttributeValues": {":shard": {"N": "0"}, ":today": {"S": "2028-01-31"}},
            });
            let response = index.query(now, &request).unwrap();
            let rows = response["Items"].as_array().unwrap();
            found.extend(rows.iter().map(|row| row["SK"]["S"].as_str().unwrap().to_owned()));
            match response.get("LastEvaluatedKey") {
                Some(key) => start = key.clone(),
                None => return found,
            }
        }
    }

    #[test]
    fn query_returns_each_row_once_and_every_write_after_the_maximum_lag() {
        let now: DateTime<Utc> = "2028-01-31T06:00:00Z".parse().unwrap();
        let (mut showed_stale_row, mut missed_new_row) = (false, false);
        for seed in 0..50 {
            let mut index = LaggingIndex::new(seed);
            let all = |range: std::ops::Range<usize>| range.map(|name| test_item_key(name).1).collect::<Vec<_>>();
            (0..8).for_each(|name| {
                index.record_write(now, &test_item_key(name), Some(&create_test_item(name, "2028-01-31")))
            });
            assert_eq!(read_sort_keys_of_due_rows(&mut index, now), all(0..8), "consistent index");
            index.set_consistent(false);
            index.record_write(now, &test_item_key(0), Some(&create_test_item(0, "2028-02-29")));
            index.record_write(now, &test_item_key(8), Some(&create_test_item(8, "2028-01-31")));
            let shown = read_sort_keys_of_due_rows(&mut index, now);
            showed_stale_row |= shown.contains(&test_item_key(0).1);
            missed_new_row |= !shown.contains(&test_item_key(8).1);
            assert_eq!(read_sort_keys_of_due_rows(&mut index, now + MAX_LAG), all(1..9), "seed {seed}");
        }
        assert!(showed_stale_row && missed_new_row);
    }
}
