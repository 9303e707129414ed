//! The payment batch's use of the sweep: claim, charge, settle; and for an attempt in doubt take over, look up, settle
//! or charge again under the same key.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use super::breaker::Unanswered;
use crate::billing::{
    Attempt, CatchUp, Ceilings, Day, GatewayToken, Outcome, Payment, Period, Policy, ReceiptId, Resolution, Settled,
    Standing, Subscription, Token, resolve, settle, standing,
};
use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::{Answer, ChargeRequest, LookUpError, PaymentGateway};
use crate::sweep::{Done, Task, time_left};
use crate::table::{
    Batch, Claim, Claimed, Due, DueList, DuePage, MAX_ROUNDS, Position, SubscriptionKey, Table, TableError, Written,
};

/// The gateway is given this long to answer one request.
pub const GATEWAY_TIMEOUT: TimeDelta = TimeDelta::seconds(30);
/// A settlement is given this long, after the charge.
const MARGIN: TimeDelta = TimeDelta::seconds(10);
/// A claim is given this long, before the charge: one that is begun leaves time enough to charge.
const CLAIM_TIME: TimeDelta = TimeDelta::seconds(12);
/// A charge starts at most this long after the claim or take-over that allows it: a process that was suspended in between
/// must not wake up and charge what others may have taken over. The shortest lease is twice as long, which is left for a
/// request that is slow on its way and for clocks that differ.
const PERMISSION: TimeDelta = TimeDelta::minutes(5);
/// Look-ups begin this long before the claim, for clocks that differ.
const LOOK_BACK: TimeDelta = TimeDelta::days(1);

/// Rows read at once to count a day.
const COUNTED_ROWS: usize = 1_000;

const PAID: &str = "paid";
const DECLINED: &str = "declined";
const REJECTED: &str = "rejected";
const PROCESSING: &str = "processing";
const IN_DOUBT: &str = "in_doubt";
const SKIPPED: &str = "skipped";

/// Charges what is due.
#[derive(Debug)]
pub struct ChargeDue {
    table: Table,
    gateway: Arc<dyn PaymentGateway>,
    policy: Policy,
    /// How long a claim keeps others away: longer than an attempt may be worked on.
    lease: TimeDelta,
    rate: Option<DefaultDirectRateLimiter>,
    /// The kill switch in the settings, as of the last page.
    is_charging: AtomicBool,
    ceilings: Ceilings,
    unanswered: Unanswered,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, thiserror::Error)]
enum ChargeError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("attempt {attempt_no} is settled elsewhere with other records")]
    Duplicate { attempt_no: u32 },
    #[error(
        "payment {payment} of {due_on} was made, and there is no receipt of it: its attempt was settled as something else"
    )]
    Unreceipted { payment: GatewayToken, due_on: NaiveDate },
}

#[async_trait]
impl Task for ChargeDue {
    const BATCH: Batch = Batch::Payments;
    const OUTCOMES: &'static [&'static str] = &[PAID, DECLINED, REJECTED, PROCESSING, IN_DOUBT, SKIPPED];

    async fn page(
        &self,
        table: &Table,
        shard: u32,
        on: NaiveDate,
        after: Option<&Position>,
        limit: i32,
    ) -> Result<DuePage, TableError> {
        let settings = table.get_settings().await?;
        self.is_charging.store(settings.is_some_and(|settings| settings.charging), Ordering::Relaxed);
        table.get_due_payments_by_date(shard, on, after, limit).await
    }

    fn begin(&self) {
        // What failed in an earlier run of this process may be over.
        self.unanswered.forget();
    }

    async fn refuses(&self, table: &Table, shards: u32, on: NaiveDate) -> Result<Option<String>, TableError> {
        if self.ceilings.are_none() {
            return Ok(None);
        }
        let (mut day, mut after) = (Day::default(), None);
        loop {
            let DueList { rows, next } = table.get_due_by_date(Self::BATCH, shards, on, after, COUNTED_ROWS).await?;
            rows.iter().filter_map(|row| row.due.as_ref().ok()).for_each(|due| day.add(due.amount));
            after = next;
            if after.is_none() {
                return Ok(self.ceilings.exceeded_by(&day));
            }
        }
    }

    async fn work(&self, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> Done {
        if !self.has_time_to_charge(deadline - CLAIM_TIME) {
            return Done::OutOfTime;
        }
        let done = if self.is_charging.load(Ordering::Relaxed) {
            self.charge_due(due, today, deadline).await
        } else {
            self.settle_open(due, today, deadline).await
        };
        match done {
            Ok(done) => done,
            // Whether a write that got no answer took effect is unknown: an attempt may be open.
            Err(ChargeError::Table(error)) if error.is_transient() => in_doubt(&error),
            Err(error) => Done::Failed { reason: error.to_string() },
        }
    }
}

