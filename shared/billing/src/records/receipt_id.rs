//! The identifier of a receipt.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;

use crate::values::calendar::parse_date;
use crate::values::ids::{IdError, Sku, SubscriptionId};

/// The identifier of a receipt: due date, subscription and SKU, such as `2026-03-31.01JZXCVBNM0123456789ABCDEF.gold`.
///
/// ```
/// use billing::ReceiptId;
/// let id: ReceiptId = "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold".parse()?;
/// assert_eq!((id.due_on.to_string(), id.sku.as_str()), ("2026-03-31".to_owned(), "gold"));
/// assert!("2026-3-31.01JZXCVBNM0123456789ABCDEF.gold".parse::<ReceiptId>().is_err(), "one spelling only");
/// # Ok::<(), billing::IdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReceiptId {
    pub due_on: NaiveDate,
    pub subscription: SubscriptionId,
    pub sku: Sku,
}
crate::openapi_schema!(
    ReceiptId,
    "ReceiptId",
    crate::openapi::build_pattern_schema(
        "Due date, subscription and SKU.",
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
    )
);

impl FromStr for ReceiptId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut parts = text.splitn(3, '.');
        let (due_on, subscription, sku) = (parts.next(), parts.next(), parts.next());
        let due_on = due_on.and_then(|text| parse_date(text).ok());
        let id = due_on.zip(subscription).zip(sku).ok_or(IdError::Receipt)?;
        let ((due_on, subscription), sku) = id;
        let (subscription, sku) = (subscription.parse(), sku.parse());
        Ok(Self {
            due_on,
            subscription: subscription.map_err(|_| IdError::Receipt)?,
            sku: sku.map_err(|_| IdError::Receipt)?,
        })
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.due_on, self.subscription, self.sku)
    }
}
