//! The invariants of a table, the violations of these invariants, and the settings with which they are checked.
//! Examples: every month is paid, waived or owed, and the payment index contains every subscription that must be
//! charged.

use std::fmt::Display;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use billing::{LeadDays, PresentTime};
use store::{Settings, Table};

/// A rule that the data of each deployment must obey. Some rules concern the payments table, others the orders table.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Display, EnumIter, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Invariant {
    /// Every item can be read.
    Readable,
    /// Every month since the first due date is exactly one of: paid, waived, owed.
    MonthAccountedFor,
    /// No month is paid twice.
    PaidOnce,
    /// Every subscription of an account is stored once, and no payment of the gateway has two receipts in an account.
    StoredOnce,
    /// Every attribute of an item agrees with its key and with the other attributes and records that determine it.
    Consistent,
    /// An open attempt has the due date and the price of its subscription, and the number of the subscription's latest
    /// attempt.
    AttemptMatches,
    /// The expiry of every payment record is after the time at which the record was written, and no record exists long
    /// after its expiry.
    Expiring,
    /// The payment index contains every subscription that must be charged or has an open attempt. No index contains a
    /// stopped subscription.
    Indexed,
    /// Every subscription is in a shard that the runs of the batches process.
    ShardSwept,
    /// No date of a subscription is further in the future than its schedule allows, and no payment is planned before
    /// its due date or long after it. No lease ends later than a lease can end.
    DatesNear,
    /// No recorded payment, receipt, reminder or change has a time in the future, and no payment was made or declined
    /// long before it was due.
    RecordedInPast,
    /// The gateway can charge every price of a subscription that is not cancelled.
    Chargeable,
    /// Every shard that a run left unfinished was processed to its end by a later run.
    RunsFinished,
    /// Every signing secret of a webhook endpoint is encrypted.
    Encrypted,
    /// Every record belongs to an existing subscription, and every subscription to an existing account.
    Owned,
    /// Every receipt has a successful payment at the gateway with the same amount, and every such payment has a
    /// receipt.
    Receipted,
    /// The refunded amount of every receipt equals the sum of its refunds and is not higher than the payment. No refund
    /// is pending for too long. The gateway has the same refunds.
    Refunded,
    /// Every finding (a successful payment without a receipt) is resolved, and every subscription counts exactly its
    /// open findings that block charges.
    Resolved,
    /// The dispute mark of every subscription, and the reversal of every receipt, match the stored disputes. The
    /// gateway has the same disputes.
    Disputed,
    /// The gateway has returned all lists that are compared: the payments of every customer, the refunds and the
    /// disputes. All of their objects that belong to an account of the table can be read.
    Listed,
    /// The stock of a product in a warehouse is the sum of its movements.
    Stock,
    /// The total stock of a product is the sum of its stock in all warehouses.
    TotalStock,
    /// The quarter total of a representative is the sum of the orders that count toward it.
    QuarterTotal,
    /// Every order has a receipt of its payment with the same amount, unless the receipt has expired.
    Paid,
    /// Every receipt for a SKU with products has an order.
    Ordered,
    /// Every relation of the orders table (an item by which an index finds an entity) agrees with the entity's own item,
    /// and none is missing.
    Related,
    /// The stock and the quarter totals could be compared with the records from which they can be computed again.
    Compared,
}

