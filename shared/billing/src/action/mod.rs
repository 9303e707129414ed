//! The action log: one entry for each change that a person or a program makes with the API or with a command. An entry
//! contains who made the change, when, and the changed fields of the item before and after the change, without personal
//! data. The payments and reminders of the daily runs, and deliveries of events, have no entry.

mod actor;
mod fields;
mod item_change;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use sha2::{Digest, Sha256};
use strum::{Display, EnumString};
use ulid::Ulid;

use crate::changes::finding::Finding;
use crate::checks::accepted_difference::AcceptedDifference;
use crate::records::payment_method_setup::PaymentMethodSetup;
use crate::records::refund::Refund;
use crate::settings::payment_limits::PaymentLimits;
use crate::settings::policy_setting::StoredPolicy;
use crate::subscriptions::subscription::Subscription;
use crate::values::account::Account;
use crate::values::contact_data::Label;
use crate::values::ids::{AccountId, SubscriptionId};
pub use actor::{Actor, ActorKind, ActorName};
pub(crate) use fields::{ActionField, FieldDifference};
use fields::{fields_of_account, fields_of_limits, fields_of_policy, fields_of_subscription};
pub use item_change::ItemChange;

/// The kind of a logged action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumString, SerializeDisplay, DeserializeFromStr)]
pub enum ActionKind {
    #[strum(serialize = "account.put")]
    PutAccount,
    #[strum(serialize = "account.erase")]
    EraseAccount,
    #[strum(serialize = "subscription.create")]
    CreateSubscription,
    #[strum(serialize = "subscription.change")]
    ChangeSubscription,
    #[strum(serialize = "subscription.pause")]
    PauseSubscription,
    #[strum(serialize = "subscription.resume")]
    ResumeSubscription,
    #[strum(serialize = "subscription.cancel")]
    CancelSubscription,
    #[strum(serialize = "subscription.uncancel")]
    UncancelSubscription,
    #[strum(serialize = "subscription.retry")]
    RetrySubscription,
    #[strum(serialize = "subscription.correct_price")]
    CorrectPrice,
    #[strum(serialize = "subscription.waive")]
    WaiveMonth,
    #[strum(serialize = "subscription.paid_elsewhere")]
    RecordPaidElsewhere,
    #[strum(serialize = "payment_method_setup.create")]
    CreateSetup,
    #[strum(serialize = "refund.create")]
    CreateRefund,
    /// A refund of money that the bank has reversed, or may still reverse because of an open dispute.
    #[strum(serialize = "refund.create_although_disputed")]
    RefundAlthoughDisputed,
    #[strum(serialize = "webhook_endpoint.create")]
    CreateEndpoint,
    #[strum(serialize = "webhook_endpoint.change")]
    ChangeEndpoint,
    #[strum(serialize = "webhook_endpoint.remove")]
    RemoveEndpoint,
    #[strum(serialize = "webhook_endpoint.rotate_secret")]
    RotateEndpointSecret,
    #[strum(serialize = "webhook_endpoint.encrypt_secrets")]
    EncryptEndpointSecrets,
    #[strum(serialize = "delivery.redeliver")]
    RedeliverEvent,
    #[strum(serialize = "charging.switch")]
    SwitchCharging,
    #[strum(serialize = "payment.resolve")]
    ResolvePayment,
    #[strum(serialize = "finding.resolve")]
    ResolveFinding,
    #[strum(serialize = "difference.accept")]
    AcceptDifference,
    #[strum(serialize = "payments.reconcile")]
    ReconcilePayments,
    #[strum(serialize = "payments.audit_fix")]
    FixAudit,
    #[strum(serialize = "gateway.move")]
    MoveGateway,
    #[strum(serialize = "clock.confirm")]
    ConfirmClock,
    #[strum(serialize = "table.confirm")]
    ConfirmTable,
    #[strum(serialize = "settings.change")]
    ChangeSettings,
    #[strum(serialize = "shards.set")]
    SetShards,
    #[strum(serialize = "shards.reshard")]
    Reshard,
    #[strum(serialize = "subscriptions.import")]
    ImportSubscriptions,
    #[strum(serialize = "order.change")]
    ChangeOrder,
    #[strum(serialize = "customer.change")]
    ChangeCustomer,
    #[strum(serialize = "product.put")]
    PutProduct,
    #[strum(serialize = "stock.receive")]
    ReceiveStock,
    #[strum(serialize = "stock.count")]
    CountStock,
    #[strum(serialize = "stock.write_off")]
    WriteOffStock,
    #[strum(serialize = "stock.transfer")]
    TransferStock,
    #[strum(serialize = "sku.put")]
    PutSku,
    #[strum(serialize = "warehouse.put")]
    PutWarehouse,
    #[strum(serialize = "region.put")]
    PutRegion,
    #[strum(serialize = "country.put")]
    PutCountry,
    #[strum(serialize = "location.put")]
    PutLocation,
    #[strum(serialize = "job.put")]
    PutJob,
    #[strum(serialize = "department.put")]
    PutDepartment,
    #[strum(serialize = "employee.hire")]
    HireEmployee,
    #[strum(serialize = "employee.change")]
    ChangeEmployee,
    #[strum(serialize = "goods.import")]
    ImportGoods,
    #[strum(serialize = "people.import")]
    ImportPeople,
    #[strum(serialize = "places.import")]
    ImportPlaces,
    #[strum(serialize = "orders.backfill")]
    BackfillOrders,
    #[strum(serialize = "buckets.set")]
    SetBuckets,
}
crate::openapi_schema!(
    ActionKind,
    "ActionKind",
    crate::openapi::build_pattern_schema("The kind of an action, such as `subscription.pause`.", r"^[a-z_]+\.[a-z_]+$")
);

