//! Why payments are declined, by Stripe's codes ("Stripe decline codes" in Stripe's documentation; for bank debits, "Failed
//! payments" of each of them).

use billing::Decline;

/// The codes after which the same payment method is not worth another try: the card or account is gone, is not for this, or the
/// bank or the customer has forbidden it. All others are soft: the customer may have money tomorrow, or the bank another mind.
const HARD: [&str; 29] = [
    "account_closed",
    "bank_account_restricted",
    "bank_account_unusable",
    "card_not_supported",
    "currency_not_supported",
    "debit_not_authorized",
    // The decline code of older versions of the API; an advice code has replaced it.
    "do_not_try_again",
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

/// The advice code of a decline after which the bank wants no other try ("Declines" in Stripe's documentation, on advice codes): card
/// networks charge fees for one.
const FINAL_ADVICE: &str = "do_not_try_again";

/// Returns the decline with Stripe's `code`, which is hard if the code or the bank's `advice` says that trying again is useless.
pub fn decline(code: &str, advice: Option<&str>) -> Decline {
    Decline { code: code.to_owned(), hard: HARD.contains(&code) || advice == Some(FINAL_ADVICE) }
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
            assert_eq!(decline(code, None), Decline { code: code.to_owned(), hard }, "{code}");
            assert_eq!(decline(code, Some("try_again_later")).hard, hard, "{code}");
            assert!(decline(code, Some("do_not_try_again")).hard, "{code}");
        }
    }
}
