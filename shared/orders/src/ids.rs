//! Identifiers of the order desk. None of them can contain `#`, the character that separates the parts of a table key.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use billing::{IdError, SubscriptionId, identifier, parse_date};

identifier!(
    /// The merchant's own identifier of a product. It has the same format as an account identifier.
    ProductId
);
identifier!(
    /// The merchant's own identifier of a warehouse. It has the same format as an account identifier.
    WarehouseId
);
identifier!(
    /// The merchant's own identifier of an employee. It has the same format as an account identifier.
    EmployeeId
);
identifier!(
    /// The merchant's own identifier of a job. It has the same format as an account identifier.
    JobId
);
identifier!(
    /// The merchant's own identifier of a department. It has the same format as an account identifier.
    DepartmentId
);
identifier!(
    /// The merchant's own identifier of a location. It has the same format as an account identifier.
    LocationId
);
identifier!(
    /// The merchant's own identifier of a region or a country. It has the same format as an account identifier.
    PlaceId
);

/// The identifier of an order. It consists of the due date and the subscription of the order's payment. A subscription
/// has only one receipt for each due date, so each paid month has at most one main order. The id of a follow-up order
/// also contains its part number, from 2 to 99. The main order has the part number 1, which its id does not contain.
///
/// ```
/// use orders::OrderId;
/// let main: OrderId = "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse()?;
/// assert_eq!(main.to_string(), "2027-01-31.01JZXCVBNM0123456789ABCDEF");
/// let follow_up: OrderId = "2027-01-31.01JZXCVBNM0123456789ABCDEF.2".parse()?;
/// assert_eq!((follow_up.part_number(), follow_up.main_order()), (2, main));
/// # Ok::<(), orders::OrderIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderId {
    /// The due date of the payment.
    pub due_on: NaiveDate,
    pub subscription: SubscriptionId,
    /// 1 for the main order, from 2 to [`MAX_PART`] for a follow-up order.
    part: u8,
}

/// The largest part number of an order: a paid month has at most 98 follow-up orders.
pub const MAX_PART: u8 = 99;
/// The part number of the main order of a paid month.
const MAIN_PART: u8 = 1;

billing::openapi_schema!(
    OrderId,
    "OrderId",
    billing::openapi::build_pattern_schema(
        "The identifier of an order: the due date of the payment, a dot, and the identifier of the subscription. The \
            identifier of a follow-up order ends with a dot and its part number, from 2 to 99.",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}(\\.([2-9]|[1-9][0-9]))?$"
    )
);

/// The error for a text that is not an order identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an order id such as 2026-03-31.01JZXCVBNM0123456789ABCDEF")]
pub struct OrderIdError;

impl OrderId {
    /// Returns the id of the main order of the paid month of `subscription` whose payment was due on `due_on`.
    pub fn of_month(due_on: NaiveDate, subscription: SubscriptionId) -> Self {
        Self { due_on, subscription, part: MAIN_PART }
    }

    /// Returns the id of the main order of the same paid month.
    pub fn main_order(self) -> Self {
        Self { part: MAIN_PART, ..self }
    }

    /// Returns whether this is the id of the main order of a paid month.
    pub fn is_main_order(self) -> bool {
        self.part == MAIN_PART
    }

    /// Returns the part number: 1 for the main order, from 2 to [`MAX_PART`] for a follow-up order.
    pub fn part_number(self) -> u8 {
        self.part
    }

    /// Returns the id of the follow-up order number `number` of the same paid month. The first follow-up order has the number 1
    /// and the part number 2. Returns `None` if `number` is 0, or if the part number would be larger than [`MAX_PART`].
    pub fn follow_up_id(self, number: u8) -> Option<Self> {
        let part =
            number.checked_add(MAIN_PART).filter(|part| (MAIN_PART.saturating_add(1)..=MAX_PART).contains(part))?;
        Some(Self { part, ..self })
    }
}

impl FromStr for OrderId {
    type Err = OrderIdError;

    fn from_str(text: &str) -> Result<Self, OrderIdError> {
        let (due_on, rest) = text.split_once('.').ok_or(OrderIdError)?;
        let (subscription, part) = match rest.split_once('.') {
            None => (rest, MAIN_PART),
            Some((subscription, part)) => (subscription, part.parse().map_err(|_| OrderIdError)?),
        };
        if !(MAIN_PART..=MAX_PART).contains(&part) {
            return Err(OrderIdError);
        }
        let id = Self {
            due_on: parse_date(due_on).map_err(|_| OrderIdError)?,
            subscription: subscription.parse().map_err(|_| OrderIdError)?,
            part,
        };
        // Accept only the canonical text, so that an order has exactly one key.
        if id.to_string() == text { Ok(id) } else { Err(OrderIdError) }
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.due_on, self.subscription)?;
        if self.is_main_order() { Ok(()) } else { write!(f, ".{}", self.part) }
    }
}

impl TryFrom<String> for OrderId {
    type Error = OrderIdError;

    fn try_from(text: String) -> Result<Self, OrderIdError> {
        text.parse()
    }
}

impl From<OrderId> for String {
    fn from(id: OrderId) -> String {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_id_rejects_texts_that_are_not_canonical() {
        for text in ["", "2027-01-31", "2027-1-31.01JZXCVBNM0123456789ABCDEF", "2027-02-30.01JZXCVBNM0123456789ABCDEF"]
        {
            assert_eq!(text.parse::<OrderId>(), Err(OrderIdError), "{text}");
        }
    }

    #[test]
    fn part_number_of_a_follow_up_is_from_2_to_99_and_has_one_text() {
        let main: OrderId = "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap();
        for (part, expected) in [
            (".2", Some(2)),
            (".9", Some(9)),
            (".10", Some(10)),
            (".99", Some(99)),
            (".0", None),
            (".1", None),
            (".02", None),
            (".+2", None),
            (".-2", None),
            (".100", None),
            (".257", None),
            (".", None),
            (".2.", None),
            (".2.3", None),
            (".2 ", None),
        ] {
            let text = format!("{main}{part}");
            let parsed = text.parse::<OrderId>().ok();
            assert_eq!(parsed.map(OrderId::part_number), expected, "{text}");
            if let Some(id) = parsed {
                assert_eq!((id.to_string(), id.main_order(), id.is_main_order()), (text, main, false));
                assert_eq!(main.follow_up_id(id.part_number() - 1), Some(id));
            }
        }
        assert!(main.is_main_order() && main.part_number() == 1);
        // The columns are: the number of the follow-up, and its part number.
        for (number, part) in [(0, None), (1, Some(2)), (98, Some(99)), (99, None), (255, None)] {
            assert_eq!(main.follow_up_id(number).map(OrderId::part_number), part, "{number}");
        }
    }
}
