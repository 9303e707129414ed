//! Why payments are declined, by Stripe's codes ("Stripe decline codes" in Stripe's documentation; for bank debits, "Failed
//! payments" of each of them).

use crate::billing::Decline;

/// The codes after which the same payment method is not worth another try: the card or account is gone, is not for this, or the
/// bank or the customer has forbidden it. All others are soft: the customer may have money tomorrow, or the bank another mind.
const HARD: [&str; 28] = [
    "account_closed",
    "bank_account_restricted",
    "bank_account_unusable",
    "card_not_supported",
    "currency_not_supported",
    "debit_not_authorized",
    "expired_card",
    "fraudulent",
    "incorrect_number",
    "invalid_account",
    "invalid_expiry_month",
    "invalid_expiry_year",
    "invalid_number",
    "lost_card",
    "merchant_blacklist",
    "new_account_information_available",
    "no_account",
    "not_permitted",
    "pickup_card",
    "restricted_card",
    "revocation_of_all_authorizations",
    "revocation_of_authorization",
    "security_violation",
    "service_not_allowed",
    "stolen_card",
    "stop_payment_order",
    "testmode_decline",
    "transaction_not_allowed",
];

/// The decline that Stripe's `code` stands for.
pub fn decline(code: &str) -> Decline {
    Decline { code: code.to_owned(), hard: HARD.contains(&code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_is_given_up_only_when_it_can_never_be_charged_again() {
        assert!(HARD.is_sorted());
        for (code, hard) in [
            ("insufficient_funds", false),
            ("generic_decline", false),
            ("do_not_honor", false),
            ("processing_error", false),
            ("card_velocity_exceeded", false),
            // The customer has to come back, with the same card.
            ("authentication_required", false),
            ("a_code_of_tomorrow", false),
            ("expired_card", true),
            ("stolen_card", true),
            ("account_closed", true),
            ("debit_not_authorized", true),
        ] {
            assert_eq!(decline(code), Decline { code: code.to_owned(), hard }, "{code}");
        }
    }
}
