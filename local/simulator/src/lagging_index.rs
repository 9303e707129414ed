//! The indexes as they really are: eventually consistent. They show rows that are gone and not yet those that are new, for
//! minutes at most, and end their pages where they like.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use store::SCHEMA;

use crate::json::{number, text};

/// Nothing is shown later than this.
pub const MAX_LAG: TimeDelta = TimeDelta::minutes(5);

/// Index, shard, date, and the item's key: the order of an index.
type Place = (usize, u32, String, String, String);
/// Index and the item's key.
type Row = (usize, String, String);

/// Both indexes, as a reader finds them.
pub struct LaggingIndex {
    rng: ChaCha8Rng,
    is_calm: bool,
    shown: BTreeMap<Place, Value>,
    places: HashMap<Row, Place>,
    /// What is still to be shown, by the instant and in the order of its writes.
    waiting: BTreeMap<(DateTime<Utc>, u64), (Row, Option<Value>)>,
    /// What was written last of each row, and when it is shown.
    latest: HashMap<Row, (DateTime<Utc>, Option<Value>)>,
    written: u64,
}

impl LaggingIndex {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            is_calm: true,
            shown: BTreeMap::new(),
            places: HashMap::new(),
            waiting: BTreeMap::new(),
            latest: HashMap::new(),
            written: 0,
        }
    }

    /// Whether it shows everything at once, on whole pages.
    pub fn be_calm(&mut self, is_calm: bool) {
        self.is_calm = is_calm;
    }

    /// `item` has become this under its key.
    pub fn write(&mut self, now: DateTime<Utc>, (pk, sk): &(String, String), item: Option<&Value>) {
        for (index, projection) in SCHEMA.indexes.iter().enumerate() {
            let row = (index, pk.clone(), sk.clone());
            let image = item
                .and_then(|item| projected(item, projection.keys.sort.0, projection.attributes.unwrap_or_default()));
            let before = self.latest.get(&row);
            if before.is_some_and(|(_, before)| *before == image) || (before.is_none() && image.is_none()) {
                continue;
            }
            let not_before = before.map_or(now, |(shown_at, _)| *shown_at);
            let shown_at = not_before.max(now + self.lag());
            self.latest.insert(row.clone(), (shown_at, image.clone()));
            self.written += 1;
            self.waiting.insert((shown_at, self.written), (row, image));
        }
    }

    fn lag(&mut self) -> TimeDelta {
        if self.is_calm {
            return TimeDelta::zero();
        }
        match self.rng.random_range(0..20) {
            0..14 => TimeDelta::zero(),
            14..19 => TimeDelta::seconds(self.rng.random_range(0..20)),
            _ => TimeDelta::seconds(self.rng.random_range(20..MAX_LAG.num_seconds())),
        }
    }

    /// The answer to `request`; `None` if it is not one of the two queries that are known here.
    pub fn answer(&mut self, now: DateTime<Utc>, request: &Value) -> Option<Value> {
        let name = request.get("IndexName")?.as_str()?;
        let index = SCHEMA.indexes.iter().position(|projection| projection.name == name)?;
        let date = SCHEMA.indexes[index].keys.sort.0;
        let known = format!("#Shard = :shard AND #{date} <= :today");
        let is_known = request.get("KeyConditionExpression")?.as_str()? == known
            && request.get("FilterExpression").is_none()
            && request.get("ScanIndexForward").is_none_or(|forward| forward == true);
        if !is_known {
            return None;
        }
        self.show(now);
        let values = request.get("ExpressionAttributeValues")?;
        let (shard, last): (u32, &str) = (number(values, ":shard")?, text(values, ":today")?);
        let start = request.get("ExclusiveStartKey").filter(|key| !key.is_null());
        let after = match start {
            Some(key) => {
                (index, shard, text(key, date)?.to_owned(), text(key, "PK")?.to_owned(), text(key, "SK")?.to_owned())
            }
            None => (index, shard, String::new(), String::new(), String::new()),
        };
        let limit = request.get("Limit").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let rest = self.shown.range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
        let rest = rest.take_while(|((i, s, on, ..), _)| (*i, *s) == (index, shard) && on.as_str() <= last);
        let rest: Vec<&Value> = rest.map(|(_, row)| row).collect();
        let whole = rest.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        let (shown, has_more) = page(&mut self.rng, self.is_calm, whole, rest.len());
        let items: Vec<Value> = rest[..shown].iter().map(|row| (*row).clone()).collect();
        let mut answer = json!({"Count": items.len(), "ScannedCount": items.len()});
        if has_more {
            answer["LastEvaluatedKey"] = match (items.last(), start, rest.first()) {
                (Some(last), ..) => key_of(last, date),
                (None, Some(start), _) => start.clone(),
                (None, None, first) => {
                    // An entry that was there, and is not any more.
                    let on = first.and_then(|row| text(row, date)).unwrap_or(last);
                    json!({"PK": {"S": "ACC#"}, "SK": {"S": "SUB#"}, "Shard": {"N": shard.to_string()}, date: {"S": on}})
                }
            };
        }
        answer["Items"] = Value::Array(items);
        Some(answer)
    }

    /// Shows what is to be shown by `now`.
    fn show(&mut self, now: DateTime<Utc>) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let (row, image) = entry.remove();
            if let Some(place) = self.places.remove(&row) {
                self.shown.remove(&place);
            }
            let date = SCHEMA.indexes[row.0].keys.sort.0;
            let place = image.as_ref().and_then(|image| {
                Some((row.0, number(image, "Shard")?, text(image, date)?.to_owned(), row.1.clone(), row.2.clone()))
            });
            if let (Some(place), Some(image)) = (place, image) {
                self.places.insert(row, place.clone());
                self.shown.insert(place, image);
            }
        }
    }
}

