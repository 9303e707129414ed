//! Checks the writes of the payment batch, of the webhook receiver, and of an operator who resolves an attempt.

use billing::CatchUp;
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::expected_subscription::{ExpectedSubscription, OpenAttempt};
use super::{ActorRole, BillingRules, Oracle, SimulatedActor, SubscriptionWrite};
use crate::calendar::month_of;
use crate::json::{read_instant_attribute, read_number_attribute, read_text_attribute};
use crate::schedule::ActorId;
use crate::stored_items::StoredStatus::Active;

impl Oracle {
    /// Returns the expected subscription after a write of the payment batch, the webhook receiver or the resolver.
    ///
    /// # Errors
    /// The violation, if the write is not allowed.
    pub(super) fn predict_after_payment_write(
        &self,
        id: ActorId,
        actor: &SimulatedActor,
        now: DateTime<Utc>,
        today: NaiveDate,
        expected: ExpectedSubscription,
        write: &SubscriptionWrite<'_>,
    ) -> Result<ExpectedSubscription, String> {
        let &SubscriptionWrite { before, after, records } = write;
        let attempt_no = |item: Option<&Value>| item.and_then(|item| read_number_attribute::<u32>(item, "AttemptNo"));
        let holder_of =
            |item: Option<&Value>| item.and_then(|item| read_text_attribute(item, "AttemptBy").map(str::to_owned));
        let lease = read_instant_attribute(after, "AttemptLease");
        let mut next = ExpectedSubscription { new_waivers: Vec::new(), ..expected };
        match (attempt_no(before), attempt_no(Some(after))) {
            (None, Some(_)) if records.is_empty() => {
                if self.active_actors.get(&id).is_some_and(|active| active.has_read_row_after_charging_off(&next.name))
                {
                    return Err("an attempt was claimed while charging was switched off".to_owned());
                }
                if self.active_actors.get(&id).is_some_and(|active| self.exceeds_ceiling(active)) {
                    return Err("an attempt was claimed, although the due payments exceed the ceiling".to_owned());
                }
                let claimed_at = read_instant_attribute(after, "AttemptAt").ok_or("an attempt has no claim instant")?;
                next.claim_attempt(id, now, today, claimed_at, lease.ok_or("an attempt has no lease")?)?;
            }
            (Some(_), Some(_)) if holder_of(before) != holder_of(Some(after)) && records.is_empty() => {
                next.take_over_attempt(id, now, actor, lease.ok_or("an attempt has no lease")?)?;
            }
            (Some(_), None) => self.apply_settlement(id, actor, now, today, &mut next, records)?,
            (None, None) if actor.role == ActorRole::Webhook => {
                self.predict_after_late_success(now, today, &mut next, records)?
            }
            (None, None) if next.ends_on_due_date() && next.is_chargeable() && next.due <= today => next.cancel(today),
            (None, None) if records.has_only_waivers() => next.waive_missed_months(today, &self.rules)?,
            _ => {
                return Err(
                    "the payment batch, the webhook receiver or the resolver wrote an unexpected change".to_owned()
                );
            }
        }
        Ok(next)
    }
}

impl ExpectedSubscription {
    /// Opens a new attempt that the actor `holder` has claimed. Returns the violation if the claim is not allowed.
    fn claim_attempt(
        &mut self,
        holder: ActorId,
        held_since: DateTime<Utc>,
        today: NaiveDate,
        claimed_at: DateTime<Utc>,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        if !self.is_chargeable() {
            return Err(format!("an attempt was claimed, although the status is {:?}", self.status));
        }
        if self.open.is_some() || self.ends_on_due_date() {
            return Err("an attempt was claimed, although another one is open or the subscription is ending".to_owned());
        }
        if self.next_payment.is_none_or(|next| next > today) || self.due > today {
            return Err(format!(
                "an attempt was claimed on {today}, but the next payment date is {:?}",
                self.next_payment
            ));
        }
        self.attempts += 1;
        self.open = Some(OpenAttempt {
            no: self.attempts,
            due: self.due,
            amount: self.price_in(month_of(self.due)),
            card: self.card.clone(),
            holder,
            is_chargeable: true,
            held_since,
            leased_until,
            claimed_at,
        });
        Ok(())
    }

    /// Makes `actor` the holder of the open attempt. Returns the violation if the take-over is not allowed.
    fn take_over_attempt(
        &mut self,
        id: ActorId,
        now: DateTime<Utc>,
        actor: &SimulatedActor,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        let local_now = now + actor.skew;
        let is_chargeable = self.is_chargeable() && actor.role == ActorRole::Payments;
        let open = self.open.as_mut().ok_or("a take-over was written, but no attempt is open")?;
        if open.leased_until > local_now {
            return Err(format!(
                "an attempt was taken over at {local_now}, but its lease ends at {}",
                open.leased_until
            ));
        }
        (open.holder, open.held_since) = (id, now);
        (open.leased_until, open.is_chargeable) = (leased_until, is_chargeable);
        Ok(())
    }

    /// Waives the months that were not charged because of an outage. The last of these months is not waived, but
    /// charged now. Returns the violation if no month was missed.
    fn waive_missed_months(&mut self, today: NaiveDate, rules: &BillingRules) -> Result<(), String> {
        let last = self.last_due_date_up_to(today).map(month_of).unwrap_or(month_of(self.due));
        let latest = self.last_charged_month().unwrap_or(last).min(last);
        if rules.policy.catch_up != CatchUp::Latest || self.status != Active || latest <= month_of(self.due) {
            return Err(format!("months were waived on {today} because of an outage, but no month was missed"));
        }
        self.waive_months(month_of(self.due), latest, "outage");
        self.move_to_month(latest);
        self.next_payment = Some(self.due);
        Ok(())
    }
}
