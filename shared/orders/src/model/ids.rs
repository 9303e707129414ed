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
/// has only one receipt for each due date, so each paid month has at most one order.
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
    /// The due date of the payment.
    pub due_on: NaiveDate,
    pub subscription: SubscriptionId,
}
billing::openapi_schema!(
    OrderId,
    "OrderId",
    billing::openapi::build_pattern_schema(
        "The identifier of an order: the due date of the payment, a dot, and the identifier of the subscription.",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}$"
    )
);

/// The error for a text that is not an order identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an order id such as 2026-03-31.01JZXCVBNM0123456789ABCDEF")]
pub struct OrderIdError;

impl FromStr for OrderId {
    type Err = OrderIdError;

    fn from_str(text: &str) -> Result<Self, OrderIdError> {
        let (due_on, subscription) = text.split_once('.').ok_or(OrderIdError)?;
        let id = Self {
            due_on: parse_date(due_on).map_err(|_| OrderIdError)?,
            subscription: subscription.parse().map_err(|_| OrderIdError)?,
        };
        // Accept only the canonical text, so that an order has exactly one key.
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
    fn order_id_rejects_texts_that_are_not_canonical() {
        for text in ["", "2027-01-31", "2027-1-31.01JZXCVBNM0123456789ABCDEF", "2027-02-30.01JZXCVBNM0123456789ABCDEF"]
        {
            assert_eq!(text.parse::<OrderId>(), Err(OrderIdError), "{text}");
        }
    }
}
