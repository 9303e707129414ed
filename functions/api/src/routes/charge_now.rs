//! The first payment of who signs up, charged while they wait.

use axum::http::StatusCode;
use axum::response::Response;
use rest::Problem;
use rest::idempotency::{answer, replayed_answer};
use serde::Deserialize;
use shared::billing::{AccountId, SubscriptionId};
use shared::table::Replayed;

use super::subscription_view::kept;
use crate::{Api, missing};

#[derive(Deserialize)]
struct Created {
    id: SubscriptionId,
}

impl Api {
    /// Charges the subscription `id`, which has just been created, and answers it as it is then: 201 if its first payment has been made or
    /// declined, 202 while that is not known.
    ///
    /// # Errors
    /// [`Problem`].
    pub(super) async fn charged_now(&self, account: &AccountId, id: SubscriptionId) -> Result<Response, Problem> {
        let (charges, today) = (self.charges.as_ref().ok_or_else(Problem::unavailable)?, self.today());
        let stored = self.table.get_subscription(account, id).await?.ok_or_else(missing::subscription)?;
        // What was tried before is tried again by the runs, on their days.
        if stored.attempt_seq == 0 {
            charges.charge_now(&stored, today).await?;
        }
        let after = self.table.get_subscription(account, id).await?.ok_or_else(missing::subscription)?;
        let is_known = after.attempt.is_none() && after.attempt_seq > 0;
        let status = if is_known { StatusCode::CREATED } else { StatusCode::ACCEPTED };
        Ok(answer(status, kept(&after)))
    }

    /// The answer to a request that was made before: it may not have come to its charge.
    ///
    /// # Errors
    /// [`Problem`].
    pub(super) async fn charged_before(&self, account: &AccountId, before: Replayed) -> Result<Response, Problem> {
        let Replayed::Answered(created) = before else { return Err(Problem::key_reused()) };
        let Created { id } = serde_json::from_str(&created.json).map_err(|_| Problem::internal())?;
        Ok(replayed_answer(self.charged_now(account, id).await?))
    }
}
