//! Expressions. Every attribute is written `#Name` and so never collides with a reserved word.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;

/// The `ExpressionAttributeNames` of `expressions`: each `#Name` in them stands for the attribute `Name`.
pub fn names(expressions: &[&str]) -> HashMap<String, String> {
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

/// An update of named attributes: only those that differ between two images of an item.
#[derive(Debug)]
pub struct Difference {
    pub update: String,
    pub values: HashMap<String, AttributeValue>,
}

/// What turns `before` into `after`; `None` when nothing does. A value that is gone is removed, never NULL or empty.
pub fn difference(before: &Item, after: Item) -> Option<Difference> {
    let mut removed: Vec<&str> = before.keys().filter(|name| !after.contains_key(*name)).map(String::as_str).collect();
    let mut set: Vec<(String, AttributeValue)> =
        after.into_iter().filter(|(name, value)| before.get(name) != Some(value)).collect();
    if set.is_empty() && removed.is_empty() {
        return None;
    }
    set.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    removed.sort_unstable();
    let mut update = String::new();
    for (place, (name, _)) in set.iter().enumerate() {
        update.extend([if place == 0 { "SET #" } else { ", #" }, name, " = :", name]);
    }
    for (place, name) in removed.into_iter().enumerate() {
        let begin = if place > 0 {
            ", #"
        } else if set.is_empty() {
            "REMOVE #"
        } else {
            " REMOVE #"
        };
        update.extend([begin, name]);
    }
    let values = set.into_iter().map(|(name, value)| (format!(":{name}"), value)).collect();
    Some(Difference { update, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_writes_what_changed_and_removes_what_is_gone() {
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let before = Item::from([("A".into(), s("1")), ("B".into(), s("2")), ("C".into(), s("3"))]);
        let after = Item::from([("A".into(), s("1")), ("B".into(), s("4")), ("D".into(), s("5"))]);
        let difference = difference(&before, after).unwrap();
        assert_eq!(difference.update, "SET #B = :B, #D = :D REMOVE #C");
        assert_eq!(difference.values, HashMap::from([(":B".into(), s("4")), (":D".into(), s("5"))]));
        assert!(super::difference(&before, before.clone()).is_none());
        assert_eq!(
            names(&["#B = :b AND (#C < :c)"]),
            HashMap::from([("#B".into(), "B".into()), ("#C".into(), "C".into())])
        );
    }
}
