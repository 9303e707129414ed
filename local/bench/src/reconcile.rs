//! `bench reconcile`: measures the comparison of a day's payments with the gateway, for days with more and more
//! payments. The peak memory of the comparison must not grow with the number of payments.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use billing::{
    AccountId, Currency, GatewayAccount, GatewayToken, Money, Payment, PaymentStatus, Receipt, SubscriptionId,
};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clap::Args;
use clock::SimulatedClock;
use dynamo::{Entity as _, TIME_TO_LIVE, expiry_timestamp, n};
use gateways::{
    ChargeRequest, ChargeResponse, GatewayDispute, GatewayError, GatewayRefund, ListPage, PaymentGateway,
    RefundRequest, RefundResponse, Refunds, TimeRange,
};
use reconciling::{CorrectionMode, Reconciler};
use store::{Settings, Table};
use testkit::sample_subscription;

use crate::Failure;
use crate::engine::{SHARDS, TABLE, create_client_of_engine, create_numbered_ulid};
use crate::process::{ChildProcess, read_peak_memory_mb};

/// The number of receipts that are written with one request.
const RECEIPTS_PER_BATCH_WRITE: u32 = 25;
/// The number of payments on a list page.
const PAGE_SIZE: u32 = 100;
/// How long the table stores receipts.
const RETENTION: TimeDelta = TimeDelta::days(190);

/// The arguments of `bench reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// Numbers of payments of a day
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000")]
    pub payments: Vec<u32>,
}

/// For each number of payments, compares a day that has this number of payments, and prints the speed and the peak
/// memory. The engine of the table runs in another process, so the memory of this process is the memory of the
/// comparison alone.
pub async fn measure_reconciliation(args: &ReconcileArgs) -> Result<(), Failure> {
    println!("{:>9}  {:>10}  {:>14}  {:>8}", "payments", "payments/s", "peak MB before", "peak MB");
    let day: NaiveDate = "2027-01-31".parse()?;
    for &count in &args.payments {
        let arguments = ["engine", "--rows", "0", "--on-disk", "--without-tokens"].map(str::to_owned);
        let mut engine = ChildProcess::start_bench_command(&arguments)?;
        let table = Table::new(create_client_of_engine(&engine.read_line().await?), TABLE);
        let gateway = Arc::new(NumberedPayments { count, at: noon_of_day(day) });
        create_receipts(&table, &gateway).await?;
        let before = read_peak_memory_mb(std::process::id())?;
        let clock = Arc::new(SimulatedClock::new(noon_of_day(day) + TimeDelta::days(1), 1));
        let corrections = CorrectionMode::SettleOrStoreFinding;
        let mut reconciler = Reconciler::new(table, create_numbered_ulid(0), gateway, corrections, clock, day);
        let started = Instant::now();
        let result = reconciler.reconcile(day, None).await?;
        let seconds = started.elapsed().as_secs_f64();
        if !result.is_clean() || (result.counts.payments, result.counts.receipts) != (count.into(), count.into()) {
            return Err(format!("the comparison of {count} payments is wrong: {result:?}").into());
        }
        let peak = read_peak_memory_mb(std::process::id())?;
        println!("{count:>9}  {:>10.0}  {before:>14.1}  {peak:>8.1}", f64::from(count) / seconds);
        engine.stop().await?;
    }
    Ok(())
}

fn noon_of_day(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::hours(12)
}

/// Returns the currency of all payments.
fn euro_currency() -> Currency {
    "EUR".parse().expect("a currency")
}

/// Writes the receipt of each payment of `gateway` to the table.
async fn create_receipts(table: &Table, gateway: &NumberedPayments) -> Result<(), Failure> {
    table.create_if_absent().await?;
    let settings = Settings::new(SHARDS, create_numbered_ulid(0));
    table.init_settings(&settings).await?;
    let sample = sample_subscription(31, gateway.at.date_naive());
    for start in (0..gateway.count).step_by(RECEIPTS_PER_BATCH_WRITE as usize) {
        let mut writes = Vec::new();
        for number in start..gateway.count.min(start + RECEIPTS_PER_BATCH_WRITE) {
            let payment = gateway.numbered_payment(number);
            let receipt = Receipt {
                account: payment.account,
                subscription: payment.subscription,
                sku: sample.sku.clone(),
                product_name: sample.product_name.clone(),
                email: None,
                due_on: payment.due_on,
                amount: payment.amount,
                payment: payment.id,
                customer: None,
                card: None,
                processed_at: payment.created_at,
                refunded: Money::new(0, euro_currency()),
                refunded_at: None,
                reversal: None,
            };
            let mut item = receipt.to_item();
            item.insert(TIME_TO_LIVE.to_owned(), n(expiry_timestamp(gateway.at, RETENTION)));
            writes
                .push(WriteRequest::builder().put_request(PutRequest::builder().set_item(Some(item)).build()?).build());
        }
        table.client().batch_write_item().request_items(table.name(), writes).send().await?;
    }
    Ok(())
}

/// A gateway that computes each payment from its number, so that the payments need no memory.
#[derive(Debug)]
struct NumberedPayments {
    count: u32,
    /// The instant at which all payments were made.
    at: DateTime<Utc>,
}

impl NumberedPayments {
    /// Returns the payment with the number `number`.
    fn numbered_payment(&self, number: u32) -> Payment {
        let account: AccountId = format!("account-{number:07}").parse().expect("a valid account id");
        Payment {
            id: format!("pi_{number:024}").parse().expect("a valid payment id"),
            table: Some(create_numbered_ulid(0)),
            account,
            subscription: SubscriptionId::new(create_numbered_ulid(number)),
            due_on: self.at.date_naive(),
            attempt_no: 1,
            amount: Money::new(1_299, euro_currency()),
            status: PaymentStatus::Succeeded,
            card: None,
            created_at: self.at,
        }
    }

    /// Returns the error of the requests that the benchmark does not need.
    fn unknown_outcome<T>() -> Result<T, GatewayError> {
        Err(GatewayError::Unknown { reason: "the benchmark does not need this request".to_owned() })
    }
}

#[async_trait]
impl PaymentGateway for NumberedPayments {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        Self::unknown_outcome()
    }

    async fn charge(&self, _: &ChargeRequest) -> ChargeResponse {
        Self::unknown_outcome::<()>().map_or_else(ChargeResponse::from, |()| ChargeResponse::KeyReused)
    }

    async fn payments_of_customer(&self, _: &GatewayToken, _: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        Self::unknown_outcome()
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let number = id.as_str().strip_prefix("pi_").and_then(|number| number.parse().ok());
        Ok(number.filter(|number| *number < self.count).map(|number| self.numbered_payment(number)))
    }
}

#[async_trait]
impl Refunds for NumberedPayments {
    async fn refund(&self, _: &RefundRequest) -> RefundResponse {
        RefundResponse::Rejected { code: "not_needed".to_owned() }
    }

    async fn refunds_of_payment(&self, _: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        Ok(Vec::new())
    }

    async fn payments_in_range(
        &self,
        _: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        let start: u32 = after.and_then(|after| after.parse().ok()).unwrap_or(0);
        let end = self.count.min(start + PAGE_SIZE);
        let next = (end < self.count).then(|| end.to_string());
        Ok(Some(ListPage::new((start..end).map(|number| self.numbered_payment(number)).collect(), next)))
    }

    async fn refunds_in_range(
        &self,
        _: &TimeRange,
        _: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        Ok(Some(ListPage::last(Vec::new())))
    }

    async fn disputes_in_range(
        &self,
        _: &TimeRange,
        _: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        Ok(Some(ListPage::last(Vec::new())))
    }
}
