//! Stripe's decline codes that are hard declines ("Stripe decline codes" in Stripe's documentation; for bank debits,
//! the section "Failed payments" of each payment method).

use billing::Decline;

/// The codes after which another charge to the same payment method is useless: the card or account is closed, does not
/// support the payment, or the bank or the customer has forbidden it. All other codes are soft declines: a later charge
/// may succeed.
const HARD_DECLINE_CODES: [&str; 29] = [
    "account_closed",
    "bank_account_restricted",
    "bank_account_unusable",
    "card_not_supported",
    "currency_not_supported",
    "debit_not_authorized",
    // A decline code of older versions of Stripe's API, which was replaced by the advice code of the same name.
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

/// The advice code of a decline after which the bank does not accept another charge ("Declines" in Stripe's
/// documentation, on advice codes). Card networks take a fee for each further charge.
const DO_NOT_TRY_AGAIN: &str = "do_not_try_again";

/// Returns the decline with Stripe's `code`. The decline is hard if the code, or the advice code `advice`, means that
/// another charge is useless.
pub fn classify_decline(code: &str, advice: Option<&str>) -> Decline {
    Decline { code: code.to_owned(), hard: HARD_DECLINE_CODES.contains(&code) || advice == Some(DO_NOT_TRY_AGAIN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decline_is_hard_only_if_another_charge_is_useless() {
        assert!(HARD_DECLINE_CODES.is_sorted());
        for (code, hard) in [
            ("insufficient_funds", false),
            ("generic_decline", false),
            ("do_not_honor", false),
            ("processing_error", false),
            ("card_velocity_exceeded", false),
            // This decline is soft: after authentication, the customer can pay with the same card.
            ("authentication_required", false),
            ("an_unknown_code", false),
            ("expired_card", true),
            ("stolen_card", true),
            ("account_closed", true),
            ("debit_not_authorized", true),
        ] {
            assert_eq!(classify_decline(code, None), Decline { code: code.to_owned(), hard }, "{code}");
            assert_eq!(classify_decline(code, Some("try_again_later")).hard, hard, "{code}");
            assert!(classify_decline(code, Some("do_not_try_again")).hard, "{code}");
        }
    }
}
