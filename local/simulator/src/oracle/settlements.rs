//! What becomes of an attempt that is settled, and whether it may be settled so.

use billing::{AfterLastRetry, PaymentStatus};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};

use super::agreement::{Agreement, Open};
use super::ledger::Made;
use super::outcome::{Receipt, Records, Tried};
use super::{Actor, LONGEST_ROW, Oracle, Role, Rules};
use crate::calendar::{Month, month_of, next_month};
use crate::schedule::ActorId;
use crate::stored::StoredStatus::{Active, Cancelled, PastDue, Unpaid};

/// From so many days after a month's first decline any decline makes it unpaid.
const LAST_TRY_DAYS: u64 = 28;
/// From so many rejections in a row they count as declines.
const MAX_REJECTIONS: u32 = 3;
/// What the gateway does not know after this time is settled as rejected.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::hours(48);

impl Oracle {
    /// Settles the open attempt of `next` as `records` say, if that is so.
    pub(super) fn settle(
        &self,
        id: ActorId,
        actor: &Actor,
        now: DateTime<Utc>,
        today: NaiveDate,
        next: &mut Agreement,
        records: &Records,
    ) -> Result<(), String> {
        let open = next.open.take().ok_or("nothing was open to be settled")?;
        match (&records.receipts[..], &records.tried[..]) {
            ([receipt], []) => {
                self.is_receipt_of(&open, next, receipt)?;
                next.paid(&open, &receipt.payment, today, &self.rules);
            }
            ([], [tried]) => {
                self.has_failed(id, actor, now, &open, next, tried)?;
                match tried.outcome.as_str() {
                    "declined" => {
                        if self.is_declined(next, &open) {
                            next.rejections = 0;
                        } else {
                            next.rejections += 1;
                        }
                        next.declined(&open, tried.is_hard, today, &self.rules);
                    }
                    "rejected" => {
                        next.rejections += 1;
                        next.look_again(today + Days::new(1));
                    }
                    _ => next.look_again(today),
                }
            }
            _ => return Err(format!("an attempt was settled with {records:?}")),
        }
        Ok(())
    }

    fn is_declined(&self, next: &Agreement, open: &Open) -> bool {
        self.ledger.of_attempt(&next.who, open.no).any(|made| matches!(made.status, PaymentStatus::Declined(_)))
    }

    /// A receipt states what the gateway has made, and that is what was frozen.
    pub(super) fn is_receipt_of(&self, open: &Open, next: &Agreement, receipt: &Receipt) -> Result<(), String> {
        let made = self.ledger.made.get(&receipt.payment);
        let made =
            made.ok_or_else(|| format!("there is a receipt of {}, which the gateway does not know", receipt.payment))?;
        let stated = (receipt.amount, receipt.currency.as_str());
        if made.status != PaymentStatus::Succeeded {
            return Err(format!("there is a receipt of {}, which is {:?}", receipt.payment, made.status));
        }
        if made.who != next.who || month_of(made.due) != month_of(open.due) || receipt.due != open.due {
            return Err(format!("the receipt of {} is of {made:?}", receipt.due));
        }
        if stated != (made.amount, made.currency.as_str()) {
            return Err(format!("the receipt states {stated:?}, and charged was {} {}", made.amount, made.currency));
        }
        if made.no == open.no && made.amount != open.amount {
            return Err(format!("{} was receipted, and {} was frozen", made.amount, open.amount));
        }
        Ok(())
    }

