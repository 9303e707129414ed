//! DynamoDB expressions. Each expression contains the placeholder `#Name` instead of the attribute name `Name`, so that
//! no attribute name conflicts with a word that DynamoDB reserves.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;

/// Returns the `ExpressionAttributeNames` of `expressions`: each placeholder `#Name` means the attribute `Name`.
pub fn collect_attribute_names(expressions: &[&str]) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for expression in expressions {
        for (at, _) in expression.match_indices('#') {
            let rest = &expression[at + 1..];
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (alias, name) = (&expression[at..at + 1 + len], &rest[..len]);
            if len > 0 && !names.contains_key(alias) {
                names.insert(alias.to_owned(), name.to_owned());
            }
        }
    }
    names
}

/// An update expression, with its values, for the attributes that differ between two versions of an item.
#[derive(Debug)]
pub struct ItemDifference {
    pub update: String,
    pub values: HashMap<String, AttributeValue>,
}

/// Returns the update that changes the item `before` to `after`; `None` if the two items are equal. The update removes
/// an attribute that `after` does not have, instead of setting the attribute to NULL or to an empty value.
pub fn build_difference(before: &Item, after: Item) -> Option<ItemDifference> {
    let mut removed: Vec<&str> = before.keys().filter(|name| !after.contains_key(*name)).map(String::as_str).collect();
    let mut set: Vec<(String, AttributeValue)> =
        after.into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect();
    if set.is_empty() && removed.is_empty() {
        return None;
    }
    set.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    removed.sort_unstable();
    let mut update = String::new();
    for (place, (name, _)) in set.iter().enumerate() {
        update.extend([if place == 0 { "SET #" } else { ", #" }, name, " = :", name]);
    }
    for (place, name) in removed.into_iter().enumerate() {
        let separator = if place > 0 {
            ", #"
        } else if set.is_empty() {
            "REMOVE #"
        } else {
            " REMOVE #"
        };
        update.extend([separator, name]);
    }
    let values = set.into_iter().map(|(name, value)| (format!(":{name}"), value)).collect();
    Some(ItemDifference { update, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_difference_sets_changed_attributes_and_removes_missing_attributes() {
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let before = Item::from([("A".into(), s("1")), ("B".into(), s("2")), ("C".into(), s("3"))]);
        let after = Item::from([("A".into(), s("1")), ("B".into(), s("4")), ("D".into(), s("5"))]);
        let difference = build_difference(&before, after).unwrap();
        assert_eq!(difference.update, "SET #B = :B, #D = :D REMOVE #C");
        assert_eq!(difference.values, HashMap::from([(":B".into(), s("4")), (":D".into(), s("5"))]));
        assert!(super::build_difference(&before, before.clone()).is_none());
        assert_eq!(
            collect_attribute_names(&["#B = :b AND (#C < :c)"]),
            HashMap::from([("#B".into(), "B".into()), ("#C".into(), "C".into())])
        );
    }
}
