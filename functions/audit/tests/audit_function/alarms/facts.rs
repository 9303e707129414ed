//! The facts about a day, from the raw items of the table, the gateway's ledger and the sent mails. The code in this
//! module shares no rule with the code that raises the alarms.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use billing::PaymentStatus;
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use gateways::ChargeRequest;
use sandbox::LedgerEntry;
use store::Batch;

use super::every_alarm::{FOREIGN_KEY_PREFIX, UNKNOWN_SORT_KEY};
use super::{LEAD, World, at, date, due_dates};

/// The attributes of an item, by name.
type Item = HashMap<String, AttributeValue>;

/// An open attempt: the partition key of its subscription, and the time at which the attempt was claimed.
pub type OpenAttempt = (String, String);

/// A stored receipt.
#[derive(Clone, Debug)]
pub struct StoredReceipt {
    /// The partition key and the sort key.
    pub key: (String, String),
    due_on: NaiveDate,
    payment: String,
    amount: String,
    processed_at: DateTime<Utc>,
}

impl StoredReceipt {
    /// Returns the charge request that made the payment in this receipt.
    pub fn charge_request(&self, world: &World) -> ChargeRequest {
        let payments = payments(world);
        payments[&self.payment].0.clone()
    }
}

/// A run of a batch.
struct Run {
    on: NaiveDate,
    started_at: String,
    /// Whether the run has reached the end of its shard, and has left no row unfinished.
    has_left_nothing: bool,
}

/// The items of the table at one time.
pub struct Facts {
    items: Vec<Item>,
    receipts: Vec<StoredReceipt>,
}

/// Returns the text or the number in the attribute `name`; an empty text if it is absent.
fn text(item: &Item, name: &str) -> String {
    match item.get(name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.clone(),
        _ => String::new(),
    }
}

/// Returns the successful payments at the gateway by id: the request, and the time of the payment.
fn payments(world: &World) -> BTreeMap<String, (ChargeRequest, DateTime<Utc>)> {
    let made = world.system.sandbox.entries().into_iter().filter_map(|entry| match entry {
        LedgerEntry::Payment(payment) if payment.status == PaymentStatus::Succeeded => {
            Some((payment.id.to_string(), (payment.request, payment.created_at)))
        }
        _ => None,
    });
    made.collect()
}

impl Facts {
    /// Reads all items of the table.
    pub async fn read(world: &World) -> Self {
        let items = world.system.deployment.table.scan().await.unwrap();
        let of_receipts = items.iter().filter(|item| text(item, "SK").starts_with("REC#"));
        let receipts = of_receipts.map(|item| StoredReceipt {
            key: (text(item, "PK"), text(item, "SK")),
            due_on: text(item, "DueDate").parse().unwrap(),
            payment: text(item, "GatewayPaymentId"),
            amount: text(item, "ProcessedAmount"),
            processed_at: text(item, "ProcessedDate").parse().unwrap(),
        });
        Self { receipts: receipts.collect(), items }
    }

