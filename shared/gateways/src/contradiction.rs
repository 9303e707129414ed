//! Responses that contradict themselves: whatever they say, the outcome is unknown, and the attempt is looked up.

use serde_json::Value;

use super::{ChargeAnswer, GatewayError};
use billing::{Payment, PaymentStatus};

impl ChargeAnswer {
    /// Returns the answer, or an unknown outcome if it says `succeeded` and its payment has another status.
    pub fn unless_contradictory(self) -> Self {
        match self {
            Self::Succeeded(payment) if payment.status != PaymentStatus::Succeeded => {
                Self::Unknown { reason: format!("it says succeeded, and {} is {}", payment.id, name(&payment.status)) }
            }
            other => other,
        }
    }

    /// Reads the answer of a gateway from JSON. An answer whose outcome contradicts the status that it carries beside it is an unknown
    /// outcome.
    ///
    /// # Errors
    /// [`GatewayError::Unknown`]: it is not an answer.
    pub(super) fn from_json(json: Value) -> Result<Self, GatewayError> {
        let unknown = |reason: String| GatewayError::Unknown { reason };
        // Serde ignores the fields that an outcome does not have, and so would pass over the status of a payment that was declined.
        let outcome = ["declined", "rejected", "processing"].into_iter().find(|outcome| json.get(outcome).is_some());
        if let Some(outcome) = outcome {
            let carried = ["/status", "/payment/status"].iter().find_map(|path| json[outcome].pointer(path));
            if let Some(status) = carried.filter(|status| !agrees(outcome, status)) {
                return Err(unknown(format!("it says {outcome}, and its status is {status}")));
            }
        }
        let answer: Self = serde_json::from_value(json).map_err(|error| unknown(error.to_string()))?;
        Ok(answer.unless_contradictory())
    }
}

/// Whether `status`, as the wire format writes it, may stand beside `outcome`. A rejected request has made no payment at all.
fn agrees(outcome: &str, status: &Value) -> bool {
    status.as_str() == Some(outcome) || status.get(outcome).is_some()
}

fn name(status: &PaymentStatus) -> &'static str {
    match status {
        PaymentStatus::Succeeded => "succeeded",
        PaymentStatus::Processing => "processing",
        PaymentStatus::Declined(_) => "declined",
    }
}

/// Returns the list of a customer's payments, unless it shows one payment in two ways.
///
/// # Errors
/// [`GatewayError::Unknown`]: it does.
pub(super) fn unless_contradictory(payments: Vec<Payment>) -> Result<Vec<Payment>, GatewayError> {
    for (n, payment) in payments.iter().enumerate() {
        let twice = payments.iter().skip(n + 1).find(|other| other.id == payment.id && *other != payment);
        if twice.is_some() {
            return Err(GatewayError::Unknown { reason: format!("the list shows {} in two ways", payment.id) });
        }
    }
    Ok(payments)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payment(status: &Value) -> Value {
        json!({
            "id": "pay_1", "account": "acme", "subscription": "01JZXCVBNM0123456789ABCDEG", "due_on": "2027-01-31", "attempt_no": 1,
            "amount": 1299, "currency": "EUR", "status": status, "created_at": "2027-01-31T06:00:00Z",
        })
    }

    #[test]
    fn answer_that_contradicts_its_status_is_an_unknown_outcome() {
        let decline = |status: Value| json!({"declined": {"code": "lost_card", "hard": true, "status": status}});
        for (answer, is_known) in [
            (json!({"succeeded": payment(&json!("succeeded"))}), true),
            (json!({"succeeded": payment(&json!("processing"))}), false),
            (json!({"succeeded": payment(&json!({"declined": {"code": "x", "hard": false}}))}), false),
            (json!({"declined": {"code": "lost_card", "hard": true}}), true),
            (decline(json!("declined")), true),
            (decline(json!({"declined": {"code": "lost_card", "hard": true}})), true),
            (decline(json!("succeeded")), false),
            (decline(json!("processing")), false),
            (json!({"rejected": {"code": "no_such_card"}}), true),
            (json!({"rejected": {"code": "no_such_card", "status": "succeeded"}}), false),
            (json!({"rejected": {"code": "no_such_card", "payment": payment(&json!("processing"))}}), false),
            (json!("processing"), true),
            (json!({"declined": {"code": "x", "hard": true}, "succeeded": payment(&json!("succeeded"))}), false),
            (json!("paid"), false),
        ] {
            let read = ChargeAnswer::from_json(answer.clone());
            let is_unknown = matches!(read, Err(_) | Ok(ChargeAnswer::Unknown { .. }));
            assert_eq!(is_unknown, !is_known, "{answer}: {read:?}");
        }
    }

    #[test]
    fn list_that_shows_a_payment_in_two_ways_is_no_list() {
        let read = |statuses: &[Value]| {
            let payments = statuses.iter().map(|status| serde_json::from_value(payment(status)).unwrap()).collect();
            unless_contradictory(payments).is_ok()
        };
        assert!(read(&[json!("succeeded")]) && read(&[json!("succeeded"), json!("succeeded")]));
        assert!(!read(&[json!("succeeded"), json!("processing")]));
    }
}
