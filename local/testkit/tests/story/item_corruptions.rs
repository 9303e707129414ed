//! The corruptions of stored items, with which the tests of the audits of both tables check each attribute of each kind
//! of item.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use chrono::NaiveDate;
use store::Item;

/// An attribute whose corruption the audit may miss: the kind of the item, the attribute, and the reason.
pub type Missed = (&'static str, &'static str, &'static str);

/// Returns the text of the attribute `name` of `item`.
pub fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    item[name].as_s().unwrap()
}

/// Returns the corrupted copies of `item`, each with a description: the attribute `name` is removed, has another type,
/// and has another value.
pub fn corruptions(item: &Item, name: &str) -> Vec<(&'static str, Item)> {
    let with = |value: AttributeValue| Item::from_iter([(name.to_owned(), value)]);
    let replaced = |value| item.clone().into_iter().chain(with(value)).collect();
    let removed = item.clone().into_iter().filter(|(other, _)| other != name).collect();
    let mut all = vec![("removed", removed)];
    match &item[name] {
        AttributeValue::S(text) => {
            all.push(("number", replaced(AttributeValue::N("7".to_owned()))));
            // A date, and the date of an instant, become the next day.
            let (day, rest) = text.split_at_checked(10).unwrap_or((text, ""));
            let next_day = day.parse::<NaiveDate>().map(|on| format!("{}{rest}", on.succ_opt().unwrap()));
            let other = next_day.unwrap_or_else(|_| format!("{text}x"));
            all.push(("changed", replaced(AttributeValue::S(other))));
        }
        AttributeValue::N(number) => {
            all.push(("text", replaced(AttributeValue::S("x".to_owned()))));
            let other = number.parse::<i64>().unwrap() + 1;
            all.push(("changed", replaced(AttributeValue::N(other.to_string()))));
        }
        AttributeValue::Bool(value) => {
            all.push(("text", replaced(AttributeValue::S("x".to_owned()))));
            all.push(("changed", replaced(AttributeValue::Bool(!value))));
        }
        _ => all.push(("text", replaced(AttributeValue::S("x".to_owned())))),
    }
    all
}

/// The results of the audits of corrupted items.
#[derive(Default)]
pub struct AuditedCorruptions {
    /// The number of corruptions that the audit has found.
    pub found: usize,
    /// The missed corruptions of each kind of item and attribute.
    missed: BTreeMap<(String, String), Vec<&'static str>>,
    /// A line for each kind of item, attribute and corruption.
    lines: BTreeSet<String>,
}

impl AuditedCorruptions {
    /// Adds the `corruption` of the attribute `name` of an item of the kind `kind`, and whether the audit has found it.
    pub fn add(&mut self, kind: &str, name: &str, corruption: &'static str, is_found: bool) {
        match is_found {
            true => self.found += 1,
            false => self.missed.entry((kind.to_owned(), name.to_owned())).or_default().push(corruption),
        }
        self.lines.insert(format!("{kind:20} {name:20} {corruption:10} {}", if is_found { "found" } else { "missed" }));
    }

    /// Asserts that `listed` contains exactly the attributes with missed corruptions.
    pub fn assert_missed(&self, listed: &[Missed]) {
        let listed: BTreeSet<(String, String)> =
            listed.iter().map(|(kind, name, _)| ((*kind).to_owned(), (*name).to_owned())).collect();
        let unlisted: Vec<_> = self.missed.iter().filter(|(key, _)| !listed.contains(key)).collect();
        let unused: Vec<_> = listed.iter().filter(|key| !self.missed.contains_key(key)).collect();
        let lines = self.lines.iter().fold(String::new(), |lines, line| lines + line + "\n");
        assert!(
            unlisted.is_empty() && unused.is_empty(),
            "not listed: {unlisted:?}\nalways found: {unused:?}\n{lines}"
        );
    }
}