impl ActionKind {
    /// Returns whether the order desk makes actions of this kind.
    pub fn is_of_order_desk(self) -> bool {
        match self {
            Self::ChangeOrder
            | Self::ChangeCustomer
            | Self::PutProduct
            | Self::ReceiveStock
            | Self::CountStock
            | Self::WriteOffStock
            | Self::TransferStock
            | Self::PutSku
            | Self::PutWarehouse
            | Self::PutRegion
            | Self::PutCountry
            | Self::PutLocation
            | Self::PutJob
            | Self::PutDepartment
            | Self::HireEmployee
            | Self::ChangeEmployee
            | Self::ImportGoods
            | Self::ImportPeople
            | Self::ImportPlaces
            | Self::BackfillOrders
            | Self::SetBuckets => true,
            Self::PutAccount
            | Self::EraseAccount
            | Self::CreateSubscription
            | Self::ChangeSubscription
            | Self::PauseSubscription
            | Self::ResumeSubscription
            | Self::CancelSubscription
            | Self::UncancelSubscription
            | Self::RetrySubscription
            | Self::CorrectPrice
            | Self::WaiveMonth
            | Self::RecordPaidElsewhere
            | Self::CreateSetup
            | Self::CreateRefund
            | Self::RefundAlthoughDisputed
            | Self::CreateEndpoint
            | Self::ChangeEndpoint
            | Self::RemoveEndpoint
            | Self::RotateEndpointSecret
            | Self::EncryptEndpointSecrets
            | Self::RedeliverEvent
            | Self::SwitchCharging
            | Self::ResolvePayment
            | Self::ResolveFinding
            | Self::AcceptDifference
            | Self::ReconcilePayments
            | Self::FixAudit
            | Self::MoveGateway
            | Self::ConfirmClock
            | Self::ConfirmTable
            | Self::ChangeSettings
            | Self::SetShards
            | Self::Reshard
            | Self::ImportSubscriptions => false,
        }
    }
}

/// A change that a person or a program is about to make. When the change is written, the same transaction writes its
/// entry of the action log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAction {
    pub at: DateTime<Utc>,
    pub actor: Actor,
    pub kind: ActionKind,
    /// The reason that the actor gave; `None` if the actor gave no reason.
    pub reason: Option<Label>,
}

/// An entry of the action log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedAction {
    /// The id of the entry. The id begins with the time of the action. The rest of the id is computed from the changed
    /// item and its version, so a repeated write of the same change replaces the entry of the first write.
    pub id: Ulid,
    pub at: DateTime<Utc>,
    pub actor: Actor,
    pub kind: ActionKind,
    /// The account that the change concerns; `None` if it concerns no account.
    pub account: Option<AccountId>,
    pub subscription: Option<SubscriptionId>,
    /// The id of the changed item if it is neither an account nor a subscription, such as the id of a refund.
    pub item: Option<String>,
    /// The id of the created payment method setup, with which an export and an erasure of the account find the setup. Only the
    /// stored entry contains the id: it must be in no list, event or log.
    pub setup: Option<Ulid>,
    /// The values of the changed fields before the change, by field name. Empty for a new item.
    pub before: BTreeMap<String, String>,
    /// The values of the changed fields after the change, by field name. The text `changed` replaces a value that must
    /// not be in the log.
    pub after: BTreeMap<String, String>,
    /// The reason that the actor gave; `None` if the actor gave no reason.
    pub reason: Option<Label>,
}

impl LoggedAction {
    /// Returns the id of the payment method setup that the action created; `None` for another action.
    pub fn created_setup(&self) -> Option<Ulid> {
        // An earlier version stored the id as the changed item.
        let earlier = || self.item.as_ref()?.parse().ok();
        self.setup.or_else(earlier).filter(|_| self.kind == ActionKind::CreateSetup)
    }
}

impl NewAction {
    /// Returns the entry of the action log for the change of an account; `before` is `None` if the account is new.
    pub fn on_account(&self, before: Option<&Account>, after: &Account) -> LoggedAction {
        let difference = FieldDifference::between(before, Some(after), fields_of_account);
        LoggedAction { account: Some(after.id.clone()), ..self.entry(after.id.as_str(), after.version, difference) }
    }

