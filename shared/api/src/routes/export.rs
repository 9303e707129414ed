//! `/accounts/{account}/export`: everything that the payments table stores about an account, as one JSON document.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use billing::{
    AccountId, AttemptRecord, Currency, Dispute, DisputeStatus, Finding, GatewayToken, LoggedAction, PaymentMethod,
    PaymentMethodSetup, ReceiptId, SubscriptionId, WaivedPeriod,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use rest::body::MinorUnits;
use rest::list::UnreadableView;
use rest::parameters::{AccountPath, NoParameters, Path, Query};
use rest::{Caller, Problem, RequestTime, Role};
use serde::Serialize;
use store::{AccountPartition, Table, TableError};
use ulid::Ulid;
use utoipa::ToSchema;

use super::accounts::AccountView;
use super::action_log::{ActionView, hide_operator_details};
use super::receipts::ReceiptView;
use super::refunds::RefundView;
use super::subscription_view::SubscriptionView;
use super::why::{FailedAttemptView, WaivedMonth};
use crate::Api;

/// The maximum number of stored items in the exported document of an account. If the account has more, the request is
/// refused with 409.
pub const MAX_EXPORTED_ITEMS: usize = 10_000;
/// The largest size of the response in bytes. A response of a Lambda function has at most 6 MB.
const MAX_RESPONSE_BYTES: usize = 5_000_000;
/// The largest age of a payment method setup that may still be stored: the gateway's page closes after a day, and the
/// setup is stored for 30 more days.
const MAX_SETUP_AGE: TimeDelta = TimeDelta::days(32);

/// Everything that is stored about an account. Tokens of payment methods and customers are shortened to `...` and their
/// last four characters. The order desk has its own data: see `GET /customers/{account}`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountExport)]
pub struct AccountExport {
    /// The time at which the data was read.
    exported_at: DateTime<Utc>,
    /// The account; null if it was erased, and only records of its payments are left.
    account: Option<AccountView>,
    /// The erasure of the account; null if none was requested.
    erasure: Option<ExportedErasure>,
    /// The subscriptions.
    subscriptions: Vec<SubscriptionView>,
    /// The receipts.
    receipts: Vec<ReceiptView>,
    /// The refunds.
    refunds: Vec<RefundView>,
    /// The disputes of payments.
    disputes: Vec<DisputeView>,
    /// The payment attempts that did not succeed.
    failed_attempts: Vec<ExportedAttempt>,
    /// The months that are never charged.
    waived_months: Vec<ExportedWaivedMonth>,
    /// The successful payments that have no receipt, because a person must decide or has decided about them.
    payments_without_receipt: Vec<PaymentWithoutReceipt>,
    /// The setups of payment methods: pages of the payment gateway on which the customer could enter a card.
    payment_method_setups: Vec<ExportedSetup>,
    /// The changes that people and programs made, the newest first. An account sees them without the names of operators and
    /// without reasons.
    actions: Vec<ActionView>,
    /// The stored items that cannot be read.
    unreadable: Vec<UnreadableView>,
}

/// The erasure of an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedErasure {
    /// The time at which the erasure was requested.
    requested_at: DateTime<Utc>,
    /// The time at which the erasure ended; null while it is in progress.
    erased_at: Option<DateTime<Utc>>,
}

/// The dispute of a payment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Dispute)]
pub struct DisputeView {
    /// The gateway's id of the dispute.
    #[schema(value_type = String)]
    id: GatewayToken,
    /// The id of the payment's receipt.
    #[schema(value_type = ReceiptId)]
    receipt: String,
    /// The state of the dispute: `inquiry`, `open`, `won`, `lost` or `returned`.
    #[schema(value_type = String)]
    status: DisputeStatus,
    /// The gateway's code for the reason.
    reason: String,
    /// The disputed amount, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The time at which the dispute was opened.
    opened_at: DateTime<Utc>,
    /// The time at which the outcome was reported; null while there is none.
    closed_at: Option<DateTime<Utc>>,
}

/// A payment attempt of a subscription that did not succeed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedAttempt {
    /// The id of the subscription.
    subscription: SubscriptionId,
    #[serde(flatten)]
    #[schema(inline)]
    attempt: FailedAttemptView,
}

/// A month of a subscription that is never charged.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedWaivedMonth {
    /// The id of the subscription.
    subscription: SubscriptionId,
    #[serde(flatten)]
    #[schema(inline)]
    month: WaivedMonth,
}

