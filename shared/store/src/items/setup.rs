use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use super::super::{Key, keys};
use billing::Setup;
use billing::{AccountId, GatewayToken, PaymentMethod, SubscriptionId};
use dynamo::{Instant, expiry};

/// A setup is kept so long after its page has closed: whoever tells of it late finds it.
const KEPT: TimeDelta = TimeDelta::days(30);

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SetupItem {
    #[serde(rename = "PK")]
    pk: String,
    #[serde(rename = "SK")]
    sk: String,
    setup_id: Ulid,
    account: AccountId,
    page: GatewayToken,
    url: String,
    subscriptions: Option<Vec<SubscriptionId>>,
    created_date: Instant,
    expires_date: Instant,
    payment_details: Option<PaymentMethod>,
    version: u64,
    #[serde(rename = "TTL")]
    ttl: i64,
}

impl From<&Setup> for SetupItem {
    fn from(setup: &Setup) -> Self {
        let Key { pk, sk } = keys::setup(setup.id);
        Self {
            pk,
            sk,
            setup_id: setup.id,
            account: setup.account.clone(),
            page: setup.page.clone(),
            url: setup.url.clone(),
            subscriptions: setup.subscriptions.clone(),
            created_date: Instant(setup.created_at),
            expires_date: Instant(setup.expires_at),
            payment_details: setup.payment_method.clone(),
            version: setup.version,
            ttl: expiry(setup.expires_at, KEPT),
        }
    }
}

impl From<SetupItem> for Setup {
    fn from(item: SetupItem) -> Self {
        Self {
            id: item.setup_id,
            account: item.account,
            page: item.page,
            url: item.url,
            subscriptions: item.subscriptions,
            created_at: item.created_date.0,
            expires_at: item.expires_date.0,
            payment_method: item.payment_details,
            version: item.version,
        }
    }
}
