//! Whose trouble is a rejection? A gateway rejects a charge request without making a payment, either because of the
//! customer's payment method or because of the merchant: the amount, the currency, or the merchant's account.

use crate::subscriptions::subscription::Subscription;

/// The number of consecutive rejected attempts from which a rejection of the payment method counts as a soft decline,
/// which is retried according to the retry schedule.
const MAX_REJECTIONS: u32 = 3;

/// The codes of rejections that only the customer can solve, with another payment method ("Error codes" in Stripe's
/// documentation). The HTTP protocol of a merchant's own gateway uses the same codes (docs/gateways.md). Stripe's other
/// codes that begin with `payment_method_` are about the currency, the merchant's account (`payment_method_unactivated`:
/// the merchant has not activated this kind of payment method), or the availability of the gateway.
const PAYMENT_METHOD_CODES: [&str; 9] = [
    "payment_method_bank_account_blocked",
    "payment_method_billing_details_address_missing",
    "payment_method_customer_decline",
    "payment_method_microdeposit_failed",
    "payment_method_microdeposit_verification_attempts_exceeded",
    "payment_method_microdeposit_verification_timeout",
    "payment_method_provider_decline",
    "payment_method_unexpected_state",
    "resource_missing",
];

/// Returns whether a rejection with this code is about the customer's payment method. Every other rejection, also one
/// with an unknown code, is the merchant's to solve: it never becomes a decline, so no mail says that a bank declined
/// the payment, and no subscription ends because of it.
///
/// ```
/// use billing::is_rejection_of_payment_method;
/// assert!(is_rejection_of_payment_method("resource_missing"));
/// assert!(!is_rejection_of_payment_method("amount_too_small"));
/// ```
pub fn is_rejection_of_payment_method(code: &str) -> bool {
    PAYMENT_METHOD_CODES.contains(&code)
}

/// The codes of rejections that say nothing about the payment method, the price or the account: the gateway has no payment
/// of the attempt, or has refused its idempotency key.
const CODES_WITHOUT_CAUSE: [&str; 2] = ["unknown_to_gateway", "idempotency_key_in_use"];

/// Returns whether a rejection with this code has no cause that a person can remove. The next run tries again, and a person
/// is needed only if it happens again.
pub fn is_rejection_without_cause(code: &str) -> bool {
    CODES_WITHOUT_CAUSE.contains(&code)
}

impl Subscription {
    /// Returns whether the latest rejection, with the code `code`, counts as a soft decline: it is at least the third
    /// consecutive rejection, and about the payment method. The gateway would probably reject the request again on the
    /// next day, so the customer must give another payment method.
    pub fn is_rejection_counted_as_decline(&self, code: &str) -> bool {
        self.rejections >= MAX_REJECTIONS && is_rejection_of_payment_method(code)
    }
}