    /// Returns the entry of the action log for the change of a subscription; `before` is `None` if the subscription is
    /// new.
    pub fn on_subscription(&self, before: Option<&Subscription>, after: &Subscription) -> LoggedAction {
        let difference = FieldDifference::between(before, Some(after), fields_of_subscription);
        let (account, subscription) = (Some(after.account.clone()), Some(after.id));
        LoggedAction { account, subscription, ..self.entry(&after.id.to_string(), after.version, difference) }
    }

    /// Returns the entry of the action log for the request that created the refund `refund`.
    pub fn on_refund(&self, refund: &Refund) -> LoggedAction {
        let id = refund.id.to_string();
        let after = [("receipt", refund.receipt.to_string()), ("amount", refund.amount.to_string())];
        LoggedAction {
            account: Some(refund.account.clone()),
            subscription: Some(refund.receipt.subscription),
            item: Some(id.clone()),
            ..self.entry(&id, refund.version, FieldDifference::of_new(after))
        }
    }

    /// Returns the entry of the action log for the new payment method setup `setup`.
    pub fn on_setup(&self, setup: &PaymentMethodSetup) -> LoggedAction {
        let entry = self.entry(&setup.id.to_string(), setup.version, FieldDifference::default());
        let (account, item) = (Some(setup.account.clone()), Some(setup.public_name()));
        LoggedAction { account, item, setup: Some(setup.id), ..entry }
    }

    /// Returns the entry of the action log for the decision of a person about `finding`, a finding of the subscription
    /// `stored`.
    pub fn on_finding(&self, stored: &Subscription, finding: &Finding) -> LoggedAction {
        let id = finding.payment.to_string();
        let fields = [("due_on", finding.due_on.to_string()), ("amount", finding.amount.to_string())];
        LoggedAction {
            account: Some(stored.account.clone()),
            subscription: Some(stored.id),
            item: Some(id.clone()),
            ..self.entry(&id, finding.version, FieldDifference::of_new(fields))
        }
    }

    /// Returns the entry of the action log for a change of the table's setting `name` from `before` to `after`.
    /// `before` is `None` if the setting had no value.
    pub fn on_setting(&self, name: &str, before: Option<String>, after: String) -> LoggedAction {
        let mut difference = FieldDifference::of_new([(name, after.clone())]);
        difference.before.extend(before.map(|before| (name.to_owned(), before)));
        self.entry(&after, 0, difference)
    }

    /// Returns the entry of the action log for a change of the limits of the payment batch.
    pub fn on_payment_limits(&self, before: &PaymentLimits, after: &PaymentLimits) -> LoggedAction {
        let difference = FieldDifference::between(Some(before), Some(after), fields_of_limits);
        let key: String = difference.after.iter().map(|(name, value)| format!("{name} {value} ")).collect();
        self.entry(&key, 0, difference)
    }

    /// Returns the entry of the action log for a change of the policy. Without `before`, the table had none.
    pub fn on_policy(&self, before: Option<&StoredPolicy>, after: &StoredPolicy) -> LoggedAction {
        let difference = FieldDifference::between(before, Some(after), fields_of_policy);
        let key: String = difference.after.iter().map(|(name, value)| format!("{name} {value} ")).collect();
        self.entry(&key, 0, difference)
    }

    /// Returns the entry of the action log for the acceptance of a difference between the table and the gateway.
    pub fn on_difference(&self, accepted: &AcceptedDifference) -> LoggedAction {
        let fields = [("date", accepted.on.to_string()), ("kind", accepted.kind.to_string())];
        let difference = FieldDifference::of_new(fields);
        let key = format!("{} {} {}", accepted.on, accepted.kind, accepted.id);
        LoggedAction { item: Some(accepted.id.clone()), ..self.entry(&key, 0, difference) }
    }

    /// Returns the entry of the action log for a job that changes many items, such as an import. `counts` contains the
    /// number of items for each kind of result. All entries of one job have the same id, so a later entry replaces an
    /// earlier entry.
    pub fn on_job<const N: usize>(&self, counts: [(&str, u64); N]) -> LoggedAction {
        let counts = counts.map(|(name, count)| (name, count.to_string()));
        self.entry("job", 0, FieldDifference::of_new(counts))
    }

    /// Creates the entry of the action log for the change of the item `key`, whose version is `version`.
    pub(crate) fn entry(&self, key: &str, version: u64, difference: FieldDifference) -> LoggedAction {
        let FieldDifference { before, after } = difference;
        LoggedAction {
            id: self.id_of_change(key, version),
            at: self.at,
            actor: self.actor.clone(),
            kind: self.kind,
            account: None,
            subscription: None,
            item: None,
            setup: None,
            before,
            after,
            reason: self.reason.clone(),
        }
    }

    /// Computes the id of an entry from the time of the action, the kind of the action, and the changed item.
    fn id_of_change(&self, key: &str, version: u64) -> Ulid {
        let digest = Sha256::digest(format!("{}\n{key}\n{version}", self.kind));
        let random: [u8; 16] = digest.first_chunk().copied().unwrap_or_default();
        let milliseconds = u64::try_from(self.at.timestamp_millis()).unwrap_or_default();
        Ulid::from_parts(milliseconds, u128::from_be_bytes(random))
    }
}

#[cfg(test)]
mod tests;
