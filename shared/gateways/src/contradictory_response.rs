//! Detects responses of a gateway that contradict themselves. If the response to a charge contradicts itself, the
//! outcome of the charge counts as unknown, so the batch looks up the attempt.

use serde_json::Value;

use super::{ChargeResponse, GatewayError};
use billing::PaymentStatus;

impl ChargeResponse {
    /// Returns an unknown outcome if this response is `succeeded` but its payment has another status. Otherwise returns
    /// this response.
    pub fn or_unknown_if_contradictory(self) -> Self {
        match self {
            Self::Succeeded(payment) if payment.status != PaymentStatus::Succeeded => Self::Unknown {
                reason: format!(
                    "the response is succeeded, and the payment {} is {}",
                    payment.id,
                    payment_status_name(&payment.status)
                ),
            },
            other => other,
        }
    }

    /// Reads the response of a gateway from JSON.
    ///
    /// # Errors
    /// [`GatewayError::Unknown`] if `json` is not a valid response, or contains a status that contradicts its outcome.
    pub(super) fn from_json(json: Value) -> Result<Self, GatewayError> {
        let unknown = |reason: String| GatewayError::Unknown { reason };
        // Look for a status in the JSON: in `ChargeResponse`, the outcomes `declined`, `rejected` and `processing` have
        // no field for a status, so serde would ignore it.
        let outcome = ["declined", "rejected", "processing"].into_iter().find(|outcome| json.get(outcome).is_some());
        if let Some(outcome) = outcome {
            let status = ["/status", "/payment/status"].iter().find_map(|path| json[outcome].pointer(path));
            if let Some(status) = status.filter(|status| !status_agrees_with_outcome(outcome, status)) {
                return Err(unknown(format!("the response is {outcome}, and its status is {status}")));
            }
        }
        let response: Self = serde_json::from_value(json).map_err(|error| unknown(error.to_string()))?;
        Ok(response.or_unknown_if_contradictory())
    }
}

/// Returns whether the payment status `status`, in the wire format, agrees with the outcome `outcome` of the charge. No
/// status agrees with `rejected`, because a rejected request makes no payment.
fn status_agrees_with_outcome(outcome: &str, status: &Value) -> bool {
    status.as_str() == Some(outcome) || status.get(outcome).is_some()
}

/// Returns the name of `status` for an error message.
fn payment_status_name(status: &PaymentStatus) -> &'static str {
    match status {
        PaymentStatus::Succeeded => "succeeded",
        PaymentStatus::Processing => "processing",
        PaymentStatus::Declined(_) => "declined",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the JSON of a payment with `status`.
    fn payment_json_with_status(status: &Value) -> Value {
        json!({
            "id": "pay_1", "account": "acme", "subscription": "01JZXCVBNM0123456789ABCDEG", "due_on": "2027-01-31", "attempt_no": 1,
            "amount": 1299, "currency": "EUR", "status": status, "created_at": "2027-01-31T06:00:00Z",
        })
    }

    #[test]
    fn response_that_contradicts_its_status_is_an_unknown_outcome() {
        let decline = |status: Value| json!({"declined": {"code": "lost_card", "hard": true, "status": status}});
        // The columns are: the JSON of a response, and whether its outcome is known (it contains no contradiction).
        for (response, is_known) in [
            (json!({"succeeded": payment_json_with_status(&json!("succeeded"))}), true),
            (json!({"succeeded": payment_json_with_status(&json!("processing"))}), false),
            (json!({"succeeded": payment_json_with_status(&json!({"declined": {"code": "x", "hard": false}}))}), false),
            (json!({"declined": {"code": "lost_card", "hard": true}}), true),
            (decline(json!("declined")), true),
            (decline(json!({"declined": {"code": "lost_card", "hard": true}})), true),
            (decline(json!("succeeded")), false),
            (decline(json!("processing")), false),
            (json!({"rejected": {"code": "no_such_card"}}), true),
            (json!({"rejected": {"code": "no_such_card", "status": "succeeded"}}), false),
            (
                json!({"rejected": {"code": "no_such_card", "payment": payment_json_with_status(&json!("processing"))}}),
                false,
            ),
            (json!("processing"), true),
            (
                json!({"declined": {"code": "x", "hard": true}, "succeeded": payment_json_with_status(&json!("succeeded"))}),
                false,
            ),
            (json!("paid"), false),
        ] {
            let read = ChargeResponse::from_json(response.clone());
            let is_unknown = matches!(read, Err(_) | Ok(ChargeResponse::Unknown { .. }));
            assert_eq!(is_unknown, !is_known, "{response}: {read:?}");
        }
    }
}
