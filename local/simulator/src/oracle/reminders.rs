//! What the reminder batch may write and send.

use chrono::{DateTime, NaiveDate, Utc};
use mail::Mail;
use serde_json::Value;

use super::Oracle;
use super::agreement::{Agreement, Reminding};
use crate::json::{instant, text};
use crate::schedule::ActorId;
use crate::stored::StoredStatus::Active;

/// The agreement after a write of the reminder batch.
pub fn written(
    id: ActorId,
    (its_now, today): (DateTime<Utc>, NaiveDate),
    agreement: Agreement,
    (before, after): (Option<&Value>, &Value),
) -> Result<Agreement, String> {
    let by = |item: Option<&Value>| item.and_then(|item| text(item, "ReminderBy").map(str::to_owned));
    let mut next = agreement;
    match (by(before), by(Some(after))) {
        (held, Some(now_held)) if held.as_ref() != Some(&now_held) => {
            let leased_until = instant(after, "ReminderLease").ok_or("a reminder without a lease")?;
            next.claim_reminder(id, its_now, today, leased_until)?;
        }
        (Some(_), None) => next.mark(id, today)?,
        _ => return Err("the reminder batch wrote what it has no business with".to_owned()),
    }
    Ok(next)
}

impl Agreement {
    /// What there is to remind of on `today`.
    fn reminder(&self, today: NaiveDate) -> Option<(NaiveDate, i64)> {
        let will_be_paid = self.status == Active && self.open.is_none() && !self.is_ending() && today <= self.due;
        will_be_paid.then(|| (self.due, self.price_in(crate::calendar::month_of(self.due))))
    }

    /// Whoever is sending it, or still may be.
    fn claims(&self) -> impl Iterator<Item = &Reminding> {
        self.reminding.iter().chain(&self.reminding_late)
    }

    fn claims_mut(&mut self) -> impl Iterator<Item = &mut Reminding> {
        self.reminding.iter_mut().chain(&mut self.reminding_late)
    }

    fn claim_reminder(
        &mut self,
        id: ActorId,
        its_now: DateTime<Utc>,
        today: NaiveDate,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        if self.remind.is_none_or(|on| on > today) {
            return Err(format!("a reminder was begun on {today}, and is to be sent on {:?}", self.remind));
        }
        if let Some(held) = self.reminding.as_ref().filter(|held| held.leased_until > its_now) {
            return Err(format!("a reminder was begun at {its_now}, and is leased until {}", held.leased_until));
        }
        let due_and_amount = self.reminder(today);
        self.reminding_late.extend(self.reminding.take());
        self.reminding = Some(Reminding { holder: id, leased_until, due_and_amount, is_sent: false });
        Ok(())
    }

    fn mark(&mut self, id: ActorId, today: NaiveDate) -> Result<(), String> {
        let Some(held) = self.reminding.take().filter(|held| held.holder == id) else {
            return Err("a reminder was marked by somebody who does not hold it".to_owned());
        };
        if held.is_sent != held.due_and_amount.is_some() {
            return Err(format!("a reminder was marked as done, and is {held:?}"));
        }
        let is_due = self.remind.is_some_and(|on| on <= today);
        let owed = self.reminder(today);
        // What has changed since is reminded of again.
        if is_due && (owed.is_none() || owed == held.due_and_amount) {
            self.remind = None;
        }
        Ok(())
    }
}

impl Oracle {
    /// A mail has left.
    pub fn mailed(&mut self, id: ActorId, now: DateTime<Utc>, mail: &Mail) {
        self.judged.mails += 1;
        let stated = Stated::read(&mail.text);
        let is_of = |agreement: &&mut Agreement| {
            agreement.claims().any(|held| held.holder == id && !held.is_sent)
                && stated.as_ref().is_some_and(|stated| stated.product == agreement.product)
                && mail.to.as_str().starts_with(&agreement.who.0)
        };
        let whose = self.agreements.values_mut().find(is_of);
        let wrong = match (whose, &stated) {
            (Some(agreement), Some(stated)) => {
                let amount = in_minor_units(&stated.amount, &agreement.currency);
                let held = agreement.claims_mut().find(|held| held.holder == id && !held.is_sent);
                let expected = held.and_then(|held| {
                    held.is_sent = true;
                    held.due_and_amount
                });
                let is_right = expected.is_some() && expected == amount.map(|amount| (stated.due, amount));
                let who = agreement.who.clone();
                (!is_right).then(|| (who, format!("reminded of {stated:?}, and to be stated was {expected:?}")))
            }
            _ => {
                let who = (mail.to.as_str().to_owned(), mail.subject.clone());
                Some((who, "a mail was sent by somebody who has claimed no such reminder".to_owned()))
            }
        };
        if let Some((who, reason)) = wrong {
            self.is_wrong(now, &who, reason);
        }
    }
}

/// What a reminder states.
#[derive(Debug)]
struct Stated {
    product: String,
    amount: String,
    due: NaiveDate,
}

impl Stated {
    fn read(text: &str) -> Option<Self> {
        let line = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        let due = NaiveDate::parse_from_str(line("Date")?, "%A, %B %d, %Y").ok()?;
        Some(Self { product: line("Product")?.to_owned(), amount: line("Amount")?.to_owned(), due })
    }
}

/// An amount such as `€1,012.99` in minor units.
fn in_minor_units(amount: &str, currency: &str) -> Option<i64> {
    let (sign, decimals) = match currency {
        "EUR" => ("€", 2),
        "USD" => ("$", 2),
        "GBP" => ("£", 2),
        "JPY" => ("¥", 0),
        "KWD" => ("KWD\u{a0}", 3),
        _ => return None,
    };
    let number = amount.strip_prefix(sign)?.replace(',', "");
    let has = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    (has == decimals).then(|| number.replace('.', "").parse().ok())?
}
