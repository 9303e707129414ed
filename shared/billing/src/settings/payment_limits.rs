//! The limits of the payment batch, which protect customers from a wrong import, a wrong price or an outage of the
//! gateway, and the limit of refunds by support. An operator can change the limits while the system runs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use crate::records::attempt::Attempt;
use crate::records::refund::RefundRefusal;
use crate::settings::ceilings::ChargeCeilings;
use crate::values::money::Money;
use crate::values::money_sums::MoneySums;

/// The text for a ceiling (a daily limit on charges) that does not exist.
const NO_CEILING: &str = "none";
/// The text for the limit of refunds by support if support may refund nothing.
const NO_REFUNDS: &str = "nothing";
/// The allowed values of the limit `max-charges`.
const ALLOWED_MAX_CHARGES: RangeInclusive<u32> = 0..=u32::MAX;
/// The allowed values of the limit `max-processing-days`.
const ALLOWED_PROCESSING_DAYS: RangeInclusive<u32> = 1..=60;
/// The allowed values of the limit `gateway-failures`.
const ALLOWED_GATEWAY_FAILURES: RangeInclusive<u32> = 1..=1_000;

/// The limits of the payment batch and of refunds. The table stores only the limits that differ from their defaults: the name of each
/// limit, and its value as text.
///
/// ```
/// use billing::{PaymentLimit, PaymentLimits};
/// let mut limits = PaymentLimits::default();
/// assert_eq!(limits.value_text(PaymentLimit::MaxSums), "none");
/// limits.set_limit(PaymentLimit::MaxSums, "EUR=100000.00,JPY=5000000")?;
/// assert_eq!(limits.value_text(PaymentLimit::MaxSums), "EUR=100000.00,JPY=5000000");
/// assert!(limits.set_limit(PaymentLimit::GatewayFailures, "0").is_err());
/// # Ok::<(), billing::PaymentLimitError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct PaymentLimits {
    /// The daily limits on the number and the total amount of charges. A run of the payment batch does not start if the
    /// charges of its day would exceed a limit.
    pub ceilings: ChargeCeilings,
    /// The number of days for which the bank may process a debit. After that time, runs count the payment's row of the
    /// index as failed.
    pub max_processing_days: u32,
    /// A run stops after this many consecutive requests to the gateway without a usable response.
    pub gateway_failures: u32,
    /// The largest sums that support may refund per day, by currency. Support may refund nothing in a currency that is
    /// absent.
    pub support_refunds: MoneySums,
}

/// The name of one limit, such as `max-charges`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum PaymentLimit {
    MaxCharges,
    MaxSums,
    MaxProcessingDays,
    GatewayFailures,
    SupportRefunds,
}

/// The reason why a limit cannot be set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PaymentLimitError {
    #[error("there is no payment limit {name:?}; the payment limits are {}", all_limit_names())]
    Unknown { name: String },
    #[error("{limit} must be {allowed}, not {text:?}")]
    Invalid { limit: PaymentLimit, allowed: String, text: String },
}

impl PaymentLimit {
    /// Returns the description of the limit, for operators.
    pub fn description(self) -> &'static str {
        match self {
            Self::MaxCharges => {
                "The largest number of charges per day; the payments of a day with more charges are not started"
            }
            Self::MaxSums => "The largest sums of charges per day; a day with a larger sum is not started",
            Self::MaxProcessingDays => {
                "Days for which the bank may process a debit; after that, runs report the row of the payment as failed"
            }
            Self::GatewayFailures => {
                "A run stops after this many consecutive requests to the gateway without a usable response"
            }
            Self::SupportRefunds => "The largest sums that all operators with the role support may refund per day",
        }
    }
}

impl PaymentLimits {
    /// Returns the value of `limit` as the text that [`PaymentLimits::set_limit`] reads. The text of a ceiling that does not
    /// exist is `none`.
    pub fn value_text(&self, limit: PaymentLimit) -> String {
        let ceiling = |text: Option<String>| text.unwrap_or_else(|| NO_CEILING.to_owned());
        match limit {
            PaymentLimit::MaxCharges => ceiling(self.ceilings.charges.map(|charges| charges.to_string())),
            PaymentLimit::MaxSums => ceiling(text_of_sums(&self.ceilings.sums)),
            PaymentLimit::MaxProcessingDays => self.max_processing_days.to_string(),
            PaymentLimit::GatewayFailures => self.gateway_failures.to_string(),
            PaymentLimit::SupportRefunds => {
                text_of_sums(&self.support_refunds).unwrap_or_else(|| NO_REFUNDS.to_owned())
            }
        }
    }