impl Invariant {
    /// Returns what a person does about a violation, as an imperative sentence.
    pub fn next_step(self) -> &'static str {
        match self {
            Self::Readable => "Repair the item by hand, or restore it from a backup: nothing reads it until then.",
            Self::DatesNear => {
                "If a clock was ahead, repair the date or the lease with `dueday audit --fix`. What remains must be corrected \
                 by hand: docs/trouble.md, \"The audit found something\"."
            }
            Self::RecordedInPast => {
                "A clock was ahead. Repair what delays the next payment with `dueday audit --fix`, and refund what was charged \
                 too early. The recorded times stay: docs/trouble.md, \"A clock is wrong\"."
            }
            Self::MonthAccountedFor => {
                "See the records with `dueday why ACCOUNT SUBSCRIPTION --date DATE`. Then correct DueDate by hand: the \
                 earliest due date that is neither paid nor waived."
            }
            Self::PaidOnce => {
                "Find both receipts with `dueday receipts ACCOUNT`, and refund one with `dueday refund NUMBER --reason TEXT`."
            }
            Self::StoredOnce => {
                "Delete the item that is wrong by hand, and refund a payment that was made twice with `dueday refund NUMBER \
                 --reason TEXT`."
            }
            Self::Consistent => "Correct the named attributes by hand: docs/trouble.md, \"The audit found something\".",
            Self::AttemptMatches => {
                "Do not charge: look the attempt up at the gateway, and settle it with `dueday resolve ACCOUNT SUBSCRIPTION \
                 --reason TEXT`."
            }
            Self::Expiring => "Correct the TTL by hand, or delete the record.",
            Self::Indexed => {
                "Repair NextPaymentDate and NextReminderDate with `dueday audit --fix`. What remains must be corrected by hand: \
                 docs/trouble.md, \"The audit found something\"."
            }
            Self::ShardSwept => "Move the subscription to a shard that the runs process with `dueday reshard`.",
            Self::Chargeable => {
                "Set a price that the gateway accepts with `dueday subscription change ACCOUNT SUBSCRIPTION --price AMOUNT`: \
                 docs/trouble.md, \"The gateway can never charge a price\"."
            }
            Self::RunsFinished => "Run the day again: docs/trouble.md, \"A day is not done\".",
            Self::Encrypted => {
                "Encrypt the secret with `dueday webhooks encrypt-secrets`: an earlier version has stored it as plain text."
            }
            Self::Owned => "Create the missing account again with PUT /accounts/ACCOUNT, or delete the record by hand.",
            Self::Receipted => {
                "Run the payments again: a run writes the receipt of a payment that the gateway knows. If the finding \
                 stays, see `dueday findings`."
            }
            Self::Refunded => "Look the refund up at the gateway with `dueday refund ACCOUNT RECEIPT --id ID`.",
            Self::Resolved => "Decide about the payment with `dueday findings resolve`.",
            Self::Disputed => {
                "Compare with the gateway, and correct the dispute: docs/customers.md, \"A customer disputes a payment\"."
            }
            Self::Listed => {
                "Audit again when the gateway responds: until then, its payments are not compared. If it responds with an \
                 object that cannot be read, look the object up at the gateway."
            }
            Self::Stock | Self::TotalStock => {
                "Compare with `dueday orders movements PRODUCT`, and count the pieces with `dueday orders count`: \
                 docs/orders.md, \"The audit\"."
            }
            Self::QuarterTotal => "Correct the quarter total by hand: it is the sum of the orders that count.",
            Self::Paid => {
                "Find the payment with `dueday receipts ACCOUNT`. Cancel the order with `dueday orders cancel ORDER` if \
                 it was never paid."
            }
            Self::Related => {
                "Compare the item with the own item of the same `PK`, and correct, create or delete the wrong item by hand: \
                 docs/orders.md, \"The audit\"."
            }
            Self::Compared => {
                "Compare the stock and the quarter totals with `dueday orders audit`: docs/orders.md, \"The audit\"."
            }
            Self::Ordered => {
                "Send the events in the queue PaidNotOrdered again, or place the order with `dueday orders backfill SKU`."
            }
        }
    }
}

/// A violation of an invariant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct BrokenInvariant {
    pub invariant: Invariant,
    /// The key of the item, or the name of the list, that violates the invariant.
    pub key: String,
    /// The description of the violation.
    pub what: String,
}

/// The checker of the invariants, with the settings of the table.
#[derive(Clone, Copy, Debug)]
pub struct InvariantChecker {
    /// The number of shards of the table, which are numbered from 0.
    pub shards: u32,
    /// Today's date in the billing time zone.
    pub today: NaiveDate,
    pub now: DateTime<Utc>,
    /// How long records are kept. Older months cannot be checked.
    pub records_kept: TimeDelta,
    /// The longest gap between two tries of a declined payment, in days.
    pub longest_gap: u32,
    /// The time from a reminder to the due date.
    pub lead: LeadDays,
}

impl InvariantChecker {
    /// Returns the checker of `table`, which has the stored `settings`, at the time `now`. Uses the
    /// table's copy of the policy.
    pub fn new(table: &Table, settings: &Settings, now: DateTime<Utc>) -> Self {
        let policy = table.policy();
        Self {
            shards: settings.shards,
            today: policy.date_at(now),
            now,
            records_kept: table.receipt_retention(),
            longest_gap: policy.dunning.longest_gap(),
            lead: policy.lead,
        }
    }

    /// Returns the present time, with which recorded times are compared.
    pub(super) fn present(&self) -> PresentTime {
        PresentTime { today: self.today, now: self.now }
    }
}

/// The violations that were found in one account.
#[derive(Default)]
pub(super) struct AccountViolations {
    pub broken: Vec<BrokenInvariant>,
}

impl AccountViolations {
    /// Adds a violation of `invariant` by the item with the key `key`. `what` describes the violation.
    pub fn add(&mut self, invariant: Invariant, key: impl Display, what: impl Into<String>) {
        self.broken.push(BrokenInvariant { invariant, key: key.to_string(), what: what.into() });
    }
}
