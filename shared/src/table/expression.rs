//! Expressions. Every attribute is written `#Name` and so never collides with a reserved word.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;

/// The `ExpressionAttributeNames` of `expressions`: each `#Name` in them stands for the attribute `Name`.
pub(crate) fn names(expressions: &[&str]) -> HashMap<String, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    expressions
        .iter()
        .flat_map(|expression| expression.split('#').skip(1))
        .filter_map(|rest| rest.split(|c| !is_part(c)).next().filter(|name| !name.is_empty()))
        .map(|name| (format!("#{name}"), name.to_owned()))
        .collect()
}

/// An update of named attributes: only those that differ between two images of an item.
#[derive(Debug)]
pub(super) struct Difference {
    pub update: String,
    pub values: HashMap<String, AttributeValue>,
}

/// What turns `before` into `after`; `None` when nothing does. A value that is gone is removed, never NULL or empty.
pub(super) fn difference(before: &Item, after: &Item) -> Option<Difference> {
    let mut set: Vec<&String> =
        after.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(n, _)| n).collect();
    let mut removed: Vec<&String> = before.keys().filter(|name| !after.contains_key(*name)).collect();
    if set.is_empty() && removed.is_empty() {
        return None;
    }
    set.sort();
    removed.sort();
    let mut clauses = Vec::new();
    if !set.is_empty() {
        let set: Vec<String> = set.iter().map(|name| format!("#{name} = :{name}")).collect();
        clauses.push(format!("SET {}", set.join(", ")));
    }
    if !removed.is_empty() {
        let removed: Vec<String> = removed.iter().map(|name| format!("#{name}")).collect();
        clauses.push(format!("REMOVE {}", removed.join(", ")));
    }
    let values = set.into_iter().map(|name| (format!(":{name}"), after[name].clone())).collect();
    Some(Difference { update: clauses.join(" "), values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_writes_what_changed_and_removes_what_is_gone() {
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let before = Item::from([("A".into(), s("1")), ("B".into(), s("2")), ("C".into(), s("3"))]);
        let after = Item::from([("A".into(), s("1")), ("B".into(), s("4")), ("D".into(), s("5"))]);
        let difference = difference(&before, &after).unwrap();
        assert_eq!(difference.update, "SET #B = :B, #D = :D REMOVE #C");
        assert_eq!(difference.values, HashMap::from([(":B".into(), s("4")), (":D".into(), s("5"))]));
        assert!(super::difference(&before, &before).is_none());
        assert_eq!(
            names(&["#B = :b AND (#C < :c)"]),
            HashMap::from([("#B".into(), "B".into()), ("#C".into(), "C".into())])
        );
    }
}
