//! What the payment batch, and whoever resolves by hand, may write.

use billing::CatchUp;
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

use super::agreement::{Agreement, Open};
use super::outcome::Records;
use super::{Actor, Oracle, Role, Rules};
use crate::calendar::month_of;
use crate::json::{instant, number, text};
use crate::schedule::ActorId;
use crate::stored::StoredStatus::Active;

impl Oracle {
    /// The agreement after a write of the payment batch, or of a person who resolves a payment.
    pub(super) fn paid(
        &self,
        id: ActorId,
        actor: &Actor,
        (now, today): (DateTime<Utc>, NaiveDate),
        agreement: Agreement,
        (before, after): (Option<&Value>, &Value),
        records: &Records,
    ) -> Result<Agreement, String> {
        let no = |item: Option<&Value>| item.and_then(|item| number::<u32>(item, "AttemptNo"));
        let by = |item: Option<&Value>| item.and_then(|item| text(item, "AttemptBy").map(str::to_owned));
        let lease = instant(after, "AttemptLease");
        let mut next = Agreement { waives: Vec::new(), ..agreement };
        match (no(before), no(Some(after))) {
            (None, Some(_)) if records.is_empty() => {
                if self.present.get(&id).is_some_and(|present| present.holds_back(&next.who)) {
                    return Err("a payment was begun while charging is switched off".to_owned());
                }
                if self.present.get(&id).is_some_and(|present| self.is_over(present)) {
                    return Err("a payment was begun over the ceiling".to_owned());
                }
                let claimed_at = instant(after, "AttemptAt").ok_or("an attempt without its instant")?;
                next.claim((id, now), today, claimed_at, lease.ok_or("an attempt without a lease")?)?;
            }
            (Some(_), Some(_)) if by(before) != by(Some(after)) && records.is_empty() => {
                next.take_over((id, now), actor, lease.ok_or("an attempt without a lease")?)?;
            }
            (Some(_), None) => self.settle(id, actor, now, today, &mut next, records)?,
            (None, None) if actor.role == Role::Webhook => self.late((now, today), &mut next, records)?,
            (None, None) if next.is_ending() && next.is_chargeable() && next.due <= today => next.cancel(today),
            (None, None) if records.are_waivers() => next.skip(today, &self.rules)?,
            _ => return Err("the payment batch wrote what it has no business with".to_owned()),
        }
        Ok(next)
    }
}

impl Agreement {
    fn claim(
        &mut self,
        (holder, held_at): (ActorId, DateTime<Utc>),
        today: NaiveDate,
        claimed_at: DateTime<Utc>,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        if !self.is_chargeable() {
            return Err(format!("a payment was begun, being {:?}", self.status));
        }
        if self.open.is_some() || self.is_ending() {
            return Err("a payment was begun, and another is open, or it is ending".to_owned());
        }
        if self.next.is_none_or(|next| next > today) || self.due > today {
            return Err(format!("a payment was begun on {today}, and is to be begun on {:?}", self.next));
        }
        self.attempts += 1;
        self.open = Some(Open {
            no: self.attempts,
            due: self.due,
            amount: self.price_in(month_of(self.due)),
            card: self.card.clone(),
            holder,
            is_chargeable: true,
            held_at,
            leased_until,
            claimed_at,
        });
        Ok(())
    }

    fn take_over(
        &mut self,
        (id, now): (ActorId, DateTime<Utc>),
        actor: &Actor,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        let its_now = now + actor.skew;
        let is_chargeable = self.is_chargeable() && actor.role == Role::Payments;
        let open = self.open.as_mut().ok_or("what was taken over was not open")?;
        if open.leased_until > its_now {
            return Err(format!("taken over at {its_now}, and leased until {}", open.leased_until));
        }
        (open.holder, open.held_at) = (id, now);
        (open.leased_until, open.is_chargeable) = (leased_until, is_chargeable);
        Ok(())
    }

    /// Months that an outage has missed are waived but for the last.
    fn skip(&mut self, today: NaiveDate, rules: &Rules) -> Result<(), String> {
        let last = self.last_due_by(today).map(month_of).unwrap_or(month_of(self.due));
        let latest = self.last_charged().unwrap_or(last).min(last);
        if rules.policy.catch_up != CatchUp::Latest || self.status != Active || latest <= month_of(self.due) {
            return Err(format!("months were passed over on {today}, and none was missed"));
        }
        self.waive(month_of(self.due), latest, "outage");
        self.move_to(latest);
        self.next = Some(self.due);
        Ok(())
    }
}
