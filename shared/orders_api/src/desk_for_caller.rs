//! An extractor of the order desk whose changes are requested by the caller of the HTTP request. Each change writes an entry of
//! the action log.

use std::convert::Infallible;

use ::orders::{OrderDesk, PaymentsTable, Requester};
use aws_sdk_dynamodb::types::TransactWriteItem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use billing::{AccountId, LoggedAction};
use rest::RequestActor;
use store::Table;

use super::OrdersApi;

/// The payments table, in which the transactions of the order desk write entries of the action log and check accounts.
#[derive(Clone, Debug)]
pub struct StoredPayments(pub Table);

impl PaymentsTable for StoredPayments {
    fn build_action_put(&self, entry: &LoggedAction) -> TransactWriteItem {
        self.0.build_action_put(entry)
    }

    fn build_account_check(&self, account: &AccountId) -> TransactWriteItem {
        self.0.build_account_check(account)
    }
}

/// Extracts the order desk whose changes are requested by the caller of the request.
pub(super) struct DeskForCaller(pub OrderDesk);

impl FromRequestParts<OrdersApi> for DeskForCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &OrdersApi) -> Result<Self, Infallible> {
        let RequestActor(actor) = RequestActor::from_request_parts(parts, api).await?;
        let requester = Requester { payments: api.payments.clone(), actor, at: api.clock.now() };
        Ok(Self(api.desk.requested_by(requester)))
    }
}
