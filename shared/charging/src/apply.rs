//! Applies an outcome to an attempt that the caller holds. The payment batch, charges at sign-up, inbound webhooks,
//! comparisons and operators' commands all settle attempts here.

use billing::{
    Attempt, AttemptContradiction, AttemptOutcome, Finding, GatewayToken, NotSettled, Payment, ReceiptId, Settlement,
    Subscription, settle_open_attempt,
};
use chrono::{DateTime, NaiveDate, Utc};
use gateways::GatewayError;
use store::TableError;

use crate::{ChargingEngine, UncountedCharges};

/// What a report of the gateway has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApplyResult {
    /// This call has settled the attempt, or the payment that had no open attempt.
    Settled(Box<WrittenSettlement>),
    /// Another worker has settled the attempt, or the payment already has its receipt. Contains the outcome that was to be
    /// applied.
    AlreadySettled(Box<AttemptOutcome>),
    /// The subscription has no open attempt.
    NothingOpen,
    /// The payment has no receipt and is stored as a finding. If the finding was stored before, a person may have
    /// resolved it.
    FindingStored(Box<Finding>),
    /// The attempt stays open, for this reason.
    Open(OpenReason),
    /// The subscription does not exist.
    Missing,
}

/// A settlement that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenSettlement {
    /// The written settlement, whose subscription is the stored one.
    pub settlement: Settlement,
    /// Whether a reminder of the payment was sent, or none could be sent, because the subscription was created on the due
    /// date or later.
    pub was_reminded: bool,
    /// A message for the operator if the month was paid more than once; otherwise `None`.
    pub paid_twice: Option<String>,
}

/// The reason why an attempt stays open.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenReason {
    /// The gateway returned no usable response to the charge or to the look-up, so the outcome is unknown.
    #[error(transparent)]
    NoResponse(#[from] GatewayError),
    /// The bank is processing the payment, which can take days.
    #[error("the gateway reports that the payment is processing")]
    Processing,
    /// Only a run of the payment batch may charge such an attempt again, or settle it as rejected or dropped.
    #[error("the gateway has no payment of this attempt")]
    NoPayment,
    /// Another worker has leased the attempt.
    #[error("another worker has leased the attempt until {}", until.format("%Y-%m-%d %H:%M:%S UTC"))]
    Leased { until: DateTime<Utc> },
    /// Too little time was left, or the claim was too long ago.
    #[error("the charge was not sent in time")]
    NotSent,
    #[error("charging is switched off")]
    ChargingIsOff,
    /// A dispute or a finding was stored after the attempt was claimed. The gateway has no payment, and the dispute or
    /// the finding forbids a charge now.
    #[error("a dispute or a finding forbids the charge")]
    Blocked,
    /// The gateway has made no payment, but this outcome is not final: another worker has taken over the attempt, or the
    /// subscription was resumed.
    #[error(
        "no payment was made, but this may change: another worker has taken over the attempt, or the subscription was resumed"
    )]
    NotFinal,
    /// The attempt contradicts its subscription, so it is not charged again.
    #[error("{0}")]
    AttemptContradicts(AttemptContradiction),
    /// What a person states or what the gateway reports contradicts the attempt.
    #[error("{0}")]
    ReportContradicts(String),
}

/// The reason why an outcome could not be applied to an attempt that the caller holds.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum ApplyError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(
        "the payment {payment} of {due_on} succeeded and has no receipt: its attempt was settled with another outcome"
    )]
    MissingReceipt { payment: GatewayToken, due_on: NaiveDate },
    #[error(
        "the gateway reports that the payment {payment} succeeded, but {reason}: settle it by hand (dueday resolve)"
    )]
    Contradicts { payment: GatewayToken, reason: String },
}

impl ApplyError {
    /// Returns the name of the error, such as `MissingReceipt`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }
}

impl ApplyResult {
    /// Creates the result of a written `settlement`.
    pub(crate) fn settled(settlement: Settlement, was_reminded: bool) -> Self {
        Self::Settled(Box::new(WrittenSettlement { settlement, was_reminded, paid_twice: None }))
    }

    /// Adds the message that the month was paid more than once.
    pub(crate) fn with_paid_twice(self, paid_twice: Option<String>) -> Self {
        match self {
            Self::Settled(settled) => Self::Settled(Box::new(WrittenSettlement { paid_twice, ..*settled })),
            other => other,
        }
    }
}

impl WrittenSettlement {
    /// Returns whether the settlement has the receipt of `payment`.
    pub fn pays_with(&self, payment: &Payment) -> bool {
        self.settlement.receipt.as_ref().is_some_and(|receipt| receipt.payment == payment.id)
    }
}

