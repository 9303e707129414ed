//! An extractor of the order desk for a request. The caller of the HTTP request counts as the requester of all changes:
//! each change writes an entry of the action log with this caller.

use std::convert::Infallible;
use std::sync::Arc;

use aws_sdk_dynamodb::types::TransactWriteItem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use billing::{AccountId, LoggedAction};
use orders_desk::OrderDesk;
use orders_table::{PaymentsTable, Requester};
use rest::{RequestActor, RequestTime};
use store::Table;

use crate::OrdersApi;

/// The payments table. The transactions of the order desk write entries of the action log to this table, and check
/// accounts in it.
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

/// Extracts the order desk from a request. Its changes are logged as changes that the caller of the request requested.
pub(crate) struct DeskForCaller(pub OrderDesk);

impl FromRequestParts<OrdersApi> for DeskForCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &OrdersApi) -> Result<Self, Infallible> {
        let RequestActor(actor) = RequestActor::from_request_parts(parts, api).await?;
        let Ok(RequestTime { at, .. }) = RequestTime::from_request_parts(parts, api).await;
        let payments = Arc::new(StoredPayments(api.payments.clone()));
        let requester = Requester { payments, actor, at };
        Ok(Self(api.desk.requested_by(requester)))
    }
}