impl ChargeDue {
    /// Charges what is due in `table` through `gateway`.
    pub fn new(table: Table, gateway: Arc<dyn PaymentGateway>, config: &Config, clock: Arc<dyn Clock>) -> Self {
        let rate = config
            .gateway_rate
            .map(|per_second| RateLimiter::direct(Quota::per_second(per_second).allow_burst(NonZeroU32::MIN)));
        Self {
            table,
            gateway,
            policy: config.policy.clone(),
            lease: config.lease,
            rate,
            is_charging: AtomicBool::new(false),
            ceilings: config.ceilings.clone(),
            unanswered: Unanswered::at_most(config.gateway_failures),
            clock,
        }
    }

    fn has_time_to_charge(&self, deadline: DateTime<Utc>) -> bool {
        time_left(self.clock.as_ref(), deadline) > GATEWAY_TIMEOUT + MARGIN
    }

    async fn charge_due(&self, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> Result<Done, ChargeError> {
        let mut seen = due.on;
        if seen > today {
            // Dates compare as text in the index; one that sorts wrongly must not be charged.
            return Ok(Done::Failed { reason: format!("the index shows it due on {seen}, after {today}") });
        }
        if let Some(latest) = self.skip_missed(due, today).await? {
            seen = latest;
        }
        // Twice at most: the index may show a date that is no longer the item's.
        for _ in 0..2 {
            let claim = self.claim();
            let stored = match self.table.claim_payment(&due.of, seen, claim).await? {
                Claimed::Held(held) => return self.charge(*held, claim.now, today, deadline).await,
                Claimed::Refused(None) => return Ok(Done::As(SKIPPED)),
                Claimed::Refused(Some(stored)) => *stored,
            };
            match standing(&stored, claim.token, seen, today, claim.now) {
                Standing::Ours => return self.charge(stored, claim.now, today, deadline).await,
                Standing::InDoubt(attempt) => return self.take_over(&due.of, attempt, today, deadline).await,
                Standing::DueOn(on) => seen = on,
                Standing::HeldElsewhere => return Ok(Done::As(IN_DOUBT)),
                Standing::NotDue => return Ok(Done::As(SKIPPED)),
                Standing::Ended => return self.take_out(&stored, stored.cancel()).await,
                Standing::Stranded => {
                    return self.take_out(&stored, Subscription { next_payment_on: None, ..stored.clone() }).await;
                }
            }
        }
        Ok(Done::As(SKIPPED))
    }

    /// Waives the months of `due` that an outage has missed, if that is the policy; answers the due date that is left.
    async fn skip_missed(&self, due: &Due, today: NaiveDate) -> Result<Option<NaiveDate>, ChargeError> {
        if self.policy.catch_up == CatchUp::Each || Period::of(due.due_on) >= Period::of(today) {
            return Ok(None);
        }
        let Some(mut stored) = self.table.get_subscription(&due.of.account, due.of.subscription).await? else {
            return Ok(None);
        };
        for _ in 0..MAX_ROUNDS {
            let Some(skip) = self.policy.catch_up.skip(&stored, today, self.clock.now()) else { return Ok(None) };
            match self.table.settle(&stored, &skip).await? {
                Written::Written => return Ok(skip.subscription.next_payment_on),
                Written::Conflict(Some(newer)) => stored = *newer,
                Written::Conflict(None) | Written::Duplicate => return Ok(None),
            }
        }
        Err(TableError::Contended { operation: "skip_missed" }.into())
    }

    /// With charging switched off: nothing is claimed, and what the gateway knows of an open attempt is settled.
    async fn settle_open(&self, due: &Due, today: NaiveDate, deadline: DateTime<Utc>) -> Result<Done, ChargeError> {
        let of = &due.of;
        let Some(stored) = self.table.get_subscription(&of.account, of.subscription).await? else {
            return Ok(Done::As(SKIPPED));
        };
        let claim = self.claim();
        match standing(&stored, claim.token, due.on, today, claim.now) {
            Standing::InDoubt(attempt) => self.take_over(of, attempt, today, deadline).await,
            Standing::HeldElsewhere | Standing::Ours => Ok(Done::As(IN_DOUBT)),
            _ if stored.status.is_chargeable() && stored.next_payment_on.is_some_and(|on| on <= today) => {
                Ok(switched_off(SKIPPED))
            }
            _ => Ok(Done::As(SKIPPED)),
        }
    }

    /// Takes `stored` out of the index, as `out`. Another writer is quicker or slower: a later sweep sees.
    async fn take_out(&self, stored: &Subscription, out: Subscription) -> Result<Done, ChargeError> {
        self.table.update_subscription(stored, &out).await?;
        Ok(Done::As(SKIPPED))
    }

    fn claim(&self) -> Claim {
        let now = self.clock.now();
        Claim { token: Token(self.clock.ulid()), now, leased_until: now + self.lease }
    }

    async fn take_over(
        &self,
        of: &SubscriptionKey,
        lapsed: Attempt,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> Result<Done, ChargeError> {
        let claim = self.claim();
        let subscription = match self.table.take_over(of, &lapsed, claim).await? {
            Claimed::Held(held) => *held,
            Claimed::Refused(Some(stored)) => *stored,
            Claimed::Refused(None) => return Ok(Done::As(SKIPPED)),
        };
        let attempt = match subscription.attempt.clone() {
            Some(open) if open.held_by == claim.token => open,
            // Another worker was quicker, and has it under lease.
            Some(_) => return Ok(Done::As(IN_DOUBT)),
            None => return Ok(Done::As(SKIPPED)),
        };
        let known = match self.look_up(&attempt).await {
            Ok(known) => known,
            Err(error) => return Ok(self.unanswered(&error)),
        };
        match resolve(&subscription, &attempt, &known, self.clock.now()) {
            Resolution::Settle(outcome) => self.settle(subscription, &attempt, outcome, today).await,
            Resolution::Processing => Ok(Done::As(PROCESSING)),
            Resolution::ChargeAgain if !self.is_charging.load(Ordering::Relaxed) => Ok(switched_off(IN_DOUBT)),
            Resolution::ChargeAgain => self.charge(subscription, claim.now, today, deadline).await,
        }
    }

    async fn at_the_gateways_rate(&self) {
        if let Some(rate) = &self.rate {
            rate.until_ready().await;
        }
    }

    async fn look_up(&self, attempt: &Attempt) -> Result<Vec<Payment>, LookUpError> {
        self.at_the_gateways_rate().await;
        let since = attempt.claimed_at - LOOK_BACK;
        let known = self.gateway.payments_of(&attempt.payment_method.customer, since).await;
        if known.is_ok() {
            self.unanswered.forget();
        }
        known
    }

    /// Charges the attempt of `subscription`, which is ours by a claim or a take-over of `allowed_at`.
    async fn charge(
        &self,
        subscription: Subscription,
        allowed_at: DateTime<Utc>,
        today: NaiveDate,
        deadline: DateTime<Utc>,
    ) -> Result<Done, ChargeError> {
        // Both always leave an attempt behind.
        let Some(attempt) = subscription.attempt.clone() else { return Ok(Done::As(SKIPPED)) };
        self.at_the_gateways_rate().await;
        let is_permitted = self.clock.now().signed_duration_since(allowed_at) < PERMISSION;
        if !is_permitted || !self.has_time_to_charge(deadline) {
            return Ok(Done::As(IN_DOUBT));
        }
        let answer = self.gateway.charge(&ChargeRequest::of(&subscription, &attempt)).await;
        if !matches!(answer, Answer::Unknown { .. } | Answer::Unusable { .. }) {
            self.unanswered.forget();
        }
        let outcome = match answer {
            Answer::Succeeded(payment) => Outcome::Succeeded(payment),
            Answer::Declined(decline) => Outcome::Declined(decline),
            Answer::Rejected { code } => Outcome::Rejected { code },
            Answer::Processing => return Ok(Done::As(PROCESSING)),
            Answer::Unknown { reason } => return Ok(self.unanswered(&LookUpError::Unknown { reason })),
            Answer::Unusable { reason } => return Ok(self.unanswered(&LookUpError::Unusable { reason })),
            Answer::KeyReused => match self.look_up(&attempt).await {
                Err(error) => return Ok(self.unanswered(&error)),
                Ok(known) => match resolve(&subscription, &attempt, &known, self.clock.now()) {
                    Resolution::Settle(outcome) => outcome,
                    Resolution::Processing => return Ok(Done::As(PROCESSING)),
                    Resolution::ChargeAgain => Outcome::Rejected { code: "idempotency_key_in_use".to_owned() },
                },
            },
        };
        self.settle(subscription, &attempt, outcome, today).await
    }

    /// Settles on whatever is stored by now. A settlement that cannot be written leaves the attempt open: a later
    /// sweep looks it up and settles it then.
    async fn settle(
        &self,
        subscription: Subscription,
        held: &Attempt,
        outcome: Outcome,
        today: NaiveDate,
    ) -> Result<Done, ChargeError> {
        let name = match outcome {
            Outcome::Succeeded(_) => PAID,
            Outcome::Declined(_) => DECLINED,
            Outcome::Rejected { .. } => REJECTED,
            Outcome::Dropped => SKIPPED,
        };
        let mut stored = subscription;
        for round in 0..MAX_ROUNDS {
            let settlement = match settle(&stored, held, &outcome, &self.policy, today, self.clock.now()) {
                Settled::Write(settlement) => settlement,
                Settled::Already => return self.settled_elsewhere(&stored, held, &outcome, name).await,
                Settled::StaysOpen => return Ok(Done::As(IN_DOUBT)),
            };
            match self.table.settle(&stored, &settlement).await {
                Ok(Written::Written) => return Ok(Done::As(name)),
                Ok(Written::Conflict(None)) => return self.settled_elsewhere(&stored, held, &outcome, name).await,
                Ok(Written::Conflict(Some(newer))) => stored = *newer,
                Ok(Written::Duplicate) => return Err(ChargeError::Duplicate { attempt_no: held.no }),
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, round, "a settlement is tried again");
                    self.clock.pause(Duration::from_millis(50) * 2u32.pow(round)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(in_doubt(&"the settlement could not be written"))
    }

    /// The attempt is gone: another worker has settled it. That must have come to the same, for a payment without its
    /// receipt is nothing to pass over.
    async fn settled_elsewhere(
        &self,
        stored: &Subscription,
        held: &Attempt,
        outcome: &Outcome,
        name: &'static str,
    ) -> Result<Done, ChargeError> {
        let Outcome::Succeeded(payment) = outcome else { return Ok(Done::As(name)) };
        let id = ReceiptId { due_on: held.due_on, subscription: stored.id, sku: stored.sku.clone() };
        let receipt = self.table.get_receipt(&stored.account, &id, self.clock.now()).await?;
        if receipt.is_some_and(|receipt| receipt.payment == payment.id) {
            return Ok(Done::As(name));
        }
        Err(ChargeError::Unreceipted { payment: payment.id.clone(), due_on: held.due_on })
    }

    /// What a request to the gateway that told us nothing means for the row, and for the run.
    fn unanswered(&self, error: &LookUpError) -> Done {
        match self.unanswered.one_more(error) {
            Some(reason) => Done::Stop { counted: Some(IN_DOUBT), reason },
            None => in_doubt(error),
        }
    }
}

fn switched_off(counted: &'static str) -> Done {
    Done::Held { counted, reason: "charging is switched off".to_owned() }
}

fn in_doubt(reason: &dyn std::fmt::Display) -> Done {
    tracing::warn!(%reason, "an attempt is left in doubt");
    Done::As(IN_DOUBT)
}