impl ChargingEngine {
    /// Settles `held`, the attempt of `subscription` that this worker has leased, with `outcome` on the day `today`.
    /// The settlement is computed from the currently stored subscription, and written with a TransactWriteItems
    /// request. If the write fails, the attempt stays open, and a later run looks up and settles the attempt. Adds a
    /// charge to `charges`; the caller must write them.
    ///
    /// # Errors
    /// - [`ApplyError::Contradicts`] if the successful payment does not match the attempt. It gets no receipt.
    /// - [`ApplyError::MissingReceipt`] if the payment succeeded, but another worker has settled the attempt with
    ///   another outcome.
    /// - [`ApplyError::Table`] if a request to the table failed.
    pub(crate) async fn apply(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: AttemptOutcome,
        today: NaiveDate,
        charges: &UncountedCharges,
    ) -> Result<ApplyResult, ApplyError> {
        if let AttemptOutcome::Succeeded(payment) = &outcome {
            self.verify_payment(&subscription, held, payment).await?;
        }
        self.apply_as_decided(subscription, held, outcome, today, charges).await
    }

    /// Settles an attempt like [`ChargingEngine::apply`], but does not verify that the payment matches the attempt,
    /// because a person has decided the outcome.
    pub(crate) async fn apply_as_decided(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: AttemptOutcome,
        today: NaiveDate,
        charges: &UncountedCharges,
    ) -> Result<ApplyResult, ApplyError> {
        let receipt = ReceiptId { due_on: held.due_on, subscription: subscription.id, sku: subscription.sku.clone() };
        let account = subscription.account.clone();
        let policy = self.table.policy();
        // Reminders are sent until the due date, but not on the day on which the subscription was created.
        let could_be_reminded = policy.date_at(subscription.created_at) < held.due_on;
        let was_reminded = subscription.reminded_for == Some(held.due_on) || !could_be_reminded;
        let settlement =
            |stored: &Subscription| settle_open_attempt(stored, held, &outcome, &policy, today, self.clock.now());
        match self.table.write_settlement_with_action(subscription, self.action.as_ref(), settlement).await {
            Ok(settled) => {
                charges.add_charge_of(&settled);
                return Ok(ApplyResult::settled(settled, was_reminded));
            }
            Err(refused) => match refused.into_reason()? {
                Some(NotSettled::StaysOpen) => return Ok(ApplyResult::Open(OpenReason::NotFinal)),
                Some(NotSettled::AlreadySettled) | None => {}
            },
        }
        // Another worker has settled the attempt. If it settled the attempt with another outcome, this successful
        // payment has no receipt, which is an error.
        if let AttemptOutcome::Succeeded(Payment { id, .. }) = &outcome {
            let receipt = self.table.get_receipt(&account, &receipt, self.clock.now()).await?;
            if receipt.is_none_or(|receipt| receipt.payment != *id) {
                return Err(ApplyError::MissingReceipt { payment: id.clone(), due_on: held.due_on });
            }
        }
        Ok(ApplyResult::AlreadySettled(Box::new(outcome)))
    }

    /// Verifies that the successful `payment` matches the attempt `held`: the same subscription, period, amount and
    /// currency. A payment of an earlier attempt is compared with the record of that attempt.
    ///
    /// # Errors
    /// [`ApplyError::Contradicts`] if the payment does not match the attempt: it must not get a receipt.
    /// [`ApplyError::Table`] if the record could not be read.
    pub(crate) async fn verify_payment(
        &self,
        subscription: &Subscription,
        held: &Attempt,
        payment: &Payment,
    ) -> Result<(), ApplyError> {
        let (account, id) = (&subscription.account, subscription.id);
        let contradicts = |reason: String| Err(ApplyError::Contradicts { payment: payment.id.clone(), reason });
        let is_from_table = payment.table.is_none() || payment.table == held.table;
        if (&payment.account, payment.subscription) != (account, id) || !is_from_table {
            return contradicts("it belongs to another subscription".to_owned());
        }
        if payment.period() != held.period() {
            return contradicts(format!("its due date is {}, not {}", payment.due_on, held.due_on));
        }
        let requested = if payment.attempt_no == held.no {
            Some(held.amount)
        } else {
            let record = self.table.get_attempt_record(account, id, payment.due_on, payment.attempt_no).await?;
            record.map(|record| record.amount)
        };
        match requested {
            Some(requested) if requested == payment.amount => Ok(()),
            Some(requested) => contradicts(format!("its amount is {}, and {requested} was requested", payment.amount)),
            None => contradicts(format!("there is no record of its attempt {}", payment.attempt_no)),
        }
    }
}
