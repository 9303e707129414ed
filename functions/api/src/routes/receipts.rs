//! `/accounts/{account}/receipts`: what was paid in the last six months, newest first.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use shared::billing::{GatewayToken, Label, Money, Receipt, Sku, SubscriptionId};

use super::List;
use crate::body::AccountPath;
use crate::{Api, Caller, Problem};

#[derive(Debug, Serialize)]
pub struct View {
    subscription: SubscriptionId,
    sku: Sku,
    product_name: Label,
    due_date: NaiveDate,
    #[serde(flatten)]
    amount: Money,
    gateway_payment_id: GatewayToken,
    processed_at: DateTime<Utc>,
}

impl From<Receipt> for View {
    fn from(receipt: Receipt) -> Self {
        Self {
            subscription: receipt.subscription,
            sku: receipt.sku,
            product_name: receipt.product_name,
            due_date: receipt.due_on,
            amount: receipt.amount,
            gateway_payment_id: receipt.payment,
            processed_at: receipt.processed_at,
        }
    }
}

pub async fn list(
    State(api): State<Api>,
    caller: Caller,
    AccountPath(account): AccountPath,
) -> Result<Json<List<View>>, Problem> {
    caller.sees(&account)?;
    let receipts = api.table.get_receipts_by_account(&account, api.ambient.now()).await?;
    if receipts.is_empty() && api.table.get_account(&account).await?.is_none() {
        return Err(Problem::no_account());
    }
    Ok(Json(receipts.into_iter().map(View::from).collect()))
}
