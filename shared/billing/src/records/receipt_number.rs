//! The number of a receipt, which people read, print and type.

use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use sha2::{Digest as _, Sha256};

use crate::records::receipt_id::ReceiptId;
use crate::values::calendar::Period;
use crate::values::ids::{AccountId, IdError, SubscriptionId};

/// The characters of receipt numbers: Crockford's base 32, which has no characters that look alike.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// A code of twelve characters (60 bits of a hash) that identifies a subscription in receipt numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubscriptionCode([u8; 12]);

/// The number of a receipt, such as `202603-7KQ29M-4T3XWA`: the month that the payment paid, and the code of the
/// subscription.
///
/// ```
/// use billing::ReceiptNumber;
/// let number: ReceiptNumber = "202603-7kq29m-4t3xwa".parse()?;
/// assert_eq!(number.to_string(), "202603-7KQ29M-4T3XWA", "small letters are accepted");
/// assert_eq!("202603-7KQ29M-4T3XWO".parse::<ReceiptNumber>()?.to_string(), "202603-7KQ29M-4T3XW0", "O is read as 0");
/// assert!("202613-7KQ29M-4T3XWA".parse::<ReceiptNumber>().is_err(), "there is no month 13");
/// # Ok::<(), billing::IdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReceiptNumber {
    pub period: Period,
    pub code: SubscriptionCode,
}

/// A reference to a receipt of an account: the id or the number of the receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiptReference {
    Id(ReceiptId),
    Number(ReceiptNumber),
}
crate::openapi_schema!(
    ReceiptReference,
    "ReceiptReference",
    crate::openapi::build_pattern_schema(
        "The id of a receipt (due date, subscription and SKU), or its number.",
        "^([0-9]{4}-[0-9]{2}-[0-9]{2}\\.[0-7][0-9A-HJKMNP-TV-Z]{25}\\.[A-Za-z0-9][A-Za-z0-9._-]{0,63}|[0-9]{6}-[0-9A-Za-z]{6}-[0-9A-Za-z]{6})$"
    )
);

impl SubscriptionCode {
    /// Computes the code of a subscription.
    pub fn compute(account: &AccountId, subscription: SubscriptionId) -> Self {
        let digest = Sha256::digest(format!("{account}\n{subscription}"));
        let mut code = [0; 12];
        for (character, byte) in code.iter_mut().zip(digest) {
            *character = ALPHABET[usize::from(byte % 32)];
        }
        Self(code)
    }
}

impl fmt::Display for SubscriptionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| fmt::Write::write_char(f, char::from(*byte)))
    }
}

impl ReceiptNumber {
    /// Returns the number of the receipt for the payment of `subscription` that was due on `due_on`.
    pub fn new(account: &AccountId, subscription: SubscriptionId, due_on: NaiveDate) -> Self {
        Self { period: Period::from_day(due_on), code: SubscriptionCode::compute(account, subscription) }
    }
}

impl fmt::Display for ReceiptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (month, code) = (self.period.to_string().replace('-', ""), self.code.to_string());
        let (first, second) = code.split_at(6);
        write!(f, "{month}-{first}-{second}")
    }
}

impl FromStr for ReceiptNumber {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let mut parts = text.split('-');
        let (Some(month), Some(first), Some(second), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(IdError::ReceiptNumber);
        };
        if (month.len(), first.len(), second.len()) != (6, 6, 6) || !month.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(IdError::ReceiptNumber);
        }
        let (year, month) = month.split_at(4);
        let period = format!("{year}-{month}").parse().map_err(|_| IdError::ReceiptNumber)?;
        let mut code = [0; 12];
        for (character, byte) in code.iter_mut().zip(first.bytes().chain(second.bytes())) {
            // Crockford's base 32 reads `O` as 0, and `I` and `L` as 1, because people confuse these letters with
            // digits.
            let read = match byte.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                other => other,
            };
            *character = ALPHABET.iter().copied().find(|known| *known == read).ok_or(IdError::ReceiptNumber)?;
        }
        Ok(Self { period, code: SubscriptionCode(code) })
    }
}

impl fmt::Display for ReceiptReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for ReceiptReference {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.parse().map(Self::Number);
        number.or_else(|_| text.parse().map(Self::Id)).map_err(|_| IdError::ReceiptReference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_numbers_of_a_subscription_differ_only_in_the_month() {
        let account: AccountId = "acme".parse().unwrap();
        let code = SubscriptionCode::compute(&account, "01JZXCVBNM0123456789ABCDEF".parse().unwrap());
        let number = |month: &str| ReceiptNumber { period: month.parse().unwrap(), code }.to_string();
        assert_eq!(number("2026-03").replace("202603", "202604"), number("2026-04"));
        assert_eq!(number("2026-03").parse(), Ok(ReceiptNumber { period: "2026-03".parse().unwrap(), code }));
        let other = SubscriptionCode::compute(&"acme2".parse().unwrap(), "01JZXCVBNM0123456789ABCDEF".parse().unwrap());
        assert_ne!(code, other, "the same subscription id in another account");
    }

    #[test]
    fn malformed_receipt_numbers_are_refused() {
        for text in [
            "",
            "202603",
            "202603-7KQ29M",
            "202603-7KQ29M-4T3XWA-",
            "202603-7KQ29-M4T3XWA",
            "20260A-7KQ29M-4T3XWA",
            "202603-7KQ29M-4T3XWU",
            "202603-7KQ29M-4T3XÉ",
            "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold",
        ] {
            assert_eq!(text.parse::<ReceiptNumber>(), Err(IdError::ReceiptNumber), "{text:?}");
        }
    }

    #[test]
    fn receipt_reference_is_a_receipt_number_or_a_receipt_id() {
        let id = "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold";
        assert_eq!(id.parse(), Ok(ReceiptReference::Id(id.parse().unwrap())));
        let number = "202603-7KQ29M-4T3XWA";
        assert_eq!(number.parse(), Ok(ReceiptReference::Number(number.parse().unwrap())));
        assert_eq!("gold".parse::<ReceiptReference>(), Err(IdError::ReceiptReference));
    }
}
