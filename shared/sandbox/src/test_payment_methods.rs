//! Test payment methods with the same names as Stripe's test payment methods ("Test card numbers" and "ACH test
//! accounts" in Stripe's documentation).

use chrono::TimeDelta;

use billing::{Card, Decline, GatewayToken, PaymentStatus};

/// The result of a charge to a test payment method.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PaymentMethodBehaviour {
    Succeeds,
    /// The payment is processing for `time`, and then gets the status `then`.
    Processes {
        time: TimeDelta,
        then: PaymentStatus,
    },
    Declines(Decline),
}

/// How long a bank debit is processing.
const DEBIT_PROCESSING_TIME: TimeDelta = TimeDelta::days(2);

/// Returns the behaviour of `payment_method`; `None` if there is no such payment method.
pub fn behaviour_of_payment_method(payment_method: &GatewayToken) -> Option<PaymentMethodBehaviour> {
    let name = payment_method.as_str().strip_prefix("pm_")?;
    if let Some(account) = name.strip_prefix("usBankAccount_") {
        let then = match account {
            "success" => PaymentStatus::Succeeded,
            "insufficientFunds" => PaymentStatus::Declined(new_decline("insufficient_funds", false)),
            "accountClosed" => PaymentStatus::Declined(new_decline("account_closed", true)),
            "noAccount" => PaymentStatus::Declined(new_decline("no_account", true)),
            "debitNotAuthorized" => PaymentStatus::Declined(new_decline("debit_not_authorized", true)),
            _ => return None,
        };
        return Some(PaymentMethodBehaviour::Processes { time: DEBIT_PROCESSING_TIME, then });
    }
    let card = name.strip_prefix("card_")?;
    // Stripe's names of declined test cards usually contain the brand, but not always, so accept the names with and
    // without the brand.
    match card.strip_prefix("visa_").unwrap_or(card) {
        "visa" | "visa_debit" | "debit" | "mastercard" | "amex" | "discover" | "diners" | "jcb" | "unionpay" => {
            Some(PaymentMethodBehaviour::Succeeds)
        }
        "chargeDeclined" | "chargeCustomerFail" => {
            Some(PaymentMethodBehaviour::Declines(new_decline("card_declined", false)))
        }
        "chargeDeclinedInsufficientFunds" => {
            Some(PaymentMethodBehaviour::Declines(new_decline("insufficient_funds", false)))
        }
        "chargeDeclinedProcessingError" => {
            Some(PaymentMethodBehaviour::Declines(new_decline("processing_error", false)))
        }
        "chargeDeclinedVelocityLimitExceeded" => {
            Some(PaymentMethodBehaviour::Declines(new_decline("card_velocity_exceeded", false)))
        }
        "chargeDeclinedExpiredCard" => Some(PaymentMethodBehaviour::Declines(new_decline("expired_card", true))),
        "chargeDeclinedLostCard" => Some(PaymentMethodBehaviour::Declines(new_decline("lost_card", true))),
        "chargeDeclinedStolenCard" => Some(PaymentMethodBehaviour::Declines(new_decline("stolen_card", true))),
        "authenticationRequired" => {
            Some(PaymentMethodBehaviour::Declines(new_decline("authentication_required", false)))
        }
        "chargeDeclinedIncorrectCvc" => Some(PaymentMethodBehaviour::Declines(new_decline("incorrect_cvc", false))),
        _ => None,
    }
}

/// Returns the brand and the last four digits of the test card `payment_method`, from Stripe's table of test cards;
/// `None` if `payment_method` is not such a card.
pub fn card_of_payment_method(payment_method: &GatewayToken) -> Option<Card> {
    let name = payment_method.as_str().strip_prefix("pm_card_")?;
    let (brand, last4) = match name.split('_').next()? {
        "visa" => ("visa", "4242"),
        "mastercard" => ("mastercard", "4444"),
        "amex" => ("amex", "8431"),
        "discover" => ("discover", "9424"),
        "diners" => ("diners", "3237"),
        "jcb" => ("jcb", "0505"),
        "unionpay" => ("unionpay", "0005"),
        _ => return None,
    };
    Card::new(brand, last4).ok()
}

/// Returns a decline with this code, which is hard if `hard` is true.
fn new_decline(code: &str, hard: bool) -> Decline {
    Decline { code: code.to_owned(), hard }
}
