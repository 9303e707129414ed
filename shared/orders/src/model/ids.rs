//! Identifiers. The character that separates the parts of a table key cannot occur in any of them.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use billing::{IdError, SubscriptionId, identifier, parse_date};

identifier!(
    /// The merchant's own identifier of a product, written as an account's.
    ProductId
);
identifier!(
    /// The merchant's own identifier of a warehouse, written as an account's.
    WarehouseId
);
identifier!(
    /// The merchant's own identifier of an employee, written as an account's.
    EmployeeId
);
identifier!(
    /// The merchant's own identifier of a job, written as an account's.
    JobId
);
identifier!(
    /// The merchant's own identifier of a department, written as an account's.
    DepartmentId
);
identifier!(
    /// The merchant's own identifier of a location, written as an account's.
    LocationId
);
identifier!(
    /// The merchant's own identifier of a region or a country, written as an account's.
    PlaceId
);

/// An order's identifier: that of the receipt of the month which it is for. One paid month can have one order.
///
/// ```
/// use orders::OrderId;
/// let id: OrderId = "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse()?;
/// assert_eq!(id.to_string(), "2027-01-31.01JZXCVBNM0123456789ABCDEF");
/// # Ok::<(), orders::OrderIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderId {
    /// The due date that was paid.
    pub due_on: NaiveDate,
    pub subscription: SubscriptionId,
}
billing::openapi_schema!(
    OrderId,
    "OrderId",
    billing::openapi::pattern(
        "The due date that was paid, and the subscription.",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    )
);

/// What was given is no order's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an order's id, like 2026-03-31.01JZXCVBNM0123456789ABCDEF")]
pub struct OrderIdError;

impl FromStr for OrderId {
    type Err = OrderIdError;

    fn from_str(text: &str) -> Result<Self, OrderIdError> {
        let (due_on, subscription) = text.split_once('.').ok_or(OrderIdError)?;
        let id = Self {
            due_on: parse_date(due_on).map_err(|_| OrderIdError)?,
            subscription: subscription.parse().map_err(|_| OrderIdError)?,
        };
        // One order has one spelling.
        if id.to_string() == text { Ok(id) } else { Err(OrderIdError) }
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.due_on, self.subscription)
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
    fn order_id_has_one_spelling() {
        for text in ["", "2027-01-31", "2027-1-31.01JZXCVBNM0123456789ABCDEF", "2027-02-30.01JZXCVBNM0123456789ABCDEF"]
        {
            assert_eq!(text.parse::<OrderId>(), Err(OrderIdError), "{text}");
        }
    }
}
