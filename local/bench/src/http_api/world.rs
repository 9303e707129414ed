//! The engine and the gateway of a server, and the items that its table contains before the requests are sent.

use billing::{Account, GatewayAccount, Money, PaymentDay, Period, Receipt, Settlement, Subscription, SubscriptionId};
use chrono::{NaiveDate, NaiveTime, Utc};
use clock::{Clock as _, SystemClock};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use store::{CreateOutcome, Table};
use testkit::{sample_account, sample_subscription};

use super::request::{ACCOUNTS, BenchmarkLoad, LISTED_RECEIPTS, LISTED_SUBSCRIPTIONS, PAYMENT_DAY, RequestKind};
use crate::Failure;
use crate::contestant::start_gateway;
use crate::engine::{TABLE, create_client_of_engine};
use crate::process::ChildProcess;

/// The number of subscriptions that are created at the same time before the requests are sent.
const WRITES_IN_FLIGHT: usize = 8;

/// The engine and the gateway of one server, each with its process and its URL.
pub struct BenchmarkWorld {
    pub engine: (ChildProcess, String),
    pub gateway: (ChildProcess, String),
    /// Direct access to the server's table.
    pub table: Table,
    pub today: NaiveDate,
}

impl BenchmarkWorld {
    /// Starts an engine with an empty table, and a gateway.
    pub async fn start() -> Result<Self, Failure> {
        let gateway = start_gateway(0).await?;
        let mut engine =
            ChildProcess::start_bench_command(&["engine", "--rows=0", "--without-tokens"].map(str::to_owned))?;
        let url = engine.read_line().await?;
        let table = Table::new(create_client_of_engine(&url), TABLE);
        let account = reqwest::get(format!("{}{}", gateway.1, gateways::ACCOUNT_PATH)).await?.text().await?;
        table.set_gateway(None, &serde_json::from_str::<GatewayAccount>(&account)?, None).await?;
        Ok(Self { engine: (engine, url), gateway, table, today: Utc::now().date_naive() })
    }

    /// Creates the accounts of `set`, and the subscriptions and receipts that the requests of `set` read or change.
    pub async fn create_items_for_load(&self, set: &BenchmarkLoad) -> Result<(), Failure> {
        let accounts = set.account_ids().into_iter().map(|id| Account { id, ..sample_account() });
        for account in accounts {
            self.table.put_account(&account).await?;
        }
        let subscriptions = match set.kind {
            RequestKind::Create | RequestKind::SignUp => 0,
            RequestKind::List => ACCOUNTS * LISTED_SUBSCRIPTIONS,
            RequestKind::Change => set.count,
            RequestKind::Receipts => ACCOUNTS * 2,
        };
        stream::iter(0..subscriptions)
            .map(|n| async move {
                let subscription = new_subscription(set.account_id(n).as_str(), set.subscription_id(n), self.today);
                self.create_subscription(&subscription).await?;
                if set.kind == RequestKind::Receipts { self.create_receipts(&subscription).await } else { Ok(()) }
            })
            .buffer_unordered(WRITES_IN_FLIGHT)
            .try_collect()
            .await
    }

    /// Stores the new subscription `subscription` in the table.
    pub async fn create_subscription(&self, subscription: &Subscription) -> Result<(), Failure> {
        match self.table.create_subscription(subscription, None).await? {
            CreateOutcome::Created => Ok(()),
            other => Err(format!("a subscription of the benchmark was not created: {other:?}").into()),
        }
    }

    /// Stores one receipt of `subscription` for each of the six months before the current month.
    pub async fn create_receipts(&self, subscription: &Subscription) -> Result<(), Failure> {
        let months = std::iter::successors(Some(Period::from_day(self.today)), |period| Some(period.previous()));
        for (month, period) in (1..).zip(months.skip(1)).take(LISTED_RECEIPTS / 2) {
            let receipt = create_receipt(subscription, period, month);
            let settled = self.table.write_settlement(subscription.clone(), |stored| {
                Ok::<_, ()>(Settlement { receipt: Some(receipt.clone()), ..stored.clone().into() })
            });
            store::ignore_refusal(settled.await)?;
        }
        Ok(())
    }

    pub async fn stop(self) -> Result<(), Failure> {
        self.engine.0.stop().await?;
        self.gateway.0.stop().await
    }
}

/// Returns a subscription of `account` that was created at the beginning of `today`. A request cannot change the
/// payment method of a subscription whose creation time is later than the request.
pub fn new_subscription(account: &str, id: SubscriptionId, today: NaiveDate) -> Subscription {
    let account = account.parse().expect("a valid account id");
    let created_at = today.and_time(NaiveTime::MIN).and_utc();
    Subscription { account, id, created_at, ..sample_subscription(PAYMENT_DAY, today) }
}

/// Returns the receipt of the payment of `subscription` for the month `period`. The id of the payment contains `n`.
fn create_receipt(subscription: &Subscription, period: Period, n: u32) -> Receipt {
    let payment_day = PaymentDay::try_from(PAYMENT_DAY).expect("a valid payment day");
    let due_on = payment_day.due_in(period);
    Receipt {
        account: subscription.account.clone(),
        subscription: subscription.id,
        sku: subscription.sku.clone(),
        product_name: subscription.product_name.clone(),
        email: None,
        due_on,
        amount: subscription.price,
        payment: format!("pay_{n}").parse().expect("a valid payment id"),
        customer: Some(subscription.payment_method.customer.clone()),
        card: None,
        // The time of the payment is the current time. A receipt expires 190 days after its payment, and no receipt may
        // expire during the benchmark.
        processed_at: SystemClock.now(),
        refunded: Money::new(0, subscription.price.currency()),
        refunded_at: None,
        reversal: None,
    }
}