    /// Returns the items whose sort key begins with `beginning`.
    fn with_sort_key(&self, beginning: &str) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| text(item, "SK").starts_with(beginning))
    }

    /// Returns the receipts that were written on `day`.
    pub fn receipts_of(&self, day: NaiveDate) -> Vec<&StoredReceipt> {
        self.receipts.iter().filter(|receipt| receipt.processed_at.date_naive() == day).collect()
    }

    /// Returns the open attempts that were claimed a day or longer before `now`.
    pub fn attempts_since(&self, now: DateTime<Utc>) -> Vec<OpenAttempt> {
        let open = self.with_sort_key("SUB#").filter(|item| item.contains_key("AttemptAt"));
        let open = open.map(|item| (text(item, "PK"), text(item, "AttemptAt")));
        open.filter(|(_, claimed)| claimed.parse::<DateTime<Utc>>().unwrap() + TimeDelta::days(1) <= now).collect()
    }

    /// Returns whether the attempt `open` is open.
    pub fn has_attempt(&self, open: &OpenAttempt) -> bool {
        self.with_sort_key("SUB#").any(|item| (text(item, "PK"), text(item, "AttemptAt")) == *open)
    }

    /// Returns the batches of `day` that are not done: a payment or its receipt is missing, a reminder was not sent, or
    /// no run of the day has ended without leaving a row unfinished.
    pub fn batches_not_done(&self, world: &World, day: NaiveDate) -> Vec<Batch> {
        let is_done = |batch: Batch| {
            let is_complete = match batch {
                Batch::Payments => self.is_everything_paid(world, day),
                Batch::Reminders => self.is_everyone_reminded(world, day),
            };
            is_complete && self.runs(batch).iter().any(|run| run.on == day && run.has_left_nothing)
        };
        Batch::ALL.into_iter().filter(|batch| !is_done(*batch)).collect()
    }

    /// Returns whether each due date of the 150 days up to `day` has a receipt whose payment is at the gateway. Older
    /// due dates are not checked, because their receipts may have expired. Panics if a due date was charged twice.
    fn is_everything_paid(&self, world: &World, day: NaiveDate) -> bool {
        let made = payments(world);
        let mut charged = BTreeSet::new();
        for (request, _) in
            made.values().filter(|(request, _)| !request.idempotency_key.starts_with(FOREIGN_KEY_PREFIX))
        {
            assert!(charged.insert((request.subscription, request.due_on)), "charged twice: {request:?}");
        }
        let first = day.checked_sub_days(Days::new(150)).unwrap().max(date("2026-01-02"));
        let mut paid: BTreeMap<String, BTreeSet<NaiveDate>> = BTreeMap::new();
        let is_paid = |receipt: &&StoredReceipt| receipt.due_on >= first && made.contains_key(&receipt.payment);
        for receipt in self.receipts.iter().filter(is_paid) {
            paid.entry(receipt.key.0.clone()).or_default().insert(receipt.due_on);
        }
        (0..).zip(world.payment_days.values()).all(|(n, payment_day): (u32, _)| {
            let due: BTreeSet<NaiveDate> = due_dates(*payment_day, first, day).into_iter().collect();
            paid.remove(&format!("ACC#account-{n}")).unwrap_or_default() == due
        })
    }

    /// Returns whether each customer has received each reminder from February 1 to `day`. After a killed run, the run
    /// of the next day may send the same reminder again. Such mails count once.
    fn is_everyone_reminded(&self, world: &World, day: NaiveDate) -> bool {
        let mut reminded: BTreeMap<String, Vec<DateTime<Utc>>> = BTreeMap::new();
        for mail in world.mails.mails().iter().filter(|mail| mail.written_at >= at(date("2026-02-01"), 0)) {
            let times = reminded.entry(mail.account.to_string()).or_default();
            if times.last().is_none_or(|last| *last + TimeDelta::days(14) < mail.written_at) {
                times.push(mail.written_at);
            }
        }
        let until = day.checked_add_days(Days::new(LEAD)).unwrap();
        (0..).zip(world.payment_days.values()).all(|(n, payment_day): (u32, _)| {
            let planned = due_dates(*payment_day, date("2026-02-08"), until).len();
            let sent = reminded.remove(&format!("account-{n}")).unwrap_or_default().len();
            assert!(sent <= planned, "account-{n}: {sent} reminders instead of {planned}");
            sent == planned
        })
    }

    /// Returns the runs of `batch`. A run has one record for each of its walks (a walk processes the rows of one
    /// shard). The records of a run have the same `StartedAt`, because the clock of the test does not move during a
    /// run.
    fn runs(&self, batch: Batch) -> Vec<Run> {
        let partition = format!("RUN#{batch}#");
        let mut by_time: BTreeMap<(String, String), Vec<&Item>> = BTreeMap::new();
        for record in self.with_sort_key("SHARD#").filter(|item| text(item, "PK").starts_with(&partition)) {
            by_time.entry((text(record, "StartedAt"), text(record, "Date"))).or_default().push(record);
        }
        let runs = by_time.into_iter().map(|((started_at, on), records)| Run {
            on: on.parse().unwrap(),
            started_at,
            has_left_nothing: records.iter().all(|record| has_left_nothing(record))
                && records.iter().any(|record| !record.contains_key("NextPosition")),
        });
        runs.collect()
    }

    /// Returns the days whose comparison has ended since `since`.
    pub fn days_compared_since(&self, since: DateTime<Utc>) -> Vec<NaiveDate> {
        let compared = self
            .with_sort_key("DAY#")
            .filter(|item| text(item, "EndedDate").parse::<DateTime<Utc>>().is_ok_and(|ended_at| ended_at >= since));
        compared.map(|item| text(item, "SK").trim_start_matches("DAY#").parse().unwrap()).collect()
    }

    /// Returns whether a payment of `day` has no receipt with the same amount, or a receipt of `day` has no payment
    /// with the same amount. If a person has decided about a payment, the payment is no difference.
    pub fn differs(&self, world: &World, day: NaiveDate) -> bool {
        let made = payments(world);
        let decided: BTreeSet<String> = self
            .with_sort_key("FND#")
            .filter(|item| item.contains_key("Resolution"))
            .map(|item| text(item, "GatewayPaymentId"))
            .collect();
        let is_stated = |id: &String, request: &ChargeRequest| {
            let stated = |receipt: &StoredReceipt| {
                receipt.payment == *id && receipt.amount == request.amount.minor().to_string()
            };
            self.receipts.iter().any(stated) || decided.contains(id)
        };
        let of_day = made.iter().filter(|(_, (_, created_at))| created_at.date_naive() == day);
        let mut missing = of_day.filter(|(id, (request, _))| !is_stated(id, request));
        let is_of_payment = |receipt: &&StoredReceipt| {
            made.get(&receipt.payment).is_some_and(|(request, _)| is_stated(&receipt.payment, request))
        };
        missing.next().is_some() || !self.receipts_of(day).iter().all(is_of_payment)
    }

    /// Returns the number of open findings (successful payments without a receipt) that were stored since `since`.
    pub fn findings_since(&self, since: DateTime<Utc>) -> usize {
        let open = self.items.iter().filter(|item| text(item, "PK") == "FINDINGS");
        open.filter(|item| text(item, "CreatedDate").parse::<DateTime<Utc>>().unwrap() >= since).count()
    }

    /// Returns whether the audit in the night after `day` must find a violation: an open finding, an unknown item, or a
    /// run of the last month that left rows unfinished, unless a later run left no row unfinished.
    pub fn has_violations(&self, day: NaiveDate) -> bool {
        let has_open_finding = self.items.iter().any(|item| text(item, "PK") == "FINDINGS");
        let has_unknown_item = self.with_sort_key(UNKNOWN_SORT_KEY).next().is_some();
        let first = day.checked_sub_days(Days::new(29)).unwrap();
        let has_unfinished_run = Batch::ALL.into_iter().any(|batch| {
            let runs = self.runs(batch);
            let is_unfinished = |run: &Run| {
                let is_later = |later: &Run| later.started_at > run.started_at && later.has_left_nothing;
                run.on >= first && !run.has_left_nothing && !runs.iter().any(is_later)
            };
            runs.iter().any(is_unfinished)
        });
        has_open_finding || has_unknown_item || has_unfinished_run
    }
}

/// Returns whether the walk with the run record `record` has ended, and has left no row unfinished.
fn has_left_nothing(record: &Item) -> bool {
    let left = match record.get("Counts") {
        Some(AttributeValue::M(counts)) => {
            ["in_doubt", "failed", "in_progress"].iter().any(|name| !["", "0"].contains(&text(counts, name).as_str()))
        }
        _ => false,
    };
    record.contains_key("EndedAt") && !record.contains_key("Stopped") && !left
}
