//! `POST .../subscriptions/{subscription}/{correct-price|waive|paid-elsewhere}`: corrections of one month by an
//! operator.

use axum::extract::State;
use axum::response::Response;
use billing::{ActionKind, Label, Period, Subscription, WaivedReason};
use rest::body::MinorUnits;
use rest::{Problem, RequestTime};
use serde::Deserialize;
use utoipa::ToSchema;

use super::subscription_view::CurrentSubscription;
use super::transitions::{Transition, TransitionBody};
use crate::Api;
use crate::price_check::refused_price_problem;

/// The corrected price of the owed month.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CorrectPrice)]
pub struct PriceCorrection {
    /// The amount of the owed month, in minor units. Later months with the same price get it, too.
    amount: MinorUnits,
    /// The reason for the correction, for the action log. Do not write personal data into it.
    reason: Label,
}

/// The month that is not charged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WaiveMonth)]
pub struct MonthWaiver {
    /// The earliest month that is neither paid nor waived.
    month: Period,
    /// The reason, for the action log. Do not write personal data into it.
    reason: Label,
}

impl TransitionBody for PriceCorrection {
    fn change_reason(&self) -> Option<&Label> {
        Some(&self.reason)
    }
}

impl TransitionBody for MonthWaiver {
    fn change_reason(&self) -> Option<&Label> {
        Some(&self.reason)
    }
}

/// Correct the price of the owed month
///
/// For a payment that the gateway rejects because of its amount. After a rejection, the next run charges the corrected
/// amount. A retry after a decline keeps its day, and an unpaid subscription needs a retry. Only an
/// operator may correct a price. It fails with 409 if nothing is owed or an attempt is open.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/correct-price",
    operation_id = "correct_price",
    tag = "subscriptions",
    params(Transition<PriceCorrection>),
    request_body = PriceCorrection,
    responses(CurrentSubscription)
)]
pub async fn correct_subscription_price(
    State(api): State<Api>,
    request: Transition<PriceCorrection>,
) -> Result<Response, Problem> {
    let (RequestTime { at, today }, MinorUnits(minor)) = (request.now, request.body.amount);
    request.check_operator()?;
    let rules = api.read_amount_rules(at).await;
    api.apply_correction(&request, ActionKind::CorrectPrice, |stored| {
        let corrected = stored.correct_price(minor, today)?;
        rules.check_amount(corrected.price).map_err(|refusal| refused_price_problem("amount", refusal))?;
        Ok(corrected)
    })
    .await
}

/// Waive a month
///
/// The month is never charged, and the subscription becomes active. Only an operator may waive a month. It fails with
/// 409 if the month is not the earliest one that is neither paid nor waived, or if an attempt is open.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/waive",
    operation_id = "waive_month",
    tag = "subscriptions",
    params(Transition<MonthWaiver>),
    request_body = MonthWaiver,
    responses(CurrentSubscription)
)]
pub async fn waive_month(State(api): State<Api>, request: Transition<MonthWaiver>) -> Result<Response, Problem> {
    api.waive_month(&request, ActionKind::WaiveMonth, WaivedReason::Merchant).await
}

/// Record that a month was paid in another way
///
/// For a payment in cash or by a transfer: the month is never charged, and the subscription becomes active. There is no
/// receipt. Only an operator may record it. It fails with 409 like `waive_month`.
#[utoipa::path(
    post,
    path = "/accounts/{account}/subscriptions/{subscription}/paid-elsewhere",
    operation_id = "record_paid_elsewhere",
    tag = "subscriptions",
    params(Transition<MonthWaiver>),
    request_body = MonthWaiver,
    responses(CurrentSubscription)
)]
pub async fn record_month_paid_elsewhere(
    State(api): State<Api>,
    request: Transition<MonthWaiver>,
) -> Result<Response, Problem> {
    api.waive_month(&request, ActionKind::RecordPaidElsewhere, WaivedReason::PaidElsewhere).await
}

impl Api {
    /// Waives the month of `request` for `reason`, and logs it with the kind `kind`.
    async fn waive_month(
        &self,
        request: &Transition<MonthWaiver>,
        kind: ActionKind,
        reason: WaivedReason,
    ) -> Result<Response, Problem> {
        request.check_operator()?;
        let RequestTime { at, today } = request.now;
        let lead = self.table.policy().lead;
        let month = request.body.month;
        let later_findings = self.table.count_findings_after(&request.path.account, request.path.id, month).await?;
        let waive = |stored: &Subscription| Ok(stored.waive_month(month, reason, later_findings, lead, today, at)?);
        self.apply_correction(request, kind, waive).await
    }
}
