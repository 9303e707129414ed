use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::PaymentMethodSetup;
use billing::{AccountId, GatewayToken, PaymentMethod, SubscriptionId};
use dynamo::{Entity, Instant, expiry_timestamp};
use dynamo::{Key, TableError};

/// How long a payment method setup is stored after its checkout page has expired, so that a late event of the gateway
/// still finds the setup.
pub(crate) const SETUP_RETENTION: TimeDelta = TimeDelta::days(30);

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SetupItem {
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

impl Entity<PaymentsSchema> for PaymentMethodSetup {
    type Attributes = SetupItem;

    fn key(&self) -> Key {
        keys::key_of_payment_method_setup(self.id)
    }

    fn attributes(&self) -> SetupItem {
        SetupItem {
            setup_id: self.id,
            account: self.account.clone(),
            page: self.page.clone(),
            url: self.url.clone(),
            subscriptions: self.subscriptions.clone(),
            created_date: Instant(self.created_at),
            expires_date: Instant(self.expires_at),
            payment_details: self.payment_method.clone(),
            version: self.version,
            ttl: expiry_timestamp(self.expires_at, SETUP_RETENTION),
        }
    }

    fn read(_: Key, item: SetupItem) -> Result<Self, TableError> {
        Ok(Self {
            id: item.setup_id,
            account: item.account,
            page: item.page,
            url: item.url,
            subscriptions: item.subscriptions,
            created_at: item.created_date.0,
            expires_at: item.expires_date.0,
            payment_method: item.payment_details,
            version: item.version,
        })
    }
}