/// A successful payment that has no receipt.
#[derive(Debug, Serialize, ToSchema)]
pub struct PaymentWithoutReceipt {
    /// The id of the subscription.
    subscription: SubscriptionId,
    /// The due date for which the payment was charged.
    due_date: NaiveDate,
    /// The id of the payment at the payment gateway.
    #[schema(value_type = String)]
    gateway_payment_id: GatewayToken,
    /// The charged amount, in minor units.
    amount: MinorUnits,
    /// The currency of the amount.
    currency: Currency,
    /// The time at which Dueday found the payment.
    found_at: DateTime<Utc>,
    /// The time at which a person decided about the payment; null if that has not happened.
    resolved_at: Option<DateTime<Utc>>,
}

/// A page on which the customer could enter a payment method.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportedSetup {
    /// The id of the setup; for an operator with the role read, its name in the action log.
    id: String,
    /// The name of the setup in the action log.
    #[serde(skip)]
    public_name: String,
    /// The time at which the setup was created.
    created_at: DateTime<Utc>,
    /// The time at which the page closes.
    expires_at: DateTime<Utc>,
    /// The payment method that the customer has entered, shortened; null if the customer entered none.
    payment_method: Option<PaymentMethod>,
}

/// The reason why the data of an account could not be exported.
#[derive(Debug)]
pub enum ExportError {
    /// The table cannot be read.
    Table(TableError),
    /// The table stores more items of the account than the document may contain.
    TooManyItems,
}

impl From<TableError> for ExportError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

/// Returns `method` with shortened tokens, so that the reader of the export cannot charge the card.
fn mask_payment_method(method: &PaymentMethod) -> PaymentMethod {
    PaymentMethod { customer: method.customer.masked(), payment_method: method.payment_method.masked() }
}

impl From<Dispute> for DisputeView {
    fn from(dispute: Dispute) -> Self {
        Self {
            receipt: dispute.receipt.to_string(),
            id: dispute.id,
            status: dispute.status,
            reason: dispute.reason,
            amount: dispute.amount.into(),
            currency: dispute.amount.currency(),
            opened_at: dispute.opened_at,
            closed_at: dispute.closed_at,
        }
    }
}

impl From<AttemptRecord> for ExportedAttempt {
    fn from(attempt: AttemptRecord) -> Self {
        Self { subscription: attempt.subscription, attempt: attempt.into() }
    }
}

impl From<WaivedPeriod> for ExportedWaivedMonth {
    fn from(waived: WaivedPeriod) -> Self {
        Self { subscription: waived.subscription, month: waived.into() }
    }
}

impl From<Finding> for PaymentWithoutReceipt {
    fn from(finding: Finding) -> Self {
        Self {
            subscription: finding.subscription,
            due_date: finding.due_on,
            amount: finding.amount.into(),
            currency: finding.amount.currency(),
            gateway_payment_id: finding.payment,
            found_at: finding.found_at,
            resolved_at: finding.resolved.map(|resolved| resolved.at),
        }
    }
}

impl From<PaymentMethodSetup> for ExportedSetup {
    fn from(setup: PaymentMethodSetup) -> Self {
        Self {
            id: setup.id.to_string(),
            public_name: setup.public_name(),
            created_at: setup.created_at,
            expires_at: setup.expires_at,
            payment_method: setup.payment_method.as_ref().map(mask_payment_method),
        }
    }
}

impl AccountExport {
    /// Reads everything that `table` stores about `account` at the time `now`; `None` if nothing is stored. Sends Query
    /// requests for the partition of the account, and for its actions that were made with the order desk. Sends a GetItem request for each payment method setup that was
    /// created in the last 32 days: the ids of these setups are in the action log.
    ///
    /// # Errors
    /// [`ExportError::TooManyItems`] if more than `max_items` items are stored.
    pub async fn read(
        table: &Table,
        account: &AccountId,
        max_items: usize,
        now: DateTime<Utc>,
    ) -> Result<Option<Self>, ExportError> {
        let mut partition = table.get_partition(account, max_items, now).await?.ok_or(ExportError::TooManyItems)?;
        let of_order_desk = table.get_order_actions_by_account(account, now).await?;
        partition.actions.extend(of_order_desk.items);
        partition.actions.sort_by_key(|action| action.id);
        partition.unreadable.extend(of_order_desk.unreadable);
        if partition.actions.len() > max_items {
            return Err(ExportError::TooManyItems);
        }
        if partition.is_empty() {
            return Ok(None);
        }
        let setups = read_recent_setups(table, &partition, now).await?;
        Ok(Some(Self::from_stored(partition, setups, now)?))
    }

