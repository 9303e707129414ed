//! The rules of the sandbox, as pure functions. Each function decides on one request, from the stored payments, refunds
//! and checkout pages that the request concerns. The store reads these records, calls the function, and writes the
//! result only if the records have not changed in the meantime.

use chrono::{DateTime, TimeDelta, Utc};
use gateways::{
    ChargeRequest, ChargeResponse, CheckoutPageRequest, CheckoutPageState, GatewayRefund, RefundRequest,
    RefundResponse, RefundState,
};
use ulid::Ulid;

use crate::records::{EnteredPaymentMethod, LedgerPayment, OpenedCheckoutPage};
use crate::test_payment_methods::{self, PaymentMethodBehaviour};
use billing::{GatewayAccount, GatewayToken, Money, PaymentMethod, PaymentStatus};

/// How long the sandbox remembers an idempotency key. After this time the same key makes a new charge, which is also
/// possible at Stripe ("Idempotent requests" in Stripe's API reference).
pub const IDEMPOTENCY_KEY_LIFETIME: TimeDelta = TimeDelta::hours(24);

/// How long a checkout page is open.
const CHECKOUT_PAGE_LIFETIME: TimeDelta = TimeDelta::hours(24);

/// The largest number of payments or refunds in a list page of a time range.
pub const LIST_PAGE_SIZE: usize = 100;

/// The decision on a charge or a refund.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestDecision<Response, Record> {
    /// The request changes nothing and gets this response.
    Respond(Response),
    /// The store must write this record. The request gets the response that follows from the record.
    Write(Record),
}

/// Returns the gateway account with the id `id`.
pub fn sandbox_account(id: &str) -> GatewayAccount {
    GatewayAccount { kind: "sandbox".to_owned(), account: id.to_owned(), live: false }
}

/// Decides on the charge `request` at the time `now`. `before` is the latest payment that was made under the
/// idempotency key of the request; `None` if there is none. `new_id` creates the id of a new payment.
pub fn decide_charge(
    before: Option<&LedgerPayment>,
    request: &ChargeRequest,
    now: DateTime<Utc>,
    new_id: impl FnOnce() -> Ulid,
) -> RequestDecision<ChargeResponse, LedgerPayment> {
    if let Some(made) = before.filter(|made| is_key_remembered(made, now)) {
        let is_same = made.request == *request;
        return RequestDecision::Respond(if is_same { first_charge_response(made) } else { ChargeResponse::KeyReused });
    }
    let rejected = |code: &str| RequestDecision::Respond(ChargeResponse::Rejected { code: code.to_owned() });
    if let Some(code) = amount_rejection_code(request.amount) {
        return rejected(code);
    }
    let status = match test_payment_methods::behaviour_of_payment_method(&request.payment_method.payment_method) {
        None => return rejected("resource_missing"),
        Some(PaymentMethodBehaviour::Succeeds) => PaymentStatus::Succeeded,
        Some(PaymentMethodBehaviour::Processes { .. }) => PaymentStatus::Processing,
        Some(PaymentMethodBehaviour::Declines(decline)) => PaymentStatus::Declined(decline),
    };
    let id = format!("pay_{}", new_id()).parse().expect("a ULID is a token");
    RequestDecision::Write(LedgerPayment { id, request: request.clone(), status, created_at: now })
}

/// Returns whether at the time `now` the sandbox still remembers the idempotency key of the earlier payment `made`.
fn is_key_remembered(made: &LedgerPayment, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(made.created_at) < IDEMPOTENCY_KEY_LIFETIME
}

/// Returns the response to the request that made the payment `made`. A repeated request gets the same response, even if
/// the payment is no longer processing.
pub fn first_charge_response(made: &LedgerPayment) -> ChargeResponse {
    match made.status.clone() {
        PaymentStatus::Succeeded => ChargeResponse::Succeeded(made.payment(PaymentStatus::Succeeded)),
        PaymentStatus::Processing => ChargeResponse::Processing,
        PaymentStatus::Declined(decline) => ChargeResponse::Declined(decline),
    }
}

/// Returns the final status of the bank debit `made`, and the time from which it has this status. Returns `None` if the
/// payment is still processing at `now`, or if `made` was never processing.
pub fn final_payment_status(made: &LedgerPayment, now: DateTime<Utc>) -> Option<(PaymentStatus, DateTime<Utc>)> {
    match test_payment_methods::behaviour_of_payment_method(&made.request.payment_method.payment_method)? {
        PaymentMethodBehaviour::Processes { time, then } if now >= made.created_at + time => {
            Some((then, made.created_at + time))
        }
        _ => None,
    }
}