    /// An attempt is recorded as failed only if the gateway has made nothing of it that may succeed.
    fn has_failed(
        &self,
        id: ActorId,
        actor: &Actor,
        now: DateTime<Utc>,
        open: &Open,
        next: &Agreement,
        tried: &Tried,
    ) -> Result<(), String> {
        if (tried.no, tried.due) != (open.no, open.due) {
            return Err(format!("{tried:?} was recorded of {open:?}"));
        }
        let is_to_be_found = |made: &Made| made.is_alive() && made.was_there(now, LONGEST_ROW);
        if let Some((payment, _)) = self.ledger.of_month(&next.who, open.due).find(|(_, made)| is_to_be_found(made)) {
            return Err(format!(
                "attempt {} of {} was recorded as {}, and there is {payment}",
                open.no, open.due, tried.outcome
            ));
        }
        let was_rejected = self.ledger.has_nothing_of(&next.who, open.no, now);
        let is_forgotten = now + actor.skew - open.claimed_at > FORGOTTEN_AFTER;
        let is_none = was_rejected || is_forgotten || actor.role == Role::Resolver;
        let declines = || {
            self.ledger.of_attempt(&next.who, open.no).filter_map(|made| match &made.status {
                PaymentStatus::Declined(decline) => Some(decline.hard),
                _ => None,
            })
        };
        let is_so = match tried.outcome.as_str() {
            "declined" if self.is_declined(next, open) => declines().any(|is_hard| is_hard == tried.is_hard),
            "declined" => is_none && next.rejections + 1 >= MAX_REJECTIONS && !tried.is_hard,
            "rejected" => is_none && next.rejections + 1 < MAX_REJECTIONS && declines().next().is_none(),
            "dropped" => !next.is_chargeable() && declines().next().is_none(),
            _ => false,
        };
        if !is_so {
            let rejections = next.rejections;
            return Err(format!(
                "{tried:?} was recorded, which is not so: rejected {was_rejected}, forgotten {is_forgotten}, {rejections} rejections before, {:?}",
                self.ledger.of_attempt(&next.who, open.no).collect::<Vec<_>>()
            ));
        }
        if !matches!(tried.outcome.as_str(), "declined") && open.holder != id {
            return Err(format!(
                "attempt {} was settled as {} by somebody who does not hold it",
                open.no, tried.outcome
            ));
        }
        Ok(())
    }
}

impl Agreement {
    pub(super) fn paid(&mut self, open: &Open, payment: &str, today: NaiveDate, rules: &Rules) {
        let paid = month_of(open.due);
        self.paid.insert(paid, payment.to_owned());
        let next = self.month_after(paid, today);
        if self.status != Cancelled {
            self.waive(next_month(paid), next, "unpaid");
        }
        self.move_to(next);
        (self.was_unpaid, self.failed, self.rejections) = (false, 0, 0);
        if matches!(self.status, PastDue | Unpaid) {
            self.status = Active;
        }
        (self.next, self.remind) = (None, None);
        if self.status == Active {
            self.next = Some(self.due.max(today + Days::new(1)));
            self.remind = (self.due > today && !self.is_ending()).then(|| rules.reminder_before(self.due));
        }
    }

    /// The month that is due after the one that was paid.
    fn month_after(&self, paid: Month, today: NaiveDate) -> Month {
        match self.ends {
            Some(ends) if self.status == Cancelled => ends,
            _ if self.was_unpaid => next_month(paid).max(month_of(self.first_due_after(today))),
            _ => next_month(paid),
        }
    }

    fn declined(&mut self, open: &Open, is_hard: bool, today: NaiveDate, rules: &Rules) {
        if !self.is_chargeable() {
            return self.look_again(today);
        }
        self.remind = None;
        let first = *self.first_declined.get_or_insert(today);
        let gap = if open.card != self.card {
            // The new card has a schedule of its own.
            self.failed = 0;
            Some(1)
        } else {
            self.failed += 1;
            rules.gap_after(self.failed).filter(|_| !is_hard)
        };
        match gap.filter(|_| today < first + Days::new(LAST_TRY_DAYS)) {
            Some(days) => (self.status, self.next) = (PastDue, Some(today + Days::new(days))),
            None => {
                (self.status, self.was_unpaid, self.next) = (Unpaid, true, None);
                if rules.policy.after_last_retry == AfterLastRetry::Cancelled || self.ends.is_some() {
                    self.cancel(today);
                }
            }
        }
    }

    /// It is tried again on `on`. If it was cancelled meanwhile, its month is waived now.
    fn look_again(&mut self, on: NaiveDate) {
        self.next = self.is_chargeable().then_some(on);
        if self.status == Cancelled {
            let unpaid = month_of(self.due);
            self.waive(unpaid, next_month(unpaid), "cancelled");
            let ends = self.ends.unwrap_or(next_month(unpaid));
            self.ends = Some(ends);
            self.move_to(ends);
        }
    }
}