    /// Creates the document from the stored items: those in the account's `partition`, and its payment method `setups`.
    fn from_stored(
        partition: AccountPartition,
        setups: Vec<PaymentMethodSetup>,
        now: DateTime<Utc>,
    ) -> Result<Self, TableError> {
        let unreadable = partition.unreadable.into_iter().map(|error| match error {
            TableError::Unreadable { key, reason } => Ok(UnreadableView { key: key.to_string(), reason }),
            error => Err(error),
        });
        let subscriptions = partition.subscriptions.into_iter().map(SubscriptionView::from);
        let erased = partition.erased.map(|erased| (erased.requested_at, Some(erased.erased_at)));
        let requested = partition.account.as_ref().and_then(|account| account.erasure_requested_at);
        let erasure = erased.or(requested.map(|requested_at| (requested_at, None)));
        Ok(Self {
            exported_at: now,
            erasure: erasure.map(|(requested_at, erased_at)| ExportedErasure { requested_at, erased_at }),
            account: partition.account.map(AccountView::from),
            subscriptions: subscriptions.map(SubscriptionView::with_masked_tokens).collect(),
            receipts: partition.receipts.into_iter().map(ReceiptView::from).collect(),
            refunds: partition.refunds.into_iter().map(RefundView::from).collect(),
            disputes: partition.disputes.into_iter().map(DisputeView::from).collect(),
            failed_attempts: partition.attempts.into_iter().map(ExportedAttempt::from).collect(),
            waived_months: partition.waived.into_iter().map(ExportedWaivedMonth::from).collect(),
            payments_without_receipt: partition.findings.into_iter().map(PaymentWithoutReceipt::from).collect(),
            payment_method_setups: setups.into_iter().map(ExportedSetup::from).collect(),
            actions: partition.actions.into_iter().rev().map(hide_operator_details).map(ActionView::from).collect(),
            unreadable: unreadable.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the stored payment method setups of the account. Setups are not in the account's `partition`: their ids are
/// in its action log.
async fn read_recent_setups(
    table: &Table,
    partition: &AccountPartition,
    now: DateTime<Utc>,
) -> Result<Vec<PaymentMethodSetup>, TableError> {
    let is_recent = |action: &&LoggedAction| now.signed_duration_since(action.at) < MAX_SETUP_AGE;
    let ids = partition.actions.iter().filter(is_recent).filter_map(LoggedAction::created_setup);
    let mut setups = Vec::new();
    for id in ids.collect::<Vec<Ulid>>() {
        setups.extend(table.get_setup(id).await?);
    }
    Ok(setups)
}

/// Export the data of an account
///
/// Returns everything that the payments table stores about the account as one JSON document, for the customer's right of
/// access. Copies of other items are left out: responses to requests with an Idempotency-Key, and deliveries of events.
/// Actions are listed without the names of operators and without reasons. If the document is too large for a response, use
/// the command `dueday account export`.
#[utoipa::path(
    get,
    path = "/accounts/{account}/export",
    operation_id = "export_account",
    tag = "accounts",
    params(AccountPath),
    responses(
        (status = 200, description = "The data of the account", body = AccountExport),
        (status = 409, description = "The document is too large for a response", body = Problem)
    )
)]
pub async fn export_account(
    State(api): State<Api>,
    now: RequestTime,
    caller: Caller,
    Path(AccountPath { account }): Path<AccountPath>,
    _: Query<NoParameters>,
) -> Result<Response, Problem> {
    let mut export = match AccountExport::read(&api.table, &account, MAX_EXPORTED_ITEMS, now.at).await {
        Ok(export) => export.ok_or_else(Problem::account_not_found)?,
        Err(ExportError::TooManyItems) => return Err(export_too_large()),
        Err(ExportError::Table(error)) => return Err(error.into()),
    };
    if caller == Caller::Operator(Role::Read) {
        // With the id of a setup, everyone can enter a card on the page of the customer.
        for setup in &mut export.payment_method_setups {
            setup.id.clone_from(&setup.public_name);
        }
    }
    let json = serde_json::to_string(&export).expect("the data can be serialized");
    if json.len() > MAX_RESPONSE_BYTES {
        return Err(export_too_large());
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

/// 409: the data of the account is too large for a response.
fn export_too_large() -> Problem {
    Problem::conflict(format!(
        "the data of the account is too large for a response: more than {MAX_EXPORTED_ITEMS} items or {MAX_RESPONSE_BYTES} \
         bytes; use the command `dueday account export`"
    ))
}