    /// Sets `limit` to the value in `text`. `none` removes a ceiling.
    ///
    /// # Errors
    /// [`PaymentLimitError::Invalid`], with the allowed values, if `text` is not an allowed value. In this case, the
    /// limits are not changed.
    pub fn set_limit(&mut self, limit: PaymentLimit, text: &str) -> Result<(), PaymentLimitError> {
        let invalid = |allowed: String| PaymentLimitError::Invalid { limit, allowed, text: text.to_owned() };
        let number = |range: &RangeInclusive<u32>, or_none: &str| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let (least, largest) = (range.start(), range.end());
            number.ok_or_else(|| invalid(format!("a whole number from {least} to {largest}{or_none}")))
        };
        let is_none = text == NO_CEILING;
        match limit {
            PaymentLimit::MaxCharges if is_none => self.ceilings.charges = None,
            PaymentLimit::MaxCharges => self.ceilings.charges = Some(number(&ALLOWED_MAX_CHARGES, ", or none")?.into()),
            PaymentLimit::MaxSums if is_none => self.ceilings.sums = Default::default(),
            PaymentLimit::MaxSums => {
                let allowed = "amounts by currency like EUR=100000.00,JPY=5000000, or none";
                self.ceilings.sums = text.parse().map_err(|_| invalid(allowed.to_owned()))?;
            }
            PaymentLimit::MaxProcessingDays => self.max_processing_days = number(&ALLOWED_PROCESSING_DAYS, "")?,
            PaymentLimit::GatewayFailures => self.gateway_failures = number(&ALLOWED_GATEWAY_FAILURES, "")?,
            PaymentLimit::SupportRefunds if text == NO_REFUNDS => self.support_refunds = MoneySums::default(),
            PaymentLimit::SupportRefunds => {
                let allowed = "amounts by currency like EUR=500.00,JPY=50000, or nothing";
                self.support_refunds = text.parse().map_err(|_| invalid(allowed.to_owned()))?;
            }
        }
        Ok(())
    }
}

impl PaymentLimits {
    /// Returns whether `attempt` has been open at `now` for longer than the bank may process a debit.
    pub fn is_attempt_late(&self, attempt: &Attempt, now: DateTime<Utc>) -> bool {
        now.signed_duration_since(attempt.claimed_at) > TimeDelta::days(self.max_processing_days.into())
    }

    /// Checks that support may refund `amount` on a day on which support has already refunded `refunded`. Returns the
    /// largest sum of the day.
    ///
    /// # Errors
    /// [`RefundRefusal::OverDailyLimit`] if the sum of the day would exceed the limit of the currency.
    pub fn check_support_refund(&self, refunded: Money, amount: Money) -> Result<Money, RefundRefusal> {
        let most = self.support_refunds.get_sum(amount.currency());
        let most = most.unwrap_or_else(|| Money::new(0, amount.currency()));
        match refunded.checked_add(amount) {
            Ok(sum) if sum.minor() <= most.minor() => Ok(most),
            _ => Err(RefundRefusal::OverDailyLimit { most, refunded }),
        }
    }
}

impl Default for PaymentLimits {
    fn default() -> Self {
        Self {
            ceilings: ChargeCeilings::default(),
            max_processing_days: 25,
            gateway_failures: 20,
            support_refunds: MoneySums::default(),
        }
    }
}

impl TryFrom<BTreeMap<String, String>> for PaymentLimits {
    type Error = PaymentLimitError;

    /// Reads the limits by their names. A limit that is absent has its default.
    fn try_from(texts: BTreeMap<String, String>) -> Result<Self, PaymentLimitError> {
        let mut limits = Self::default();
        for (name, text) in texts {
            let limit = name.parse().map_err(|_| PaymentLimitError::Unknown { name })?;
            limits.set_limit(limit, &text)?;
        }
        Ok(limits)
    }
}

