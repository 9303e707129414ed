//! The type of the differences that the audit of the order desk finds.

use orders::{AuditedNumber, NumberDifference};
use serde::Serialize;
use store::{FaultyItem, ItemFault, TableError};

use super::super::{BrokenInvariant, Invariant};

/// The expected value in the difference for an item that cannot be read.
const READABLE_ITEM: &str = "a readable item";

/// A difference that the audit of the order desk found: the stored value of a number or item is not the value that
/// follows from other records.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct OrderDifference {
    /// The violated invariant.
    pub check: Invariant,
    /// The name of the compared number or item, such as `house-blend in cork` or the id of an order.
    pub item: String,
    pub expected: String,
    pub found: String,
}

impl OrderDifference {
    /// Returns the difference for an item that cannot be read.
    pub fn unreadable(error: &TableError) -> Self {
        let (expected, found) = (READABLE_ITEM.to_owned(), error.to_string());
        let item = match error {
            TableError::Unreadable { key, .. } => key.to_string(),
            _ => "-".to_owned(),
        };
        Self { check: Invariant::Readable, item, expected, found }
    }
}

impl From<&FaultyItem> for OrderDifference {
    fn from(faulty: &FaultyItem) -> Self {
        let expected = match faulty.fault {
            ItemFault::Unreadable => READABLE_ITEM,
            ItemFault::Altered => "attributes that agree with each other and with the key",
            ItemFault::Expiry => "an item that expires in time",
            ItemFault::Relation => "relations that agree with the entity",
        };
        let BrokenInvariant { invariant, key, what } = faulty.into();
        Self { check: invariant, item: key, expected: expected.to_owned(), found: what }
    }
}

impl From<&NumberDifference> for OrderDifference {
    fn from(NumberDifference { number, expected, found }: &NumberDifference) -> Self {
        let check = match number {
            AuditedNumber::Stock { .. } => Invariant::Stock,
            AuditedNumber::TotalStock { .. } => Invariant::TotalStock,
            AuditedNumber::QuarterTotal { .. } => Invariant::QuarterTotal,
        };
        let text = |value: i64| number.format_value(value);
        let found = found.map_or_else(|| "none".to_owned(), text);
        Self { check, item: number.to_string(), expected: text(*expected), found }
    }
}

impl From<OrderDifference> for BrokenInvariant {
    fn from(OrderDifference { check, item, expected, found }: OrderDifference) -> Self {
        Self { invariant: check, key: item, what: format!("expected {expected}, found {found}") }
    }
}
