//! What is not there, or is not the caller's to see.

use rest::Problem;

/// 404: no such subscription in the account.
pub fn subscription() -> Problem {
    Problem::not_found("there is no such subscription")
}

/// 404: no such receipt in the account.
pub fn receipt() -> Problem {
    Problem::not_found("there is no such receipt, or it has expired")
}

/// 404: no such setup of a payment method.
pub fn setup() -> Problem {
    Problem::not_found("there is no such payment method setup, or it was too long ago")
}

/// 404: no such webhook endpoint.
pub fn endpoint() -> Problem {
    Problem::not_found("there is no such webhook endpoint")
}

/// 404: no such delivery to the webhook endpoint.
pub fn delivery() -> Problem {
    Problem::not_found("no such event was to be delivered to this endpoint, or it was more than 30 days ago")
}