/// How many of the `whole` rows of a page are shown, of `left` that are left, and whether it says that there are more.
fn page(rng: &mut ChaCha8Rng, is_calm: bool, whole: usize, left: usize) -> (usize, bool) {
    if is_calm {
        return (whole, left > whole);
    }
    let shown = match rng.random_range(0..20) {
        0 => 0,
        1..4 => rng.random_range(0..=whole),
        _ => whole,
    };
    (shown, left > shown || rng.random_ratio(1, 10))
}

fn projected(item: &Value, date: &str, attributes: &[&str]) -> Option<Value> {
    let names = ["PK", "SK", "Shard", date].into_iter().chain(attributes.iter().copied());
    text(item, date)?;
    item.get("Shard")?;
    Some(Value::Object(
        names.filter_map(|name| Some((name.to_owned(), item.get(name)?.clone()))).collect::<Map<_, _>>(),
    ))
}

fn key_of(row: &Value, date: &str) -> Value {
    let part = |name: &str| row.get(name).cloned().unwrap_or_default();
    json!({"PK": part("PK"), "SK": part("SK"), "Shard": part("Shard"), date: part(date)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: usize) -> (String, String) {
        ("ACC#a".to_owned(), format!("SUB#{name:02}"))
    }

    fn item(name: usize, next: &str) -> Value {
        let (pk, sk) = key(name);
        json!({"PK": {"S": pk}, "SK": {"S": sk}, "Shard": {"N": "0"}, "NextPaymentDate": {"S": next}})
    }

    /// The rows that a reader finds who follows the positions, page by page.
    fn walked(index: &mut LaggingIndex, now: DateTime<Utc>) -> Vec<String> {
        let (mut found, mut start) = (Vec::new(), Value::Null);
        loop {
            let request = json!({
                "IndexName": "GSI-2", "Limit": 3, "ExclusiveStartKey": start,
                "KeyConditionExpression": "#Shard = :shard AND #NextPaymentDate <= :today",
                "ExpressionAttributeValues": {":shard": {"N": "0"}, ":today": {"S": "2028-01-31"}},
            });
            let answer = index.answer(now, &request).unwrap();
            let rows = answer["Items"].as_array().unwrap();
            found.extend(rows.iter().map(|row| row["SK"]["S"].as_str().unwrap().to_owned()));
            match answer.get("LastEvaluatedKey") {
                Some(key) => start = key.clone(),
                None => return found,
            }
        }
    }

    #[test]
    fn answer_shows_each_row_once_and_what_was_written_minutes_later_at_most() {
        let now: DateTime<Utc> = "2028-01-31T06:00:00Z".parse().unwrap();
        let (mut had_ghosts, mut had_gaps) = (false, false);
        for seed in 0..50 {
            let mut index = LaggingIndex::new(seed);
            let all = |range: std::ops::Range<usize>| range.map(|name| key(name).1).collect::<Vec<_>>();
            (0..8).for_each(|name| index.write(now, &key(name), Some(&item(name, "2028-01-31"))));
            assert_eq!(walked(&mut index, now), all(0..8), "calm");
            index.be_calm(false);
            index.write(now, &key(0), Some(&item(0, "2028-02-29")));
            index.write(now, &key(8), Some(&item(8, "2028-01-31")));
            let shown = walked(&mut index, now);
            had_ghosts |= shown.contains(&key(0).1);
            had_gaps |= !shown.contains(&key(8).1);
            assert_eq!(walked(&mut index, now + MAX_LAG), all(1..9), "seed {seed}");
        }
        assert!(had_ghosts && had_gaps);
    }
}