/// Returns the status of the payment `made` at the time `now`.
pub fn payment_status_at(made: &LedgerPayment, now: DateTime<Utc>) -> PaymentStatus {
    final_payment_status(made, now).map_or_else(|| made.status.clone(), |(status, _)| status)
}

/// Decides on the refund `request`. `before` is the earlier request that made a refund with the same id; `None` if
/// there is none. `payment` is the payment to refund, with its status and the sum of its refunds in minor units; `None`
/// if there is no such payment.
pub fn decide_refund(
    before: Option<&RefundRequest>,
    payment: Option<(&LedgerPayment, &PaymentStatus, i64)>,
    request: &RefundRequest,
) -> RequestDecision<RefundResponse, RefundRequest> {
    let rejected = |code: &str| RequestDecision::Respond(RefundResponse::Rejected { code: code.to_owned() });
    if let Some(before) = before {
        let is_same = before == request;
        return if is_same {
            RequestDecision::Respond(RefundResponse::Made(succeeded_refund(before)))
        } else {
            rejected("idempotency_error")
        };
    }
    if let Some(code) = amount_rejection_code(request.amount) {
        return rejected(code);
    }
    let Some((made, status, refunded)) = payment else { return rejected("resource_missing") };
    if *status != PaymentStatus::Succeeded {
        return rejected("charge_not_refundable");
    }
    let paid = made.request.amount;
    if request.amount.currency() != paid.currency() || request.amount.minor() > paid.minor().saturating_sub(refunded) {
        return rejected("amount_too_large");
    }
    RequestDecision::Write(request.clone())
}

/// Returns the refund that `request` made.
pub fn succeeded_refund(request: &RefundRequest) -> GatewayRefund {
    GatewayRefund {
        id: format!("re_{}", request.refund).parse().expect("a ULID is a token"),
        refund: Some(request.refund),
        amount: request.amount,
        state: RefundState::Succeeded,
    }
}

/// Returns the time at which the refund `request` was requested. The id of the refund, a ULID, contains this time.
pub fn refund_request_time(request: &RefundRequest) -> DateTime<Utc> {
    request.refund.datetime().into()
}

/// Returns the error code with which the sandbox rejects `amount`. Stripe uses the same codes. Returns `None` if a
/// product can have `amount` as its price.
fn amount_rejection_code(amount: Money) -> Option<&'static str> {
    match amount.currency().price(amount.minor()) {
        Ok(_) => None,
        Err(_) if amount.minor() <= 0 => Some("amount_too_small"),
        Err(_) => Some("amount_too_large"),
    }
}

/// Returns the checkout page for `request`, opened at the time `now`. The id of the checkout page depends only on the
/// id of the payment method setup, so the same setup gets the same checkout page.
pub fn new_checkout_page(request: &CheckoutPageRequest, now: DateTime<Utc>) -> OpenedCheckoutPage {
    let new_customer = || format!("cus_{}", request.account).parse().expect("an account's id is a token");
    OpenedCheckoutPage {
        id: format!("page_{}", request.setup).parse().expect("a ULID is a token"),
        customer: request.customer.clone().unwrap_or_else(new_customer),
        return_url: request.return_url.clone(),
        expires_at: now + CHECKOUT_PAGE_LIFETIME,
    }
}

/// Returns the state of the checkout page `opened` at the time `now`. `entered` is the payment method that the customer
/// has entered; `None` if there is none yet.
pub fn checkout_page_state(
    opened: &OpenedCheckoutPage,
    entered: Option<&EnteredPaymentMethod>,
    now: DateTime<Utc>,
) -> CheckoutPageState {
    match entered {
        Some((payment_method, given_at)) => CheckoutPageState::Complete {
            payment_method: PaymentMethod { customer: opened.customer.clone(), payment_method: payment_method.clone() },
            given_at: *given_at,
        },
        None if now >= opened.expires_at => CheckoutPageState::Expired,
        None => CheckoutPageState::Open,
    }
}

/// Returns whether `payment_method` can be entered on a checkout page with the state `state`: the checkout page is
/// open, and there is such a test payment method.
pub fn can_payment_method_be_entered(payment_method: &GatewayToken, state: &CheckoutPageState) -> bool {
    *state == CheckoutPageState::Open && test_payment_methods::behaviour_of_payment_method(payment_method).is_some()
}