impl From<PaymentLimits> for BTreeMap<String, String> {
    /// Returns the limits that differ from their defaults, by name. The other limits are not stored. So the stored
    /// limits need no change when a later version of Dueday adds a limit.
    fn from(limits: PaymentLimits) -> Self {
        let default = PaymentLimits::default();
        let texts = PaymentLimit::iter().map(|limit| (limit, limits.value_text(limit)));
        let changed = texts.filter(|(limit, text)| default.value_text(*limit) != *text);
        changed.map(|(limit, text)| (limit.to_string(), text)).collect()
    }
}

/// Returns `sums` as text like `EUR=100000.00,JPY=5000000`; `None` if there are none.
fn text_of_sums(sums: &MoneySums) -> Option<String> {
    let texts: Vec<String> = sums.iter().map(|sum| format!("{}={}", sum.currency().code(), sum.decimal())).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// Returns the names of all limits, separated by commas, for an error text.
fn all_limit_names() -> String {
    PaymentLimit::iter().map(|limit| limit.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_set_from_text_and_shown_as_the_same_text() {
        for (name, text) in [
            ("max-charges", "0"),
            ("max-charges", "none"),
            ("max-sums", "EUR=0.01"),
            ("max-sums", "none"),
            ("max-processing-days", "60"),
            ("gateway-failures", "1000"),
            ("support-refunds", "EUR=500.00,JPY=50000"),
            ("support-refunds", "nothing"),
        ] {
            let limit = name.parse().unwrap();
            let mut limits = PaymentLimits::default();
            limits.set_limit(limit, text).unwrap();
            assert_eq!(limits.value_text(limit), text);
            let stored = BTreeMap::from(limits.clone());
            assert_eq!(PaymentLimits::try_from(stored), Ok(limits), "{name}");
        }
    }

    #[test]
    fn an_invalid_value_changes_nothing_and_the_error_contains_the_allowed_values() {
        for (name, text, allowed) in [
            ("max-charges", "many", "a whole number from 0 to 4294967295, or none"),
            ("max-charges", "-1", "a whole number from 0 to 4294967295, or none"),
            ("max-sums", "EUR 5", "amounts by currency like EUR=100000.00,JPY=5000000, or none"),
            ("max-sums", "", "amounts by currency like EUR=100000.00,JPY=5000000, or none"),
            ("max-processing-days", "0", "a whole number from 1 to 60"),
            ("max-processing-days", "none", "a whole number from 1 to 60"),
            ("gateway-failures", "1001", "a whole number from 1 to 1000"),
            ("support-refunds", "none", "amounts by currency like EUR=500.00,JPY=50000, or nothing"),
        ] {
            let mut limits = PaymentLimits::default();
            let error = limits.set_limit(name.parse().unwrap(), text).unwrap_err();
            assert_eq!(error.to_string(), format!("{name} must be {allowed}, not {text:?}"));
            assert_eq!(limits, PaymentLimits::default());
        }
        let unknown = PaymentLimits::try_from(BTreeMap::from([("max-refunds".to_owned(), "1".to_owned())]));
        let expected = "there is no payment limit \"max-refunds\"; the payment limits are max-charges, max-sums, \
                        max-processing-days, gateway-failures, support-refunds";
        assert_eq!(unknown.unwrap_err().to_string(), expected);
    }

    #[test]
    fn support_may_refund_up_to_the_sum_of_the_day_in_a_listed_currency() {
        let mut limits = PaymentLimits::default();
        let eur = |minor| Money::new(minor, "EUR".parse().unwrap());
        let over = |most, refunded| Err(RefundRefusal::OverDailyLimit { most: eur(most), refunded: eur(refunded) });
        assert_eq!(limits.check_support_refund(eur(0), eur(1)), over(0, 0));
        limits.set_limit(PaymentLimit::SupportRefunds, "EUR=5.00").unwrap();
        for (refunded, amount, expected) in [
            (0, 500, Ok(eur(500))),
            (0, 501, over(500, 0)),
            (499, 1, Ok(eur(500))),
            (500, 1, over(500, 500)),
            (1, i64::MAX, over(500, 1)),
        ] {
            assert_eq!(limits.check_support_refund(eur(refunded), eur(amount)), expected, "{refunded} {amount}");
        }
        let yen = Money::new(1, "JPY".parse().unwrap());
        assert!(limits.check_support_refund(Money::new(0, yen.currency()), yen).is_err());
    }
}
