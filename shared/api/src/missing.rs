//! The 404 problems of this API.

use rest::Problem;

/// 404: the account has no such subscription.
pub fn subscription() -> Problem {
    Problem::not_found("there is no such subscription")
}

/// 404: the account has no such receipt.
pub fn receipt() -> Problem {
    Problem::not_found("there is no such receipt, or it has expired")
}

/// 404: there is no such payment method setup.
pub fn setup() -> Problem {
    Problem::not_found("there is no such payment method setup, or it is no longer stored")
}

/// 404: there is no such webhook endpoint.
pub fn endpoint() -> Problem {
    Problem::not_found("there is no such webhook endpoint")
}

/// 404: there is no such delivery to the webhook endpoint.
pub fn delivery() -> Problem {
    Problem::not_found("there is no such delivery to this endpoint, or it is more than 30 days old")
}
