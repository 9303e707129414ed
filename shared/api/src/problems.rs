//! The 404 problems of this API, and the problems of erased accounts.

use rest::Problem;

/// 409: the erasure of the account was requested, so it cannot be changed.
pub fn account_is_being_erased() -> Problem {
    Problem::conflict("the account is being erased, and can no longer be changed")
}

/// 410: the account was erased.
pub fn account_was_erased() -> Problem {
    Problem::item_removed("the account was erased; no account can have its id again")
}

/// 404: the account has no such subscription.
pub fn subscription_not_found() -> Problem {
    Problem::not_found("there is no such subscription")
}

/// 404: the account has no such receipt.
pub fn receipt_not_found() -> Problem {
    Problem::not_found("there is no such receipt, or it has expired")
}

/// 404: there is no such payment method setup.
pub fn setup_not_found() -> Problem {
    Problem::not_found("there is no such payment method setup, or it is no longer stored")
}

/// 404: there is no such card link (the link in a mail to enter a card for an owed payment).
pub fn card_link_not_found() -> Problem {
    Problem::not_found("this link does not exist, or has expired")
}

/// 404: there is no such webhook endpoint.
pub fn endpoint_not_found() -> Problem {
    Problem::not_found("there is no such webhook endpoint")
}

/// 404: there is no such delivery to the webhook endpoint.
pub fn delivery_not_found() -> Problem {
    Problem::not_found("there is no such delivery to this endpoint, or it is more than 30 days old")
}

/// 404: there is no such audit.
pub fn audit_not_found() -> Problem {
    Problem::not_found("there is no such audit, or it is more than 90 days old")
}
